"""Smooth calibration error by dynamic programming over sorted scores, in O(n log n).

The largest sum_i r_i w_i over |w_i| <= 1 and |w_{i+1} - w_i| <= v_{i+1} - v_i. Let V_t(w) be the
largest sum of the first t terms with w_t = w. It is concave and piecewise linear on [-1, 1], of
slope C_t - x(w), where C_t = r_1 + ... + r_t and x(w) does not fall: x is a multiset of kinks,
each with a position x and a mass, the length of its stretch of w; the masses sum to 2. A gap d
moves the left of the maximum down by d and the right up: a kink of mass 2d at C_t, and what leaves
[-1, 1], mass d at either end, is removed. Removed and remaining mass times distance is the optimum.

The kinks' positions are known in advance, so a kink is a rank, and the queue with two ends is a
bitset whose words summarise the words below.
"""

import numpy as np

from ._compile import kernel, part

_WORD_BITS = 32


@part
def _lowest_bit(word):
    bit = 0
    for step in (16, 8, 4, 2, 1):
        if word & ((1 << step) - 1) == 0:
            word >>= step
            bit += step
    return bit


@part
def _highest_bit(word):
    bit = 0
    for step in (16, 8, 4, 2, 1):
        if word >> step:
            word >>= step
            bit += step
    return bit


def _bitset(n):
    """The words of an empty bitset of n bits, and where its levels start."""
    starts, total = [], 0
    while not starts or n > 1:
        n = (n + _WORD_BITS - 1) // _WORD_BITS
        starts.append(total)
        total += n
    return np.zeros(total, np.int64), np.array(starts, np.int64)


@part
def _insert(words, starts, key):
    for start in starts:
        place = start + (key >> 5)
        before = words[place]
        words[place] = before | (1 << (key & 31))
        if before:
            return
        key >>= 5


@part
def _remove(words, starts, key):
    for start in starts:
        place = start + (key >> 5)
        words[place] &= ~(1 << (key & 31))
        if words[place]:
            return
        key >>= 5


@part
def _lowest(words, starts):
    """The smallest key; -1 if there is none."""
    if words[starts[-1]] == 0:
        return -1
    key = 0
    for level in range(len(starts) - 1, -1, -1):
        key = (key << 5) + _lowest_bit(words[starts[level] + key])
    return key


@part
def _highest(words, starts):
    """The largest key; -1 if there is none."""
    if words[starts[-1]] == 0:
        return -1
    key = 0
    for level in range(len(starts) - 1, -1, -1):
        key = (key << 5) + _highest_bit(words[starts[level] + key])
    return key


def smooth_error(ranks, position, gaps, last):
    """The optimum.

    ranks: rank of the kink at 0, then of each kink in order of insertion. position: of each rank.
    gaps: of each insertion. last: C_n.
    """
    n = len(ranks)
    return _smooth_error(ranks, position, gaps, last, *_bitset(n), np.zeros(n))


@kernel
def _smooth_error(ranks, position, gaps, last, words, starts, mass):
    n = len(ranks)
    _insert(words, starts, ranks[0])
    mass[ranks[0]] = 2.0
    low = high = ranks[0]
    cost = 0.0
    for t in range(n - 1):
        gap, key = gaps[t], ranks[t + 1]
        _insert(words, starts, key)
        mass[key] += 2 * gap
        low, high = min(low, key), max(high, key)
        left = gap
        while left > 0:
            if mass[low] > left:
                mass[low] -= left
                cost -= left * position[low]
                break
            left -= mass[low]
            cost -= mass[low] * position[low]
            mass[low] = 0.0
            _remove(words, starts, low)
            low = _lowest(words, starts)
            if low < 0:
                break
        left = gap
        while left > 0 and low >= 0:
            if mass[high] > left:
                mass[high] -= left
                cost += left * position[high]
                break
            left -= mass[high]
            cost += mass[high] * position[high]
            mass[high] = 0.0
            _remove(words, starts, high)
            high = _highest(words, starts)
            if high < 0:
                low = high
        if low < 0:  # rounding emptied the queue: all mass is where the last kink was
            low = high = key
            _insert(words, starts, key)
            mass[key] = 2.0
    for key in range(low, high + 1):
        cost += mass[key] * abs(last - position[key])
    return cost / 2


def smooth_maxima(ranks, position, gaps, sums):
    """Where each V_t is largest: m_t in [-1, 1], by a Fenwick tree of the masses.

    Then w_n = m_n and w_t is the m_t nearest to w_{t+1} that the gap allows. `sums` are C_t.
    """
    n = len(ranks)
    maxima, tree, alive = np.empty(n), np.zeros(n + 1), np.zeros(n)
    _smooth_maxima(ranks, position, gaps, sums, *_bitset(n), tree, alive, maxima)
    return maxima


@kernel
def _smooth_maxima(ranks, position, gaps, sums, words, starts, tree, alive, maxima):
    n = len(ranks)
    _add(tree, ranks[0], 2.0)
    alive[ranks[0]] = 2.0
    _insert(words, starts, ranks[0])
    for t in range(n):
        below = _rank_of(position, sums[t])
        maxima[t] = min(max(_prefix(tree, below) - 1.0, -1.0), 1.0)
        if t == n - 1:
            break
        key, gap = ranks[t + 1], gaps[t]
        _insert(words, starts, key)
        alive[key] += 2 * gap
        _add(tree, key, 2 * gap)
        for largest in (False, True):
            left = gap
            while left > 0:
                end = _highest(words, starts) if largest else _lowest(words, starts)
                if end < 0:
                    break
                taken = min(left, alive[end])
                alive[end] -= taken
                _add(tree, end, -taken)
                left -= taken
                if alive[end] <= 0:
                    _remove(words, starts, end)


@part
def _add(tree, key, mass):
    key += 1
    while key < len(tree):
        tree[key] += mass
        key += key & -key


@part
def _prefix(tree, count):
    """The mass of the first `count` ranks."""
    total = 0.0
    while count > 0:
        total += tree[count]
        count -= count & -count
    return total


@part
def _rank_of(position, value):
    """How many positions are below a value."""
    low, high = 0, len(position)
    while low < high:
        middle = (low + high) // 2
        if position[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def walk_back(w, gaps):
    """Turn the maxima into the witness w at each score, from the last to the first."""
    for t in range(len(w) - 2, -1, -1):
        w[t] = min(max(w[t], w[t + 1] - gaps[t]), w[t + 1] + gaps[t])


def kinks_of_sorted(v, residual):
    """Distinct scores, their gaps, summed residuals, and the ranks and positions of the kinks."""
    sums = np.cumsum(residual)
    gaps = np.diff(v)
    last = np.flatnonzero(gaps > 0)  # the last row of each distinct score but the largest
    sums = np.append(sums[last], sums[-1])
    places = np.append(0.0, sums[:-1])
    by_place = np.argsort(places)
    ranks = np.empty(len(places), np.int64)
    ranks[by_place] = np.arange(len(places))
    return np.append(v[last], v[-1]), gaps[last], sums, ranks, places[by_place]


def smooth_of_sorted(v, residual):
    """The smooth calibration error of scores in increasing order (weights sum to 1)."""
    _, gaps, sums, ranks, position = kinks_of_sorted(v, residual)
    return smooth_error(ranks, position, gaps, sums[-1])


def witness_of_sorted(v: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct scores and the optimal w at each, of scores in increasing order."""
    v, gaps, sums, ranks, position = kinks_of_sorted(v, residual)
    w = smooth_maxima(ranks, position, gaps, sums)
    walk_back(w, gaps)
    return v, w
