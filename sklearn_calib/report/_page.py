"""The page of a report: one HTML file with everything in it, for a screen and for paper."""

import html
from typing import TYPE_CHECKING

from .._show import in_page
from ..metrics import all_metrics
from ._json import SHOWN_GROUPS, bin_cells, overview
from ._json import advised as advised_rows
from ._pictures import (
    FEW_MODELS,
    SHOWN_CLASSES,
    before_and_after,
    classes_in_small,
    models_in_small,
)
from ._style import COLOURS, DIAGRAM, MARK, PAGE
from ._table import cells

if TYPE_CHECKING:
    from ._report import CalibrationReport


def page(report: "CalibrationReport", title: str) -> str:
    """The HTML of a report.

    Parameters
    ----------
    report : CalibrationReport
    title : str
        Not yet escaped, as all names in the report.
    """
    sections = [
        _verdict(report),
        _reliability(report),
        _measures(report),
        _recalibration(report),
        _bins(report),
        _groups(report),
        _classes(report),
        _descriptions({row.measure for row in report.rows}),
    ]
    return _FRAME.format(
        title=in_page(title),
        style=COLOURS + DIAGRAM + MARK + PAGE,
        summary=_summary(report),
        body="\n".join(filter(None, sections)),
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
    if not row.beyond:
        return value
    return f'<strong class="beyond" title="more than chance">{value}&nbsp;&#9650;</strong>'


def _breaking(measure: str) -> str:
    """The name of a measure that may go on in the next line after an underscore."""
    return in_page(measure).replace("_", "_<wbr>")


def _summary(report):
    """Where the rows come from, how many there are, and of what."""
    shown = ", ".join(_name(label, 24) for label in report.classes[:12])
    more = f" and {len(report.classes) - 12} more" if len(report.classes) > 12 else ""
    rows = f"{report.n_samples:,} rows; {len(report.classes)} classes: {shown}{more}"
    source = "" if report.source is None else f"<bdi>{in_page(report.source)}</bdi>; "
    made = f"{source}{in_page(report.created)}; sklearn-calib {in_page(report.version)}"
    return f'<p class="source">{made}<br>{rows}</p>'


def _verdict(report):
    """The sentences of a few models; of many one line each, and the sentences on demand."""
    several = len(report.accuracy) > 1
    cards = ""
    for name, verdict in report.verdicts.items():
        title = f"<h3>{_name(name)}</h3>" if several else ""
        said = "".join(f"<p>{in_page(one.text, None)}</p>" for one in verdict.sentences)
        accuracy = f'<p class="note">accuracy {report.accuracy[name]:.4f}</p>'
        cards += f'<div class="verdict">{title}{said}{accuracy}</div>\n'
    if len(report.accuracy) > FEW_MODELS:
        cards = f"{_table_of(*overview(report), kind='names')}\n{_folded(cards, 'in sentences')}"
    return f"<h2>Verdict</h2>\n{cards}"


def _folded(content, title):
    return f"<details><summary>{title}</summary>\n{content}</details>\n"


def _table_of(header, rows, kind=""):
    """A table of texts; the first cell of each line is its name."""
    head = "".join(f'<th scope="col">{_breaking(cell)}</th>' for cell in header)
    body = ""
    for first, *cells_ in rows:
        line = "".join(f"<td>{in_page(cell)}</td>" for cell in cells_)
        body += f'<tr><th scope="row"><bdi>{in_page(first)}</bdi></th>{line}</tr>\n'
    return f"{_table(kind)}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"


def _table(kind=""):
    """The beginning of a table, which scrolls by itself where it is too wide."""
    return f'<div class="wide"><table class="{f"sklearn-calib {kind}".strip()}">'


def _reliability(report):
    few = len(report.accuracy) <= FEW_MODELS
    keys = _KEYS if few else _KEYS[:1] + _KEYS[-1:]
    keys += _AFTER if any(report.advice.values()) else ()
    legend = "".join(keys).format(level=f"{report.level:.0%}")
    drawn = before_and_after(report) if few else models_in_small(report)
    heading = f'<h2>Reliability</h2>\n<ul class="legend">\n{legend}</ul>'
    return f"<section>\n{heading}\n{drawn}</section>"


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
    return f"{_table()}<thead><tr>{header}</tr></thead>\n{groups}</table></div>"


def _wide_table(report):
    """One line per model, one column per measure."""
    measures = list(dict.fromkeys(row.measure for row in report.rows))
    values = {(row.model, row.measure): _value(row) for row in report.rows}
    header = "".join(f'<th scope="col">{_breaking(m)}</th>' for m in ("model", *measures))
    body = ""
    for name in report.accuracy:
        line = "".join(f"<td>{values[name, measure]}</td>" for measure in measures)
        body += f'<tr><th scope="row">{_name(name)}</th>{line}</tr>\n'
    return (
        f"{_table('names')}<thead><tr>{header}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def _recalibration(report):
    """What of the log loss a temperature removes, what the methods gain, and the code for it."""
    lines = report.decomposition_lines()
    items = "".join(f"<li>{in_page(line, None)}</li>" for line in lines)
    text = f"<ul>{items}</ul>\n{_LOSSES_NOTE.format(level=f'{report.level:.0%}')}" if lines else ""
    if len(report.accuracy) > FEW_MODELS and lines:
        text = _folded(text, "what a temperature removes")
    advised = {name: one for name, one in report.advice.items() if one is not None}
    for name, advice in advised.items():
        told = _GAINS_NOTE.format(rows=f"{advice.n_rows:,}")
        part = f"{told}{_table_of(*advised_rows(advice))}\n"
        part += f"<p>To repair it:</p>\n<pre><code>{html.escape(advice.code)}</code></pre>\n"
        text += _of_model(report, name, part)
    return f"<h2>What recalibration gains</h2>\n{text}" if text else ""


def _bins(report):
    """Counts, means and frequencies."""
    header = "score", "rows", "predicted", "observed", f"{report.level:.0%} interval", "ratio"
    text = "".join(
        _of_model(report, name, _table_of(header, map(bin_cells, report.bins(name))) + "\n")
        for name in report.accuracy
    )
    return f"<h2>Bins of equal mass</h2>\n{text}{_BINS_NOTE}"


def _groups(report):
    """The worst groups of each model."""
    text = ""
    for name, found in report.groups.items():
        shown = found.worst(SHOWN_GROUPS)
        rest = len(found.rows) - len(shown)
        more = f'<p class="note">... and {rest} more, less far off.</p>\n' if rest else ""
        table = _table_of(found.header(), map(found.cells, shown), kind="names unbroken")
        text += _of_model(report, name, f"<p>{in_page(found.summary, None)}</p>\n{table}{more}")
    return f"<section>\n<h2>Groups</h2>\n{text}{_GROUPS_NOTE}</section>" if text else ""


def _of_model(report, name, content):
    """A part of a section under the name of its model; closed where there are many."""
    if len(report.accuracy) == 1:
        return content
    if len(report.accuracy) > FEW_MODELS:
        return _folded(content, _name(name))
    return f"<h3>{_name(name)}</h3>\n{content}"


def _classes(report):
    """Each class against the others, of the model with the lowest log loss."""
    count, name = len(report.classes), _best(report)
    drawn = classes_in_small(report, name) if count > 2 else ""
    if not drawn:
        return ""
    shown = "all classes" if count <= SHOWN_CLASSES else _SOME_CLASSES.format(count=count)
    return (
        f'<h2>Each class against the others</h2>\n<p class="note">{_name(name)}: {shown}. '
        "Across: predicted probability of the class; up: how often it is true. Bins have equal "
        f"width.</p>\n{drawn}"
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


_MEASURES_NOTE = """<p class="note">Intervals are bootstraps over rows; those of calibration errors
are corrected for the bias that a finite sample gives them. &ldquo;If calibrated, below&rdquo;:
predictions that are calibrated stay below this value with probability {level}; values beyond it
are marked &#9650;.</p>"""

_LOSSES_NOTE = """<p class="note">Calibration is what a temperature removes from the log loss (with
its {level} interval, where one is known), refinement what remains; a model is worth having as far
as its refinement lies below the log loss of the class frequencies. Every log loss on this page
counts a row as &minus;log(max(p, 2.2e&minus;16)), with p the probability of its true class.</p>"""

_GAINS_NOTE = """<p class="note">Would recalibration help? Mean losses of {rows} rows, each
recalibrated by a fit that has not seen it (5 folds); the gain is in log loss, in nats, with its
standard error. &ldquo;Identity&rdquo; leaves the probabilities as they are.</p>"""

_BINS_NOTE = """<p class="note">Score: smallest and largest of the bin; ratio: observed over
predicted. The interval is for the true frequency, for each bin by itself.</p>"""

_GROUPS_NOTE = """<p class="note">The groups furthest off. O/E: observed over expected events, 1 is
right; in the large: how far the log-odds of the group are off, 0 is right; slope of the log-odds, 1
is right. Intervals hold for all groups at once. Sigma: the range of the cumulative differences in
standard deviations. The adjusted p-value allows for the largest of all groups being looked at; it
is exact where all are calibrated.</p>"""

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
_AFTER = (
    _KEY.replace("tone0", "tone1") + '<path class="interval" d="M15 1V15"/><circle class="dot" '
    'cx="15" cy="8" r="3.5"/></svg>after recalibration, of rows that the fit has not seen</li>\n',
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
</body></html>
"""
