"""Softmax regression near the identity: Newton's method, factorised or by conjugate gradients.

Arrays are class-major, (k, n), so that reductions over classes run along memory. The model is
    logits u = z + A z + b,   loss = sum_i w_i (log sum_c exp(u_ci) - u_{y_i}) with sum w = 1
    objective = loss + sum ridge_a A^2 + sum ridge_b b^2
with A diagonal or full. The objective is convex.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

_BLOCK = 1024  # columns of a Hessian product
_EXACT = 100_000  # entries of a table up to which nothing is saved
_ROWS_PER_CLASS, _HESSIAN_ENTRIES = 25, 200_000  # of the Hessian of a large table, diagonal A
_TO_ROUNDING = 10_000  # entries up to which a full A is fitted to rounding
_MOST_BLOCKS = 200  # classes up to which each has a block of the preconditioner
_BLOCK_ROWS, _BLOCK_WORK = 300, 1_000_000  # rows that its curvature is taken from; more if cheap


class SoftmaxFit(NamedTuple):
    A: np.ndarray  # (k,) or (k, k)
    b: np.ndarray  # (k,)
    objective: float
    gradient_norm: float  # largest entry
    decrement: float  # half of it bounds the gap to the optimum, to second order
    n_iter: int


def fit_softmax_regression(z, codes, weight, ridge_a, ridge_b, tol=None, max_iter=200, start=None):
    """Minimise the objective; the shape of `ridge_a`, (k,) or (k, k), says whether A is diagonal.

    Newton steps with Armijo's rule. A diagonal: the 2k x 2k Hessian comes from three products and
    is factorised. A full: truncated conjugate gradients with exact Hessian products, and a
    Kronecker preconditioner. Stops when the Newton decrement, or the bound on it from the convexity
    of the penalties, is below `tol`: 1e-12 by default, and with a full A of a small table at
    rounding, so that the end does not depend on the order of the rows. `start` is a fit to begin
    with.
    """
    last = tol or (1e-22 if ridge_a.ndim == 2 and z.size <= _TO_ROUNDING else 1e-12)
    near, before = max(last, 1e-12), np.inf  # where whole steps need no look at the objective
    z, w = np.ascontiguousarray(z), weight / weight.sum()
    A, b = (np.zeros_like(ridge_a), np.zeros(len(z))) if start is None else start[:2]
    convexity = 2 * min(ridge_a.min(), ridge_b)  # of the penalties: gap <= |g|^2 / (2 convexity)
    enough = 0.5 * np.sqrt(convexity * last)  # a gradient of this size ends the iteration
    direction = _full_direction(z, w, enough) if A.ndim == 2 else _diagonal_direction(z, w)
    objective, proba = evaluate_softmax(z, codes, w, A, b, ridge_a, ridge_b)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        residual = proba * w
        residual[codes, np.arange(len(w))] -= w
        grad_a = (residual @ z.T if A.ndim == 2 else (residual * z).sum(axis=1)) + 2 * ridge_a * A
        grad_b = residual.sum(axis=1) + 2 * ridge_b * b
        decrement = ((grad_a**2).sum() + grad_b @ grad_b) / convexity if convexity > 0 else np.inf
        if decrement <= last:
            break
        step_a, step_b = direction(z, w, proba, grad_a, grad_b, ridge_a, ridge_b)
        slope = float((grad_a * step_a).sum() + grad_b @ step_b)
        decrement = min(decrement, -slope)
        if near >= decrement > before / 4:
            break  # it does not become smaller
        before = decrement
        if decrement <= last:  # the step is there: it costs nothing to take it
            A, b, objective = A + step_a, b + step_b, objective + slope / 2
            break
        length = 1.0
        while length > 1e-10:
            trial = A + length * step_a, b + length * step_b
            value, trial_proba = evaluate_softmax(z, codes, w, *trial, ridge_a, ridge_b)
            if decrement <= near or value <= objective + 1e-4 * length * slope:
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


def _diagonal_direction(z, w):
    """A function that finds Newton steps of the 2k coefficients.

    Of a large table with the Hessian of some rows, as long as its steps shorten the next ones.
    """
    k, n = z.shape
    every, before = 1, np.inf
    if z.size > _EXACT:
        every = max(1, n // max(_ROWS_PER_CLASS * k, _HESSIAN_ENTRIES // k))

    def direction(z, w, proba, grad_a, grad_b, ridge_a, ridge_b):
        nonlocal every, before
        some = slice(None, None, every)
        parts = z[:, some], w[some] / w[some].sum(), proba[:, some]
        step = diagonal_solver(*parts, ridge_a, ridge_b)(-np.r_[grad_a, grad_b])
        decrement = -(step[:k] @ grad_a + step[k:] @ grad_b)
        if decrement > before / 4:
            every = 1
        before = decrement
        return step[:k], step[k:]

    return direction


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


def _kronecker(x, w, proba, ridge):
    """An approximate inverse of the Hessian: diag(mean p_c (1 - p_c)) (x) X' W X + mean ridge."""
    values, vectors = np.linalg.eigh((x * w) @ x.T)
    spread = (proba * (1 - proba)) @ w
    scale = spread[:, None] * np.maximum(values, 1e-12 * values[-1])
    scale += ridge.mean(axis=1)[:, None] + 1e-12
    return lambda r: ((r @ vectors) / scale) @ vectors.T


