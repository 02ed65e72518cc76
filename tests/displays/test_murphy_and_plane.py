"""Murphy diagrams, and models in the plane of miscalibration and discrimination."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.linear_model import LogisticRegression

from sklearn_calib._kernels._picture_axes import (
    LossPlane,
    place_lower_left_label_corners,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import decision_difference
from sklearn_calib.decomposition import decompose_loss
from sklearn_calib.displays import (
    DecisionCurveDisplay,
    DecompositionDisplay,
    MurphyDisplay,
    RegretDisplay,
    RiskCoverageDisplay,
)
from sklearn_calib.metrics import brier_loss, log_loss

murphy = MurphyDisplay.from_predictions
FEW = {"n_resamples": 9, "thresholds": [0.2, 0.5, 0.7]}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    proba, y = make_overconfident(2, 400)
    return np.clip(proba[:, 1], 1e-3, 1 - 1e-3), y


def elementary(p, y, t, weight=None):
    """The definition, row by row."""
    loss = np.where(p >= t, np.where(y == 1, 0.0, t), np.where(y == 1, 1 - t, 0.0))
    return np.average(loss, weights=weight)


def test_elementary_scores_by_their_definition(rows):
    p, y = rows
    weight = np.random.default_rng(0).random(400) * (np.arange(400) % 7 > 0)
    display = murphy(y, {"a": p, "b": p**2}, sample_weight=weight, **FEW)
    [[(t, first), (_, second)]] = display.get_plotted_data()
    for found, score in ((first, p), (second, p**2)):
        np.testing.assert_allclose(
            found, [elementary(score, y, one, weight) for one in t]
        )
    assert [line.get_label() for line in display.ax_.lines] == ["a", "b"]
    np.testing.assert_array_equal(display.ax_.lines[1].get_ydata(), second)
    assert not display.ax_.collections  # no bands of several


def test_areas_are_the_brier_and_the_log_loss(rows):
    p, y = rows
    t = (np.arange(600) + 0.5) / 600
    [[(_, score)]] = murphy(y, p, thresholds=t, n_resamples=1).get_plotted_data()
    assert 2 * score.mean() == pytest.approx(brier_loss(y, p), rel=0.01)
    z = np.linspace(-14, 14, 700)
    given = {"thresholds": 1 / (1 + np.exp(-z)), "scale": "logit", "n_resamples": 1}
    [[(_, score)]] = murphy(y, p, **given).get_plotted_data()
    assert score.sum() * (z[1] - z[0]) == pytest.approx(log_loss(y, p), rel=0.01)


def test_a_difference_is_that_of_paired_rows_with_its_bands(rows):
    p, y = rows
    given = {"level": 0.8, "random_state": 3, **FEW}
    display = murphy(y, {"a": p, "b": p**2}, difference=True, **given)
    [[(t, found)]] = display.get_plotted_data()
    expected = [elementary(p**2, y, one) - elementary(p, y, one) for one in t]
    np.testing.assert_allclose(found, expected)
    pair = decision_difference(y, p**2, p, **given)
    inner, outer = display.ax_.collections
    assert inner.get_label().startswith(
        "80 % interval"
    ) and outer.get_label().startswith("80 % band")
    for drawn, low in ((inner, pair.low), (outer, pair.band_low)):
        ends = drawn.get_paths()[0].vertices[:, 1]
        assert np.isin(((1 - t) * low).round(12), ends.round(12)).all()
    assert "below 0: b is better" in display.ax_.get_ylabel()
    several = murphy(y, {"a": p, "b": p**2, "c": p**3}, difference=True, **FEW)
    assert list(several.curves) == ["b", "c"] and "they are" in several.ax_.get_ylabel()


def test_the_event_may_be_the_first_class(rows):
    p, y = rows
    label = np.array(["good", "bad"])[y]  # "bad" sorts first, and is the event
    [[(_, one)]] = murphy(
        label, np.c_[p, 1 - p], pos_label="bad", **FEW
    ).get_plotted_data()
    [[(_, other)]] = murphy(y, p, **FEW).get_plotted_data()
    np.testing.assert_allclose(one, other)
    alone = murphy([1, 1], [0.3, 0.6], labels=[0, 1], **FEW)
    np.testing.assert_allclose(alone.get_plotted_data()[0][0][1], [0, 0.25, 0.3])


def test_scale_of_the_thresholds(rows):
    p, y = rows
    few = {"n_resamples": 1}
    assert murphy(y, p, **few).ax_.get_xscale() == "linear"
    # the median is below 0.02
    assert murphy(y, 0.03 * p, **few).ax_.get_xscale() == "function"
    assert murphy(y, 0.03 * p, scale="linear", **few).ax_.get_xscale() == "linear"
    wide = murphy(y, p, scale="logit", **few)
    t = wide.curves["model"].threshold
    assert np.ptp(np.diff(np.log(t / (1 - t)))) < 1e-9 and len(t) == 99
    both = murphy(y, p**2, name="two", ax=wide.ax_, **few)  # of the axes that it finds
    assert both.scale == "logit" and both.curves["two"].threshold[0] < t[0]
    colors = [line.get_color() for line in wide.ax_.lines]
    assert colors == plt.rcParams["axes.prop_cycle"].by_key()["color"][:2]
    said = [text.get_text() for text in wide.ax_.get_legend().get_texts()]
    assert len(said) == 4 == len(set(said))


def test_what_murphy_diagrams_refuse(rows):
    p, y = rows
    with raises_invalid_input(
        ValueError, expected="at least two models for difference=True", value="1"
    ):
        murphy(y, p, difference=True)
    with raises_invalid_input(ValueError, expected="scale among auto"):
        murphy(y, p, scale="log")
    three, y3 = make_overconfident(3, 30)
    with raises_invalid_input(
        ValueError,
        expected=".*two classes",
        value="3",
        hint="Pass one class against the others",
    ):
        murphy(y3, three)


@pytest.mark.parametrize("p", [[0.0, 1, 0, 1], [0.0] * 4, [0.01] * 4])
def test_hostile_predictions_of_murphy_diagrams(p):
    for scale in ("linear", "logit"):
        given = {
            "labels": [0, 1],
            "scale": scale,
            "n_resamples": 9,
            "name": "_$\\x_$<b>",
        }
        ax = murphy([0, 1, 1, 0], p, sample_weight=[0, 1, 1, 1], **given).ax_
        assert np.isfinite(ax.lines[0].get_ydata()).all()
        ax.figure.canvas.draw()


def test_murphy_of_fitted_models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.array(["n", "y"])[(X[:, 0] > 0).astype(int)]
    models = {
        "one": LogisticRegression().fit(X, y),
        "two": LogisticRegression(C=0.1).fit(X, y),
    }
    found = MurphyDisplay.from_estimator(models, X, y, difference=True, n_resamples=1)
    assert list(found.curves) == ["two"] and found.difference


def test_models_in_the_plane(rows):
    p, y = rows
    models = {"a": p, "$b_1$": 0.5 * p + 0.25, "c": p**2}
    display = DecompositionDisplay.from_predictions(
        y, models, kind="plane", loss="brier"
    )
    [[(across, up)]] = display.get_plotted_data()
    for at, one in enumerate(models.values()):
        parts = decompose_loss(y, one, loss="brier")
        assert across[at] == pytest.approx(parts.calibration)
        assert up[at] == pytest.approx(parts.uncertainty - parts.refinement)
    ax = display.ax_
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(
        [line.get_xydata()[0] for line in dots], np.c_[across, up]
    )
    assert {text.get_text() for text in ax.texts} >= {"a", r"\$b_1\$", "c"}
    lines = [line for line in ax.lines if line.get_linestyle() == ":"]
    said = [float(text.get_text()) for text in ax.texts[: len(lines)]]
    for line, loss in zip(lines, said, strict=True):
        x, d = line.get_xydata().T
        np.testing.assert_allclose(parts.uncertainty + x - d, loss, atol=1e-9)
    ax.figure.canvas.draw()
    with raises_invalid_input(
        ValueError, expected="kind among bars, plane", value="'line'"
    ):
        DecompositionDisplay.from_predictions(y, p, kind="line")
    with raises_invalid_input(
        ValueError, expected="kind among bars, plane", value="'line'"
    ):
        DecompositionDisplay(display.parts, "line").plot()


@pytest.mark.parametrize(
    ("x", "y", "uncertainty"),
    [
        ([0.0], [0.0], 0.7),
        ([-0.01, 0.2], [0.1, -0.1], 0.7),
        ([0, 0], [0, 0], 0),
        ([1e-6], [0.3], 1),
    ],
)
def test_limits_of_the_plane(x, y, uncertainty):
    plane = LossPlane.from_points(np.array(x, float), np.array(y, float), uncertainty)
    across, up = plane.locate_fraction(np.array(x), np.array(y))
    assert ((across >= 0) & (across <= 1) & (up > 0) & (up < 1)).all()
    lines = [*plane.iter_loss_lines()]
    assert 2 <= len(lines) <= 12
    for loss, (left, low) in lines:
        np.testing.assert_allclose(
            np.subtract(low, left), uncertainty - loss, atol=1e-9
        )


@pytest.mark.parametrize(("y", "has_zero"), [([0.2, 1.0], True), ([0.6, 1.0], False)])
def test_the_plane_begins_at_zero_if_its_points_are_not_far_from_it(y, has_zero):
    plane = LossPlane.from_points(np.array([0.0, 0.2]), np.array(y), 0.2)
    assert (plane.y_limits[0] <= 0) == has_zero


def test_labels_do_not_overlap():
    points = [(0.5, 0.5), (0.5, 0.5), (0.52, 0.5), (0.98, 0.98), (0.01, 0.02)]
    sizes = [(0.2, 0.05)] * 5
    boxes = [
        (x, y, x + 0.2, y + 0.05)
        for x, y in place_lower_left_label_corners(points, sizes, (0.01, 0.01))
    ]
    for at, a in enumerate(boxes):
        assert min(a) >= 0 and max(a) <= 1
        for b in boxes[:at]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize(
    "display", [DecisionCurveDisplay, RiskCoverageDisplay, RegretDisplay]
)
def test_other_displays_on_the_same_axes(rows, display):
    p, y = rows
    given = {} if display is RiskCoverageDisplay else {"n_resamples": 9}
    given |= {"recalibrated": p**1.2} if display is RegretDisplay else {}
    first = display.from_predictions(y, p, name="one", **given)
    top = first.ax_.get_ylim()[1]
    display.from_predictions(y, 0.5 * p, name="two", ax=first.ax_, **given)
    assert first.ax_.get_ylim()[1] >= top - 1e-9
    cycle = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    own = [x for x in first.ax_.lines if x.get_label().startswith(("one", "two"))]
    assert [line.get_color() for line in own] == cycle[:2]
    said = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert len(said) == len(set(said))
