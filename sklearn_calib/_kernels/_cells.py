"""Cells of probabilities by the bits of floating-point numbers, and sums over them.

A probability p has a side (p > 1/2 is high) and a distance t = min(p, 1 - p) from its end. The key
of t is its float64 pattern: an integer that keeps the order. A cell is all keys that agree when
their last bits are dropped: none of them (each score has its own cell, in all its digits), or 16
and more. Cells of one shift are unions of cells of the shift before. No cell crosses j / 60 (j = 1
.. 59).

Sums are rows of one int64 table: identity, the numbers of rows with label 0 and 1, the summed
distance of the scores from the start of their cell, and where rows have weights the summed weights
and squared weights of both labels. From the fourth column on the bits are those of float64.
Distances are in steps of 36 bits, to which scores and starts are rounded: whole numbers, whose sums
are the same in any order, and 0 where no bit is dropped.

A table of pairs has one more column, the last: which combination of groups the rows have.
"""

from bisect import bisect_left

import numpy as np

KEPT_BITS = 52  # behind the leading one
STEP_BITS = 16  # the last bits of a key; a step of a distance is so many
SHIFTS = (0, *range(STEP_BITS, KEPT_BITS + 1))  # how many bits may be dropped
LARGEST_SHIFT = SHIFTS[-1]  # a cell is one octave then
TAIL_BITS = 5  # fewer bits are kept below 2^-24
N_CUTS = 60

ID, N0, N1, OFFSET, W0, W1, V0, V1 = range(8)
NARROW, WIDE = 4, 8  # columns without and with weights
PATTERN = -1  # of a table of pairs, which has one column more

TOTALS = (
    "n_samples",
    "weight",
    "squared_weight",
    "log_loss",
    "brier",
    "variance",
    "squared_variance",
    "spiegelhalter_variance",
    "certain_and_wrong",
)


def keys_of(t):
    """The keys of float64 numbers in [0, 1/2]."""
    return np.abs(np.ascontiguousarray(t, dtype=np.float64)).view(np.int64)


def values_of(keys):
    """The numbers that keys stand for."""
    return np.ascontiguousarray(keys, dtype=np.int64).view(np.float64)


def steps_of(keys):
    """Keys in steps of 36 bits, rounded."""
    return (np.asarray(keys, dtype=np.int64) + (1 << (STEP_BITS - 1))) >> STEP_BITS


def distances_of(p, q=None):
    """Distances from the end and the side of probabilities: what their keys are made of.

    The complement `q` has more digits than 1 - p where p is near 1, but where it does not belong
    to p by rounding, p keeps all of its own; below 2^-16 that would cost q its digits.
    """
    rest = 1.0 - p
    if q is not None:
        rest = np.where((1.0 - q == p) | (q < LEAST_REST), q, rest)
    high = p > 0.5
    return np.where(high, rest, p), high


LEAST_REST = 2.0**-16
TAIL_KEY, HALF_KEY = keys_of([2.0**-24, 0.5]).tolist()


