"""How a report is written: as a page, as Markdown, as dicts and JSON."""

import json
import math
import os
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from .._files.atomic import write_atomically
from .._files.input_files import get_path_text
from .._show import (
    SHARED_CSS,
    RenderableMixin,
    Section,
    escape_html,
    render_html,
    render_markdown,
    wrap_for_notebook,
)
from .._version import __version__

LIGHT_COLOURS_CSS = """
  --page: #ffffff; --text: #1f2328; --muted: #57606a; --rule: #d5dae0; --soft: #f3f5f7;
  --band: #dfe3e8; --before: #0072b2; --after: #c65102; --beyond: #b00020;
  --right: #1a7f37; --open: #9a6700;"""

DARK_COLOURS_CSS = """
  --page: #16191d; --text: #e6e8eb; --muted: #a9b1ba; --rule: #3a4149; --soft: #22272d;
  --band: #363d45; --before: #5cb8ee; --after: #f5a33b; --beyond: #ff8a80;
  --right: #56d364; --open: #e3b341;"""

COLOURS_CSS = f""":root {{ color-scheme: light;{LIGHT_COLOURS_CSS} }}
@media screen and (prefers-color-scheme: dark) {{
  :root {{ color-scheme: dark;{DARK_COLOURS_CSS} }}
}}
"""

DIAGRAM_CSS = """.diagram { display: block; width: 100%; height: auto; overflow: visible; }
.diagram text { fill: var(--muted); font: 12px system-ui, sans-serif; }
.diagram .name { fill: var(--text); }
.diagram.small text { font-size: 11px; }
.diagram .bin { font-size: 11px; }
.diagram .middle { text-anchor: middle; } .diagram .end { text-anchor: end; }
.diagram path { fill: none; }
.grid { stroke: var(--rule); stroke-width: .6; } .frame { stroke: var(--muted); }
.diagonal { stroke: var(--muted); stroke-width: 1.2; stroke-dasharray: 5 4; }
.margin { stroke: var(--muted); stroke-width: .9; stroke-dasharray: 1 3; }
.diagram .band { fill: var(--band); }
.tone0 { --tone: var(--before); } .tone1 { --tone: var(--after); }
.line { stroke: var(--tone); stroke-width: 1.4; }
.steps { stroke: var(--tone); stroke-width: 1.4; stroke-linejoin: round; opacity: .75; }
.interval { stroke: var(--tone); stroke-width: 1.4; }
.dot { fill: var(--tone); stroke: var(--tone); stroke-width: 1.8; } .small .dot { stroke-width: 1; }
.tone1 .dot { fill: var(--page); }
.near { fill: transparent; } .point:hover .dot { stroke-width: 5; }
.near:hover { fill: var(--muted); fill-opacity: .2; }
.diagram .bars { fill: var(--tone); } .outline { stroke: var(--tone); stroke-width: 1.4; }
"""

# In a notebook only the pictures have colours of their own, and a background for them.
NOTEBOOK_CSS = f""".sklearn-calib .drawn {{ {LIGHT_COLOURS_CSS}
  background: var(--page); color: var(--text); padding: .6rem; max-width: 58rem;
  @media (prefers-color-scheme: dark) {{ {DARK_COLOURS_CSS} }}
  .pair, .panels {{ display: grid; gap: 1rem; }}
  .pair {{ grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); }}
  .panels {{ grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); }}
  figure {{ margin: 0; max-width: 26rem; }} figcaption span {{ display: block; }}
  .legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; }}
  .legend .diagram {{ display: inline-block; width: 1.9rem; height: 1rem; }}
  {DIAGRAM_CSS}}}
"""

PAGE_CSS = """*, ::before { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto;
  padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--text);
  overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-top: .6rem;
  border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p, ul { margin: .4rem 0 .8rem; } ul { padding-left: 1.2rem; }
.note, .source, figcaption span { color: var(--muted); font-size: .9rem; }
.verdict { background: var(--soft); border-left: 4px solid; border-radius: 4px;
  padding: .6rem 1rem .2rem; margin: .8rem 0; }
.verdict h3 { margin-top: 0; } .verdict p:first-of-type { font-weight: 600; }
.verdict.wrong { border-color: var(--beyond); }
.verdict.wrong p:first-of-type { color: var(--beyond); }
.verdict.right { border-color: var(--right); }
.verdict.right p:first-of-type { color: var(--right); }
.verdict.open { border-color: var(--open); }
.verdict.open p:first-of-type { color: var(--open); }
.wide { overflow-x: auto; background: /* a shade where there is more to scroll to */
  linear-gradient(to right, var(--page) 40%, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--page) 40%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to right, var(--rule), transparent) left / .8rem 100% no-repeat scroll,
  linear-gradient(to left, var(--rule), transparent) right / .8rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule); text-align: right;
  vertical-align: top; overflow-wrap: normal; }
.names th[scope=row], th[scope=rowgroup] { overflow-wrap: anywhere; min-width: 6rem; }
.unbroken td, .unbroken thead th { white-space: nowrap; }
tbody th { font-weight: 600; }
th:first-child, td:first-child, .text { text-align: left; }
thead th { color: var(--muted); font-weight: 600; vertical-align: bottom; }
pre { background: var(--soft); border-radius: 4px; padding: .8rem; overflow-x: auto;
  font: 14px/1.45 ui-monospace, monospace; white-space: pre-wrap; }
summary { cursor: pointer; font-weight: 600; padding: .3rem 0; }
.pair, .panels { display: grid; gap: 1.2rem 1.5rem; margin-bottom: 1.2rem; }
.pair { grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); max-width: 58rem; }
.panels { grid-template-columns: repeat(auto-fill, minmax(9.8rem, 1fr)); }
figure { margin: 0; max-width: 28rem; } .panels figure { max-width: 13rem; }
figure ol { margin: .3rem 0; padding-left: 1.6rem; font-size: .9rem; }
figcaption { font-weight: 600; line-height: 1.3; margin-bottom: .4rem; }
figcaption span { display: block; font-weight: 400; }
.panels figcaption { font-size: .9rem; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0;
  color: var(--muted); font-size: .9rem; }
.legend .diagram { display: inline-block; width: 1.9rem; height: 1rem; margin-right: .35rem;
  vertical-align: -.15rem; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1rem; }
@media (max-width: 34rem) {
  body { padding: 1rem .75rem 2rem; } h1 { font-size: 1.4rem; }
  table { font-size: .79rem; width: 100%; } th, td { padding-right: .3rem; }
  .unbroken td, .unbroken thead th { white-space: normal; } .unsplit { white-space: nowrap; }
  .names th[scope=row], th[scope=rowgroup] { min-width: 5rem; }
  .panels { gap: 1rem .6rem; }
}
@media print {
  @page { size: A4; margin: 14mm; }
  body { padding: 0; font-size: 10.5pt; max-width: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3, summary, dt { break-after: avoid; }
  section, figure, tr, .verdict, pre { break-inside: avoid; }
  .pair { grid-template-columns: 1fr 1fr; } .panels { grid-template-columns: repeat(4, 1fr); }
  details::details-content { content-visibility: visible; block-size: auto; }
  .wide { overflow: visible; background: none; }
  table { font-size: 8pt; } th, td { padding-right: .4rem; }
  .unbroken td, .unbroken thead th { white-space: normal; }
}
"""


