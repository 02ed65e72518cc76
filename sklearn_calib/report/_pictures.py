"""The reliability diagrams of a report: of which rows, of which classes, in which frame."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import in_page, plain
from .._typing import AnyArray, FloatArray
from ..metrics import reliability_curve
from ..summary import CalibrationSummary
from ._svg import LARGE, SMALL, Frame, Series, diagram

if TYPE_CHECKING:
    from ..metrics import ReliabilityCurve
    from ._report import CalibrationReport

FEW_MODELS = 3  # each with large diagrams; more share a grid of small ones
SHOWN_CLASSES, _WORST = 12, 6  # of more classes: the worst, and the most frequent of the others
_SMALL_BINS = 10
_ROWS, _CELLS = 20_000, 4096  # bands of more rows are drawn from so many cells of a summary


class Pictures:
    """The diagrams of a report.

    Parameters
    ----------
    report : CalibrationReport
    """

    def __init__(self, report: "CalibrationReport") -> None:
        self._data: dict[str, Any] = report._data
        self._classes: list[Any] = report.classes
        self._names = list(report.accuracy)

    @property
    def of_rows(self) -> bool:
        """Whether the rows are there, not summaries alone."""
        return "proba" in self._data

    def large(self) -> str:
        """The diagram of each model."""
        figures = ""
        for name in self._names:
            series = self._large(name)
            figures += figure(name, _event(series.curve), _says(name, series.curve), [series])
        return f'<div class="pair">\n{figures}</div>\n'

    def small(self) -> str:
        """One small diagram per model."""
        figures = ""
        for name in self._names:
            (curve,) = self._curves(name, n_bins=_SMALL_BINS, n_resamples=0)
            figures += figure(name, "", _says(name, curve), [Series(curve)], SMALL)
        return f'<div class="panels">\n{figures}</div>\n'

    def classes(self, name: str) -> str:
        """One small diagram per class against the others; of many classes some."""
        options: dict[str, Any] = {"multiclass": "classwise", "strategy": "uniform"}
        curves = self._curves(name, n_bins=_SMALL_BINS, n_resamples=0, **options)
        shares = self._shares()
        figures = ""
        for number in classes_to_show(curves, shares):
            curve, label = curves[number], self._classes[number]
            note = f"{shares[number]:.1%} of the rows"
            figures += figure(f"{label}", note, _says(name, curve), [Series(curve)], SMALL)
        return f'<div class="panels">\n{figures}</div>\n'

    def _large(self, name):
        (curve,) = self._curves(name)
        (steps,) = self._curves(name, strategy="isotonic", n_resamples=0)
        return Series(curve, steps)

    def _curves(self, name, **options: Any):
        data = self._data
        if not self.of_rows:
            return curves_of_summary(data["summaries"][name], **options)
        proba, given = data["proba"][name], {"sample_weight": data["weight"]}
        if len(proba) <= _ROWS or "multiclass" in options:
            return reliability_curve(data["y"], proba, labels=self._classes, **given, **options)
        summary = CalibrationSummary(classes=self._classes).update(data["y"], proba, **given)
        return curves_of_summary(summary, **options)

    def _shares(self) -> "FloatArray":
        y: AnyArray = self._data["y"]
        position = {label: number for number, label in enumerate(self._classes)}
        codes = np.array([position[label] for label in y.tolist()])
        mass = np.bincount(codes, self._data["weight"], minlength=len(position))
        return np.asarray(mass / mass.sum())


def figure(title: object, note: str, says: str, series: list[Series], frame: Frame = LARGE) -> str:
    """A diagram with its title; names are not yet escaped."""
    more = f"<span>{in_page(note)}</span>" if note else ""
    caption = f"<figcaption><bdi>{in_page(title, 60)}</bdi>{more}</figcaption>"
    return f"<figure>{caption}\n{diagram(series, says, frame)}</figure>\n"


def curves_of_summary(summary: CalibrationSummary, **options: Any) -> "list[ReliabilityCurve]":
    """The curves of a summary in so many cells as a picture shows."""
    two_classes = summary.classes is None or len(summary.classes) == 2
    if two_classes and not summary.exact:
        summary = summary.coarsen(min(summary.max_cells, _CELLS))
    return summary.reliability_curve(**options)


def _event(curve):
    return (
        "event: the predicted class is true"
        if curve.title == "confidence"
        else f"event: {curve.title}"
    )


def _says(name, curve):
    """What a diagram shows, in a sentence."""
    error = 100 * binned_error(curve)
    lowest, highest = curve.predicted[0], curve.predicted[-1]
    return (
        f"Reliability diagram of {plain(name)}, {plain(curve.title)}: from predictions of "
        f"{lowest:.2f} with observed frequency {curve.observed[0]:.2f} to predictions of "
        f"{highest:.2f} with {curve.observed[-1]:.2f}; on average the bins are {error:.1f} "
        "percentage points from the diagonal."
    )


def classes_to_show(curves: "list[ReliabilityCurve]", shares: "FloatArray") -> list[int]:
    """Positions of the classes: all of a few; of many the worst, then the most frequent others."""
    if len(curves) <= SHOWN_CLASSES:
        return list(range(len(curves)))
    worst = np.argsort([-binned_error(curve) for curve in curves], kind="stable")[:_WORST]
    others = [c for c in np.argsort(-shares, kind="stable") if c not in worst]
    return [int(c) for c in (*worst, *others[: SHOWN_CLASSES - _WORST])]


def binned_error(curve: "ReliabilityCurve") -> float:
    """The expected calibration error of the bins of a curve."""
    return float(np.average(np.abs(curve.observed - curve.predicted), weights=curve.weight))
