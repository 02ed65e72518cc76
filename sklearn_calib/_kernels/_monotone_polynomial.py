"""Least squares over polynomials that rise on [-1, 1] and stay within [0, 1], with a certificate.

Sampling form: at the Chebyshev nodes t_i of the derivative's degree d = k - 1, with Fejer's weights
w_i, the unknowns are theta = (f(-1), w_i f'(t_i)); then f(1) = sum(theta), and by Markov and Lukacs
f' >= 0 on [-1, 1] if and only if
    theta_{1+i} = [P U P']_ii + [R V R']_ii  with  U, V positive semidefinite,
where P and R are orthonormal bases of sqrt(w g) times polynomials, for g = 1 + x and 1 - x (k even)
or g = 1 and 1 - x^2 (k odd). Since P and R have orthonormal columns, sum(theta) = theta_0 + tr U +
tr V: the feasible set is a spectraplex, X >= 0 of trace 1 with a slack for f(1) <= 1. (The
published equations 20 and 23c are misprinted; this form does not need them.)

The data enter by Chebyshev moments only, so the cost does not depend on the number of rows.
"""

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
