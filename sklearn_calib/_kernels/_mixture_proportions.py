"""Proportions of a mixture by maximum likelihood, with what is not known about them.

The mean of log(ratio @ b) over the rows is concave in the proportions b; `ratio` holds for each row
the density of every component, up to a factor of the row.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from .._typing import FloatArray
from ._newton import damped_newton, newton_step

LARGEST_NEWTON = 200  # more components take EM steps alone: a Newton step costs n k^2 + k^3
_EM_STEPS = 10
_EM_STEPS_ALONE = 2000
_NEWTON_STEPS = 100
_MOVE = 1e-10  # where EM alone ends
_TOLERANCE = 1e-22  # of the decrement, in nats
_SMALLEST_COUNT = 1e-3  # of invented rows: no part of a mixture gets a weight of 0
_NULL = 1e-12  # eigenvalues below this part of the largest are zero


class Proportions(NamedTuple):
    """Where the search ended; `gap` bounds how far the likelihood is from its largest, in nats."""

    prior: FloatArray
    gap: float
    n_iter: int


def fit_proportions(ratio: FloatArray, weight: FloatArray, start: FloatArray) -> Proportions:
    """The proportions of largest likelihood: EM steps, then Newton steps on the simplex.

    With the sum of b added the function has its minimum among all b >= 0 on the simplex, and a
    Newton step by nonnegative least squares finds proportions of exactly 0 (Kim, Carbonetto,
    Stephens, Anitescu 2020). EM never lowers the likelihood and does the work far from the optimum.
    """
    share, b = weight / weight.sum(), np.array(start)
    newton = len(b) <= LARGEST_NEWTON
    n_iter = 0

    def evaluate(b):
        density = ratio @ b
        return b.sum() - _mean_log_of(density, share), density

    def direction(b, density):
        g = ratio / density[:, None]
        return newton_step((g * share[:, None]).T @ g, 1.0 - share @ g, -b)

    for _ in range(_EM_STEPS if newton else _EM_STEPS_ALONE):
        n_iter += 1
        updated = b * _slope(ratio, share, b)
        moved, b = np.abs(updated - b).max(), updated / updated.sum()
        if moved <= _MOVE:
            break
    if newton:
        end = damped_newton(evaluate, direction, b, _TOLERANCE, 0.0, max_iter=_NEWTON_STEPS)
        b, n_iter = end.theta / end.theta.sum(), n_iter + end.n_iter
    return Proportions(b, max(float(_slope(ratio, share, b).max() - 1.0), 0.0), n_iter)


def mixture_weights(likelihood, mass, prior):
    """Maximise sum_i mass_i log(sum_m w_m likelihood_im) + sum_m prior_m log w_m.

    The posterior mode under a Dirichlet prior with prior_m invented rows for each part, which no
    other part explains.

    Parameters
    ----------
    likelihood : ndarray of shape (n, m), > 0
    mass : ndarray of shape (n,), >= 0
    prior : ndarray of shape (m,), counted as 0.001 where smaller

    Returns
    -------
    weights : ndarray of shape (m,)
        Sum 1.
    """
    prior = np.maximum(prior, _SMALLEST_COUNT)
    seen = likelihood / likelihood.max(axis=1, keepdims=True)
    ratio, weight = np.vstack([seen, np.eye(len(prior))]), np.append(mass, prior)
    return fit_proportions(ratio, weight, prior / prior.sum()).prior


def _slope(ratio, share, b):
    """The gradient; at the optimum 1 for each positive proportion, and at most 1 for the others."""
    return (share / (ratio @ b)) @ ratio


def _mean_log_of(density, share):
    with np.errstate(divide="ignore"):
        return float(share @ np.log(np.maximum(density, 0.0)))


def proportions_uncertainty(
    ratio: FloatArray,
    weight: FloatArray,
    prior: FloatArray,
    source: FloatArray,
    n_source: float,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Standard errors and intervals of proportions that `fit_proportions` found.

    Parameters
    ----------
    ratio : ndarray of shape (n_samples, n_classes)
    weight : ndarray of shape (n_samples,)
    prior : ndarray of shape (n_classes,)
    source : ndarray of shape (n_classes,)
        The frequencies that `ratio` was divided by.
    n_source : float
        The rows that these were counted on; inf where they are exact.
    level : float

    Returns
    -------
    se : ndarray of shape (n_classes,)
        inf where the rows say nothing about a class.
    interval : ndarray of shape (n_classes, 2)

    Notes
    -----
    The standard errors are a sandwich, which for equal weights is the inverse of the sum of outer
    products of the scores. The interval of a class holds the proportions t whose log-likelihood, on
    the line along which the other classes give way as the covariance says, is at most
    z^2 V / (2 C) below its largest, C the variance by the curvature, V by the sandwich.
    """
    share = weight / weight.sum()
    k = len(prior)
    if k <= LARGEST_NEWTON:
        lines, curvature, variance, unknown = _full(ratio, share, prior, source, n_source)
    else:
        lines, curvature, variance, unknown = _one_by_one(ratio, share, prior)
    se = np.where(unknown, np.inf, np.sqrt(variance))
    interval = np.tile([0.0, 1.0], (k, 1))
    z = norm.isf((1 - level) / 2)
    density, tilts = ratio @ prior, ratio @ lines.T
    top = _mean_log_of(density, share)

    def excess(t, c):
        """How far t for class c is outside of its interval, in standard errors."""
        moved = prior + (t - prior[c]) * lines[c]
        if moved.min() >= 0:
            there = density + (t - prior[c]) * tilts[:, c]
        else:
            there = ratio @ _back_on_simplex(moved, c, t)
        fall = 2 * curvature[c] / variance[c] * (top - _mean_log_of(there, share))
        return min(np.sqrt(max(fall, 0.0)), 4 * z) - z

    for c in np.flatnonzero(~unknown & (variance > 0)):
        for side, end in enumerate((0.0, 1.0)):
            if excess(end, c) > 0:
                interval[c, side] = brentq(excess, prior[c], end, args=(c,), xtol=1e-12)
    return se, interval


