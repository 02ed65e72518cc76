"""Arithmetic of probabilities that are given by their log-odds.

Every function is exact at both ends: swapping the classes changes the sign of the log-odds and
nothing else, and two probabilities that floating point cannot tell from 1 are still two.
"""

import numpy as np
from scipy.special import expit, log_expit


def of_probability(score, rest):
    """Log-odds, finite: a probability below the smallest normal float32 counts as that.

    `rest` is 1 - score, with all its digits.
    """
    tiny = np.finfo(np.float32).tiny
    return np.log(np.maximum(score, tiny)) - np.log(np.maximum(rest, tiny))


def gap(low, high):
    """The difference of two probabilities, p(high) - p(low), for low <= high."""
    return -np.expm1(low - high) * expit(high) * expit(-low)


def middle(low, high):
    """Log-odds of the mean of two probabilities; never above `high`, nor below `low`."""
    ones = np.logaddexp(log_expit(low), log_expit(high))
    return np.clip(ones - np.logaddexp(log_expit(-low), log_expit(-high)), low, high)


def interpolated(score, knots, values):
    """Linear in the probability between increasing knots, constant outside."""
    if len(knots) == 1:
        return np.full(len(score), values[0])
    left = np.clip(np.searchsorted(knots, score, side="right") - 1, 0, len(knots) - 2)
    low, high = knots[left], knots[left + 1]
    score = np.clip(score, low, high)
    share = np.exp(log_expit(score) - log_expit(high)) * np.expm1(low - score)
    share = np.clip(share / np.expm1(low - high), 0.0, 1.0)
    return values[left] + share * (values[left + 1] - values[left])
