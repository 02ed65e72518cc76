"""Cells of probabilities by the bits of floating-point numbers, and sums over them.

A probability p has a side (p > 1/2 is high) and a distance t = min(p, 1 - p) from its
end. The key of t is its float64 pattern: an integer that keeps the order. A cell is all
keys that agree when their last bits are dropped: none of them (each score has its own
cell, in all its digits), or 16 and more. Cells of one shift are unions of cells of the
shift before. No cell crosses j / 60 (j = 1 .. 59).

Sums are rows of one int64 table: identity, the numbers of rows with label 0 and 1, the
summed distance of the scores from the start of their cell, and, if rows have weights,
the summed weights and squared weights of both labels. From the fourth column on the
bits are those of float64. Distances are in steps of 36 bits, to which scores and starts
are rounded: whole numbers, whose sums are the same in any order, and 0 if no bit is
dropped.

A table of pairs has one more column, the last: which combination of groups the rows
have.
"""

from bisect import bisect_left

import numpy as np

MANTISSA_BITS = 52
# The last bits of a key, which a step of a distance drops.
DISTANCE_STEP_BITS = 16
# So many bits of a key may be dropped.
ALLOWED_BIT_SHIFTS = (0, *range(DISTANCE_STEP_BITS, MANTISSA_BITS + 1))
# A cell is one octave then.
MAX_BIT_SHIFT = ALLOWED_BIT_SHIFTS[-1]
# Below 2^-24 so many more bits of a key are dropped.
EXTRA_DROPPED_TAIL_BITS = 5
N_PROBABILITY_CUTS = 60

# The last digit of a name is the label.
(
    IDENTITY_COLUMN,
    COUNT_COLUMN_0,
    COUNT_COLUMN_1,
    OFFSET_COLUMN,
    WEIGHT_COLUMN_0,
    WEIGHT_COLUMN_1,
    SQUARED_WEIGHT_COLUMN_0,
    SQUARED_WEIGHT_COLUMN_1,
) = range(8)
N_UNWEIGHTED_COLUMNS = 4
N_WEIGHTED_COLUMNS = 8
# The column of the group pattern in a table of pairs, which has one column more.
GROUP_PATTERN_COLUMN = -1

