"""Sections for a terminal, by rich: boxes as wide as it is, marks where it can show them."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from textwrap import fill
from typing import TYPE_CHECKING

from ._names import plain
from ._sections import Cell, Section, Table, blocks_of, text_of_cell

if TYPE_CHECKING:
    from rich.console import RenderableType


def in_terminal(sections: Iterable[Section], width: int) -> "Iterator[RenderableType]":
    """What to print in turn, with empty lines between; texts are lines of code, not to wrap."""
    from rich.text import Text

    blocks = blocks_of(
        sections,
        "terminal",
        partial(_tables, width=width),
        line=Text,
        paragraph=Text,
        heading=partial(Text, style="bold"),
    )
    for number, block in enumerate(blocks):
        if number:
            yield ""
        yield from block


def _tables(table, width):
    """With one column of names: a second would leave no room for numbers."""
    if table.names < 2:
        return _table(table, width)
    lines = []
    for first, rows in groupby(table.rows, lambda row: text_of_cell(row[0])):
        less = Table(table.header[1:], [row[1:] for row in rows], first)
        less = less._replace(spare=[place - 1 for place in table.spare])
        lines += [*[""] * bool(lines), *_table(less, width)]
    return lines


def _table(table: Table, width: int) -> "list[RenderableType]":
    """A title, boxes, and what a star means."""
    from rich.cells import cell_len
    from rich.table import Table as Boxes
    from rich.text import Text

    def taken(column):
        return 3 + max(cell_len(line) for text in column for line in text.plain.splitlines())

    columns = [
        [Text(plain(head, None)), *map(_text, cells)]
        for head, *cells in zip(table.header, *table.rows, strict=True)
    ]
    if sum(map(taken, columns)) >= width:  # headings in several lines
        for head, *cells in columns:
            words = max(map(cell_len, head.plain.split()), default=1)
            head.plain = fill(head.plain, max(words, taken(cells or [head]) - 3))
    if sum(map(taken, columns)) >= width:
        columns = [column for n, column in enumerate(columns) if n not in table.spare]
    boxes = Boxes()
    for number, (head, *_) in enumerate(columns):
        boxes.add_column(head, justify="right" if number else "left", overflow="fold")
    for row in zip(*(cells for _, *cells in columns), strict=True):
        boxes.add_row(*row)
    best = any(isinstance(cell, Cell) and cell.mark == "best" for row in table.rows for cell in row)
    title = [Text(plain(table.title, None))] if table.title else []
    return [*title, boxes, *[Text("* best")] * best]


def _text(cell):
    from rich.text import Text

    if not isinstance(cell, Cell):
        return Text(plain(cell, None))
    return Text("* " * (cell.mark == "best") + plain(cell.text, None), "bold")
