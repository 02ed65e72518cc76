"""What acting on one prediction in place of another costs, at every threshold between 0 and 1."""

import numpy as np


def regret_pieces(score, better, hit, weight):
    """(breaks, intercept, slope): the regret is intercept + slope t from each break to the next.

    The regret is the mean of (hit - t) (1{better > t} - 1{score > t}). Breaks are 0, 1 and all
    values of both predictions.
    """
    breaks, place = np.unique(np.concatenate([score, better, [0.0, 1.0]]), return_inverse=True)
    share = weight / weight.sum()
    n, count = len(score), len(breaks)
    above = []  # the weight of what lies above each break: of hits, and of all
    for values in (share * hit, share):
        change = np.bincount(place[n : 2 * n], values, count) - np.bincount(
            place[:n], values, count
        )
        above.append(np.cumsum(change[::-1])[::-1][1:])
    return breaks, above[0], -above[1]


def integral(breaks, intercept, slope):
    """Of a function that is linear from each break to the next."""
    widths, middles = np.diff(breaks), (breaks[1:] + breaks[:-1]) / 2
    return float(widths @ (intercept + slope * middles))
