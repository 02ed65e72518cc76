"""Rows into a table of cells by hashing, and coarser cells, compiled. `_cells` says what they are.

Open addressing: a slot is a row of the table, 32 bytes, or 64 with weights. Eight neighbouring
cells lie side by side, because scores of one batch have neighbours; the step from an occupied slot
leaves the lane, because the last bits of float32 scores are zero.
"""

import numpy as np

from ._cells import (
    CUTS,
    ID,
    KEPT_BITS,
    LARGEST_SHIFT,
    N0,
    N1,
    N_CUTS,
    OFFSET,
    ROUNDED,
    TAIL_KEY,
    V0,
    W0,
    WIDE,
    real,
    tail_shift,
)
from ._compile import kernel, part

EMPTY = np.iinfo(np.int64).min
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = 1 << (ROUNDED - 1)
_STEP = 9
_FLOOR = float(np.finfo(np.float64).eps)  # of a probability whose logarithm is taken
_SMALL = 1e-280  # a product of probabilities from here on cannot take another
_EDGE = 1e-9  # more than rounding to a key can move 60 t


def empty_slots(n_cells, columns):
    """Slots for a number of cells, at most three quarters full."""
    n_slots = 1 << int(np.ceil(np.log2(max(n_cells * 4 / 3, 16))))
    slots = np.zeros((n_slots, columns), dtype=np.int64)
    slots[:, ID] = EMPTY
    return slots


@part
def _start(key, t, cuts, shift, tail):
    """The first key of the cell; `cuts` are those of the side."""
    dropped = tail if key < TAIL_KEY else shift
    j = int(t * N_CUTS + _EDGE)
    cut = cuts[j]
    if cut > key:
        cut = cuts[j - 1]
    return max((key >> dropped) << dropped, cut)


@part
def _slot(table, identity, shift, bits):
    """Where a cell is, or the empty slot where it belongs."""
    mask = len(table) - 1
    place = np.uint64(identity >> shift)
    if shift == 0:
        slot = np.int64((place * _FACTOR) >> np.uint64(64 - bits))
    else:
        lane = np.int64(place & np.uint64(7))
        slot = (np.int64(((place >> np.uint64(3)) * _FACTOR) >> np.uint64(67 - bits)) << 3) | lane
    while table[slot, ID] != identity and table[slot, ID] != EMPTY:
        slot = (slot + _STEP) & mask
    return slot


def add_rows(slots, filled, room, shift, start, p, q, y, totals):
    """Add rows of weight 1 from `start` on, as long as their cells find room.

    `q` is the probability of label 0, or empty where it is 1 - p. Returns (the first row that was
    not added, the number of filled slots); `totals` gets the sums over the rows.
    """
    shifts = shift, tail_shift(shift), _bits(slots)
    return _add_rows(slots, real(slots), filled, room, *shifts, start, p, q, y, CUTS, totals)


def add_weighted(slots, filled, room, shift, start, p, q, y, weight, count, totals):
    """As `add_rows`, with a weight and a number of repetitions for each row; none of them is 0."""
    shifts = shift, tail_shift(shift), _bits(slots)
    rows = p, q, y, weight, count
    return _add_weighted(slots, real(slots), filled, room, *shifts, start, *rows, CUTS, totals)


def _bits(slots):
    return len(slots).bit_length() - 1


@kernel
def _add_rows(slots, numbers, filled, room, shift, tail, bits, start, p, q, y, cuts, totals):
    two = len(q) > 0
    product, loss, brier, variance, score, wrong = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    done = start
    for i in range(start, len(p)):
        own = p[i]
        rest = q[i] if two else 1.0 - own
        high = own > 0.5
        t = abs(rest if high else own)  # no -0.0
        key = (np.float64(t).view(np.int64) + _HALF) >> ROUNDED
        side = 1 if high else 0
        cell = _start(key, t, cuts[side], shift, tail)
        identity = ~cell if high else cell
        slot = _slot(slots, identity, shift, bits)
        if slots[slot, ID] == EMPTY:
            if filled == room:
                break
            slots[slot, ID] = identity
            filled += 1
        label = y[i]
        slots[slot, N0 + label] += 1
        numbers[slot, OFFSET] += key - cell
        right, off = (own, rest) if label else (rest, own)
        if right <= 0.0:
            wrong += 1.0
        product *= max(right, _FLOOR)
        if product < _SMALL:
            loss -= np.log(product)
            product = 1.0
        brier += off * off
        spread = own * rest
        variance += spread
        score += spread * (rest - own) * (rest - own)
        done = i + 1
    totals[3] += loss - np.log(product)
    totals[4] += brier
    totals[5] += variance
    totals[6] += variance
    totals[7] += score
    totals[8] += wrong
    for j in range(3):
        totals[j] += done - start
    return done, filled