TOTAL_NAMES = (
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


def encode_float_keys(t):
    """Return the keys of float64 numbers in [0, 1/2]."""
    return np.abs(np.ascontiguousarray(t, dtype=np.float64)).view(np.int64)


def decode_float_keys(keys):
    """Return the numbers with these keys."""
    return np.ascontiguousarray(keys, dtype=np.int64).view(np.float64)


def round_keys_to_36_bit_steps(keys):
    """Round keys to steps of 36 bits."""
    half_step = 1 << (DISTANCE_STEP_BITS - 1)
    return (np.asarray(keys, dtype=np.int64) + half_step) >> DISTANCE_STEP_BITS


def split_distance_and_side(p, q=None):
    """Return distances of probabilities from their end, and whether the end is 1.

    The complement `q` has more digits than 1 - p if p is near 1. If it does not belong
    to p by rounding, p keeps all of its own; below 2^-16 that would cost q its digits.
    """
    # Near 1 the complement that the caller has is more exact than 1 - p, which loses
    # all digits below 2^-53. It is used if it agrees with p or is tiny.
    complement = 1.0 - p
    if q is not None:
        complement = np.where(
            (1.0 - q == p) | (q < MAX_TRUSTED_COMPLEMENT), q, complement
        )
    high = p > 0.5
    return np.where(high, complement, p), high


MAX_TRUSTED_COMPLEMENT = 2.0**-16
TAIL_KEY, HALF_KEY = encode_float_keys([2.0**-24, 0.5]).tolist()


def _find_cut_keys():
    """Return the first key of each interval between cuts, for both sides.

    p = j / 60 belongs to the interval below it.
    """
    edges = np.arange(N_PROBABILITY_CUTS + 1) / N_PROBABILITY_CUTS
    low = encode_float_keys(edges[: N_PROBABILITY_CUTS // 2 + 1]) + 1
    low[0] = 0
    # Cuts at j / 60 contain the edges of 10, 12, 15, 20, 30 and 60 equal bins, so
    # binned measures of summaries are exact.
    upper = edges[: N_PROBABILITY_CUTS // 2 - 1 : -1]
    high = encode_float_keys(1.0 - upper)
    # The key is lowered to the least complement that rounds to a probability at or
    # below the edge.
    while True:
        below = 1.0 - decode_float_keys(np.maximum(high - 1, 0)) <= upper
        if not (below & (high > 0)).any():
            return np.vstack([low, high])
        high -= below & (high > 0)


# The rows are the low side and the high side.
CUT_KEYS = _find_cut_keys()


def get_tail_bit_shift(shift):
    """Return how many bits are dropped below 2^-24."""
    return min(shift + EXTRA_DROPPED_TAIL_BITS, MAX_BIT_SHIFT) if shift else 0


def count_dropped_bits_by_cell(ids, shift):
    """Return how many bits cells drop; `shift` may be an array with one for each."""
    start, _ = decode_cell_start_and_side(ids)
    # Very small probabilities would otherwise use most cells, because floats are dense
    # near 0, although few decisions depend on them.
    tail = np.minimum(shift + EXTRA_DROPPED_TAIL_BITS, MAX_BIT_SHIFT)
    tail = np.where(np.equal(shift, 0), 0, tail)
    return np.where(start < TAIL_KEY, tail, shift)


def find_cell_start_keys(keys, high, shift):
    """Return the first key of the cell of each key."""
    dropped = np.where(keys < TAIL_KEY, get_tail_bit_shift(shift), shift)
    # A cell starts at the last cut before it if that is later.
    low_cut, high_cut = (
        cuts[np.searchsorted(cuts, keys, side="right") - 1] for cuts in CUT_KEYS
    )
    cut = np.where(high, high_cut, low_cut)
    return np.maximum(keys >> dropped << dropped, cut)


def find_smallest_bit_shift_or_max(fits, shift=0):
    """Return the smallest shift from `shift` on that `fits`, or the largest one.

    All shifts above one that fits must fit.
    """
    shifts = ALLOWED_BIT_SHIFTS[ALLOWED_BIT_SHIFTS.index(shift) : -1]
    first = bisect_left(shifts, True, key=fits)
    return shifts[first] if first < len(shifts) else MAX_BIT_SHIFT


def find_cell_starts_to_limit(p, q, max_cells):
    """Return where the cells of increasing probabilities begin.

    The cells are the narrowest of which there are at most `max_cells`.

    `q` are the probabilities of label 0.
    """
    t, high = split_distance_and_side(p, q)
    keys = encode_float_keys(t)

    def find_starts(shift):
        cells = find_cell_start_keys(keys, high, shift)
        new = (cells[1:] != cells[:-1]) | (high[1:] != high[:-1])
        return np.flatnonzero(np.append(True, new))

    def has_few_cells(shift):
        return len(find_starts(shift)) <= max_cells

    return find_starts(find_smallest_bit_shift_or_max(has_few_cells))


def compute_ordered_cell_ids(cells, is_high):
    """Return identities of cells.

    Read as uint64 they are in the order of the probabilities.
    """
    return np.where(is_high, ~cells, cells)


def decode_cell_start_and_side(ids):
    """Return the first key of cells, and whether they are on the high side."""
    high = ids < 0
    return np.where(high, ~ids, ids), high


def view_as_float(table):
    """Return the table as float64, for its columns of such numbers."""
    return table.view(np.float64)


def add_weight_columns_if_absent(table):
    """Return a table with columns for weights; all rows so far weigh 1."""
    if table.shape[1] == N_WEIGHTED_COLUMNS:
        return table
    wide = np.zeros((len(table), N_WEIGHTED_COLUMNS), dtype=np.int64)
    wide[:, :N_UNWEIGHTED_COLUMNS] = table
    counts = table[:, [COUNT_COLUMN_0, COUNT_COLUMN_1]]
    # Weights and squared weights are both 1, so their sums are the counts.
    view_as_float(wide)[:, WEIGHT_COLUMN_0:] = np.tile(counts, 2)
    return wide


def get_label_weight_sums_and_squares(table):
    """Return weights and squared weights of label 0 and 1 in each cell.

    Both arrays have two columns.
    """
    if table.shape[1] == N_UNWEIGHTED_COLUMNS:
        counts = table[:, [COUNT_COLUMN_0, COUNT_COLUMN_1]].astype(np.float64)
        return counts, counts
    numbers = view_as_float(table)
    return (
        numbers[:, [WEIGHT_COLUMN_0, WEIGHT_COLUMN_1]],
        numbers[:, [SQUARED_WEIGHT_COLUMN_0, SQUARED_WEIGHT_COLUMN_1]],
    )


def compute_mean_end_distances_and_sides(table, last=None):
    """Return the mean distance of each cell's rows from their end, and their side.

    Means lie between the start of their cell and that of the next, so they differ; or
    below its `last` key.
    """
    start, high = decode_cell_start_and_side(table[:, IDENTITY_COLUMN])
    base = round_keys_to_36_bit_steps(start) << DISTANCE_STEP_BITS
    offset = view_as_float(table)[:, OFFSET_COLUMN]
    base_distance = decode_float_keys(base)
    step = decode_float_keys(base + (1 << DISTANCE_STEP_BITS)) - base_distance
    weight = get_label_weight_sums_and_squares(table)[0].sum(axis=1)
    start_distance = decode_float_keys(start)
    mean = base_distance + offset / weight * step
    mean = np.where(offset > 0, mean, start_distance)
    # The caller may pass the last key of each cell; without it, the start of the next
    # cell limits the mean.
    if last is None:
        inner = np.where(high[1:], start[:-1], start[1:])
        same = high[1:] == high[:-1]
        # The largest key that may be in each cell.
        last = np.full(len(start), HALF_KEY)
        last[:-1] = np.where(same & ~high[1:], inner - 1, last[:-1])
        last[1:] = np.where(same & high[1:], inner - 1, last[1:])
    return np.clip(mean, start_distance, decode_float_keys(last)), high


def compute_mean_label_proba_by_cell(table, last_keys=None):
    """Return the probabilities of both labels at the mean of each cell.

    The result has the shape (n_cells, 2).

    The cells are all those of a summary, in order, or `last_keys` has the last key of
    each.

    Rounding does not carry a mean across a cut: p stays in (j / 60, (j + 1) / 60] with
    its rows. The smaller column has all its digits, and the scores of a table of shift
    0 are those of the rows.
    """
    t, high = compute_mean_end_distances_and_sides(table, last_keys)
    start = decode_cell_start_and_side(table[:, IDENTITY_COLUMN])[0]
    k = np.where(
        high, *(np.searchsorted(cuts, start, side="right") for cuts in CUT_KEYS[::-1])
    )
    edges = np.arange(N_PROBABILITY_CUTS + 1) / N_PROBABILITY_CUTS
    # Rounding of the mean must not move a cell over a cut, or binned measures would
    # count its rows in another bin.
    lowest = np.nextafter(edges[np.where(high, N_PROBABILITY_CUTS - k, k - 1)], 1.0)
    lowest[~high & (k == 1)] = 0.0
    p = np.where(high, 1.0 - t, t)
    inside = np.clip(p, lowest, edges[np.where(high, N_PROBABILITY_CUTS + 1 - k, k)])
    return np.column_stack([np.where(high & (inside == p), t, 1.0 - inside), inside])


def find_last_cell_keys(start, high, dropped):
    """Return the last key of cells that begin at `start` and drop `dropped` bits."""
    # A cell ends at its own last bit pattern, at 1/2, or at the next cut, whichever
    # comes first.
    end = np.minimum(((start >> dropped) + 1) << dropped, HALF_KEY + 1)
    for side in (0, 1):
        after = np.searchsorted(CUT_KEYS[side], start, side="right")
        cut = np.append(CUT_KEYS[side], np.iinfo(np.int64).max)[after]
        end = np.where(high == side, np.minimum(end, cut), end)
    return end - 1
