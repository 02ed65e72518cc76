"""The page of a report: one HTML file with everything in it."""

import base64
import html
import io
import warnings
from typing import TYPE_CHECKING, Any

from .._extras import require
from .._show import in_page
from ..metrics import all_metrics
from ._table import cells

if TYPE_CHECKING:
    from ._report import CalibrationReport


def page(report: "CalibrationReport", title: str, pictures: Any) -> str:
    """The HTML of a report.

    Parameters
    ----------
    report : CalibrationReport
    title : str
    pictures : iterable of (name, display)
        Their figures are closed.
    """
    models = "".join(
        f"<li>{in_page(name)}: accuracy {value:.4f}</li>" for name, value in report.accuracy.items()
    )
    shown = ", ".join(in_page(c) for c in report.classes[:12])
    figures = "".join(
        f"<figure><figcaption>{name}</figcaption>\n{_picture(display, name)}</figure>\n"
        for name, display in pictures
    )
    return _PAGE.format(
        title=in_page(title),
        summary=f"{report.n_samples} rows; {len(report.classes)} classes: {shown}"
        + (", ..." if len(report.classes) > 12 else ""),
        models=models,
        table=table(report),
        parts="".join(f"<li>{in_page(line, None)}</li>" for line in report.decomposition_lines()),
        level=f"{report.level:.0%}",
        measures=_descriptions({row.measure for row in report.rows}),
        pictures=figures,
    )


def table(report: "CalibrationReport") -> str:
    """The rows of a report as an HTML table; values beyond what chance explains are marked."""
    header = ("model", "measure", "value", f"{report.level:.0%} interval", "if calibrated, below")
    head = "".join(f"<th>{in_page(cell)}</th>" for cell in header)
    body = ""
    for row in report.rows:
        flag = ' class="beyond"' if row.value > row.if_calibrated else ""
        texts = cells(row)
        marked = "".join(f"<td>{in_page(cell)}</td>" for cell in texts[:2])
        marked += f"<td{flag}>{texts[2]}</td>"
        marked += "".join(f"<td>{in_page(cell)}</td>" for cell in texts[3:])
        body += f"<tr>{marked}</tr>\n"
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def _descriptions(names):
    lines = [
        f"<dt>{name}</dt><dd>{html.escape(function.__doc__.splitlines()[0].replace('`', ''))}</dd>"
        for name, function in all_metrics().items()
        if name in names
    ]
    return "\n".join(lines)


def _picture(display, name):
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # emoji; the page's text shows them
        display.figure_.savefig(buffer, format="png", dpi=110)
    require("matplotlib.pyplot", "plot", "CalibrationReport.to_html").close(display.figure_)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{in_page(name)}" src="data:image/png;base64,{encoded}">'


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid #ddd; }}
td:nth-child(n+3) {{ font-variant-numeric: tabular-nums; }}
td.beyond {{ color: #b00020; font-weight: 600; }}
.pictures {{ display: flex; flex-wrap: wrap; gap: 1rem; }}
figure {{ margin: 0; }} figcaption {{ font-weight: 600; }}
img {{ max-width: 100%; }}
dt {{ font-weight: 600; }} dd {{ margin: 0 0 .4rem 1rem; }}
.note {{ color: #555; font-size: .9rem; }}
</style></head><body>
<h1>{title}</h1>
<p>{summary}</p>
<ul>{models}</ul>
<h2>Measures</h2>
{table}
<p class="note">The {level} interval is the percentile bootstrap over rows. &ldquo;If calibrated,
below&rdquo;: predictions that are calibrated stay below this value with probability {level};
values beyond it are in red. Near 0 the bootstrap interval of a calibration error lies too high, and
that column is the one to read.</p>
<dl class="note">{measures}</dl>
<h2>What recalibration can remove</h2>
<ul>{parts}</ul>
<p class="note">Calibration is what a temperature removes from the log loss (with its {level}
interval, where one is known), refinement what remains; a model is worth having as far as its
refinement lies below the log loss of the class frequencies. Every log loss on this page counts a
row as &minus;log(max(p, 2.2e&minus;16)), with p the probability of its true class.</p>
<h2>Reliability</h2>
<div class="pictures">
{pictures}</div>
</body></html>
"""
