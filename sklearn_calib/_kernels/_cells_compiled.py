"""Rows into a table of cells by hashing, and coarser cells, compiled. `_cells` explains them.

Three passes over a block that fits into a cache: the losses, the cells, and the table.
The first two have no branches, so the vector units do them; mispredicted ones made a
single pass twice as slow. Open addressing: a slot is a row of the table, 32 bytes, or
64 with weights. Eight neighbouring cells lie side by side, because scores of one batch
have neighbours; the step from an occupied slot leaves the lane, because the last bits
of float32 scores are zero.
"""

import numpy as np
from numba import uint64

from .._simplex_array import LOG_LOSS_FLOOR
from ._cells import (
    ALLOWED_BIT_SHIFTS,
    COUNT_COLUMN_0,
    COUNT_COLUMN_1,
    CUT_KEYS,
    DISTANCE_STEP_BITS,
    GROUP_PATTERN_COLUMN,
    IDENTITY_COLUMN,
    MAX_TRUSTED_COMPLEMENT,
    N_PROBABILITY_CUTS,
    N_UNWEIGHTED_COLUMNS,
    N_WEIGHTED_COLUMNS,
    OFFSET_COLUMN,
    SQUARED_WEIGHT_COLUMN_0,
    TAIL_KEY,
    WEIGHT_COLUMN_0,
    get_tail_bit_shift,
    view_as_float,
)
from ._compile import compile_helper, compile_kernel
from ._exact_sums import SUM_FRACTION_BITS, add_sum_lists
from ._exact_sums_compiled import (
    CHUNK_ROWS,
    count_chunks,
    fill_negative_logs,
    split_to_integers,
    sum_and_join_integer_parts,
    sum_to_exact_integers,
)

EMPTY_SLOT = np.iinfo(np.int64).min
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF_DISTANCE_STEP = np.uint64(1 << (DISTANCE_STEP_BITS - 1))
_UNSIGNED_STEP_BITS = np.uint64(DISTANCE_STEP_BITS)
_WORD_BITS = np.uint64(32)
_UNSIGNED_TAIL_KEY = np.uint64(TAIL_KEY)
_PATTERN_HASH_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_SLOTS_PER_PROBE_STEP = np.uint64(9)
_UNSIGNED_ZERO = np.uint64(0)
_UNSIGNED_COUNT_COLUMN_0 = np.uint64(COUNT_COLUMN_0)
_N_LANE_BITS = np.uint64(3)
_LANE_MASK = np.uint64(7)
_UNSIGNED_WEIGHT_COLUMN_0 = np.uint64(WEIGHT_COLUMN_0)
_UNSIGNED_SQUARED_WEIGHT_COLUMN_0 = np.uint64(SQUARED_WEIGHT_COLUMN_0)
# The cuts of the high side begin here.
_FIRST_HIGH_SIDE_CUT = np.uint64(CUT_KEYS.shape[1])
_FLAT_CUT_KEYS = CUT_KEYS.astype(np.uint64).ravel()
# So many of the totals depend on weights.
_N_WEIGHTED_TOTALS = 7
_UNIT_WEIGHTS = np.ones(CHUNK_ROWS)
# Rounding moves 60 t by less than this.
_PROBABILITY_CUT_TOLERANCE = 1e-9


def make_empty_slots(n_cells, columns):
    """Return slots for a number of cells, at most three quarters full."""
    # Open addressing slows down steeply if more than about three quarters of the slots
    # are filled.
    n_slots = 1 << int(np.ceil(np.log2(max(n_cells * 4 / 3, 16))))
    slots = np.zeros((n_slots, columns), dtype=np.int64)
    slots[:, IDENTITY_COLUMN] = EMPTY_SLOT
    return slots


@compile_helper
def _find_cell_start_key(key, t, high, shift, tail, cuts):
    """Return the first key of the cell; all integers are unsigned."""
    # A product and one comparison replace a binary search; the tolerance makes the
    # guess at most one cut too high.
    j = (
        uint64(np.int64(t * N_PROBABILITY_CUTS + _PROBABILITY_CUT_TOLERANCE))
        + high * _FIRST_HIGH_SIDE_CUT
    )
    j -= uint64(cuts[j] > key)
    dropped = tail if key < _UNSIGNED_TAIL_KEY else shift
    return max((key >> dropped) << dropped, cuts[j])


