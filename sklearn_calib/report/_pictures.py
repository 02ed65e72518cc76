"""The pictures of a report: reliability diagrams, the plane of losses, the Murphy difference."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from .._kernels._picture_axes import (
    MAX_LOG_ODDS_AXIS_MEDIAN_PROBA,
    LogitAxis,
    LossPlane,
    choose_round_numbers,
)
from .._show import escape_html, make_printable
from .._typing import FloatArray
from ..decisions import decision_difference
from ..metrics import CurveRows, compute_curve, reliability_curve
from ._evidence import MAX_BINS
from ._svg import (
    LARGE_FRAME,
    SMALL_FRAME,
    DiagramSeries,
    draw_diagram,
    format_with_min_two_digits,
)

if TYPE_CHECKING:
    from ..metrics import ReliabilityCurve
    from ..summary import CalibrationSummary
    from ._models import ReportedModel

# More models share a grid of small diagrams.
MAX_LARGE_DIAGRAM_MODELS = 3
# Of more classes, the worst and the most frequent of the others are shown.
MAX_SHOWN_CLASSES = 12
_N_WORST_CLASSES = 6
_N_SMALL_DIAGRAM_BINS = 10
_N_CLASS_DIAGRAM_BINS = 5
_N_BAND_DRAWS = 200
# Bands are drawn from so many cells of a summary.
_N_BAND_CELLS = 4096
_BEFORE_LABEL = "before"
_AFTER_LABEL = "after recalibration (auto)"


def _draw_figure(title, note, description, series, frame=LARGE_FRAME):
    """Draw a diagram with its title, a note, and a description; all not yet escaped."""
    below = f"<span>{escape_html(note)}</span>" if note else ""
    label = f"Reliability diagram of {make_printable(description)}: {_describe_series(series)}"
    return (
        f"<figure><figcaption><bdi>{escape_html(title, 60)}</bdi>{below}</figcaption>\n"
        f"{draw_diagram(series, label, frame)}</figure>\n"
    )


def arrange_figures(
    rows: Iterable[tuple[str, list[str]]], legend: str, kind: str = "pair"
) -> str:
    """Return figures in rows, and the key to their signs, as HTML that is safe.

    Parameters
    ----------
    rows : iterable of (str, list of str)
        A heading, not escaped, or ""; and figures.
    legend : str
        HTML that is safe.
    kind : {"pair", "panels"}, default="pair"
        How a row is laid out.
    """
    text = ""
    for heading, figures in rows:
        text += f"<h3><bdi>{escape_html(heading, 60)}</bdi></h3>\n" if heading else ""
        text += f'<div class="{kind}">\n{"".join(figures)}</div>\n'
    if not legend:
        return text
    return f'<div class="drawn">\n<ul class="legend">\n{legend}</ul>\n{text}</div>'


def make_diagram_series_by_model(report: Any) -> dict[str, list[DiagramSeries]]:
    """Return the series of the diagrams of all models, before and after recalibration."""
    make = _make_large_series
    if len(report.accuracy) > MAX_LARGE_DIAGRAM_MODELS:
        make = _make_small_series
    curves = {}
    for name, model in report._models.items():
        advice = report.advice.get(name)
        summaries = [model.summary] if advice is None else advice.summaries().values()
        curves[name] = [
            make(summary, report.level, tone, model)
            for tone, summary in enumerate(summaries)
        ]
    return curves


def draw_reliability(report: Any, curves: Mapping[str, list[DiagramSeries]]) -> str:
    """Draw the diagrams of all models, large for a few models, as HTML that is safe."""
    few = len(report.accuracy) <= MAX_LARGE_DIAGRAM_MODELS
    on_log_odds = has_rare_events(report)
    keys = [*_LEGEND_ENTRIES]
    if not few:
        # Small diagrams have neither an isotonic fit nor a band.
        keys = [_LEGEND_ENTRIES[0], _LEGEND_ENTRIES[-1]]
    if any(report.advice.values()):
        keys += _AFTER_LEGEND_ENTRIES
    if on_log_odds:
        keys.append(_RARE_EVENTS_LEGEND_ENTRY)
    legend = "".join(keys).format(level=f"{100 * report.level:.0f} %")
    pairs = []
    alone = []
    for name, model in report._models.items():
        series = curves[name]
        frame = LARGE_FRAME if few else SMALL_FRAME
        if on_log_odds:
            lines = []
            for model_series in series:
                lines.append(model_series.curve)
                if model_series.steps is not None:
                    lines.append(model_series.steps)
            # The axes of all models of a report are of one kind, but each fits its own
            # curves.
            frame = frame.make_log_odds_frame(lines)
        event = _CONFIDENCE_EVENT_LABEL
        if model.two_classes:
            event = f"event: class {make_printable(model.positive, 40)}"
        if not few or len(series) == 1:
            alone.append(
                _draw_figure(
                    name,
                    event if few else "",
                    make_printable(name),
                    series,
                    frame,
                )
            )
            continue
        figures = [
            _draw_figure(when, event, f"{name}, {when}", [model_series], frame)
            for when, model_series in zip(
                (_BEFORE_LABEL, _AFTER_LABEL), series, strict=True
            )
        ]
        pairs.append((name if len(report.accuracy) > 1 else "", figures))
    if alone:
        pairs.append(("", alone))
    return arrange_figures(pairs, legend, "pair" if few else "panels")


def draw_reliability_by_label(
    models: "Mapping[str, ReportedModel]", level: float
) -> str:
    """Draw a large diagram of each of a few two-class problems."""
    figures = []
    for name, model in models.items():
        rows = f"{model.summary.n_samples:,} rows"
        series = [_make_large_series(model.summary, level, 0, model)]
        figures.append(_draw_figure(name, rows, name, series))
    return arrange_figures(
        [("", figures)], "".join(_LEGEND_ENTRIES).format(level=f"{100 * level:.0f} %")
    )


def _make_small_series(summary, level, tone, _):
    (curve,) = coarsen_two_class_cells_for_diagram(summary).reliability_curve(
        level=level, n_bins=_N_SMALL_DIAGRAM_BINS, n_resamples=0
    )
    return DiagramSeries(curve, None, tone)


def has_rare_events(report: Any) -> bool:
    """Return whether the median probability of every model of two classes is below 0.02."""
    for model in report._models.values():
        if not model.two_classes:
            return False
        (sample,) = model.summary.samples()
        score = sample.proba[:, 1]
        mass = sample.weight.sum(axis=1)
        # On linear axes most rows of such models would be in the lower left corner.
        if mass[score < MAX_LOG_ODDS_AXIS_MEDIAN_PROBA].sum() < 0.5 * mass.sum():
            return False
    return True


def draw_class_diagrams_if_multiclass(report: Any, name: str) -> str:
    """Draw one small diagram per class against the others; only some of many classes.

    The text is empty for two classes, and for a summary.
    """
    advice = report.advice.get(name)
    predictions = report._models[name].predictions
    # For two classes the diagram of the positive class shows both.
    if len(report.classes) < 3 or predictions is None:
        return ""
    all_predictions = [predictions]
    if advice is not None:
        all_predictions = [advice.given, advice.recalibrated]
    curves = [
        _make_class_curves(class_predictions, report.level)
        for class_predictions in all_predictions
    ]
    mass = np.bincount(
        all_predictions[0].codes,
        all_predictions[0].weight,
        minlength=len(predictions.classes),
    )
    shares = mass / mass.sum()
    figures = []
    for number in choose_classes(curves[0], shares):
        label = report.classes[number]
        series = [
            DiagramSeries(of_class[number], None, tone)
            for tone, of_class in enumerate(curves)
        ]
        says = f"{make_printable(name)}, class {make_printable(label)}"
        figures.append(
            _draw_figure(
                label,
                f"{100 * shares[number]:.1f} % of the rows",
                says,
                series,
                SMALL_FRAME,
            )
        )
    return arrange_figures([("", figures)], "", "panels")


def _make_class_curves(predictions, level):
    """Return a curve for each class against the others."""
    return reliability_curve(
        predictions.codes,
        predictions.proba,
        labels=np.arange(len(predictions.classes)),
        sample_weight=predictions.weight,
        multiclass="classwise",
        strategy="uniform",
        n_bins=_N_CLASS_DIAGRAM_BINS,
        n_resamples=0,
        level=level,
    )


def _make_large_series(summary, level, tone, model):
    """Return bins with intervals, and the isotonic fit; `tone` 1 is after recalibration."""
    cells = coarsen_two_class_cells_for_diagram(summary)
    options = {"level": level, "n_bins": MAX_BINS}
    (steps,) = cells.reliability_curve(strategy="isotonic", n_resamples=0)
    if model.n_clusters is None:
        (curve,) = cells.reliability_curve(**options)
    elif tone:
        (curve,) = cells.reliability_curve(**options, n_resamples=0)
        # The interval of each point needs the clusters of the recalibrated rows: the
        # points are drawn without it.
        curve = replace(
            curve, confidence_low=curve.observed, confidence_high=curve.observed
        )
    else:
        (problem,) = model.predictions.problems()
        rows = CurveRows.from_pooled(
            model.get_cell_or_cluster_sample(_N_BAND_CELLS), problem.title
        )
        curve = compute_curve(
            rows,
            "quantile",
            MAX_BINS,
            level,
            _N_BAND_DRAWS,
            np.random.default_rng(0),
        )
    return DiagramSeries(curve, steps, tone)


def coarsen_two_class_cells_for_diagram(
    summary: "CalibrationSummary",
) -> "CalibrationSummary":
    """Return a summary of cells that are few enough to draw bands from."""
    if summary.exact or (summary.classes is not None and len(summary.classes) > 2):
        return summary
    # The time of drawing bands grows with the number of cells.
    return summary.coarsen(min(summary.max_cells, _N_BAND_CELLS))


def _describe_series(series):
    """Return in words what a diagram shows."""
    parts = []
    for model_series in series:
        curve = model_series.curve
        parts.append(
            f"predictions from {format_with_min_two_digits(curve.predicted[0], 2)} "
            f"(observed {format_with_min_two_digits(curve.observed[0], 2)}) "
            f"to {format_with_min_two_digits(curve.predicted[-1], 2)} "
            f"(observed {format_with_min_two_digits(curve.observed[-1], 2)})"
        )
    return "; after recalibration ".join(parts) + "."


def choose_classes(curves: "list[ReliabilityCurve]", shares: "FloatArray") -> list[int]:
    """Choose all of a few classes; of many the worst, then the most frequent others."""
    if len(curves) <= MAX_SHOWN_CLASSES:
        return list(range(len(curves)))
    worst = np.argsort(
        [-compute_binned_error(curve) for curve in curves], kind="stable"
    )[:_N_WORST_CLASSES]
    others = [
        position
        for position in np.argsort(-shares, kind="stable")
        if position not in worst
    ]
    return [
        int(position)
        for position in (*worst, *others[: MAX_SHOWN_CLASSES - _N_WORST_CLASSES])
    ]


def compute_binned_error(curve: "ReliabilityCurve") -> float:
    """Return the expected calibration error of the bins of a curve."""
    return float(
        np.average(np.abs(curve.observed - curve.predicted), weights=curve.weight)
    )


_CONFIDENCE_EVENT_LABEL = "event: the predicted class is true"

_LEGEND_ENTRY_START = (
    '<li><svg class="diagram tone0" viewBox="0 0 30 16" aria-hidden="true">'
)
_LEGEND_ENTRIES = (
    f'{_LEGEND_ENTRY_START}<path class="interval" d="M15 1V15"/><circle class="dot" '
    'cx="15" cy="8" r="3.5"/></svg>'
    "rows in numbered bins, with {level} interval</li>\n",
    f'{_LEGEND_ENTRY_START}<path class="steps" d="M1 13H10V8H20V3H29"/></svg>isotonic '
    "fit, without bins</li>\n",
    f'{_LEGEND_ENTRY_START}<path class="band" d="M1 4H29V12H1Z"/></svg>where '
    "calibrated predictions lie "
    "({level})</li>\n",
    f'{_LEGEND_ENTRY_START}<path class="diagonal" d="M1 8H29"/></svg>as often as predicted</li>\n',
)
_RARE_EVENTS_LEGEND_ENTRY = (
    f'{_LEGEND_ENTRY_START}<path class="margin" d="M15 1V15"/></svg>events are rare, '
    "so axes are on log-odds; "
    "exactly 0 and 1 lie beyond such lines</li>\n"
)
_AFTER_LEGEND_ENTRIES = (
    _LEGEND_ENTRY_START.replace("tone0", "tone1")
    + '<path class="interval" d="M15 1V15"/><circle class="dot" '
    'cx="15" cy="8" r="3.5"/></svg>after recalibration, of rows that the fit has not seen</li>\n',
)


_DIAGRAM_WIDTH = 376
_DIAGRAM_HEIGHT = 300
_PLOT_LEFT = 74
_PLOT_TOP = 22
_PLOT_RIGHT = 356
_PLOT_BOTTOM = 250
_DIGIT_WIDTH = 7.2
# A difference by paired rows takes some 0.3 s for a million.
_MAX_PAIRED_DIFFERENCE_ROWS = 2_000_000


def draw_model_comparison_if_several(report: Any) -> str:
    """Draw pictures of models beside each other as HTML that is safe.

    The text is empty if the losses of fewer than two models are known.
    """
    if len(report.decomposition) < 2:
        return ""
    parts = _draw_loss_plane(report)
    pair = _get_problem_pair_or_none(report)
    if pair is not None:
        parts += _make_murphy_difference_figure_html(
            report, *_compute_murphy_difference_and_axis(report, *pair)
        )
    return f'<div class="drawn">\n<div class="pair">\n{parts}</div>\n</div>'


def _draw_loss_plane(report):
    """Draw each model as a numbered point, with the names below."""
    parts = report.decomposition
    # Discrimination is the part of the uncertainty that the refinement does not leave.
    x = np.array([decomposition.calibration for decomposition in parts.values()])
    y = np.array(
        [
            decomposition.uncertainty - decomposition.refinement
            for decomposition in parts.values()
        ]
    )
    plane = LossPlane.from_points(x, y, next(iter(parts.values())).uncertainty)
    shapes = []
    losses = []
    for loss, ends in plane.iter_loss_lines():
        start, end = (
            _locate_in_picture(*plane.locate_fraction(a, b))
            for a, b in zip(*ends, strict=True)
        )
        shapes.append(
            f'<path class="margin" d="M{_format_point(start)}L{_format_point(end)}"/>'
        )
        # Lines that leave at the top have their number above, the others at the right
        # border.
        across, up = end
        if up <= _PLOT_TOP + 0.5:
            kind = "middle"
            up -= 5
        else:
            kind = "end"
            across -= 3
            up -= 4
        shapes.append(
            f'<text x="{across:.1f}" y="{up:.1f}" class="{kind}">{loss:.4g}</text>'
        )
    for number, (name, decomposition) in enumerate(parts.items(), 1):
        across, up = _locate_in_picture(
            *plane.locate_fraction(x[number - 1], y[number - 1])
        )
        loss = decomposition.uncertainty + x[number - 1] - y[number - 1]
        losses.append(f"{make_printable(name)} {loss:.4f}")
        # Names of points at the right border stand to the left of them.
        side = -9 if across > _PLOT_RIGHT - 30 else 9
        kind = "end" if side < 0 else "start"
        shapes.append(
            f'<g class="tone0 point"><title>{escape_html(losses[-1], None)}</title>'
            f'<circle class="dot" cx="{across:.1f}" cy="{up:.1f}" r="4"/></g>'
            f'<text x="{across + side:.1f}" y="{up + 4:.1f}" class="name {kind}">{number}</text>'
        )
    axes = _make_plot_axis_elements(
        plane.x_limits, plane.y_limits, "miscalibration [nats]", "discrimination [nats]"
    )
    says = f"Log loss by temperature, in miscalibration and discrimination: {'; '.join(losses)}."
    names = "".join(f"<li><bdi>{escape_html(name, 60)}</bdi></li>" for name in parts)
    title = "What the log loss is made of"
    note = "dotted: equal log loss, which falls towards the upper left"
    return _draw_figure_with_names(
        title,
        note,
        says,
        axes + shapes,
        f"<ol>{names}</ol>",
    )


def _get_problem_pair_or_none(report):
    """Return the problems of two models of two classes, if their rows are independent."""
    models = report._models
    # A difference is of two models, and its band assumes independent rows.
    if len(models) != 2 or report.n_clusters is not None:
        return None
    all_predictions = [model.predictions for model in models.values()]
    for model in models.values():
        rows = model.predictions
        if (
            rows is None
            or len(rows.codes) > _MAX_PAIRED_DIFFERENCE_ROWS
            or not model.two_classes
        ):
            return None
    return [predictions.problems()[0] for predictions in all_predictions]


def _compute_murphy_difference_and_axis(report, first, second):
    """Return the difference of elementary scores; if events are rare, also the axis."""
    axis = thresholds = None
    if has_rare_events(report):
        axis = LogitAxis.from_values(
            [np.quantile(p.score, [0.01, 0.99]) for p in (first, second)]
        )
        # Thresholds evenly spaced on the axis that is shown.
        thresholds = expit(np.linspace(axis.low, axis.high, 99))
    difference = decision_difference(
        first.hit.astype(int),
        second.score,
        first.score,
        thresholds=thresholds,
        level=report.level,
        sample_weight=first.weight,
        labels=[0, 1],
        random_state=report._seed,
    )
    return difference, axis


def _make_murphy_difference_figure_html(report, curve, axis):
    """Draw the difference of elementary scores, on an axis of log-odds if there is one."""
    # A difference of net benefits times 1 - t is one of elementary scores.
    scale = 1 - curve.threshold
    lines = [scale * line for line in (curve.difference, curve.low, curve.high)]
    low = min(lines[1].min(), 0.0)
    high = max(lines[2].max(), 0.0)
    # A difference of exactly 0 everywhere still needs an axis of positive length.
    pad = 0.06 * (high - low) or 1e-3
    limits = low - pad, high + pad
    x = np.asarray(curve.threshold)
    ticks = None
    if axis is not None:
        x = axis.locate_fraction(x)
        places = axis.get_tick_probabilities_and_labels(
            (_PLOT_RIGHT - _PLOT_LEFT) / _DIGIT_WIDTH
        )
        ticks = [(axis.locate_fraction(p), text) for p, text in places]
    zero = -limits[0] / (limits[1] - limits[0])
    paths = []
    for line in lines:
        heights = (line - limits[0]) / np.ptp(limits)
        paths.append(
            [_locate_in_picture(a, b) for a, b in zip(x, heights, strict=True)]
        )
    middle, below, above = paths
    zero_line = "L".join(_format_point(_locate_in_picture(x, zero)) for x in (0, 1))
    shapes = [
        f'<path class="band" d="M{"L".join(map(_format_point, [*below, *above[::-1]]))}Z"/>',
        f'<path class="diagonal" d="M{zero_line}"/>',
        f'<g class="tone0"><path class="line" d="M{"L".join(map(_format_point, middle))}"/></g>',
    ]
    names = [escape_html(name, 40) for name in report._models]
    axes = _make_plot_axis_elements(
        (0.0, 1.0),
        limits,
        "threshold",
        "elementary scores, difference",
        ticks,
    )
    title = "Which of the two for whom (Murphy diagram)"
    note = "below 0, the second is better for users who act at that threshold"
    items = f"<ol><li><bdi>{names[0]}</bdi></li><li><bdi>{names[1]}</bdi></li></ol>"
    says = _describe_murphy_difference(curve, report)
    return _draw_figure_with_names(
        title,
        f"{note}; {100 * report.level:.0f} % interval at each",
        says,
        axes + shapes,
        items,
    )


def _describe_murphy_difference(curve, report):
    """Return the picture in words."""
    first, second = map(make_printable, report._models)
    better = (curve.high < 0).mean()
    worse = (curve.low > 0).mean()
    return (
        f"Mean elementary scores of {second} less those of {first}: at {100 * better:.0f} % of the "
        f"thresholds {second} is better beyond chance, at {100 * worse:.0f} % {first} is."
    )


def _draw_figure_with_names(title, note, description, shapes, names):
    lines = "\n".join(shapes)
    return (
        f"<figure><figcaption>{escape_html(title)}<span>{escape_html(note)}</span></figcaption>\n"
        f'<svg class="diagram large" viewBox="0 0 {_DIAGRAM_WIDTH} {_DIAGRAM_HEIGHT}" role="img" '
        f'aria-label="{escape_html(description, None)}">\n{lines}\n</svg>\n{names}</figure>\n'
    )


def _locate_in_picture(across, up):
    """Convert fractions of both axes to a place in the picture."""
    x = _PLOT_LEFT + (_PLOT_RIGHT - _PLOT_LEFT) * float(across)
    # Places are counted from the top.
    y = _PLOT_BOTTOM - (_PLOT_BOTTOM - _PLOT_TOP) * float(up)
    return x, y


def _format_point(point):
    return f"{point[0]:.1f} {point[1]:.1f}"


def _make_plot_axis_elements(x_limits, y_limits, across, up, x_ticks=None):
    """Draw grid, numbers and names of the axes; `x_ticks` are (share, text)."""
    x_low, x_high = x_limits
    y_low, y_high = y_limits
    if x_ticks is None:
        x_ticks = [
            ((value - x_low) / (x_high - x_low), text)
            for value, text in _make_tick_value_and_text_pairs(x_low, x_high)
        ]
    parts = []
    grid = ""
    for share, text in x_ticks:
        x, _ = _locate_in_picture(share, 0)
        grid += f"M{x:.1f} {_PLOT_TOP}V{_PLOT_BOTTOM}"
        parts.append(
            f'<text x="{x:.1f}" y="{_PLOT_BOTTOM + 16}" class="middle">{text}</text>'
        )
    for value, text in _make_tick_value_and_text_pairs(y_low, y_high):
        _, y = _locate_in_picture(0, (value - y_low) / (y_high - y_low))
        grid += f"M{_PLOT_LEFT} {y:.1f}H{_PLOT_RIGHT}"
        parts.append(
            f'<text x="{_PLOT_LEFT - 6}" y="{y + 4:.1f}" class="end">{text}</text>'
        )
    middle = (_PLOT_LEFT + _PLOT_RIGHT) / 2, (_PLOT_TOP + _PLOT_BOTTOM) / 2
    return [
        f'<path class="grid" d="{grid}"/>',
        *parts,
        f'<text x="{middle[0]:.1f}" y="{_DIAGRAM_HEIGHT - 8}" class="middle name">{across}</text>',
        f'<text transform="translate(12 {middle[1]:.1f}) rotate(-90)" class="middle name">{up}'
        "</text>",
    ]


def _make_tick_value_and_text_pairs(low, high):
    """Return round numbers between two ends, with their texts (a minus, not a hyphen)."""
    return [
        (value, f"{value:g}".replace("-", "\u2212"))
        for value in choose_round_numbers(low, high)
    ]
