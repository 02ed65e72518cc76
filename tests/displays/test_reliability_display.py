import matplotlib.pyplot as plt
import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import reliability_curve


@pytest.fixture(autouse=True)
def closed():
    before = dict(plt.rcParams)
    yield
    plt.close("all")
    assert dict(plt.rcParams) == before, "rcParams changed"


def lines(axes):
    return [line for line in axes.get_lines() if not line.get_label().startswith("_")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", ["quantile", "uniform", "isotonic", "polynomial", "loess", "spline"]
)
def test_draws_the_curve(strategy):
    proba, y = make_overconfident(2, 300)
    options = {"strategy": strategy, "n_resamples": 20}
    display = ReliabilityDisplay.from_predictions(y, proba, name="net", **options)
    (curve,) = reliability_curve(y, proba, **options)
    (line,) = lines(display.axes_[0])
    np.testing.assert_array_equal(line.get_ydata(), curve.observed)
    assert line.get_label() == "net"
    display.figure_.canvas.draw()


def test_the_belt_is_drawn():
    proba, y = make_overconfident(2, 300)
    options = {"strategy": "polynomial", "level": 0.8}
    axes = ReliabilityDisplay.from_predictions(y, proba, **options).axes_[0]
    (curve,) = reliability_curve(y, proba, **options)
    (belt,) = axes.collections
    assert belt.get_label() == "calibration belt (80 %)"
    ends = np.r_[curve.confidence_low, curve.confidence_high]
    assert np.isin(ends, belt.get_paths()[0].vertices[:, 1]).all()


@pytest.mark.parametrize("bands", ["auto", "both", "consistency", "confidence", "none"])
def test_bands(bands):
    proba, y = make_overconfident(2, 300)
    display = ReliabilityDisplay.from_predictions(y, proba, bands=bands, n_bins=5)
    labels = [c.get_label() for c in display.axes_[0].collections]
    assert ("if calibrated (90 %)" in labels) == (
        bands in ("auto", "both", "consistency")
    )


@pytest.mark.parametrize("strategy", ["quantile", "isotonic"])
def test_bands_are_drawn_where_the_curve_has_them(strategy):
    proba, y = make_overconfident(2, 300)
    options = {"strategy": strategy, "n_bins": 5, "random_state": 3}
    axes = ReliabilityDisplay.from_predictions(y, proba, bands="both", **options).axes_[
        0
    ]
    (curve,) = reliability_curve(y, proba, **options)
    outlines = [path.vertices for c in axes.collections for path in c.get_paths()]

    def drawn(low, high):
        ends = np.r_[low, high]
        return any(np.isin(ends, outline[:, 1]).all() for outline in outlines)

    assert drawn(curve.consistency_low, curve.consistency_high)
    if strategy == "isotonic":
        assert drawn(curve.confidence_low, curve.confidence_high)
        return
    (bars,) = (
        c for c in axes.collections if len(c.get_paths()) == len(curve.predicted)
    )
    ends = np.array([path.vertices for path in bars.get_paths()])
    expected = np.column_stack([curve.confidence_low, curve.confidence_high])
    np.testing.assert_allclose(ends[:, :, 1], expected)
    np.testing.assert_allclose(ends[:, :, 0], np.column_stack([curve.predicted] * 2))


@pytest.mark.slow
def test_several_models_and_panels():
    proba, y = make_overconfident(3, 400)
    models = {
        "one": proba,
        "two": np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True),
    }
    display = ReliabilityDisplay.from_predictions(y, models, multiclass="classwise")
    assert len(display.axes_) == 3 and len(display.histogram_axes_) == 3
    assert [line.get_label() for line in lines(display.axes_[0])] == [
        "one",
        "two",
    ]
    display.figure_.canvas.draw()
    five, y5 = make_overconfident(5, 400)
    assert (
        len(ReliabilityDisplay.from_predictions(y5, five, multiclass="classwise").axes_)
        == 5
    )


def test_a_model_may_lack_a_panel():
    proba, y = make_overconfident(3, 300)
    never = np.tile([0.2, 0.5, 0.3], (300, 1))
    display = ReliabilityDisplay.from_predictions(
        y, {"all": proba, "one": never}, multiclass="top_label"
    )
    assert len(lines(display.axes_[0])) == 1 and len(lines(display.axes_[1])) == 2


def test_from_estimator_and_own_axes():
    X, y = make_classification(300, random_state=0)
    models = {"nb": GaussianNB().fit(X, y), "lr": LogisticRegression().fit(X, y)}
    _, ax = plt.subplots()
    display = ReliabilityDisplay.from_estimator(models, X, y, ax=ax)
    assert display.axes_[0] is ax and len(lines(ax)) == 2
    one = ReliabilityDisplay.from_estimator(models["nb"], X, y)
    assert lines(one.axes_[0])[0].get_label() == "GaussianNB"
    with raises_invalid_input(ValueError, expected="1 axes, one per panel", value="2"):
        display.plot(ax=plt.subplots(1, 2)[1])
    with raises_invalid_input(ValueError, expected="bands among auto"):
        display.plot(bands="all")


