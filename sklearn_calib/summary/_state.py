"""The rows of one two-class problem as cells, while they come in."""

from typing import Any

import numpy as np

from .._kernels._cells import (
    COUNT_COLUMN_0,
    COUNT_COLUMN_1,
    DISTANCE_STEP_BITS,
    IDENTITY_COLUMN,
    N_UNWEIGHTED_COLUMNS,
    N_WEIGHTED_COLUMNS,
    OFFSET_COLUMN,
    TOTAL_NAMES,
    add_weight_columns_if_absent,
    count_dropped_bits_by_cell,
    decode_cell_start_and_side,
    decode_float_keys,
    find_last_cell_keys,
    get_label_weight_sums_and_squares,
    round_keys_to_36_bit_steps,
    view_as_float,
)
from .._kernels._exact_sums import add_sum_lists, convert_sums_to_floats
from .._typing import AnyArray, FloatArray

# An hour of few rows needs no more.
_FIRST_TABLE_CELLS = 1024
# Cells are made coarser if there are so many times more than allowed.
_MAX_CELLS_FACTOR = (
    1.5  # cells are made coarser when there are so many times more than allowed
)


class CellHashTable:
    """A hash table of cells, which is made larger or coarser while rows come in."""

    def __init__(self, n_columns: int) -> None:
        self._shift = 0
        # None: outdated
        self._table: AnyArray | None = np.zeros((0, n_columns), np.int64)
        self._slots: AnyArray | None = None
        self._filled = 0
        self._room = 0

    def _fill_slots(
        self,
        p: FloatArray,
        q: FloatArray,
        y: AnyArray,
        pattern: AnyArray | None,
        *weights: AnyArray,
    ) -> None:
        """Put rows into the cells of their scores, of each `pattern` into cells of its own."""
        from .._kernels._cells_compiled import (
            add_rows_and_count_added_and_filled,
            identify_cells_and_offsets,
        )

        start = 0
        while True:
            # The sorted table is outdated as soon as rows are added.
            self._table = None
            cell, offset = identify_cells_and_offsets(p[start:], q[start:], self._shift)
            done, self._filled = add_rows_and_count_added_and_filled(
                self._slots,
                self._filled,
                self._room,
                self._shift,
                cell,
                offset,
                y[start:],
                None if pattern is None else pattern[start:],
                *(column[start:] for column in weights),
            )
            start += done
            if start == len(p):
                return
            self._make_room()

    def _start_hash_table(self, cells: AnyArray, room: int) -> None:
        """Start a hash table with these cells."""
        from .._kernels._cells_compiled import (
            make_empty_slots,
            write_distinct_cells_to_empty_slots,
        )

        self._room = room
        self._filled = len(cells)
        self._slots = make_empty_slots(room, cells.shape[1])
        if len(cells):
            write_distinct_cells_to_empty_slots(self._slots, cells, self._shift)

    def _make_room(self) -> None:
        raise NotImplementedError


