"""Rows into a table of cells by hashing, and coarser cells, compiled. `_cells` says what they are.

Three passes over a block that fits into a cache: the losses, the cells, and the table. The first
two have no branches, so the vector units do them; mispredicted ones made a single pass twice as
slow. Open addressing: a slot is a row of the table, 32 bytes, or 64 with weights. Eight
neighbouring cells lie side by side, because scores of one batch have neighbours; the step from an
occupied slot leaves the lane, because the last bits of float32 scores are zero.
"""

import numpy as np
from numba import uint64

from .._simplex_array import LOG_LOSS_FLOOR
from ._cells import (
    CUTS,
    ID,
    LEAST_REST,
    N0,
    N1,
    N_CUTS,
    NARROW,
    OFFSET,
    PATTERN,
    SHIFTS,
    STEP_BITS,
    TAIL_KEY,
    V0,
    W0,
    WIDE,
    real,
    tail_shift,
)
from ._compile import kernel, part
from ._exact_sums import UNIT_BITS, added
from ._exact_sums_compiled import (
    CHUNK,
    from_parts,
    n_chunks,
    negative_logarithms,
    sums_of,
    whole_parts,
)

EMPTY = np.iinfo(np.int64).min
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(1 << (STEP_BITS - 1))
_STEP_BITS = np.uint64(STEP_BITS)
_WORD = np.uint64(32)
_TAIL = np.uint64(TAIL_KEY)
_SALT = np.uint64(0xD6E8FEB86659FD93)
_STEP = np.uint64(9)
_NO, _ONE, _LANE, _LANES = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(7)
_W0, _V0 = np.uint64(W0), np.uint64(V0)
_SIDE = np.uint64(CUTS.shape[1])  # where the cuts of the high side begin
_CUTS = CUTS.astype(np.uint64).ravel()
_N_WEIGHTED = 7  # totals that weights are in
_ONES = np.ones(CHUNK)
_EDGE = 1e-9  # more than rounding can move 60 t


def empty_slots(n_cells, columns):
    """Slots for a number of cells, at most three quarters full."""
    n_slots = 1 << int(np.ceil(np.log2(max(n_cells * 4 / 3, 16))))
    slots = np.zeros((n_slots, columns), dtype=np.int64)
    slots[:, ID] = EMPTY
    return slots


@part
def _start(key, t, high, shift, tail, cuts):
    """The first key of the cell; all integers unsigned."""
    j = uint64(np.int64(t * N_CUTS + _EDGE)) + high * _SIDE
    j -= uint64(cuts[j] > key)
    dropped = tail if key < _TAIL else shift
    return max((key >> dropped) << dropped, cuts[j])


@part
def _steps(key):
    return (key + _HALF) >> _STEP_BITS


@part
def _slot(table, identity, i, pattern, shift, bits):
    """Where a cell is, or its pair with pattern[i], or the empty slot where it belongs.

    The compiler sees a `pattern` of None, and drops what is for pairs.
    """
    place = uint64(identity) >> shift
    if shift == _NO:
        slot = ((place ^ (place >> _WORD)) * _FACTOR) >> (uint64(64) - bits)
    else:
        slot = ((place >> _LANE) * _FACTOR) >> (uint64(67) - bits)
        slot = (slot << _LANE) | (place & _LANES)
    mask = uint64(len(table) - 1)
    if pattern is None:
        while table[slot, ID] != identity and table[slot, ID] != EMPTY:
            slot = (slot + _STEP) & mask
    else:
        own, last = pattern[i], uint64(table.shape[1] - 1)
        slot ^= (uint64(own) * _SALT) >> (uint64(64) - bits)
        while table[slot, ID] != EMPTY and (
            table[slot, ID] != identity or table[slot, last] != own
        ):
            slot = (slot + _STEP) & mask
    return slot


def _shifts(shift):
    return np.uint64(shift), np.uint64(tail_shift(shift))


def _bits(slots):
    return np.uint64(len(slots).bit_length() - 1)


def identify(p, q, shift):
    """The identity of each row's cell, and the steps from the start of the cell to the row.

    `q` is the probability of label 0, or empty where it is 1 - p.
    """
    ids, distance = np.empty(len(p), dtype=np.int64), np.empty(len(p))
    _identify(p, q if len(q) else 1.0 - p, *_shifts(shift), _CUTS, ids, distance)
    return ids, distance