def convert_to_json_values(value: Any) -> Any:
    """Return plain Python without NaN and infinities."""
    if isinstance(value, dict):
        return {str(key): convert_to_json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [convert_to_json_values(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


class WrittenReport(RenderableMixin):
    """A report that is written as a page, as JSON and as Markdown.

    A report has a `to_dict`, its `_make_sections` with pictures or without, those that
    a notebook shows, and `_make_subject_html`, a line of safe HTML about its rows.
    """

    source: str | None
    created: str
    version: str

    def _make_sections(self, drawn: bool = False) -> list[Section]:
        raise NotImplementedError(
            f"{type(self).__name__} has no _make_sections; see WrittenReport"
        )

    def _make_notebook_display_sections(self) -> list[Section]:
        raise NotImplementedError(
            f"{type(self).__name__} has no sections for notebooks"
        )

    def _make_subject_html(self) -> str:
        raise NotImplementedError(
            f"{type(self).__name__} has no _make_subject_html; see WrittenReport"
        )

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError(
            f"{type(self).__name__} has no to_dict; see WrittenReport"
        )

    def to_json(self, path: str | Path | None = None) -> str:
        """Return `to_dict` as JSON.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write it, whole or not at all.

        Returns
        -------
        text : str

        Raises
        ------
        OSError
            The file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_atomically(get_path_text(path), text)
        return text

    def to_markdown(self) -> str:
        """Return the report as Markdown, for an issue, a notebook or a model card."""
        return render_markdown(
            [Section("Calibration report", parts=self._make_sections())]
        )

    def to_html(
        self, path: str | Path, *, title: str = "Calibration report"
    ) -> str | Path:
        """Write one self-contained file to send around: no scripts, no network.

        It is written whole or not at all: on an error an existing file is as it was.

        Parameters
        ----------
        path : str or path-like
        title : str, default="Calibration report"

        Returns
        -------
        path : str
            Where the file is, absolute.

        Raises
        ------
        OSError
            The file cannot be written.

        Notes
        -----
        The pictures are drawn here, as SVG that shows its numbers where a pointer
        rests; matplotlib is not needed. The page follows the reader's light or dark
        colours, and is readable on a telephone and printed on A4. The class of the
        report describes what the page has.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn_calib.report import calibration_report
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(2, 500)
        >>> report = calibration_report(y, proba, n_resamples=20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = Path(report.to_html(Path(folder) / "report.html"))
        ...     text = page.read_text(encoding="utf-8")
        >>> text.count("<svg") > 0, "<script" in text
        (True, False)
        """
        origin = (
            f"{escape_html(self.created)}; sklearn-calib {escape_html(self.version)}"
        )
        if self.source is not None:
            origin = f"<bdi>{escape_html(self.source)}</bdi>; {origin}"
        text = _PAGE_TEMPLATE.format(
            title=escape_html(title),
            style=COLOURS_CSS + DIAGRAM_CSS + SHARED_CSS + PAGE_CSS,
            summary=f'<p class="source">{origin}<br>{self._make_subject_html()}</p>',
            body=render_html(self._make_sections(drawn=True)),
        )
        absolute_path = os.path.abspath(get_path_text(path))
        write_atomically(absolute_path, text)
        return absolute_path

    def _repr_html_(self) -> str:
        return wrap_for_notebook(
            render_html(self._make_notebook_display_sections(), level=3), NOTEBOOK_CSS
        )


class SectionPage(WrittenReport):
    """A page of sections that were made before.

    Parameters
    ----------
    sections : list of Section
    subject : str
        A line about the rows, not yet escaped.
    """

    source = None
    version = __version__

    def __init__(self, sections: list[Section], subject: str) -> None:
        self.created = date.today().isoformat()
        self._sections = sections
        self._subject = subject

    def _make_sections(self, drawn: bool = False) -> list[Section]:
        return self._sections

    def _make_subject_html(self) -> str:
        return escape_html(self._subject)


_PAGE_TEMPLATE = """<!DOCTYPE html>
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
