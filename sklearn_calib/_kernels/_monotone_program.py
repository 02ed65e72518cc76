"""Shape-restricted polynomial regression as a program for cvxpy, with linear constraints.

Without constraints of a user's own `fit_bounded_polynomials` solves it some hundred
times faster, by the method of `_spectraplex`.
"""

import contextlib
import warnings
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from ._spectraplex import (
    QuadraticProgram,
    find_spectraplex_thetas_gaps_and_l1_norms,
    make_quadratic_forms_operator,
)


class RestrictedPolynomialFit(NamedTuple):
    # Coefficients of Chebyshev polynomials.
    chebyshev_coef: np.ndarray
    # The mean squared error.
    loss: float
    # The loss exceeds the optimum by at most this.
    gap: float
    # The sum of the absolute monomial coefficients.
    monomial_l1: float


class MonotonePolynomialBasis(NamedTuple):
    """What depends on the degree only."""

    # The matrices P and R, whose rows are the polynomials at the nodes.
    blocks: tuple
    # Maps theta to Chebyshev coefficients.
    to_coef: np.ndarray
    # Of shape (k + 1, k + 2): the blocks side by side, after f(-1) and the slack.
    rows: np.ndarray
    # The column at which each block of X starts.
    starts: np.ndarray
    # The linear map of the blocks.
    L: np.ndarray
    # The matrix T of `QuadraticProgram`.
    from_monomial: np.ndarray
    to_monomial: np.ndarray


