import matplotlib.pyplot as plt
import numpy as np
import pytest
from error_fields import raises_invalid_input
from golden_sets import golden_set
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier

from sklearn_calib import RefineThenCalibrateCV, displays
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import decompose_loss, refinement_curve
from sklearn_calib.displays import (
    CalibratingFunctionDisplay,
    CumulativeDifferenceDisplay,
    DecompositionDisplay,
    NullDistributionDisplay,
    RefinementCurveDisplay,
    WitnessDisplay,
)
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import calibration_witness, smooth_calibration_error
from sklearn_calib.recalibrators import PlattScaling, RestrictedPolynomialRegression


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def search():
    X, y = make_classification(1200, n_informative=5, flip_y=0.2, random_state=0)
    learner = GradientBoostingClassifier(n_estimators=8, random_state=0)
    grid = {"max_depth": [1, 3], "learning_rate": [0.1, 0.5, 1.0]}
    return RefineThenCalibrateCV(learner, grid, cv=3).fit(X, y)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_refinement_curve(loss):
    proba, y = make_overconfident(3, 400)
    staged = [proba * s + (1 - s) / 3 for s in (0.2, 0.6, 0.9, 1.0)]
    _, ax = plt.subplots()
    display = RefinementCurveDisplay.from_predictions(
        y, staged, loss=loss, unit="epochs", ax=ax
    )
    assert display.ax_ is ax
    curve = refinement_curve(y, staged, loss=loss)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), curve.risk)
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), curve.refinement)
    assert ax.get_xlabel() == "epochs"
    assert ("nats" in ax.get_ylabel()) == (loss == "log")
    low, high = ax.get_ylim()
    assert low < curve.refinement.min()
    assert high > curve.risk.min()


@pytest.mark.slow
def test_refinement_curve_of_a_search(search):
    display = RefinementCurveDisplay.from_estimator(search)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any(f"at {search.best_stage_} by refinement" in label for label in labels)


def test_decomposition_bars():
    proba, y = make_overconfident(3, 400)
    models = {"raw": proba, "dull": 0.5 * proba + 1 / 6}
    display = DecompositionDisplay.from_predictions(y, models)
    widths = [bar.get_width() for bar in display.ax_.patches]
    parts = [decompose_loss(y, p) for p in models.values()]
    expected = [part.refinement for part in parts] + [
        part.calibration for part in parts
    ]
    np.testing.assert_allclose(widths, expected)
    ends = [line.get_xdata() for line in display.ax_.lines if line.get_marker() == "|"]
    wanted = [part.interval("refinement") for part in parts]
    wanted += [
        part.refinement + np.array(part.interval("calibration")) for part in parts
    ]
    np.testing.assert_allclose(ends, wanted)
    assert (
        DecompositionDisplay.from_predictions(y, proba, loss="brier").ax_.get_xlabel()[
            0
        ]
        == "B"
    )
    bare = DecompositionDisplay.from_predictions(y, proba, recalibrator="isotonic").ax_
    # no interval is known: no whisker, and no word
    assert bare.get_xlabel() == "log loss [nats]"
    assert not [line for line in bare.lines if line.get_marker() == "|"]


@pytest.mark.slow
def test_witness_under_the_reliability_curve():
    proba, y = make_overconfident(2, 400)
    display = WitnessDisplay.from_predictions(y, proba)
    error, witness = smooth_calibration_error(y, proba), calibration_witness(y, proba)
    assert display.error == error
    line = display.axes_[1].lines[1]
    np.testing.assert_allclose(line.get_ydata(), witness(line.get_xdata()))
    with raises_invalid_input(ValueError, expected="2 axes, one per panel", value="3"):
        display.plot(ax=plt.subplots(3)[1])
    proba, y = make_overconfident(4, 400)
    assert (
        WitnessDisplay.from_predictions(y, proba).axes_[0].get_title() == "confidence"
    )


