"""The whole path of nearly-isotonic regression in O(n log n).

    minimise  sum_i w_i (y_i - b_i)^2 / 2 + penalty * sum_i max(b_i - b_{i+1}, 0)

As the penalty grows, neighbours merge and never part. A boundary's flag f = [y_i > y_{i+1}] does
not change while it lives, so a group with flags l and r at its ends has the value
    (sum w y + penalty (l - r)) / sum w,
and two neighbours A, B with flag f between them meet where their values are equal. The path is
therefore one number a boundary: the penalty at which it disappears (Tibshirani, Hoefling,
Tibshirani 2011, found the path; that it needs no updates is used here).
"""

import numpy as np

from ._compile import compile_helper, compile_kernel
from ._range_sums import RangeSums


@compile_helper
def _meeting(sums, mass, flag, before, between, after, now):
    """When the groups on both sides of a boundary meet, not before now; infinity for never.

    A group is known by its last row: `between` for the left one, `after` for the right one.
    """
    sum_a, mass_a, sum_b, mass_b = sums[between], mass[between], sums[after], mass[after]
    left = flag[before] if before >= 0 else 0.0
    right = flag[after] if after < len(flag) else 0.0
    gap = sum_b * mass_a - sum_a * mass_b
    speed = (left - flag[between]) * mass_b - (flag[between] - right) * mass_a
    if abs(gap - now * speed) <= 1e-13 * (abs(sum_b) * mass_a + abs(sum_a) * mass_b):
        return now
    if speed == 0:
        return np.inf
    time = gap / speed
    return max(time, now) if time > 0 else np.inf


@compile_helper
def _sift(heap, place, key, i):
    """Restore the order of the heap around position i."""
    item = heap[i]
    while i > 0 and key[item] < key[heap[(i - 1) >> 1]]:
        heap[i] = heap[(i - 1) >> 1]
        place[heap[i]] = i
        i = (i - 1) >> 1
    n = len(heap)
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if not key[heap[child]] < key[item]:
            break
        heap[i] = heap[child]
        place[heap[i]] = i
        i = child
    heap[i] = item
    place[item] = i


@compile_kernel
def _first_meetings(sums, mass, flag, key):
    for i in range(len(flag)):
        key[i] = _meeting(sums, mass, flag, i - 1, i, i + 1, 0.0)


@compile_kernel
def _merge(sums, mass, flag, before, after, key, heap, place, found):
    """Remove the boundaries in turn; `heap` is one of the keys."""
    m = len(found)
    for i in range(m):
        place[heap[i]] = i
    for _ in range(m):
        top = heap[0]
        now = key[top]
        if now == np.inf:
            break
        found[top] = now
        key[top] = np.inf
        _sift(heap, place, key, place[top])
        low, high = before[top], after[top]
        sums[high] += sums[top]
        mass[high] += mass[top]
        if low >= 0:
            after[low] = high
        if high < m:
            before[high] = low
        for other in (low, high):
            if 0 <= other < m:
                key[other] = _meeting(sums, mass, flag, before[other], other, after[other], now)
                _sift(heap, place, key, place[other])


def merge_penalties(y, w):
    """The penalty at which each of the n - 1 boundaries disappears; infinity for never."""
    m = len(y) - 1
    sums, mass = w * y, w.copy()  # of groups; no differences of long sums
    flag = (y[:-1] > y[1:]).astype(float)
    key, found = np.empty(m), np.full(m, np.inf)
    _first_meetings(sums, mass, flag, key)
    heap = np.argsort(key, kind="stable")  # sorted keys are a heap
    _merge(
        sums, mass, flag, np.arange(m) - 1, np.arange(m) + 1, key, heap, np.empty_like(heap), found
    )
    return found


class Path:
    """The solutions for all penalties."""

    def __init__(self, y, w):
        self.y, self.n = y, len(y)
        self.merges = merge_penalties(y, w)
        self._sums = RangeSums(w * (1 - y), w * y)

    def groups(self, penalty):
        """Where the groups start, and their values; cost: one comparison per row and group."""
        alive = np.flatnonzero(self.merges > penalty)
        starts = np.append(0, alive + 1)
        flags = np.concatenate([[0.0], self.y[alive] > self.y[alive + 1], [0.0]])
        zeros, ones = self.sums(starts)
        return starts, (ones + penalty * (flags[:-1] - flags[1:])) / (zeros + ones)

    def sums(self, starts):
        """Of w (1 - y) and of w y over the groups that start there."""
        return self._sums.of_runs(starts)

    def solution(self, penalty):
        """The value of every row."""
        starts, values = self.groups(penalty)
        return np.repeat(values, np.diff(np.append(starts, self.n)))


def breakpoints(merges):
    """The increasing penalties above 0 of merges; those equal to 12 digits are one."""
    times = np.unique(merges[np.isfinite(merges) & (merges > 0)])
    if not len(times):
        return times
    apart = np.diff(times) > 1e-12 * np.maximum(times[1:], 1e-300)
    return times[np.append(True, apart)]
