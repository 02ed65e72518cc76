"""The whole path of nearly-isotonic regression in O(n log n).

    minimise  sum_i w_i (y_i - b_i)^2 / 2 + penalty * sum_i max(b_i - b_{i+1}, 0)

As the penalty grows, neighbours merge and never part. A boundary's flag f = [y_i >
y_{i+1}] does not change while it lives, so a group with flags l and r at its ends has
the value
    (sum w y + penalty (l - r)) / sum w,
and two neighbours A, B with flag f between them meet where their values are equal. The
path is therefore one number a boundary: the penalty at which it disappears (Tibshirani,
Hoefling, Tibshirani 2011, found the path; that it needs no updates is used here).
"""

import numpy as np

from ._compile import compile_helper, compile_kernel
from ._range_sums import RangeSums


@compile_helper
def _find_meeting_time(sums, mass, flag, before, between, after, now):
    """Return when the groups beside a boundary meet, not before now; inf for never.

    A group is known by its last row: `between` for the left one, `after` for the right
    one.
    """
    sum_a = sums[between]
    mass_a = mass[between]
    sum_b = sums[after]
    mass_b = mass[after]
    left = flag[before] if before >= 0 else 0.0
    right = flag[after] if after < len(flag) else 0.0
    # Products instead of divisions: the difference of the two group means times both
    # masses.
    gap = sum_b * mass_a - sum_a * mass_b
    speed = (left - flag[between]) * mass_b - (flag[between] - right) * mass_a
    # The groups have met already, up to rounding; a later time would let them cross.
    if abs(gap - now * speed) <= 1e-13 * (abs(sum_b) * mass_a + abs(sum_a) * mass_b):
        return now
    if speed == 0:
        return np.inf
    time = gap / speed
    return max(time, now) if time > 0 else np.inf


@compile_helper
def _sift_up_or_down(heap, heap_index, key, i):
    """Restore the order of the heap around position i."""
    item = heap[i]
    while i > 0 and key[item] < key[heap[(i - 1) >> 1]]:
        heap[i] = heap[(i - 1) >> 1]
        heap_index[heap[i]] = i
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
        heap_index[heap[i]] = i
        i = child
    heap[i] = item
    heap_index[item] = i


@compile_kernel
def _fill_first_meeting_times(sums, mass, flag, key):
    for i in range(len(flag)):
        key[i] = _find_meeting_time(sums, mass, flag, i - 1, i, i + 1, 0.0)


@compile_kernel
def _fill_merge_penalties_from_heap(
    sums, mass, flag, before, after, key, heap, heap_index, merge_penalty
):
    """Remove the boundaries in turn, by increasing keys.

    `before` and `after` are the neighbours of each boundary, `heap` is a heap of the
    boundaries by their keys, and `heap_index` gets the place of each boundary in it.
    """
    m = len(merge_penalty)
    for i in range(m):
        heap_index[heap[i]] = i
    for _ in range(m):
        top = heap[0]
        now = key[top]
        if now == np.inf:
            break
        merge_penalty[top] = now
        # The boundary leaves the heap by sinking to its end, which keeps all positions
        # valid.
        key[top] = np.inf
        _sift_up_or_down(heap, heap_index, key, heap_index[top])
        low = before[top]
        high = after[top]
        sums[high] += sums[top]
        mass[high] += mass[top]
        if low >= 0:
            after[low] = high
        if high < m:
            before[high] = low
        for other in (low, high):
            if 0 <= other < m:
                key[other] = _find_meeting_time(
                    sums,
                    mass,
                    flag,
                    before[other],
                    other,
                    after[other],
                    now,
                )
                _sift_up_or_down(heap, heap_index, key, heap_index[other])


def compute_merge_penalties(y, w):
    """Return the penalty at which each boundary disappears; infinity for never."""
    m = len(y) - 1
    # The sums of the groups are kept rather than cumulative sums, whose differences
    # would lose digits.
    sums = w * y
    mass = w.copy()
    flag = (y[:-1] > y[1:]).astype(float)
    key = np.empty(m)
    merge_penalty = np.full(m, np.inf)
    _fill_first_meeting_times(sums, mass, flag, key)
    # Sorted keys are a valid heap.
    heap = np.argsort(key, kind="stable")
    _fill_merge_penalties_from_heap(
        sums,
        mass,
        flag,
        np.arange(m) - 1,
        np.arange(m) + 1,
        key,
        heap,
        np.empty_like(heap),
        merge_penalty,
    )
    return merge_penalty


class PenaltyPath:
    """The solutions for all penalties."""

    def __init__(self, y, w):
        self.y = y
        self.n = len(y)
        self.merges = compute_merge_penalties(y, w)
        self._sums = RangeSums(w * (1 - y), w * y)

    def find_group_starts_and_values(self, penalty):
        """Return where the groups start, and their values.

        The cost is one comparison per row and group.
        """
        # The solution at any penalty is read off the boundaries that still exist (eq.
        # (10) of Wang, Li, Dang (2019) is the problem, with half the penalty).
        alive = np.flatnonzero(self.merges > penalty)
        starts = np.append(0, alive + 1)
        flags = np.concatenate([[0.0], self.y[alive] > self.y[alive + 1], [0.0]])
        zeros, ones = self.sum_labels_by_group(starts)
        return starts, (ones + penalty * (flags[:-1] - flags[1:])) / (zeros + ones)

    def sum_labels_by_group(self, starts):
        """Return the sums of w (1 - y) and of w y over the groups with these starts."""
        return self._sums.sum_runs(starts)

    def get_row_values(self, penalty):
        """Return the value of every row."""
        starts, values = self.find_group_starts_and_values(penalty)
        return np.repeat(values, np.diff(np.append(starts, self.n)))


def find_breakpoints(merges):
    """Return the increasing penalties above 0; those equal to 12 digits are one."""
    times = np.unique(merges[np.isfinite(merges) & (merges > 0)])
    if not len(times):
        return times
    is_distinct = np.diff(times) > 1e-12 * np.maximum(times[1:], 1e-300)
    return times[np.append(True, is_distinct)]
