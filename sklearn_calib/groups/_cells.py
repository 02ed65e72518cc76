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
    encode_cells,
    encode_float_keys,
    find_cell_starts,
    find_smallest_bit_shift,
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

    `PooledPredictions` pool the rows of all groups; an audit draws those of each
    combination.

    Parameters
    ----------
    pattern : ndarray of shape (n_cells,)
        The combination of groups that the rows are in.
    step : ndarray of shape (n_cells,), int64
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
    step: IntArray
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
    score = proba[order, 1]
    is_new = score[1:] > score[:-1]
    if pool and not is_new.all():
        # Rows are pooled only if score, log-odds, groups and weight are equal: their
        # labels are then exchangeable.
        order = np.lexsort((weight, z, pattern, proba[:, 1]))
        keys = [column[order] for column in (proba[:, 1], pattern, z, weight)]
        is_new = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    # Problems of several classes share their draws row by row, so their rows are not
    # pooled.
    starts = np.arange(len(order))
    if pool:
        starts = np.flatnonzero(np.append(True, is_new))
    first = order[starts]
    ones = np.add.reduceat(hit[order].astype(np.int64), starts)
    counts = np.diff(np.append(starts, len(order)))
    counts = np.column_stack([counts - ones, ones])
    of_label = counts * weight[first, None]
    squares = of_label * weight[first, None]
    # `_number_scores` replaces the second column.
    cells = GroupCells(
        pattern[first], first, proba[first], z[first], counts, of_label, squares
    )
    cells = _number_scores(cells)
    return _coarsen_cells(cells) if pool else cells


def _round_pair_to_summary_digits(pair):
    """Compute both columns from one number, in the digits that a summary keeps."""
    array = np.asarray(pair)
    # The smaller of p and 1 - p has the more digits.
    t, high = split_distance_and_side(array[:, 1], array[:, 0])
    other = 1.0 - t
    return np.column_stack([np.where(high, t, other), np.where(high, other, t)])


def pool_samples(samples: Iterable[Any], pattern: IntArray) -> GroupCells:
    """Return the cells of summaries (from their `samples`), each of one combination of groups."""
    parts = [(s.proba, s.counts, s.weight, s.squares) for s in samples]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    pattern = np.repeat(pattern, [len(proba) for proba, *_ in parts])
    return pool_cells(pattern, *columns)


def pool_cells(
    pattern: IntArray,
    proba: FloatArray,
    counts: AnyArray,
    weight: FloatArray,
    squares: FloatArray,
) -> GroupCells:
    """Sort cells, and add up those that are equal."""
    log = log_proba(proba)
    z = log[:, 1] - log[:, 0]
    order = np.lexsort((z, pattern, proba[:, 1]))
    keys = [column[order] for column in (proba[:, 1], pattern, z)]
    new = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    cells = GroupCells(pattern, order, proba, z, counts, weight, squares)
    starts = np.flatnonzero(np.append(True, new))
    return _coarsen_cells(_number_scores(_merge_runs(cells, order, starts)))


def _merge_runs(cells, order, starts):
    """Merge each run of cells into one, with the probabilities of the first."""
    first = order[starts]
    sums = [np.add.reduceat(column[order], starts) for column in cells[4:]]
    return GroupCells(*(column[first] for column in cells[:4]), *sums)


def _number_scores(cells):
    """Return sorted cells with numbers of their distinct scores as steps."""
    score = cells.proba[:, 1]
    return cells._replace(step=np.cumsum(np.append(0, score[1:] > score[:-1])))


def _coarsen_cells(cells):
    """Pool cells at their mean scores, as a summary does, until few enough remain to draw from."""
    if len(cells.z) <= MAX_FINE_CELLS:
        return cells
    t, high = split_distance_and_side(cells.proba[:, 1], cells.proba[:, 0])
    keys = encode_float_keys(t)

    def count_cells(shift):
        """Return the number of cells if `shift` bits of the scores are dropped."""
        ids = encode_cells(find_cell_starts(keys, high, shift), high).view(np.uint64)
        ids = ids[by_pattern]
        return 1 + np.count_nonzero((ids[1:] != ids[:-1]) | is_new_pattern)

    # Sorted once by groups and key: dropping bits keeps this order, so counting cells
    # for a shift is one pass.
    by_pattern = np.lexsort((encode_cells(keys, high).view(np.uint64), cells.pattern))
    ordered = cells.pattern[by_pattern]
    is_new_pattern = ordered[1:] != ordered[:-1]
    # With many combinations of groups even the coarsest cells are many; twice their
    # number still has some resolution in the score.
    twice_coarsest = 2 * count_cells(MAX_BIT_SHIFT)
    limit = max(MAX_POOLED_CELLS, min(twice_coarsest, _MAX_POOLED_CELLS_MANY_GROUPS))
    shift = find_smallest_bit_shift(lambda shift: count_cells(shift) <= limit)
    if shift == 0:
        return cells
    ids = encode_cells(find_cell_starts(keys, high, shift), high).view(np.uint64)
    order = np.lexsort((cells.pattern, ids))
    step = np.cumsum(np.append(0, ids[order][1:] != ids[order][:-1]))
    ordered = cells.pattern[order]
    is_new = (np.diff(step) > 0) | (ordered[1:] != ordered[:-1])
    starts = np.flatnonzero(np.append(True, is_new))
    merged = _merge_runs(cells, order, starts)
    mass = cells.weight.sum(axis=1)
    # The weighted mean keeps the expected number of events of each cell.
    mean = np.add.reduceat((mass * t)[order], starts)
    mean /= np.add.reduceat(mass[order], starts)
    other = 1.0 - mean
    side = high[order][starts]
    proba = np.column_stack([np.where(side, mean, other), np.where(side, other, mean)])
    log = log_proba(proba)
    return merged._replace(step=step[starts], proba=proba, z=log[:, 1] - log[:, 0])


def select_group_cells(
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
    member = np.zeros(int(cells.pattern.max()) + 1, dtype=bool)
    places = []
    for group in groups:
        member[group] = True
        places.append(np.flatnonzero(member[cells.pattern]).astype(np.int32))
        member[group] = False
    starts = np.concatenate([[0], np.cumsum([len(place) for place in places])])
    return np.concatenate(places), starts
