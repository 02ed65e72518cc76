"""Rows pooled by score without an order of the rows, which costs more than sorting numbers.

Few distinct scores are counted in a small hash table. Of more, score and label are one integer: the
bits of a float64 of [0, 1] and one bit behind them. Sorted as numbers they bring the rows of each
score together, and no bit is lost.
"""

import numpy as np
from numba import config, uint64

from ._compile import compile_kernel

_SLOTS_BITS = 12
_MOST = 1 << (_SLOTS_BITS - 2)  # distinct scores in the table
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_REST = np.uint64(64 - _SLOTS_BITS)
_LAST_SLOT = np.uint64((1 << _SLOTS_BITS) - 1)
_POSITIVE = np.int64(np.iinfo(np.int64).max)
_MINUS_ZERO = np.int64(np.iinfo(np.int64).min)
_TWO = np.int64(1) << 62  # no number below 2 has this bit


def pooled_rows(score, hit):
    """(distinct scores, rows, rows with a label of 1) of float64 scores, by increasing score.

    `hit` is 0 or 1. None where a score is not in [0, 2), or where nothing is compiled.
    """
    if config.DISABLE_JIT:
        return None
    few = _few(score, hit)
    if few is not None:
        return few
    keys = np.empty(len(score), np.int64)
    ups, downs, strange = _keys(score.view(np.int64), hit, keys)
    if strange:
        return None
    if downs and ups:
        keys.sort()
    elif downs:
        keys = keys[::-1].copy()
    mass, hits = np.empty(len(keys)), np.empty(len(keys))
    n = _runs(keys, mass, hits)
    return keys.view(np.float64)[:n], mass[:n], hits[:n]


def _few(score, hit):
    bits, mass = np.full(1 << _SLOTS_BITS, -1, np.int64), np.zeros((1 << _SLOTS_BITS, 2))
    if not _count(score.view(np.int64), hit, bits, mass):
        return None
    used = np.flatnonzero(bits >= 0)
    order = used[np.argsort(bits[used])]
    return bits[order].view(np.float64), mass[order].sum(axis=1), mass[order, 1]


@compile_kernel
def _count(score, hit, bits, mass):
    """Whether there are at most `_MOST` scores, each with its bits set in [0, 2)."""
    filled = np.int64(0)
    for i in range(len(score)):
        key = score[i]
        if key == _MINUS_ZERO:
            key = np.int64(0)
        slot = (uint64(key) * _FACTOR) >> _REST
        while bits[slot] != key:
            if bits[slot] == -1:
                if filled == _MOST or key < 0 or key >= _TWO:
                    return False
                bits[slot] = key
                filled += 1
            else:
                slot = (slot + uint64(1)) & _LAST_SLOT
        mass[slot, uint64(hit[i])] += 1.0
    return True


@compile_kernel
def _keys(score, hit, keys):
    """Score and label as one integer; whether scores rise, fall, or are outside."""
    ups = downs = strange = False
    for i in range(len(score)):
        bits = score[i] & _POSITIVE
        strange |= (bits >= _TWO) | ((score[i] < 0) & (score[i] != _MINUS_ZERO))
        keys[i] = (bits << 1) | np.int64(hit[i])
    for i in range(1, len(score)):
        ups |= (keys[i - 1] | 1) < keys[i]
        downs |= (keys[i] | 1) < keys[i - 1]
    return ups, downs, strange


@compile_kernel
def _runs(keys, mass, hits):
    """The runs of equal scores, without a branch: each row overwrites what its run says so far.

    The scores take the place of the keys, which are read before.
    """
    last, place, ones = len(keys) - 1, uint64(0), np.int64(0)
    key = keys[0]
    for i in range(last):
        following = keys[i + 1]
        ones += key & 1
        keys[place] = key >> 1
        mass[place] = i + 1
        hits[place] = ones
        place += uint64((key ^ following) > 1)
        key = following
    keys[place] = key >> 1
    mass[place] = last + 1
    hits[place] = ones + (key & 1)
    for i in range(np.int64(place), 0, -1):
        mass[i] -= mass[i - 1]
        hits[i] -= hits[i - 1]
    return np.int64(place) + 1
