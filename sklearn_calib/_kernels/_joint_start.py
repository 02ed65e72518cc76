"""The two steps of the default method: temperature with offsets, and a factor for each of two."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ._logistic import fit_logistic, invented_log_odds, logistic_terms
from ._softmax_regression import SoftmaxFit

_TOLERANCE = 1e-10  # of half the decrement, in nats; the last step squares what is left
_FLAT = 1e-300
_MANY_ROWS, _STEP = 40_000, 8


class JointFit(NamedTuple):
    inverse_temperature: float
    offsets: np.ndarray  # shape (k,), mean 0
    n_iter: int


def fit_temperature_and_offsets(log, codes, weight, prior_rows, start=0.0):
    """Minimise the mean log loss, invented rows included, of softmax(a log + b).

    `log`, (n, k), are logarithms of probabilities, `start` an a to begin with, best the optimum
    with b = 0, where the Hessian is not flat.
    """
    z = np.ascontiguousarray(log.T)
    z = z - z.max(axis=0)
    w, total = weight / weight.sum(), float(weight.sum())
    given, prior = total / (total + prior_rows), prior_rows / (total + prior_rows)
    model = np.exp(log.T) * w
    # sum w T z and sum w T of each class, for the targets T
    score_sum = given * float(w @ z[codes, np.arange(len(w))]) + prior * float((model * z).sum())
    class_sums = given * np.bincount(codes, weights=w, minlength=len(z)) + prior * model.sum(axis=1)
    a, b = float(start), np.zeros(len(z))
    value, proba = _evaluate(z, w, a, b, score_sum, class_sums)
    for n_iter in range(1, 101):
        gradient, hessian = _derivatives(z, w, proba, a, score_sum, class_sums)
        step = -_solve(hessian, gradient)
        decrement = float(-gradient @ step)
        length = 1.0
        while decrement > _TOLERANCE:
            moved = a + length * step[0], b + length * step[1:]
            new, proba_there = _evaluate(z, w, *moved, score_sum, class_sums)
            if new <= value - 1e-4 * length * decrement:
                break
            length /= 2
            if length < 1e-10:  # no progress is possible in floating point
                return JointFit(a, b - b.mean(), n_iter)
        else:
            a, b = a + step[0], b + step[1:]
            break
        (a, b), value, proba = moved, new, proba_there
    return JointFit(float(a), b - b.mean(), n_iter)


def fit_slope_and_intercept(score, codes, weight, prior_rows, intercept=True):
    """The same for two classes, from their log-odds; or a alone.

    A logistic regression; of many rows some give the start.
    """
    invented = invented_log_odds(score, weight)
    centre = np.clip(0.0, score.min(), score.max()) if intercept else 0.0
    score = np.append(score, invented)
    columns = [score - centre, np.ones_like(score)]
    features = np.column_stack(columns if intercept else columns[:1])
    target = np.append(codes.astype(float), expit(invented))
    weight = np.append(weight, np.full(2, prior_rows / 2))
    start = None
    if len(score) >= _MANY_ROWS:
        start = fit_logistic(features[::_STEP], target[::_STEP], weight[::_STEP], tol=1e-4).coef
    fit = fit_logistic(features, target, weight, start=start)
    slope = float(fit.coef[0])
    half = float(fit.coef[1] - slope * centre) / 2 if intercept else 0.0
    return JointFit(slope, np.array([-half, half]), 0)


def _evaluate(z, w, a, b, score_sum, class_sums):
    """The loss and the probabilities, from one exponential per entry."""
    logits = a * z
    logits += b[:, None]
    top = logits.max(axis=0)
    proba = np.exp(np.subtract(logits, top, out=logits), out=logits)
    total = proba.sum(axis=0)
    proba /= total
    return float(w @ (np.log(total) + top)) - a * score_sum - float(b @ class_sums), proba


def _derivatives(z, w, proba, a, score_sum, class_sums):
    """Gradient and Hessian in a and b.

    Where a class has hardly been predicted its curvature says nothing of how far to go: half the
    size of the gradient is added, which bounds a step by 2 and vanishes at the optimum.
    """
    k, weighted = len(z), proba * w
    mean = np.einsum("ij,ij->j", proba, z)
    mass = weighted.sum(axis=1)
    gradient = np.append(w @ mean - score_sum, mass - class_sums)
    hessian = np.empty((k + 1, k + 1))
    hessian[1:, 1:] = np.diag(mass) - weighted @ proba.T + mass.mean() / k
    away = z - mean
    hessian[0, 1:] = hessian[1:, 0] = np.einsum("ij,ij->i", weighted, away)
    hessian[0, 0] = np.einsum("ij,ij,ij->", weighted, away, away)
    bound = np.abs(gradient) / 2
    bound[0] /= max(abs(a), 1e-3)
    hessian.flat[:: k + 2] += bound + _FLAT
    return gradient, hessian


def _solve(hessian, gradient):
    scale = np.sqrt(hessian.diagonal())
    scaled = hessian / scale / scale[:, None]
    scaled.flat[:: len(scale) + 1] += 1e-12
    return np.linalg.solve(scaled, gradient / scale) / scale


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
