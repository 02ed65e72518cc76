"""Sections as text for a terminal."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING

from ._html import render_html, wrap_for_notebook
from ._names import make_printable
from ._sections import MarkedCell, Section, Table, Writer, get_cell_text

if TYPE_CHECKING:
    from rich.console import RenderableType

_MAX_LINE_CHARACTERS = 100


def render_text(sections: Iterable[Section]) -> str:
    """Write sections with an empty line between them."""
    writer = Writer("text", render_text_table, render_paragraph=_wrap_paragraph)
    return "\n\n".join(map("\n".join, writer.iter_line_blocks(sections)))


def _wrap_paragraph(text, width=_MAX_LINE_CHARACTERS):
    """Wrap a text, but never between a number and its percent sign."""
    return fill(text.replace(" %", "\xa0%"), width).replace("\xa0%", " %")


def render_text_table(table: Table) -> list[str]:
    """Write aligned lines: names to the left, numbers to the right."""
    rows = [table.header, *table.rows]
    texts = [
        [make_printable(get_cell_text(cell), None) for cell in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < table.n_name_columns else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in texts
    ]
    return [*filter(None, [make_printable(table.title, None)]), *lines]


def render_markdown(sections: Iterable[Section], level: int = 1) -> str:
    """Write sections below each other; `level` is that of their headings."""
    return (
        "\n\n".join(
            filter(
                None,
                (
                    _render_markdown_section_or_empty(section, level)
                    for section in sections
                ),
            )
        )
        + "\n"
    )


def _render_markdown_section_or_empty(section, level):
    if not section.is_for("markdown"):
        return ""
    heading = section.title or section.name
    blocks = [f"{'#' * level} {_escape_markdown(heading)}"] if heading else []
    blocks += [_escape_markdown(" ".join(section.sentences))]
    blocks += ["\n".join(f"* {_escape_markdown(item)}" for item in section.items)]
    for table in section.tables:
        blocks += [
            _escape_markdown(table.title),
            "\n".join(_iter_markdown_table_lines(table)),
        ]
    blocks += map(_escape_markdown, section.notes)
    blocks += [f"```python\n{section.code.rstrip()}\n```"] if section.code else []
    below = level + bool(heading)
    return "\n\n".join(
        filter(None, [*blocks, render_markdown(section.parts, below).strip()])
    )


def _iter_markdown_table_lines(table):
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    for number, line in enumerate(lines):
        cells = map(get_cell_text, line)
        yield f"| {' | '.join(cells if number == 1 else map(_escape_markdown, cells))} |"


def _escape_markdown(text):
    """Escape names of columns for Markdown."""
    text = make_printable(text, None)
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return text


def iter_terminal_renderables(
    sections: Iterable[Section], width: int
) -> "Iterator[RenderableType]":
    """Iterate over what to print, with empty lines between.

    Lines of code are not wrapped.
    """
    from rich.text import Text

    bold = partial(Text, style="bold")
    short = min(width, _MAX_LINE_CHARACTERS)

    def make_wrapped_rich_text(text):
        return Text(_wrap_paragraph(text, short))

    tables = partial(_render_table_by_first_name, width=width)
    writer = Writer("terminal", tables, Text, make_wrapped_rich_text, bold)
    for number, block in enumerate(writer.iter_line_blocks(sections)):
        if number:
            yield ""
        yield from block


def _render_table_by_first_name(table, width):
    """Split a table with two columns of names, which would leave too little width for numbers."""
    if table.n_name_columns < 2:
        return _render_terminal_table(table, width)
    lines = []
    for first, rows in groupby(table.rows, lambda row: get_cell_text(row[0])):
        less = Table(table.header[1:], [row[1:] for row in rows], first)
        less = less._replace(
            hidden_if_narrow=[place - 1 for place in table.hidden_if_narrow]
        )
        lines += [*[""] * bool(lines), *_render_terminal_table(less, width)]
    return lines


def _render_terminal_table(table: Table, width: int) -> "list[RenderableType]":
    """Draw a title, boxes, and the legend of a star."""
    from rich.cells import cell_len
    from rich.table import Table as Boxes
    from rich.text import Text

    def compute_padded_width(column):
        lines = (line for text in column for line in text.plain.splitlines())
        return 3 + max(map(cell_len, lines), default=0)

    columns = [
        [Text(make_printable(head, None)), *map(_render_terminal_cell, cells)]
        for head, *cells in zip(table.header, *table.rows, strict=True)
    ]
    if sum(map(compute_padded_width, columns)) >= width:  # headings in several lines
        for head, *cells in columns:
            words = max(map(cell_len, head.plain.split()), default=1)
            head.plain = fill(
                head.plain, max(words, compute_padded_width(cells or [head]) - 3)
            )
    if sum(map(compute_padded_width, columns)) >= width:
        columns = [
            column
            for n, column in enumerate(columns)
            if n not in table.hidden_if_narrow
        ]
    boxes = Boxes()
    for number, (head, *_) in enumerate(columns):
        boxes.add_column(head, justify="right" if number else "left", overflow="fold")
    for row in zip(*(cells for _, *cells in columns), strict=True):
        boxes.add_row(*row)
    best = any(
        isinstance(cell, MarkedCell) and cell.mark == "best"
        for row in table.rows
        for cell in row
    )
    title = [Text(make_printable(table.title, None))] if table.title else []
    return [*title, boxes, *[Text("* best")] * best]


def _render_terminal_cell(cell):
    from rich.text import Text

    if not isinstance(cell, MarkedCell):
        return Text(make_printable(cell, None))
    mark = "* " if cell.mark == "best" else ""
    return Text(mark + make_printable(cell.text, None), "bold")


def get_sections(shown: "RenderableMixin", **options: bool) -> list[Section]:
    """Return the sections of a result; of a report, ``drawn=True`` adds its pictures."""
    return shown._make_sections(**options)


class RenderableMixin:
    """Prints what `_make_sections` returns, and shows it in a notebook."""

    def _make_sections(self) -> list[Section]:
        raise NotImplementedError(
            f"{type(self).__name__} has no _make_sections; see Section"
        )

    def __str__(self) -> str:
        return render_text(self._make_sections())

    def _repr_html_(self) -> str:
        return wrap_for_notebook(render_html(self._make_sections()))
