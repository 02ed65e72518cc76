"""Venn-Abers prediction for every query at once, in O(m log m) for m distinct scores.

Vovk, Petej, Fedorova (2015), "Large-scale probabilistic predictors with and without
guarantees of validity". For a query with i distinct calibration scores below it and j
not above it (j = i in a gap, j = i + 1 on a score, which is then pooled with it), the
isotonic fit after adding (s, l) is
    p_l = max_{a <= i} min_{b >= j} (Y_b + l - Y_a) / (W_b + 1 - W_a)
by the min-max form of isotonic regression on the cumulative points P_j = (W_j, Y_j).
That is the slope of the common lower tangent of the hull of P_0..P_i and the hull of
P_j..P_m moved by (1, l).
"""

import numpy as np

from ._compile import compile_helper, compile_kernel


@compile_helper
def _compute_orientation(a_x, a_y, b_x, b_y, c_x, c_y):
    """Return a positive number if c lies left of (above) the line from a to b."""
    return (b_x - a_x) * (c_y - a_y) - (b_y - a_y) * (c_x - a_x)


@compile_helper
def _find_right_end_with_smallest_slope(stack, size, W, Y, label, ax, ay):
    """Return the index on the right hull with the smallest slope from (ax, ay).

    The top is leftmost.
    """
    # From the top of the stack to its bottom, the slope first falls and then rises.
    low = 0
    high = size - 1
    while low < high:
        # The point stack[middle + 1] lies to the left of stack[middle].
        middle = (low + high) // 2
        right = stack[middle]
        left = stack[middle + 1]
        # Bisection on a convex hull: the slope from a point to the hull first falls and
        # then rises.
        turn = _compute_orientation(
            ax, ay, W[left] + 1.0, Y[left] + label, W[right] + 1.0, Y[right] + label
        )
        if turn <= 0:
            # Going right still lowers the slope.
            high = middle
        else:
            low = middle + 1
    return low


@compile_helper
def _find_left_end_with_largest_slope(stack, size, W, Y, b_x, b_y):
    """Return the index on the left hull with the largest slope to (bx, by).

    The top is rightmost.
    """
    low = 0
    high = size - 1
    while low < high:
        # The point stack[middle] lies to the left of stack[middle + 1].
        middle = (low + high) // 2
        left = stack[middle]
        right = stack[middle + 1]
        if _compute_orientation(W[left], Y[left], W[right], Y[right], b_x, b_y) > 0:
            # The right point gives a larger slope; of equal ones the left one is taken.
            low = middle + 1
        else:
            high = middle
    return low


@compile_helper
def _find_tangent_slope_and_left_end(left, n_left, right, n_right, W, Y, label, guess):
    """Return the slope of the common lower tangent, and its end on the left stack.

    Best replies in turn: after the first two, the left end only moves left and the
    right end only right (each reply pivots the line about a point of its own hull), so
    the search ends.
    """
    a = min(guess, n_left - 1)
    b = -1
    slope = 0.0
    # Rounding of fractional weights could make the search cycle, hence a limit.
    for _ in range(n_left + n_right + 2):
        pa = left[a]
        # Alternating between the two hulls converges to their common tangent; the last
        # query's end is a good guess, because tangents move monotonically.
        new_b = _find_right_end_with_smallest_slope(
            right, n_right, W, Y, label, W[pa], Y[pa]
        )
        pb = right[new_b]
        new_a = _find_left_end_with_largest_slope(
            left, n_left, W, Y, W[pb] + 1.0, Y[pb] + label
        )
        pa = left[new_a]
        # The added row has weight 1, so that this is never 0 / 0.
        slope = (Y[pb] - Y[pa] + label) / (W[pb] - W[pa] + 1.0)
        if new_a == a or new_b == b:
            break
        a = new_a
        b = new_b
    return slope, new_a


def compute_venn_abers_at_gaps_and_scores(W, Y):
    """Return isotonic values after adding one point, for every position it can have.

    `W` and `Y` hold, for the first 0, 1, ..., m distinct scores in increasing order, the
    sum of weights and the sum of weights of the positives. Row 2 i is a query in the
    gap below score i, row 2 i + 1 is a query on score i; columns are the labels 0 and 1
    of the added point, of weight 1.
    """
    table = np.empty((2 * len(W) - 1, 2))
    # Half the memory of int64; there are fewer than 2^31 scores.
    _fill_venn_abers_table(W, Y, *np.zeros((4, len(W)), np.int32), table)
    return table


@compile_kernel
def _fill_venn_abers_table(W, Y, right, overwritten, size_before, left, table):
    """Fill the table; the other arrays are space to work in."""
    # The hulls of all suffixes are one stack; its changes are stored, so that they can
    # be undone.
    n_left = n_right = guess0 = guess1 = np.int64(0)
    for j in range(len(W) - 1, -1, -1):
        size_before[j] = n_right
        n = n_right
        while n >= 2:
            p = right[n - 1]
            q = right[n - 2]
            if _compute_orientation(W[j], Y[j], W[p], Y[p], W[q], Y[q]) <= 0:
                n -= 1
            else:
                break
        # Entries above the top are stored as well, because undoing an earlier push may
        # need them.
        overwritten[j] = right[n]
        right[n] = j
        n_right = n + 1
    for query in range(len(table)):
        i = query // 2
        # P_i joins the left hull.
        if query % 2 == 0:
            # The lower hull by Graham's scan: points that do not turn left are removed.
            while n_left >= 2:
                p = left[n_left - 1]
                q = left[n_left - 2]
                if _compute_orientation(W[q], Y[q], W[p], Y[p], W[i], Y[i]) <= 0:
                    n_left -= 1
                else:
                    break
            left[n_left] = i
            n_left += 1
        else:
            # The push of P_i is undone, which leaves the hull of the suffix from i + 1.
            right[n_right - 1] = overwritten[i]
            n_right = size_before[i]
        table[query, 0], guess0 = _find_tangent_slope_and_left_end(
            left, n_left, right, n_right, W, Y, 0.0, guess0
        )
        table[query, 1], guess1 = _find_tangent_slope_and_left_end(
            left, n_left, right, n_right, W, Y, 1.0, guess1
        )
