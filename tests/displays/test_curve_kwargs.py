"""What curves look like: one word for all displays, and each of its options shows."""

import re
from inspect import signature

import matplotlib.pyplot as plt
import numpy as np
import pytest
from error_fields import raises_invalid_input
from test_display_checks import CLASSES, made_by_its_docstring

from sklearn_calib import displays
from sklearn_calib.datasets import make_overconfident

GIVEN = {
    "alpha": 0.123,
    "color": "#123456",
    "label": "mine",
    "linestyle": "-.",
    "linewidth": 7.5,
}
GIVEN |= {"marker": "D", "markersize": 11, "cmap": "magma", "vmin": -5.0, "vmax": 9.0}
PROBA, Y = make_overconfident(2, 300)
MODELS = {"raw": PROBA, "soft": 0.8 * PROBA + 0.1}
GROUPS = np.where(np.arange(300) % 2, "u", "v")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def groups():
    calibrated = np.where(GROUPS == "u", PROBA[:, 1], np.linspace(0.1, 0.9, 300))
    y = (np.arange(300) * 0.618 % 1 < np.linspace(0.1, 0.9, 300)).astype(int)
    y = np.where(GROUPS == "u", 1 - Y, y)
    given = {"n_resamples": 49, "n_curves": 2}
    return displays.GroupReliabilityDisplay.from_predictions(
        y, calibrated, GROUPS, **given
    )


#: Displays whose docstring shows one curve only, or not all kinds.
MADE = {
    "DecompositionDisplay, plane": lambda: (
        displays.DecompositionDisplay.from_predictions(Y, MODELS, kind="plane")
    ),
    "DecompositionDisplay, features": lambda: (
        displays.DecompositionDisplay.from_predictions(Y, MODELS, features=PROBA)
    ),
    "CumulativeDifferenceDisplay, score": (
        lambda: displays.CumulativeDifferenceDisplay.from_predictions(
            Y, PROBA, axis="score"
        )
    ),
    "GroupReliabilityDisplay": groups,
    "MurphyDisplay": lambda: displays.MurphyDisplay.from_predictions(
        Y, MODELS, n_resamples=9
    ),
}
MADE |= {
    f"{name}Display": lambda name=name: getattr(
        displays, f"{name}Display"
    ).from_predictions(Y, MODELS)
    for name in ("DecisionCurve", "Regret", "Reliability", "RiskCoverage")
}
MADE |= {
    cls.__name__: lambda cls=cls: made_by_its_docstring(cls)
    for cls in CLASSES
    if cls.__name__ not in MADE and "curve_kwargs" in signature(cls.plot).parameters
}


def said(display, given):
    with pytest.raises((TypeError, ValueError)) as raised:
        display.plot(curve_kwargs=given)
    return str(raised.value)


def looks(display):
    """All that is seen of a picture."""
    looks, names = (
        [],
        ("alpha", "color", "linestyle", "linewidth", "marker", "markersize", "text"),
    )
    for artist in display.figure_.findobj():
        for name in (*names, "facecolor", "edgecolor", "clim"):
            if hasattr(artist, f"get_{name}"):
                looks.append(f"{name} {getattr(artist, f'get_{name}')()}")
        if hasattr(artist, "get_cmap"):
            looks.append(artist.get_cmap().name)
    plt.close(display.figure_)
    return looks


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_each_option_of_each_curve_shows(name):
    display = MADE[name]()
    count = int(re.search("a list of ([0-9]+) dicts", said(display, 5))[1])
    options = re.search("among (.*), got", said(display, {"bogus": 1}))[1].split(", ")
    assert count >= 1 and set(options) <= set(GIVEN)
    plain = looks(display.plot())
    for option in options:
        base = {"marker": "s"} if option == "markersize" else {}
        before = looks(display.plot(curve_kwargs=base)) if base else plain
        pictures = [before]
        for place in range(count):
            several = [
                base | ({option: GIVEN[option]} if n == place else {})
                for n in range(count)
            ]
            pictures.append(looks(display.plot(curve_kwargs=several)))
        if count > 1:
            pictures.append(
                looks(display.plot(curve_kwargs=base | {option: GIVEN[option]}))
            )
        same = [
            (a, b)
            for a in range(len(pictures))
            for b in range(a)
            if pictures[a] == pictures[b]
        ]
        assert not same, f"{option} changes nothing, or the wrong curve: {same}"
    assert looks(display.plot()) == plain  # nothing stays


