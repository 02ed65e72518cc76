"""The page of a report: one HTML file with everything in it, for a screen and for paper."""

import html
from typing import TYPE_CHECKING

from .._show import in_page
from .._version import __version__
from ..metrics import all_metrics
from ._pictures import FEW_MODELS, SHOWN_CLASSES, Pictures
from ._style import COLOURS, DIAGRAM, MARK, PAGE
from ._table import cells

if TYPE_CHECKING:
    from ._report import CalibrationReport
    from ._table import ReportRow


def page(report: "CalibrationReport", title: str) -> str:
    """The HTML of a report.

    Parameters
    ----------
    report : CalibrationReport
    title : str
        Not yet escaped, as all names in the report.
    """
    pictures = Pictures(report)
    sections = [
        _reliability(report, pictures),
        _measures(report),
        _losses(report),
        _classes(report, pictures),
        _descriptions({row.measure for row in report.rows}),
    ]
    return _FRAME.format(
        title=in_page(title),
        style=COLOURS + DIAGRAM + MARK + PAGE,
        summary=_summary(report),
        body="\n".join(filter(None, sections)),
        version=__version__,
    )


def table(report: "CalibrationReport") -> str:
    """The rows of a report for a notebook, whose own style the table keeps."""
    header = "".join(f"<th>{cell}</th>" for cell in ("model", *_header(report)))
    body = "".join(
        f"<tr><td>{in_page(cells(row)[0])}</td>{_cells(row)}</tr>\n" for row in report.rows
    )
    return (
        f'<style>\n{MARK}</style>\n<table class="sklearn-calib"><thead><tr>{header}</tr></thead>'
        f"<tbody>\n{body}</tbody></table>"
    )


def _header(report):
    return "measure", "value", f"{report.level:.0%} interval", "if calibrated, below"


def _cells(row):
    """All but the model."""
    _, measure, _, interval, limit = cells(row)
    columns = _breaking(measure), _value(row), interval, limit
    return "".join(f"<td>{cell}</td>" for cell in columns)


def _value(row):
    """The value; marked where it is beyond what chance explains."""
    value = cells(row)[2]
    if not beyond(row):
        return value
    return f'<strong class="beyond" title="more than chance">{value}&nbsp;&#9650;</strong>'


def _breaking(measure: str) -> str:
    """The name of a measure that may go on in the next line after an underscore."""
    return in_page(measure).replace("_", "_<wbr>")


def beyond(row: "ReportRow") -> bool:
    """Whether the value is worse than calibrated predictions give by chance."""
    if all_metrics()[row.measure].spec.greater_is_better:
        return row.value < row.if_calibrated
    return row.value > row.if_calibrated


def _summary(report):
    shown = ", ".join(_name(label, 24) for label in report.classes[:12])
    more = f" and {len(report.classes) - 12} more" if len(report.classes) > 12 else ""
    models = "".join(
        f"<li>{_name(name)}: accuracy {value:.4f}</li>" for name, value in report.accuracy.items()
    )
    text = f"{report.n_samples:,} rows; {len(report.classes)} classes: {shown}{more}"
    return f"<p>{text}</p>\n{_folded(models, len(report.accuracy), 'accuracy of each model')}"


def _folded(items, count, title):
    """A list, closed where it is long."""
    listed = f"<ul>{items}</ul>"
    return listed if count <= 5 else f"<details><summary>{title}</summary>{listed}</details>"


def _reliability(report, pictures):
    few = len(report.accuracy) <= FEW_MODELS
    keys = _KEYS if few else _KEYS[:1] + _KEYS[-1:]
    legend = "".join(keys).format(level=f"{report.level:.0%}")
    drawn = pictures.large() if few else pictures.small()
    return f'<h2>Reliability</h2>\n<ul class="legend">\n{legend}</ul>\n{drawn}'


def _name(name: object, limit: int = 60) -> str:
    return f"<bdi>{in_page(name, limit)}</bdi>"


def _measures(report):
    note = _MEASURES_NOTE.format(level=f"{report.level:.0%}")
    if len(report.accuracy) <= FEW_MODELS:
        return f"<h2>Measures</h2>\n{_long_table(report)}\n{note}"
    return (
        f"<h2>Measures</h2>\n{_wide_table(report)}\n<details><summary>with intervals</summary>"
        f"{_long_table(report)}</details>\n{note}"
    )