@kernel
def _identify(p, q, shift, tail, cuts, ids, distance):
    for i in range(len(p)):
        belongs = (q[i] < LEAST_REST) | (1.0 - q[i] == p[i])
        rest = q[i] if belongs else 1.0 - p[i]
        high = uint64(p[i] > 0.5)
        t = abs(rest if p[i] > 0.5 else p[i])  # no -0.0
        key = np.float64(t).view(np.uint64)
        cell = _start(key, t, high, shift, tail, cuts)
        ids[i] = np.int64(cell ^ (_NO - high))
        distance[i] = np.float64(np.int64(_steps(key) - _steps(cell)))


def losses_of_rows(p, q, y):
    """What rows of weight 1 give to the totals, as `_exact_sums`.

    Chunk by chunk, which a cache holds from loop to loop.
    """
    q = q if len(q) else 1.0 - p
    parts = np.zeros((n_chunks(len(p)), 4, 2), np.int64)
    work, wrong = np.empty((2, CHUNK)), 0
    for start, found in zip(range(0, len(p), CHUNK), parts, strict=True):
        rows = slice(start, start + CHUNK)
        one, other = p[rows], q[rows]
        right, off = work[0, : len(one)], work[1, : len(one)]
        wrong += int(_right_and_off(one, other, y[rows], right, off))  # without numba an int64
        found[1] = _sum_of_products(off, off)
        negative_logarithms(right, LOG_LOSS_FLOOR, off)
        found[0] = _sum_of_products(off, _ONES[: len(off)])
        found[2] = _sum_of_products(one, other)
        found[3] = _sum_of_tilts(one, other)
    loss, brier, variance, score = from_parts(parts)
    n = len(p) << UNIT_BITS
    return [n, n, n, loss, brier, variance, variance, score, wrong << UNIT_BITS]


@kernel
def _right_and_off(p, q, y, right, off):
    wrong = np.int64(0)
    for i in range(len(p)):
        hit, one, other = y[i] == 1, p[i], q[i]  # loaded before: no branch
        right[i] = one if hit else other
        off[i] = other if hit else one
    for i in range(len(p)):
        wrong += right[i] <= 0.0
    return wrong


@kernel
def _sum_of_products(a, b):
    highs = lows = np.int64(0)
    for i in range(len(a)):
        high, low = whole_parts(a[i] * b[i])
        highs += high
        lows += low
    return highs, lows


@kernel
def _sum_of_tilts(p, q):
    highs = lows = np.int64(0)
    for i in range(len(p)):
        tilt = q[i] - p[i]
        high, low = whole_parts(p[i] * q[i] * tilt * tilt)
        highs += high
        lows += low
    return highs, lows


def losses_of_weighted(p, q, y, weight, count):
    """The same with a weight and a number of repetitions for each row."""
    q = q if len(q) else 1.0 - p
    sums, wrong = [0] * _N_WEIGHTED, 0
    step = min(4 * CHUNK, len(p))
    terms, work = np.empty((_N_WEIGHTED, step)), np.empty((2, step))
    for start in range(0, len(p), step):
        rows = slice(start, start + step)
        one, other = p[rows], q[rows]
        right, off = work[0, : len(one)], work[1, : len(one)]
        if _right_and_off(one, other, y[rows], right, off):
            wrong += int(count[rows][right <= 0.0].sum())
        negative_logarithms(right, LOG_LOSS_FLOOR, right)
        found = terms[:, : len(one)]
        _weighted_terms(one, other, right, off, weight[rows], count[rows], found)
        sums = added(sums, sums_of(found))
    return [int(count.sum()) << UNIT_BITS, *sums, wrong << UNIT_BITS]


@kernel
def _weighted_terms(p, q, loss, off, weight, count, terms):
    """The columns `weight` to `spiegelhalter_variance` of `TOTALS`, for each row."""
    for i in range(len(p)):
        spread, tilt = p[i] * q[i], q[i] - p[i]
        w = weight[i] * np.float64(count[i])
        v = w * weight[i]
        terms[0, i] = w
        terms[1, i] = v
        terms[2, i] = w * loss[i]
        terms[3, i] = w * off[i] * off[i]
        terms[4, i] = w * spread
        terms[5, i] = v * spread
        terms[6, i] = v * spread * tilt * tilt


def add_rows(slots, filled, room, shift, ids, distance, y, pattern, *weights):
    """Add rows, with `weights` and numbers of repetitions or neither, while their cells find room.

    None of these is 0; `pattern` belongs to slots of pairs, else it is None. Returns (how many
    were added, the number of filled slots).
    """
    table = slots, real(slots), filled, room, np.uint64(shift), _bits(slots)
    weight, count = weights or (None, None)
    return _add_rows(*table, ids, distance, y, weight, count, pattern)


