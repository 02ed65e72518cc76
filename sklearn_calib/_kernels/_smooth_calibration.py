"""Smooth calibration error by dynamic programming over sorted scores, in O(n log n).

The largest sum_i r_i w_i over |w_i| <= 1 and |w_{i+1} - w_i| <= v_{i+1} - v_i. Let
V_t(w) be the largest sum of the first t terms with w_t = w. It is concave and piecewise
linear on [-1, 1], of slope C_t - x(w), where C_t = r_1 + ... + r_t and x(w) does not
fall: x is a multiset of kinks, each with a position x and a mass, the length of its
stretch of w; the masses sum to 2. A gap d moves the left of the maximum down by d and
the right up: a kink of mass 2d at C_t, and what leaves [-1, 1], mass d at either end,
is removed. Removed and remaining mass times distance is the optimum.

For the witness the positions of all kinks are ranked before, and the queue with two
ends is a bitset whose words summarise the words below. The optimum alone needs no
ranks.
"""

import numpy as np

from ._compile import compile_helper, compile_kernel

# The average number of kinks in a bucket.
_KINKS_PER_BUCKET = 8
# Listed kinks are counted in blocks of 2^6 buckets.
_BUCKET_BLOCK_BITS = 6
# A heap of so many kinks is small enough not to be divided.
_MAX_SMALL_HEAP_KINKS = 256


# The mass 2 at 0 outlasts all that is removed, so neither end of the queue ever passes
# 0: the kinks above 0 and those below are two queues, and each only gives its largest
# distance from 0. Most kinks never come to an end. Buckets of equal width hold lists of
# them; those of the last buckets are in a heap, which stays so small that it is fast.


def compute_smooth_error(score, residual):
    """Return the smooth calibration error of increasing scores; weights sum to 1."""
    n = len(score)
    position = np.empty(n)
    mass = np.empty(n)
    last, low, high = _fill_kinks_and_get_total_low_and_high(
        score, residual, position, mass
    )
    n_buckets = n // _KINKS_PER_BUCKET + 1
    first = np.full(n_buckets, -1, np.int32)
    following = np.empty(n, np.int32)
    heap_keys = np.empty(n)
    heap_kinks = np.empty(n, np.int32)
    removed = 0.0
    for sign, max_distance in ((1.0, high), (-1.0, -low)):
        if max_distance > 0:
            scale = min(n_buckets * (1 - 1e-9) / max_distance, 1e300)
            listed = np.zeros((n_buckets >> _BUCKET_BLOCK_BITS) + 1, np.int32)
            removed += _remove_mass_and_sum_cost(
                score,
                position,
                mass,
                sign,
                scale,
                first,
                following,
                listed,
                heap_keys,
                heap_kinks,
            )
            first.fill(-1)
        else:
            mass[0] -= score[-1] - score[0]
    return (removed + _sum_mass_times_distance_to_last(position, mass, last)) / 2


@compile_kernel
def _fill_kinks_and_get_total_low_and_high(score, residual, position, mass):
    """Fill in positions and masses in the order of insertion.

    Returns C_n and the range of the positions.
    """
    total = low = high = 0.0
    position[0] = 0.0
    mass[0] = 2.0
    for t in range(len(score) - 1):
        total += residual[t]
        position[t + 1] = total
        mass[t + 1] = 2 * (score[t + 1] - score[t])
        low = min(low, total)
        high = max(high, total)
    return total + residual[len(score) - 1], low, high


@compile_kernel(fastmath={"reassoc"})
def _sum_mass_times_distance_to_last(position, mass, last):
    cost = 0.0
    for t in range(len(position)):
        # The maximum of the last V is a weighted sum of distances from the kinks; this
        # is the dual of the linear program.
        cost += mass[t] * abs(last - position[t])
    return cost


