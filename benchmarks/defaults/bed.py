"""A test bed of hard scores: what breaks a method that is right on average.

Each case gives scores and labels of calibration rows, and of 5000 test rows, from a
seed.
"""

import warnings

import numpy as np
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

TEST = 5000
SIZES = (30, 100, 500, 2000, 10_000)


def _labels(rng, eta):
    return (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)


def _known(rng, n, k, spread=2.0):
    """Logits that are right, and labels drawn from them."""
    eta = spread * rng.normal(size=(n, k))
    return eta, _labels(rng, eta)


def squeezed(rng, n, k):
    """Margins squeezed by hand: all probabilities near 1 / k."""
    eta, y = _known(rng, n, k)
    return softmax(0.01 * eta, axis=1), y


def overfitted(rng, n, k):
    """A network that is sure of everything, also where it is wrong."""
    eta, y = _known(rng, n, k, 1.5)
    return softmax(6 * eta + 3 * rng.normal(size=eta.shape), axis=1), y


def moved(rng, n, k, far=None):
    """Right but for the base rates, every class moved by N(0, 1.5^2) or evenly up to `far`."""
    eta, y = _known(rng, n, k)
    shift = 1.5 * rng.normal(size=k) if far is None else np.linspace(0, far, k)
    return softmax(1.5 * eta + shift, axis=1), y


def moved_far(rng, n, k):
    """By 8 nats."""
    return moved(rng, n, k, 8.0)


def right(rng, n, k):
    """Nothing to do."""
    eta, y = _known(rng, n, k)
    return softmax(eta, axis=1), y


def rare(rng, n, k):
    """The last class is 1 % of the rows; scores are twice too sure."""
    eta = 1.5 * rng.normal(size=(n, k))
    eta[:, -1] -= {2: 6.2}.get(k, 5.0)
    return softmax(2 * eta, axis=1), _labels(rng, eta)


def _learnt(rng, n, k, learner, positives=None, train=1500):
    """A learner of scikit-learn on made data with wrong labels and redundant features."""
    seed = int(rng.integers(1 << 31))
    weights = None if positives is None else [1 - positives]
    X, y = make_classification(
        n + train,
        n_features=16,
        n_informative=6,
        n_redundant=8,
        n_classes=k,
        n_clusters_per_class=2,
        class_sep=0.8,
        flip_y=0.05 if positives is None else 0.01,
        weights=weights,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = learner.fit(X[:train], y[:train])
    return fitted.predict_proba(X[train:]), y[train:]


def adaboost(rng, n, k):
    """Its probabilities are near 1 / k."""
    return _learnt(rng, n, k, AdaBoostClassifier(n_estimators=50, random_state=0))


def naive_bayes(rng, n, k):
    """Redundant features count twice: down to 1e-300."""
    return _learnt(rng, n, k, GaussianNB())


def forest(rng, n, k):
    """Exact zeros, and one probability of 2e-14 among the calibration rows."""
    p, y = _learnt(rng, n, k, RandomForestClassifier(50, random_state=0))
    return _with_noise(p), y


def rare_forest(rng, n, k):
    """3.5 % positives, exact zeros and one 2e-14."""
    learner = RandomForestClassifier(100, random_state=0)
    p, y = _learnt(rng, n, k, learner, 0.035, 3000)
    return _with_noise(p), y


def _with_noise(p):
    p, row = p.copy(), np.flatnonzero((p == 0).any(axis=1))[:1]
    for i in row:
        p[i, p[i] == 0] = 2e-14
    return p


CASES = {
    "squeezed": (squeezed, (2, 4)),
    "AdaBoost": (adaboost, (2, 4)),
    "overfitted network": (overfitted, (3, 10, 100)),
    "naive Bayes": (naive_bayes, (2, 4)),
    "forest, 2e-14": (forest, (2, 4)),
    "forest, 3.5 % positives, 2e-14": (rare_forest, (2,)),
    "rates moved, N(0, 1.5^2)": (moved, (2, 4, 10)),
    "rates moved, 8 nats": (moved_far, (2, 4)),
    "1 % positives": (rare, (2, 4)),
    "right": (right, (2, 10)),
}


def draw(case, k, n, seed):
    """Scores and labels of n calibration rows, then those of the test rows."""
    rng = np.random.default_rng([seed, n, k, sorted(CASES).index(case)])
    p, y = CASES[case][0](rng, n + TEST, k)
    return p[:n], y[:n], p[n:], y[n:]