@pytest.mark.parametrize("table", [False, True])
def test_from_cv_results(table):
    X, y = make_classification(300, random_state=0)
    if table:
        X = pytest.importorskip("pandas").DataFrame(X, index=np.arange(300)[::-1])
    weight = np.random.default_rng(0).random(300)
    results = cross_validate(
        LogisticRegression(), X, y, return_estimator=True, return_indices=True
    )
    display = ReliabilityDisplay.from_cv_results(results, X, y, sample_weight=weight)
    (curve,) = display.curves["LogisticRegression"]
    assert curve.weight.sum() == pytest.approx(weight.sum())
    with raises_invalid_input(
        ValueError, hint=".*return_estimator=True, return_indices=True"
    ):
        ReliabilityDisplay.from_cv_results({"estimator": []}, X, y)


def test_from_cv_results_wants_equal_classes():
    X, y = make_classification(90, n_informative=4, n_classes=3, random_state=0)
    order = np.argsort(y)
    X, y = X[order], y[order]
    results = cross_validate(
        GaussianNB(), X, y, cv=KFold(3), return_estimator=True, return_indices=True
    )
    with raises_invalid_input(
        ValueError, expected="the same classes in every fold", hint=".*stratified"
    ):
        ReliabilityDisplay.from_cv_results(results, X, y)


def test_draws_only_for_bands_that_need_them():
    p, y = make_overconfident(2, 60)
    two = {"a": p, "b": p[:, ::-1]}
    for models, drawn, n_bands in (({"a": p}, True, 2), (two, False, 2)):
        display = ReliabilityDisplay.from_predictions(y, models, n_bins=3)
        for (curve,) in display.curves.values():
            assert (curve.consistency_low is not None) == drawn
        assert len(display.ax_.collections) == n_bands
    three = ReliabilityDisplay.from_predictions(y, two | {"c": p}, n_bins=3)
    assert not three.ax_.collections
    steps = ReliabilityDisplay.from_predictions(y, two, strategy="isotonic")
    assert len(steps.ax_.collections) == 2


@pytest.mark.slow
@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_a_grid_of_panels(layout):
    p, y = make_overconfident(2, 60)
    figure, axes = plt.subplots(2, 2, layout=layout)
    for ax in axes.flat:
        ReliabilityDisplay.from_predictions(y, p, ax=ax, n_resamples=0)
    figure.canvas.draw()
    boxes = [ax.get_tightbbox() for ax in axes.flat]
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
    for ax in axes.flat:
        area = ax.get_position(original=True).transformed(figure.transFigure)
        (histogram,) = ax.child_axes
        place = histogram.get_window_extent()
        assert area.y0 <= place.y0 + 1e-6 and area.y1 >= place.y1
        # A square would be small here.
        assert place.width == pytest.approx(area.width)
        assert place.x0 == pytest.approx(ax.get_window_extent().x0)
        assert place.width == pytest.approx(ax.get_window_extent().width)


def test_a_title_is_that_of_the_curve():
    p, y = make_overconfident(2, 60)
    display = ReliabilityDisplay.from_predictions(y, p, n_resamples=0)
    plt.title("mine")
    assert display.ax_.get_title() == "mine"


@pytest.mark.parametrize("scale", ["linear", "logit"])
def test_without_a_histogram(scale):
    p, y = make_overconfident(2, 60)
    options = {"n_resamples": 0, "histogram": False, "scale": scale}
    display = ReliabilityDisplay.from_predictions(y, p, **options)
    again = ReliabilityDisplay.from_predictions(y, p, ax=display.ax_, n_resamples=0)
    for one in (display, again):
        assert one.histogram_axes_ == [] and not one.ax_.child_axes
    assert display.ax_.get_xlabel() == "predicted probability"
    texts = [tick.get_visible() for tick in display.ax_.get_xticklabels()]
    assert texts and all(texts)
    with pytest.raises(ValueError, match=f"scale='{scale}'"):
        other = "logit" if scale == "linear" else "linear"
        display.plot(ax=display.ax_, scale=other)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"color": "red"}, "Pass curve_kwargs={'color': 'red'}"),
        ({"linewidth": 3}, "Pass curve_kwargs={'linewidth': 3}"),
        ({"figsize": (3, 3)}, "Pass ax=plt.subplots(figsize=...)[1]"),
        ({"title": "mine"}, "Call ax_.set_title(...)"),
        ({"band": "both"}, "Write 'bands'"),
    ],
)
def test_words_of_matplotlib(options, hint):
    p, y = make_overconfident(2, 60)
    display = ReliabilityDisplay.from_predictions(y, p, n_resamples=0)
    for draw in (
        lambda: ReliabilityDisplay.from_predictions(y, p, **options),
        lambda: display.plot(**options),
    ):
        with pytest.raises(TypeError) as caught:
            draw()
        assert hint in str(caught.value)
