"""DecompositionDisplay: one bar per model, split into calibration and refinement."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import in_picture
from ..decomposition import decompose_loss
from ..metrics import get_loss
from ._base import ModelsDisplay, shade

if TYPE_CHECKING:
    from ..decomposition import LossDecomposition


class DecompositionDisplay(ModelsDisplay):
    """Stacked bars of a mean loss: refinement, which remains, and calibration on top.

    With ``features=`` refinement is split into what remains of it at most, and grouping, what a
    better use of the features gains at least. Whiskers are 95 % intervals, as
    `LossDecomposition.interval` gives them; where it gives none there is no whisker.

    Make one with `from_predictions` or `from_estimator`, which call `decompose_loss`, whose
    options are features, loss, recalibrator, cv, sample_weight and labels; draw it again with
    `plot`.

    Parameters
    ----------
    parts : dict of str to LossDecomposition
        Names and decompositions, as `decompose_loss` returns them.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import DecompositionDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> models = {"raw": proba, "dull": 0.5 * proba + 1 / 6}
    >>> display = DecompositionDisplay.from_predictions(y, models)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['raw', 'dull']
    """

    _result_of = staticmethod(decompose_loss)

    def __init__(self, parts: "dict[str, LossDecomposition]") -> None:
        self.parts = parts

    def points(self) -> list[list[tuple[Any, ...]]]:
        """The ends of the bars.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: refinements, and refinements plus calibrations, against the models' places.
        """
        place = np.arange(len(self.parts))
        refinement, calibration = self._terms()
        return [[(refinement, place), (refinement + calibration, place)]]

    def _terms(self):
        parts = self.parts.values()
        return np.array([(part.refinement, part.calibration) for part in parts]).T

    def _size(self):
        return 7, 1.6 + 0.45 * len(self.parts)

    def _draw(self, ax):
        place = np.arange(len(self.parts))
        parts = list(self.parts.values())
        refinement, calibration = self._terms()
        loss = get_loss(parts[0].loss)
        best, unit = loss.range[0], in_picture(loss.label)
        above = refinement - best
        split = all(part.grouping is not None for part in parts)
        if split:
            self._draw_split(ax, best)
        else:
            ax.barh(place, above, 0.6, left=best, color="C1", alpha=0.75, label="refinement")
            _whiskers(ax, [part.interval("refinement") for part in parts], place + 0.12, 0.0)
        ax.barh(
            place, calibration, 0.6, left=refinement, color="C0", alpha=0.75, label="calibration"
        )
        _whiskers(ax, [part.interval("calibration") for part in parts], place - 0.12, refinement)
        uncertainty = parts[0].uncertainty
        ax.axvline(
            uncertainty, color=shade(ax, 0.35), ls="--", lw=1, label="class frequencies alone"
        )
        known = any(part.interval("refinement") for part in parts)
        ax.set(yticks=place, xlabel=f"{unit}; whiskers: 95 % intervals" if known else unit)
        ax.set_yticklabels([in_picture(name) for name in self.parts])
        ax.invert_yaxis()
        columns = 2 if split else 3
        ax.legend(frameon=False, ncols=columns, loc="lower right", bbox_to_anchor=(1, 1))

    def _draw_split(self, ax, best):
        """Refinement as what remains and what the features gain."""
        place, parts = np.arange(len(self.parts)), self.parts.values()
        remains, gained = np.array([(part.irreducible, part.grouping) for part in parts]).T
        given = {"height": 0.6, "alpha": 0.75}
        label = "irreducible (at most)"
        ax.barh(place, remains - best, left=best, color="C1", label=label, **given)
        ax.barh(place, gained, left=remains, color="C2", label="grouping (at least)", **given)
        _whiskers(ax, [part.interval("irreducible") for part in parts], place + 0.2, 0.0)
        _whiskers(ax, [part.interval("grouping") for part in parts], place, remains)


def _whiskers(ax, intervals, place, left):
    """A line with caps for each interval, moved right by `left`; nothing where it is None."""
    for ends, y, x in zip(intervals, place, np.broadcast_to(left, place.shape), strict=True):
        if ends is not None:
            ax.plot(x + np.array(ends), [y, y], color=shade(ax, 0.2), lw=1, marker="|", ms=7)
