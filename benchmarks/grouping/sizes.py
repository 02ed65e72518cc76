"""How often a gain of the size that `minimum_detectable` names is found, law by law."""

import laws
import numpy as np
from scipy.special import expit, softmax
from scipy.stats import norm

from sklearn_calib._validation import canonical_proba
from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.decomposition._grouping import compute_detectable_feature_gain
from sklearn_calib.metrics import get_loss

RECALIBRATOR = "default"
_GRID = 201  # points of a quadrature
_NORMAL = norm.ppf((np.arange(_GRID) + 0.5) / _GRID)
_PRODUCTS = np.quantile(
    np.multiply.outer(_NORMAL, _NORMAL), (np.arange(_GRID) + 0.5) / _GRID
)


class Missed:
    """A score and columns; what the columns add to the log-odds, in units of a move.

    `effect` maps columns to what they add, `values` are equally likely values of that.
    """

    def __init__(
        self, effect, values, columns=5, levels=0, center=0.0, spread=1.0, skewed=False
    ):
        self.effect, self.values = effect, np.asarray(values, dtype=float)
        self.columns, self.levels = columns, levels
        self.center, self.spread, self.skewed = center, spread, skewed

    def draw(self, n, gain, rng):
        """Columns, labels, and the best probabilities without the columns, worse by `gain`."""
        z = self.scores(rng.normal(size=n))
        x = rng.normal(size=(n, self.columns))
        table = dict(enumerate(x.T))
        if self.levels:
            x[:, 0] = rng.integers(self.levels, size=n)
            table[0] = np.array([f"level {k:.0f}" for k in x[:, 0]], dtype=object)
        move = move_of(gain, self.worth)
        y = (rng.random(n) < expit(z + move * self.effect(x))).astype(int)
        return table, y, _pair(expit(np.add.outer(move * self.values, z)).mean(axis=0))

    def scores(self, normal):
        return self.center + self.spread * (
            np.exp(normal) - 1 if self.skewed else normal
        )

    def worth(self, move):
        p = expit(np.add.outer(move * self.values, self.scores(_NORMAL)))
        return (
            _entropy(_pair(p.mean(axis=0))) - _entropy(_pair(p)).mean(axis=0)
        ).mean()


class GroupOfFour:
    """Four classes; in a third of the rows, which one column tells, one is more frequent."""

    columns = 5
    _shown = np.random.default_rng(0).normal(size=(2000, 4)) @ laws.SLOPES

    def draw(self, n, gain, rng):
        x, group = rng.normal(size=(n, 4)), rng.random(n) < 1 / 3
        z, move = x @ laws.SLOPES, move_of(gain, self.worth)
        yes, no = self._both(z, move)
        y = laws._labels(np.where(group[:, None], yes, no), rng)
        return {**dict(enumerate(x.T)), "group": group}, y, yes / 3 + no * 2 / 3

    def worth(self, move):
        yes, no = self._both(self._shown, move)
        parts = _entropy(yes) / 3 + _entropy(no) * 2 / 3
        return (_entropy(yes / 3 + no * 2 / 3) - parts).mean()

    @staticmethod
    def _both(z, move):
        return softmax(z + move * np.eye(4)[1], axis=1), softmax(z, axis=1)


def _pair(p):
    return np.stack([1 - p, p], axis=-1)


def _entropy(p):
    p = np.clip(p, 1e-15, 1)
    return -(p * np.log(p)).sum(axis=-1)


def move_of(gain, worth):
    """The move that is worth so much, by bisection."""
    low, high = 0.0, 12.0
    while high - low > 1e-4:
        move = (low + high) / 2
        low, high = (move, high) if worth(move) < gain else (low, move)
    return high


def _levels(k):
    """What k categories add, in an order that the names do not follow."""
    return np.random.default_rng(k).permutation(norm.ppf((np.arange(k) + 0.5) / k))


def _categories(k, **given):
    values = _levels(k)
    return Missed(lambda x: values[x[:, 0].astype(int)], values, levels=k, **given)


def _first(x):
    return x[:, 0]


def _quarter(x):
    return np.where(x[:, 0] > norm.ppf(0.75), 3.0, -1.0)


CALIBRATED = {  # in which the trees' cost was measured
    "step": Missed(lambda x: np.sign(x[:, 0]), [-1, 1]),
    "column missed": Missed(_first, _NORMAL),
    "8 categories": _categories(8),
    "column missed, 8 % positive": Missed(_first, _NORMAL, center=-3),
    "a quarter of the rows, skewed scores": Missed(
        _quarter, [-1, -1, -1, 3], spread=0.6, skewed=True
    ),
    "square of a column": Missed(lambda x: x[:, 0] ** 2 - 1, _NORMAL**2 - 1),
    "one of 20 columns": Missed(_first, _NORMAL, columns=20),
    "3 categories, 3 columns": _categories(3, columns=3),
    "5 categories, flat scores": _categories(5, center=-0.8, spread=0.3),
}
ONE_FEATURE = {
    "wave of one of 10, a fifth positive": Missed(
        lambda x: np.sin(2 * x[:, 0]), np.sin(2 * _NORMAL), columns=10, center=-1.6
    ),
    "a group, four classes": GroupOfFour(),
}
HARDER = {
    "product of two columns": Missed(lambda x: x[:, 0] * x[:, 1], _PRODUCTS),
    "30 categories": _categories(30),
}
LAWS = {**CALIBRATED, **ONE_FEATURE, **HARDER}


def found_of(name, n, draws):
    """One row: the gain named for n rows, and how often it is found where it is there."""
    law, log = LAWS[name], get_loss("log")
    _, _, p = law.draw(4000, 0.0, np.random.default_rng(0))
    size = compute_detectable_feature_gain(
        log, canonical_proba(p), np.full(4000, 1 / np.sqrt(4000 * n))
    )
    found, gains, said = [], [], []
    for seed in range(draws):
        table, y, p = law.draw(n, size, np.random.default_rng([n, 1000 + seed]))
        parts = decompose_loss(y, p, features=table, recalibrator=RECALIBRATOR)
        found.append(parts.action in ("retrain", "both"))
        gains.append(parts.gain_of_features)
        said.append(parts.minimum_detectable)
    row = {
        "law": name,
        "kind": "of the cost"
        if name in CALIBRATED
        else "other"
        if name in ONE_FEATURE
        else "more",
        "n": n,
        "draws": draws,
        "gain_there": f"{size:.5f}",
        "minimum_detectable": f"{np.mean(said):.5f}",
        "mean_gain_measured": f"{np.mean(gains):.5f}",
        "found": f"{np.mean(found):.3f}",
        "standard_error": f"{np.sqrt(0.16 / draws):.3f}",
    }
    print(row, flush=True)
    return [row]