def _cuts():
    """The first key of each interval between cuts, by the side; where p = j / 60 is below it."""
    edges = np.arange(N_CUTS + 1) / N_CUTS
    low = keys_of(edges[: N_CUTS // 2 + 1]) + 1
    low[0] = 0
    upper = edges[: N_CUTS // 2 - 1 : -1]
    high = keys_of(1.0 - upper)
    while True:  # the least complement that rounds to a probability at or below the edge
        below = 1.0 - values_of(np.maximum(high - 1, 0)) <= upper
        if not (below & (high > 0)).any():
            return np.vstack([low, high])
        high -= below & (high > 0)


CUTS = _cuts()  # rows: low side, high side


def tail_shift(shift):
    """How many bits are dropped below 2^-24."""
    return min(shift + TAIL_BITS, LARGEST_SHIFT) if shift else 0


def dropped_bits(ids, shift):
    """How many bits the cells of these identities drop; `shift` may be one for each."""
    start, _ = start_and_side(ids)
    tail = np.where(np.equal(shift, 0), 0, np.minimum(shift + TAIL_BITS, LARGEST_SHIFT))
    return np.where(start < TAIL_KEY, tail, shift)


def cells_of(keys, high, shift):
    """The first key of the cell of each key."""
    dropped = np.where(keys < TAIL_KEY, tail_shift(shift), shift)
    floor = [cuts[np.searchsorted(cuts, keys, side="right") - 1] for cuts in CUTS]
    return np.maximum(keys >> dropped << dropped, np.where(high, floor[1], floor[0]))


def least_shift(fits, shift=0):
    """The smallest shift from this one on that `fits`, as all larger ones do, or the largest."""
    shifts = SHIFTS[SHIFTS.index(shift) : -1]
    return (*shifts, LARGEST_SHIFT)[bisect_left(shifts, True, key=fits)]


def runs_of_sorted(p, q, most):
    """Where the cells of increasing probabilities begin; the narrowest of which there are `most`.

    `q` are the probabilities of label 0.
    """
    t, high = distances_of(p, q)
    keys = keys_of(t)

    def starts(shift):
        cells = cells_of(keys, high, shift)
        new = (cells[1:] != cells[:-1]) | (high[1:] != high[:-1])
        return np.flatnonzero(np.append(True, new))

    return starts(least_shift(lambda shift: len(starts(shift)) <= most))


def ids_of(cells, high):
    """Identities of cells: in the order of the probabilities when they are read as uint64."""
    return np.where(high, ~cells, cells)


def start_and_side(ids):
    """The first key of cells, and whether they are on the high side."""
    high = ids < 0
    return np.where(high, ~ids, ids), high


def real(table):
    """The columns of a table that hold float64 numbers, at the same positions."""
    return table.view(np.float64)


def widened(table):
    """A table with columns for weights, where all rows so far weigh 1."""
    if table.shape[1] == WIDE:
        return table
    wide = np.zeros((len(table), WIDE), dtype=np.int64)
    wide[:, :NARROW] = table
    real(wide)[:, [W0, W1]] = table[:, [N0, N1]]
    real(wide)[:, [V0, V1]] = table[:, [N0, N1]]
    return wide


def label_sums(table):
    """Weights and squared weights of label 0 and 1 in each cell: two arrays of two columns."""
    if table.shape[1] == NARROW:
        counts = table[:, [N0, N1]].astype(np.float64)
        return counts, counts
    return real(table)[:, [W0, W1]], real(table)[:, [V0, V1]]


def mean_distances(table, last=None):
    """The mean distance of the rows of each cell from their end, and their side.

    Means lie between the start of their cell and that of the next, so they differ; or below its
    `last` key.
    """
    start, high = start_and_side(table[:, ID])
    base, offset = steps_of(start) << STEP_BITS, real(table)[:, OFFSET]
    step = values_of(base + (1 << STEP_BITS)) - values_of(base)
    weight = label_sums(table)[0].sum(axis=1)
    mean = np.where(offset > 0, values_of(base) + offset / weight * step, values_of(start))
    if last is not None:
        return np.clip(mean, values_of(start), values_of(last)), high
    inner, same = np.where(high[1:], start[:-1], start[1:]), high[1:] == high[:-1]
    last = np.full(len(start), HALF_KEY)  # of the keys that may be in the cell
    last[:-1] = np.where(same & ~high[1:], inner - 1, last[:-1])
    last[1:] = np.where(same & high[1:], inner - 1, last[1:])
    return np.clip(mean, values_of(start), values_of(last)), high


def mean_scores(table, last=None):
    """Probabilities of both labels at the mean of each cell, of shape (n_cells, 2).

    The cells are all of a summary, in order, or `last` has the last key of each.

    Rounding does not carry a mean across a cut: p stays in (j / 60, (j + 1) / 60] where its rows
    are. The smaller column has all its digits, and the scores of a table of shift 0 are those of
    the rows.
    """
    t, high = mean_distances(table, last)
    start = start_and_side(table[:, ID])[0]
    k = np.where(high, *(np.searchsorted(cuts, start, side="right") for cuts in CUTS[::-1]))
    edges = np.arange(N_CUTS + 1) / N_CUTS
    lowest = np.nextafter(edges[np.where(high, N_CUTS - k, k - 1)], 1.0)
    lowest[~high & (k == 1)] = 0.0
    p = np.where(high, 1.0 - t, t)
    inside = np.clip(p, lowest, edges[np.where(high, N_CUTS + 1 - k, k)])
    return np.column_stack([np.where(high & (inside == p), t, 1.0 - inside), inside])


def last_keys(start, high, dropped):
    """The last key of cells that begin at these keys and drop so many bits."""
    end = np.minimum(((start >> dropped) + 1) << dropped, HALF_KEY + 1)
    for side in (0, 1):
        after = np.searchsorted(CUTS[side], start, side="right")
        cut = np.append(CUTS[side], np.iinfo(np.int64).max)[after]
        end = np.where(high == side, np.minimum(end, cut), end)
    return end - 1
