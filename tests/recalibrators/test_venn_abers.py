import numpy as np
import pytest
from cases import run_every_case
from sklearn.isotonic import isotonic_regression

from sklearn_calib.recalibrators import VennAbers


def refit(p, y, w, query, label):
    """The definition: isotonic regression of the calibration set and the query."""
    scores = np.r_[p, query]
    _, where = np.unique(scores, return_inverse=True)
    weight = np.bincount(where, np.r_[w, 1.0])
    target = np.bincount(where, np.r_[w * y, label]) / weight
    return isotonic_regression(target, sample_weight=weight)[where[-1]]


@run_every_case("seed", range(12))  # two of each kind of scores and weights
def test_equals_the_definition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    p = rng.random(n) if seed % 2 else rng.integers(1, 9, n) / 10
    y = rng.integers(0, 2, n)
    w = [np.ones(n), rng.integers(1, 4, n) * 1.0, rng.exponential(size=n)][seed % 3]
    va = VennAbers().fit(p, y, sample_weight=w, classes=[0, 1])
    queries = np.r_[0.0, 1.0, p, rng.random(20), np.arange(0, 11) / 10]
    interval = va.predict_interval(queries)
    for query, (low, high) in zip(queries, interval, strict=True):
        assert low == pytest.approx(refit(p, y, w, query, 0), abs=1e-12)
        assert high == pytest.approx(refit(p, y, w, query, 1), abs=1e-12)


@pytest.mark.parametrize("shape", [(0.05, 3), (1, 1), (5, 0.1)])
def test_skewed_scores(shape):
    rng = np.random.default_rng(0)
    p = rng.beta(*shape, 3000)
    y = (rng.random(3000) < p).astype(int)
    va = VennAbers().fit(p, y, classes=[0, 1])
    low, high = va.predict_interval(np.sort(p)).T
    assert (low <= high).all() and np.diff(low).min() >= 0 and np.diff(high).min() >= 0
    for query in p[:30]:
        expected = [refit(p, y, np.ones(3000), query, label) for label in (0, 1)]
        np.testing.assert_allclose(
            va.predict_interval([query])[0], expected, atol=1e-12
        )


def test_merged_probability():
    va = VennAbers().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    low, high = va.predict_interval([0.3, 0.5, 0.95]).T
    np.testing.assert_allclose(
        va.predict_proba([0.3, 0.5, 0.95])[:, 1], high / (1 - low + high)
    )


def test_many_classes():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 100)
    va = VennAbers().fit(proba, rng.integers(0, 3, 100))
    interval = va.predict_interval(proba)
    assert interval.shape == (100, 3, 2)
    assert (interval[..., 0] <= interval[..., 1]).all()
