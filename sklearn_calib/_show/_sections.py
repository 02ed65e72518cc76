"""What a result says, whatever it is written in."""

from collections.abc import Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """A text of a table that stands out."""

    text: str
    mark: str = "strong"  # "strong", or "beyond" for a value that chance does not explain


class Table(NamedTuple):
    """Texts in rows; those of the first columns are the names of the rows, the rest are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    title: str = ""
    kind: str = ""  # a class of the table in HTML: "names" may break, "unbroken" lines do not
    names: int = 1  # columns that are names


class Section(NamedTuple):
    """A part of a result: a heading, sentences, tables, a picture, remarks, code, parts of its own.

    All texts are as they came: each writer escapes them. The sentences are one paragraph but in
    HTML, where each is its own.
    """

    title: str = ""
    name: str = ""  # a heading that somebody else chose, such as the name of a model
    sentences: Sequence[str] = ()
    items: Sequence[str] = ()  # of a list
    tables: Sequence[Table] = ()
    picture: str = ""  # HTML that is safe; other writers leave it out
    notes: Sequence[str] = ()  # small print
    code: str = ""
    parts: Sequence["Section"] = ()
    kind: str = ""  # a class of the section in HTML
    folded: str = ""  # in HTML, shown when this is asked for
    only: str = ""  # the writers that show it, such as "html markdown"; all by default

    def is_for(self, writer: str) -> bool:
        """Whether a writer shows it."""
        return not self.only or writer in self.only.split()


def text_of_cell(cell: str | Cell) -> str:
    """The text alone."""
    return cell.text if isinstance(cell, Cell) else cell
