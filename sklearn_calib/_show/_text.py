"""Sections as text for a terminal."""

from collections.abc import Iterable
from textwrap import fill

from ._names import plain
from ._sections import Section, Table, text_of_cell

_WIDTH = 100


def text_of(sections: Iterable[Section]) -> str:
    """Sections with an empty line between them."""
    return "\n\n".join(filter(None, map(_section, sections)))


def _section(section):
    if not section.is_for("text"):
        return ""
    blocks = [fill(plain(" ".join(section.sentences), None), _WIDTH)]
    if section.items:
        blocks.append("\n".join(plain(item, None) for item in section.items))
    tables = ["\n".join(lines_of(table)) for table in section.tables]
    notes = [plain(note, None) for note in section.notes]
    blocks += [*tables[:-1], "\n".join([*tables[-1:], *notes])]
    blocks += ["\n".join(f"    {line}" for line in section.code.splitlines())]
    body = "\n\n".join(filter(None, [*blocks, text_of(section.parts)]))
    heading = plain(section.title or section.name, None)
    return f"{heading}\n{body}" if heading and body else body


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
