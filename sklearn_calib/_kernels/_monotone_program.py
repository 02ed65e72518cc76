"""Shape-restricted polynomial regression as a program for cvxpy, with linear constraints.

Without constraints of a user's own the statement is that of `_monotone_polynomial`, which solves it
some hundred times faster.
"""

import contextlib
import warnings
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from ._monotone_polynomial import PolynomialFit, frame, gram

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
