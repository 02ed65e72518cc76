"""Least squares over polynomials that rise on [-1, 1] and stay within [0, 1], with a certificate.

Sampling form: at the Chebyshev nodes t_i of the derivative's degree d = k - 1, with Fejer's weights
w_i, the unknowns are theta = (f(-1), w_i f'(t_i)); then f(1) = sum(theta), and by Markov and Lukacs
f' >= 0 on [-1, 1] if and only if
    theta_{1+i} = [P U P']_ii + [R V R']_ii  with  U, V positive semidefinite,
where P and R are orthonormal bases of sqrt(w g) times polynomials, for g = 1 + x and 1 - x (k even)
or g = 1 and 1 - x^2 (k odd). Since P and R have orthonormal columns, sum(theta) = theta_0 + tr U +
tr V: the feasible set is a spectraplex, X >= 0 of trace 1 with a slack for f(1) <= 1. (The
published equations 20 and 23c are misprinted; this form does not need them.)

The data enter by Chebyshev moments only. The solver is a feasible primal-dual interior-point method
(HKM direction, Mehrotra's corrector) of cost O(k^3) an iteration, whatever the number of rows.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev


class PolynomialFit(NamedTuple):
    coef: np.ndarray  # Chebyshev
    loss: float  # mean squared error
    gap: float  # by no more than this the loss is above the optimum
    n_iter: int


class Frame(NamedTuple):
    """What depends on the degree only."""

    blocks: tuple  # P and R
    to_coef: np.ndarray  # Chebyshev coefficients from theta


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
    return Frame(tuple(blocks), to_coef)


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


def fit_monotone(mean_t, mean_y, square, degree, tol=1e-10, max_iter=60):
    """The polynomial of this degree with the least mean squared error."""
    basis = frame(degree)
    i = np.arange(degree + 1)
    gram = (mean_t[i[:, None] + i] + mean_t[np.abs(i[:, None] - i)]) / 2
    Q = basis.to_coef.T @ gram @ basis.to_coef
    h = basis.to_coef.T @ mean_y[: degree + 1]
    problem = _Spectraplex(basis.blocks, Q, h)
    theta, gap, n_iter = problem.solve(tol, max_iter)
    loss = square - 2 * h @ theta + theta @ Q @ theta  # the solver's objective is half of it
    return PolynomialFit(basis.to_coef @ theta, max(float(loss), 0.0), 2 * gap, n_iter)


class _Spectraplex:
    """Minimise theta' Q theta / 2 - h' theta, theta = L(X), X >= 0, trace X = 1.

    X is a list: f(-1), the slack 1 - f(1), then the matrices; the first two are 1 x 1 matrices.
    """

    def __init__(self, blocks, Q, h):
        self.blocks, self.Q, self.h = blocks, Q, h
        self.n = 2 + sum(block.shape[1] for block in blocks)

    def image(self, X):
        """L(X): theta."""
        diagonals = [
            np.einsum("ij,jk,ik->i", P, M, P) for P, M in zip(self.blocks, X[2:], strict=True)
        ]
        return np.concatenate([X[0].ravel(), sum(diagonals)])

    def adjoint(self, z):
        """The matrices that X is multiplied with in z' L(X)."""
        return [z[:1, None], np.zeros((1, 1))] + [(P.T * z[1:]) @ P for P in self.blocks]

    def least(self, z):
        """The smallest z' L(X)."""
        return min(float(np.linalg.eigvalsh(M)[0]) for M in self.adjoint(z))

    def solve(self, tol, max_iter):
        """Theta, its gap, and the number of iterations; the best iterate if rounding ends it."""
        X = [np.eye(len(M)) / self.n for M in self.adjoint(self.h)]
        best, best_gap, y = None, np.inf, None
        for iteration in range(max_iter + 1):
            theta = self.image(X)
            z = self.Q @ theta - self.h
            least = min(0.0, self.least(z))
            gap = float(z @ theta) - least
            if gap < best_gap:
                best, best_gap = theta, gap
            if gap < tol or iteration == max_iter:
                break
            y = least - max(1e-2, np.abs(z).max()) if y is None else min(y, least - 1e-16)
            S = [M - y * np.eye(len(M)) for M in self.adjoint(z)]
            try:
                step, dX, dy = self._step(X, S)
            except np.linalg.LinAlgError:
                break
            if step < 1e-10:
                break
            X, y = _ahead(X, dX, step), y + step * dy
            total = sum(np.trace(M) for M in X)
            X = [M / total for M in X]
        return best, max(best_gap, 0.0), iteration

    def _step(self, X, S):
        mu = _inner(X, S) / self.n
        inverse = [_symmetric(np.linalg.inv(M)) for M in S]
        system = self._system(X, inverse)
        aheadX, aheadS, _ = self._direction(X, inverse, system, [-M for M in X])
        step = min(1.0, _longest(X, aheadX), _longest(S, aheadS))
        moved = _inner(_ahead(X, aheadX, step), _ahead(S, aheadS, step)) / self.n
        center = max((moved / mu) ** 3, 1e-8) * mu
        target = [
            center * R - M - _symmetric(dM @ dS @ R)
            for R, M, dM, dS in zip(inverse, X, aheadX, aheadS, strict=True)
        ]
        dX, dS, dy = self._direction(X, inverse, system, target)
        return min(1.0, 0.99 * min(_longest(X, dX), _longest(S, dS))), dX, dy

    def _system(self, X, inverse):
        """The matrix of (dz, dy), from dX = target - sym(X dS S^-1) and dS = L*(dz) - dy R."""
        hadamard = np.zeros((len(self.h), len(self.h)))
        hadamard[0, 0] = X[0][0, 0] * inverse[0][0, 0]
        for P, M, R in zip(self.blocks, X[2:], inverse[2:], strict=True):
            hadamard[1:, 1:] += (P @ M @ P.T) * (P @ R @ P.T)
        products = [_symmetric(M @ R) for M, R in zip(X, inverse, strict=True)]
        toward = self.image(products)
        size = len(self.h)
        matrix = np.empty((size + 1, size + 1))
        matrix[:size, :size] = np.eye(size) + self.Q @ hadamard
        matrix[:size, size] = -self.Q @ toward
        matrix[size, :size] = -toward
        matrix[size, size] = sum(np.trace(M) for M in products)
        return matrix

    def _direction(self, X, inverse, matrix, target):
        right = np.append(self.Q @ self.image(target), -sum(np.trace(M) for M in target))
        solution = np.linalg.solve(matrix, right)
        dz, dy = solution[:-1], solution[-1]
        dS = [M - dy * np.eye(len(M)) for M in self.adjoint(dz)]
        dX = [T - _symmetric(M @ D @ R) for T, M, D, R in zip(target, X, dS, inverse, strict=True)]
        return dX, dS, dy


def _symmetric(M):
    return (M + M.T) / 2


def _inner(X, S):
    return float(sum((M * N).sum() for M, N in zip(X, S, strict=True)))


def _ahead(X, dX, step):
    return [M + step * D for M, D in zip(X, dX, strict=True)]


def _longest(X, dX):
    """The largest step that keeps X positive semidefinite."""
    lowest = 0.0
    for M, D in zip(X, dX, strict=True):
        factor = np.linalg.inv(np.linalg.cholesky(M))
        lowest = min(lowest, float(np.linalg.eigvalsh(factor @ D @ factor.T)[0]))
    return np.inf if lowest >= 0 else -1 / lowest
