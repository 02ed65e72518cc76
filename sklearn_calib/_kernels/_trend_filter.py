"""Linear trend filtering on irregular points: continuous piecewise linear fits with few knots.

    minimise  sum_i w_i (y_i - b_i)^2 / 2 + penalty * sum_j |change of slope at j|

Its dual is a quadratic program over the multipliers u of the changes of slope, |u| <=
penalty. A primal-dual interior-point method (Mehrotra) solves it; every Newton system
is a least-squares problem with quadratic prices on the changes of slope,

    minimise  sum_i w_i (y_i - b_i)^2 / 2 + sum_j (change_j - m_j)^2 / (2 q_j),

that is, the smoothing of a random walk of the slope. It is solved by a Kalman filter
that carries the variance of the level, the slope's coefficient on the level and the
slope's variance given the level: no step subtracts, so a million nearly equal points
cost no digits, while the banded normal equations have a condition of n^4. The backward
pass gives the multipliers themselves. O(n) an iteration, 10 to 25 of them.
"""

from typing import NamedTuple

import numpy as np

from ._compile import compile_kernel

_BOUND_SIGNS = np.array([[1.0], [-1.0]])


class TrendFitKnotsAndGap(NamedTuple):
    # The fit at every point.
    values: np.ndarray
    # The positions of the points where the slope changes by more than rounding.
    knots: np.ndarray
    # The objective exceeds the optimum by at most this.
    gap: float


def find_largest_penalty(x, y, w):
    """Return the penalty from which on the fit is the least-squares line."""
    line = _fit_line(x, y, w)
    # The multipliers of the line are double cumulative sums of its residuals; the line
    # is optimal if none exceeds the penalty.
    flow = np.cumsum(w * (line - y))[:-1] * np.diff(x)
    return float(np.abs(np.cumsum(flow)[:-1]).max(initial=0.0))


def fit_trend_filter(x, y, w, penalty, tol=1e-10, max_iter=100):
    """Return the fit for one penalty; x is increasing."""
    line = _fit_line(x, y, w)
    n = len(x)
    if n < 3 or penalty >= find_largest_penalty(x, y, w):
        return TrendFitKnotsAndGap(line, np.empty(0, dtype=int), 0.0)
    if penalty <= 0:
        return TrendFitKnotsAndGap(y.copy(), np.arange(1, n - 1), 0.0)
    step = np.diff(x)
    variance = 1 / w
    n_changes = n - 2
    u = np.zeros(n_changes)
    change = np.diff(np.diff(y) / step)
    start = np.abs(change).mean()
    if start == 0:
        return TrendFitKnotsAndGap(line, np.empty(0, dtype=int), 0.0)
    # The two rows are the distances of u to its upper and its lower bound. In the end
    # change = slack[0] - slack[1].
    room = np.full((2, n_changes), penalty)
    slack = np.full((2, n_changes), start)
    values = y
    gap = np.inf
    for _ in range(max_iter):
        mu = np.vdot(room, slack) / (2 * n_changes)
        # Eliminating the slacks from Newton's system leaves a quadratic price q on each
        # change of slope.
        ratio = slack / room
        q = ratio[0] + ratio[1]
        # The present fit takes the place of y, so the solution is a step from u. The
        # first direction aims at products of 0.
        _, du, _ = fit_trend_and_get_multipliers_and_changes(
            step,
            values,
            variance,
            np.zeros(n_changes),
            q,
        )
        toward = du * _BOUND_SIGNS
        slack_change = ratio * toward - slack
        length = _find_step_length(room, slack, toward, slack_change)
        ahead = np.vdot(room - length * toward, slack + length * slack_change)
        ahead_mu = ahead / (2 * n_changes)
        center = max((ahead_mu / mu) ** 3, 1e-12) * mu
        # Mehrotra's corrector: the second-order term of the predictor, and the centre.
        aim = (center + toward * slack_change) / room
        smoothed, du, ahead_change = fit_trend_and_get_multipliers_and_changes(
            step,
            values,
            variance,
            aim[0] - aim[1],
            q,
        )
        toward = du * _BOUND_SIGNS
        slack_change = aim - slack + ratio * toward
        length = min(1.0, 0.99 * _find_step_length(room, slack, toward, slack_change))
        u = u + length * du
        room = penalty - u * _BOUND_SIGNS
        slack = slack + length * slack_change
        change = change + length * (ahead_change - change)
        values = smoothed if length == 1.0 else values + length * (smoothed - values)
        price = penalty * np.abs(change).sum()
        # The gap is primal minus dual loss, because W (b - y) + D'u = 0.
        gap = float(price - u @ change)
        if gap <= tol * price or length < 1e-8:
            break
    # At the optimum either the multiplier or the change of slope is at its bound; the
    # larger of both, relative to its start, decides which points are knots.
    bends = (slack / start - room / penalty).max(axis=0) > 0
    return TrendFitKnotsAndGap(values, np.flatnonzero(bends) + 1, max(gap, 0.0))


