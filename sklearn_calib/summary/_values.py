"""The different values of columns, with numbers of rows: what groups are made of."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._files.columns import Block, raw_column
from .._kernels._float_order import thinned
from .._show import quoted
from .._typing import AnyArray, IntArray
from ..exceptions import invalid_input

_MOST = 2**20  # texts
_AT_ONCE = 2**18  # numbers that wait to be sorted


class Coder(NamedTuple):
    """Which group each value of a column is in; can be sent to another process.

    Parameters
    ----------
    name : str
        The column.
    numbers : ndarray
        Sorted: a number is in the group of the next that is not below it.
    codes : ndarray of int
        The groups of `numbers`.
    others : dict
        The groups of what is no number.
    missing : int
        That of missing values.
    as_text : bool
        Whether the cells of csv files are looked up as they are written.
    width : int
        The number of groups.
    """

    name: str
    numbers: AnyArray
    codes: IntArray
    others: dict[Any, int]
    missing: int
    as_text: bool
    width: int

    def codes_of(self, block: Block) -> IntArray:
        """The group of each row of a block."""
        found = raw_column(block.columns[self.name])
        if isinstance(found, tuple):
            values, codes = found
            try:
                groups = np.array([*(self.others[one] for one in values), self.missing])
            except KeyError as error:
                raise invalid_input(
                    expected=(
                        f"the values of column {quoted(self.name)} that were there a moment ago"
                    ),
                    got=quoted(error.args[0]),
                    hint="Run again when the files are written",
                ) from error
            return groups[codes]
        if not len(self.numbers):
            return np.full(len(found), self.missing)
        place = np.searchsorted(self.numbers, found).clip(max=len(self.numbers) - 1)
        return np.where(_absent(found), self.missing, self.codes[place])


def numbers_of(coders: Sequence[Coder], block: Block) -> IntArray:
    """The number of the combination of groups of each row; see `combinations_of`."""
    number = np.zeros(block.n_rows, dtype=np.int64)
    for coder in coders:
        number = number * coder.width + coder.codes_of(block)
    return number


def combinations_of(coders: Sequence[Coder], numbers: AnyArray) -> list[IntArray]:
    """The groups that numbers of combinations stand for, one array for each column."""
    found = []
    for coder in reversed(coders):
        numbers, codes = np.divmod(numbers, coder.width)
        found.append(codes)
    return found[::-1]


class ColumnValues:
    """The values of one column, while blocks come in.

    Of more than 65,536 different numbers neighbours are counted together, under the largest.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.others: dict[Any, int] = {}
        self.missing = 0
        self.as_text = False
        self.decimal: str | None = None
        self._numbers: AnyArray = np.empty(0)
        self._counts: IntArray = np.empty(0, dtype=np.int64)
        self._shift = 0
        self._waiting: list[tuple[AnyArray, IntArray]] = []
        self._n_waiting = 0

    def add(self, block: Block) -> None:
        """Add a block."""
        self.decimal = block.decimal or self.decimal
        found = raw_column(block.columns[self.name])
        if isinstance(found, tuple):
            values, codes = found
            counts = np.bincount(codes + 1, minlength=len(values) + 1).tolist()
            self.missing += counts[0]
            for value, count in zip(values, counts[1:], strict=True):
                self.others[value] = self.others.get(value, 0) + count
            self._check()
            return
        absent = _absent(found)
        self.missing += int(np.count_nonzero(absent))
        numbers, n_rows = np.unique(found[~absent], return_counts=True)
        if len(numbers):
            self._wait(numbers, n_rows)

    def merge(self, other: "ColumnValues") -> None:
        """Add the values of another."""
        self.decimal = other.decimal or self.decimal
        self.missing += other.missing
        for value, count in other.others.items():
            self.others[value] = self.others.get(value, 0) + count
        self._check()
        numbers, counts = other.numbers
        self._shift = max(self._shift, other._shift)
        if len(numbers):
            self._wait(numbers, counts)

    @property
    def numbers(self) -> tuple[AnyArray, IntArray]:
        """The numbers, and how many rows each has."""
        if self._waiting:
            parts = [(self._numbers, self._counts), *self._waiting]
            parts = [part for part in parts if len(part[0])]
            values = np.concatenate([part[0] for part in parts])
            values, place = np.unique(values, return_inverse=True)
            counts = np.zeros(len(values), dtype=np.int64)
            np.add.at(counts, place, np.concatenate([part[1] for part in parts]))
            self._numbers, self._counts, self._shift = thinned(values, counts, self._shift)
            self._waiting, self._n_waiting = [], 0
        return self._numbers, self._counts

    @property
    def mixed(self) -> bool:
        """Whether blocks were of several kinds, as blocks of a csv file can be."""
        kinds = {type(value) for value in self.others}
        return len(kinds) + bool(len(self.numbers[0])) > 1

    def table(self) -> tuple[AnyArray, IntArray]:
        """The values, numbers first and None or NaN last, and how many rows each has."""
        numbers, counts = self.numbers
        if not self.others:
            if not self.missing:
                return numbers, counts
            if numbers.dtype.kind in "iu":
                numbers = numbers.astype(np.float64)
            hole = np.array(["NaT"], numbers.dtype) if numbers.dtype.kind in "mM" else [np.nan]
            return np.append(numbers, hole), np.append(counts, self.missing)
        listed = [*numbers.tolist(), *self.others, *[None] * bool(self.missing)]
        values = np.empty(len(listed), dtype=object)
        values[:] = listed
        more = [*self.others.values(), *[self.missing] * bool(self.missing)]
        return values, np.append(counts, np.array(more, dtype=np.int64))

    def coder(self, codes: IntArray, width: int) -> Coder:
        """Of the groups, `width` in number, of the values that `table` lists."""
        numbers = self.numbers[0]
        rest = codes[len(numbers) :].tolist()
        others = dict(zip(self.others, rest[: len(self.others)], strict=True))
        missing = int(codes[-1]) if self.missing else 0
        places = codes[: len(numbers)]
        return Coder(self.name, numbers, places, others, missing, self.as_text, width)

    def _wait(self, values, counts):
        if values.dtype.kind == "u":
            values = values.astype(np.float64 if values[-1] >= 2**63 else np.int64)
        elif values.dtype.kind == "f":
            values = values.astype(np.float64)
        elif values.dtype.kind in "mM":
            values = values.astype(f"{values.dtype.kind}8[us]")
        self._waiting.append((values, counts))
        self._n_waiting += len(values)
        if self._n_waiting > _AT_ONCE:
            _ = self.numbers

    def _check(self):
        if len(self.others) > _MOST:
            rule = f"at most {_MOST} different values of column {quoted(self.name)}"
            raise invalid_input(expected=rule, got="more", hint="Group by a column of fewer values")


def _absent(values):
    if values.dtype.kind in "mM":
        return np.isnat(values)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
