"""Rows pooled by score without an order of the rows, which costs more than sorting numbers.

Few distinct scores are counted in a small hash table. Of more, score and label are one
integer: the bits of a float64 of [0, 1] and one bit behind them. Sorted as numbers they
place the rows of each score together, and no bit is lost.
"""

import numpy as np
from numba import config, uint64

from ._compile import compile_kernel

_SLOT_BITS = 12
# The table holds so many distinct scores and remains three quarters empty.
_MAX_TABLE_SCORES = 1 << (_SLOT_BITS - 2)
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HASH_SHIFT = np.uint64(64 - _SLOT_BITS)
_LAST_SLOT = np.uint64((1 << _SLOT_BITS) - 1)
_POSITIVE_MASK = np.int64(np.iinfo(np.int64).max)
_MINUS_ZERO_BITS = np.int64(np.iinfo(np.int64).min)
# The bit of the exponent that is not set for any number below 2.
_BITS_OF_TWO = np.int64(1) << 62


def pool_rows_by_score_if_possible(score, outcome):
    """Return (distinct scores, rows, events) of float64 scores, by increasing score.

    `outcome` is 0 or 1. None if a score is not in [0, 2), or if nothing is compiled.
    """
    if config.DISABLE_JIT:
        return None
    pooled = _pool_few_scores(score, outcome)
    if pooled is not None:
        return pooled
    keys = np.empty(len(score), np.int64)
    ups, downs, is_outside = _fill_keys_and_get_order_and_range_flags(
        score.view(np.int64), outcome, keys
    )
    if is_outside:
        return None
    if downs and ups:
        keys.sort()
    elif downs:
        keys = keys[::-1].copy()
    mass = np.empty(len(keys))
    events = np.empty(len(keys))
    n = _pool_sorted_keys_in_place(keys, mass, events)
    return keys.view(np.float64)[:n], mass[:n], events[:n]


def _pool_few_scores(score, outcome):
    bits = np.full(1 << _SLOT_BITS, -1, np.int64)
    mass = np.zeros((1 << _SLOT_BITS, 2))
    if not _fill_score_counts(score.view(np.int64), outcome, bits, mass):
        return None
    used = np.flatnonzero(bits >= 0)
    order = used[np.argsort(bits[used])]
    return bits[order].view(np.float64), mass[order].sum(axis=1), mass[order, 1]


@compile_kernel
def _fill_score_counts(score, outcome, bits, mass):
    """Count the scores; return whether there are at most `_MAX_TABLE_SCORES` in [0, 2)."""
    filled = np.int64(0)
    for i in range(len(score)):
        key = score[i]
        if key == _MINUS_ZERO_BITS:
            key = np.int64(0)
        # Fibonacci hashing: multiplication by 2^64 over the golden ratio spreads keys
        # that differ in few bits.
        slot = (uint64(key) * _HASH_FACTOR) >> _HASH_SHIFT
        while bits[slot] != key:
            if bits[slot] == -1:
                if filled == _MAX_TABLE_SCORES or key < 0 or key >= _BITS_OF_TWO:
                    return False
                bits[slot] = key
                filled += 1
            else:
                slot = (slot + uint64(1)) & _LAST_SLOT
        mass[slot, uint64(outcome[i])] += 1.0
    return True


@compile_kernel
def _fill_keys_and_get_order_and_range_flags(score, outcome, keys):
    """Score and label as one integer; whether scores rise, fall, or are outside."""
    ups = downs = is_outside = False
    for i in range(len(score)):
        bits = score[i] & _POSITIVE_MASK
        is_outside |= (bits >= _BITS_OF_TWO) | (
            (score[i] < 0) & (score[i] != _MINUS_ZERO_BITS)
        )
        # The bits of nonnegative floats are ordered like the numbers, so one integer
        # sort orders scores and labels.
        keys[i] = (bits << 1) | np.int64(outcome[i])
    for i in range(1, len(score)):
        ups |= (keys[i - 1] | 1) < keys[i]
        downs |= (keys[i] | 1) < keys[i - 1]
    return ups, downs, is_outside


@compile_kernel
def _pool_sorted_keys_in_place(keys, mass_out, events_out):
    """Sum the runs of equal scores without a branch: each row overwrites its run.

    The scores take the place of the keys, which are read before.
    """
    last = len(keys) - 1
    position = uint64(0)
    ones = np.int64(0)
    key = keys[0]
    for i in range(last):
        following = keys[i + 1]
        ones += key & 1
        keys[position] = key >> 1
        mass_out[position] = i + 1
        events_out[position] = ones
        # The last bit is the label; keys of one score differ in nothing else.
        position += uint64((key ^ following) > 1)
        key = following
    keys[position] = key >> 1
    mass_out[position] = last + 1
    events_out[position] = ones + (key & 1)
    # The running sums at the end of each run become sums of the run.
    for i in range(np.int64(position), 0, -1):
        mass_out[i] -= mass_out[i - 1]
        events_out[i] -= events_out[i - 1]
    return np.int64(position) + 1