def _long_table(report):
    """One line per model and measure."""
    header = "".join(f'<th scope="col">{cell}</th>' for cell in _header(report))
    groups = ""
    for name in report.accuracy:
        rows = "".join(f"<tr>{_cells(row)}</tr>\n" for row in report.rows if row.model == name)
        if len(report.accuracy) > 1:
            rows = f'<tr><th colspan="4" scope="rowgroup">{_name(name)}</th></tr>\n{rows}'
        groups += f"<tbody>\n{rows}</tbody>\n"
    return f"{_TABLE}<thead><tr>{header}</tr></thead>\n{groups}</table></div>"


def _wide_table(report):
    """One line per model, one column per measure."""
    measures = list(dict.fromkeys(row.measure for row in report.rows))
    values = {(row.model, row.measure): _value(row) for row in report.rows}
    header = "".join(f'<th scope="col">{_breaking(m)}</th>' for m in ("model", *measures))
    body = ""
    for name in report.accuracy:
        line = "".join(f"<td>{values[name, measure]}</td>" for measure in measures)
        body += f'<tr><th scope="row">{_name(name)}</th>{line}</tr>\n'
    return f"{_TABLE}<thead><tr>{header}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"


def _losses(report):
    """What of the log loss a temperature removes."""
    lines = report.decomposition_lines()
    if not lines:
        return ""
    items = "".join(f"<li>{in_page(line, None)}</li>" for line in lines)
    note = _LOSSES_NOTE.format(level=f"{report.level:.0%}")
    shown = _folded(items, len(lines), "of each model")
    return f"<h2>What recalibration can remove</h2>\n{shown}\n{note}"


def _classes(report, pictures):
    """Each class against the others, of the model with the lowest log loss or Brier loss."""
    count = len(report.classes)
    if count <= 2 or not pictures.of_rows:
        return ""
    name = _best(report)
    of_all = "all classes" if count <= SHOWN_CLASSES else _SOME_CLASSES.format(count=count)
    return (
        f'<h2>Each class against the others</h2>\n<p class="note">{_name(name)}: {of_all}. Across: '
        f"predicted probability of the class; up: how often it is true.</p>\n"
        f"{pictures.classes(name)}"
    )


def _best(report: "CalibrationReport") -> str:
    """The model with the lowest log loss, or the first where no log loss was asked for."""
    losses = {row.model: row.value for row in report.rows if row.measure == "log_loss"}
    return min(losses, key=losses.__getitem__) if losses else next(iter(report.accuracy))


def _descriptions(names):
    lines = "".join(
        f"<dt>{name}</dt><dd>{html.escape(function.__doc__.splitlines()[0].replace('`', ''))}</dd>"
        for name, function in all_metrics().items()
        if name in names
    )
    return f'<h2>What the measures mean</h2>\n<dl class="note">{lines}</dl>'


_TABLE = '<div class="wide"><table class="sklearn-calib">'

_MEASURES_NOTE = """<p class="note">The {level} interval is the percentile bootstrap over rows.
&ldquo;If calibrated, below&rdquo;: predictions that are calibrated stay below this value with
probability {level}; values beyond it are marked &#9650;. Near 0 the bootstrap interval of a
calibration error lies too high, and that column is the one to read.</p>"""

_LOSSES_NOTE = """<p class="note">Calibration is what a temperature removes from the log loss (with
its {level} interval, where one is known), refinement what remains; a model is worth having as far
as its refinement lies below the log loss of the class frequencies. Every log loss on this page
counts a row as &minus;log(max(p, 2.2e&minus;16)), with p the probability of its true class.</p>"""

_SOME_CLASSES = """of {count} classes the six with the largest expected calibration error, then the
six most frequent of the others"""

_KEY = '<li><svg class="diagram tone0" viewBox="0 0 30 16" aria-hidden="true">'
_KEYS = (
    f'{_KEY}<path class="interval" d="M15 1V15"/><circle class="dot" cx="15" cy="8" r="3.5"/></svg>'
    "rows in bins, with {level} interval</li>\n",
    f'{_KEY}<path class="steps" d="M1 13H10V8H20V3H29"/></svg>isotonic fit, without bins</li>\n',
    f'{_KEY}<path class="band" d="M1 4H29V12H1Z"/></svg>where calibrated predictions lie '
    "({level})</li>\n",
    f'{_KEY}<path class="diagonal" d="M1 8H29"/></svg>as often as predicted</li>\n',
)

_FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style></head><body>
<main>
<h1>{title}</h1>
{summary}
{body}
</main>
<footer class="note"><p>sklearn-calib {version}</p></footer>
</body></html>
"""
