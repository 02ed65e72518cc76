"""Cells of rows with one score, weight and combination of groups, from which audits draw.

Pooling loses nothing: labels of such rows are exchangeable, so the number of ones is
binomial. Rows and summaries of them make the same cells, in the same order, hence the
same draws.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._kernels._cells import (
    MAX_BIT_SHIFT,
    compute_ordered_cell_ids,
    encode_float_keys,
    find_cell_start_keys,
    find_smallest_bit_shift_or_max,
    split_distance_and_side,
)
from .._simplex_array import has_exact_log, log_proba
from .._typing import AnyArray, FloatArray, IntArray

# More cells are made coarser.
MAX_FINE_CELLS = 2**16
# The number of cells that remain after that.
MAX_POOLED_CELLS = 2**14
# The same if there are so many combinations of groups that coarse cells are not fewer.
_MAX_POOLED_CELLS_MANY_GROUPS = 2**18


class GroupCells(NamedTuple):
    """Cells of one score and one combination of groups, in increasing order of the score.

    `PredictionsByScore` pool the rows of all groups; an audit draws those of each
    combination.

    Parameters
    ----------
    pattern : ndarray of shape (n_cells,)
        The combination of groups that the rows are in.
    score_index : ndarray of shape (n_cells,), int64
        The rank of the score; equal for cells that are one step of a path.
    proba : ndarray of shape (n_cells, 2)
        Probabilities of both labels.
    z : ndarray of shape (n_cells,)
        The log-odds.
    counts : ndarray of shape (n_cells, 2), int64
        Numbers of rows with label 0 and 1.
    weight, squares : ndarray of shape (n_cells, 2)
        Sums of their weights and squared weights.
    """

    pattern: IntArray
    score_index: IntArray
    proba: FloatArray
    z: FloatArray
    counts: AnyArray
    weight: FloatArray
    squares: FloatArray


def pool_rows(
    pattern: IntArray, pair: FloatArray, hit: AnyArray, weight: FloatArray, pool: bool
) -> GroupCells:
    """Return the cells of rows; with `pool=False` each row is a cell of its own.

    Parameters
    ----------
    pattern : ndarray of shape (n_samples,)
    pair : ndarray of shape (n_samples, 2)
        Probabilities of both labels, with logarithms if they have them.
    hit : ndarray of bool of shape (n_samples,)
    weight : ndarray of shape (n_samples,)
    pool : bool
    """
    # Rows and summaries of them must give the same cells, so single rows are rounded as
    # a summary rounds.
    if not has_exact_log(pair):
        pair = _round_pair_to_summary_digits(pair)
    log = log_proba(pair)
    z = log[:, 1] - log[:, 0]
    proba = np.asarray(pair)
    order = np.argsort(proba[:, 1], kind="stable")
    is_start = _mark_run_starts(proba[order, 1])
    if pool and not is_start.all():
        # Rows are pooled only if score, log-odds, groups and weight are equal: their
        # labels are then exchangeable.
        keys = (weight, z, pattern, proba[:, 1])
        order = np.lexsort(keys)
        is_start = _mark_run_starts(*(key[order] for key in keys))
    # Problems of several classes share their draws row by row, so their rows are not
    # pooled.
    starts = np.flatnonzero(is_start) if pool else np.arange(len(order))
    first_rows = order[starts]
    n_events = np.add.reduceat(hit[order].astype(np.int64), starts)
    counts = np.diff(np.append(starts, len(order)))
    counts = np.column_stack([counts - n_events, n_events])
    label_weight = counts * weight[first_rows, None]
    squares = label_weight * weight[first_rows, None]
    # `_get_cells_with_distinct_score_index` replaces the second column.
    cells = GroupCells(
        pattern[first_rows],
        first_rows,
        proba[first_rows],
        z[first_rows],
        counts,
        label_weight,
        squares,
    )
    cells = _get_cells_with_distinct_score_index(cells)
    return _coarsen_cells(cells) if pool else cells


def _round_pair_to_summary_digits(pair):
    """Compute both columns from one number, in the digits that a summary keeps."""
    array = np.asarray(pair)
    # The smaller of p and 1 - p has the more digits.
    distance, is_high = split_distance_and_side(array[:, 1], array[:, 0])
    return _make_proba_columns_from_distance_and_side(distance, is_high)


def _make_proba_columns_from_distance_and_side(distance, is_high):
    """Return both columns from the smaller one, which is the first if `is_high`."""
    complement = 1.0 - distance
    first = np.where(is_high, distance, complement)
    second = np.where(is_high, complement, distance)
    return np.column_stack([first, second])


def _mark_run_starts(*keys):
    """Return a mask of the rows that differ from the row before in some of the keys."""
    is_new = [key[1:] != key[:-1] for key in keys]
    return np.append(True, np.logical_or.reduce(is_new))


def pool_samples_by_combination(
    samples: Iterable[Any], combination_by_sample: IntArray
) -> GroupCells:
    """Return the cells of summaries (from their `samples`), each of one combination of groups."""
    parts = [
        (sample.proba, sample.counts, sample.weight, sample.squares)
        for sample in samples
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    n_cells = [len(proba) for proba, *_ in parts]
    return pool_and_coarsen_cells(np.repeat(combination_by_sample, n_cells), *columns)


def pool_and_coarsen_cells(
    pattern: IntArray,
    proba: FloatArray,
    counts: AnyArray,
    weight: FloatArray,
    squares: FloatArray,
) -> GroupCells:
    """Sort cells, add up those that are equal, and coarsen many of them."""
    log = log_proba(proba)
    z = log[:, 1] - log[:, 0]
    keys = (z, pattern, proba[:, 1])
    order = np.lexsort(keys)
    starts = np.flatnonzero(_mark_run_starts(*(key[order] for key in keys)))
    # `_get_cells_with_distinct_score_index` replaces the second column.
    cells = GroupCells(pattern, order, proba, z, counts, weight, squares)
    cells = _merge_cell_runs(cells, order, starts)
    return _coarsen_cells(_get_cells_with_distinct_score_index(cells))


def _merge_cell_runs(cells, order, starts):
    """Merge each run of cells into one, with the probabilities of the first."""
    first_cells = order[starts]
    sums = [np.add.reduceat(column[order], starts) for column in cells[4:]]
    return GroupCells(*(column[first_cells] for column in cells[:4]), *sums)


def _get_cells_with_distinct_score_index(cells):
    """Return sorted cells with numbers of their distinct scores as steps."""
    is_start = _mark_run_starts(cells.proba[:, 1])
    return cells._replace(score_index=np.cumsum(is_start) - 1)


def _coarsen_cells(cells):
    """Pool cells at their mean scores, as a summary does, until few enough remain to draw from."""
    if len(cells.z) <= MAX_FINE_CELLS:
        return cells
    distance, is_high = split_distance_and_side(cells.proba[:, 1], cells.proba[:, 0])
    keys = encode_float_keys(distance)

    def encode_coarse_cells(shift):
        """Return the id of the cell of each score if `shift` of its bits are dropped."""
        cell_starts = find_cell_start_keys(keys, is_high, shift)
        return compute_ordered_cell_ids(cell_starts, is_high).view(np.uint64)

    def count_cells(shift):
        ids = encode_coarse_cells(shift)[by_pattern]
        return np.count_nonzero(_mark_run_starts(ids, pattern))

    # Sorted once by groups and key: dropping bits keeps this order, so counting cells
    # for a shift is one pass.
    fine_ids = compute_ordered_cell_ids(keys, is_high).view(np.uint64)
    by_pattern = np.lexsort((fine_ids, cells.pattern))
    pattern = cells.pattern[by_pattern]
    # With many combinations of groups even the coarsest cells are many; twice their
    # number still has some resolution in the score.
    twice_coarsest = 2 * count_cells(MAX_BIT_SHIFT)
    limit = max(MAX_POOLED_CELLS, min(twice_coarsest, _MAX_POOLED_CELLS_MANY_GROUPS))
    shift = find_smallest_bit_shift_or_max(lambda shift: count_cells(shift) <= limit)
    if shift == 0:
        return cells
    ids = encode_coarse_cells(shift)
    order = np.lexsort((cells.pattern, ids))
    ordered_ids = ids[order]
    is_start = _mark_run_starts(ordered_ids, cells.pattern[order])
    starts = np.flatnonzero(is_start)
    step = np.cumsum(_mark_run_starts(ordered_ids)) - 1
    merged = _merge_cell_runs(cells, order, starts)
    mass = cells.weight.sum(axis=1)
    # The weighted mean keeps the expected number of events of each cell.
    mean_distance = np.add.reduceat((mass * distance)[order], starts)
    mean_distance /= np.add.reduceat(mass[order], starts)
    proba = _make_proba_columns_from_distance_and_side(
        mean_distance, is_high[order][starts]
    )
    log = log_proba(proba)
    z = log[:, 1] - log[:, 0]
    return merged._replace(score_index=step[starts], proba=proba, z=z)


def get_group_cells_and_starts(
    cells: GroupCells, groups: Sequence[IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the cells of all groups, one group after the other, and the start of each group.

    Parameters
    ----------
    cells : GroupCells
    groups : sequence of ndarray
        The combinations that each group consists of.
    """
    # One array of flags for all groups: only the entries of a group are set and reset.
    is_member = np.zeros(int(cells.pattern.max()) + 1, dtype=bool)
    members_by_group = []
    for group in groups:
        is_member[group] = True
        members = np.flatnonzero(is_member[cells.pattern])
        members_by_group.append(members.astype(np.int32))
        is_member[group] = False
    sizes = [len(members) for members in members_by_group]
    starts = np.append(0, np.cumsum(sizes))
    return np.concatenate(members_by_group), starts
