"""A report as dicts, JSON, Markdown and text."""

import json
import math
from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import plain
from ._table import cells

if TYPE_CHECKING:
    from ._advice import Advice
    from ._evidence import Bin
    from ._report import CalibrationReport

FORMAT, SCHEMA = "sklearn-calib-report", 1
_FULL = 3  # models whose rows are shown one below the other; more become one row each
_WIDTH = 100
SHOWN_GROUPS = 20  # of each model, the worst
_YES = {True: "yes", False: "no", None: "too few rows"}


def as_dict(report: "CalibrationReport") -> dict[str, Any]:
    """What `CalibrationReport.to_dict` returns."""
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": report.version,
        "created": report.created,
        "source": report.source,
        "n_rows": report.n_samples,
        "classes": report.classes,
        "level": report.level,
        "models": [_model(report, name) for name in report.accuracy],
    }
    return _clean(content)


def _model(report, name):
    parts, line, advice = report.decomposition.get(name), report.line(name), report.advice[name]
    below, zeros = report.floored[name]
    keys = "risk", "calibration", "refinement", "uncertainty"
    measured = "measure", "value", "low", "high", "if_calibrated"
    return {
        "name": name,
        "accuracy": report.accuracy[name],
        "verdict": report.verdicts[name].to_dict(),
        "measures": [
            {key: getattr(row, key) for key in measured} for row in report.rows if row.model == name
        ],
        "decomposition": None if parts is None else {key: getattr(parts, key) for key in keys},
        "log_loss": {
            "rows_below_floor": below,
            "rows_of_zero": zeros,
            "scikit_learn": report.sklearn_log_loss.get(name),
        },
        "line": None if line is None else line._asdict(),
        "bins": [one._asdict() for one in report.bins(name)],
        "advice": None if advice is None else advice.to_dict(),
        "groups": report.groups[name].to_dict() if name in report.groups else None,
    }


