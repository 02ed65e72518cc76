import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings, strategies as st

from sklearn_calib import canonical_proba
from sklearn_calib._simplex_array import apply_softmax_or_sigmoid
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import LogLoss, all_metrics, brier_loss, log_loss

PROPER = [m for m in all_metrics().values() if m.spec.proper]


@pytest.mark.parametrize("k", [2, 4])
def test_equal_to_scikit_learn(k):
    proba, y = make_overconfident(k)
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


def test_what_they_declare():
    """The bounds are attained: by certain predictions of the class that never comes."""
    assert {loss.spec.name: loss.spec.range for loss in PROPER} == {
        "log_loss": (0.0, np.inf),
        "brier_loss": (0.0, 2.0),
        "spherical_loss": (-1.0, 0.0),
        "ranked_probability_score": (0.0, 1.0),
    }
    wrong = np.tile([0.0, 0.0, 1.0], (4, 1))
    assert brier_loss([0, 1, 0, 1], wrong, labels=[0, 1, 2]) == 2.0
    assert brier_loss([0, 0], [1.0, 1.0], labels=[0, 1]) == 1.0
    assert brier_loss([2, 2], wrong[:2], labels=[0, 1, 2]) == 0.0


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


def test_the_floor_is_scikit_learns():
    """Equal at and below the floor in float64; float32 input is raised to float64 first."""
    p = np.array(
        [0.0, 1e-300, 1e-38, 1e-17, 2.2e-16, 2.3e-16, 1e-10, 0.5, 1 - 1e-16, 1.0]
    )
    for y in (np.zeros(10, dtype=int), np.ones(10, dtype=int)):
        theirs = sklearn.metrics.log_loss(y, p, labels=[0, 1])
        assert log_loss(y, p, labels=[0, 1]) == pytest.approx(theirs, rel=1e-13)
        logits = canonical_proba([-800.0, 800.0, 3.0], kind="logits")
        theirs = sklearn.metrics.log_loss(y[:3], np.asarray(logits), labels=[0, 1])
        assert log_loss(y[:3], logits, labels=[0, 1]) == pytest.approx(
            theirs, rel=1e-13
        )
    short = np.array([[1, 0], [1, 0]], dtype=np.float32)
    assert log_loss([0, 1], short) == log_loss([0, 1], short.astype(float))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
def test_the_log_loss_of_logits_of_two_classes(dtype):
    """As that of their softmax, with its bound and without."""
    rng = np.random.default_rng(0)
    logits = (8 * rng.normal(size=(200, 2))).astype(dtype)
    logits[0], codes = [-500, 500], rng.integers(0, 2, 200)
    codes[0] = 0
    for loss in (LogLoss(), LogLoss(floored=False)):
        own = loss.compute_logit_losses(logits, codes)
        proba = apply_softmax_or_sigmoid(logits)
        np.testing.assert_allclose(
            own, loss.compute_row_losses(proba, codes), rtol=1e-12, atol=1e-15
        )
    assert own[0] == 1000 and own.dtype == np.float64
