"""The reliability diagrams of a report: of which rows, of which classes, in which frame."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._kernels._logit_axis import MEDIAN_OF_RARE
from .._show import in_page, plain
from .._typing import FloatArray
from ..metrics import CurveOfCells, curve_of, reliability_curve
from ._svg import LARGE, SMALL, Frame, Series, diagram, short

if TYPE_CHECKING:
    from ..metrics import Case, ReliabilityCurve
    from ..summary import CalibrationSummary
    from ._content import Content
    from ._models import Model

FEW_MODELS = 3  # each with large diagrams; more share a grid of small ones
SHOWN_CLASSES, _WORST = 12, 6  # of more classes: the worst, and the most frequent of the others
_BINS, _SMALL_BINS, _CLASS_BINS = 15, 10, 5
_BANDS = 200  # draws of clusters
_CELLS = 4096  # bands are drawn from so many cells of a summary
_BEFORE, _AFTER = "before", "after recalibration (auto)"


class Figure(NamedTuple):
    """A diagram with its title, a note, and a name for those who do not see it; not escaped."""

    title: Any  # the name of a class may be a number
    note: str
    says: str
    series: list[Series]
    frame: Frame = LARGE

    def drawn(self) -> str:
        """HTML that is safe."""
        note = f"<span>{in_page(self.note)}</span>" if self.note else ""
        says = f"Reliability diagram of {plain(self.says)}: {_sentence(self.series)}"
        return (
            f"<figure><figcaption><bdi>{in_page(self.title, 60)}</bdi>{note}</figcaption>\n"
            f"{diagram(self.series, says, self.frame)}</figure>\n"
        )


class Gallery(NamedTuple):
    """Diagrams whose curves are computed, to be drawn in rows, and the key to their signs.

    Attributes
    ----------
    rows : list of (str, list of Figure)
        With a heading, not escaped, or "".
    legend : str
        HTML that is safe.
    kind : {"pair", "panels"}
        How a row is laid out.
    """

    rows: list[tuple[str, list[Figure]]]
    legend: str
    kind: str = "pair"

    def drawn(self) -> str:
        """HTML that is safe."""
        text = ""
        for heading, figures in self.rows:
            text += f"<h3><bdi>{in_page(heading, 60)}</bdi></h3>\n" if heading else ""
            shown = "".join(figure.drawn() for figure in figures)
            text += f'<div class="{self.kind}">\n{shown}</div>\n'
        if not self.legend:
            return text
        return f'<div class="drawn">\n<ul class="legend">\n{self.legend}</ul>\n{text}</div>'


def reliability_gallery(report: "Content") -> Gallery:
    """The diagrams of all models; of a few large ones, before and after recalibration."""
    few, on_log_odds = len(report.accuracy) <= FEW_MODELS, rare(report)
    keys: tuple[str, ...] = _KEYS if few else _KEYS[:1] + _KEYS[-1:]
    keys += _KEYS_AFTER if any(report.advice.values()) else ()
    keys += (_KEY_RARE,) if on_log_odds else ()
    legend = "".join(keys).format(level=f"{report.level:.0%}")
    if not few:
        return Gallery([("", _in_small(report, on_log_odds))], legend, "panels")
    pairs: list[tuple[str, list[Figure]]] = []
    singles: list[Figure] = []
    for name, model in report._models.items():
        event = f"event: class {plain(model.positive, 40)}" if model.two_classes else _EVENT
        advice = report.advice.get(name)
        if advice is None:
            series = [_with_steps(model.summary, report.level, 0, model)]
            frame = _frame(LARGE, on_log_odds, series)
            singles.append(Figure(name, event, plain(name), series, frame))
            continue
        drawn = [
            _with_steps(summary, report.level, tone, model)
            for tone, summary in enumerate(advice.summaries().values())
        ]
        frame = _frame(LARGE, on_log_odds, drawn)
        figures = [
            Figure(when, event, f"{name}, {when}", [one], frame)
            for when, one in zip((_BEFORE, _AFTER), drawn, strict=True)
        ]
        pairs.append((name if len(report.accuracy) > 1 else "", figures))
    return Gallery(pairs + ([("", singles)] if singles else []), legend)


def gallery_of_labels(models: "Mapping[str, Model]", level: float) -> Gallery:
    """A large diagram of each of a few two-class problems."""
    figures = [
        Figure(
            name,
            f"{model.summary.n_samples:,} rows",
            name,
            [_with_steps(model.summary, level, 0, model)],
        )
        for name, model in models.items()
    ]
    return Gallery([("", figures)], "".join(_KEYS).format(level=f"{level:.0%}"))


def _in_small(report, on_log_odds):
    """One small diagram per model; before and after share it where there is advice."""
    figures = []
    for name, model in report._models.items():
        advice = report.advice.get(name)
        shown = [model.summary] if advice is None else advice.summaries().values()
        options = {"level": report.level, "n_bins": _SMALL_BINS, "n_resamples": 0}
        series = [
            Series(_curve(summary, **options), None, tone) for tone, summary in enumerate(shown)
        ]
        frame = _frame(SMALL, on_log_odds, series)
        figures.append(Figure(name, "", plain(name), series, frame))
    return figures


def rare(report: "Content") -> bool:
    """Whether the median probability of every model of two classes is below 0.02."""
    for model in report._models.values():
        if not model.two_classes:
            return False
        (sample,) = model.summary.samples()
        score, mass = sample.proba[:, 1], sample.weight.sum(axis=1)
        if mass[score < MEDIAN_OF_RARE].sum() < 0.5 * mass.sum():
            return False
    return True


def _frame(frame: Frame, on_log_odds: bool, series: list[Series]) -> Frame:
    """The frame, on log-odds where events are rare."""
    curves = [curve for one in series for curve in (one.curve, one.steps) if curve is not None]
    return frame.on_log_odds(curves) if on_log_odds else frame


def gallery_of_classes(report: "Content", name: str) -> Gallery | None:
    """One small diagram per class against the others; of many classes some.

    None of two classes, and of a summary.
    """
    advice, case = report.advice.get(name), report._models[name].case
    if len(report.classes) < 3 or case is None:
        return None
    cases = [case] if advice is None else [advice.given, advice.recalibrated]
    curves = [_of_classes(one, report.level) for one in cases]
    mass = np.bincount(cases[0].codes, cases[0].weight, minlength=len(case.classes))
    shares = mass / mass.sum()
    figures = []
    for number in classes_to_show(curves[0], shares):
        label = report.classes[number]
        series = [Series(of_class[number], None, tone) for tone, of_class in enumerate(curves)]
        says = f"{plain(name)}, class {plain(label)}"
        figures.append(Figure(label, f"{shares[number]:.1%} of the rows", says, series, SMALL))
    return Gallery([("", figures)], "", "panels")


def _of_classes(case: "Case", level: float) -> "list[ReliabilityCurve]":
    return reliability_curve(
        case.codes,
        case.proba,
        labels=np.arange(len(case.classes)),
        sample_weight=case.weight,
        multiclass="classwise",
        strategy="uniform",
        n_bins=_CLASS_BINS,
        n_resamples=0,
        level=level,
    )


def _with_steps(summary, level, tone, model):
    steps = _curve(summary, strategy="isotonic", n_resamples=0)
    if model.n_clusters is None:
        return Series(_curve(summary, level=level, n_bins=_BINS), steps, tone)
    if tone:  # recalibrated: of these clusters nothing is kept
        curve = _curve(summary, level=level, n_bins=_BINS, n_resamples=0)
        curve = replace(curve, confidence_low=curve.observed, confidence_high=curve.observed)
        return Series(curve, steps, tone)
    (problem,) = model.case.problems()
    rows = CurveOfCells(model.cells(_CELLS), problem.title)
    rng = np.random.default_rng(0)
    given = "quantile", _BINS, level, _BANDS, rng, "calibration_report"
    return Series(curve_of(rows, *given), steps, tone)


def _curve(summary: "CalibrationSummary", **options: Any) -> "ReliabilityCurve":
    """The curve of a summary in so many cells as a picture shows."""
    (curve,) = to_draw(summary).reliability_curve(**options)
    return curve


def to_draw(summary: "CalibrationSummary") -> "CalibrationSummary":
    """A summary of cells that are few enough to draw bands from."""
    if summary.exact or (summary.classes is not None and len(summary.classes) > 2):
        return summary
    return summary.coarsen(min(summary.max_cells, _CELLS))


def _sentence(series):
    """What a diagram shows, in words."""
    parts = []
    for one in series:
        curve = one.curve
        parts.append(
            f"predictions from {short(curve.predicted[0], 2)} (observed "
            f"{short(curve.observed[0], 2)}) to {short(curve.predicted[-1], 2)} (observed "
            f"{short(curve.observed[-1], 2)}), on average "
            f"{100 * binned_error(curve):.1f} percentage points from the diagonal"
        )
    return "; after recalibration ".join(parts) + "."


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


_EVENT = "event: the predicted class is true"

_KEY = '<li><svg class="diagram tone0" viewBox="0 0 30 16" aria-hidden="true">'
_KEYS = (
    f'{_KEY}<path class="interval" d="M15 1V15"/><circle class="dot" cx="15" cy="8" r="3.5"/></svg>'
    "rows in bins, with {level} interval</li>\n",
    f'{_KEY}<path class="steps" d="M1 13H10V8H20V3H29"/></svg>isotonic fit, without bins</li>\n',
    f'{_KEY}<path class="band" d="M1 4H29V12H1Z"/></svg>where calibrated predictions lie '
    "({level})</li>\n",
    f'{_KEY}<path class="diagonal" d="M1 8H29"/></svg>as often as predicted</li>\n',
)
_KEY_RARE = (
    f'{_KEY}<path class="margin" d="M15 1V15"/></svg>events are rare, so axes are on log-odds; '
    "exactly 0 and 1 lie beyond such lines</li>\n"
)
_KEYS_AFTER = (
    _KEY.replace("tone0", "tone1") + '<path class="interval" d="M15 1V15"/><circle class="dot" '
    'cx="15" cy="8" r="3.5"/></svg>after recalibration, of rows that the fit has not seen</li>\n',
)
