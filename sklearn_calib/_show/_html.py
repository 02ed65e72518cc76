"""Sections as HTML: parts of a page, or what a notebook shows."""

import html
import re
from collections.abc import Iterable
from itertools import groupby

from ._names import escape_html
from ._sections import MarkedCell, Section, Table, get_cell_text

# A notebook has its own style, which tables keep; only the alignment and the mark are
# ours.
SHARED_CSS = """.sklearn-calib { color: inherit; }
.sklearn-calib .beyond {
  color: var(--beyond, var(--jp-error-color1, var(--vscode-errorForeground, inherit))); }
"""
# A name in a heading is cut off after this many characters.
_MAX_HEADING_CHARACTERS = 60
# Names of up to this many letters stay in one line.
MAX_UNBROKEN_LETTERS = 20
_NOTEBOOK_CSS = """.sklearn-calib th, .sklearn-calib td { padding: .15em .7em; text-align: right; }
.sklearn-calib th:first-child, .sklearn-calib caption, .sklearn-calib .text {
  text-align: left; color: inherit; }
.sklearn-calib tbody th { font-weight: normal; } .sklearn-calib .note { font-size: 90%; }
.sklearn-calib .wide { overflow-x: auto; }
@media print { .sklearn-calib .wide { overflow: visible; }
  .sklearn-calib th, .sklearn-calib td { white-space: normal; overflow-wrap: anywhere; } }
"""


def render_html(sections: Iterable[Section], level: int = 2) -> str:
    """Write sections below each other; `level` is that of their headings."""
    written = []
    for section in sections:
        if section.is_for("html"):
            written.append(_render_html_section(section, level))
    return "\n".join(filter(None, written))


def wrap_for_notebook(text: str, style: str = "") -> str:
    """Wrap a fragment in the styles that it needs outside of a page."""
    css = f"<style>\n{SHARED_CSS}{_NOTEBOOK_CSS}{style}</style>"
    return f'<div class="sklearn-calib">\n{css}\n{text}</div>'


def _render_html_section(section, level):
    blocks = [f"<p>{escape_html(sentence, None)}</p>" for sentence in section.sentences]
    if section.items:
        items = "".join(f"<li>{escape_html(item, None)}</li>" for item in section.items)
        blocks.append(f"<ul>{items}</ul>")
    blocks += [section.picture, *map(render_html_table, section.tables)]
    blocks += [
        f'<p class="note">{escape_html(note, None)}</p>' for note in section.notes
    ]
    blocks += (
        [f"<pre><code>{html.escape(section.code)}</code></pre>"] if section.code else []
    )
    blocks += [render_html(section.parts, level + bool(section.title or section.name))]
    text = "\n".join(filter(None, blocks))
    if section.fold_label:
        summary = f"<summary>{escape_html(section.fold_label, None)}</summary>"
        text = f"<details>{summary}\n{text}\n</details>"
    heading = escape_html(section.title, None)
    if section.name:
        heading = f"<bdi>{escape_html(section.name, _MAX_HEADING_CHARACTERS)}</bdi>"
    if heading:
        text = f"<h{level}>{heading}</h{level}>\n{text}"
    if section.css_class:
        return f'<section class="{section.css_class}">\n{text}\n</section>'
    return text


def render_html_table(table: Table) -> str:
    """Write a table, which scrolls by itself if it is too wide.

    If several columns are names, that of consecutive rows with the same first one is
    shown once.
    """
    head = "".join(
        _render_column_header(name, place < table.n_name_columns)
        for place, name in enumerate(table.header)
    )
    groups = [[row] for row in table.rows]
    between = ""
    if table.n_name_columns > 1:
        groups = [
            [*rows]
            for _, rows in groupby(table.rows, lambda row: get_cell_text(row[0]))
        ]
        between = "</tbody>\n<tbody>\n"
    body = between.join(
        _render_html_rows(group, table.n_name_columns) for group in groups
    )
    caption = (
        f"<caption>{escape_html(table.title, None)}</caption>" if table.title else ""
    )
    kind = f"sklearn-calib {table.css_class}".strip()
    return (
        f'<div class="wide"><table class="{kind}">{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _render_html_rows(group, n_name_columns):
    """Write rows that share their first name."""
    text = ""
    for first, *rest in group:
        cells = ""
        for place, cell in enumerate(rest, 1):
            kind = ' class="text"' if place < n_name_columns else ""
            cells += f"<td{kind}>{_render_html_cell_content(cell)}</td>"
        scope = (
            f'scope="rowgroup" rowspan="{len(group)}"'
            if len(group) > 1
            else 'scope="row"'
        )
        name = _allow_long_name_breaks(escape_html(get_cell_text(first)))
        name = f"<th {scope}><bdi>{name}</bdi></th>"
        text += f"<tr>{name if not text else ''}{cells}</tr>\n"
    return text


def _render_column_header(name, is_text_section):
    """Write the head of a column.

    An empty corner is a plain cell, which is not read out.
    """
    text = _allow_breaks_after_underscores(escape_html(name))
    kind = ' class="text"' if is_text_section else ""
    return f'<th scope="col"{kind}>{text}</th>' if text else "<td></td>"


def _render_html_cell_content(cell):
    text = _allow_long_name_breaks(escape_html(get_cell_text(cell))).replace(
        " %", "&nbsp;%"
    )
    text = re.sub(r"\d[\d.]*e-\d+", r'<span class="unsplit">\g<0></span>', text)
    if not isinstance(cell, MarkedCell):
        return text
    if cell.mark == "beyond":
        return f'<strong class="beyond" title="more than chance">{text}&nbsp;&#9650;</strong>'
    return f"<strong>{text}</strong>"


def _allow_breaks_after_underscores(text):
    """Allow a line break after each underscore of a name."""
    return text.replace("_", "_<wbr>")


def _allow_long_name_breaks(text):
    """Write a cell; long names of measures may break."""
    if len(text) > MAX_UNBROKEN_LETTERS and text.isidentifier():
        return _allow_breaks_after_underscores(text)
    return text
