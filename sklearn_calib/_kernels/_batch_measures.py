"""Measures of many predictions of the same rows of two classes, all in one pass.

`proba` has one line per model and one column per row; each model may weigh the rows in its own
way. Rows are sorted once per model, and serve every set of weights.
"""

from functools import cached_property

import numpy as np
from scipy.special import entr, expit

from ._loess import SPAN
from ._log_odds import of_probability
from ._logistic import climb, fit_line, threshold_separates

CELLS = 64  # of the smoothed curve
_BLOCK = 1 << 15  # entries whose temporaries stay in the cache
_STEPS = 12  # of Newton's method, before a slower one that always arrives
_ENOUGH = 1e-14  # likelihood per unit of weight that a last step may still gain
_FLOOR = float(np.finfo(np.float64).eps)  # of a log loss
_FLAT = 1e-9  # of a determinant, relative: a parabola that the scores do not carry


class Batch:
    """Predictions of some models for the same rows.

    Parameters
    ----------
    proba : ndarray of shape (n_models, n_samples)
        Of the event.
    hit : ndarray of shape (n_samples,)
        1 for the event, else 0.
    """

    def __init__(self, proba, hit):
        self._order = np.argsort(proba, axis=1, kind="stable")
        self._p = np.take_along_axis(proba, self._order, axis=1)
        self._hit = hit[self._order].astype(np.float64)

    @cached_property
    def _z(self):
        return of_probability(self._p, 1 - self._p)

    @cached_property
    def _runs(self):
        """For each place the first and the last place of equal predictions; None without ties."""
        new = self._p[:, 1:] != self._p[:, :-1]
        if new.all():
            return None
        place = np.arange(self._p.shape[1])
        edge = np.ones((len(new), 1), dtype=bool)
        first = np.maximum.accumulate(np.where(np.hstack([edge, new]), place, 0), axis=1)
        last = np.where(np.hstack([new, edge]), place, place[-1])
        return first, np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]

    @cached_property
    def _losses(self):
        own = np.where(self._hit == 1, self._p, 1 - self._p)
        return -np.log(np.maximum(own, _FLOOR))

    def measures(self, names, weight):
        """One line per name, one column per model.

        Parameters
        ----------
        names : sequence of str
            Among `NAMES`.
        weight : ndarray of shape (n_samples,) or (n_models, n_samples)
            At least 0, not all 0.

        Returns
        -------
        values : ndarray of shape (n_names, n_models)
            NaN where a value does not exist.
        """
        part = self._weighted(weight)
        return np.array([getattr(part, NAMES[name])() for name in names]).reshape(len(names), -1)

    def curves(self, weight):
        """Smoothed calibration curves: predictions and frequencies, one line per model."""
        score, frequency, _ = self._weighted(weight).curve()
        return score, frequency

    def _weighted(self, weight):
        if weight.ndim == 1:
            return _Weighted(self, weight[self._order])
        return _Weighted(self, np.take_along_axis(weight, self._order, axis=1))


#: Names of quantities, and what computes them.
NAMES = {
    "O/E": "ratio",
    "calibration in the large": "large",
    "intercept": "intercept",
    "slope": "slope",
    "ICI": "index",
    "Brier": "brier",
    "scaled Brier": "scaled",
    "log loss": "log_loss",
    "AUC": "area",
    "Nagelkerke R2": "explained",
}


#: Of the values of each quantity.
RANGES = {
    "O/E": (0.0, np.inf),
    "ICI": (0.0, 1.0),
    "Brier": (0.0, 1.0),
    "scaled Brier": (-np.inf, 1.0),
    "log loss": (0.0, np.inf),
    "AUC": (0.0, 1.0),
    "Nagelkerke R2": (-np.inf, 1.0),
}