@compile_helper
def _round_key_to_steps(key):
    return (key + _HALF_DISTANCE_STEP) >> _UNSIGNED_STEP_BITS


@compile_helper
def _find_slot(table, identity, i, pattern, shift, bits):
    """Return the slot of a cell, or the empty slot for it.

    If there is a `pattern`, it is the slot of the pair of the cell with pattern[i].
    If `pattern` is None the compiler removes the code for pairs.
    """
    shifted = uint64(identity) >> shift
    # At shift 0 cells are single scores without neighbours, so all bits are mixed.
    if shift == _UNSIGNED_ZERO:
        slot = ((shifted ^ (shifted >> _WORD_BITS)) * _HASH_FACTOR) >> (
            uint64(64) - bits
        )
    else:
        slot = ((shifted >> _N_LANE_BITS) * _HASH_FACTOR) >> (uint64(67) - bits)
        slot = (slot << _N_LANE_BITS) | (shifted & _LANE_MASK)
    mask = uint64(len(table) - 1)
    if pattern is None:
        while (
            table[slot, IDENTITY_COLUMN] != identity
            and table[slot, IDENTITY_COLUMN] != EMPTY_SLOT
        ):
            # The step is odd and the table a power of 2, so the probe visits every
            # slot.
            slot = (slot + _SLOTS_PER_PROBE_STEP) & mask
    else:
        row_pattern = pattern[i]
        last = uint64(table.shape[1] - 1)
        # The groups of the row are part of the key of a pair. XOR keeps the slot within
        # the table.
        slot ^= (uint64(row_pattern) * _PATTERN_HASH_FACTOR) >> (uint64(64) - bits)
        while table[slot, IDENTITY_COLUMN] != EMPTY_SLOT and (
            table[slot, IDENTITY_COLUMN] != identity or table[slot, last] != row_pattern
        ):
            slot = (slot + _SLOTS_PER_PROBE_STEP) & mask
    return slot


def _make_unsigned_shift_and_tail(shift):
    return np.uint64(shift), np.uint64(get_tail_bit_shift(shift))


def _count_slot_bits(slots):
    return np.uint64(len(slots).bit_length() - 1)


def identify_cells_and_offsets(p, q, shift):
    """Return the identity of each row's cell, and its steps from the cell's start.

    `q` is the probability of label 0, or empty if it is 1 - p.
    """
    ids = np.empty(len(p), dtype=np.int64)
    distance = np.empty(len(p))
    _identify_rows(
        p,
        q if len(q) else 1.0 - p,
        *_make_unsigned_shift_and_tail(shift),
        _FLAT_CUT_KEYS,
        ids,
        distance,
    )
    return ids, distance


@compile_kernel
def _identify_rows(p, q, shift, tail, cuts, ids, distance):
    """Write the identity of each row's cell, and its distance from the start of the cell."""
    for i in range(len(p)):
        is_exact = (q[i] < MAX_TRUSTED_COMPLEMENT) | (1.0 - q[i] == p[i])
        complement = q[i] if is_exact else 1.0 - p[i]
        high = uint64(p[i] > 0.5)
        # The absolute value turns -0.0 into 0.0, which has other bits.
        t = abs(complement if p[i] > 0.5 else p[i])
        key = np.float64(t).view(np.uint64)
        cell = _find_cell_start_key(key, t, high, shift, tail, cuts)
        ids[i] = np.int64(cell ^ (_UNSIGNED_ZERO - high))
        distance[i] = np.float64(
            np.int64(_round_key_to_steps(key) - _round_key_to_steps(cell))
        )