@compile_kernel
def _remove_mass_and_sum_cost(
    score, position, mass, sign, scale, first, following, listed, keys, kinks
):
    """Remove mass at one end; return it times its distance from 0.

    `mass` is reduced to what remains of each kink. The kinks of a bucket are a linked
    list, from `first[bucket]` on by `following`; `listed` counts them in blocks of
    buckets. `keys` and `kinks` are a heap of those in the last buckets.
    """
    edge = len(first)
    top = np.int64(-1)
    size = np.int64(0)
    limit = np.int64(_MAX_SMALL_HEAP_KINKS)
    cost = 0.0
    for t in range(1, len(score)):
        remaining = score[t] - score[t - 1]
        distance = sign * position[t]
        if distance > 0 and remaining > 0:
            bucket = np.int64(distance * scale)
            # A heap that has grown too large returns its smaller half to the lists,
            # which are cheaper.
            if bucket >= edge and size >= limit:
                size, edge, highest = _spill_heap_and_find_size_and_bucket_ends(
                    size, scale, first, following, listed, keys, kinks
                )
                top = max(top, highest)
                limit = max(_MAX_SMALL_HEAP_KINKS, 2 * size)
            if bucket >= edge:
                _push_kink(keys, kinks, size, distance, t)
                size += 1
            else:
                following[t] = first[bucket]
                first[bucket] = t
                listed[bucket >> _BUCKET_BLOCK_BITS] += 1
                top = max(top, bucket)
        while remaining > 0:
            if size == 0:
                while top >= 0 and first[top] < 0:
                    # Counts per block let the search skip 64 empty buckets at a time.
                    block = top >> _BUCKET_BLOCK_BITS
                    top = (
                        (block << _BUCKET_BLOCK_BITS) - 1
                        if listed[block] == 0
                        else top - 1
                    )
                if top < 0:
                    mass[0] = max(mass[0] - remaining, 0.0)
                    break
                kink = np.int64(first[top])
                edge = top
                first[top] = -1
                while kink >= 0:
                    _push_kink(keys, kinks, size, sign * position[kink], kink)
                    size += 1
                    kink = np.int64(following[kink])
                listed[top >> _BUCKET_BLOCK_BITS] -= size
            kink = np.int64(kinks[0])
            if mass[kink] > remaining:
                mass[kink] -= remaining
                cost += remaining * keys[0]
                break
            remaining -= mass[kink]
            cost += mass[kink] * keys[0]
            mass[kink] = 0.0
            size -= 1
            _replace_heap_root(keys, kinks, size, keys[size], kinks[size])
    return cost


@compile_helper
def _push_kink(keys, kinks, position, key, kink):
    while position > 0 and keys[(position - 1) >> 1] < key:
        above = (position - 1) >> 1
        keys[position] = keys[above]
        kinks[position] = kinks[above]
        position = above
    keys[position] = key
    kinks[position] = kink


@compile_helper
def _replace_heap_root(keys, kinks, size, key, kink):
    """Put a kink into the place of the first, which is gone."""
    position = np.int64(0)
    while 2 * position + 1 < size:
        below = 2 * position + 1
        below += below + 1 < size and keys[below + 1] > keys[below]
        if keys[below] <= key:
            break
        keys[position] = keys[below]
        kinks[position] = kinks[below]
        position = below
    keys[position] = key
    kinks[position] = kink


