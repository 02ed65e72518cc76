"""Offsets on the logarithms of probabilities after which their means are given numbers."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from .._simplex_array import has_exact_log, log_proba
from .._typing import FloatArray
from ._newton import minimise_by_newton

# Bisection reaches neighbouring float64 from any bracket within so many steps.
_MAX_BISECTIONS = 300
# The numbers of matching steps before Newton's method, and instead of it.
_INITIAL_MATCHING_STEPS = 20
_MAX_MATCHING_STEPS = 2000
# With more classes a Hessian takes too long.
_MAX_NEWTON_CLASSES = 200
_MEAN_RATIO_TOLERANCE = 1e-14
# An offset changes by at most so much per step, so that the search for targets out of
# reach ends.
_MAX_OFFSET_STEP = 10.0


class OffsetsAndMeans(NamedTuple):
    """What is added to the logarithms, 0 for the first class, and the means that it gives."""

    offset: FloatArray
    means: FloatArray


def compute_log_proba_allowing_infinity(proba: FloatArray) -> FloatArray:
    """Return exact logs of logits; of plain probabilities 0 becomes -inf."""
    if has_exact_log(proba):
        return np.asarray(log_proba(proba))
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(proba))


def find_mean_ranges_under_offsets(proba: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the open range of each class's mean, of shape (k, 2).

    Rows of exactly 0 and 1 cannot move.
    """
    total = weight.sum()
    log = compute_log_proba_allowing_infinity(proba)
    never = np.isneginf(log)
    # A row that allows one class only keeps it under every offset, and a class of
    # probability 0 never gets any.
    alone = (never.sum(axis=1) == log.shape[1] - 1)[:, None] & ~never
    return np.column_stack([weight @ alone / total, 1 - weight @ never / total])


def fit_mean_offset(
    proba: FloatArray, weight: FloatArray, target_means: FloatArray
) -> OffsetsAndMeans:
    """Return offsets so that rows prop. to p exp(offset) have the mean `target_means`.

    Parameters
    ----------
    proba : ndarray of shape (n, k)
    weight : ndarray of shape (n,)
        Above 0.
    target_means : ndarray of shape (k,)
        Above 0, with sum 1; of two classes inside `find_mean_ranges_under_offsets`.

    Notes
    -----
    Two classes: the mean rises with the offset, and between the target's log-odds less
    the largest and less the smallest of the rows it crosses the target; Newton's steps
    on the log-odds of the mean inside that bracket. More classes: the offsets minimise
    the convex function mean(log sum_k p_k exp(b_k)) - target . b, whose gradient is the
    mean less the target; some steps of iterative scaling, then Newton's steps that
    never raise it. Targets that zeros put out of reach have no minimum: the caller
    compares the means with the target. O(n k^2) a step, with more than 200 classes at
    most 2000 scalings of O(n k).
    """
    weight_fraction = weight / weight.sum()
    log = compute_log_proba_allowing_infinity(proba)
    if len(target_means) == 2:
        log_odds = log[:, 1] - log[:, 0]
        # Certain rows do not move; the target of the others is what remains of the
        # mean.
        inside = np.isfinite(log_odds)
        zeros = weight_fraction[np.isneginf(log_odds)].sum()
        ones = weight_fraction[np.isposinf(log_odds)].sum()
        # The log-odds of the mean of the other rows.
        aim = np.log(target_means[1] - ones) - np.log(target_means[0] - zeros)
        offset = np.array(
            [0.0, _find_crossing(log_odds[inside], weight_fraction[inside], aim)]
        )
    else:
        offset = _fit_class_offsets(log, weight_fraction, target_means)
    return OffsetsAndMeans(offset, weight_fraction @ softmax(log + offset, axis=1))


def _find_crossing(log_odds, weight_fraction, target_log_odds):
    """Return the a at which the mean of expit(log_odds + a) has the target log-odds."""
    # With all log-odds at an end the offset would be exactly this, so the ends bracket
    # the solution.
    low = target_log_odds - log_odds.max()
    high = target_log_odds - log_odds.min()
    a = min(max(0.0, low), high)
    for _ in range(_MAX_BISECTIONS):
        proba = expit(log_odds + a)
        complement = expit(-(log_odds + a))
        up = weight_fraction @ proba
        down = weight_fraction @ complement
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # On the scale of log-odds the function is nearly linear with slope 1, and
            # neither small nor large means lose digits.
            above = np.log(up) - np.log(down) - target_log_odds
            step = (
                above
                * up
                * down
                / (weight_fraction @ (proba * complement))
                / weight_fraction.sum()
            )
        if above == 0:
            break
        low, high = (low, a) if above > 0 else (a, high)
        new = a - step
        if not low < new < high:
            new = low + (high - low) / 2
        if new == a or not low < new < high:
            break
        a = new
    return float(a)


def _fit_class_offsets(log, weight_fraction, target):
    """Fit the offsets of k classes with which the mean probabilities equal the target."""
    k = len(target)
    offset = np.zeros(k)
    for _ in range(
        _INITIAL_MATCHING_STEPS if k <= _MAX_NEWTON_CLASSES else _MAX_MATCHING_STEPS
    ):
        mean = weight_fraction @ softmax(log + offset, axis=1)
        if (mean == 0).any() or np.abs(mean / target - 1).max() < _MEAN_RATIO_TOLERANCE:
            break
        # Iterative proportional fitting: each step multiplies a class by the ratio of
        # its target and its mean. It converges linearly, but from any start.
        offset += np.clip(
            np.log(target) - np.log(mean), -_MAX_OFFSET_STEP, _MAX_OFFSET_STEP
        )
    if k <= _MAX_NEWTON_CLASSES:
        return _refine_by_newton(log, weight_fraction, target, offset)
    return offset - offset[0]


def _refine_by_newton(log, weight_fraction, target, offset):
    """Take Newton steps on all offsets but the first, never raising the objective."""

    def evaluate_objective_and_shifted_logs(b):
        shifted = log + np.append(0.0, b)
        return weight_fraction @ logsumexp(shifted, axis=1) - target[1:] @ b, shifted

    def find_step_and_decrement(_, shifted):
        q = softmax(shifted, axis=1)
        mean = weight_fraction @ q
        pull = (mean - target)[1:]
        curvature = (np.diag(mean) - q.T @ (q * weight_fraction[:, None]))[1:, 1:]
        # The Hessian is singular if some rows never mix two groups of classes; the
        # least-norm step leaves such directions alone.
        step = -np.linalg.lstsq(curvature, pull, rcond=None)[0]
        step *= min(1.0, _MAX_OFFSET_STEP / max(np.abs(step).max(), _MAX_OFFSET_STEP))
        return step, -pull @ step

    free = minimise_by_newton(
        evaluate_objective_and_shifted_logs,
        find_step_and_decrement,
        offset[1:] - offset[0],
        1e-20 * target.min(),
        max_iter=100,
    ).theta
    return np.append(0.0, free)
