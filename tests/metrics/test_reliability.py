import numpy as np
import pytest
from sklearn.isotonic import isotonic_regression

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import reliability_curve


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins(strategy):
    proba, y = make_overconfident(2, 500)
    w = np.random.default_rng(0).exponential(size=500)
    (curve,) = reliability_curve(y, proba, strategy=strategy, n_bins=6, sample_weight=w)
    assert curve.weight.sum() == pytest.approx(w.sum())
    assert curve.weight @ curve.observed == pytest.approx(w @ y)
    assert curve.weight @ curve.predicted == pytest.approx(w @ proba[:, 1])
    assert (np.diff(curve.predicted) > 0).all()
    assert curve.histogram.sum() == pytest.approx(1)
    for low, high in (
        (curve.consistency_low, curve.consistency_high),
        (curve.confidence_low, curve.confidence_high),
    ):
        assert (low <= high).all() and low.min() >= 0 and high.max() <= 1
    assert (curve.confidence_low <= curve.observed).all()
    assert (curve.observed <= curve.confidence_high).all()


def test_isotonic_is_pav():
    proba, y = make_overconfident(2, 200)
    (curve,) = reliability_curve(y, proba, strategy="isotonic", n_resamples=20)
    order = np.argsort(proba[:, 1])
    np.testing.assert_allclose(curve.observed, isotonic_regression(y[order].astype(float)))
    assert (np.diff(curve.observed) >= 0).all()


@pytest.mark.parametrize("strategy", ["quantile", "isotonic"])
def test_bands_hold_their_level(strategy):
    """Calibrated predictions lie in the consistency band about as often as it says."""
    rng = np.random.default_rng(1)
    inside = []
    for seed in range(40):
        p = rng.random(300)
        y = (rng.random(300) < p).astype(int)
        (curve,) = reliability_curve(
            y, p, strategy=strategy, n_bins=10, level=0.8, n_resamples=100, random_state=seed
        )
        low, high = curve.consistency_low, curve.consistency_high
        inside.append(np.mean((low - 1e-12 <= curve.observed) & (curve.observed <= high + 1e-12)))
    assert 0.74 < np.mean(inside) < 0.93  # counts are whole: a little above 0.8


def test_panels():
    proba, y = make_overconfident(3, 300)
    labels = np.array(["x", "y", "z"])[y]
    titles = [c.title for c in reliability_curve(labels, proba, multiclass="classwise")]
    assert titles == ["class x", "class y", "class z"]
    assert [c.title for c in reliability_curve(labels, proba)] == ["confidence"]
    assert reliability_curve(labels, proba, multiclass="top_label")[0].title == "predicted x"


def test_no_resamples():
    proba, y = make_overconfident(2)
    for strategy in ("quantile", "isotonic"):
        (curve,) = reliability_curve(y, proba, strategy=strategy, n_resamples=0)
        assert curve.consistency_low is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "kernel"}, "expected strategy among quantile, uniform, isotonic"),
        ({"level": 90}, r"expected level in \(0, 1\), got 90. 90 % is 0.9"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        reliability_curve([0, 1], [0.2, 0.8], **options)
