"""Shape-restricted polynomial regression as a program to read, for cvxpy: the reference.

The same statement as in `_monotone_polynomial`, which solves it some hundred times faster.
"""

import numpy as np

from ._monotone_polynomial import PolynomialFit, frame, gram


def fit_program(mean_t, mean_y, square, degree, bound=np.inf, solver=None):
    """The polynomial of this degree with the least mean squared error, from moments."""
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
    error = cp.sum_squares(root @ coef) - 2 * mean_y[: degree + 1] @ coef
    problem = cp.Problem(cp.Minimize(error), constraints)
    problem.solve(solver=solver)
    theta = np.r_[max(float(start.value), 0.0), np.maximum(slopes.value, 0.0)]
    found = basis.to_coef @ theta
    loss = found @ products @ found - 2 * mean_y[: degree + 1] @ found
    z = basis.to_coef.T @ (2 * (products @ found - mean_y[: degree + 1]))
    pulls = [np.zeros(degree + 1)]  # multipliers of the bound's equation, of either sign
    if np.isfinite(bound):
        pulls += [same.dual_value, -same.dual_value]
    gap = np.inf
    for w in pulls:
        lowest = [np.linalg.eigvalsh((P.T * (z + w)[1:]) @ P)[0] for P in basis.blocks]
        price = bound * np.abs(basis.from_monomial.T @ w).max() if w.any() else 0.0
        gap = min(gap, float(z @ theta - min(0.0, z[0] + w[0], *lowest) + price))
    size = float(np.abs(basis.to_monomial @ theta).sum())
    return PolynomialFit(found, max(float(square + loss), 0.0), max(gap, 0.0), size)