@kernel
def _add_rows(slots, numbers, filled, room, shift, bits, ids, distance, y, weight, count, pattern):
    wide, last = slots.shape[1] >= WIDE, uint64(slots.shape[1] - 1)
    for i in range(len(ids)):
        slot = _slot(slots, ids[i], i, pattern, shift, bits)
        if slots[slot, ID] == EMPTY:
            if filled == room:
                return i, filled
            slots[slot, ID] = ids[i]
            if pattern is not None:
                slots[slot, last] = pattern[i]
            filled += 1
        label = uint64(y[i])
        if weight is None:  # of the two branches the compiler keeps one
            times, w, v = 1, 1.0, 1.0
        else:
            times, w = count[i], weight[i] * count[i]
            v = w * weight[i]
        slots[slot, _ONE + label] += times
        numbers[slot, OFFSET] += w * distance[i]
        if wide:
            numbers[slot, _W0 + label] += w
            numbers[slot, _V0 + label] += v
    return len(ids), filled


def insert(slots, cells, shift):
    """Put different cells, or pairs, of this shift into empty slots."""
    pattern = cells[:, PATTERN] if cells.shape[1] in (NARROW + 1, WIDE + 1) else None
    _insert(slots, cells, np.uint64(shift), _bits(slots), pattern)


@kernel
def _insert(slots, cells, shift, bits, pattern):
    for i in range(len(cells)):
        slot = _slot(slots, cells[i, ID], i, pattern, shift, bits)
        for j in range(cells.shape[1]):
            slots[slot, j] = cells[i, j]


@part
def _coarse(identity, shift, tail, cuts):
    high = uint64(identity < 0)
    key = uint64(identity) ^ (_NO - high)
    t = np.uint64(key).view(np.float64)
    return np.int64(_start(key, t, high, shift, tail, cuts) ^ (_NO - high))


@part
def _steps_between(coarse, fine):
    """How many steps the start of a coarser cell lies before that of a finer one."""
    if fine < 0:
        coarse, fine = ~coarse, ~fine
    return np.int64(_steps(uint64(fine)) - _steps(uint64(coarse)))


@kernel
def _count(cells, shift, tail, cuts):
    number, last = 0, np.int64(EMPTY)
    for i in range(len(cells)):
        identity = _coarse(cells[i, ID], shift, tail, cuts)
        number += identity != last
        last = identity
    return number


@kernel
def _merge_runs(cells, numbers, shift, tail, cuts):
    filled = -1
    for i in range(len(cells)):
        before = cells[i, ID]
        identity = _coarse(before, shift, tail, cuts)
        moved = _steps_between(identity, before)
        weight = np.float64(cells[i, N0] + cells[i, N1])
        if cells.shape[1] == WIDE:
            weight = numbers[i, W0] + numbers[i, W0 + 1]
        offset = numbers[i, OFFSET] + weight * moved
        if filled < 0 or cells[filled, ID] != identity:
            filled += 1
            for j in range(cells.shape[1]):
                cells[filled, j] = cells[i, j]
            cells[filled, ID] = identity
            numbers[filled, OFFSET] = offset
        else:
            cells[filled, N0] += cells[i, N0]
            cells[filled, N1] += cells[i, N1]
            numbers[filled, OFFSET] += offset
            for j in range(W0, cells.shape[1]):
                numbers[filled, j] += numbers[i, j]
    return filled + 1


def settled(cells, shift, max_cells):
    """(cells, shift) in the order of the probabilities, equal ones added, at most `max_cells`.

    `cells` of this shift or a smaller one, in any order. The new shift is the smallest from the
    given one on that is possible, found by bisection, because the number of cells falls with it;
    first near the given one, where it is when two summaries are merged.
    """
    ids = np.ascontiguousarray(cells[:, ID]).view(np.uint64)
    cells = np.take(cells, np.argsort(ids, kind="stable"), axis=0)  # finds what is sorted

    def fit(place):
        return place == last or _count(cells, *_shifts(SHIFTS[place]), _CUTS) <= max_cells

    last, step = len(SHIFTS) - 1, 1
    low = high = SHIFTS.index(shift)
    while not fit(high):
        low, high, step = high + 1, min(high + step, last), 2 * step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fit(middle) else (middle + 1, high)
    shift = SHIFTS[high]
    n_cells = _merge_runs(cells, real(cells), *_shifts(shift), _CUTS)
    return cells[:n_cells].copy(), shift


def occupied(slots):
    """The cells in slots, in no order."""
    return slots[slots[:, ID] != EMPTY]