def sum_unweighted_totals_as_integers(p, q, y):
    """Return the totals of rows of weight 1, as `_exact_sums`.

    Chunk by chunk, which a cache holds from loop to loop.
    """
    q = q if len(q) else 1.0 - p
    parts = np.zeros((count_chunks(len(p)), 4, 2), np.int64)
    work = np.empty((2, CHUNK_ROWS))
    wrong = 0
    for start, sums in zip(range(0, len(p), CHUNK_ROWS), parts, strict=True):
        rows = slice(start, start + CHUNK_ROWS)
        block_p = p[rows]
        block_q = q[rows]
        right = work[0, : len(block_p)]
        off = work[1, : len(block_p)]
        # Without numba `wrong` would become an int64 of numpy, hence int(). A certain
        # and wrong prediction makes Spiegelhalter's variance meaningless; such rows are
        # counted.
        wrong += int(
            _fill_label_other_proba_and_count_zeros(
                block_p, block_q, y[rows], right, off
            )
        )
        sums[1] = _sum_products_exactly(off, off)
        fill_negative_logs(right, LOG_LOSS_FLOOR, off)
        sums[0] = _sum_products_exactly(off, _UNIT_WEIGHTS[: len(off)])
        sums[2] = _sum_products_exactly(block_p, block_q)
        sums[3] = _sum_spiegelhalter_variances_high_and_low(block_p, block_q)
    loss, brier, variance, score = sum_and_join_integer_parts(parts)
    n = len(p) << SUM_FRACTION_BITS
    return [n, n, n, loss, brier, variance, variance, score, wrong << SUM_FRACTION_BITS]


@compile_kernel
def _fill_label_other_proba_and_count_zeros(p, q, y, label_proba, other_proba):
    """Write the probability of each row's label and of the other one; return how many are 0."""
    wrong = np.int64(0)
    for i in range(len(p)):
        # All values are loaded before they are compared, so that the compiler needs no
        # branch.
        is_event = y[i] == 1
        positive = p[i]
        negative = q[i]
        label_proba[i] = positive if is_event else negative
        other_proba[i] = negative if is_event else positive
    for i in range(len(p)):
        wrong += label_proba[i] <= 0.0
    return wrong


@compile_kernel
def _sum_products_exactly(a, b):
    highs = lows = np.int64(0)
    for i in range(len(a)):
        high, low = split_to_integers(a[i] * b[i])
        highs += high
        lows += low
    return highs, lows


@compile_kernel
def _sum_spiegelhalter_variances_high_and_low(p, q):
    highs = lows = np.int64(0)
    for i in range(len(p)):
        tilt = q[i] - p[i]
        high, low = split_to_integers(p[i] * q[i] * tilt * tilt)
        highs += high
        lows += low
    return highs, lows


def sum_weighted_totals_as_integers(p, q, y, weight, count):
    """Return the totals of rows with weights and numbers of repetitions."""
    q = q if len(q) else 1.0 - p
    sums = [0] * _N_WEIGHTED_TOTALS
    wrong = 0
    step = min(4 * CHUNK_ROWS, len(p))
    terms = np.empty((_N_WEIGHTED_TOTALS, step))
    work = np.empty((2, step))
    for start in range(0, len(p), step):
        rows = slice(start, start + step)
        block_p = p[rows]
        block_q = q[rows]
        right = work[0, : len(block_p)]
        off = work[1, : len(block_p)]
        if _fill_label_other_proba_and_count_zeros(
            block_p, block_q, y[rows], right, off
        ):
            wrong += int(count[rows][right <= 0.0].sum())
        fill_negative_logs(right, LOG_LOSS_FLOOR, right)
        block_terms = terms[:, : len(block_p)]
        _fill_weighted_total_columns(
            block_p, block_q, right, off, weight[rows], count[rows], block_terms
        )
        sums = add_sum_lists(sums, sum_to_exact_integers(block_terms))
    return [int(count.sum()) << SUM_FRACTION_BITS, *sums, wrong << SUM_FRACTION_BITS]


