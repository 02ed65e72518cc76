import numpy as np
import pytest
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from sklearn_calib import canonical_proba
from sklearn_calib.recalibrators import IsotonicCalibration


@pytest.fixture(params=["plain", "ties", "weighted"])
def data(request):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    if request.param == "ties":
        p = p.round(1)
    y = (rng.random(300) < p**2).astype(int)
    return (
        p,
        y,
        rng.exponential(size=300) if request.param == "weighted" else np.ones(300),
    )


def test_equals_scikit_learn(data):
    p, y, w = data
    iso = IsotonicCalibration().fit(p, y, sample_weight=w)
    reference = IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=w)
    grid = np.r_[np.linspace(0, 1, 401), p]
    np.testing.assert_allclose(
        iso.predict_proba(grid)[:, 1], reference.predict(grid), atol=1e-9
    )


@pytest.mark.parametrize("prediction", ["linear", "step"])
def test_certificate(data, prediction):
    """KKT of isotonic regression: blocks are means, and no split of a block would improve it."""
    p, y, w = data
    iso = IsotonicCalibration(prediction).fit(p, y, sample_weight=w)
    fit = iso.predict_proba(p)[:, 1]
    assert w @ (fit - y) == pytest.approx(0, abs=1e-9)
    for value in np.unique(fit):
        block = fit == value
        assert np.average(y[block], weights=w[block]) == pytest.approx(value, abs=1e-9)
        order = np.argsort(p[block], kind="stable")
        score, partial = p[block][order], np.cumsum((w * (y - fit))[block][order])
        assert partial[np.flatnonzero(np.diff(score))].min(initial=0) >= -1e-9


def test_oracle(oracle):
    case = oracle("temperature.json")["iso_binary"]
    iso = IsotonicCalibration().fit(case["p1"], case["y"])
    np.testing.assert_allclose(
        iso.predict_proba(case["p1"])[:, 1], case["fitted"], atol=1e-12
    )


def test_step_keeps_the_lower_value():
    iso = IsotonicCalibration("step").fit([0.2, 0.4, 0.6], [0, 1, 1])
    assert iso.predict_proba([0.1, 0.2, 0.3, 0.4, 0.9])[:, 1].tolist() == [
        0,
        0,
        0,
        1,
        1,
    ]


def test_centred():
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    y = np.array([0, 1, 0, 1, 0, 1])
    iso = IsotonicCalibration(centred=True).fit(p, y)
    np.testing.assert_allclose(expit(iso.knots_), [0.1, 0.35, 0.6], atol=1e-12)
    assert iso.values_.tolist() == [0, 0.5, 1]
    rng = np.random.default_rng(1)
    p = rng.random(500)
    y = (rng.random(500) < 0.1 + 0.8 * p).astype(int)
    iso = IsotonicCalibration(centred=True).fit(p, y)
    inside = (iso.values_ > 0) & (iso.values_ < 1)
    assert (np.diff(iso.values_[inside]) > 0).all()


def test_saturated_logits_are_told_apart():
    rng = np.random.default_rng(2)
    z = 1e4 * rng.normal(size=400)
    y = (rng.random(400) < expit(z / 1e4)).astype(int)
    small = IsotonicCalibration("step").fit(canonical_proba(z / 1e4, kind="logits"), y)
    large = IsotonicCalibration("step").fit(canonical_proba(z, kind="logits"), y)
    np.testing.assert_array_equal(
        small.predict_proba(canonical_proba(z / 1e4, kind="logits")),
        large.predict_proba(canonical_proba(z, kind="logits")),
    )
    linear = IsotonicCalibration().fit(canonical_proba(z, kind="logits"), y)
    out = linear.predict_proba(canonical_proba(np.sort(z), kind="logits"))[:, 1]
    assert np.diff(out).min() >= 0 and len(np.unique(out)) > 5


def test_knots_are_few():
    rng = np.random.default_rng(3)
    p = rng.random(20_000)
    iso = IsotonicCalibration().fit(p, (rng.random(20_000) < p).astype(int))
    assert len(iso.knots_) < 1000
