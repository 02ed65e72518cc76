"""Softmax regression near the identity: Newton's method, factorised or by conjugate gradients.

Arrays are class-major, (k, n), so that reductions over classes run along memory. The model is
    logits u = z + A z + b,   loss = sum_i w_i (log sum_c exp(u_ci) - u_{y_i}) with sum w = 1
    objective = loss + sum ridge_a A^2 + sum ridge_b b^2
with A diagonal or full. The objective is convex.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve


class SoftmaxFit(NamedTuple):
    A: np.ndarray  # (k,) or (k, k)
    b: np.ndarray  # (k,)
    objective: float
    gradient_norm: float  # largest entry
    decrement: float  # half of it bounds the gap to the optimum, to second order
    n_iter: int


def fit_softmax_regression(z, codes, weight, ridge_a, ridge_b, tol=1e-12, max_iter=200):
    """Minimise the objective; the shape of `ridge_a`, (k,) or (k, k), says whether A is diagonal.

    Newton steps with Armijo's rule. A diagonal: the 2k x 2k Hessian comes from three products and
    is factorised. A full: truncated conjugate gradients with exact Hessian products, and a
    Kronecker preconditioner. Stops when the Newton decrement, or the
    bound on it from the convexity of the penalties, is below `tol`.
    """
    z, w = np.ascontiguousarray(z), weight / weight.sum()
    A, b = np.zeros_like(ridge_a), np.zeros(len(z))
    convexity = 2 * min(ridge_a.min(), ridge_b)  # of the penalties: gap <= |g|^2 / (2 convexity)
    enough = 0.5 * np.sqrt(convexity * tol)  # a gradient of this size ends the iteration
    direction = _full_direction(z, w, enough) if A.ndim == 2 else _diagonal_direction
    objective, proba = evaluate_softmax(z, codes, w, A, b, ridge_a, ridge_b)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        residual = proba * w
        residual[codes, np.arange(len(w))] -= w
        grad_a = (residual @ z.T if A.ndim == 2 else (residual * z).sum(axis=1)) + 2 * ridge_a * A
        grad_b = residual.sum(axis=1) + 2 * ridge_b * b
        decrement = ((grad_a**2).sum() + grad_b @ grad_b) / convexity if convexity > 0 else np.inf
        if decrement <= tol:
            break
        step_a, step_b = direction(z, w, proba, grad_a, grad_b, ridge_a, ridge_b)
        slope = float((grad_a * step_a).sum() + grad_b @ step_b)
        decrement = min(decrement, -slope)
        if decrement <= tol:
            break
        length = 1.0
        while length > 1e-10:
            trial = A + length * step_a, b + length * step_b
            value, trial_proba = evaluate_softmax(z, codes, w, *trial, ridge_a, ridge_b)
            if value <= objective + 1e-4 * length * slope:
                break
            length *= 0.5
        else:
            break  # no progress is possible in floating point
        (A, b), objective, proba = trial, value, trial_proba
    norm = float(max(np.abs(grad_a).max(), np.abs(grad_b).max()))
    return SoftmaxFit(A, b, float(objective), norm, float(decrement), n_iter)


def evaluate_softmax(z, codes, w, A, b, ridge_a, ridge_b):
    """Objective and probabilities, from one exponential per entry."""
    logits = z + (A @ z if A.ndim == 2 else A[:, None] * z) + b[:, None]
    logits -= logits.max(axis=0)
    true = logits[codes, np.arange(len(w))]
    proba = np.exp(logits, out=logits)
    total = proba.sum(axis=0)
    proba /= total
    loss = w @ (np.log(total) - true)
    return loss + (ridge_a * A**2).sum() + (ridge_b * b**2).sum(), proba


def _diagonal_direction(z, w, proba, grad_a, grad_b, ridge_a, ridge_b):
    """The Newton step of the 2k coefficients."""
    k, solve = len(z), diagonal_solver(z, w, proba, ridge_a, ridge_b)
    step = solve(-np.r_[grad_a, grad_b])
    return step[:k], step[k:]


def diagonal_solver(z, w, proba, ridge_a, ridge_b):
    """A function that solves systems of the Hessian of the 2k coefficients."""
    k = len(z)
    weighted, moved = proba * w, proba * z
    hessian = np.empty((2 * k, 2 * k))
    hessian[:k, :k] = -(moved * w) @ moved.T
    hessian[:k, k:] = -(moved * w) @ proba.T
    hessian[k:, :k] = hessian[:k, k:].T
    hessian[k:, k:] = -weighted @ proba.T
    i = np.arange(k)
    hessian[i, i] += (weighted * z * z).sum(axis=1) + 2 * ridge_a
    hessian[i, i + k] += (weighted * z).sum(axis=1)
    hessian[i + k, i] += (weighted * z).sum(axis=1)
    hessian[i + k, i + k] += weighted.sum(axis=1) + 2 * ridge_b
    hessian[k:, k:] += 1.0 / k  # the sum of the intercepts does not matter: keep it
    scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    scaled = hessian / np.outer(scale, scale)
    try:
        factor = cho_factor(scaled + 1e-13 * np.eye(len(scaled)))
    except np.linalg.LinAlgError:
        return lambda right: np.linalg.lstsq(scaled, right / scale, rcond=1e-12)[0] / scale
    return lambda right: cho_solve(factor, right / scale) / scale


def _full_direction(z, w, enough):
    """A function that finds truncated Newton steps of the k x (k + 1) coefficients.

    Preconditioner: diag(mean p_c (1 - p_c)) (x) X' W X + mean ridge, with X = (z, 1), through one
    eigendecomposition. Forcing term min(1/4, sqrt |g|), or a residual that is `enough`.
    """
    x = np.vstack([z, np.ones(z.shape[1])])
    values, vectors = np.linalg.eigh((x * w) @ x.T)
    values = np.maximum(values, 1e-12 * values[-1])

    def direction(z, w, proba, grad_a, grad_b, ridge_a, ridge_b):
        ridge = 2 * np.column_stack([ridge_a, np.broadcast_to(ridge_b, grad_b.shape)])
        gradient = np.column_stack([grad_a, grad_b])
        spread = (proba * (1 - proba)) @ w
        scale = spread[:, None] * values + ridge.mean(axis=1)[:, None] + 1e-12

        def precondition(r):
            return ((r @ vectors) / scale) @ vectors.T

        def hessian(d):
            u = d[:, :-1] @ z + d[:, -1:]
            u -= (proba * u).sum(axis=0)
            u *= proba
            u *= w
            return np.column_stack([u @ z.T, u.sum(axis=1)]) + ridge * d

        size = np.sqrt((gradient**2).sum())
        target = max(size * min(0.25, np.sqrt(np.abs(gradient).max())), enough)
        step, r = np.zeros_like(gradient), -gradient
        y = precondition(r)
        d, rho = y.copy(), (r * y).sum()
        for _ in range(4 * gradient.size):
            product = hessian(d)
            curvature = (d * product).sum()
            if curvature <= 0:
                break
            alpha = rho / curvature
            step += alpha * d
            r -= alpha * product
            y = precondition(r)
            rho, previous = (r * y).sum(), rho
            if np.sqrt((r**2).sum()) <= target:
                break
            d = y + rho / previous * d
        if not step.any():
            step = precondition(-gradient)
        return step[:, :-1], step[:, -1]

    return direction
