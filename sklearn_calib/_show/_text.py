"""Sections as text for a terminal."""

from collections.abc import Iterable
from functools import partial
from textwrap import fill

from ._names import plain
from ._sections import Section, Table, blocks_of, text_of_cell

_WIDTH = 100


def text_of(sections: Iterable[Section]) -> str:
    """Sections with an empty line between them."""
    blocks = blocks_of(sections, "text", lines_of, paragraph=partial(fill, width=_WIDTH))
    return "\n\n".join(map("\n".join, blocks))


def lines_of(table: Table) -> list[str]:
    """Aligned lines: names to the left, numbers to the right."""
    rows = [table.header, *table.rows]
    texts = [[plain(text_of_cell(cell), None) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < table.names else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in texts
    ]
    return [*filter(None, [plain(table.title, None)]), *lines]
