"""Cumulative log-odds of ordered classes, rescaled by one slope and shifted.

With z_k the log-odds of "above class k", k = 0 .. K-2, the new ones are s z_k + a_k,
where s >= 0 and a falls: a_k = a_0 - d_1 - .. - d_k, d >= 0. A class c in the middle
then has the probability expit(u) - expit(v) = expit(u) expit(-v) (1 - exp(-w)), where u
= s z_{c-1} + a_{c-1}, v = s z_c + a_c, and w = u - v = s (z_{c-1} - z_c) + d_c is never
negative. Its logarithm is concave in (s, a_0, d), so the likelihood has one maximum.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from ._newton import minimise_by_newton, solve_newton_step_and_decrement

# In nats.
_DECREMENT_TOLERANCE = 2e-13
# The lower bound of w: a class of probability 0 costs 230 nats.
_MIN_CLASS_WIDTH_LOG_ODDS = 1e-100
# The slope starts with log-odds of at most this size, because Newton steps overshoot
# far from 0.
_MAX_START_LOG_ODDS = 3.0
# d starts at this distance from its bound, where the curvature may be huge.
_START_GAP_ABOVE_BOUND = 0.01


class CumulativeLogOddsAndDrops(NamedTuple):
    """Log-odds of "above class k", and how much they fall from k - 1 to k, without cancellation."""

    # Of shape (n_samples, K - 1).
    log_odds: np.ndarray
    # Of shape (n_samples, K - 2).
    drop: np.ndarray


class OrdinalFit(NamedTuple):
    slope: float
    # The vector a, of shape (K - 1,), which does not increase.
    shifts: np.ndarray
    loss: float
    # Half the last Newton decrement.
    gap: float


def compute_cumulative_log_odds(log_proba):
    """Return cumulative log-odds of rows of finite log-probabilities."""
    # Sums from both ends, never 1 less the other sum, so that small probabilities keep
    # their digits.
    below = np.logaddexp.accumulate(log_proba, axis=1)[:, :-1]
    above = np.logaddexp.accumulate(log_proba[:, ::-1], axis=1)[:, -2::-1]
    middle = log_proba[:, 1:-1]
    # The logarithms of G_{c-1} / G_c and F_c / F_{c-1}: each ratio is 1 + p_c / the
    # smaller sum.
    gap = np.logaddexp(0, middle - above[:, 1:])
    gap += np.logaddexp(0, middle - below[:, :-1])
    return CumulativeLogOddsAndDrops(
        above - below, np.maximum(gap, _MIN_CLASS_WIDTH_LOG_ODDS)
    )


def compute_class_proba(cumulative, slope, shifts):
    """Return class probabilities of rows."""
    eta = slope * cumulative.log_odds + shifts
    low = expit(-eta)
    high = expit(eta)
    width = slope * cumulative.drop - np.diff(shifts)
    # The product form of expit(u) - expit(v), which does not cancel for narrow classes.
    middle = high[:, :-1] * low[:, 1:] * -np.expm1(-width)
    table = np.column_stack([low[:, 0], middle, high[:, -1]])
    return table / table.sum(axis=1, keepdims=True)


def fit_ordinal_slope_shifts_and_loss(cumulative, target):
    """Minimise -sum target log p by Newton steps within the constraints.

    Parameters
    ----------
    cumulative : Thresholds
    target : ndarray of shape (n_samples, K)
        Weights of the classes in each row; the sum of all is about 1.
    """
    count = cumulative.log_odds.shape[1]
    spread = np.sqrt(target.sum(axis=1) @ (cumulative.log_odds**2).mean(axis=1))
    start_slope = _MAX_START_LOG_ODDS / max(spread, _MAX_START_LOG_ODDS)
    gaps = np.full(count - 1, _START_GAP_ABOVE_BOUND)
    theta = np.concatenate([[start_slope, 0.0], gaps])
    lowest = np.where(np.arange(len(theta)) == 1, -np.inf, 0.0)
    # A matrix that turns (a_0, d) into a.
    sums = -np.tri(count)
    sums[:, 0] = 1.0

    def find_step_and_decrement(theta, _):
        gradient, hessian = _compute_derivatives(cumulative, target, theta, sums)
        step, decrement = solve_newton_step_and_decrement(
            hessian, gradient, lowest - theta
        )
        # A step may take at most nine tenths of the slope, so that it stays positive:
        # at slope 0 the widths may be 0.
        shorter = min(1.0, 0.9 * theta[0] / max(-step[0], 1e-300))
        return shorter * step, shorter * decrement

    def evaluate_loss(theta) -> tuple[float, None]:
        return _compute_log_loss(cumulative, target, theta, sums), None

    def is_trusted(theta, step):
        """Return False if a width, whose logarithm is in the loss, changes by much.

        Its weight may be tiny, and the decrement tinier.
        """
        change = np.abs(step[0] * cumulative.drop + step[2:])
        change /= _compute_middle_class_widths(cumulative, theta)
        return (change <= 0.1).all() or (target[:, 1:-1] * change).sum() <= 1e-14

    theta, value, decrement, _ = minimise_by_newton(
        evaluate_loss,
        find_step_and_decrement,
        theta,
        _DECREMENT_TOLERANCE,
        lowest,
        is_trusted,
    )
    return OrdinalFit(float(theta[0]), sums @ theta[1:], float(value), decrement / 2)


def _compute_middle_class_widths(cumulative, theta):
    return np.maximum(theta[0] * cumulative.drop + theta[2:], _MIN_CLASS_WIDTH_LOG_ODDS)


def _compute_log_loss(cumulative, target, theta, sums):
    """Return the weighted log loss at theta = (slope, a_0, d)."""
    eta = theta[0] * cumulative.log_odds + sums @ theta[1:]
    above = (target[:, 1:] * log_expit(eta)).sum()
    below = (target[:, :-1] * log_expit(-eta)).sum()
    width = _compute_middle_class_widths(cumulative, theta)
    # The factor 1 - exp(-w) of the probability of a class in the middle.
    middle = (target[:, 1:-1] * np.log(-np.expm1(-width))).sum()
    return -(above + below) - middle


def _compute_derivatives(cumulative, target, theta, sums):
    """Return gradient and Hessian in (s, a_0, d)."""
    z, gap = cumulative
    eta = theta[0] * z + sums @ theta[1:]
    high = expit(eta)
    low = expit(-eta)
    pull = target[:, :-1] * high - target[:, 1:] * low
    curved = (target[:, :-1] + target[:, 1:]) * high * low
    width = _compute_middle_class_widths(cumulative, theta)
    # The derivative of log(1 - exp(-w)), without a difference of nearly equal numbers.
    odds = np.exp(-width) / -np.expm1(-width)
    push = target[:, 1:-1] * odds
    bend = push * (1 + odds)
    gradient = np.concatenate([[(pull * z).sum()], sums.T @ pull.sum(axis=0)])
    gradient[0] -= (push * gap).sum()
    gradient[2:] -= push.sum(axis=0)
    hessian = np.empty((len(theta), len(theta)))
    hessian[1:, 1:] = (sums.T * curved.sum(axis=0)) @ sums
    hessian[0, 0] = (curved * z * z).sum() + (bend * gap * gap).sum()
    mixed = sums.T @ (curved * z).sum(axis=0)
    mixed[1:] += (bend * gap).sum(axis=0)
    hessian[0, 1:] = hessian[1:, 0] = mixed
    inner = np.arange(2, len(theta))
    hessian[inner, inner] += bend.sum(axis=0)
    return gradient, hessian
