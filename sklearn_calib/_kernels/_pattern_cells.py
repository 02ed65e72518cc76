"""Cells of scores by combinations of groups: rows into a hash table of pairs, compiled.

As in `_cells_compiled`, with a combination beside the identity of the cell.
"""

import numpy as np
from numba import uint64

from ._compile import kernel, part

EMPTY = np.iinfo(np.int64).min
ID, PATTERN, N0, N1, OFFSET, W0, W1, V0, V1 = range(9)
NARROW, WIDE = 5, 9  # columns without and with weights
_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF, _STEP = np.uint64(32), np.uint64(1)


def empty_pairs(room, columns):
    """Slots for so many pairs, at most three quarters full."""
    slots = np.zeros((1 << int(np.ceil(np.log2(max(room * 4 / 3, 16)))), columns), dtype=np.int64)
    slots[:, ID] = EMPTY
    return slots


@part
def _slot(slots, identity, pattern):
    place = (uint64(identity) * _FACTORS[0]) ^ (uint64(pattern) * _FACTORS[1])
    place = (place ^ (place >> _HALF)) * _FACTORS[0]
    mask = uint64(len(slots) - 1)
    slot = (place >> _HALF) & mask
    while slots[slot, ID] != EMPTY and (
        slots[slot, ID] != identity or slots[slot, PATTERN] != pattern
    ):
        slot = (slot + _STEP) & mask
    return slot


def add_pairs(slots, filled, room, ids, pattern, distance, y, weight):
    """Add rows, as long as their pairs find room; `weight` is empty where the slots are narrow.

    Returns (how many were added, the number of filled slots).
    """
    return _add_pairs(
        slots, slots.view(np.float64), filled, room, ids, pattern, distance, y, weight
    )


@kernel
def _add_pairs(slots, numbers, filled, room, ids, pattern, distance, y, weight):
    wide = slots.shape[1] == WIDE
    for i in range(len(ids)):
        slot = _slot(slots, ids[i], pattern[i])
        if slots[slot, ID] == EMPTY:
            if filled == room:
                return i, filled
            slots[slot, ID], slots[slot, PATTERN] = ids[i], pattern[i]
            filled += 1
        label = uint64(y[i])
        slots[slot, uint64(N0) + label] += 1
        if wide:
            w = weight[i]
            numbers[slot, OFFSET] += w * distance[i]
            numbers[slot, uint64(W0) + label] += w
            numbers[slot, uint64(V0) + label] += w * w
        else:
            numbers[slot, OFFSET] += distance[i]
    return len(ids), filled


@kernel
def insert_pairs(slots, pairs):
    """Put different pairs into empty slots."""
    for i in range(len(pairs)):
        slot = _slot(slots, pairs[i, ID], pairs[i, PATTERN])
        for j in range(pairs.shape[1]):
            slots[slot, j] = pairs[i, j]
