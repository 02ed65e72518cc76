"""The different values of columns, with numbers of rows: what groups are made of."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._files.columns import TableBlock, get_raw_values_or_codes
from .._kernels._float_order import keep_largest_value_per_cell
from .._show import quote_text
from .._typing import AnyArray, IntArray
from ..exceptions import invalid_input

_MAX_DISTINCT_TEXTS = 2**20
# Numbers that are collected before they are sorted.
_MAX_WAITING_NUMBERS = 2**18


def combine_groups(columns: "Sequence[ColumnValues]", block: TableBlock) -> IntArray:
    """Return the number of the combination of groups of each row; see `decode_groups`."""
    number = np.zeros(block.n_rows, dtype=np.int64)
    for column in columns:
        number = number * column.n_groups + column.find_groups(block)
    return number


def decode_groups(
    columns: "Sequence[ColumnValues]", numbers: AnyArray
) -> list[IntArray]:
    """Return the groups that numbers of combinations stand for, one array for each column."""
    groups = []
    for column in reversed(columns):
        numbers, codes = np.divmod(numbers, column.n_groups)
        groups.append(codes)
    return groups[::-1]


class ColumnValues:
    """The values of one column, while blocks come in.

    Of more than 65,536 different numbers neighbours are counted together, under the
    largest.
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

    def add(self, block: TableBlock) -> None:
        """Add a block."""
        self.decimal = block.decimal or self.decimal
        column = get_raw_values_or_codes(block.columns[self.name])
        if isinstance(column, tuple):
            values, codes = column
            missing, *counts = np.bincount(
                codes + 1, minlength=len(values) + 1
            ).tolist()
            self._add_counts(missing, zip(values, counts, strict=True))
        else:
            absent = _get_missing_value_mask(column)
            self.missing += int(np.count_nonzero(absent))
            self._queue_values(*np.unique(column[~absent], return_counts=True))

    def merge(self, other: "ColumnValues") -> None:
        """Add the values of another."""
        self.decimal = other.decimal or self.decimal
        self._add_counts(other.missing, other.others.items())
        self._shift = max(self._shift, other._shift)
        self._queue_values(*other.number_counts)

    @property
    def number_counts(self) -> tuple[AnyArray, IntArray]:
        """The numbers, and how many rows each has."""
        if self._waiting:
            parts = [(self._numbers, self._counts), *self._waiting]
            parts = [piece for piece in parts if len(piece[0])]
            values = np.concatenate([piece[0] for piece in parts])
            values, place = np.unique(values, return_inverse=True)
            counts = np.zeros(len(values), dtype=np.int64)
            np.add.at(counts, place, np.concatenate([piece[1] for piece in parts]))
            self._numbers, self._counts, self._shift = keep_largest_value_per_cell(
                values, counts, self._shift
            )
            self._waiting = []
            self._n_waiting = 0
        return self._numbers, self._counts

    @property
    def has_mixed_kinds(self) -> bool:
        """Whether blocks were of several kinds, as blocks of a csv file can be."""
        kinds = {type(value) for value in self.others}
        return len(kinds) + bool(len(self.number_counts[0])) > 1

    def list_values_and_counts(self) -> tuple[AnyArray, IntArray]:
        """Return the values, numbers first and None or NaN last, and how many rows each has."""
        numbers, counts = self.number_counts
        if not self.others:
            if not self.missing:
                return numbers, counts
            if numbers.dtype.kind in "iu":
                numbers = numbers.astype(float)
            hole = (
                np.array(["NaT"], numbers.dtype)
                if numbers.dtype.kind in "mM"
                else [np.nan]
            )
            return np.append(numbers, hole), np.append(counts, self.missing)
        listed = [*numbers.tolist(), *self.others, *[None] * bool(self.missing)]
        values = np.empty(len(listed), dtype=object)
        values[:] = listed
        more = [*self.others.values(), *[self.missing] * bool(self.missing)]
        return values, np.append(counts, np.array(more, dtype=np.int64))

    def assign_values_to_groups(self, codes: IntArray, n_groups: int) -> None:
        """Put the values that `list_values_and_counts` lists into groups."""
        self.n_groups = n_groups
        self._number_groups = codes[: len(self.number_counts[0])]
        others = codes[len(self._number_groups) :].tolist()
        self._other_groups = dict(zip(self.others, others, strict=False))
        self._missing_group = int(codes[-1]) if self.missing else 0

    def find_groups(self, block: TableBlock) -> IntArray:
        """Return the group of each row of a block; a number is in that of the next one."""
        column = get_raw_values_or_codes(block.columns[self.name])
        if isinstance(column, tuple):
            values, codes = column
            try:
                groups = [self._other_groups[value] for value in values]
            except KeyError as error:
                raise invalid_input(
                    expected=(
                        f"the values of column {quote_text(self.name)} as they were before"
                    ),
                    got=quote_text(error.args[0]),
                    sentence=(
                        f"The values of column {quote_text(self.name)} have changed while "
                        "they were read"
                    ),
                    hint="Run again when the files are written",
                ) from error
            return np.array([*groups, self._missing_group])[codes]
        numbers = self.number_counts[0]
        if not len(numbers):
            return np.full(len(column), self._missing_group)
        place = np.searchsorted(numbers, column).clip(max=len(numbers) - 1)
        return np.where(
            _get_missing_value_mask(column),
            self._missing_group,
            self._number_groups[place],
        )

    def _add_counts(self, missing, others):
        self.missing += missing
        for value, count in others:
            self.others[value] = self.others.get(value, 0) + count
        if len(self.others) > _MAX_DISTINCT_TEXTS:
            raise invalid_input(
                expected=(
                    f"at most {_MAX_DISTINCT_TEXTS} different values of column "
                    f"{quote_text(self.name)}"
                ),
                got="more",
                hint="Group by a column of fewer values",
            )

    def _queue_values(self, values, counts):
        if not len(values):
            return
        if values.dtype.kind == "u":
            values = values.astype(float if values[-1] >= 2**63 else np.int64)
        elif values.dtype.kind == "f":
            values = values.astype(float)
        elif values.dtype.kind in "mM":
            values = values.astype(f"{values.dtype.kind}8[us]")
        self._waiting.append((values, counts))
        self._n_waiting += len(values)
        if self._n_waiting > _MAX_WAITING_NUMBERS:
            _ = self.number_counts


def _get_missing_value_mask(values):
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.zeros(len(values), dtype=bool)
