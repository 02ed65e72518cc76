"""Temperature scaling: a safeguarded Halley iteration on the convex objective in beta = 1/T.

With d_ic = z_ic - max_c z_ic <= 0 and S_j = sum_c exp(beta d_ic) d_ic^j the objective and its
derivatives are
    L(beta) = sum_i w_i (log S_0 - beta d_{i,y})      L'   = sum w (E_1 - d_y)
    L''     = sum w (E_2 - E_1^2)                     L''' = sum w (E_3 - 3 E_1 E_2 + 2 E_1^3)
with E_j = S_j / S_0. L is convex in beta, and not in the temperature.
"""

from typing import NamedTuple

import numpy as np

BETA_MIN, BETA_MAX = np.exp(-16.0), np.exp(16.0)  # the box of Berta et al. (2025), for unit logits
_BLOCK = 1 << 15  # entries of a block that stay in the cache


class TemperatureFit(NamedTuple):
    beta: float
    loss: float  # mean log loss at beta, in nats
    status: str  # "inside", "uninformative" (beta at its minimum) or "separable" (at its maximum)
    n_passes: int


def fit_temperature(log_proba, codes, weight, label_smoothing=0.0, tol=1e-3, max_iter=100):
    """The beta >= 0 that minimises the weighted log loss of softmax(beta * log_proba).

    Two sums of the first pass decide exactly which case it is:
      M = sum w (mean_c d - d_y) = L'(0) >= 0 : the scores carry no information, beta = minimum
      D = -sum w d_y = L'(inf) <= 0           : every label is an arg max, beta = maximum
      else one finite optimum, with beta <= W log k / D since L(beta) >= beta D and L(0) = W log k.
    Halley steps, Newton where Halley's denominator is not positive, bisection in log beta where a
    step leaves the bracket. Stops when the predicted change of log beta is below tol, applies
    that step (the error is then of order tol^3), and takes the loss from the Taylor polynomial.

    `label_smoothing` eps replaces a label by (1 - eps) one-hot + eps / k. Only d_y changes, and the
    optimum is finite also where every label is an arg max.
    """
    d = log_proba - log_proba.max(axis=1, keepdims=True)
    scale = max(-d.min(), np.finfo(float).tiny)
    d /= scale  # now in [-1, 0]: no power of it overflows, and beta is in units of 1 / scale
    d_true, d_mean = d[np.arange(len(d)), codes], d.mean(axis=1)
    d_true = d_true + label_smoothing * (d_mean - d_true)
    total, n_classes = weight.sum(), d.shape[1]
    lowest, highest = BETA_MIN / max(1.0, scale), BETA_MAX / min(1.0, scale)
    at_zero = weight @ (d_mean - d_true)
    at_infinity = -(weight @ d_true)
    if at_zero >= 0:
        loss = _derivatives(d, d_true, weight, lowest * scale)[0] / total
        return TemperatureFit(float(lowest), float(loss), "uninformative", 2)
    if at_infinity <= 0:
        loss = _derivatives(d, d_true, weight, highest * scale)[0] / total
        return TemperatureFit(float(highest), float(max(loss, 0.0)), "separable", 2)

    low = lowest * scale
    high = min(highest * scale, total * np.log(n_classes) / at_infinity)
    beta = min(scale, np.sqrt(low * high)) if scale >= high else max(scale, low)
    n_passes, converged = 0, False
    while not converged and n_passes < max_iter:
        n_passes += 1
        loss, first, second, third = _derivatives(d, d_true, weight, beta)
        if first > 0:
            high = beta
        else:
            low = beta
        new = beta + _halley_step(first, second, third)
        if not low < new < high:
            new = np.sqrt(low * high)
        step, converged = new - beta, abs(np.log(new / beta)) < tol
        beta = new
    loss += step * (first + step * (second / 2 + step * third / 6))
    return TemperatureFit(float(beta / scale), float(loss / total), "inside", n_passes)


def _halley_step(first, second, third):
    if second <= 0:
        return np.inf  # flat to rounding: let the caller bisect
    denominator = 2 * second * second - first * third
    if denominator <= 0:
        return -first / second
    return -2 * first * second / denominator


def _derivatives(d, d_true, weight, beta):
    """L and its three derivatives at beta, in blocks of rows that fit the cache."""
    rows = max(1, _BLOCK // d.shape[1])
    sums = np.zeros(4)
    for start in range(0, len(d), rows):
        block = slice(start, start + rows)
        x, y, w = d[block], d_true[block], weight[block]
        power = np.exp(beta * x)
        s0 = power.sum(axis=1)
        moments = []
        for _ in range(3):
            power *= x
            moments.append(power.sum(axis=1) / s0)
        e1, e2, e3 = moments
        sums += (
            w @ (np.log(s0) - beta * y),
            w @ (e1 - y),
            w @ (e2 - e1 * e1),
            w @ (e3 - 3 * e1 * e2 + 2 * e1**3),
        )
    return sums