@compile_kernel
def _fill_weighted_total_columns(p, q, loss, off, weight, count, terms):
    """Fill the weighted columns of the table of terms.

    They are the columns `weight` to `spiegelhalter_variance` of `TOTAL_NAMES`.
    """
    for i in range(len(p)):
        spread = p[i] * q[i]
        tilt = q[i] - p[i]
        w = weight[i] * np.float64(count[i])
        v = w * weight[i]
        terms[0, i] = w
        terms[1, i] = v
        terms[2, i] = w * loss[i]
        terms[3, i] = w * off[i] * off[i]
        terms[4, i] = w * spread
        terms[5, i] = v * spread
        terms[6, i] = v * spread * tilt * tilt


def add_rows_and_count_added_and_filled(
    slots, filled, max_filled, shift, ids, distance, y, pattern, *weights
):
    """Add rows while there are free slots for their cells.

    `weights` are weights and numbers of repetitions, or empty.

    None of these is 0; `pattern` belongs to slots of pairs, else it is None. Returns
    (how many were added, the number of filled slots).
    """
    weight, count = weights or (None, None)
    return _add_rows_and_count_added_and_filled(
        slots,
        view_as_float(slots),
        filled,
        max_filled,
        np.uint64(shift),
        _count_slot_bits(slots),
        ids,
        distance,
        y,
        weight,
        count,
        pattern,
    )


@compile_kernel
def _add_rows_and_count_added_and_filled(
    slots,
    numbers,
    filled,
    max_filled,
    shift,
    bits,
    ids,
    distance,
    y,
    weight,
    count,
    pattern,
):
    """Add rows to the slots until a new cell does not find a free one."""
    # The label is added to a column index, not tested: a branch on the label is
    # mispredicted for half of the rows.
    wide = slots.shape[1] >= N_WEIGHTED_COLUMNS
    last = uint64(slots.shape[1] - 1)
    for i in range(len(ids)):
        slot = _find_slot(slots, ids[i], i, pattern, shift, bits)
        if slots[slot, IDENTITY_COLUMN] == EMPTY_SLOT:
            if filled == max_filled:
                return i, filled
            slots[slot, IDENTITY_COLUMN] = ids[i]
            if pattern is not None:
                slots[slot, last] = pattern[i]
            filled += 1
        label = uint64(y[i])
        # The type of `weight` is known when this is compiled: only one of the branches
        # is kept.
        if weight is None:
            times = 1
            w = 1.0
            v = 1.0
        else:
            times = count[i]
            w = weight[i] * count[i]
            v = w * weight[i]
        slots[slot, _UNSIGNED_COUNT_COLUMN_0 + label] += times
        numbers[slot, OFFSET_COLUMN] += w * distance[i]
        if wide:
            numbers[slot, _UNSIGNED_WEIGHT_COLUMN_0 + label] += w
            numbers[slot, _UNSIGNED_SQUARED_WEIGHT_COLUMN_0 + label] += v
    return len(ids), filled


def write_distinct_cells_to_empty_slots(slots, cells, shift):
    """Put different cells, or pairs, of this shift into empty slots."""
    pattern = (
        cells[:, GROUP_PATTERN_COLUMN]
        if cells.shape[1] in (N_UNWEIGHTED_COLUMNS + 1, N_WEIGHTED_COLUMNS + 1)
        else None
    )
    _write_cells_to_slots(
        slots, cells, np.uint64(shift), _count_slot_bits(slots), pattern
    )


@compile_kernel
def _write_cells_to_slots(slots, cells, shift, bits, pattern):
    for i in range(len(cells)):
        slot = _find_slot(slots, cells[i, IDENTITY_COLUMN], i, pattern, shift, bits)
        for j in range(cells.shape[1]):
            slots[slot, j] = cells[i, j]


@compile_helper
def _coarsen_cell(identity, shift, tail, cuts):
    high = uint64(identity < 0)
    key = uint64(identity) ^ (_UNSIGNED_ZERO - high)
    t = np.uint64(key).view(np.float64)
    return np.int64(
        _find_cell_start_key(key, t, high, shift, tail, cuts) ^ (_UNSIGNED_ZERO - high)
    )


