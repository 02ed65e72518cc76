"""Curves by local regression and by a restricted cubic spline, and their intervals."""

import numpy as np
import pytest
from golden_sets import golden_set
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from sklearn_calib._kernels._spline import make_natural_basis
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import calibration_indices
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import reliability_curve
from sklearn_calib.summary import CalibrationSummary

SMOOTH = pytest.mark.parametrize("strategy", ["loess", "spline"])
ENDS = "confidence_low", "confidence_high"


def test_the_loess_is_that_of_the_integrated_index():
    y, p = golden_set()
    curve = reliability_curve(y, p, strategy="loess")
    apart = np.abs(np.interp(p, curve.predicted, curve.observed) - p)
    assert apart.mean() == pytest.approx(calibration_indices(y, p).ici, abs=1e-12)


def test_the_spline_is_a_logistic_regression_on_the_basis():
    y, p = golden_set()
    z = logit(p)
    basis = make_natural_basis(np.quantile(z, [0.1, 0.3, 0.5, 0.7, 0.9]))
    model = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000, fit_intercept=False)
    wanted = model.fit(basis(z), y).predict_proba(basis(z))[:, 1]
    curve = reliability_curve(y, p, strategy="spline")
    found = np.interp(p, curve.predicted, curve.observed)
    # the knots are quantiles of cells
    np.testing.assert_allclose(found, wanted, atol=5e-3)


@SMOOTH
def test_the_interval_widens_with_the_level_and_narrows_with_the_rows(strategy):
    def width(n, level):
        proba, y = make_overconfident(2, n)
        curve = reliability_curve(y, proba, strategy=strategy, level=level)
        assert (curve.confidence_low <= curve.observed + 1e-12).all()
        assert (curve.observed <= curve.confidence_high + 1e-12).all()
        assert curve.consistency_low is None
        return (curve.confidence_high - curve.confidence_low).mean()

    assert width(400, 0.5) < width(400, 0.95)
    assert width(1600, 0.95) < 0.7 * width(400, 0.95)


@SMOOTH
def test_a_weight_of_two_is_no_row_more(strategy):
    y, p = golden_set(300)
    one = reliability_curve(y, p, strategy=strategy)
    two = reliability_curve(y, p, strategy=strategy, sample_weight=np.full(len(y), 2.0))
    for name in ("observed", *ENDS):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-9)


@SMOOTH
def test_of_a_summary(strategy):
    proba, y = make_overconfident(2, 400)
    rows = reliability_curve(y, proba, strategy=strategy)
    cells = CalibrationSummary().update(y, proba).reliability_curve(strategy=strategy)
    at = np.linspace(0.01, 0.99, 50)
    for name in ("observed", *ENDS):
        one, two = (np.interp(at, c.predicted, getattr(c, name)) for c in (rows, cells))
        np.testing.assert_allclose(one, two, atol=1e-6)


@SMOOTH
@pytest.mark.parametrize("p", [[0.3] * 4, [0.1, 0.2, 0.8, 0.9], [0.0, 1.0, 0.5, 0.2]])
def test_few_scores(strategy, p):
    curve = reliability_curve([0, 0, 1, 1], p, strategy=strategy)
    assert (curve.confidence_low <= curve.observed + 1e-9).all()
    assert (curve.observed <= curve.confidence_high + 1e-9).all()


@SMOOTH
def test_the_interval_is_drawn_for_each_model(strategy):
    proba, y = make_overconfident(2, 300)
    models = {"a": proba, "b": proba**2 / (proba**2).sum(axis=1, keepdims=True)}
    display = ReliabilityDisplay.from_predictions(
        y, models, strategy=strategy, level=0.95, bands="confidence"
    )
    bands = display.axes_[0].collections
    assert [band.get_label() for band in bands][:1] == ["interval at each point (95 %)"]
    assert len(bands) == 2
    for band, (curve,) in zip(bands, display.curves.values(), strict=True):
        ends = np.r_[curve.confidence_low, curve.confidence_high]
        assert np.isin(ends, band.get_paths()[0].vertices[:, 1]).all()


@pytest.mark.slow
@SMOOTH
def test_coverage(strategy):
    """A small version of ``benchmarks/flexible_curves``, on both sides."""
    quantiles = np.array([-1.0, 0.0, 1.0])
    below, above = [], []
    for number in range(150):
        rng = np.random.default_rng(number)
        z = rng.normal(0.0, 1.2, 300)
        y = (rng.random(300) < expit(0.6 * z)).astype(int)
        curve = reliability_curve(y, expit(z), strategy=strategy, level=0.9)
        low, high = (
            np.interp(expit(quantiles), curve.predicted, getattr(curve, name))
            for name in ENDS
        )
        truth = expit(0.6 * quantiles)
        below.append(truth < low)
        above.append(truth > high)
    # three standard deviations of a share of 5 % of 150 are 5.3 %
    for side in (
        below,
        above,
    ):
        assert np.mean(side, axis=0).max() <= 0.104
        assert np.mean(side) >= 0.01