def _fit_line(x, y, w):
    """Return the least-squares line at the points."""
    total = w.sum()
    level = w @ y / total
    center = w @ x / total
    centred = x - center
    slope = ((w * centred) @ y) / max((w * centred) @ centred, 1e-300)
    return level + slope * centred


def _find_step_length(room, slack, toward, slack_change):
    """Return the largest step up to 1, before the margin, that keeps all positive."""
    worst = max((toward / room).max(), -(slack_change / slack).min())
    return 1.0 if worst <= 1.0 else 1 / worst


def fit_trend_and_get_multipliers_and_changes(step, y, variance, m, q):
    """Return the fit b, the multipliers u = (change - m) / q and the changes of slope."""
    n = len(y)
    values = np.empty(n)
    u = np.empty(n - 2)
    change = np.empty(n - 2)
    _fill_smoothed_values_u_and_change(
        step, y, variance, m, q, *np.empty((7, n)), values, u, change
    )
    return values, u, change


@compile_kernel
def _fill_smoothed_values_u_and_change(
    step,
    y,
    variance,
    m,
    q,
    level,
    slope_of,
    slope_variance,
    b,
    c,
    surprise,
    prior,
    values,
    u,
    change,
):
    """Run the Kalman filter forwards and the smoother backwards.

    The state at each point is its level b and slope c; a change of slope has mean `m`
    and variance `q`. level: filtered variance of b; slope_of: d slope / d b;
    slope_variance: variance of slope given b. The arguments from `level` to `prior` are
    arrays to work in, the last three are the results.
    """
    n = len(y)
    # The first two points determine level and slope exactly; the filter starts with the
    # third.
    level[1] = variance[1]
    slope_of[1] = 1 / step[0]
    slope_variance[1] = variance[0] / step[0] ** 2
    b[1] = y[1]
    c[1] = (y[1] - y[0]) / step[0]
    for i in range(1, n - 1):
        following = i + 1
        h = step[i]
        p = level[i]
        g = slope_of[i]
        d = slope_variance[i] + q[i - 1]
        slope = c[i] + m[i - 1]
        guess = b[i] + h * slope
        lever = 1 + h * g
        ahead = p * lever * lever + h * h * d
        covariance = p * g * lever + h * d
        slope_of[following] = covariance / ahead
        # The variance of the slope given the level: a product of positive numbers,
        # if the usual update would subtract.
        slope_variance[following] = p * d / ahead
        noise = variance[following]
        total = ahead + noise
        level[following] = ahead * noise / total
        error = y[following] - guess
        surprise[following] = error
        prior[following] = ahead
        b[following] = guess + ahead / total * error
        c[following] = slope + covariance / total * error
    values[n - 1] = b[n - 1]
    # The adjoint variables of the state that follows.
    pull_b = 0.0
    pull_c = 0.0
    for i in range(n - 2, 0, -1):
        # The variance of the measurement at i + 1.
        following = i + 1
        noise = variance[following]
        total = prior[following] + noise
        # The gain of b; that of c is this one times slope_of.
        gain = prior[following] / total
        pull_b = (noise * pull_b - surprise[following]) / total
        pull_b -= gain * slope_of[following] * pull_c
        pull_c = step[i] * pull_b + pull_c
        u[i - 1] = -pull_c
        change[i - 1] = m[i - 1] - q[i - 1] * pull_c
        values[i] = b[i] - level[i] * (pull_b + slope_of[i] * pull_c)
    covariance = level[1] * slope_of[1]
    slope = (
        c[1]
        - covariance * pull_b
        - (covariance * slope_of[1] + slope_variance[1]) * pull_c
    )
    values[0] = values[1] - step[0] * slope
