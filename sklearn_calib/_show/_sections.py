"""The content of a result: sections, tables and notes, independent of the format."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ._names import make_printable


class MarkedCell(NamedTuple):
    """A text of a table that stands out."""

    text: str
    # or "best", or "beyond" for a value that chance does not explain
    mark: str = "strong"


class Table(NamedTuple):
    """Texts in rows; those of the first columns are the names of the rows, the rest are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | MarkedCell]]
    title: str = ""
    # a class of the table in HTML: "names" may break, "unbroken" lines do not
    css_class: str = ""
    n_name_columns: int = 1  # columns that are names
    hidden_if_narrow: Sequence[int] = ()  # columns that a narrow terminal leaves out


class Section(NamedTuple):
    """A part of a result: a heading, sentences, tables, a picture, remarks, code, parts of its own.

    All texts are as they came: each writer escapes them. Each sentence begins a new
    line, except in Markdown.
    """

    title: str = ""
    name: str = ""  # a heading from the data of users, such as the name of a model
    sentences: Sequence[str] = ()
    items: Sequence[str] = ()  # of a list
    tables: Sequence[Table] = ()
    picture: str = ""  # HTML that is safe; only pages show it
    notes: Sequence[str] = ()  # small print
    code: str = ""
    parts: Sequence["Section"] = ()
    css_class: str = ""  # a class of the section in HTML
    fold_label: str = ""  # in HTML, shown on request
    # which of "html", "markdown", "text", "terminal" show it; all by default
    formats: str = ""

    def is_for(self, writer: str) -> bool:
        """Return whether a writer shows the section."""
        return not self.formats or writer in self.formats.split()


class Writer(NamedTuple):
    """Functions that turn texts and tables into lines of one format."""

    name: str
    render_table: Callable[[Table], Iterable[Any]]
    render_line: Callable[[str], Any] = str
    render_paragraph: Callable[[str], Any] = str
    render_heading: Callable[[str], Any] = str

    def iter_line_blocks(self, sections: Iterable[Section]) -> Iterator[list[Any]]:
        """Iterate over blocks of lines that belong together."""
        for section in filter(lambda section: section.is_for(self.name), sections):
            blocks = [
                [
                    self.render_paragraph(make_printable(sentence, None))
                    for sentence in section.sentences
                ]
            ]
            blocks += [
                [self.render_line(make_printable(item, None)) for item in section.items]
            ]
            blocks += [[*self.render_table(table)] for table in section.tables] or [[]]
            blocks[-1] += [
                self.render_line(make_printable(note, None)) for note in section.notes
            ]
            blocks += [
                [
                    f"    {make_printable(code, None)}"
                    for code in section.code.splitlines()
                ]
            ]
            blocks = [*filter(None, blocks), *self.iter_line_blocks(section.parts)]
            if blocks and (section.title or section.name):
                blocks[0].insert(
                    0,
                    self.render_heading(
                        make_printable(section.title or section.name, None)
                    ),
                )
            yield from blocks


def get_cell_text(cell: str | MarkedCell) -> str:
    """Return the text of a cell without its mark."""
    return cell.text if isinstance(cell, MarkedCell) else cell


def format_best_rows(
    numbers: Mapping[str, Sequence[float]],
    best: Sequence[Callable[[Iterable[float]], float] | None],
) -> list[list[str | MarkedCell]]:
    """Format rows of a table with four digits.

    `best` picks the cell to mark in each column.
    """
    columns = zip(*numbers.values(), strict=True)
    picked = [pick and pick(column) for pick, column in zip(best, columns, strict=True)]

    def mark_if_best(value, winner):
        return MarkedCell(f"{value:.4f}", "best") if value == winner else f"{value:.4f}"

    return [[name, *map(mark_if_best, row, picked)] for name, row in numbers.items()]