@compile_helper
def _count_steps_from_coarse_to_fine_start(coarse, fine):
    """Return how many steps a coarser cell starts before a finer one."""
    if fine < 0:
        coarse = ~coarse
        fine = ~fine
    return np.int64(
        _round_key_to_steps(uint64(fine)) - _round_key_to_steps(uint64(coarse))
    )


@compile_kernel
def _count_cells(cells, shift, tail, cuts):
    number = 0
    last = np.int64(EMPTY_SLOT)
    for i in range(len(cells)):
        identity = _coarsen_cell(cells[i, IDENTITY_COLUMN], shift, tail, cuts)
        number += identity != last
        last = identity
    return number


@compile_kernel
def _merge_cell_runs_in_place_and_count(cells, numbers, shift, tail, cuts):
    """Merge the sorted cells that the shift makes equal, in place; return their number."""
    filled = -1
    for i in range(len(cells)):
        before = cells[i, IDENTITY_COLUMN]
        identity = _coarsen_cell(before, shift, tail, cuts)
        steps = _count_steps_from_coarse_to_fine_start(identity, before)
        weight = np.float64(cells[i, COUNT_COLUMN_0] + cells[i, COUNT_COLUMN_1])
        if cells.shape[1] == N_WEIGHTED_COLUMNS:
            weight = numbers[i, WEIGHT_COLUMN_0] + numbers[i, WEIGHT_COLUMN_0 + 1]
        offset = numbers[i, OFFSET_COLUMN] + weight * steps
        if filled < 0 or cells[filled, IDENTITY_COLUMN] != identity:
            filled += 1
            for j in range(cells.shape[1]):
                cells[filled, j] = cells[i, j]
            cells[filled, IDENTITY_COLUMN] = identity
            numbers[filled, OFFSET_COLUMN] = offset
        else:
            cells[filled, COUNT_COLUMN_0] += cells[i, COUNT_COLUMN_0]
            cells[filled, COUNT_COLUMN_1] += cells[i, COUNT_COLUMN_1]
            numbers[filled, OFFSET_COLUMN] += offset
            for j in range(WEIGHT_COLUMN_0, cells.shape[1]):
                numbers[filled, j] += numbers[i, j]
    return filled + 1


def merge_cells_to_limit(cells, shift, max_cells):
    """Return at most `max_cells` cells ordered by probability, and their shift.

    `cells` of this shift or a smaller one, in any order. The new shift is the smallest
    from the given one on that is possible, found by bisection, because the number of
    cells falls with it; first near the given one, where it is when two summaries are
    merged.
    """
    # As unsigned numbers, the identities of the high side, which are complements, sort
    # after those of the low side and in order of the probability.
    ids = np.ascontiguousarray(cells[:, IDENTITY_COLUMN]).view(np.uint64)
    # The stable sort is fast for cells that are sorted already.
    cells = np.take(cells, np.argsort(ids, kind="stable"), axis=0)

    def is_within_limit(index):
        return (
            index == last
            or _count_cells(
                cells,
                *_make_unsigned_shift_and_tail(ALLOWED_BIT_SHIFTS[index]),
                _FLAT_CUT_KEYS,
            )
            <= max_cells
        )

    last = len(ALLOWED_BIT_SHIFTS) - 1
    step = 1
    low = high = ALLOWED_BIT_SHIFTS.index(shift)
    # Doubling steps and then bisection: usually the next shift is enough, and each
    # count costs a pass over the cells.
    while not is_within_limit(high):
        low = high + 1
        high = min(high + step, last)
        step *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_within_limit(middle) else (middle + 1, high)
    shift = ALLOWED_BIT_SHIFTS[high]
    n_cells = _merge_cell_runs_in_place_and_count(
        cells,
        view_as_float(cells),
        *_make_unsigned_shift_and_tail(shift),
        _FLAT_CUT_KEYS,
    )
    return cells[:n_cells].copy(), shift


def select_occupied_slot_rows(slots):
    """Return the cells in slots, in no particular order."""
    return slots[slots[:, IDENTITY_COLUMN] != EMPTY_SLOT]
