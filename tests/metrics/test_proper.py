import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_calib.metrics import all_metrics, brier_loss, log_loss
from sklearn_calib.testing import make_scores

PROPER = [m for m in all_metrics().values() if m.spec.proper]


@pytest.mark.parametrize("k", [2, 4])
def test_equal_to_scikit_learn(k):
    proba, y = make_scores(k)
    w = np.random.default_rng(0).random(len(y))
    assert log_loss(y, proba, sample_weight=w) == pytest.approx(
        sklearn.metrics.log_loss(y, proba, sample_weight=w), rel=1e-13
    )
    one_hot = np.eye(k)[y]
    expected = np.average(((proba - one_hot) ** 2).sum(axis=1), weights=w)
    assert brier_loss(y, proba, sample_weight=w) == pytest.approx(
        expected / 2 if k == 2 else expected
    )
    if k == 2:
        theirs = sklearn.metrics.brier_score_loss(y, proba[:, 1], sample_weight=w)
        assert brier_loss(y, proba, sample_weight=w) == pytest.approx(theirs)


@pytest.mark.parametrize("loss", PROPER, ids=lambda m: m.spec.name)
@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=3, max_size=3),
    st.lists(st.floats(0.05, 1), min_size=3, max_size=3),
)
def test_propriety(loss, counts, other):
    """The frequencies themselves minimise the expected loss."""
    y = np.repeat(np.arange(3), counts)
    truth = np.array(counts) / sum(counts)
    q = np.array(other) / sum(other)
    at_truth = loss(y, np.tile(truth, (len(y), 1)))
    assert at_truth <= loss(y, np.tile(q, (len(y), 1))) + 1e-9


def test_impossible_event_that_happened():
    assert log_loss([0, 1], [1.0, 1.0]) == pytest.approx(36.04 / 2, abs=0.01)
