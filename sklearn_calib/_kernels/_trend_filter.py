"""Linear trend filtering on irregular points: continuous piecewise linear fits with few knots.

    minimise  sum_i w_i (y_i - b_i)^2 / 2 + penalty * sum_j |change of slope at j|

Its dual is a quadratic program over the multipliers u of the changes of slope, |u| <= penalty. A
primal-dual interior-point method (Mehrotra) solves it; every Newton system is a least-squares
problem with quadratic prices on the changes of slope,

    minimise  sum_i w_i (y_i - b_i)^2 / 2 + sum_j (change_j - m_j)^2 / (2 q_j),

that is, the smoothing of a random walk of the slope. It is solved by a Kalman filter that carries
the variance of the level, the slope's coefficient on the level and the slope's variance given the
level: no step subtracts, so a million nearly equal points cost no digits, where the banded normal
equations have a condition of n^4. The backward pass gives the multipliers themselves. O(n) an
iteration, 10 to 25 of them.
"""

from typing import NamedTuple

import numpy as np

from ._compile import kernel


class TrendFit(NamedTuple):
    values: np.ndarray  # the fit at every point
    knots: np.ndarray  # positions of the points where the slope changes by more than rounding
    gap: float  # by no more than this the objective is above the optimum


def largest_penalty(x, y, w):
    """From here on the fit is the least-squares line."""
    line = _line(x, y, w)
    flow = np.cumsum(w * (line - y))[:-1] * np.diff(x)
    return float(np.abs(np.cumsum(flow)[:-1]).max(initial=0.0))


def trend_filter(x, y, w, penalty, tol=1e-10, max_iter=100):
    """The fit for one penalty; x increasing."""
    line = _line(x, y, w)
    n = len(x)
    if n < 3 or penalty >= largest_penalty(x, y, w):
        return TrendFit(line, np.empty(0, dtype=int), 0.0)
    if penalty <= 0:
        return TrendFit(y.copy(), np.arange(1, n - 1), 0.0)
    step = np.diff(x)
    variance = 1 / w
    u = np.zeros(n - 2)
    change = np.diff(np.diff(y) / step)
    above, below = np.full(n - 2, penalty), np.full(n - 2, penalty)  # penalty -+ u
    start = np.abs(change).mean()
    if start == 0:
        return TrendFit(line, np.empty(0, dtype=int), 0.0)
    up, down = np.full(n - 2, start), np.full(n - 2, start)  # change = up - down in the end
    values, gap = y, np.inf
    for _ in range(max_iter):
        mu = (above @ up + below @ down) / (2 * (n - 2))
        q = up / above + down / below
        # the present fit stands for y: the solution is a step from u; first towards all products 0
        _, du, _ = smooth(step, values, variance, np.zeros(n - 2), q)
        d_up, d_down = up * (du / above - 1), -down * (du / below + 1)
        length = _length(above, below, up, down, du, d_up, d_down)
        ahead = (above - length * du) @ (up + length * d_up)
        ahead += (below + length * du) @ (down + length * d_down)
        center = max((ahead / (2 * (n - 2)) / mu) ** 3, 1e-12) * mu
        up_aim, down_aim = (center + du * d_up) / above, (center - du * d_down) / below
        found, du, ahead_change = smooth(step, values, variance, up_aim - down_aim, q)
        d_up = up_aim - up + up / above * du
        d_down = down_aim - down - down / below * du
        length = min(1.0, 0.99 * _length(above, below, up, down, du, d_up, d_down))
        u = u + length * du
        above, below = penalty - u, penalty + u
        up, down = up + length * d_up, down + length * d_down
        change = change + length * (ahead_change - change)
        values = found if length == 1.0 else values + length * (found - values)
        price = penalty * np.abs(change).sum()
        gap = float(price - u @ change)  # primal minus dual loss, as W (b - y) + D'u = 0
        if gap <= tol * price or length < 1e-8:
            break
    bends = np.maximum(up / start - above / penalty, down / start - below / penalty) > 0
    return TrendFit(values, np.flatnonzero(bends) + 1, max(gap, 0.0))


def _line(x, y, w):
    """The least-squares line at the points."""
    total = w.sum()
    level, center = w @ y / total, w @ x / total
    moved = x - center
    slope = ((w * moved) @ y) / max((w * moved) @ moved, 1e-300)
    return level + slope * moved


def _length(above, below, up, down, du, d_up, d_down):
    """The largest step up to 1 (before the margin) that keeps everything positive."""
    worst = max((du / above).max(), (-du / below).max(), (-d_up / up).max(), (-d_down / down).max())
    return 1.0 if worst <= 1.0 else 1 / worst


def smooth(step, y, variance, m, q):
    """The fit b, the multipliers u = (change - m) / q and the changes of slope."""
    n = len(y)
    values, u, change = np.empty(n), np.empty(n - 2), np.empty(n - 2)
    _filter_and_smooth(step, y, variance, m, q, *np.empty((7, n)), values, u, change)
    return values, u, change


@kernel
def _filter_and_smooth(
    step, y, variance, m, q, level, slope_of, given, b, c, surprise, prior, values, u, change
):
    """level: filtered variance of b; slope_of: d slope / d b; given: variance of slope given b."""
    n = len(y)
    level[1], slope_of[1], given[1] = variance[1], 1 / step[0], variance[0] / step[0] ** 2
    b[1], c[1] = y[1], (y[1] - y[0]) / step[0]
    for i in range(1, n - 1):
        h = step[i]
        p, g, d = level[i], slope_of[i], given[i] + q[i - 1]
        slope = c[i] + m[i - 1]
        guess = b[i] + h * slope
        lever = 1 + h * g
        ahead = p * lever * lever + h * h * d
        covariance = p * g * lever + h * d
        slope_of[i + 1] = covariance / ahead
        given[i + 1] = p * d / ahead
        total = ahead + variance[i + 1]
        level[i + 1] = ahead * variance[i + 1] / total
        surprise[i + 1], prior[i + 1] = y[i + 1] - guess, ahead
        b[i + 1] = guess + ahead / total * surprise[i + 1]
        c[i + 1] = slope + covariance / total * surprise[i + 1]
    values[n - 1] = b[n - 1]
    pull_b, pull_c = 0.0, 0.0  # the adjoint of the state behind
    for i in range(n - 2, 0, -1):
        total = prior[i + 1] + variance[i + 1]  # of the measurement at i + 1
        gain = prior[i + 1] / total  # of b; that of c is slope_of times it
        pull_b = (variance[i + 1] * pull_b - surprise[i + 1]) / total
        pull_b -= gain * slope_of[i + 1] * pull_c
        pull_c = step[i] * pull_b + pull_c
        u[i - 1] = -pull_c
        change[i - 1] = m[i - 1] - q[i - 1] * pull_c
        values[i] = b[i] - level[i] * (pull_b + slope_of[i] * pull_c)
    covariance = level[1] * slope_of[1]
    slope = c[1] - covariance * pull_b - (covariance * slope_of[1] + given[1]) * pull_c
    values[0] = values[1] - step[0] * slope
