"""Rows by score and combination of groups, while they come in: what an audit of groups needs."""

from typing import NamedTuple

import numpy as np

from .._kernels import _cells as cells
from .._kernels._two_class_problems import iter_two_class_splits_and_proba
from .._typing import AnyArray, FloatArray, IntArray
from ..exceptions import invalid_input
from ._problems import get_scores_complements_and_events
from ._state import CellHashTable

_MIN_TABLE_SLOTS = 2**12
# More pairs of a cell and a combination are made coarser.
_MAX_FINE_PAIRS = 2**18
_MAX_SCORE_GROUP_PAIRS = 2**23


class ScoreGroupSums(NamedTuple):
    """Rows of one score, or nearly so, and one combination of groups, in one sum.

    Parameters
    ----------
    pattern : ndarray of shape (n_pairs,), int64
        The combination.
    proba : ndarray of shape (n_pairs, 2)
        Probabilities of both labels, at the mean of the rows.
    counts : ndarray of shape (n_pairs, 2), int64
        Numbers of rows with label 0 and 1.
    weight, squares : ndarray of shape (n_pairs, 2)
        Sums of their weights and squared weights.
    """

    pattern: AnyArray
    proba: FloatArray
    counts: AnyArray
    weight: FloatArray
    squares: FloatArray


class ScoreGroupTable(CellHashTable):
    """Sums over pairs of a cell of scores and a combination of groups.

    Up to 262,144 pairs each score is kept in all its digits; then cells are made as
    coarse as needed for so many, which depends on the rows alone.
    """

    def __init__(self) -> None:
        super().__init__(cells.N_UNWEIGHTED_COLUMNS + 1)

    @property
    def group_score_pair_sums(self) -> AnyArray:
        """The sums in the order of the combinations, then of the scores."""
        from .._kernels._cells_compiled import select_occupied_slot_rows

        if self._table is None:
            self._table = _sort_and_merge_cell_group_pairs(
                select_occupied_slot_rows(self._slots)
            )
        return self._table

    def add_rows(
        self,
        pattern: IntArray,
        p: FloatArray,
        q: FloatArray,
        y: AnyArray,
        weight: FloatArray | None,
    ) -> None:
        """Add rows, which were checked; see `CellState.add`."""
        # Columns for weights are only added when a weight comes.
        weights = [] if weight is None else [weight, np.ones(len(p), dtype=np.int64)]
        if weights and self.group_score_pair_sums.shape[1] < cells.N_WEIGHTED_COLUMNS:
            self._table = _add_pair_weight_columns_if_absent(self.group_score_pair_sums)
            self._slots = None
        if self._slots is None:
            self._rebuild_hash_table()
        self._fill_slots(p, q, y, pattern, *weights)

    def add_block(
        self,
        pattern: AnyArray,
        codes: AnyArray,
        block: FloatArray,
        weight: FloatArray | None,
        positive: int,
    ) -> None:
        """Add rows that `CalibrationSummary` has checked."""
        if block.ndim == 1 or block.shape[1] == 2:
            p, q, hit = get_scores_complements_and_events(codes, block, positive)
        else:
            ((problem, pair),) = iter_two_class_splits_and_proba("confidence", block)
            p = problem.score
            q = np.ascontiguousarray(pair[:, 0])
            hit = (codes == problem.target).astype(np.uint8)
        # Rows of weight 0 would make empty pairs.
        if weight is not None:
            kept = weight > 0
            pattern = pattern[kept]
            p = p[kept]
            hit = hit[kept]
            weight = weight[kept]
            q = q[kept] if len(q) else q
        self.add_rows(pattern, p, q, hit, weight)

    def merge(self, other: "ScoreGroupTable") -> None:
        """Add the rows of another."""
        own_pairs = self.group_score_pair_sums
        other_pairs = other.group_score_pair_sums
        if own_pairs.shape[1] != other_pairs.shape[1]:
            own_pairs = _add_pair_weight_columns_if_absent(own_pairs)
            other_pairs = _add_pair_weight_columns_if_absent(other_pairs)
        # The coarser resolution of both.
        self._shift = max(self._shift, other._shift)
        self._table = _sort_and_merge_cell_group_pairs(
            _coarsen_pair_identities(
                np.concatenate([own_pairs, other_pairs]), self._shift
            )
        )
        self._slots = None
        self._limit_pairs()

    def compute_sums(self) -> ScoreGroupSums:
        """Return the pairs with their mean scores."""
        table = np.ascontiguousarray(
            self.group_score_pair_sums[:, : cells.GROUP_PATTERN_COLUMN]
        )
        start, high = cells.decode_cell_start_and_side(table[:, cells.IDENTITY_COLUMN])
        last = cells.find_last_cell_keys(
            start,
            high,
            cells.count_dropped_bits_by_cell(
                table[:, cells.IDENTITY_COLUMN], self._shift
            ),
        )
        return ScoreGroupSums(
            self.group_score_pair_sums[:, cells.GROUP_PATTERN_COLUMN],
            cells.compute_mean_label_proba_by_cell(table, last),
            table[:, [cells.COUNT_COLUMN_0, cells.COUNT_COLUMN_1]],
            *cells.get_label_weight_sums_and_squares(table),
        )

    def _make_room(self):
        self._limit_pairs()
        self._rebuild_hash_table()

    def _limit_pairs(self):
        """Make pairs coarser, as far as that makes them few enough."""
        if (
            len(self.group_score_pair_sums) > _MAX_FINE_PAIRS
            and self._shift < cells.MAX_BIT_SHIFT
        ):
            self._shift = _find_smallest_shift(
                self.group_score_pair_sums, self._shift, _MAX_FINE_PAIRS
            )
            self._table = _sort_and_merge_cell_group_pairs(
                _coarsen_pair_identities(self.group_score_pair_sums, self._shift)
            )
        if len(self.group_score_pair_sums) > _MAX_SCORE_GROUP_PAIRS:
            raise invalid_input(
                expected=f"at most {_MAX_SCORE_GROUP_PAIRS} combinations of groups and scores",
                got="more",
                hint="Name fewer columns to group by",
            )

    def _rebuild_hash_table(self):
        n = len(self.group_score_pair_sums)
        room = (
            2 * n
            if n > _MAX_FINE_PAIRS
            else min(max(_MIN_TABLE_SLOTS, 4 * n), _MAX_FINE_PAIRS + 1)
        )
        self._start_hash_table(self.group_score_pair_sums, room)

    def __getstate__(self) -> dict[str, object]:
        return {"_shift": self._shift, "_table": self.group_score_pair_sums}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__()  # type: ignore[misc]
        self.__dict__.update(state)


