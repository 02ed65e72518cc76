"""The lower distance to calibration as a linear program whose size is that of a grid.

A calibrated u with law mu has label-1 mass u mu(du) and label-0 mass (1 - u) mu(du). Moving the
label-y part of the data onto it is optimal transport on a line, which costs the integral of the
difference of the two distribution functions. On grid points t_0 = 0 < ... < t_m = 1, with f_k the
label-1 and g_k the label-0 mass of the data at t_k, this is a linear program in mu, whose dual
    maximise sum_k f_k x_k + g_k z_k
    with |x_{k+1} - x_k| <= t_{k+1} - t_k, the same for z, and t_k x_k + (1 - t_k) z_k <= 0
is solved; mu are the multipliers of the last constraints.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse


def onto_grid(score, ones, zeros, n_cells):
    """Label-1 and label-0 mass at the nearest points of a uniform grid, and the mean move."""
    place = np.rint(score * n_cells).astype(np.intp)
    moved = float((ones + zeros) @ np.abs(score - place / n_cells))
    ones, zeros = (np.bincount(place, mass, n_cells + 1) for mass in (ones, zeros))
    return ones, zeros, moved


def lower_distance(grid, ones, zeros):
    """The optimum, and the law mu of the nearest calibrated prediction on the grid."""
    import clarabel

    n = len(grid)
    unit = (grid[-1] - grid[0]) / (n - 1)  # masses and widths of order 1 for the solver
    step = sparse.diags([-1.0, 1.0], [0, 1], shape=(n - 1, n))
    rows = sparse.bmat(
        [
            [step, None],
            [-step, None],
            [None, step],
            [None, -step],
            [sparse.diags(grid), sparse.diags(1 - grid)],
        ],
        format="csc",
    )
    right = np.concatenate([np.tile(np.diff(grid) / unit, 4), np.zeros(n)])
    cost = -np.concatenate([ones, zeros]) / unit
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    nothing = sparse.csc_matrix((2 * n, 2 * n))
    cones = [clarabel.NonnegativeConeT(len(right))]
    solution = clarabel.DefaultSolver(nothing, cost, rows, right, cones, settings).solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise RuntimeError(
            f"lower_distance_to_calibration: expected a solved linear program, got "
            f"{solution.status}. Choose a coarser resolution."
        )
    return max(-solution.obj_val * unit**2, 0.0), np.maximum(solution.z[-n:], 0.0) * unit


def rounded_distance(score, ones, zeros, n_cells, gap, max_iter=20_000, every=25):
    """Upper bound by a feasible coupling, and lower bound, at most `gap` apart.

    `ones` and `zeros` are the label-1 and label-0 mass at each distinct score.

    The mass X[u, j] moves from column j, a pair (v_j, y_j) of mass q_j, to the calibrated
    prediction u. Columns sum to q exactly; that rows balance is a penalty with multipliers in
    [-1, 1],
        min_X max_l sum X[u, j] (|u - v_j| + l_u B[u, j]),  B = 1 - u where y_j = 1, else -u,
    solved by the extragradient method, entropic in X, to the asked gap or `max_iter`. Rounding
    (`_balanced`) removes an imbalance at no more than its penalty; any l gives a lower bound.
    """
    q = np.concatenate([ones, zeros])
    kept = q > 0
    v, q = np.tile(score, 2)[kept], q[kept]
    ones = np.repeat([True, False], len(score))[kept]
    u = np.linspace(0.0, 1.0, n_cells + 1)
    cost = np.abs(u[:, None] - v)
    balance = np.where(ones, 1 - u[:, None], -u[:, None])
    problem = _Coupling(cost, balance, np.log(q), ratio=float(len(u)))
    log_x, x, multipliers = problem.start(q)
    sum_x, sum_l, total = 0.0, 0.0, 0.0
    step, upper, lower = 1.0, np.inf, -np.inf
    for iteration in range(1, max_iter + 1):
        step, half_x, half_l, log_x, x, multipliers = problem.extragradient(
            step, log_x, x, multipliers
        )
        sum_x, sum_l, total = sum_x + step * half_x, sum_l + step * half_l, total + step
        step *= 1.2
        if iteration % every == 0:
            for candidate in (sum_l / total, half_l):
                reduced = cost + candidate[:, None] * balance
                lower = max(lower, float(q @ reduced.min(axis=0)))
            for candidate in (sum_x / total, half_x):
                rounded = _balanced(candidate, u, ones, balance)
                upper = min(upper, float((cost * rounded).sum()))
            if upper - lower <= gap:
                break
        if iteration % (8 * every) == 0:  # averages forget the beginning
            sum_x, sum_l, total = 0.0, 0.0, 0.0
    return upper, lower


class _Coupling(NamedTuple):
    """The saddle point problem of `rounded_distance`; `ratio` is of the two steps."""

    cost: np.ndarray
    balance: np.ndarray
    log_q: np.ndarray
    ratio: float

    def start(self, q):
        x = np.tile(q / len(self.cost), (len(self.cost), 1))
        return np.log(x), x, np.zeros(len(self.cost))

    def extragradient(self, step, log_x, x, m):
        """One step, halved until its own test of convergence holds (Nemirovski 2004)."""
        slope_x, slope_l = self._slopes(x, m)
        while True:
            half_log, half_l = self._move(log_x, m, slope_x, slope_l, step)
            half_x = np.exp(half_log)
            new_slope_x, new_slope_l = self._slopes(half_x, half_l)
            new_log, new_l = self._move(log_x, m, new_slope_x, new_slope_l, step)
            new_x = np.exp(new_log)
            gain = ((new_slope_x - slope_x) * (half_x - new_x)).sum()
            gain -= (new_slope_l - slope_l) @ (half_l - new_l)
            far = (new_x * (new_log - half_log)).sum() + (half_x * (half_log - log_x)).sum()
            far += (((new_l - half_l) ** 2).sum() + ((half_l - m) ** 2).sum()) / (2 * self.ratio)
            if gain * step <= far + 1e-15 or step < 1e-6:
                return step, half_x, half_l, new_log, new_x, new_l
            step /= 2

    def _slopes(self, x, m):
        return self.cost + m[:, None] * self.balance, (x * self.balance).sum(axis=1)

    def _move(self, log_x, m, slope_x, slope_l, step):
        log = log_x - step * slope_x
        top = log.max(axis=0)
        log = log - (top + np.log(np.exp(log - top).sum(axis=0))) + self.log_q
        return log, np.clip(m + step * self.ratio * slope_l, -1, 1)


def _balanced(x, u, ones, balance):
    """Move surplus label-1 mass of a row to u = 1 and surplus label-0 mass to u = 0."""
    surplus = (x * balance).sum(axis=1)
    tiny = np.finfo(float).tiny
    x = x.copy()
    for label, share, target in ((ones, 1 - u, -1), (~ones, u, 0)):
        excess = np.maximum(surplus if target else -surplus, 0) / np.maximum(share, tiny)
        held = x[:, label].sum(axis=1)
        moved = x[:, label] * np.minimum(excess / np.maximum(held, tiny), 1.0)[:, None]
        x[:, label] -= moved
        x[target, label] += moved.sum(axis=0)
    return x
