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


def decision_loss(threshold, regret):
    """The largest integral of a regret over weights w of thresholds, and where its weight lies.

    A proper loss is a mixture of V shapes, and its values for either label span at most 1 where
    both the integral of t dw and that of (1 - t) dw are at most 1. The largest integral is twice
    the value at 1/2 of the concave envelope of the regret and of (0, 0) and (1, 0), so that the
    weight lies on one threshold on either side of 1/2, or on 1/2.

    Points come in any order. Returns (loss, lower threshold, upper threshold).
    """
    t, value = np.append(threshold, [0.0, 1.0]), np.append(regret, [0.0, 0.0])
    left = t <= 0.5
    i, j = (np.where(side, value, -np.inf).argmax() for side in (left, ~left))
    while True:
        slope = (value[j] - value[i]) / (t[j] - t[i])
        middle = value[i] + slope * (0.5 - t[i])
        above = value - (middle + slope * (t - 0.5))
        k = above.argmax()
        if not above[k] > 1e-15 or k in (i, j):
            return 2.0 * float(max(middle, 0.0)), float(t[i]), float(t[j])
        i, j = (k, j) if left[k] else (i, k)


def integral(breaks, intercept, slope):
    """Of a function that is linear from each break to the next."""
    widths, middles = np.diff(breaks), (breaks[1:] + breaks[:-1]) / 2
    return float(widths @ (intercept + slope * middles))
