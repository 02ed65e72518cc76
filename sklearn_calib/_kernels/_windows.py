"""The share of ones in a window of probabilities, exact next to 0 and next to 1."""

import numpy as np
from scipy.special import expit

from ._binning import ON_EDGE, invented_share
from ._log_odds import gap, middle
from ._range_sums import RangeSums

_EQUAL = 1e-10  # distances that agree to 10 digits are equal


class WindowCells:
    """Distinct probabilities, given by increasing log-odds, with the weights of labels 0 and 1.

    With a part of the weight, above 0, also the smallest windows that hold so much. `invented` is
    the weight of the invented rows that every window holds besides.
    """

    def __init__(self, log_odds, weights, part=None, invented=0.0):
        self.log_odds, self._sums = log_odds, RangeSums(*weights.T)
        self._invented, self._base = invented, weights[:, 1].sum() / weights.sum()
        self._low, self._high = expit(log_odds), expit(-log_odds)[::-1]  # p and 1 - p, increasing
        if part is not None:
            self._windows = self._smallest(weights.sum(axis=1), part)

    def share_of_nearest(self, score):
        """In the smallest symmetric window around each score with that part of the weight."""
        score, row = np.unique(score, return_inverse=True)  # sorted queries are found faster
        return self._share(score, *self.nearest(score))[row]

    def nearest(self, score):
        """Where these windows start and end: the numbers of their first cells and past the last."""
        first, last, center = self._windows
        right = np.searchsorted(center, score)
        radius = np.full(len(score), np.inf)
        for i in (np.minimum(right, len(center) - 1), np.maximum(right - 1, 0)):
            below = gap(np.minimum(first[i], score), score)
            above = gap(score, np.maximum(last[i], score))
            radius = np.minimum(radius, np.maximum(below, above))
        p, rest = expit(score), expit(-score)
        # distances that agree to 10 digits are equal
        radius = radius + _EQUAL * (np.minimum(p, rest) + radius) + 1e-300
        # how many cells lie before; the smaller of p and 1 - p decides, which has all digits
        low, high, n = self._low, self._high, len(self._low)
        start = np.searchsorted(low, p - radius, side="left")
        by_rest = n - np.searchsorted(high, rest + radius, side="right")
        start = np.where(p - radius <= 0.5, start, by_rest)
        end = np.searchsorted(low, p + radius, side="right")
        by_rest = n - np.searchsorted(high, rest - radius, side="left")
        return start, np.where(p + radius <= 0.5, end, by_rest)

    def share(self, score, low, high):
        """From log-odds `low` to `high`, or at the nearest probability where none is inside."""
        return self._share(score, *self.between(low, high))

    def between(self, low, high):
        """Where these windows start and end."""
        start = np.searchsorted(self.log_odds, low, side="left")
        return start, np.searchsorted(self.log_odds, high, side="right")

    def _share(self, score, start, end):
        empty = end <= start
        if empty.any():
            lonely, last = score[empty], len(self.log_odds) - 1
            right = np.minimum(np.searchsorted(self.log_odds, lonely), last)
            left = np.maximum(right - 1, 0)
            before, after = (self.log_odds[i] for i in (left, right))
            below, above = (
                gap(np.minimum(before, lonely), lonely),
                gap(lonely, np.maximum(after, lonely)),
            )
            start[empty] = np.where(below <= above * (1 + _EQUAL), left, right)
            end[empty] = np.where(above <= below * (1 + _EQUAL), right, left) + 1
        zeros, ones = self._sums.between(start, end)
        total = zeros + ones + self._invented
        return (ones + self._invented * invented_share(expit(score), self._base)) / total

    def _smallest(self, mass, part):
        """For each first score of a window its last one, and the middles of these windows."""
        before = np.append(0.0, np.cumsum(mass))
        wanted = min(part * before[-1], before[-1]) * (1 - ON_EDGE)
        last = np.searchsorted(before, before[:-1] + wanted, side="left") - 1
        first = np.flatnonzero(last < len(mass))
        ends = self.log_odds[first], self.log_odds[last[first]]
        return *ends, middle(*ends)
