"""Structured vector scaling of two classes: three coefficients, those of the scores at least 0."""

import numpy as np

from ._logistic import logistic_terms
from ._softmax_regression import SoftmaxFit


def fit_structured_pair(log, codes, weight, ridge, tol=1e-12, max_iter=100):
    """Minimise the mean log loss + ridge (|c - 1|^2 + |b|^2) of softmax(c log + b), c >= 0, b sums
    to 0.

    `log`, (2, n), are logarithms of both probabilities. The log-odds are c_1 log_1 - c_0 log_0 + e
    with b = (-e, e) / 2. Newton's method with Armijo's rule; a coefficient that ends below 0 is
    fixed at 0 and the rest fitted again. Returns a `SoftmaxFit` with A = c - 1.
    """
    columns, w = np.stack([-log[0], log[1], np.ones(log.shape[1])]), weight / weight.sum()
    hit = codes.astype(float)
    theta, n_iter = np.array([1.0, 1.0, 0.0]), 0
    target, penalty = theta.copy(), ridge * np.array([2.0, 2.0, 1.0])
    free = np.ones(3, dtype=bool)

    def at(theta):
        loss, residual, curvature = logistic_terms(theta @ columns, hit, w)
        away = theta - target
        return loss + penalty @ (away * away) / 2, residual, curvature

    value, residual, curvature = at(theta)
    while n_iter < max_iter:
        n_iter += 1
        gradient = (columns @ residual + penalty * (theta - target))[free]
        part = columns[free]
        hessian = (part * curvature) @ part.T + np.diag(penalty[free])
        step = np.zeros(3)
        step[free] = -np.linalg.solve(hessian, gradient)
        decrement = float(-gradient @ step[free])
        length, last = 1.0, decrement <= tol
        while length > 1e-10:
            moved = at(theta + length * step)
            if last or moved[0] <= value - 1e-4 * length * decrement:
                break
            length /= 2
        else:
            break  # no progress is possible in floating point
        theta, (value, residual, curvature) = theta + length * step, moved
        if last:
            if not (theta[:2] < 0).any():
                break
            lowest = int(theta[:2].argmin())
            free[lowest], theta[lowest] = False, 0.0
            value, residual, curvature = at(theta)
    half = theta[2] / 2
    size = float(np.abs(gradient).max())
    return SoftmaxFit(theta[:2] - 1, np.array([-half, half]), float(value), size, decrement, n_iter)