def _sort_and_merge_cell_group_pairs(pairs):
    """Return pairs in order, equal ones added."""
    if not len(pairs):
        return pairs
    ids = np.ascontiguousarray(pairs[:, cells.IDENTITY_COLUMN]).view(np.uint64)
    # Sorted by combination, then by cell, equal pairs are neighbours.
    order = np.lexsort((ids, pairs[:, cells.GROUP_PATTERN_COLUMN]))
    pairs = pairs[order]
    names = pairs[:, [cells.IDENTITY_COLUMN, cells.GROUP_PATTERN_COLUMN]]
    new = (names[1:] != names[:-1]).any(axis=1)
    starts = np.flatnonzero(np.append(True, new))
    if len(starts) == len(pairs):
        return pairs
    sums = pairs[starts]
    whole = slice(cells.COUNT_COLUMN_0, cells.OFFSET_COLUMN)
    numbers = slice(cells.OFFSET_COLUMN, cells.GROUP_PATTERN_COLUMN)
    sums[:, whole] = np.add.reduceat(pairs[:, whole], starts)
    cells.view_as_float(sums)[:, numbers] = np.add.reduceat(
        cells.view_as_float(pairs)[:, numbers], starts
    )
    return sums


def _find_smallest_shift(pairs, shift, max_pairs):
    """Return the smallest shift from this one on that makes at most so many pairs."""
    start, high = cells.decode_cell_start_and_side(pairs[:, cells.IDENTITY_COLUMN])
    other = (
        pairs[1:, cells.GROUP_PATTERN_COLUMN] != pairs[:-1, cells.GROUP_PATTERN_COLUMN]
    )

    def fits_limit(shift):
        ids = cells.compute_ordered_cell_ids(
            cells.find_cell_start_keys(start, high, shift), high
        )
        return 1 + np.count_nonzero((ids[1:] != ids[:-1]) | other) <= max_pairs

    return cells.find_smallest_bit_shift_or_max(fits_limit, shift)


def _coarsen_pair_identities(pairs, shift):
    """Return pairs with the identities of coarser cells, and offsets from these."""
    pairs = pairs.copy()
    start, high = cells.decode_cell_start_and_side(pairs[:, cells.IDENTITY_COLUMN])
    first = cells.find_cell_start_keys(start, high, shift)
    pairs[:, cells.IDENTITY_COLUMN] = cells.compute_ordered_cell_ids(first, high)
    # Offsets are sums of distances from the start of a cell, which moves.
    moved = (
        cells.round_keys_to_36_bit_steps(start)
        - cells.round_keys_to_36_bit_steps(first)
    ).astype(np.float64)
    weight = cells.get_label_weight_sums_and_squares(
        np.ascontiguousarray(pairs[:, : cells.GROUP_PATTERN_COLUMN])
    )[0].sum(axis=1)
    cells.view_as_float(pairs)[:, cells.OFFSET_COLUMN] += weight * moved
    return pairs


def _add_pair_weight_columns_if_absent(pairs):
    if pairs.shape[1] > cells.N_WEIGHTED_COLUMNS:
        return pairs
    return np.column_stack(
        [
            cells.add_weight_columns_if_absent(pairs[:, : cells.GROUP_PATTERN_COLUMN]),
            pairs[:, cells.GROUP_PATTERN_COLUMN],
        ]
    )