def _full(ratio, share, b, source, n_source):
    """Lines, curvatures, variances and which are unknown, from the whole Hessian."""
    k = len(b)
    g = ratio / (ratio @ b)[:, None]
    tangent = np.eye(k) - 1.0 / k
    values, vectors = np.linalg.eigh(tangent @ ((g * share[:, None]).T @ g) @ tangent)
    known = values > _NULL * max(values[-1], 1e-300)
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
    null = vectors[:, ~known] - vectors[:, ~known].mean(axis=0)  # without the vector of ones
    unknown = (np.abs(null) > 1e-6).any(axis=1)
    variance = ((share[:, None] * (g @ inverse)) ** 2).sum(axis=0)
    if np.isfinite(n_source):
        moved = inverse - (np.diag(b) - np.outer(b, b))
        variance = variance + (moved**2 / source).sum(axis=1) / n_source
    curvature = np.diag(inverse)
    unknown |= curvature <= 0
    return inverse / np.where(unknown, 1.0, curvature)[:, None], curvature, variance, unknown


def _one_by_one(ratio, share, b):
    """The same with the other classes in fixed proportions to each other: no k x k matrix."""
    g = (ratio / (ratio @ b)[:, None] - 1.0) / np.maximum(1.0 - b, 1e-300)
    bend, spread = share @ g**2, share**2 @ g**2
    unknown = bend <= 0
    bend = np.where(unknown, 1.0, bend)

    lines = -b / np.maximum(1.0 - b, 1e-300)[:, None]
    np.fill_diagonal(lines, 1.0)
    return lines, 1.0 / bend, spread / bend**2, unknown


def _back_on_simplex(moved, c, t):
    """Without negative proportions, and with t for class c."""
    moved = np.maximum(moved, 0.0)
    moved[c] = 0.0
    total = moved.sum()
    moved *= (1.0 - t) / total if total > 0 else 0.0
    moved[c] = t
    return moved