def test_from_predictions_and_from_estimators_pass_it_on():
    class Model:
        def predict_proba(self, X):
            return X

    given = [{"color": "k", "label": "one"}, {"linestyle": ":"}]
    draw = displays.ReliabilityDisplay
    models = dict.fromkeys(MODELS, Model())
    for display in (
        draw.from_predictions(Y, MODELS, curve_kwargs=given),
        draw.from_estimator(models, PROBA, Y, curve_kwargs=given),
    ):
        first, second = (line for line in display.ax_.lines if line.get_marker() == "o")
        assert (first.get_color(), first.get_label()) == ("k", "one")
        assert (second.get_linestyle(), second.get_label()) == (":", "soft")
        assert display.styles_["raw"] == given[0]


def test_bands_have_the_colour_of_their_curve():
    from matplotlib.colors import same_color

    given = {"curve_kwargs": {"color": "#123456"}}
    for name in ("DecisionCurve", "Murphy", "Regret", "RiskCoverage"):
        draw = getattr(displays, f"{name}Display").from_predictions
        filled = draw(Y, PROBA, **given).axes_[0].collections
        assert filled and all(
            same_color(one.get_facecolor()[0, :3], "#123456") for one in filled
        )
    display = displays.ReliabilityDisplay.from_predictions(
        Y, PROBA, n_resamples=9, **given
    )
    bars = display.ax_.collections[-1]  # the band of consistency is before them
    assert same_color(bars.get_edgecolor()[0, :3], "#123456")
    assert same_color(
        display.histogram_axes_[0].patches[0].get_facecolor()[:3], "#123456"
    )


@pytest.mark.parametrize("given", [5, "red", [{}], [{}] * 3, [{}, 1], {"a": 1}.items()])
def test_what_is_no_dict_is_refused(given):
    display = displays.RiskCoverageDisplay.from_predictions(Y, MODELS)
    rule = "a dict or a list of 2 dicts as curve_kwargs"
    with raises_invalid_input(
        ValueError, expected=rule, hint="The curves are raw, soft"
    ):
        display.plot(curve_kwargs=given)


def test_an_unknown_option_is_refused_by_the_display():
    rule = "an option of curve_kwargs among alpha, color, label, linestyle, linewidth, marker, mark"
    with raises_invalid_input(TypeError, expected=f"{rule}.*", value="'colour'"):
        displays.RiskCoverageDisplay.from_predictions(
            Y, MODELS, curve_kwargs={"colour": "red"}
        )


def test_a_display_without_curves_takes_none():
    class Empty(displays.Display):
        def get_plotted_data(self):
            return [[([0, 1], [0, 2])]]

        def _draw(self, ax):
            ax.plot([0, 1], [0, 2])

    assert Empty().plot(curve_kwargs={}).styles_ == {}
    with raises_invalid_input(
        ValueError,
        expected="a dict or a list of 0 dicts as curve_kwargs",
        hint="Leave it",
    ):
        Empty().plot(curve_kwargs={"color": "red"})


@pytest.mark.parametrize(
    "strategy", ["loess", "spline", "polynomial", "quantile", "uniform"]
)
def test_curves_of_groups_by_strategy(strategy):
    from sklearn_calib.metrics import reliability_curve

    draw = displays.GroupReliabilityDisplay.from_predictions
    given = {"n_resamples": 20, "n_curves": 1, "n_dots": 0, "level": 0.8}
    display = draw(Y, PROBA, GROUPS, strategy=strategy, **given)
    ((row, drawn),) = display.curves
    rows = slice(None) if row.group == "all rows" else str(row.group)[-1] == GROUPS
    (expected,) = reliability_curve(Y[rows], PROBA[rows], strategy=strategy, level=0.8)
    [[(x, observed)]] = display.get_plotted_data()
    np.testing.assert_allclose(x, expected.predicted)
    np.testing.assert_allclose(observed, expected.observed)
    band = [one.get_paths()[0].vertices[:, 1] for one in display.ax_.collections]
    smooth = strategy in ("loess", "spline", "polynomial")
    wanted = expected.confidence_low if smooth else drawn.consistency_low
    assert len(band) == 1 and np.isin(wanted.round(9), band[0].round(9)).all()


@pytest.mark.parametrize("strategy", ["loess", "spline"])
def test_smooth_curves_of_several_models(strategy):
    draw = displays.ReliabilityDisplay.from_predictions
    three = MODELS | {"third": MODELS["raw"]}
    for models, bands in ((MODELS, 2), (three, 0)):
        assert len(draw(Y, models, strategy=strategy).ax_.collections) == bands
    display = draw(Y, MODELS, strategy=strategy, bands="confidence", level=0.8)
    for band, line, (curve,) in zip(
        display.ax_.collections,
        display.ax_.lines[1:],
        display.curves.values(),
        strict=True,
    ):
        ends = band.get_paths()[0].vertices[:, 1].round(9)
        assert np.isin(curve.confidence_low.round(9), ends).all()
        np.testing.assert_array_equal(line.get_ydata(), curve.observed)
    said = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert said == ["interval at each point (80 %)", "raw", "soft"]