@lru_cache(maxsize=128)
def make_monotone_polynomial_basis(degree):
    """Return the sampling form of a degree, from 1."""
    # The derivative is represented by its values at Chebyshev nodes, which keeps the
    # program well conditioned at degrees where monomials fail.
    angles = np.pi * (2 * np.arange(degree) + 1) / (2 * degree)
    nodes = np.cos(angles)
    m = np.arange(1, degree // 2 + 1)
    terms = np.cos(np.outer(angles, 2 * m)) / (4 * m**2 - 1)
    # Fejer's quadrature weights: the sum of the weighted slopes is f(1) - f(-1).
    weights = 2 / degree * (1 - 2 * terms.sum(axis=1))
    if degree % 2:
        # A polynomial is nonnegative on [-1, 1] if and only if it is a weighted sum of
        # squares; the weights depend on the parity (lemma 1 of Wang, Li, Dang (2019),
        # in another basis).
        factors = [
            (np.ones(degree), (degree + 1) // 2),
            (1 - nodes**2, (degree - 1) // 2),
        ]
    else:
        factors = [(1 + nodes, degree // 2), (1 - nodes, degree // 2)]
    blocks = []
    for g, size in factors:
        if size:
            vandermonde = chebyshev.chebvander(nodes, size - 1)
            scaled = np.sqrt(weights * g)[:, None] * vandermonde
            blocks.append(np.linalg.qr(scaled)[0])
    # f' interpolates f'(t_i) = theta_{1+i} / w_i. Integrating from -1 and adding f(-1)
    # gives f.
    slopes = 2 / degree * np.cos(np.outer(np.arange(degree), angles)) / weights
    slopes[0] /= 2
    n_coef = degree + 1
    to_coef = np.zeros((n_coef, n_coef))
    to_coef[0, 0] = 1.0
    for i in range(degree):
        integral = chebyshev.chebint(slopes[:, i], lbnd=-1)
        to_coef[: len(integral), 1 + i] = integral[:n_coef]
    rows = np.zeros((n_coef, degree + 2))
    rows[0, 0] = 1.0
    rows[1:, 2:] = np.hstack(blocks)
    starts = np.cumsum([0, 1, 1] + [block.shape[1] for block in blocks])
    powers = np.arange(n_coef)
    from_monomial = np.empty((n_coef, n_coef))
    # The bound on the coefficients is one on monomials, eq. (18d) of Wang, Li, Dang
    # (2019), in the variable scaled to [-1, 1].
    from_monomial[0] = (-1.0) ** powers
    slope_powers = nodes[:, None] ** np.maximum(powers - 1, 0)
    from_monomial[1:] = weights[:, None] * powers * slope_powers
    to_monomial = np.zeros((n_coef, n_coef))
    for j in range(n_coef):
        poly = chebyshev.cheb2poly(np.eye(n_coef)[j])
        to_monomial[: len(poly), j] = poly
    L = make_quadratic_forms_operator(rows, starts)
    return MonotonePolynomialBasis(
        tuple(blocks),
        to_coef,
        rows,
        starts,
        L,
        from_monomial,
        to_monomial @ to_coef,
    )


def compute_chebyshev_t_yt_and_y2_means(x, y, weight, degree):
    """Return weighted means of T_m(x), y T_m(x) and y^2.

    The first are for m <= 2 degree, the second for m <= degree.
    """
    total = weight.sum()
    first = np.ones_like(x)
    last = x
    mean_t = np.empty(2 * degree + 1)
    mean_y = np.empty(degree + 1)
    weighted = weight * y
    for m in range(2 * degree + 1):
        t = first if m == 0 else last
        mean_t[m] = weight @ t
        if m <= degree:
            mean_y[m] = weighted @ t
        if m:
            # The three-term recurrence of Chebyshev polynomials.
            first, last = last, 2 * x * last - first
    return mean_t / total, mean_y / total, float(weighted @ y / total)


def compute_chebyshev_gram(mean_t, size):
    """Return means of T_i T_j for i, j < size, from those of T_m."""
    i = np.arange(size)
    # T_i T_j = (T_{i+j} + T_{|i-j|}) / 2, so 2 k + 1 means hold the whole Gram matrix.
    return (mean_t[i[:, None] + i] + mean_t[np.abs(i[:, None] - i)]) / 2


def fit_bounded_polynomials(
    moments_by_data_set, degree, l1_bounds, tol=1e-10, max_iter=80
) -> list[list[RestrictedPolynomialFit]]:
    """Return a fit for each data set, given by moments, and bound on coefficients."""
    basis = make_monotone_polynomial_basis(degree)
    grams = []
    targets = []
    for mean_t, mean_y, _ in moments_by_data_set:
        gram = compute_chebyshev_gram(mean_t, degree + 1)
        grams.append(basis.to_coef.T @ gram @ basis.to_coef)
        targets.append(basis.to_coef.T @ mean_y[: degree + 1])
    Q = np.array(grams)
    h = np.array(targets)
    free = QuadraticProgram(
        basis.rows,
        basis.starts,
        basis.L,
        basis.from_monomial,
        Q,
        h,
        None,
    )

    def make_polynomial_fit(d, theta, gap, size):
        # The objective of the program is half of the loss.
        loss = moments_by_data_set[d][2] - 2 * h[d] @ theta + theta @ Q[d] @ theta
        return RestrictedPolynomialFit(
            basis.to_coef @ theta,
            max(float(loss), 0.0),
            2 * float(gap),
            size,
        )

    theta, gap, _ = find_spectraplex_thetas_gaps_and_l1_norms(free, tol, max_iter)
    size = np.abs(theta @ basis.to_monomial.T).sum(axis=1)
    fits = [
        [make_polynomial_fit(d, theta[d], gap[d], float(size[d])) for _ in l1_bounds]
        for d in range(len(moments_by_data_set))
    ]
    # A bound that the free solution keeps changes nothing; only the others need a
    # second program.
    tight = np.argwhere(size[:, None] > np.array(l1_bounds)).tolist()
    if tight:
        which = [d for d, _ in tight]
        bounds = np.array([float(l1_bounds[b]) for _, b in tight])
        bounded = free._replace(Q=Q[which], h=h[which], bound=bounds)
        solved = find_spectraplex_thetas_gaps_and_l1_norms(bounded, tol, max_iter)
        for (d, b), theta, gap, size in zip(tight, *solved, strict=True):
            fits[d][b] = make_polynomial_fit(d, theta, gap, float(size))
    return fits


_TIGHT_SOLVER_TOLERANCES = dict.fromkeys(
    ("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11
)


class ValueAndSlopeBounds(NamedTuple):
    """Bounds low <= f(x) <= high; low <= f'(x) <= high if `is_slope` is true."""

    x: np.ndarray
    is_slope: np.ndarray
    # The bounds are equal if the number is fixed.
    low: np.ndarray
    high: np.ndarray

    def make_matrix(self, degree):
        """Return the map from Chebyshev coefficients to the constrained numbers."""
        values = chebyshev.chebvander(self.x, degree)
        slopes = chebyshev.chebval(self.x, chebyshev.chebder(np.eye(degree + 1))).T
        return np.where(self.is_slope[:, None], slopes, values)


def fit_polynomial_by_cvxpy(
    mean_t, mean_y, square, degree, bound=np.inf, solver=None, constraints=None
) -> RestrictedPolynomialFit | None:
    """Return the polynomial with the least mean squared error, from moments.

    None if no polynomial of this degree fulfils the `constraints`.
    """
    import cvxpy as cp

    basis = make_monotone_polynomial_basis(degree)
    # The semidefinite form of eq. (22) and (23) of Wang, Li, Dang (2019); the basis and
    # the sampling form differ.
    products = compute_chebyshev_gram(mean_t, degree + 1)
    values, vectors = np.linalg.eigh(products)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    squares = [cp.Variable((P.shape[1], P.shape[1]), PSD=True) for P in basis.blocks]
    # f(-1) is at least 0.
    start = cp.Variable(nonneg=True)
    slopes = 0
    for P, U in zip(basis.blocks, squares, strict=True):
        slopes = slopes + cp.sum(cp.multiply(P @ U, P), axis=1)
    theta = cp.hstack([start, slopes])
    coef = basis.to_coef @ theta
    # f(1) is at most 1.
    conditions = [cp.sum(theta) <= 1]
    if np.isfinite(bound):
        powers = cp.Variable(degree + 1)
        equation = theta == basis.from_monomial @ powers
        conditions += [equation, cp.norm1(powers) <= bound]
    inequalities = (
        []
        if constraints is None
        else _make_inequalities_with_matrices(constraints, basis, theta)
    )
    conditions += [constraint for constraint, _, _ in inequalities]
    target = mean_y[: degree + 1]
    error = cp.sum_squares(root @ coef) - 2 * target @ coef
    problem = cp.Problem(cp.Minimize(error), conditions)
    _fill_problem_solution_if_solved(problem, solver, tight=constraints is not None)
    if start.value is None or problem.status not in ("optimal", "optimal_inaccurate"):
        return None
    slopes = 0
    for P, U in zip(basis.blocks, squares, strict=True):
        square_root = P @ _project_to_positive_semidefinite(U.value)
        slopes = slopes + (square_root * P).sum(axis=1)
    theta = np.r_[max(float(start.value), 0.0), slopes]
    coefficients = basis.to_coef @ theta
    loss = coefficients @ products @ coefficients - 2 * target @ coefficients
    gradient = basis.to_coef.T @ (2 * (products @ coefficients - target))
    # The multipliers of the bound's equation may have either sign.
    multipliers = [np.zeros(degree + 1)]
    if np.isfinite(bound):
        multipliers += [equation.dual_value, -equation.dual_value]
    gaps = [
        _bound_gap(basis, theta, gradient, w, bound, inequalities) for w in multipliers
    ]
    gap = min(np.inf, *gaps)
    size = float(np.abs(basis.to_monomial @ theta).sum())
    return RestrictedPolynomialFit(
        coefficients,
        max(float(square + loss), 0.0),
        max(gap, 0.0),
        size,
    )


def _bound_gap(basis, theta, gradient, w, bound, inequalities):
    """Bound from above by how much the loss at `theta` exceeds the optimum.

    Any multipliers, `w` of the bound's equation and those of the solved inequalities,
    bound the loss of all polynomials from below; those of the solver bound it tightly.
    """
    constraint_pull = np.zeros_like(w)
    price = 0.0
    for constraint, A, b in inequalities:
        y = np.maximum(constraint.dual_value, 0.0)
        constraint_pull += A.T @ y
        price += float(y @ b)
    pull = gradient + w + constraint_pull
    if w.any():
        price += bound * np.abs(basis.from_monomial.T @ w).max()
    # The dual function: the smallest eigenvalue of each block bounds how much a feasible
    # direction could lower the loss.
    lowest = [np.linalg.eigvalsh((P.T * pull[1:]) @ P)[0] for P in basis.blocks]
    return float(gradient @ theta - min(0.0, pull[0], *lowest) + price)


def _make_inequalities_with_matrices(constraints, basis, theta):
    """Return (condition, A, b) for A theta <= b, the rows of A of length 1."""
    rows = constraints.make_matrix(len(basis.to_coef) - 1) @ basis.to_coef
    length = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    rows = rows / length[:, None]
    sides = [(rows, constraints.high / length), (-rows, -constraints.low / length)]
    sides = [(A[np.isfinite(b)], b[np.isfinite(b)]) for A, b in sides]
    return [(A @ theta <= b, A, b) for A, b in sides if len(b)]


def _project_to_positive_semidefinite(U):
    """Return the nearest positive semidefinite matrix, so that f rises exactly."""
    values, vectors = np.linalg.eigh((U + U.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _fill_problem_solution_if_solved(problem, solver, tight):
    """Solve without the solvers' warnings, since the certificate covers them."""
    import cvxpy as cp

    options = _TIGHT_SOLVER_TOLERANCES if tight and solver == "CLARABEL" else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        # A solver that fails leaves a problem without a value.
        with contextlib.suppress(cp.SolverError):
            problem.solve(solver=solver, **options)
