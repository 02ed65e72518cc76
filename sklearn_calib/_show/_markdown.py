"""Sections as Markdown, for an issue, a notebook or a model card."""

from collections.abc import Iterable

from ._names import plain
from ._sections import Section, text_of_cell


def markdown_of(sections: Iterable[Section], level: int = 1) -> str:
    """Sections below each other; `level` is that of their headings."""
    return "\n\n".join(filter(None, (_section(section, level) for section in sections))) + "\n"


def _section(section, level):
    if not section.is_for("markdown"):
        return ""
    heading = section.title or section.name
    blocks = [f"{'#' * level} {_escaped(heading)}"] if heading else []
    blocks += [_escaped(" ".join(section.sentences))]
    blocks += ["\n".join(f"* {_escaped(item)}" for item in section.items)]
    for table in section.tables:
        blocks += [_escaped(table.title), "\n".join(_piped(table))]
    blocks += map(_escaped, section.notes)
    blocks += [f"```python\n{section.code.rstrip()}\n```"] if section.code else []
    below = level + bool(heading)
    return "\n\n".join(filter(None, [*blocks, markdown_of(section.parts, below).strip()]))


def _piped(table):
    lines = [table.header, ["---"] * len(table.header), *table.rows]
    for number, line in enumerate(lines):
        cells = map(text_of_cell, line)
        yield f"| {' | '.join(cells if number == 1 else map(_escaped, cells))} |"


def _escaped(text):
    """Names of columns mean nothing to Markdown."""
    text = plain(text, None)
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}")
    return text