def _by_class(x, w, proba, ridge):
    """An approximate inverse of the Hessian: its block of each class, of many rows from some.

    Of a small table from all and in float64: equal rows then act as one row of their weight.
    """
    small = x.size <= _EXACT
    kind = np.float64 if small else np.float32
    enough = max(_BLOCK_ROWS, _BLOCK_WORK // len(proba) ** 2)
    some = slice(None, None, 1 if small else max(1, len(w) // enough))
    x, w, proba = x[:, some].T, w[some] / w[some].sum(), proba[:, some]
    inverse = np.empty((len(proba), x.shape[1], x.shape[1]), dtype=kind)
    for c, p in enumerate(proba):
        curvature = w * p * (1 - p)
        rows = slice(None) if small else np.flatnonzero(curvature > 1e-3 * curvature.max())
        part = x[rows]
        block = (part * curvature[rows, None]).T @ part
        block[np.diag_indices(len(block))] += ridge[c] + 1e-12 + 1e-6 * block.diagonal().max()
        inverse[c] = np.linalg.inv(block.astype(kind))
    return lambda r: (inverse @ r.astype(kind)[:, :, None])[:, :, 0].astype(np.float64)


def _full_direction(z, w, enough):
    """A function that finds truncated Newton steps of the k x (k + 1) coefficients.

    Conjugate gradients with Hessian products (of large tables in float32, which only turns the
    direction) and a preconditioner from the first iteration. Forcing term min(1/4, sqrt |g|), or a
    residual that is `enough`.
    """
    x, precondition = np.vstack([z, np.ones(z.shape[1])]), None
    kind = np.float64 if x.size <= _EXACT else np.float32
    short, short_w = x.astype(kind, copy=False), w.astype(kind, copy=False)
    blocks = [slice(start, start + _BLOCK) for start in range(0, x.shape[1], _BLOCK)]

    def direction(z, w, proba, grad_a, grad_b, ridge_a, ridge_b):
        nonlocal precondition
        ridge = 2 * np.column_stack([ridge_a, np.broadcast_to(ridge_b, grad_b.shape)])
        gradient = np.column_stack([grad_a, grad_b])
        if precondition is None:
            inverse = _by_class if len(z) <= _MOST_BLOCKS else _kronecker
            precondition = inverse(x, w, proba, ridge)
        half = proba.astype(kind, copy=False)

        def hessian(d):
            out = ridge * d
            d = d.astype(kind, copy=False)
            for block in blocks:  # of columns, so that u stays in the cache
                u = d @ short[:, block]
                p = half[:, block]
                u -= np.einsum("ij,ij->j", p, u)
                u *= p
                u *= short_w[block]
                out += u @ short[:, block].T
            return out

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
