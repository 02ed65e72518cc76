"""Sections as HTML: parts of a page, or what a notebook shows."""

import html
from collections.abc import Iterable

from ._names import in_page
from ._sections import Cell, Section, Table, text_of_cell

# A notebook has its own style, which tables keep; only the alignment and the mark are ours.
MARK = """.sklearn-calib { color: inherit; }
.sklearn-calib .beyond {
  color: var(--beyond, var(--jp-error-color1, var(--vscode-errorForeground, inherit))); }
"""
_NAME = 60  # letters of a name in a heading
_NOTEBOOK = """.sklearn-calib th, .sklearn-calib td { padding: .15em .7em; text-align: right; }
.sklearn-calib th:first-child, .sklearn-calib caption, .sklearn-calib .text {
  text-align: left; color: inherit; }
.sklearn-calib tbody th { font-weight: normal; } .sklearn-calib .note { font-size: 90%; }
.sklearn-calib .wide { overflow-x: auto; }
@media print { .sklearn-calib .wide { overflow: visible; }
  .sklearn-calib th, .sklearn-calib td { white-space: normal; overflow-wrap: anywhere; } }
"""


def html_of(sections: Iterable[Section], level: int = 2) -> str:
    """Sections below each other; `level` is that of their headings."""
    return "\n".join(filter(None, (_section(section, level) for section in sections)))


def in_notebook(text: str, style: str = "") -> str:
    """With the style that they need outside of a page, and more of it."""
    return f'<div class="sklearn-calib">\n<style>\n{MARK}{_NOTEBOOK}{style}</style>\n{text}</div>'


def _section(section, level):
    if not section.is_for("html"):
        return ""
    blocks = [f"<p>{in_page(sentence, None)}</p>" for sentence in section.sentences]
    if section.items:
        items = "".join(f"<li>{in_page(item, None)}</li>" for item in section.items)
        blocks.append(f"<ul>{items}</ul>")
    blocks += [section.picture() if section.picture else "", *map(html_table, section.tables)]
    blocks += [f'<p class="note">{in_page(note, None)}</p>' for note in section.notes]
    blocks += [f"<pre><code>{html.escape(section.code)}</code></pre>"] if section.code else []
    blocks += [html_of(section.parts, level + bool(section.title or section.name))]
    text = "\n".join(filter(None, blocks))
    if section.folded:
        text = f"<details><summary>{in_page(section.folded, None)}</summary>\n{text}\n</details>"
    heading = in_page(section.title, None)
    if section.name:
        heading = f"<bdi>{in_page(section.name, _NAME)}</bdi>"
    if heading:
        text = f"<h{level}>{heading}</h{level}>\n{text}"
    return f'<section class="{section.kind}">\n{text}\n</section>' if section.kind else text


def html_table(table: Table) -> str:
    """A table, which scrolls by itself where it is too wide."""
    head = "".join(map(_heading, table.header))
    body = ""
    for first, *rest in table.rows:
        texts = "".join(f'<td class="text">{_cell(cell)}</td>' for cell in rest[: table.names - 1])
        numbers = "".join(f"<td>{_cell(cell)}</td>" for cell in rest[table.names - 1 :])
        name = f'<th scope="row"><bdi>{in_page(text_of_cell(first))}</bdi></th>'
        body += f"<tr>{name}{texts}{numbers}</tr>\n"
    caption = f"<caption>{in_page(table.title, None)}</caption>" if table.title else ""
    kind = f"sklearn-calib {table.kind}".strip()
    return (
        f'<div class="wide"><table class="{kind}">{caption}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _heading(name):
    """The head of a column; a corner without a name is none, which would be read out as empty."""
    text = _breaking(in_page(name))
    return f'<th scope="col">{text}</th>' if text else "<td></td>"


def _cell(cell):
    text = in_page(text_of_cell(cell))
    if not isinstance(cell, Cell):
        return text
    if cell.mark == "beyond":
        return f'<strong class="beyond" title="more than chance">{text}&nbsp;&#9650;</strong>'
    return f"<strong>{text}</strong>"


def _breaking(text):
    """A name that may go on in the next line after an underscore."""
    return text.replace("_", "_<wbr>")