def _clean(value):
    """Plain Python without NaN and infinities."""
    if isinstance(value, dict):
        return {str(key): _clean(one) for key, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_clean(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def as_json(report: "CalibrationReport") -> str:
    """The dict as JSON, indented, for any reader: ASCII, no NaN."""
    return json.dumps(as_dict(report), indent=1, allow_nan=False) + "\n"


def as_text(report: "CalibrationReport") -> str:
    """What ``print(report)`` shows."""
    many = len(report.accuracy) > _FULL
    lines = [*_origin(report), f"{report.n_samples} rows, {len(report.classes)} classes"]
    if many:
        lines += ["", *_aligned(*overview(report)), "", *_aligned(*_wide(report))]
        return "\n".join(lines)
    for name, value in report.accuracy.items():
        lines.append(f"accuracy of {plain(name)}: {value:.4f}")
    for name, verdict in report.verdicts.items():
        said = f"{plain(name)}: {verdict}" if len(report.accuracy) > 1 else str(verdict)
        lines += ["", fill(said, _WIDTH)]
    table = _aligned(_header(report), [cells(row) for row in report.rows])
    lines += ["", *table, *report.decomposition_lines()]
    for name, found in report.groups.items():
        lines += ["", fill(f"groups of {plain(name)}: {found.summary}", _WIDTH), ""]
        lines += _aligned(found.header(), [found.cells(row) for row in found.worst(SHOWN_GROUPS)])
    for name, advice in report.advice.items():
        if advice is not None:
            lines += ["", _question(name, advice), *_aligned(*advised(advice))]
    return "\n".join(lines)


def as_markdown(report: "CalibrationReport") -> str:
    """What `CalibrationReport.to_markdown` returns."""
    lines = ["# Calibration report", ""]
    if report.source is not None:
        lines += [*map(_escaped, _origin(report)), ""]
    lines += [f"{report.n_samples} rows, {len(report.classes)} classes.", ""]
    if len(report.accuracy) > _FULL:
        lines += [*_piped(*overview(report)), "", *_piped(*_wide(report)), ""]
    else:
        for name, verdict in report.verdicts.items():
            said = f"accuracy {report.accuracy[name]:.4f}"
            lines += [f"## {_escaped(plain(name))}", "", f"{verdict} ({said})", ""]
        lines += [*_piped(_header(report), [cells(row) for row in report.rows]), ""]
        lines += [f"* {_escaped(line)}" for line in report.decomposition_lines()] + [""]
    for name in report.accuracy:
        lines += _sections_of_model(report, name)
    return "\n".join(lines).rstrip() + "\n"


def _sections_of_model(report, name):
    """Bins, groups and advice."""
    lines, advice = [], report.advice[name]
    if len(report.accuracy) <= _FULL:
        header = ("score", "rows", "predicted", "observed", f"{report.level:.0%} interval", "ratio")
        table = [bin_cells(one) for one in report.bins(name)]
        lines += [f"## Bins of {_escaped(plain(name))}", "", *_piped(header, table), ""]
    if name in report.groups:
        found = report.groups[name]
        table = [found.cells(row) for row in found.worst(SHOWN_GROUPS)]
        lines += [f"## Groups of {_escaped(plain(name))}", "", _escaped(found.summary), ""]
        lines += [*_piped(found.header(), table), ""]
    if advice is not None:
        lines += [f"## {_escaped(_question(name, advice))}", "", *_piped(*advised(advice)), ""]
        lines += ["```python", advice.code.rstrip(), "```", ""]
    return lines


def bin_cells(one: "Bin") -> tuple[str, ...]:
    """A bin as texts: scores, rows, prediction, frequency, its interval, their ratio."""
    ratio = one.observed_over_expected
    return (
        f"{one.low:.4f} to {one.high:.4f}",
        f"{one.rows}",
        f"{one.predicted:.4f}",
        f"{one.observed:.4f}",
        f"{one.observed_low:.4f} to {one.observed_high:.4f}",
        "" if ratio is None else f"{ratio:.3f}",
    )


def _origin(report):
    if report.source is None:
        return []
    said = f"{plain(report.source, 200)}; {report.created}; sklearn-calib {report.version}"
    return [f"source: {said}"]


def _header(report):
    return ("model", "measure", "value", f"{report.level:.0%} interval", "if calibrated")


def overview(report: "CalibrationReport") -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The verdicts on many models, one row each."""
    header = ("model", "accuracy", "calibrated", "p", "error in points", "direction")
    rows = []
    for name, verdict in report.verdicts.items():
        by_topic = {sentence.topic: sentence.numbers for sentence in verdict.sentences}
        size, direction = by_topic.get("size"), by_topic.get("direction", {})
        rows.append(
            (
                plain(name, 24),
                f"{report.accuracy[name]:.4f}",
                _YES[verdict.calibrated],
                f"{verdict.p_value:.3f}",
                "" if size is None else f"{100 * size['low']:.1f} to {100 * size['high']:.1f}",
                ", ".join(direction.get("words", ())),
            )
        )
    return header, rows


def _wide(report):
    """One row per model, one column per measure; * beyond the value if calibrated."""
    measures = list(dict.fromkeys(row.measure for row in report.rows))
    short = [name.replace("calibration_error", "error").replace("_", " ") for name in measures]
    found = {(row.model, row.measure): row for row in report.rows}
    rows = []
    for name in report.accuracy:
        marked = (found[name, measure] for measure in measures)
        values = [f"{row.value:.4f}{'*' if row.beyond else ''}" for row in marked]
        rows.append((plain(name, 24), *values))
    return ("model (* not by chance)", *short), rows


def _question(name, advice):
    return (
        f"{plain(name)}: would recalibration help? ({advice.n_rows} rows, each judged by a fit "
        "that has not seen it)"
    )


def advised(advice: "Advice") -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The methods of an advice, one row each."""
    header = ("method", "log loss", "gain", "standard error", "Brier", "ECE")
    rows = [(row.method, *(f"{value:.4f}" for value in row[1:])) for row in advice.rows]
    return header, rows


def _aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]


def _piped(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(_escaped, line))} |" for line in lines]


def _escaped(text):
    """Names of columns mean nothing to Markdown."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return text
