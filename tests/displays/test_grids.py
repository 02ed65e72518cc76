"""Every display is readable alone and in a grid: no text or legend hides a curve."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.transforms import Bbox
from test_display_checks import CLASSES, made_by_its_docstring

from sklearn_calib import displays
from sklearn_calib.datasets import make_overconfident

P, Y = make_overconfident(2, 300)
TWO = {"forest": P[:, 1], "boosting": 0.5 * P[:, 1] + 0.2}
FEW = {"n_resamples": 19}
#: Besides those of the docstrings: (display, predictions, options).
OTHERS = {
    "reliability of two": (displays.ReliabilityDisplay, TWO, FEW),
    "decision of one": (displays.DecisionCurveDisplay, P, FEW),
    "regret of two": (displays.RegretDisplay, TWO, FEW | {"recalibrated": "isotonic"}),
    "difference": (displays.MurphyDisplay, TWO, FEW | {"difference": True}),
    "scores": (displays.CumulativeDifferenceDisplay, P[:, 1], {"axis": "score"}),
    "plane": (displays.DecompositionDisplay, TWO, {"kind": "plane"}),
}
NAMES = [cls.__name__ for cls in CLASSES if cls is not displays.Display]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def make_display(name):
    if name in OTHERS:
        cls, proba, options = OTHERS[name]
        return cls.from_predictions(Y, proba, **options)
    return made_by_its_docstring(getattr(displays, name))


def draw_in_grid(display, layout):
    """The figure and the axes of a default grid that is filled with the display."""
    figure, axes = plt.subplots(2, 2, layout=layout)
    count = len(display.get_plotted_data())
    free = list(axes.T.flat)
    used = []
    while len(free) >= count:
        part = free[:count]
        del free[:count]
        display.plot(ax=part)
        used += part
    figure.canvas.draw()
    return figure, used


def iter_hidden_curves(ax):
    """Curves and bars below the legend; lines across the whole panel go on behind it."""
    legend = ax.get_legend()
    if legend is None:
        return
    box = legend.get_window_extent().padded(-1)
    for line in [line for line in ax.lines if len(line.get_xdata())]:
        path = line.get_transform().transform_path(line.get_path())
        across = np.ptp(line.get_xydata(), axis=0).min() == 0
        # The part outside the axes is not drawn.
        shown = path.clip_to_bbox(ax.bbox)
        if not across and len(shown.vertices) and shown.intersects_bbox(box, False):
            yield line
    for patch in ax.patches:
        if patch.get_window_extent().overlaps(box):
            yield patch


def list_texts(ax):
    texts = [ax.title, ax.xaxis.label, ax.yaxis.label]
    return [text.get_window_extent() for text in texts if text.get_text()]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_alone(name):
    figure = make_display(name).plot().figure_
    figure.canvas.draw()
    for ax in figure.axes:
        assert not [*iter_hidden_curves(ax)]
        legend = ax.get_legend()
        boxes = [*list_texts(ax), legend and legend.get_window_extent()]
        for box in filter(None, boxes):
            assert figure.bbox.x0 <= box.x0 + 1 and box.x1 <= figure.bbox.x1 + 1
            assert figure.bbox.y0 <= box.y0 + 1 and box.y1 <= figure.bbox.y1 + 1


@pytest.mark.slow
@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_in_a_grid(name, layout):
    figure, axes = draw_in_grid(make_display(name), layout)
    for ax in axes:
        assert not [*iter_hidden_curves(ax)]
        slot = ax.get_subplotspec().get_position(figure).transformed(figure.transFigure)
        # What is drawn fills most of the height that a panel has.
        below = [one.get_window_extent() for one in ax.child_axes]
        assert Bbox.union([ax.bbox, *below]).height > 0.7 * slot.height
        legend = ax.get_legend()
        if legend is not None:
            assert legend.get_window_extent().width <= ax.bbox.width + 2
    panels = [ax.get_tightbbox() for ax in axes]
    for box in panels:
        assert figure.bbox.x0 <= box.x0 + 1 and box.x1 <= figure.bbox.x1 + 1
        assert figure.bbox.y0 <= box.y0 + 1 and box.y1 <= figure.bbox.y1 + 1
    for one, other in combinations(panels, 2):
        assert not one.padded(-2).overlaps(other.padded(-2))


@pytest.mark.slow
def test_later_curves_keep_the_space_of_the_legend():
    figure, axes = plt.subplots(2, 2)
    few = {"n_resamples": 1}
    tops = []
    for scale in (1.0, 0.8, 0.6):
        given = {"name": f"{scale}", **few}
        proba = scale * P[:, 1]
        cls = displays.DecisionCurveDisplay
        cls.from_predictions(Y, proba, ax=axes[0, 0], **given)
        displays.MurphyDisplay.from_predictions(Y, proba, ax=axes[0, 1], **given)
        tops.append(axes[0, 0].get_ylim()[1])
    figure.canvas.draw()
    assert tops[2] == pytest.approx(tops[0], rel=0.05)
    (last,) = [line for line in axes[0, 1].lines if line.get_label() == "0.6"]
    assert last.get_ydata().max() < axes[0, 1].get_ylim()[1]


def test_a_layout_of_the_caller_still_applies():
    figure, axes = plt.subplots(2, 2)
    displays.ReliabilityDisplay.from_predictions(Y, P, ax=axes[0, 0], n_resamples=0)
    figure.tight_layout()
    figure.subplots_adjust(left=0.3)
    assert axes[0, 0].get_position(original=True).x0 == pytest.approx(0.3)
