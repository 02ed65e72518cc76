"""The tables of a command: read as its options say, whole or in blocks, without rows with holes."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._files.tables import FileTable, column_names, read_table, table_blocks
from .._show import plain, rows_in_words
from ._options import form_of
from ._printing import note
from ._wording import refuse

if TYPE_CHECKING:
    import argparse

Pick: TypeAlias = Callable[[Sequence[str]], list[str]]


class Tables:
    """What is read of some files, as often as it is asked for.

    Attributes
    ----------
    n_rows : int
        Rows that were read and kept.
    """

    def __init__(self, options: "argparse.Namespace") -> None:
        self._form, self._drop = form_of(options), getattr(options, "drop_missing", False)
        self.begin()

    def begin(self) -> None:
        """All is to be read anew: what was left out before is forgotten."""
        self.n_rows = 0
        self._left_out: dict[str, tuple[int, list[int]]] = {}  # of files: how many, the first

    def names(self, file: str, pick: Pick) -> list[str]:
        """All columns of a file."""
        return column_names(file, pick, **self._form)

    def read(self, file: str, pick: Pick) -> FileTable:
        """Some columns of a file at once."""
        return read_table(file, pick, **self._form)

    def blocks(self, file: str, pick: Pick, **how: Any) -> Iterator[FileTable]:
        """The same in blocks; `how` are arguments of `table_blocks`."""
        return table_blocks(file, pick, **how, **self._form)

    def kept(self, *tables: FileTable, columns: Sequence[str] | None = None) -> list[FileTable]:
        """Tables of the same rows without those that miss a value, where these are to be left out.

        Of the first table it is looked for in some `columns`, by default in all.
        """
        first, *others = tables
        seen = first.frame if columns is None else first.frame[[*columns]]
        whole = np.ones(len(seen), dtype=bool)
        for frame in (seen, *(table.frame for table in others)) if self._drop else ():
            whole &= frame.notna().all(axis=1).to_numpy()
        self.n_rows += np.count_nonzero(whole)
        if whole.all():
            return [*tables]
        holes = np.flatnonzero(~whole)
        count, rows = self._left_out.get(first.file, (0, []))
        rows = rows + [first.row(place) for place in holes[: 5 - len(rows)]]
        self._left_out[first.file] = count + len(holes), rows
        return [table.only(whole) for table in tables]

    def check(self) -> None:
        """Refuse files of which no row was kept."""
        if not self.n_rows:
            refuse("rows without missing values", "none", "Check the files")

    def say_what_is_left_out(self) -> None:
        """Rows that missed a value, once all have been read."""
        said = [
            f"{rows_in_words(rows, count)} of {plain(file)}"
            for file, (count, rows) in self._left_out.items()
        ]
        if said:
            note(f"left out, with missing values: {'; '.join(said)}")
