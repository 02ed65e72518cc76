"""Quadratic programs over a spectraplex, with an optional bound in the l1 norm, in batches.

A primal-dual interior-point method (HKM direction, Mehrotra's corrector) of cost O(m^3)
an iteration and problem. A bound on the sum of the absolute coefficients a adds theta =
T (p - n), p, n >= 0, whose multipliers w make v = T'w with |v| <= e. The Frank-Wolfe
gap certifies the result: theta' z above the least theta' z of the feasible set.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ._compile import compile_helper, compile_kernel


class QuadraticProgram(NamedTuple):
    """Minimise theta' Q theta / 2 - h' theta over theta = L(X), X >= 0, trace X = 1.

    With a bound also theta = T (p - n), sum(p + n) + s = bound, all at least 0. Q, h
    and the bounds have a first axis, over problems that are solved at once.
    """

    rows: np.ndarray
    starts: np.ndarray
    # The result of `make_quadratic_forms_operator` for the rows.
    L: np.ndarray
    T: np.ndarray
    Q: np.ndarray
    h: np.ndarray
    bound: np.ndarray | None

    def select_problems(self, which):
        """Select some of the problems."""
        bound = None if self.bound is None else self.bound[which]
        return self._replace(Q=self.Q[which], h=self.h[which], bound=bound)


class ProgramPoint(NamedTuple):
    """Primal and dual variables, or a direction; S and v = T'w follow from the others."""

    X: np.ndarray
    p: np.ndarray
    n: np.ndarray
    s: np.ndarray
    S: np.ndarray
    # The multiplier of the trace.
    y: np.ndarray
    # The multipliers of theta = T (p - n).
    w: np.ndarray
    v: np.ndarray
    # The multiplier of the bound.
    e: np.ndarray


def find_spectraplex_thetas_gaps_and_l1_norms(problem, tol, max_iter):
    """Return theta, its gap and sum |p - n|.

    If rounding ends the iterations, the best of them counts.
    """
    m, size = problem.rows.shape
    count = len(problem.h)
    point = _make_start(problem, count, m, size)
    best = np.zeros((count, m))
    best_gap = np.full(count, np.inf)
    best_size = np.zeros(count)
    best_at = np.zeros(count)
    # The problems that are not finished.
    active = np.arange(count)
    for iteration in range(max_iter + 1):
        theta = _apply_map_to_matrices(problem.L, point.X)
        # The gradient of the objective. Its inner product with theta, less the smallest
        # one over the feasible set, is the Frank-Wolfe gap.
        z = (problem.Q @ theta[..., None])[..., 0] - problem.h
        S = _apply_adjoint(problem.L, z + point.w)
        smallest = np.minimum(
            0.0, _find_smallest_eigenvalue_by_matrix(S, problem.starts)
        )
        gap = (z * theta).sum(axis=1) - smallest
        mismatch = np.zeros_like(theta)
        difference = point.p - point.n
        l1_norm = np.abs(difference).sum(axis=1)
        if problem.bound is not None:
            mismatch = theta - difference @ problem.T.T
            bound_price = problem.bound * np.abs(point.v).max(axis=1)
            gap += bound_price + np.abs(mismatch).max(axis=1)
            gap += np.maximum(0.0, l1_norm - problem.bound)
        better = gap < best_gap[active]
        which = active[better]
        best[which] = theta[better]
        best_gap[which] = gap[better]
        best_at[which] = iteration
        best_size[which] = l1_norm[better]
        if iteration == 0:
            e = np.maximum(1e-2, np.abs(z).max(axis=1))
            point = point._replace(e=e, y=smallest - e)
        y = np.minimum(point.y, smallest - 1e-16)
        S[:, range(size), range(size)] -= y[:, None]
        point = point._replace(S=S, y=y)
        # A problem at its limits overflows here; it gets a step of 0.
        with np.errstate(all="ignore"):
            step, direction = _find_step_lengths_and_directions(
                problem, point, mismatch
            )
        # A problem ends if it is solved, has made no progress for 20 iterations, or
        # cannot move. The others go on as a smaller batch.
        going = (gap >= tol) & (iteration <= best_at[active] + 20) & (step > 1e-10)
        if iteration == max_iter or not going.any():
            break
        if not going.all():
            active = active[going]
            problem = problem.select_problems(going)
            step = step[going]
            point = ProgramPoint(*(part[going] for part in point))
            direction = ProgramPoint(*(part[going] for part in direction))
        point = _move_point(point, direction, step)
        # Rounding moves the trace away from 1; this restores feasibility.
        X = point.X / np.trace(point.X, axis1=1, axis2=2)[:, None, None]
        point = point._replace(X=X, v=point.w @ problem.T)
    return best, np.maximum(best_gap, 0.0), best_size