@kernel
def _add_weighted(
    slots, numbers, filled, room, shift, tail, bits, start, p, q, y, weight, count, cuts, totals
):
    two, wide = len(q) > 0, slots.shape[1] == WIDE
    for i in range(start, len(p)):
        own = p[i]
        rest = q[i] if two else 1.0 - own
        high = own > 0.5
        t = abs(rest if high else own)  # no -0.0
        key = (np.float64(t).view(np.int64) + _HALF) >> ROUNDED
        side = 1 if high else 0
        cell = _start(key, t, cuts[side], shift, tail)
        identity = ~cell if high else cell
        slot = _slot(slots, identity, shift, bits)
        if slots[slot, ID] == EMPTY:
            if filled == room:
                return i, filled
            slots[slot, ID] = identity
            filled += 1
        label, c = y[i], count[i]
        w = weight[i] * c
        v = w * weight[i]
        slots[slot, N0 + label] += c
        numbers[slot, OFFSET] += w * (key - cell)
        if wide:
            numbers[slot, W0 + label] += w
            numbers[slot, V0 + label] += v
        right, off = (own, rest) if label else (rest, own)
        spread = own * rest
        totals[0] += c
        totals[1] += w
        totals[2] += v
        totals[3] -= w * np.log(max(right, _FLOOR))
        totals[4] += w * off * off
        totals[5] += w * spread
        totals[6] += v * spread
        totals[7] += v * spread * (rest - own) * (rest - own)
        if right <= 0.0:
            totals[8] += c
    return len(p), filled


def insert(slots, cells, shift):
    """Put cells of this shift into empty slots."""
    _insert(slots, cells, shift, _bits(slots))


@kernel
def _insert(slots, cells, shift, bits):
    for i in range(len(cells)):
        slot = _slot(slots, cells[i, ID], shift, bits)
        for j in range(cells.shape[1]):
            slots[slot, j] = cells[i, j]


@part
def _coarse(identity, cuts, shift, tail):
    key = ~identity if identity < 0 else identity
    t = np.int64(key << ROUNDED).view(np.float64)
    cell = _start(key, t, cuts[1 if identity < 0 else 0], shift, tail)
    return ~cell if identity < 0 else cell


@kernel
def _count(cells, cuts, shift, tail):
    number, last = 0, np.int64(EMPTY)
    for i in range(len(cells)):
        identity = _coarse(cells[i, ID], cuts, shift, tail)
        if identity != last:
            number += 1
        last = identity
    return number


@kernel
def _merge_runs(cells, numbers, cuts, shift, tail):
    filled = -1
    for i in range(len(cells)):
        before = cells[i, ID]
        identity = _coarse(before, cuts, shift, tail)
        moved = identity - before if before < 0 else before - identity
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

    `cells` of one shift, in any order. The shift is the smallest from the given one on that is
    possible; found by bisection, because the number of cells falls with it.
    """
    cells = cells[np.argsort(cells[:, ID].view(np.uint64), kind="stable")]
    low, high = shift, LARGEST_SHIFT
    if _count(cells, CUTS, low, tail_shift(low)) <= max_cells:
        high = low
    while low < high:
        middle = (low + high) // 2
        if _count(cells, CUTS, middle, tail_shift(middle)) <= max_cells:
            high = middle
        else:
            low = middle + 1
    n_cells = _merge_runs(cells, real(cells), CUTS, high, tail_shift(high))
    return cells[:n_cells].copy(), high


def occupied(slots):
    """The cells in slots, in no order."""
    return slots[slots[:, ID] != EMPTY]


assert KEPT_BITS + ROUNDED == 52
