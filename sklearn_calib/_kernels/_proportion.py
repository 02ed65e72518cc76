"""Clopper and Pearson's bounds of a share: its law is the beta law of the order statistics.

`events` of `rows`, arrays or numbers; effective rows under weights, so any real numbers. They
hold at least with their level for rows of different probabilities too: the sum of such events
varies less than a binomial one (Hoeffding 1956).
"""

import numpy as np
from scipy.special import betaincinv, chdtri

_ROUNDING = 1e-9  # a share this close to 0 or 1 is 0 or 1: sums of weights are not exact


def upper_bound(events, rows, tail):
    """What the true share exceeds with probability `tail` at most."""
    events, rows = np.broadcast_arrays(np.asarray(events, float), np.asarray(rows, float))
    below = events < rows * (1 - _ROUNDING)
    return np.where(below, betaincinv(events + 1, np.where(below, rows - events, 1), 1 - tail), 1.0)


def lower_bound(events, rows, tail):
    """What the true share lies below with probability `tail` at most."""
    events, rows = np.broadcast_arrays(np.asarray(events, float), np.asarray(rows, float))
    above = events > rows * _ROUNDING
    return np.where(above, betaincinv(np.where(above, events, 1), rows - events + 1, tail), 0.0)


def share_interval(events, rows, level):
    """Both bounds, together right with probability `level`."""
    tail = (1 - level) / 2
    return lower_bound(events, rows, tail), upper_bound(events, rows, tail)


def wilson_interval(share, rows, level):
    """Wilson's interval of a share: both ends, right with probability `level` on average."""
    square = chdtri(1, 1 - level)
    middle = (share + square / (2 * rows)) / (1 + square / rows)
    half = np.sqrt(square * (share * (1 - share) + square / (4 * rows)) / rows)
    half /= 1 + square / rows
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