def _make_start(problem, count, m, size):
    """Make the point at which the iteration of all problems starts."""
    X = np.broadcast_to(np.eye(size) / size, (count, size, size)).copy()
    mass = np.ones(count)
    # With a small bound, most of the trace goes to the slack and the values start
    # small.
    if problem.bound is not None:
        mass = problem.bound / 4
        scale = np.where(problem.bound < 1, problem.bound / 2, 1.0)
        X *= scale[:, None, None]
        X[:, 1, 1] += 1.0 - scale
    p = np.repeat(mass[:, None] / m, m, axis=1)
    zeros = np.zeros((count, m))
    return ProgramPoint(X, p, p, mass, X, np.zeros(count), zeros, zeros, np.ones(count))


def _move_point(point, direction, step):
    parts = []
    for value, change in zip(point, direction, strict=True):
        parts.append(value + step.reshape((-1,) + (1,) * (value.ndim - 1)) * change)
    return ProgramPoint(*parts)


def _find_step_lengths_and_directions(problem, point, mismatch):
    """Return Mehrotra's direction and the length to go; 0 if rounding prevents both."""
    starts = problem.starts
    limited = problem.bound is not None
    R, fine = _invert_and_find_positive_definite(point.S, starts)
    matrix = _make_system(problem, point, R)
    pivots, regular = _factor_lu_in_place_and_get_pivots(matrix)
    count = R.shape[1] + (2 * point.p.shape[1] + 1 if limited else 0)
    mu = _sum_complementarity_by_program(point, limited) / count
    aims = point._replace(X=-point.X, p=-point.p, n=-point.n, s=-point.s)
    direction = _solve_step_to_aims(problem, point, R, matrix, pivots, aims, mismatch)
    ahead = _move_point(
        point, direction, _find_step_length(point, direction, starts, limited)
    )
    ahead_mu = _sum_complementarity_by_program(ahead, limited) / count
    # Mehrotra's centring: the better the predictor does, the less the corrector has to
    # centre.
    center = np.maximum((ahead_mu / mu) ** 3, 1e-8) * mu
    second = _make_symmetric(direction.X @ (direction.S @ R))
    e = point.e[:, None]
    de = direction.e[:, None]
    column = center[:, None]
    aims = aims._replace(
        X=column[..., None] * R - point.X - second,
        p=(column - direction.p * (de - direction.v)) / (e - point.v) - point.p,
        n=(column - direction.n * (de + direction.v)) / (e + point.v) - point.n,
        s=(center - direction.s * direction.e) / point.e - point.s,
    )
    direction = _solve_step_to_aims(problem, point, R, matrix, pivots, aims, mismatch)
    # Stopping short of the boundary keeps the iterates inside the cone.
    length = 0.98 * _find_step_length(point, direction, starts, limited)
    return np.where(fine & regular, length, 0.0), direction


def _make_system(problem, point, R):
    """Return the matrices of the steps of theta and y, and with a bound of w and e.

    From dX = aim - sym(X dS R), dS = L*(Q dtheta + dw) - dy I, and the like for p, n
    and s.
    """
    rows, starts, L, T, Q, _, bound = problem
    m = len(rows)
    size = m + 1 if bound is None else 2 * m + 2
    XR = _make_symmetric(point.X @ R)
    # The Schur complement of a spectraplex with rank-one maps is an elementwise product
    # of two Gram matrices.
    hadamard = _make_hadamard_maps(rows, starts, point.X, R)
    toward = _apply_map_to_matrices(L, XR)
    matrix = np.zeros((len(Q), size, size))
    matrix[:, :m, :m] = np.eye(m) + hadamard @ Q
    matrix[:, :m, m] = -toward
    matrix[:, m, :m] = -(toward[:, None] @ Q)[:, 0]
    matrix[:, m, m] = np.trace(XR, axis1=1, axis2=2)
    if bound is not None:
        ratio_p, ratio_n = _compute_primal_to_slack_ratio_pair(point)
        difference = (ratio_p - ratio_n) @ T.T
        ratio_sum = ratio_p + ratio_n
        last = size - 1
        # The rows and columns of dw.
        w = slice(m + 1, last)
        matrix[:, :m, w] = hadamard
        matrix[:, m, w] = -toward
        matrix[:, w, :m] = np.eye(m)
        matrix[:, w, w] = -((T * ratio_sum[:, None]) @ T.T)
        matrix[:, w, last] = difference
        matrix[:, last, w] = difference
        matrix[:, last, last] = -ratio_sum.sum(axis=1) - point.s / point.e
    return matrix


