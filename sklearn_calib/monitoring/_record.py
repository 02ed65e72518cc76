"""The rows of one stream as a monitor stores them, for the diagnosis of a change."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._kernels._log_odds_cells import (
    COARSE_LOG_ODDS_GRID,
    FINE_LOG_ODDS_GRID,
    LogOddsAtoms,
    compute_log_likelihood_gain_by_line,
    locate_onset_block_and_interval,
    split_cells_into_atoms,
)
from .._kernels._logistic_grid import COARSE_LINE_GRID
from .._typing import AnyArray, FloatArray, IntArray
from ._rows import time_from_json, time_to_json

NEWEST_BLOCK_ROWS = 32
MAX_BLOCKS_PER_SIZE = 8
# Rows that are collected before they are counted.
_MAX_UNCOUNTED_ROWS = 4096
# The level of the interval of the onset.
_ONSET_LEVEL = 0.95
# Attributes that are stored as they are.
_STORED_COUNTS = ("rows", "behind", "judged", "kept")


@dataclass(eq=False)
class BlockCounts:
    """Counts of consecutive rows.

    Attributes
    ----------
    level : int
        It was made of up to 2^level of the newest blocks.
    first, last : int
        Rows of the monitor, counted from 1.
    when : float, datetime64 or None
        The time of the first row.
    counts : ndarray of shape (5, n_cells), int64
    labels : ndarray of shape (n_classes,), int64
        Of all these rows, those of probability 0 and 1 too; zeros if they were not
        counted.
    """

    level: int
    first: int
    last: int
    start_time: Any
    counts: IntArray
    labels: IntArray
    _gains: FloatArray | None = None

    @property
    def rows(self) -> int:
        return int(self.counts[0].sum())

    def compute_log_likelihood_ratios(self) -> FloatArray:
        """Compute the log likelihood ratio of each pair, once the block is complete."""
        if self._gains is None:
            self._gains = compute_log_likelihood_gain_by_line(
                split_cells_into_atoms(self.counts, COARSE_LOG_ODDS_GRID),
                COARSE_LINE_GRID,
            )
        return self._gains

    def merge_next_block(self, block: "BlockCounts") -> None:
        """Add the counts of the rows that follow."""
        self.counts = self.counts + block.counts
        self.labels = self.labels + block.labels
        self.last = block.last
        # The likelihood ratios of a block that is still growing are computed anew.
        self._gains = None


class PendingBuffer(NamedTuple):
    """Rows that are not counted yet."""

    # Log-odds, outcomes, numbers and times of the rows with finite log-odds.
    z: FloatArray
    hit: AnyArray
    number: IntArray
    time: AnyArray | None
    # Which of all rows have finite log-odds, and the classes of all rows.
    is_informative: AnyArray
    code: IntArray


class StreamCellCounts:
    """Counts of one stream: all rows, those since the last alarm, and blocks since the change.

    Blocks are the larger the older they are, so that their number grows with the
    logarithm of the rows. Everything is whole numbers, the same in every bit however
    the rows were batched.

    Parameters
    ----------
    n_classes : int

    Attributes
    ----------
    all_counts, fresh_counts : ndarray of shape (5, n_cells), int64
        Counts of all rows, and of those since the last alarm.
    blocks : list of BlockCounts
        The last one may still be filled.
    rows : int
        Of the blocks, and those that wait.
    behind : int
        The row of the last alarm; rows behind it are fresh.
    kept : int
        The last row of the interval of the onset; blocks up to there stay as they are.
    judged : int
        Rows of the blocks when the change was last looked for at an alarm.
    diagnosis : Diagnosis or None
        What was found then.
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.all_counts = np.zeros((5, FINE_LOG_ODDS_GRID.n_cells), dtype=np.int64)
        self.fresh_counts = np.zeros_like(self.all_counts)
        self.blocks: list[BlockCounts] = []
        self.rows = self.behind = self.kept = self.judged = 0
        self.diagnosis: Any = None
        self._waiting: list[PendingBuffer] = []
        self._n_waiting = 0

    # -- rows -------------------------------------------------------------------------------------

    def add(
        self,
        z: FloatArray,
        hit: AnyArray,
        number: IntArray,
        time: AnyArray | None,
        code: IntArray,
    ) -> None:
        """Add rows with their numbers and classes.

        Rows with infinite log-odds are uninformative: only their class is counted.
        """
        # Probabilities of 0 and 1 have no log-odds, and no finite likelihood ratio.
        is_informative = np.isfinite(z)
        if not is_informative.all():
            z = z[is_informative]
            hit = hit[is_informative]
            number = number[is_informative]
            time = None if time is None else time[is_informative]
        self._waiting.append(PendingBuffer(z, hit, number, time, is_informative, code))
        self._n_waiting += len(code)
        self.rows += len(z)
        if self._n_waiting >= _MAX_UNCOUNTED_ROWS:
            self.add_waiting_rows_in_place()

    def add_waiting_rows_in_place(self) -> "StreamCellCounts":
        """Count the rows that wait."""
        waiting = self._waiting
        self._waiting = []
        self._n_waiting = 0
        for buffer in _join_waiting_buffers_if_alike(waiting):
            # The last informative row up to each row, -1 if there is none: uninformative
            # rows belong to the block of the row before them.
            last_informative = np.cumsum(buffer.is_informative) - 1
            is_leading = last_informative < 0
            if self.blocks:
                leading_codes = buffer.code[is_leading]
                n_leading = np.bincount(leading_codes, minlength=self.n_classes)
                self.blocks[-1].labels = self.blocks[-1].labels + n_leading
            if not len(buffer.z):
                continue
            # Rows before the last alarm count for the whole, later ones also as fresh.
            is_fresh = (buffer.number > self.behind).astype(np.intp)
            old, new = FINE_LOG_ODDS_GRID.sum_row_moments_by_part_and_cell(
                buffer.z, buffer.hit, is_fresh, 2
            )
            self.all_counts += old + new
            self.fresh_counts += new
            self._add_to_blocks(
                buffer,
                last_informative[~is_leading],
                buffer.code[~is_leading],
            )
        return self

    def _add_to_blocks(self, buffer, last_informative, code):
        """Divide rows among the newest block and new ones.

        `last_informative` is the position in `buffer.z` of the row whose block a row with
        the class `code` belongs to.
        """
        n = len(buffer.z)
        n_missing = 0
        if self.blocks and self.blocks[-1].level < 0:
            n_missing = NEWEST_BLOCK_ROWS - self.blocks[-1].rows
        # The first `n_missing` rows fill the newest block, which has the number 0 here.
        block_number = (np.arange(n) - n_missing) // NEWEST_BLOCK_ROWS + 1
        n_blocks = int(block_number[-1]) + 1
        counts_by_block = COARSE_LOG_ODDS_GRID.sum_row_moments_by_part_and_cell(
            buffer.z,
            buffer.hit,
            block_number,
            n_blocks,
        )
        label_cell = block_number[last_informative] * self.n_classes + code
        labels = np.bincount(label_cell, minlength=n_blocks * self.n_classes)
        labels = labels.reshape(n_blocks, self.n_classes)
        starts = np.unique(block_number, return_index=True)[1]
        ends = np.append(starts[1:], n) - 1
        for start, end in zip(starts, ends, strict=True):
            index = block_number[start]
            block = BlockCounts(
                -1,
                int(buffer.number[start]),
                int(buffer.number[end]),
                None if buffer.time is None else buffer.time[start],
                counts_by_block[index],
                labels[index],
            )
            self._append_rows_and_merge_old_blocks(block)

    def _append_rows_and_merge_old_blocks(self, block):
        """Add a block, or its rows to the newest block if that is not full.

        A block that is not full has the level -1.
        """
        if self.blocks and self.blocks[-1].level < 0:
            self.blocks[-1].merge_next_block(block)
        else:
            self.blocks.append(block)
        if self.blocks[-1].rows >= NEWEST_BLOCK_ROWS:
            self.blocks[-1].level = 0
            self._merge_oldest_blocks()

    def _merge_oldest_blocks(self):
        """Merge the two oldest of too many blocks of one size."""
        level = 0
        end = len(self.blocks)
        # Blocks of each size are merged in pairs, so their number is logarithmic in the
        # number of rows, and the onset is located the better the later it was.
        while True:
            start = end
            while start and self._is_mergeable(self.blocks[start - 1], level):
                start -= 1
            if end - start <= MAX_BLOCKS_PER_SIZE:
                return
            old, new = self.blocks[start : start + 2]
            level += 1
            merged = replace(old, level=level)
            merged.merge_next_block(new)
            self.blocks[start : start + 2] = [merged]
            end = start + 1

    def _is_mergeable(self, block, level):
        # Blocks of the interval of an earlier onset are not merged: the diagnosis
        # refers to their ends.
        return block.level == level and block.first > self.kept

    # -- answers ----------------------------------------------------------------------------------

    def update_and_get_cells(self, since_alarm_only: bool) -> LogOddsAtoms:
        """Return the cells of all rows, or of those since the last alarm."""
        self.add_waiting_rows_in_place()
        counts = self.fresh_counts if since_alarm_only else self.all_counts
        return split_cells_into_atoms(counts, FINE_LOG_ODDS_GRID)

    def locate_onset_and_interval_blocks(self) -> tuple[int, int, int]:
        """Locate the block in which the change began, and the blocks that bound an interval."""
        self.add_waiting_rows_in_place()
        gains = np.array(
            [block.compute_log_likelihood_ratios() for block in self.blocks]
        )
        rows = np.array([block.rows for block in self.blocks])
        return locate_onset_block_and_interval(
            gains, rows, COARSE_LINE_GRID.log_prior, _ONSET_LEVEL
        )

    def get_cells_since_block(self, first_block: int) -> LogOddsAtoms:
        """Return the cells of the rows of a block and of all later ones."""
        counts = np.sum([block.counts for block in self.blocks[first_block:]], axis=0)
        return split_cells_into_atoms(counts, COARSE_LOG_ODDS_GRID)

    def count_labels_since_block(self, first_block: int) -> IntArray:
        """Count the rows of each class in a block and all later ones."""
        labels = [block.labels for block in self.blocks[first_block:]]
        return np.asarray(np.sum(labels, axis=0))

    # -- alarms and other records -----------------------------------------------------------------

    def restart_fresh_counts_after(self, row_number: int) -> None:
        """Count rows as fresh if their number is above `row_number`."""
        self.behind = row_number
        self.fresh_counts = np.zeros_like(self.fresh_counts)

    def is_diagnosis_due(self) -> bool:
        """Return whether enough rows are new to look for the change again: one in five."""
        return 5 * (self.rows - self.judged) >= self.rows > 0

    def drop_older_blocks_and_freeze_interval(
        self, interval_start_block: int, interval_end_block: int
    ) -> None:
        """Drop the blocks before the interval of the onset, and no longer merge those in it.

        `interval_start_block` and `interval_end_block` are the first and the last block
        of the interval.
        """
        self.kept = self.blocks[interval_end_block].last
        self.blocks = self.blocks[interval_start_block:]
        # Rows before the interval are certainly older than the change.
        self.rows = self.judged = sum(block.rows for block in self.blocks)

    def merge(self, other: "StreamCellCounts", n_before: int) -> None:
        """Append the rows of another record; `n_before` is added to their numbers."""
        self.add_waiting_rows_in_place()
        self.rows += other.rows
        self.all_counts = self.all_counts + other.add_waiting_rows_in_place().all_counts
        self.fresh_counts = self.fresh_counts + other.fresh_counts
        # Blocks are merged from the newest: an older one must not have a lower level.
        largest_level = max([0, *(block.level for block in other.blocks)])
        for block in self.blocks:
            block.level = max(block.level, largest_level)
        for block in other.blocks:
            first = block.first + n_before
            last = block.last + n_before
            self.blocks.append(replace(block, first=first, last=last))

    # -- files ------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        self.add_waiting_rows_in_place()
        blocks = []
        for block in self.blocks:
            blocks.append(
                [
                    block.level,
                    block.first,
                    block.last,
                    time_to_json(block.start_time),
                    _list_index_and_counts_by_filled_cell(block.counts),
                    _list_index_and_counts_by_filled_cell(block.labels[None]),
                ]
            )
        numbers = {key: getattr(self, key) for key in _STORED_COUNTS}
        return {
            "every": _list_index_and_counts_by_filled_cell(self.all_counts),
            "fresh": _list_index_and_counts_by_filled_cell(self.fresh_counts),
            "blocks": blocks,
        } | numbers

    @classmethod
    def from_dict(cls, state: dict[str, Any], n_classes: int) -> "StreamCellCounts":
        """Restore a record from the dict that `to_dict` returned."""
        record = cls(n_classes)
        record.all_counts = _build_dense_counts_or_raise(
            state["every"], FINE_LOG_ODDS_GRID.n_cells
        )
        record.fresh_counts = _build_dense_counts_or_raise(
            state["fresh"], FINE_LOG_ODDS_GRID.n_cells
        )
        for level, first, last, start_time, counts, labels in state["blocks"]:
            block = BlockCounts(
                int(level),
                int(first),
                int(last),
                time_from_json(start_time),
                _build_dense_counts_or_raise(counts, COARSE_LOG_ODDS_GRID.n_cells),
                _build_dense_counts_or_raise(labels, n_classes, 1)[0],
            )
            record.blocks.append(block)
        for key in _STORED_COUNTS:
            setattr(record, key, int(state[key]))
        if record.rows != sum(block.rows for block in record.blocks):
            raise ValueError("blocks of another number of rows")
        return record


def _join_waiting_buffers_if_alike(waiting):
    """Join rows into one batch; those with times and those without stay separate."""
    if len({buffer.time is None for buffer in waiting}) > 1:
        return waiting
    if not waiting:
        return []
    columns = [
        None if column[0] is None else np.concatenate(column)
        for column in zip(*waiting, strict=True)
    ]
    return [PendingBuffer(*columns)]


def _list_index_and_counts_by_filled_cell(counts):
    """Return the index and the counts of the cells that are not empty."""
    filled = np.flatnonzero(counts[0])
    return np.column_stack([filled, counts[:, filled].T]).tolist()


def _build_dense_counts_or_raise(cells, n, rows=5):
    """Return the counts of filled cells as a validated array of shape (rows, n)."""
    counts = np.zeros((rows, n), dtype=np.int64)
    for cell, *numbers in cells:
        # The second number of a cell counts events, of at most as many rows.
        hits = numbers[min(rows - 1, 1)]
        is_possible = 0 <= cell < n and 0 <= hits <= numbers[0] > 0
        if len(numbers) != rows or not is_possible:
            raise ValueError("counts that cannot be")
        counts[:, cell] = numbers
    return counts
