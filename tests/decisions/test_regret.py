"""The regret curve: golden values, its integrals, and its relation to net benefit."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from golden_sets import golden_set
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from sklearn.isotonic import IsotonicRegression

from sklearn_calib.decisions import (
    calibration_decision_loss,
    decision_curve,
    decision_difference,
    regret_curve,
)
from sklearn_calib.displays import RegretDisplay
from sklearn_calib.metrics import brier_loss, get_scorer, log_loss
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


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    arrays(float, 9, elements=GRID), arrays(float, 9, elements=GRID),
    arrays(int, 9, elements=st.integers(0, 1)), arrays(float, 9, elements=st.integers(1, 5)),
)  # fmt: skip
def test_the_curve_is_exact(p, c, y, weight):
    """Row by row at thresholds between, at and beside the predictions; and its integral."""
    curve = regret_curve(y, p, c, sample_weight=weight, labels=[0, 1])
    t = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.52, 0.55, 0.7, 0.9, 0.95])
    rows = (y[:, None] - t) * (1.0 * (c[:, None] >= t) - (p[:, None] >= t))
    assert curve.at(t) == pytest.approx(
        np.average(rows, axis=0, weights=weight), abs=1e-12
    )
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


def test_a_threshold_at_a_prediction():
    """Who acts from t on acts on a prediction of t, as for `decision_curve`."""
    y, p, c = (
        np.array([0, 1, 1, 0]),
        np.array([0.2, 0.5, 0.5, 0.8]),
        np.array([0.5, 0.4, 0.8, 0.2]),
    )
    t = np.array([0.2, 0.4, 0.5, 0.8])
    expected = (1 - t) * decision_difference(y, p, c, thresholds=t).difference
    assert regret_curve(y, p, c).at(t) == pytest.approx(expected, abs=1e-15)
    assert expected == pytest.approx([0, 0, -0.125, 0.25])


def test_labels():
    words = np.array(["no", "yes"])[Y]
    plain = regret_curve(Y, P, P**0.9)
    named = regret_curve(words, P, P**0.9, pos_label="yes")
    assert np.array_equal(named.regret, plain.regret)
    turned = regret_curve(words, 1 - P, 1 - P**0.9, pos_label="no")
    assert turned.integral == pytest.approx(plain.integral)
    t = np.array([0.123, 0.5, 0.777])
    assert turned.at(t) == pytest.approx(plain.at(1 - t[::-1])[::-1], abs=1e-12)


def test_bad_input():
    with raises_invalid_input(ValueError, value="'isotonik'"):
        regret_curve(Y, P, "isotonik")
    with raises_invalid_input(ValueError, expected="as many labels"):
        regret_curve(Y, P, P[:9])
    with raises_invalid_input(TypeError, expected="a recalibrator"):
        regret_curve(Y, P, PlattScaling)
    with raises_invalid_input(ValueError, expected="two classes", value="3"):
        regret_curve(np.arange(3), np.eye(3))
    with raises_invalid_input(
        ValueError, expected=".*strictly between 0 and 1", value="1"
    ):
        regret_curve(Y, P).at([1.0])


def of_brute_force(y, p, c, weight):
    """The largest regret over all losses bounded by 1, and over V shapes, from the definition.

    A loss is a weight for each threshold, on the thresholds just above and just below
    predictions.
    """
    at = np.unique(np.concatenate([p, c]))
    at = np.unique(np.clip(np.concatenate([at - 1e-9, at + 1e-9]), 0, 1))
    rows = (y[:, None] - at) * (1.0 * (c[:, None] > at) - (p[:, None] > at))
    regret = np.average(rows, axis=0, weights=weight)
    whole = linprog(-regret, A_ub=[at, 1 - at], b_ub=[1, 1])
    v_shaped = (regret / np.maximum(at, 1 - at)).max()
    return -whole.fun, max(v_shaped, 0.0)


@settings(max_examples=15, deadline=None)
@given(
    arrays(float, 9, elements=GRID), arrays(float, 9, elements=GRID),
    arrays(int, 9, elements=st.integers(0, 1)), arrays(float, 9, elements=st.integers(1, 5)),
)  # fmt: skip
def test_decision_loss_by_brute_force(p, c, y, weight):
    """Of any two predictions; and the bounds by V shapes and by the Brier loss."""
    curve = regret_curve(y, p, c, sample_weight=weight, labels=[0, 1], n_resamples=2)
    whole, v_shaped = of_brute_force(y, p, c, weight)
    assert curve.decision_loss == pytest.approx(whole, abs=1e-7)
    assert v_shaped - 1e-7 <= curve.decision_loss <= 2 * v_shaped + 1e-7
    assert (
        curve.maximum - 1e-12
        <= curve.decision_loss
        <= 2 * max(curve.maximum, 0) + 1e-12
    )
    assert curve.decision_loss >= curve.brier_part - 1e-12


@settings(max_examples=15, deadline=None)
@given(
    arrays(float, 9, elements=GRID), arrays(int, 9, elements=st.integers(0, 1)),
    arrays(float, 9, elements=st.integers(1, 5)),
)  # fmt: skip
def test_the_measure_and_calibration_errors(p, y, weight):
    """As a measure it is that of isotonic calibration: L1^2 <= L2^2 <= CDL <= 2 L1."""
    c = IsotonicRegression(y_min=0, y_max=1).fit(p, y, sample_weight=weight).predict(p)
    found = calibration_decision_loss(y, p, sample_weight=weight, labels=[0, 1])
    assert found == pytest.approx(of_brute_force(c, p, c, weight)[0], abs=1e-7)
    one = np.average(np.abs(c - p), weights=weight)
    two = np.average((c - p) ** 2, weights=weight)
    assert one**2 - 1e-12 <= two <= found + 1e-12
    assert found <= 2 * one + 1e-12


def test_the_bounds_are_sharp():
    # always 0.5 and a little more, but no event: acting from 0.5 on loses 0.5, as
    # much as it can
    assert calibration_decision_loss(
        [0, 0], [0.5, 0.5], labels=[0, 1]
    ) == pytest.approx(1.0)
    assert calibration_decision_loss([0, 1], [1.0, 0.0]) == pytest.approx(0.5)
    assert calibration_decision_loss([0, 1], [0.0, 1.0]) == 0


def test_the_measure_has_a_scorer_and_treats_several_classes():
    assert get_scorer("neg_calibration_decision_loss") is not None
    proba = np.array(
        [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.5, 0.4, 0.1]]
    )
    y = np.array([0, 1, 2, 1])
    largest, right = proba.max(axis=1), (proba.argmax(axis=1) == y).astype(int)
    given_ = calibration_decision_loss(y, proba)
    assert given_ == calibration_decision_loss(right, largest) > 0
    each = [calibration_decision_loss(y == k, proba[:, k]) for k in range(3)]
    assert calibration_decision_loss(y, proba, multiclass="classwise") == pytest.approx(
        np.mean(each)
    )


def test_intervals_of_the_maximum():
    """They hold the estimate; more draws of the same rows, a lower level and a seed change them."""
    wide = regret_curve(Y, P, "platt", level=0.99)
    narrow = regret_curve(Y, P, "platt", level=0.5)
    for name in ("maximum", "decision_loss"):
        low, high = getattr(wide, f"{name}_interval")
        less = getattr(narrow, f"{name}_interval")
        assert 0 <= low <= less[0] <= getattr(wide, name) <= less[1] < high
    assert wide.level == 0.99
    few = [
        regret_curve(Y, P, "platt", n_resamples=5, random_state=seed)
        for seed in (0, 0, 1)
    ]
    assert few[0].maximum_interval == few[1].maximum_interval != few[2].maximum_interval
    assert few[0].maximum_interval != regret_curve(Y, P, "platt").maximum_interval
    given_ = decision_curve(Y, P, recalibrated="platt", level=0.5).regret
    assert given_.maximum_interval == narrow.maximum_interval
    times = regret_curve(np.repeat(Y, 50), np.repeat(P, 50), np.repeat(P**1.3, 50))
    assert times.maximum_interval[0] > 0  # 50 times the rows show it
    same = regret_curve([1, 1], [1.0, 1.0], [1.0, 1.0], labels=[0, 1])
    assert same.maximum_interval == same.decision_loss_interval == (0, 0)
    with pytest.raises(ValueError, match=r"^.*level"):
        regret_curve(Y, P, level=95)
    with pytest.raises(ValueError, match=r"^.*n_resamples"):
        regret_curve(Y, P, n_resamples=0)


def test_intervals_come_from_the_band():
    """That of `decision_difference`, on both sides of each prediction."""
    p, c, y = (
        np.repeat([0.3, 0.7], 50),
        np.repeat([0.2, 0.8], 50),
        np.arange(100) % 10 > 4,
    )
    t = np.unique([[v, np.nextafter(v, 1)] for v in (0.2, 0.3, 0.7, 0.8)])
    band = decision_difference(y, p, c, thresholds=t, level=0.9)
    curve = regret_curve(y, p, c, level=0.9)
    low, high = (
        max(0, ((1 - t) * edge).max()) for edge in (band.band_low, band.band_high)
    )
    assert curve.maximum_interval == pytest.approx((low, high))


def test_lower_ends_are_below_the_estimates():
    """Both estimates are the largest of many; the ends are those of the band's lower edge."""
    found = regret_curve(Y, P, P**1.1, level=0.9)
    assert found.maximum_interval[0] < 0.9 * found.maximum
    assert found.decision_loss_interval[0] < 0.9 * found.decision_loss
    sure = regret_curve(np.repeat(Y, 400), np.repeat(P, 400), np.repeat(P**2, 400))
    assert 0 < sure.maximum_interval[0] < sure.maximum < sure.maximum_interval[1]
    assert 0 < sure.decision_loss_interval[0] < sure.decision_loss


def test_the_display_marks_the_maximum_with_its_interval():
    display = RegretDisplay.from_predictions(Y, P, level=0.5, recalibrated="platt")
    (curve,) = display.curves.values()
    assert curve.level == 0.5
    (line, ends) = display.get_plotted_data()[0]
    assert len(line[0]) == len(curve.threshold)
    assert ends == ([curve.worst_threshold] * 2, curve.maximum_interval)
    drawn = [line.get_ydata() for line in display.ax_.get_lines()]
    assert any(np.array_equal(each, curve.maximum_interval) for each in drawn)
    assert "50 % interval" in display.ax_.get_legend().get_texts()[0].get_text()