def _compute_primal_to_slack_ratio_pair(point):
    e = point.e[:, None]
    return point.p / (e - point.v), point.n / (e + point.v)


def _solve_step_to_aims(problem, point, R, matrix, pivots, aims, mismatch):
    """Return the step to the aims.

    They are where X, p, n and s would go if the dual did not move.
    """
    L = problem.L
    T = problem.T
    Q = problem.Q
    bound = problem.bound
    m, size = problem.rows.shape
    right = np.zeros(matrix.shape[:2])
    right[:, :m] = _apply_map_to_matrices(L, aims.X)
    right[:, m] = -np.trace(aims.X, axis1=1, axis2=2)
    if bound is not None:
        right[:, m + 1 : -1] = (aims.p - aims.n) @ T.T - mismatch
        total = (point.p + point.n + aims.p + aims.n).sum(axis=1)
        right[:, -1] = bound - total - point.s - aims.s
    _solve_factored_in_place(matrix, pivots, right)
    dw = np.zeros_like(point.w)
    de = np.zeros_like(point.e)
    if bound is not None:
        dw = right[:, m + 1 : -1]
        de = right[:, -1]
    dv = dw @ T
    dy = right[:, m]
    dS = _apply_adjoint(L, (Q @ right[:, :m, None])[..., 0] + dw)
    dS[:, range(size), range(size)] -= dy[:, None]
    ratio_p, ratio_n = _compute_primal_to_slack_ratio_pair(point)
    return ProgramPoint(
        aims.X - _make_symmetric(point.X @ (dS @ R)),
        aims.p - ratio_p * (de[:, None] - dv),
        aims.n - ratio_n * (de[:, None] + dv),
        aims.s - point.s / point.e * de,
        dS, dy, dw, dv, de,
    )  # fmt: skip


def _sum_complementarity_by_program(point, limited):
    """Return the sum of the products of primal and dual variables."""
    total = (point.X * point.S).sum(axis=(1, 2))
    if limited:
        e = point.e[:, None]
        bounded = point.p * (e - point.v) + point.n * (e + point.v)
        total += bounded.sum(axis=1) + point.s * point.e
    return total


def _find_step_length(point, direction, starts, limited):
    """Return a step up to 1, nearly the longest, that keeps everything positive."""
    step = np.ones(len(point.X))
    space = np.empty((2, *point.X.shape[1:]))
    _shorten_steps(point.X, direction.X, starts, *space, step)
    _shorten_steps(point.S, direction.S, starts, *space, step)
    if not limited:
        return step
    e = point.e[:, None]
    de = direction.e[:, None]
    values = np.concatenate(
        [point.p, point.n, e - point.v, e + point.v, e, point.s[:, None]], axis=1
    )
    steps = np.concatenate(
        [
            direction.p,
            direction.n,
            de - direction.v,
            de + direction.v,
            de,
            direction.s[:, None],
        ],
        axis=1,
    )
    falls = np.where(steps < 0, -steps, 1e-300)
    with np.errstate(over="ignore"):
        return np.minimum(step, (values / falls).min(axis=1))


# -- block diagonal matrices, stored whole; `starts` has the first row of each -----------------


def _make_symmetric(A):
    return (A + A.transpose(0, 2, 1)) / 2


def _find_smallest_eigenvalue_by_matrix(S, starts):
    """Return the smallest eigenvalue of each matrix."""
    lowest = []
    for low, high in pairwise(starts):
        alone = high - low == 1
        block = S[:, low:high, low:high]
        lowest.append(block[:, 0, 0] if alone else np.linalg.eigvalsh(block)[:, 0])
    return np.min(lowest, axis=0)


def make_quadratic_forms_operator(rows, starts):
    """Return L as a matrix, for L(X)_r = row_r' X row_r."""
    maps = rows[:, :, None] * rows[:, None]
    for low, high in pairwise(starts):
        maps[:, low:high, high:] = maps[:, high:, low:high] = 0.0
    return maps.reshape(len(rows), -1)


def _apply_map_to_matrices(L, X):
    return X.reshape(len(X), -1) @ L.T


def _apply_adjoint(L, z):
    """Return the matrices that X is multiplied with in z' L(X)."""
    size = math.isqrt(L.shape[1])
    return (z @ L).reshape(-1, size, size)


