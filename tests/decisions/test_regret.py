"""The regret curve: golden values, its integrals, and its relation to net benefit."""

import numpy as np
import pytest
from golden_sets import golden_set
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_calib.decisions import decision_curve, decision_difference, regret_curve
from sklearn_calib.metrics import brier_loss, log_loss
from sklearn_calib.recalibrators import PlattScaling, cross_fitted_proba

Y, P = golden_set()


def test_golden_values():
    curve = regret_curve(Y, P, "isotonic", cv=None)
    assert curve.integral == pytest.approx(0.0053076840, abs=1e-10)
    assert curve.maximum == pytest.approx(0.0144535108, abs=1e-10)
    assert curve.worst_threshold == pytest.approx(0.1892332536, abs=1e-10)
    assert curve.brier_part == pytest.approx(0.1846666501 - 0.1740512821, abs=1e-9)
    assert curve.regret.min() >= -1e-15
    assert regret_curve(Y, P).integral < curve.integral  # out of fold it is worth less


GRID = st.sampled_from([0, 0.1, 0.2, 0.5, 0.55, 0.9, 1.0])


@settings(max_examples=30, deadline=None)
@given(
    arrays(float, 9, elements=GRID), arrays(float, 9, elements=GRID),
    arrays(int, 9, elements=st.integers(0, 1)), arrays(float, 9, elements=st.integers(1, 5)),
)  # fmt: skip
def test_the_curve_is_exact(p, c, y, weight):
    """Row by row at thresholds between, at and beside the predictions; and its integral."""
    curve = regret_curve(y, p, c, sample_weight=weight, labels=[0, 1])
    t = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.52, 0.55, 0.7, 0.9, 0.95])
    rows = (y[:, None] - t) * (1.0 * (c[:, None] > t) - (p[:, None] > t))
    assert curve.at(t) == pytest.approx(np.average(rows, axis=0, weights=weight), abs=1e-12)
    gap = [brier_loss(y, s, sample_weight=weight, labels=[0, 1]) for s in (p, c)]
    assert curve.integral == pytest.approx((gap[0] - gap[1]) / 2, abs=1e-12)
    assert curve.brier_part == pytest.approx(gap[0] - gap[1], abs=1e-12)
    assert len(curve.to_frame()) == 2 * len(curve.slope)


def test_log_loss_part():
    """The integral of the regret over t (1 - t), by quadrature between the breaks."""
    c = cross_fitted_proba("platt", P, Y)[:, 1]
    curve = regret_curve(Y, P, c)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    low, high = curve.breaks[:-1, None], curve.breaks[1:, None]
    t = (low + high) / 2 + (high - low) / 2 * nodes
    inside = (curve.intercept[:, None] + curve.slope[:, None] * t) / (t * (1 - t))
    inside[[0, -1]] = 0  # beyond all predictions both act, or none
    area = (inside * weights * (high - low) / 2).sum()
    assert area == pytest.approx(log_loss(Y, P) - log_loss(Y, c), abs=1e-9)
    assert curve.log_loss_part == pytest.approx(area, abs=1e-9)


def test_in_units_of_net_benefit():
    c = cross_fitted_proba("platt", P, Y)
    difference = decision_difference(Y, P, c)
    t = difference.threshold
    curve = regret_curve(Y, P, c)
    assert curve.at(t) == pytest.approx((1 - t) * difference.difference, abs=1e-12)
    given_ = decision_curve(Y, P, recalibrated="platt").regret
    assert np.array_equal(given_.regret, curve.regret)
    assert np.array_equal(regret_curve(Y, P, PlattScaling()).regret, curve.regret)


def test_labels():
    words = np.array(["no", "yes"])[Y]
    plain = regret_curve(Y, P, P**0.9)
    assert np.array_equal(regret_curve(words, P, P**0.9).regret, plain.regret)
    turned = regret_curve(words, P, P**0.9, pos_label="no")
    assert turned.integral == pytest.approx(plain.integral)
    t = np.array([0.123, 0.5, 0.777])
    assert turned.at(t) == pytest.approx(plain.at(1 - t[::-1])[::-1], abs=1e-12)


def test_bad_input():
    with pytest.raises(ValueError, match="got 'isotonik'"):
        regret_curve(Y, P, "isotonik")
    with pytest.raises(ValueError, match=r"^regret_curve: expected as many labels"):
        regret_curve(Y, P, P[:9])
    with pytest.raises(TypeError, match=r"^regret_curve: expected a recalibrator"):
        regret_curve(Y, P, PlattScaling)
    with pytest.raises(ValueError, match=r"^regret_curve: expected two classes, got 3"):
        regret_curve(np.arange(3), np.eye(3))
    with pytest.raises(ValueError, match=r"^RegretCurve.at: .*strictly between 0 and 1, got 1"):
        regret_curve(Y, P).at([1.0])
