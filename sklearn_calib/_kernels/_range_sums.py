"""Sums over ranges of rows without a subtraction, and the share of ones in windows of them.

A difference of prefix sums loses small terms after large ones: weights that are not
whole numbers leave 1e-17 instead of 0, and weights that span 16 decades leave nothing.
A binary tree of partial sums adds only what belongs to the range, in O(log n).
"""

import numpy as np
from scipy.special import expit

from ._binning import BIN_EDGE_TOLERANCE_IN_BINS, blend_with_base_rate
from ._compile import compile_kernel
from ._log_odds import average_log_odds_as_probabilities, subtract_sigmoids

# Distances that agree to 10 digits are treated as equal.
_DISTANCE_TOLERANCE = 1e-10


@compile_kernel
def _sum_tree_from_leaves(tree):
    """Sum upwards from the leaves, which are the second half of the rows."""
    n = len(tree) // 2
    m = tree.shape[1]
    for i in range(n - 1, 0, -1):
        for j in range(m):
            tree[i, j] = tree[2 * i, j] + tree[2 * i + 1, j]


@compile_kernel
def _add_range_sums_by_tree_in_place(tree, start, end, out):
    """Add up the nodes that cover each range from `start` to `end`."""
    n = len(tree) // 2
    m = tree.shape[1]
    for q in range(len(start)):
        low = start[q] + n
        high = end[q] + n
        while low < high:
            # A right child at the left end is not covered by its parent, so it is added
            # by itself; likewise a left child at the right end.
            if low & 1:
                for j in range(m):
                    out[j, q] += tree[low, j]
                low += 1
            if high & 1:
                high -= 1
                for j in range(m):
                    out[j, q] += tree[high, j]
            low >>= 1
            high >>= 1


class RangeSums:
    """Sums of columns over rows start to end - 1, for arrays of starts and ends.

    Equal columns have equal sums to the last bit: the order of the additions depends on
    the range only.
    """

    def __init__(self, *columns):
        self.n = len(columns[0])
        self._tree = np.zeros((2 * self.n, len(columns)))
        self._tree[self.n :] = np.column_stack(columns)
        _sum_tree_from_leaves(self._tree)

    def sum_between(self, start, end):
        """Return one array of sums for each column."""
        start, end = (np.asarray(index, np.int64) for index in (start, end))
        out = np.zeros((self._tree.shape[1], len(start)))
        _add_range_sums_by_tree_in_place(self._tree, start, end, out)
        return out

    def sum_runs(self, starts):
        """Return the sums of the runs with these starts.

        The last run ends with the rows.
        """
        return self.sum_between(starts, np.append(starts[1:], self.n))


class WindowEstimator:
    """Distinct probabilities, given by increasing log-odds, with the weights of labels 0 and 1.

    With a part of the weight, above 0, also the smallest windows that hold so much.
    `invented` is the weight of the invented rows that every window holds besides.
    Cumulative sums are kept, so that all windows cost the same.
    """

    def __init__(self, log_odds, weights, weight_fraction=None, invented=0.0):
        self.log_odds = log_odds
        self._sums = RangeSums(*weights.T)
        self._invented = invented
        self._base = weights[:, 1].sum() / weights.sum()
        # Both p and 1 - p are in increasing order.
        self._low = expit(log_odds)
        self._high = expit(-log_odds)[::-1]
        if weight_fraction is not None:
            self._windows = self._find_log_odds_ends_and_middles(
                weights.sum(axis=1), weight_fraction
            )

    def estimate_nearest(self, score):
        """Return the event rate in the smallest symmetric window around each score."""
        # Sorted queries are found faster, because they use the same parts of the
        # arrays.
        score, row = np.unique(score, return_inverse=True)
        return self._compute_window_or_nearest_rates(
            score, *self.find_nearest_window_start_and_end(score)
        )[row]

    def find_nearest_window_start_and_end(self, score):
        """Return the first cells of these windows, and the cells past their last ones."""
        first, last, center = self._windows
        # The smallest window around a score is one of the two whose middles are next to
        # it, because both ends of the windows increase.
        right = np.searchsorted(center, score)
        radius = np.full(len(score), np.inf)
        for i in (np.minimum(right, len(center) - 1), np.maximum(right - 1, 0)):
            below = subtract_sigmoids(np.minimum(first[i], score), score)
            above = subtract_sigmoids(score, np.maximum(last[i], score))
            radius = np.minimum(radius, np.maximum(below, above))
        p = expit(score)
        complement = expit(-score)
        # Distances that agree to 10 digits are treated as equal.
        slack = _DISTANCE_TOLERANCE * (np.minimum(p, complement) + radius)
        radius = radius + slack + 1e-300
        # The number of cells that lie before. The smaller of p and 1 - p decides,
        # because it has all its digits.
        low = self._low
        high = self._high
        n = len(self._low)
        start = np.searchsorted(low, p - radius, side="left")
        by_rest = n - np.searchsorted(high, complement + radius, side="right")
        start = np.where(p - radius <= 0.5, start, by_rest)
        end = np.searchsorted(low, p + radius, side="right")
        by_rest = n - np.searchsorted(high, complement - radius, side="left")
        return start, np.where(p + radius <= 0.5, end, by_rest)

    def estimate_rate_in_log_odds_window(self, score, low, high):
        """Return the event rate from log-odds `low` to `high`.

        If no probability is inside, the nearest one counts.
        """
        return self._compute_window_or_nearest_rates(
            score, *self.find_window(low, high)
        )

    def find_window(self, low_log_odds, high_log_odds):
        """Return where these windows start and end."""
        start = np.searchsorted(self.log_odds, low_log_odds, side="left")
        return start, np.searchsorted(self.log_odds, high_log_odds, side="right")

    def _compute_window_or_nearest_rates(self, score, start, end):
        """Return event rates of windows; an empty one gets the nearest cells."""
        empty = end <= start
        # An empty window has no rate, so the nearest cell answers; both sides at the
        # same distance are averaged.
        if empty.any():
            lonely = score[empty]
            last = len(self.log_odds) - 1
            right = np.minimum(np.searchsorted(self.log_odds, lonely), last)
            left = np.maximum(right - 1, 0)
            before = self.log_odds[left]
            after = self.log_odds[right]
            below = subtract_sigmoids(np.minimum(before, lonely), lonely)
            above = subtract_sigmoids(lonely, np.maximum(after, lonely))
            takes_left = below <= above * (1 + _DISTANCE_TOLERANCE)
            takes_right = above <= below * (1 + _DISTANCE_TOLERANCE)
            start[empty] = np.where(takes_left, left, right)
            end[empty] = np.where(takes_right, right, left) + 1
        zeros, ones = self._sums.sum_between(start, end)
        total = zeros + ones + self._invented
        pseudo_label = blend_with_base_rate(expit(score), self._base)
        return (ones + self._invented * pseudo_label) / total

    def _find_log_odds_ends_and_middles(self, mass, weight_fraction):
        """Return the first and last scores of the windows, and the windows' middles."""
        before = np.append(0.0, np.cumsum(mass))
        total = before[-1]
        wanted = min(weight_fraction * total, total) * (1 - BIN_EDGE_TOLERANCE_IN_BINS)
        last = np.searchsorted(before, before[:-1] + wanted, side="left") - 1
        first = np.flatnonzero(last < len(mass))
        ends = self.log_odds[first], self.log_odds[last[first]]
        return *ends, average_log_odds_as_probabilities(*ends)
