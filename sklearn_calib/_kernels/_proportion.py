"""Clopper and Pearson's bounds of a proportion, from beta distributions.

`events` of `rows`, arrays or numbers; effective rows under weights, so any real
numbers. They hold at least with their level for rows of different probabilities too:
the sum of such events varies less than a binomial one (Hoeffding 1956).
"""

import numpy as np
from scipy.special import betaincinv, chdtri, expit, logit

# A proportion this close to 0 or 1 is treated as 0 or 1, because sums of weights are
# rounded.
_ZERO_OR_ONE_TOLERANCE = 1e-9
# From so many quantiles on, they are interpolated by a spline.
_MIN_INTERPOLATED_QUANTILES = 50_000


def compute_upper_bound(events, rows, tail):
    """Return a bound that the true proportion exceeds with probability at most `tail`."""
    return 1 - compute_lower_bound(np.subtract(rows, events), rows, tail)


def compute_lower_bound(events, rows, tail):
    """Return a bound that the true proportion is below with probability at most `tail`."""
    events, rows = np.broadcast_arrays(events, rows)
    # Without events the lower bound is 0, which the beta distribution with a = 0 does
    # not express.
    above = events > rows * _ZERO_OR_ONE_TOLERANCE
    quantiles = find_beta_quantiles(np.where(above, events, 1), rows - events + 1, tail)
    return np.where(above, quantiles, 0.0)


def find_beta_quantiles(a, b, p):
    """Return the quantiles of Beta(a, b) at `p`, arrays of one shape.

    The log-odds of a quantile are smooth in log(a) and log(b) for a and b from 1 on, so
    many quantiles come from a spline through those at some 16 nodes per unit of both
    logarithms: up to 1e-11 of the quantile. Each of the others takes some 10 µs.
    """
    if np.size(a) < _MIN_INTERPOLATED_QUANTILES:
        return betaincinv(a, b, p)
    # Imported here because it takes long.
    from scipy.interpolate import RectBivariateSpline

    logs = [np.log(np.maximum(log_values, 1)) for log_values in (a, b)]
    nodes = [
        np.linspace(0, log_values.max() + 1, int(16 * log_values.max()) + 24)
        for log_values in logs
    ]
    # Bootstrap intervals of many cells need the same quantiles again and again. On log
    # and logit scales they are smooth enough for a spline of degree 5.
    table = logit(betaincinv(*np.exp(np.meshgrid(*nodes, indexing="ij")), p))
    spline = RectBivariateSpline(*nodes, table, kx=5, ky=5)
    quantiles = expit(spline.ev(*logs))
    small = np.minimum(a, b) < 1
    quantiles[small] = betaincinv(a[small], b[small], p)
    return quantiles


def compute_exact_interval(events, rows, level):
    """Return both bounds, together right with probability `level`."""
    tail = (1 - level) / 2
    low = compute_lower_bound(events, rows, tail)
    high = compute_upper_bound(events, rows, tail)
    return low, high


def compute_wilson_interval(fraction, rows, level):
    """Return Wilson's interval, right with probability `level` on average."""
    square = chdtri(1, 1 - level)
    # Wilson (1927) inverts the score test, so the interval stays inside [0, 1].
    middle = (fraction + square / (2 * rows)) / (1 + square / rows)
    half = np.sqrt(square * (fraction * (1 - fraction) + square / (4 * rows)) / rows)
    half /= 1 + square / rows
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