class CellState(CellHashTable):
    """Sums over the cells of scores, and totals over the rows.

    Rows go into a hash table, which grows up to 1.5 times `max_cells` cells; then, and
    whenever the cells are read, they are made as coarse as needed for `max_cells`.
    """

    def __init__(self, max_cells: int) -> None:
        super().__init__(N_UNWEIGHTED_COLUMNS)
        self.max_cells = max_cells
        self.sums = [0] * len(TOTAL_NAMES)

    @property
    def table(self) -> AnyArray:
        """The cells in the order of their scores; see `_kernels._cells` for the columns."""
        from .._kernels._cells_compiled import (
            merge_cells_to_limit,
            select_occupied_slot_rows,
        )

        if self._table is None:
            cells = select_occupied_slot_rows(self._slots)
            shift = self._shift
            self._table, self._shift = merge_cells_to_limit(
                cells, shift, self.max_cells
            )
            if self._shift != shift:
                self._slots = None
        return self._table

    @property
    def totals(self) -> FloatArray:
        """The sums over the rows, `_kernels._cells.TOTAL_NAMES`."""
        return convert_sums_to_floats(self.sums)

    @property
    def shift(self) -> int:
        """How many bits of the keys are dropped."""
        _ = self.table
        return self._shift

    def add(
        self,
        p: FloatArray,
        q: FloatArray,
        y: AnyArray,
        weight: FloatArray | None = None,
        count: AnyArray | None = None,
    ) -> None:
        """Add rows; nothing is checked.

        Parameters
        ----------
        p : ndarray of shape (n_samples,)
            Scores, float64 and contiguous.
        q : ndarray of shape (n_samples,) or (0,)
            Their complements, where they are known better than 1 - p.
        y : ndarray of shape (n_samples,), uint8
        weight : ndarray of shape (n_samples,), default=None
            Above 0.
        count : ndarray of shape (n_samples,), int64, default=None
            Above 0.
        """
        from .._kernels import _cells_compiled as kernels

        if weight is not None:
            self._ensure_weight_columns()
        # After a merge or a reading the cells exist as a sorted table only.
        if self._slots is None:
            self._rebuild_table(self.table, len(p))
        more = list[AnyArray]()
        if weight is None and count is None:
            # Totals are exact sums over the rows, so they do not depend on the cells.
            sums = kernels.sum_unweighted_totals_as_integers(p, q, y)
        else:
            more.append(np.ones(len(p)) if weight is None else weight)
            more.append(np.ones(len(p), dtype=np.int64) if count is None else count)
            sums = kernels.sum_weighted_totals_as_integers(p, q, y, *more)
        self._fill_slots(p, q, y, None, *more)
        self.sums = add_sum_lists(self.sums, sums)

    def merge(self, other: "CellState") -> None:
        """Add the rows of another state."""
        from .._kernels._cells_compiled import merge_cells_to_limit

        self.max_cells = min(self.max_cells, other.max_cells)
        own_cells = self.table
        other_cells = other.table
        # Cells of both must have the same borders before they can be added.
        shift = max(self.shift, other.shift)
        if N_WEIGHTED_COLUMNS in (own_cells.shape[1], other_cells.shape[1]):
            own_cells = add_weight_columns_if_absent(own_cells)
            other_cells = add_weight_columns_if_absent(other_cells)
        all_cells = np.concatenate([own_cells, other_cells])
        self._table, self._shift = merge_cells_to_limit(
            all_cells, shift, self.max_cells
        )
        self._slots = None
        self.sums = add_sum_lists(self.sums, other.sums)

    def is_close_to(self, other: "CellState", tolerance: float) -> bool:
        """Return whether cells and counts are the same, and other sums up to a tolerance."""
        own_cells = self.table
        other_cells = other.table
        if own_cells.shape[1] != other_cells.shape[1]:
            own_cells = add_weight_columns_if_absent(own_cells)
            other_cells = add_weight_columns_if_absent(other_cells)
        if own_cells.shape != other_cells.shape or self.shift != other.shift:
            return False
        numbers = slice(OFFSET_COLUMN, None)
        return (
            np.array_equal(own_cells[:, :OFFSET_COLUMN], other_cells[:, :OFFSET_COLUMN])
            and np.allclose(
                view_as_float(own_cells)[:, numbers],
                view_as_float(other_cells)[:, numbers],
                tolerance,
                0.0,
            )
            and np.allclose(self.totals, other.totals, tolerance, 0.0)
        )

    def _make_room(self):
        from .._kernels._cells_compiled import select_occupied_slot_rows

        max_slots = int(_MAX_CELLS_FACTOR * self.max_cells)
        self._rebuild_table(
            select_occupied_slot_rows(self._slots)
            if self._room < max_slots
            else self.table
        )

    def _rebuild_table(self, cells, more=_FIRST_TABLE_CELLS):
        """Start a hash table of these cells with space for `more`; little space for few rows."""
        max_slots = int(_MAX_CELLS_FACTOR * self.max_cells)
        first = min(_FIRST_TABLE_CELLS, len(cells) + 2 * more)
        self._start_hash_table(
            cells, max(min(max(first, 4 * len(cells)), max_slots), len(cells) + 1)
        )

    def _ensure_weight_columns(self):
        if self.table.shape[1] == N_UNWEIGHTED_COLUMNS:
            self._table = add_weight_columns_if_absent(self._table)
            self._slots = None

    def __deepcopy__(self, memo: Any) -> "CellState":
        new = CellState.__new__(CellState)  # without sorting the cells
        vars(new).update(vars(self), sums=[*self.sums])
        # A copy of the hash table is faster than a new one.
        new._slots = None if self._slots is None else self._slots.copy()
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {
            "max_cells": self.max_cells,
            "sums": self.sums,
            "shift": self.shift,
            "table": self.table,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.restore_cells(**state)

    def restore_cells(
        self, table: AnyArray, shift: int, max_cells: int, sums: list[int]
    ) -> None:
        """Restore the state of these cells, in the order of their scores."""
        CellState.__init__(self, max_cells)
        self.sums = sums
        self._shift = shift
        self._table = table


def count_rows_across(state: CellState, edges: AnyArray) -> int:
    """Return how many rows are in cells with scores below an edge and from it on."""
    table = state.table
    first, last = _find_cell_key_ranges(table, state.shift)
    is_high_side = table[:, IDENTITY_COLUMN] < 0
    # Keys of the high side are those of 1 - p.
    near = np.where(
        is_high_side, 1.0 - decode_float_keys(first), decode_float_keys(first)
    )
    far = np.where(is_high_side, 1.0 - decode_float_keys(last), decode_float_keys(last))
    edges = np.sort(edges)
    first_edge = np.searchsorted(edges, np.minimum(near, far), "right")
    last_edge = np.searchsorted(edges, np.maximum(near, far), "right")
    rows = table[:, COUNT_COLUMN_0] + table[:, COUNT_COLUMN_1]
    # the rows of such a cell have one score, known or not
    is_whole = (rows == 1) | (first == last)
    return int(rows[(first_edge < last_edge) & ~is_whole].sum())


def _find_cell_key_ranges(table, shift):
    """Return the first and the last key that rows of each cell may have."""
    start, high_side = decode_cell_start_and_side(table[:, IDENTITY_COLUMN])
    last = find_last_cell_keys(
        start,
        high_side,
        count_dropped_bits_by_cell(table[:, IDENTITY_COLUMN], np.int64(shift)),
    )
    offset = view_as_float(table)[:, OFFSET_COLUMN]
    weight = get_label_weight_sums_and_squares(table)[0].sum(axis=1)
    # such a cell is as wide as a step: scores are kept in steps of 36 bits
    is_one_step = (table[:, COUNT_COLUMN_0] + table[:, COUNT_COLUMN_1] == 1) | (
        offset == 0
    )
    middle = (
        round_keys_to_36_bit_steps(start) + np.rint(offset / weight).astype(np.int64)
    ) << DISTANCE_STEP_BITS
    half = 1 << (DISTANCE_STEP_BITS - 1)
    first = np.where(is_one_step, np.maximum(start, middle - half), start)
    last = np.where(is_one_step, np.minimum(last, middle + half - 1), last)
    # real scores are not 1e-319
    return first, np.where((start == 0) & (offset == 0), 0, last)