def test_cumulative_differences():
    y, p = golden_set()
    display = CumulativeDifferenceDisplay.from_predictions(y, p)
    [[path]] = display.get_plotted_data()
    assert np.ptp(path[1]) == pytest.approx(0.0596251785, abs=1e-10)
    (triangle,) = display.ax_.patches
    assert np.ptp(triangle.get_xy()[:, 1]) == pytest.approx(4 * 0.0274643909, abs=1e-9)
    upper = {float(t.get_text()) for t in display.score_ax_.get_xticklabels()}
    assert min(upper) == float(f"{p.min():.2g}")
    assert max(upper) == float(f"{p.max():.2g}")
    low, high = display.ax_.get_ylim()
    assert low < -2 * 0.0274
    assert high > path[1].max()
    assert display.ax_.get_title() == "class 1"


def test_cumulative_differences_of_a_classifier_and_of_certain_predictions():
    X, y = make_classification(200, n_classes=3, n_informative=4, random_state=0)
    model = GradientBoostingClassifier(n_estimators=2).fit(X, y)
    display = CumulativeDifferenceDisplay.from_estimator(model, X[y > 0], y[y > 0])
    assert display.ax_.get_title() == "confidence"
    certain = CumulativeDifferenceDisplay.from_predictions([0, 1], [0.0, 1.0])
    assert [t.get_text() for t in certain.ax_.get_legend().get_texts()][1] == "range 0"


def test_null_distribution():
    proba, y = make_overconfident(2, 200)
    result = calibration_test(y, proba, n_resamples=50, random_state=0)
    display = NullDistributionDisplay(result).plot(bins=7)
    assert sum(bar.get_height() for bar in display.ax_.patches) == 50
    assert display.ax_.lines[0].get_xdata()[0] == result.statistic


@pytest.mark.slow
def test_calibrating_functions():
    proba, y = make_overconfident(2, 400)
    names = np.array(["no", "yes"])[y]
    methods = {
        "Platt": "platt",
        "RPR": RestrictedPolynomialRegression(3),
        "bins": "bbq",
    }
    display = CalibratingFunctionDisplay.from_predictions(
        names, proba, methods, truth=lambda s: s**2, n_points=51
    )
    assert [ax.get_title() for ax in display.axes_] == ["Platt", "RPR", "bins"]
    expected = PlattScaling().fit(proba, names).predict_proba([0.5])[0, 1]
    assert display.functions["Platt"][25] == pytest.approx(expected)
    drawn = display.axes_[1].lines[-1].get_ydata()
    np.testing.assert_array_equal(drawn, display.functions["RPR"])
    assert display.axes_[0].collections[0].get_offsets().shape[1] == 2
    alone = CalibratingFunctionDisplay.from_recalibrators(PlattScaling().fit(proba, y))
    assert alone.curve is None
    assert len(alone.axes_) == 1
    with raises_invalid_input(ValueError, expected="recalibrators of two classes"):
        CalibratingFunctionDisplay.from_predictions(
            *make_overconfident(3, 90)[::-1], ["temperature"]
        )
    with raises_invalid_input(ValueError, expected="at least one recalibrator"):
        CalibratingFunctionDisplay.from_predictions(y, proba, [])
    with raises_invalid_input(ValueError, expected="3 axes, one per panel", value="1"):
        display.plot(ax=[display.axes_[0]])


def test_each_display_has_from_predictions_or_the_reason_why_not():
    for name in displays.__all__:
        display = getattr(displays, name)
        if isinstance(display, type) and display is not displays.Display:
            reason = "has no ``from_predictions``" in " ".join(display.__doc__.split())
            assert hasattr(display, "from_predictions") != reason, name


def test_grades_have_the_colour_of_their_light_on_a_linear_axis():
    proba, y = make_overconfident(2, 2000)
    display = displays.GradeDisplay.from_predictions(y, proba, [0.05, 0.2, 0.5])
    ax = display.ax_
    assert ax.get_yscale() == "linear" and ax.get_ylim()[0] == 0
    strongest = {"red": 0, "green": 1}
    for row, bar in zip(display.found.rows, ax.patches, strict=True):
        assert bar.get_y() == 0 and bar.get_height() == pytest.approx(row.observed)
        if row.light in strongest:
            assert np.argmax(bar.get_facecolor()[:3]) == strongest[row.light]
    assert {row.light for row in display.found.rows} >= {"red", "green"}
