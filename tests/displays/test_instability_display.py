"""InstabilityDisplay: what is drawn is the instability, and where it comes from."""

from dataclasses import replace

import numpy as np
import pytest
from error_fields import raises_invalid_input
from sklearn.naive_bayes import GaussianNB

from sklearn_calib.displays import InstabilityDisplay
from sklearn_calib.inference import internal_validation

plt = pytest.importorskip("matplotlib.pyplot")
Text = pytest.importorskip("matplotlib.text").Text


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    return X, np.where(X[:, 0] + rng.normal(size=90) > 0, "event", "none")


@pytest.fixture(scope="module")
def found(rows):
    return internal_validation(GaussianNB(), *rows, n_resamples=5)


def test_panels_show_the_instability(found):
    display = InstabilityDisplay.from_validation(
        found, threshold=0.3, pos_label="event"
    )
    plt.close(display.figure_)
    moved = found.instability(0.3, pos_label="event")
    order = np.argsort(moved.predicted)
    (low, high), ((x, errors),), ((_, changed),), curves = display.get_plotted_data()
    np.testing.assert_array_equal(x, moved.predicted[order])
    # medians of 5 neighbours
    for (_, shown), given in (
        (low, moved.low),
        (high, moved.high),
    ):
        places = order[[43, 44, 45, 46, 47]]
        assert shown[45] == pytest.approx(np.median(given[places]), abs=0.02)
    for (_, shown), given in (
        ((x, errors), moved.mean_absolute_error),
        ((x, changed), moved.changed),
    ):
        np.testing.assert_array_equal(shown, given[order])
    assert len(curves) == 1 + 5
    np.testing.assert_array_equal(curves[0], moved.curve)
    assert len(display.axes_) == 4
    legends = [
        text.get_text() for ax in display.axes_ for text in ax.get_legend().get_texts()
    ]
    assert "95 % of the models, smoothed" in legends and "threshold 0.3" in legends
    assert f"mean {moved.mean_absolute_error.mean():.3f}" in legends


def test_rows_of_one_prediction_have_one_end(found):
    moved = found.instability()
    tied = replace(moved, predicted=moved.predicted.round(1))
    ends = InstabilityDisplay(tied).get_plotted_data()[0]
    order = np.argsort(tied.predicted, kind="stable")
    apart = InstabilityDisplay(
        replace(tied, predicted=np.arange(90.0)[np.argsort(order)])
    )
    for (x, shown), (_, smooth) in zip(ends, apart.get_plotted_data()[0], strict=True):
        for value in np.unique(x):
            assert np.ptp(shown[x == value]) == 0 < np.ptp(smooth)
            assert shown[x == value][0] == pytest.approx(smooth[x == value].mean())


def test_from_estimator_passes_options_on(rows):
    axes = plt.subplots(1, 4)[1]
    display = InstabilityDisplay.from_estimator(
        GaussianNB(),
        *rows,
        n_resamples=3,
        level=0.5,
        random_state=7,
        threshold=0.4,
        ax=axes,
    )
    plt.close(display.figure_)
    options = {"n_resamples": 3, "level": 0.5, "random_state": 7}
    given = internal_validation(GaussianNB(), *rows, **options).instability(0.4)
    np.testing.assert_array_equal(display.instability.low, given.low)
    np.testing.assert_array_equal(display.instability.changed, given.changed)
    assert display.axes_[0] is axes[0]
    with raises_invalid_input(ValueError, expected="4 axes, one per panel", value="1"):
        display.plot(ax=axes[0])


def text_boxes(figure, axes):
    """Where the texts of each panel are: titles, labels, numbers and legends."""
    figure.canvas.draw()
    for ax in axes:
        texts = [one for one in ax.get_children() if isinstance(one, Text)]
        for place, axis in enumerate((ax.xaxis, ax.yaxis)):
            low, high = axis.get_view_interval()
            numbers = axis.get_ticklabels()
            texts += [
                one for one in numbers if low <= one.get_position()[place] <= high
            ]
            texts.append(axis.label)
        shown = [text for text in texts if text.get_text()]
        yield [one.get_window_extent() for one in [*shown, ax.get_legend()]]


@pytest.mark.parametrize(
    ("shape", "size", "layout"),
    [
        ((2, 2), (4, 4), "none"),
        pytest.param((2, 2), (4, 4), "constrained", marks=pytest.mark.slow),
        pytest.param((4, 1), (4, 9), "constrained", marks=pytest.mark.slow),
    ],
)
def test_axes_of_a_page_of_400_pixels(found, shape, size, layout):
    """No text is cut off, or lies on one of another panel."""
    figure, axes = plt.subplots(*shape, figsize=size, layout=layout, dpi=100)
    InstabilityDisplay.from_validation(found, ax=axes.ravel())
    page, panels = figure.bbox, [*text_boxes(figure, axes.ravel())]
    plt.close(figure)
    for number, boxes in enumerate(panels):
        for box in boxes:
            assert page.x0 <= box.x0 and box.x1 <= page.x1
            assert page.y0 <= box.y0 and box.y1 <= page.y1
            others = [other for panel in panels[number + 1 :] for other in panel]
            assert not any(box.padded(-2).overlaps(other) for other in others)
    assert axes.ravel()[2].get_legend()._get_loc() == 2  # left of a threshold of 0.5