def _make_hadamard_maps(rows, starts, X, R):
    """Return the linear maps from dz to L(X L*(dz) R)."""
    out = np.zeros((len(X), len(rows), len(rows)))
    for low, high in pairwise(starts):
        block_rows = rows[:, low:high]
        left = block_rows @ X[:, low:high, low:high] @ block_rows.T
        right = block_rows @ R[:, low:high, low:high] @ block_rows.T
        out += left * right
    return out


@compile_helper
def _fill_cholesky_and_get_success(A, starts, L):
    """Write the lower factor of one matrix to L.

    Returns whether the matrix is positive definite.
    """
    for b in range(len(starts) - 1):
        low = starts[b]
        for j in range(low, starts[b + 1]):
            pivot = A[j, j]
            for k in range(low, j):
                pivot -= L[j, k] * L[j, k]
            if not pivot > 0:
                return False
            L[j, j] = np.sqrt(pivot)
            for i in range(j + 1, starts[b + 1]):
                total = A[i, j]
                for k in range(low, j):
                    total -= L[i, k] * L[j, k]
                L[i, j] = total / L[j, j]
    return True


def _invert_and_find_positive_definite(S, starts):
    """Return the inverses, and which of the matrices are positive definite."""
    R = np.zeros_like(S)
    fine = np.zeros(len(S), dtype=bool)
    _add_each_inverse_in_place(S, starts, *np.zeros((2, *S.shape[1:])), R, fine)
    return R, fine


@compile_kernel
def _add_each_inverse_in_place(S, starts, L, root_inverse, inverse_sums, is_invertible):
    """Invert each matrix block by block, from its Cholesky factor."""
    for c in range(len(S)):
        is_invertible[c] = _fill_cholesky_and_get_success(S[c], starts, L)
        for b in range(len(starts) - 1 if is_invertible[c] else 0):
            low = starts[b]
            high = starts[b + 1]
            # G is the inverse of L.
            for j in range(low, high):
                root_inverse[j, j] = 1 / L[j, j]
                for i in range(j + 1, high):
                    total = 0.0
                    for k in range(j, i):
                        total -= L[i, k] * root_inverse[k, j]
                    root_inverse[i, j] = total / L[i, i]
            for i in range(low, high):
                for j in range(low, high):
                    for k in range(max(i, j), high):
                        inverse_sums[c, i, j] += root_inverse[k, i] * root_inverse[k, j]


@compile_kernel
def _shorten_steps(X, dX, starts, L, candidate, steps):
    """Shorten the steps to within 15 % of the longest that keep X positive definite."""
    for c in range(len(X)):
        while steps[c] > 1e-12:
            for i in range(len(candidate)):
                for j in range(len(candidate)):
                    candidate[i, j] = X[c, i, j] + steps[c] * dX[c, i, j]
            # A Cholesky factorisation is the cheapest test for positive definiteness of
            # such small matrices.
            if _fill_cholesky_and_get_success(candidate, starts, L):
                break
            steps[c] *= 0.85


def _factor_lu_in_place_and_get_pivots(A):
    """Factor LU in place with row exchanges; return these, and the regular matrices."""
    pivots = np.zeros(A.shape[:2], dtype=np.int64)
    regular = np.ones(len(A), dtype=bool)
    _factor_each(A, pivots, regular)
    if not regular.all():
        A[~regular] = np.eye(A.shape[1])
    return pivots, regular


@compile_kernel
def _factor_each(matrices, pivots, regular):
    """Factor each matrix until a column has no pivot."""
    n = matrices.shape[1]
    for c in range(len(matrices)):
        A = matrices[c]
        for j in range(n):
            best = j
            for i in range(j + 1, n):
                if abs(A[i, j]) > abs(A[best, j]):
                    best = i
            pivots[c, j] = best
            if not 0 < abs(A[best, j]) < np.inf:
                regular[c] = False
                break
            for k in range(n):
                A[j, k], A[best, k] = A[best, k], A[j, k]
            for i in range(j + 1, n):
                factor = A[i, j] / A[j, j]
                A[i, j] = factor
                for k in range(j + 1, n):
                    A[i, k] -= factor * A[j, k]


@compile_kernel
def _solve_factored_in_place(matrices, pivots, right):
    """Solve in place with the factors."""
    n = matrices.shape[1]
    for c in range(len(matrices)):
        A = matrices[c]
        x = right[c]
        for j in range(n):
            best = pivots[c, j]
            x[j], x[best] = x[best], x[j]
        for i in range(n):
            for k in range(i):
                x[i] -= A[i, k] * x[k]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                x[i] -= A[i, k] * x[k]
            x[i] /= A[i, i]
