"""Reliability diagrams on log-odds, and several displays on the same axes."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy.special import expit

from sklearn_calib._kernels._picture_axes import (
    INNER_LOG_ODDS_EDGES,
    LogitAxis,
    compute_weight_fractions_by_bin,
    format_probability,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.displays import DecisionCurveDisplay, ReliabilityDisplay
from sklearn_calib.metrics import reliability_curve

draw = ReliabilityDisplay.from_predictions


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 40, 2000)
    y = (rng.random(2000) < p).astype(int)
    return np.where(p < 1e-4, 0, p), y


def named(axes):
    return [line for line in axes.get_lines() if not line.get_label().startswith("_")]


def place(axis, p):
    """Where on the axis it is drawn, from 0 to 1."""
    ends = axis.get_transform().transform(np.array(axis.get_view_interval()))
    return (axis.get_transform().transform(np.array([p]))[0] - ends[0]) / (
        ends[1] - ends[0]
    )


def test_places_are_log_odds_and_the_ends_lie_in_margins():
    axis = LogitAxis.from_values([[0.0, 1e-4, 0.2]])
    p = expit(np.linspace(-9, -2, 8))
    np.testing.assert_allclose(np.diff(axis(p)), 1)
    np.testing.assert_allclose(axis.get_proba_at_logit_position(axis(p)), p)
    np.testing.assert_allclose(
        axis.get_proba_at_logit_position(axis(np.array([-0.02, 0.0]))),
        [-0.02, 0],
        atol=1e-12,
    )
    assert axis.locate_fraction(0.0) == pytest.approx(0.04 / (1.13), abs=1e-12)
    assert (
        axis.proba_limits_with_margins[0] == -0.04
        and axis.proba_limits_with_margins[1] < 1
        and len(axis.margin_border_proba) == 1
    )
    assert axis.merge_axes(
        LogitAxis.from_values([[0.9999, 1.0]])
    ).proba_limits_with_margins == (
        -0.04,
        1.04,
    )
    # never among the zeros
    assert axis.locate_fraction(1e-30) == axis.locate_fraction(expit(axis.low))


@run_every_case(
    "values",
    [[], [0.0], [1.0], [0.0, 1.0], [0.5], [1e-300, 1 - 1e-16], [1e-5, 0.3], [0.02] * 3],
)
@run_every_case("room", [8, 30, 80])
def test_numbers_of_the_ticks_do_not_touch(values, room):
    axis = LogitAxis.from_values([values])
    ticks = axis.get_tick_probabilities_and_labels(room)
    assert len(ticks) >= 1 and all(text == format_probability(p) for p, text in ticks)
    for (left, a), (right, b) in pairwise(ticks):
        assert (
            room * (axis.locate_fraction(right) - axis.locate_fraction(left))
            > (len(a) + len(b)) / 2 + 1
        )
    assert ({0.0, 1.0} & set(values)) <= {p for p, _ in ticks}


def test_numbers_are_probabilities():
    given = [0, 1e-5, 1e-4, 0.02, 0.5, 0.98, 1 - 1e-4, 1 - 1e-5, 1]
    said = ["0", "1e-5", "0.0001", "0.02", "0.5", "0.98", "0.9999", "1-1e-5", "1"]
    assert [format_probability(p) for p in given] == said


def test_the_histogram_counts_on_log_odds():
    rng = np.random.default_rng(1)
    z = rng.normal(0, 4, 500)
    score, weight = np.r_[expit(z), 0, 0, 1, 1e-80], np.r_[rng.random(500), 1, 2, 4, 8]
    inner = np.histogram(
        np.r_[z, -16], INNER_LOG_ODDS_EDGES, weights=np.r_[weight[:500], 8]
    )[0]
    expected = np.r_[3, inner, 4] / weight.sum()
    np.testing.assert_allclose(
        compute_weight_fractions_by_bin(score, weight), expected, atol=1e-12
    )
    (curve,) = reliability_curve(
        [0, 1] * 252, score, sample_weight=weight, n_resamples=0
    )
    np.testing.assert_allclose(curve.log_odds_histogram, expected, atol=1e-12)


@pytest.mark.parametrize("first", [1, 12, 31, 32])
@pytest.mark.parametrize("last", [33, 34, 50, 64])
def test_an_axis_has_room_for_each_bin_and_no_more(first, last):
    """The bins of a histogram that are not rare: their outer edges, and 0.04 of that around."""
    share = np.zeros(66)
    share[[first, last]] = 0.5
    axis = LogitAxis.from_values([], [share])
    low, high = INNER_LOG_ODDS_EDGES[first - 1], INNER_LOG_ODDS_EDGES[last]
    pad = max(high - low, 3) * 0.04 + max(3 - (high - low), 0) / 2
    assert (axis.low, axis.high) == pytest.approx((low - pad, high + pad))
    assert not axis.zeros and not axis.ones


def test_rare_rows_do_not_widen_an_axis():
    """Nor does what lies beyond; together they may be more than 0.005."""
    share = np.zeros(66)
    share[[0, 8, 10, 55, 57, 65]] = 0.1, 0.004, 0.002, 0.002, 0.004, 0.1
    share[[20, 40]] = 0.394
    axis = LogitAxis.from_values([], [share])
    low, high = INNER_LOG_ODDS_EDGES[9], INNER_LOG_ODDS_EDGES[55]
    pad = (high - low) * 0.04
    assert (axis.low, axis.high) == pytest.approx((low - pad, high + pad))
    assert axis.zeros and axis.ones


@pytest.mark.parametrize(
    "strategy",
    [
        "isotonic",
        *(
            pytest.param(strategy, marks=pytest.mark.slow)
            for strategy in ("quantile", "uniform", "polynomial", "loess", "spline")
        ),
    ],
)
def test_the_curve_on_log_odds(rare, strategy):
    p, y = rare
    display = draw(y, p, scale="logit", strategy=strategy, n_resamples=20)
    ax, below = display.axes_[0], display.histogram_axes_[0]
    (curve,) = display.curves["model"]
    (line,) = named(ax)
    shown = np.isin(curve.predicted, line.get_xdata())
    assert shown.mean() > 0.5
    np.testing.assert_array_equal(line.get_ydata(), curve.observed[shown])
    here = [place(ax.xaxis, value) for value in (0.001, 0.01, 0.1)]
    odds = np.log([0.001 / 0.999, 0.01 / 0.99, 0.1 / 0.9])
    assert np.ptp(np.diff(here) / np.diff(odds)) < 1e-9
    assert place(ax.yaxis, 0.01) == pytest.approx(here[1])  # the diagonal is one
    (columns,) = below.patches
    np.testing.assert_array_equal(
        columns.get_data().values, curve.log_odds_histogram[1:-1]
    )
    labels = [text.get_text() for text in below.get_xticklabels()]
    assert (
        labels[0] == "0"
        and ("0.01" in labels or strategy in ("polynomial", "spline"))
        and float(labels[-1]) < 1
    )
    display.figure_.canvas.draw()


@pytest.mark.slow
def test_zeros_and_ones_are_marked(rare):
    p, y = rare
    ax = draw(y, p, scale="logit", n_resamples=0, strategy="isotonic").axes_[0]
    assert ax.get_xlim()[0] < 0 < ax.get_xlim()[1] < 1
    open_ones = [
        line for line in ax.lines if line.get_markerfacecolor() == ax.get_facecolor()
    ]
    (marks,) = open_ones
    assert 0 in marks.get_xdata()
    borders = [
        line for line in ax.lines if line.get_label() == "_where a margin begins"
    ]
    assert len(borders) == 2  # one across, one up
    inner = draw(
        np.arange(2000) % 2, 0.4 + 0.2 * p, scale="logit", n_resamples=0, n_bins=2
    ).axes_[0]
    assert 0 < inner.get_xlim()[0] < inner.get_xlim()[1] < 1 and len(inner.lines) == 2
    first, width = (
        draw(y, p, scale="logit").histogram_axes_[0].lines[0],
        (p == 0).mean(),
    )
    np.testing.assert_allclose(first.get_xydata(), [[0, 0], [0, width]])


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.0, 1, 0, 1], [0, 1, 1, 0]),
        ([0.0, 0, 0], [0, 0, 1]),
        ([0.01] * 20, [0, 1] * 10),
        ([0.3, 0.3], [0, 1]),
    ],
)
@pytest.mark.parametrize(
    "strategy", ["quantile", pytest.param("isotonic", marks=pytest.mark.slow)]
)
def test_hostile_predictions_on_log_odds(p, y, strategy):
    weight = np.r_[0, np.ones(len(y) - 1)]
    given = {
        "labels": [0, 1],
        "sample_weight": weight,
        "n_resamples": 5,
        "name": "$\\x_$<b>",
    }
    display = draw(y, p, scale="logit", strategy=strategy, **given)
    display.figure_.canvas.draw()
    assert np.isfinite(display.axes_[0].get_position().bounds).all()


@pytest.mark.slow
def test_one_row_and_several_classes_on_log_odds():
    draw([1], [0.02], labels=[0, 1], scale="logit").figure_.canvas.draw()
    proba, y = make_overconfident(3, 100)
    options = {"multiclass": "classwise", "n_resamples": 0, "n_bins": 3}
    display = draw(y, proba, scale="logit", **options)
    assert [ax.get_xscale() for ax in display.axes_] == ["function"] * 3


@pytest.mark.slow
def test_displays_on_the_same_axes_take_colours_in_turn(rare):
    p, y = rare
    for scale in ("linear", "logit"):
        first = draw(y, p, name="one", scale=scale, n_resamples=9)
        # the scale it finds
        second = draw(y, p**0.8, name="two", n_resamples=9, ax=first.axes_)
        third = draw(y, {"three": p**0.6, "four": p**0.5}, ax=first.axes_)
        ax = first.axes_[0]
        assert [line.get_color() for line in named(ax)] == ["C0", "C1", "C2", "C3"] or [
            line.get_color() for line in named(ax)
        ] == plt.rcParams["axes.prop_cycle"].by_key()["color"][:4]
        said = [text.get_text() for text in ax.get_legend().get_texts()]
        assert sorted(said) == ["four", "if calibrated (90 %)", "one", "three", "two"]
        assert len({one.histogram_axes_[0] for one in (first, second, third)}) == 1
        columns = first.histogram_axes_[0].patches
        assert len(columns) == 4 and not any(patch.get_fill() for patch in columns)
        assert len(ax.child_axes) == 1


def test_axes_of_a_second_display_have_room_for_both(rare):
    p, y = rare
    first = draw(y, 0.2 + 0.1 * p, scale="logit", n_resamples=0, n_bins=1)
    narrow = first.axes_[0].get_xlim()
    draw(y, p, n_resamples=0, ax=first.axes_)
    wide = first.axes_[0].get_xlim()
    assert wide[0] < 0 < narrow[0] and wide[1] >= narrow[1] - 1e-12


def test_scales_do_not_mix(rare):
    p, y = rare
    first = draw(y, p, n_resamples=0)
    with raises_invalid_input(
        ValueError,
        expected=".*scale='logit'",
        value="axes with a display of scale='lin",
    ):
        draw(y, p, n_resamples=0, scale="logit", ax=first.axes_)
    with raises_invalid_input(ValueError, expected="scale among auto"):
        first.plot(scale="log")


def test_grey_follows_the_ground(rare):
    p, y = rare
    with plt.style.context("dark_background"):
        ax = draw(y, p, n_resamples=9).axes_[0]
    diagonal, band = ax.lines[0].get_color(), ax.collections[0].get_facecolor()[0]
    np.testing.assert_allclose(diagonal, [0.65] * 3)
    np.testing.assert_allclose(band[:3], [0.15] * 3)
    curve = DecisionCurveDisplay.from_predictions(y, p, n_resamples=9).ax_
    assert curve.lines[1].get_color() == (0.5, 0.5, 0.5)
