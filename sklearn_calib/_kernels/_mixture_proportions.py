"""Proportions of a mixture by maximum likelihood, with their uncertainty.

The mean of log(ratio @ b) over the rows is concave in the proportions b; `ratio` holds
for each row the density of every component, up to a factor of the row.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from .._typing import FloatArray
from ._newton import minimise_by_newton, solve_newton_step_and_decrement

# More components are fitted by EM steps alone, because a Newton step costs n k^2 + k^3.
MAX_NEWTON_CLASSES = 200
_INITIAL_EM_STEPS = 10
_MAX_EM_STEPS = 2000
_MAX_NEWTON_STEPS = 100
# EM alone ends if no proportion changes by more than this.
_MAX_FINAL_PROPORTION_CHANGE = 1e-10
# In nats.
_DECREMENT_TOLERANCE = 1e-22
# So many pseudo rows keep each weight of a mixture above 0.
_MIN_PRIOR_COUNT = 1e-3
# Eigenvalues below this fraction of the largest one are treated as zero.
_EIGENVALUE_TOLERANCE = 1e-12


class FittedProportions(NamedTuple):
    """Where the search ended; `gap` bounds how far the likelihood is from its largest, in nats."""

    prior: FloatArray
    gap: float
    n_iter: int


def fit_proportions(
    ratio: FloatArray, weight: FloatArray, start: FloatArray
) -> FittedProportions:
    """Return the proportions of largest likelihood.

    EM steps come first, then Newton steps on the simplex.

    With the sum of b added the function has its minimum among all b >= 0 on the
    simplex, and a Newton step by nonnegative least squares finds proportions of exactly
    0 (Kim, Carbonetto, Stephens, Anitescu 2020). EM never lowers the likelihood and
    does the work far from the optimum.
    """
    weight_fraction = weight / weight.sum()
    b = np.array(start)
    newton = len(b) <= MAX_NEWTON_CLASSES
    n_iter = 0

    def evaluate_objective_and_density(b):
        density = ratio @ b
        return b.sum() - _average_log_density(density, weight_fraction), density

    def find_step_and_decrement(b, density):
        # The objective b.sum() - mean log(ratio b) has the same minimum as the
        # likelihood on the simplex, without the constraint on the sum.
        g = ratio / density[:, None]
        gradient = 1.0 - weight_fraction @ g
        g *= np.sqrt(weight_fraction)[:, None]
        return solve_newton_step_and_decrement(g.T @ g, gradient, -b)

    for _ in range(_INITIAL_EM_STEPS if newton else _MAX_EM_STEPS):
        n_iter += 1
        # A step of the EM algorithm (Saerens, Latinne and Decaestecker): it never
        # lowers the likelihood and keeps proportions positive.
        updated = b * _compute_likelihood_gradient(ratio, weight_fraction, b)
        change = np.abs(updated - b).max()
        b = updated / updated.sum()
        if change <= _MAX_FINAL_PROPORTION_CHANGE:
            break
    if newton:
        end = minimise_by_newton(
            evaluate_objective_and_density,
            find_step_and_decrement,
            b,
            _DECREMENT_TOLERANCE,
            0.0,
            max_iter=_MAX_NEWTON_STEPS,
        )
        b = end.theta / end.theta.sum()
        n_iter += end.n_iter
    return FittedProportions(
        b,
        # By concavity the largest directional derivative towards a vertex bounds the
        # distance to the maximum.
        max(
            float(_compute_likelihood_gradient(ratio, weight_fraction, b).max() - 1.0),
            0.0,
        ),
        n_iter,
    )


def fit_mixture_weights(likelihood, mass, prior):
    """Maximise sum_i mass_i log(sum_m w_m likelihood_im) + sum_m prior_m log w_m.

    The posterior mode under a Dirichlet prior with prior_m invented rows for each part,
    which no other part explains.

    Parameters
    ----------
    likelihood : ndarray of shape (n, m), > 0
    mass : ndarray of shape (n,), >= 0
    prior : ndarray of shape (m,), at least 0.001 is used

    Returns
    -------
    weights : ndarray of shape (m,)
        Sum 1.
    """
    prior = np.maximum(prior, _MIN_PRIOR_COUNT)
    ratio = np.empty((len(mass) + len(prior), len(prior)))
    np.divide(likelihood, likelihood.max(axis=1, keepdims=True), out=ratio[: len(mass)])
    # The Dirichlet prior acts like rows that certainly belong to one component each.
    ratio[len(mass) :] = np.eye(len(prior))
    weight = np.append(mass, prior)
    return fit_proportions(ratio, weight, prior / prior.sum()).prior


def _compute_likelihood_gradient(ratio, weight_fraction, b):
    """Return the gradient.

    At the optimum it is 1 for each positive proportion and at most 1 for others.
    """
    return (weight_fraction / (ratio @ b)) @ ratio


def _average_log_density(density, weight_fraction):
    with np.errstate(divide="ignore"):
        return float(weight_fraction @ np.log(np.maximum(density, 0.0)))


def compute_proportion_se_and_interval(
    ratio: FloatArray,
    weight: FloatArray,
    prior: FloatArray,
    source: FloatArray,
    n_source: float,
    level: float,
) -> tuple[FloatArray, FloatArray]:
    """Return standard errors and intervals of proportions of `fit_proportions`.

    Parameters
    ----------
    ratio : ndarray of shape (n_samples, n_classes)
    weight : ndarray of shape (n_samples,)
    prior : ndarray of shape (n_classes,)
    source : ndarray of shape (n_classes,)
        The frequencies that `ratio` was divided by.
    n_source : float
        The rows that these were counted on; inf if they are exact.
    level : float

    Returns
    -------
    se : ndarray of shape (n_classes,)
        inf if the rows carry no information about a class.
    interval : ndarray of shape (n_classes, 2)

    Notes
    -----
    The standard errors are a sandwich, which for equal weights is the inverse of the
    sum of outer products of the scores. The interval of a class holds the proportions t
    whose log-likelihood, on the line along which the other classes change according to
    the covariance, is at most z^2 V / (2 C) below its largest, C the variance by the
    curvature, V by the sandwich.
    """
    weight_fraction = weight / weight.sum()
    k = len(prior)
    if k <= MAX_NEWTON_CLASSES:
        lines, curvature, variance, unknown = _find_lines_curvatures_variances_unknowns(
            ratio, weight_fraction, prior, source, n_source
        )
    else:
        lines, curvature, variance, unknown = _get_class_profile_lines_and_variances(
            ratio, weight_fraction, prior
        )
    se = np.where(unknown, np.inf, np.sqrt(variance))
    # Without information about a class its interval is [0, 1].
    interval = np.tile([0.0, 1.0], (k, 1))
    z = norm.isf((1 - level) / 2)
    density = ratio @ prior
    tilts = ratio @ lines.T
    top = _average_log_density(density, weight_fraction)

    def measure_standard_errors_outside(t, c):
        """Return how far t is outside of the interval of class c, in standard errors."""
        shifted = prior + (t - prior[c]) * lines[c]
        # The line of steepest profile leaves the simplex at some point; beyond it, the
        # other proportions are clipped and rescaled.
        if shifted.min() >= 0:
            line_density = density + (t - prior[c]) * tilts[:, c]
        else:
            line_density = ratio @ _project_with_fixed_class(shifted, c, t)
        # Twice the fall of the likelihood is scaled by the ratio of the naive and the
        # robust variance, so that weights and the finite labelled sample are allowed
        # for.
        fall = (
            2
            * curvature[c]
            / variance[c]
            * (top - _average_log_density(line_density, weight_fraction))
        )
        return min(np.sqrt(max(fall, 0.0)), 4 * z) - z

    for c in np.flatnonzero(~unknown & (variance > 0)):
        for side, end in enumerate((0.0, 1.0)):
            if measure_standard_errors_outside(end, c) > 0:
                interval[c, side] = brentq(
                    measure_standard_errors_outside,
                    prior[c],
                    end,
                    args=(c,),
                    xtol=1e-12,
                )
    return se, interval


def _find_lines_curvatures_variances_unknowns(
    ratio, weight_fraction, b, source, n_source
):
    """Return lines, curvatures, variances and unknown classes from the whole Hessian."""
    k = len(b)
    g = ratio / (ratio @ b)[:, None]
    # Proportions sum to 1, so only directions orthogonal to the vector of ones count.
    tangent = np.eye(k) - 1.0 / k
    values, vectors = np.linalg.eigh(
        tangent @ ((g * weight_fraction[:, None]).T @ g) @ tangent
    )
    is_known = values > _EIGENVALUE_TOLERANCE * max(values[-1], 1e-300)
    inverse = (vectors[:, is_known] / values[is_known]) @ vectors[:, is_known].T
    # The vector of ones is removed: the proportions sum to 1, so it is not a direction
    # in which they could vary.
    null = vectors[:, ~is_known] - vectors[:, ~is_known].mean(axis=0)
    unknown = (np.abs(null) > 1e-6).any(axis=1)
    variance = ((weight_fraction[:, None] * (g @ inverse)) ** 2).sum(axis=0)
    # The component densities come from predictions trained on n_source rows, whose
    # class frequencies have errors of their own.
    if np.isfinite(n_source):
        difference = inverse - (np.diag(b) - np.outer(b, b))
        variance += (difference**2 / source).sum(axis=1) / n_source
    curvature = np.diag(inverse)
    unknown |= curvature <= 0
    return (
        inverse / np.where(unknown, 1.0, curvature)[:, None],
        curvature,
        variance,
        unknown,
    )


def _get_class_profile_lines_and_variances(ratio, weight_fraction, b):
    """Return the same with the other classes in fixed proportions: no k x k matrix."""
    g = (ratio / (ratio @ b)[:, None] - 1.0) / np.maximum(1.0 - b, 1e-300)
    bend = weight_fraction @ g**2
    spread = weight_fraction**2 @ g**2
    unknown = bend <= 0
    bend = np.where(unknown, 1.0, bend)

    lines = -b / np.maximum(1.0 - b, 1e-300)[:, None]
    np.fill_diagonal(lines, 1.0)
    return lines, 1.0 / bend, spread / bend**2, unknown


def _project_with_fixed_class(shifted, c, t):
    """Remove negative proportions, and set class c to t."""
    shifted = np.maximum(shifted, 0.0)
    shifted[c] = 0.0
    total = shifted.sum()
    shifted *= (1.0 - t) / total if total > 0 else 0.0
    shifted[c] = t
    return shifted