def batch_measures(proba, hit, weights, names):
    """The measures of each model under each set of weights: shape (n_weights, n_names, n_models).

    Parameters
    ----------
    proba : ndarray of shape (n_models, n_samples)
    hit : ndarray of shape (n_samples,)
    weights : sequence of ndarray
        Each of shape (n_samples,) or (n_models, n_samples).
    names : sequence of str
    """
    step = max(1, _BLOCK // proba.shape[1])
    found = []
    for start in range(0, len(proba), step):
        rows = slice(start, start + step)
        batch = Batch(proba[rows], hit)
        cut = [weight if weight.ndim == 1 else weight[rows] for weight in weights]
        found.append([batch.measures(names, weight) for weight in cut])
    return np.concatenate(found, axis=2)


class _Weighted:
    """Sorted predictions with their weights, one line per model."""

    def __init__(self, batch, weight):
        self.batch, self.p, self.hit = batch, batch._p, batch._hit
        self.weight = weight
        self.total = weight.sum(axis=1)
        self.hits = self._sum(self.hit)
        self.rate = self.hits / self.total
        self.both = (self.hits > 0) & (self.hits < self.total)

    def _sum(self, values):
        return np.einsum("bn,bn->b", self.weight, values)

    def _mean(self, values):
        return self._sum(values) / self.total

    def ratio(self):
        expected = self._sum(self.p)
        return np.divide(
            self.hits, expected, out=np.full(len(expected), np.nan), where=expected > 0
        )

    def brier(self):
        return self._mean((self.hit - self.p) ** 2)

    def scaled(self):
        return self._where_both(lambda: 1 - self.brier() / (self.rate * (1 - self.rate)))

    def log_loss(self):
        return self._mean(self.batch._losses)

    def explained(self):
        entropy = entr(self.rate) + entr(1 - self.rate)
        gain = self.log_loss() - entropy
        return self._where_both(lambda: np.expm1(2 * gain) / np.expm1(-2 * entropy))

    def _where_both(self, value):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.both, value(), np.nan)

    def area(self):
        events = self.weight * self.hit
        rest = self.weight - events
        before, after = self._around(rest)
        below = (before + after) / 2
        pairs = self.hits * (self.total - self.hits)
        return self._where_both(lambda: np.einsum("bn,bn->b", events, below) / pairs)

    def _around(self, values):
        """Sums over all lower predictions, and over these and equal ones."""
        after = np.cumsum(values, axis=1)
        if self.batch._runs is None:
            return after - values, after
        first, last = self.batch._runs
        before = np.take_along_axis(after - values, first, axis=1)
        return before, np.take_along_axis(after, last, axis=1)

    # -- lines in the log-odds ---------------------------------------------------------------

    def intercept(self):
        return self._line[0]

    def slope(self):
        return self._line[1]

    @cached_property
    def _line(self):
        """(a, b) of logit P = a + b z for each model."""
        z, a, b = self.batch._z, np.zeros(len(self.p)), np.ones(len(self.p))
        arrived = np.zeros(len(a), dtype=bool)
        for _ in range(_STEPS):
            step_a, step_b, gain = self._step(z, a, b)
            arrived |= gain <= _ENOUGH * self.total
            a, b = a + step_a, b + step_b
            if not (np.isfinite(gain) & ~arrived).any():
                break
        arrived &= np.isfinite(a) & np.isfinite(b)
        for model in np.flatnonzero(~arrived):
            a[model], b[model] = self._slowly(model)
        return a, b

    def _step(self, z, a, b):
        """Newton's step for each model, and what it gains; NaN where there is none."""
        mean = expit(a[:, None] + b[:, None] * z)
        curve = self.weight * mean
        pull = self.weight * self.hit - curve
        curve *= 1 - mean
        pull = pull.sum(axis=1), np.einsum("bn,bn->b", pull, z)
        bent = curve * z
        h = curve.sum(axis=1), bent.sum(axis=1), np.einsum("bn,bn->b", bent, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = h[0] * h[2] - h[1] ** 2
            size = np.where(size > _FLAT * h[0] * h[2], size, np.nan)
            step_a = (h[2] * pull[0] - h[1] * pull[1]) / size
            step_b = (h[0] * pull[1] - h[1] * pull[0]) / size
        return step_a, step_b, step_a * pull[0] + step_b * pull[1]

    def _slowly(self, model):
        """The line of one model, by a method that arrives wherever there is an end."""
        kept = self.weight[model] > 0
        z, hit, weight = (x[model, kept] for x in (self.batch._z, self.hit, self.weight))
        if (hit == hit[0]).all() or (z == z[0]).all():
            return np.nan, np.nan
        (a, b), _ = fit_line(z, hit, weight)
        return (np.nan, np.sign(b) * np.inf) if threshold_separates(z, hit) else (a, b)

    def large(self):
        """a of logit P = a + z."""
        found = np.full(len(self.p), np.nan)
        for model in np.flatnonzero(self.both):
            z, hit, weight = self.batch._z[model], self.hit[model], self.weight[model]
            found[model] = climb(z, np.ones_like(z), hit, weight)[0]
        return found

    # -- the smoothed curve ------------------------------------------------------------------

    def index(self):
        """The ICI: mean distance from the curve of the cells."""
        score, frequency, mass = self.curve()
        return np.einsum("bc,bc->b", mass, np.abs(frequency - score)) / self.total

    def curve(self):
        """Scores, smoothed frequencies and masses of at most `CELLS` cells of each model.

        Local quadratic regression of the events on the predictions, as R's loess, of cells of
        equally many rows.
        """
        n = self.p.shape[1]
        starts = np.arange(min(CELLS, n)) * n // min(CELLS, n)
        mass = np.add.reduceat(self.weight, starts, axis=1)
        plain = np.add.reduceat(self.p, starts, axis=1) / np.diff(np.append(starts, n))
        score = np.add.reduceat(self.weight * self.p, starts, axis=1)
        score = np.divide(score, mass, out=plain, where=mass > 0)
        events = self.weight * self.hit
        if self.batch._runs is not None:  # rows of one prediction may be in two cells
            shared, total = (np.subtract(*self._around(x)[::-1]) for x in (events, self.weight))
            share = np.divide(shared, total, out=np.zeros_like(total), where=total > 0)
            events = self.weight * share
        excess = np.add.reduceat(events, starts, axis=1) - mass * score
        return score, np.clip(score + _smoothed(score, mass, excess), 0, 1), mass


def _smoothed(score, mass, excess):
    """The local parabola of `excess` / `mass` at each score: arrays of shape (n_models, n_cells).

    A parabola reproduces the score itself: the smoothed difference is that of the smoothed curve.
    """
    t = score[:, None, :] - score[:, :, None]
    t /= _widths(score, mass)[:, :, None]
    np.clip(t, -1, 1, out=t)
    root = np.abs(t)
    root *= root * root
    np.subtract(1, root, out=root)
    kernel = root * root
    kernel *= root
    both = np.stack([mass, excess], axis=2)
    sums = [kernel @ both]
    for _ in range(4):
        kernel *= t
        sums.append(kernel @ both)
    s0, s1, s2, s3, s4 = (one[:, :, 0] for one in sums)
    value = [one[:, :, 1] for one in sums]
    c0, c1, c2 = s2 * s4 - s3**2, s1 * s4 - s2 * s3, s1 * s3 - s2**2
    flat = s0 * s2 - s1**2
    whole = s0 * c0 - s1 * c1 + s2 * c2
    with np.errstate(divide="ignore", invalid="ignore"):
        level = value[0] / s0
        line = (value[0] * s2 - value[1] * s1) / flat
        parabola = (value[0] * c0 - value[1] * c1 + value[2] * c2) / whole
    line = np.where(flat > _FLAT * s0 * s2, line, level)
    return np.where(whole > _FLAT * s0 * s2 * s4, parabola, line)


def _widths(score, mass):
    """How far the nearest part `SPAN` of the mass reaches from each cell; above 0.

    Linear between cells, of whose mass one half lies on either side of the score. A window around
    a cell is wide enough where it holds a span that begins, or ends, at some cell.
    """
    width = np.maximum(score - score[:, :1], score[:, -1:] - score)
    for x, m in ((score, mass), (-score[:, ::-1], mass[:, ::-1])):
        begin, end = _spans(x, m)
        at = score[:, :, None] if x is score else -score[:, :, None]
        reach = np.maximum(at - begin[:, None, :], end[:, None, :] - at)
        np.minimum(width, reach.min(axis=2), out=width)
    return np.where(width > 0, width, np.finfo(np.float64).tiny ** 0.5)


def _spans(x, mass):
    """Where spans of the part `SPAN` of the mass begin, at cells, and end, between cells."""
    middle = np.cumsum(mass, axis=1) - mass / 2
    goal = middle + SPAN * mass.sum(axis=1, keepdims=True)
    last = x.shape[1] - 1
    first = max(1, int((goal <= middle[:, -1:]).sum(axis=1).max()))
    goal = goal[:, :first]
    right = np.clip((middle[:, None, :] < goal[:, :, None]).sum(axis=2), min(1, last), last)
    left = np.maximum(right - 1, 0)
    (low, high), (before, after) = (
        [np.take_along_axis(values, place, axis=1) for place in (left, right)]
        for values in (x, middle)
    )
    gain = after - before
    part = np.divide(goal - before, gain, out=np.ones_like(gain), where=gain > 0)
    end = np.where(goal <= middle[:, -1:], low + np.clip(part, 0, 1) * (high - low), np.inf)
    return x[:, :first], end
