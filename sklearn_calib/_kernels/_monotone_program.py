"""Shape-restricted polynomial regression as a program for cvxpy, with linear constraints.

Without constraints of a user's own the statement is that of `_monotone_polynomial`, which solves it
some hundred times faster.
"""

import contextlib
import warnings
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from ._spectraplex import Problem, linear_map, solve


class PolynomialFit(NamedTuple):
    coef: np.ndarray  # Chebyshev
    loss: float  # mean squared error
    gap: float  # by no more than this the loss is above the optimum
    l1: float  # sum of the absolute monomial coefficients


class ConeFrame(NamedTuple):
    """What depends on the degree only."""

    blocks: tuple  # P and R
    to_coef: np.ndarray  # Chebyshev coefficients from theta
    rows: np.ndarray  # (k + 1, k + 2): the blocks side by side, after f(-1) and the slack
    starts: np.ndarray  # where the blocks of X start
    L: np.ndarray  # their linear map
    from_monomial: np.ndarray  # T
    to_monomial: np.ndarray


@lru_cache(maxsize=128)
def frame(degree):
    """The sampling form of a degree, from 1."""
    angles = np.pi * (2 * np.arange(degree) + 1) / (2 * degree)
    nodes = np.cos(angles)
    m = np.arange(1, degree // 2 + 1)
    terms = np.cos(np.outer(angles, 2 * m)) / (4 * m**2 - 1)
    weights = 2 / degree * (1 - 2 * terms.sum(axis=1))
    if degree % 2:
        parts = [(np.ones(degree), (degree + 1) // 2), (1 - nodes**2, (degree - 1) // 2)]
    else:
        parts = [(1 + nodes, degree // 2), (1 - nodes, degree // 2)]
    blocks = []
    for g, size in parts:
        if size:
            scaled = np.sqrt(weights * g)[:, None] * chebyshev.chebvander(nodes, size - 1)
            blocks.append(np.linalg.qr(scaled)[0])
    # f' interpolates f'(t_i) = theta_{1+i} / w_i; integrate it from -1 and add f(-1)
    slopes = 2 / degree * np.cos(np.outer(np.arange(degree), angles)) / weights
    slopes[0] /= 2
    to_coef = np.zeros((degree + 1, degree + 1))
    to_coef[0, 0] = 1.0
    for i in range(degree):
        integral = chebyshev.chebint(slopes[:, i], lbnd=-1)
        to_coef[: len(integral), 1 + i] = integral[: degree + 1]
    rows = np.zeros((degree + 1, degree + 2))
    rows[0, 0] = 1.0
    rows[1:, 2:] = np.hstack(blocks)
    starts = np.cumsum([0, 1, 1] + [block.shape[1] for block in blocks])
    powers = np.arange(degree + 1)
    from_monomial = np.empty((degree + 1, degree + 1))
    from_monomial[0] = (-1.0) ** powers
    from_monomial[1:] = weights[:, None] * powers * nodes[:, None] ** np.maximum(powers - 1, 0)
    to_monomial = np.zeros((degree + 1, degree + 1))
    for j in range(degree + 1):
        poly = chebyshev.cheb2poly(np.eye(degree + 1)[j])
        to_monomial[: len(poly), j] = poly
    L = linear_map(rows, starts)
    return ConeFrame(tuple(blocks), to_coef, rows, starts, L, from_monomial, to_monomial @ to_coef)


def moments(x, y, weight, degree):
    """Weighted means of T_m(x) for m <= 2 degree, of y T_m(x) for m <= degree, and of y^2."""
    total = weight.sum()
    first, last = np.ones_like(x), x
    mean_t, mean_y = np.empty(2 * degree + 1), np.empty(degree + 1)
    weighted = weight * y
    for m in range(2 * degree + 1):
        t = first if m == 0 else last
        mean_t[m] = weight @ t
        if m <= degree:
            mean_y[m] = weighted @ t
        if m:
            first, last = last, 2 * x * last - first
    return mean_t / total, mean_y / total, float(weighted @ y / total)


def gram(mean_t, size):
    """Means of T_i T_j for i, j < size, from those of T_m."""
    i = np.arange(size)
    return (mean_t[i[:, None] + i] + mean_t[np.abs(i[:, None] - i)]) / 2


def fit_many(data, degree, l1s, tol=1e-10, max_iter=80):
    """For each data set, given by its moments, a fit for each bound on the coefficients."""
    basis = frame(degree)
    Q = np.array([basis.to_coef.T @ gram(t, degree + 1) @ basis.to_coef for t, _, _ in data])
    h = np.array([basis.to_coef.T @ mean_y[: degree + 1] for _, mean_y, _ in data])
    free = Problem(basis.rows, basis.starts, basis.L, basis.from_monomial, Q, h, None)

    def finished(d, theta, gap, size):
        loss = data[d][2] - 2 * h[d] @ theta + theta @ Q[d] @ theta  # the objective is half of it
        return PolynomialFit(basis.to_coef @ theta, max(float(loss), 0.0), 2 * float(gap), size)

    theta, gap, _ = solve(free, tol, max_iter)
    size = np.abs(theta @ basis.to_monomial.T).sum(axis=1)
    fits = [[finished(d, theta[d], gap[d], float(size[d])) for _ in l1s] for d in range(len(data))]
    tight = [(d, b) for d in range(len(data)) for b, l1 in enumerate(l1s) if size[d] > l1]
    if tight:
        which = [d for d, _ in tight]
        bounds = np.array([float(l1s[b]) for _, b in tight])
        solved = solve(free._replace(Q=Q[which], h=h[which], bound=bounds), tol, max_iter)
        for (d, b), theta, gap, size in zip(tight, *solved, strict=True):
            fits[d][b] = finished(d, theta, gap, float(size))
    return fits


_TIGHT = {name: 1e-11 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}


class LinearConstraints(NamedTuple):
    """low <= f(x) <= high where `slope` is False, low <= f'(x) <= high where it is True."""

    x: np.ndarray
    slope: np.ndarray
    low: np.ndarray  # equal to `high` where the number is fixed
    high: np.ndarray

    def matrix(self, degree):
        """What is constrained, from Chebyshev coefficients."""
        values = chebyshev.chebvander(self.x, degree)
        slopes = chebyshev.chebval(self.x, chebyshev.chebder(np.eye(degree + 1))).T
        return np.where(self.slope[:, None], slopes, values)


def fit_program(mean_t, mean_y, square, degree, bound=np.inf, solver=None, own=None):
    """The polynomial of this degree with the least mean squared error, from moments.

    None where no polynomial of this degree fulfils the constraints `own`.
    """
    import cvxpy as cp

    basis = frame(degree)
    products = gram(mean_t, degree + 1)
    values, vectors = np.linalg.eigh(products)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    squares = [cp.Variable((P.shape[1], P.shape[1]), PSD=True) for P in basis.blocks]
    start = cp.Variable(nonneg=True)  # f(-1)
    slopes = sum(
        cp.sum(cp.multiply(P @ U, P), axis=1) for P, U in zip(basis.blocks, squares, strict=True)
    )
    theta = cp.hstack([start, slopes])
    coef = basis.to_coef @ theta
    constraints = [cp.sum(theta) <= 1]  # f(1)
    if np.isfinite(bound):
        powers = cp.Variable(degree + 1)
        same = theta == basis.from_monomial @ powers
        constraints += [same, cp.norm1(powers) <= bound]
    kept = [] if own is None else _inequalities(own, basis, theta)
    constraints += [constraint for constraint, _, _ in kept]
    error = cp.sum_squares(root @ coef) - 2 * mean_y[: degree + 1] @ coef
    problem = cp.Problem(cp.Minimize(error), constraints)
    _solve(problem, solver, tight=own is not None)
    if start.value is None or problem.status not in ("optimal", "optimal_inaccurate"):
        return None
    blocks = zip(basis.blocks, squares, strict=True)
    slopes = sum(((P @ _positive(U.value)) * P).sum(axis=1) for P, U in blocks)
    theta = np.r_[max(float(start.value), 0.0), slopes]
    found = basis.to_coef @ theta
    loss = found @ products @ found - 2 * mean_y[: degree + 1] @ found
    z = basis.to_coef.T @ (2 * (products @ found - mean_y[: degree + 1]))
    # any multipliers bound the loss of all polynomials from below, those of the solver tightly
    pulls = [np.zeros(degree + 1)]  # multipliers of the bound's equation, of either sign
    if np.isfinite(bound):
        pulls += [same.dual_value, -same.dual_value]
    prices = [np.maximum(constraint.dual_value, 0.0) for constraint, _, _ in kept]
    steady = sum((A.T @ y for y, (_, A, _) in zip(prices, kept, strict=True)), np.zeros(degree + 1))
    paid = sum(float(y @ b) for y, (_, _, b) in zip(prices, kept, strict=True))
    gap = np.inf
    for w in pulls:
        pull = z + w + steady
        lowest = [np.linalg.eigvalsh((P.T * pull[1:]) @ P)[0] for P in basis.blocks]
        price = paid + (bound * np.abs(basis.from_monomial.T @ w).max() if w.any() else 0.0)
        gap = min(gap, float(z @ theta - min(0.0, pull[0], *lowest) + price))
    size = float(np.abs(basis.to_monomial @ theta).sum())
    return PolynomialFit(found, max(float(square + loss), 0.0), max(gap, 0.0), size)


def _inequalities(own, basis, theta):
    """(constraint, A, b) for A theta <= b, the rows of A of length 1."""
    rows = own.matrix(len(basis.to_coef) - 1) @ basis.to_coef
    length = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    rows = rows / length[:, None]
    sides = [(rows, own.high / length), (-rows, -own.low / length)]
    sides = [(A[np.isfinite(b)], b[np.isfinite(b)]) for A, b in sides]
    return [(A @ theta <= b, A, b) for A, b in sides if len(b)]


def _positive(U):
    """The nearest positive semidefinite matrix: f rises exactly."""
    values, vectors = np.linalg.eigh((U + U.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _solve(problem, solver, tight):
    """What solvers warn of, the certificate says."""
    import cvxpy as cp

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        with contextlib.suppress(cp.SolverError):  # no value then
            problem.solve(solver=solver, **(_TIGHT if tight and solver == "CLARABEL" else {}))