@compile_helper
def _spill_heap_and_find_size_and_bucket_ends(
    size, scale, first, following, listed, keys, kinks
):
    """Move the kinks of lower buckets from a large heap back into lists.

    Returns the new size, the first bucket of the heap, and the highest that was filled.
    """
    edge = np.int64(len(first))
    highest = np.int64(-1)
    n_kept = np.int64(0)
    # The largest kinks come first in the heap, so its head gives a good guess of the
    # edge.
    for i in range(_MAX_SMALL_HEAP_KINKS // 8):
        edge = min(edge, np.int64(keys[i] * scale))
    for i in range(size):
        key = keys[i]
        kink = np.int64(kinks[i])
        bucket = np.int64(key * scale)
        if bucket >= edge:
            _push_kink(keys, kinks, n_kept, key, kink)
            n_kept += 1
        else:
            following[kink] = first[bucket]
            first[bucket] = kink
            listed[bucket >> _BUCKET_BLOCK_BITS] += 1
            highest = max(highest, bucket)
    return n_kept, edge, highest


def find_value_function_argmax(ranks, position, gaps, sums):
    """Return where each V_t is largest, by a Fenwick tree of the masses.

    These are the m_t in [-1, 1].

    Then w_n = m_n and w_t is the m_t nearest to w_{t+1} that the gap allows. `sums` are
    C_t.
    """
    n = len(ranks)
    maxima = np.empty(n)
    tree = np.zeros(n + 1)
    alive = np.zeros(n)
    keys = np.empty((2, n))
    kinks = np.empty((2, n), np.int32)
    sizes = np.zeros(2, np.int64)
    # The number of kinks below each sum.
    below = np.searchsorted(position, sums)
    _fill_value_function_argmax(
        ranks, below, gaps, keys, kinks, sizes, tree, alive, maxima
    )
    return maxima


@compile_kernel
def _fill_value_function_argmax(
    ranks, below, gaps, keys, kinks, sizes, tree, alive, maxima
):
    """Move both ends of the queue by each gap.

    The kink at 0 is in the heaps of both ends, neither of which ever passes it. `alive`
    is the mass of each rank that remains, and `tree` a Fenwick tree of these masses.
    """
    for t in range(len(ranks)):
        rank = ranks[t]
        mass = 2.0
        gap = 0.0
        if t > 0:
            gap = gaps[t - 1]
            mass = 2 * gap
        alive[rank] += mass
        _add_mass_to_tree(tree, rank, mass)
        # The end 0 has the kink of lowest rank first, the end 1 that of highest rank.
        for end in range(2):
            sign = 2 * end - 1
            heap = keys[end]
            heap_kinks = kinks[end]
            size = sizes[end]
            remaining = gap
            if sign * (rank - ranks[0]) >= 0:
                _push_kink(heap, heap_kinks, size, np.float64(sign * rank), rank)
                size += 1
            while remaining > 0 and size > 0:
                last = np.int64(heap_kinks[0])
                taken = min(remaining, alive[last])
                alive[last] -= taken
                _add_mass_to_tree(tree, last, -taken)
                remaining -= taken
                if alive[last] <= 0:
                    size -= 1
                    _replace_heap_root(
                        heap, heap_kinks, size, heap[size], heap_kinks[size]
                    )
            sizes[end] = size
        # V_t has its maximum where its slope C_t - x(w) changes sign: at the mass of
        # the kinks below C_t, counted from w = -1.
        maxima[t] = min(max(_sum_tree_prefix(tree, below[t]) - 1.0, -1.0), 1.0)


@compile_helper
def _add_mass_to_tree(tree, key, mass):
    key += 1
    while key < len(tree):
        tree[key] += mass
        key += key & -key


@compile_helper
def _sum_tree_prefix(tree, count):
    """Return the mass of the first `count` ranks."""
    total = 0.0
    while count > 0:
        total += tree[count]
        count -= count & -count
    return total


@compile_kernel
def backtrack_witness_in_place(w, gaps):
    """Turn the maxima into the witness w at each score, from the last to the first."""
    for t in range(len(w) - 2, -1, -1):
        # Backward pass of the dynamic program: the best w_t is the maximum of V_t,
        # clipped to what w_{t+1} allows.
        w[t] = min(max(w[t], w[t + 1] - gaps[t]), w[t + 1] + gaps[t])


def find_scores_gaps_sums_ranks_and_kinks(score, residual):
    """Return distinct scores, gaps, summed residuals, and ranks and positions of kinks."""
    sums = np.cumsum(residual)
    # Only the constraints between neighbours matter: lemma 2 of
    # Hu, Jambulapati, Tian, Yang (2024).
    gaps = np.diff(score)
    # The last row of each distinct score except the largest.
    last = np.flatnonzero(gaps > 0)
    sums = np.append(sums[last], sums[-1])
    positions = np.append(0.0, sums[:-1])
    order = np.argsort(positions)
    ranks = np.empty(len(positions), np.int64)
    ranks[order] = np.arange(len(positions))
    return np.append(score[last], score[-1]), gaps[last], sums, ranks, positions[order]


def compute_witness_by_distinct_score(
    score: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct scores and the optimal w at each, of increasing scores."""
    score, gaps, sums, ranks, position = find_scores_gaps_sums_ranks_and_kinks(
        score, residual
    )
    w = find_value_function_argmax(ranks, position, gaps, sums)
    backtrack_witness_in_place(w, gaps)
    return score, w
