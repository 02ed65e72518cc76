"""logit P(event) = a + b z: maximum likelihood with a or b held, profiles, standard errors.

`z` are log-odds, `hit` 1 for the event, else 0, `weight` above 0.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ._logistic import fit_logistic

_FARTHEST = 2.0**40  # of an end of an interval, in standard errors


def log_likelihood(eta, hit, weight):
    """Of log-odds eta; a sum over the rows."""
    return -float(weight @ np.logaddexp(0.0, np.where(hit == 1, -eta, eta)))


def climb(offset, column, hit, weight, start=0.0, tol=1e-13):
    """The c of largest likelihood of offset + c column, and that likelihood.

    Newton's steps inside the bracket that the signs of the slope have shown so far; at most
    tenfold steps before. Both outcomes occur, and the maximum is finite.
    """
    c, low, high = float(start), -np.inf, np.inf
    for _ in range(200):
        mean = expit(offset + c * column)
        slope = weight @ (column * (hit - mean))
        low, high = (c, high) if slope > 0 else (low, c)
        curvature = weight @ (column**2 * mean * (1 - mean))
        most = 10 * (1 + abs(c))
        step = np.clip(slope / curvature, -most, most) if curvature > 0 else np.sign(slope) * most
        if not low < c + step < high:
            step = (low + high) / 2 - c if np.isfinite(low + high) else step
        c += step
        if abs(step) <= tol * (1 + abs(c)):
            break
    return float(c), log_likelihood(offset + c * column, hit, weight)


def fit_line(z, hit, weight):
    """(a, b) and the largest likelihood; its supremum where the outcomes are separated."""
    columns = np.column_stack([np.ones_like(z), z])
    fitted = fit_logistic(columns, hit, weight, (), [0, 1])
    return fitted.coef, -float(fitted.loss * weight.sum())


def covariance(columns, eta, hit, weight, squares=None):
    """Of the coefficients of `columns` at log-odds eta, by the model.

    By the sandwich where the sums of squared weights are given; cells have such of their own. Of
    clusters see `_cluster_sums.jackknife`.
    """
    mean = expit(eta)
    bread = np.linalg.pinv((columns * (weight * mean * (1 - mean))[:, None]).T @ columns)
    if squares is None:
        return bread
    pull = columns * (np.sqrt(squares) * (hit - mean))[:, None]
    return bread @ (pull.T @ pull) @ bread


def profile_interval(profile, estimate, top, step, drop):
    """Where 2 (top - profile(c)) <= drop: from the estimate outwards on both sides.

    `step` is a first guess of the distance. An end that is not found within 2^40 of these is
    infinite. An infinite estimate is an end; the other one is sought from `step` with its sign.
    """
    root = np.sqrt(drop)

    def beyond(c):  # nearly linear in c
        return np.sqrt(max(2 * (top - profile(c)), 0.0)) - root

    def end(start, direction):
        width = step
        while beyond(start + direction * width) < 0:
            start, width = start + direction * width, 2 * width
            if width > _FARTHEST * step:
                return direction * np.inf
        found = sorted([start, start + direction * width])
        return brentq(beyond, *found, xtol=1e-10 * step, rtol=1e-13)

    if np.isfinite(estimate):
        return end(estimate, -1), end(estimate, 1)
    sign, inside = int(np.sign(estimate)), step * np.sign(estimate)
    while beyond(inside) >= 0:
        inside *= 2
    finite = end(inside, -sign)
    return (finite, np.inf) if sign > 0 else (-np.inf, finite)
