"""The page of a report: one HTML file with everything in it, for a screen and for paper."""

from typing import TYPE_CHECKING, Any

from .._show import MARK, Section, html_of, in_notebook, in_page
from ._pictures import reliability_gallery
from ._sections import measures, reliability, verdicts
from ._style import COLOURS, DIAGRAM, NOTEBOOK, PAGE

if TYPE_CHECKING:
    from ._content import Content


def rows_and_classes(report: "Content") -> str:
    """What a report is about, already escaped."""
    shown = ", ".join(f"<bdi>{in_page(label, 24)}</bdi>" for label in report.classes[:12])
    more = f" and {len(report.classes) - 12} more" if len(report.classes) > 12 else ""
    return f"{report.n_samples:,} rows; {len(report.classes)} classes: {shown}{more}"


def page(report: Any, title: str, rows: str, sections: list[Section]) -> str:
    """The HTML of a report.

    Parameters
    ----------
    report : Content or LabelReport
    title : str
        Not yet escaped, as all names in the report.
    rows : str
        Of what, already escaped.
    sections : list of Section
    """
    source = "" if report.source is None else f"<bdi>{in_page(report.source)}</bdi>; "
    made = f"{source}{in_page(report.created)}; sklearn-calib {in_page(report.version)}"
    return _FRAME.format(
        title=in_page(title),
        style=COLOURS + DIAGRAM + MARK + PAGE,
        summary=f'<p class="source">{made}<br>{rows}</p>',
        body=html_of(sections),
    )


def notebook(report: "Content") -> str:
    """Verdict, pictures and measures for a notebook, whose own style the tables keep."""
    drawn = reliability(reliability_gallery(report))
    return in_notebook(html_of([verdicts(report), drawn, measures(report)], level=3), NOTEBOOK)


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
