"""The lower distance to calibration as a linear program whose size is that of a grid.

A calibrated u with distribution mu has label-1 mass u mu(du) and label-0 mass (1 - u)
mu(du). Moving the label-y part of the data onto it is optimal transport on a line,
which costs the integral of the difference of the two distribution functions. On grid
points t_0 = 0 < ... < t_m = 1, with f_k the label-1 and g_k the label-0 mass of the
data at t_k, this is a linear program in mu, whose dual
    maximise sum_k f_k x_k + g_k z_k with |x_{k+1} - x_k| <= t_{k+1} - t_k, the same for
    z, and t_k x_k + (1 - t_k) z_k <= 0
is solved by `run_interior_point_and_get_gap_and_value`, or by HiGHS should that stall;
mu are the multipliers of the last constraints.
"""

from typing import NamedTuple

import numpy as np

from ._distance_compiled import (
    MASS_BALANCE_TOLERANCE,
    get_duality_gap_tolerance,
    move_to_grid_and_get_mean_distance,
    pool_scores_into_cells,
    run_interior_point_and_get_gap_and_value,
)

# Larger numbers of scores are pooled into so many cells.
MAX_SCORE_CELLS = 160
# Steps of the grid on [0, 1].
MIN_GRID_STEPS = 64
# Points nearer to each other than this are treated as one.
POINT_TOLERANCE = 1e-12
# The solver usually takes 10 to 25.
MAX_INTERIOR_POINT_STEPS = 200


class DistanceProgram(NamedTuple):
    """Points of [0, 1] with both ends, and the masses of the labels at each.

    The masses of label 1 and of label 0 have the sum 1 in all.

    `mean_move` is the mean distance between the scores and the points that carry their
    mass.
    """

    grid: np.ndarray
    ones: np.ndarray
    zeros: np.ndarray
    mean_move: float


class DistanceSolution(NamedTuple):
    """The optimum, the nearest calibrated prediction, and the dual solution.

    mu is the distribution of the prediction; x and z solve the dual.
    """

    value: float
    distribution: np.ndarray
    prices: np.ndarray


def make_distance_program_on_scores(score, ones, zeros):
    """Return the program on the scores themselves.

    Multiples of 1 / `MIN_GRID_STEPS` are added if no score is near.

    No gap is wider than 1 / `MIN_GRID_STEPS`. More than `MAX_SCORE_CELLS` scores, which
    increase, are pooled to their means: in cells with equal sums of sqrt(mass gap) over
    the gaps inside, the density for which mass times width is least in all.
    """
    # The program has one variable per grid point. `mean_move` bounds what pooling the
    # scores can change.
    if len(score) > MAX_SCORE_CELLS:
        return _make_pooled_program(score, ones, zeros)
    grid, indices = _make_score_grid_and_indices(score)
    return _make_grid_program(score, ones, zeros, grid, indices)


def _make_pooled_program(score, ones, zeros):
    """Make the program of `MAX_SCORE_CELLS` cells, with the mean move of rows to their cells."""
    starts = np.zeros(MAX_SCORE_CELLS + 1, np.intp)
    sums = np.zeros((MAX_SCORE_CELLS, 2))
    n_cells = pool_scores_into_cells(score, ones, zeros, MAX_SCORE_CELLS, starts, sums)
    starts = starts[: n_cells + 1]
    mass, centre = sums[:n_cells].T
    centre = np.divide(centre, mass, out=score[starts[:-1]], where=mass > 0)
    grid, indices = _make_score_grid_and_indices(centre)
    masses = np.zeros((2, len(grid)))
    mean_move = move_to_grid_and_get_mean_distance(
        score, ones, zeros, starts, indices, grid, *masses
    )
    return DistanceProgram(grid, *masses, mean_move)


def _make_score_grid_and_indices(scores):
    """Return the grid of these scores, and the index of each in it."""
    # The calibrated prediction may lie anywhere in [0, 1]; gaps between scores are
    # filled so that the grid costs at most half a step.
    steps = np.arange(MIN_GRID_STEPS + 1) / MIN_GRID_STEPS
    ends = np.concatenate([[0.0], scores, [1.0]])
    after = np.searchsorted(scores, steps) + 1
    is_in_gap = ends[after] - ends[after - 1] > 1 / MIN_GRID_STEPS
    steps = steps[is_in_gap | (steps == 0) | (steps == 1)]
    points = np.concatenate([scores, steps])
    order = np.argsort(points)
    new = np.diff(points[order], prepend=-1.0) > POINT_TOLERANCE
    indices = np.empty(len(points), np.intp)
    indices[order] = np.cumsum(new) - 1
    return points[order][new], indices[: len(scores)]


def make_uniform_program(score, ones, zeros, n_cells):
    """Return the program on the multiples of 1 / n_cells, each score at the nearest."""
    grid = np.linspace(0, 1, n_cells + 1)
    indices = np.rint(score * n_cells).astype(np.intp)
    return _make_grid_program(score, ones, zeros, grid, indices)


def _make_grid_program(score, ones, zeros, grid, indices):
    mean_move = float((ones + zeros) @ np.abs(score - grid[indices]))
    ones = np.bincount(indices, ones, len(grid))
    zeros = np.bincount(indices, zeros, len(grid))
    return DistanceProgram(grid, ones, zeros, mean_move)


def find_distance_distribution_and_prices(program):
    """Solve a `DistanceProgram`.

    The gap between primal and dual is at most 1e-9 of the value, or 1e-12.

    If rounding leaves more imbalance, to 1e-9.
    """
    grid = program.grid
    masses = np.stack([program.ones, program.zeros])
    if masses.any(axis=1).all():
        dual = _find_prices_and_distribution_if_solved(grid, masses)
        # The compiled solver eliminates from the left, so the mirrored problem loses
        # other digits and may succeed if the first attempt stalls. HiGHS solves the few
        # remaining problems. All three solve the same program; the order is one of
        # speed.
        if dual is None:
            mirrored_grid = (1 - grid)[::-1].copy()
            mirrored_masses = masses[::-1, ::-1].copy()
            mirrored = _find_prices_and_distribution_if_solved(
                mirrored_grid, mirrored_masses
            )
            if mirrored is None:
                dual = _find_prices_and_distribution_by_highs(grid, masses)
            else:
                dual = mirrored[0][::-1, ::-1], mirrored[1][::-1]
        prices, distribution = dual
    else:
        # With one label alone, every mass has its best place at that label's end.
        sign, end = (1, -1) if masses[0].any() else (-1, 0)
        prices = sign * np.stack([1 - grid, -grid])
        distribution = np.zeros(len(grid))
        distribution[end] = 1.0
    # The value is that of a primal solution that is moved exactly, hence an upper
    # bound, also if the solver stopped early.
    value = _compute_move_cost(program, distribution)
    return DistanceSolution(value, distribution, prices)


def _compute_move_cost(program, distribution):
    """Return the cost of moving the data onto a distribution.

    What rounding leaves of the totals moves by 1.
    """
    grid = program.grid
    ones_imbalance = grid * distribution - program.ones
    zeros_imbalance = (1 - grid) * distribution - program.zeros
    surplus = np.stack([ones_imbalance, zeros_imbalance]).cumsum(axis=1)
    distances = np.append(np.diff(grid), 1.0)
    return float((np.abs(surplus) @ distances).sum())


def _find_prices_and_distribution_if_solved(grid, masses):
    """Solve from a start where all products of pairs are alike; None if it stalls."""
    n = len(grid)
    gaps = np.diff(grid)[:, None]
    depth = 0.03
    label_rates = np.stack([grid, 1 - grid], axis=1)
    # The start splits the net flow of a uniform distribution into its two directions,
    # with a margin that makes all products of pairs similar.
    flow = np.cumsum(label_rates / n - masses.T, axis=0)[:-1]
    primal = np.zeros((n, 5))
    slack = np.ones((n, 5))
    primal[:, 0] = 1 / n
    slack[:, 0] = depth
    margin = depth / (n * gaps)
    primal[:-1, 1::2] = np.maximum(flow, 0) + margin
    primal[:-1, 2::2] = np.maximum(-flow, 0) + margin
    slack[:-1, 1:] = gaps
    prices = np.full((2, n), -depth)
    work = [np.zeros(shape) for shape in ((n, 5), (n, 5), (2, n), (2, n), (n, 7))]
    pairs = [table.ravel() for table in (primal, slack, *work[:2])]
    gap, value = run_interior_point_and_get_gap_and_value(
        grid, masses, prices, *pairs, primal, slack, *work, MAX_INTERIOR_POINT_STEPS
    )
    if gap <= get_duality_gap_tolerance(value) + MASS_BALANCE_TOLERANCE:
        return prices, primal[:, 0]
    return None


def _find_prices_and_distribution_by_highs(grid, masses):
    """Solve the program with HiGHS.

    The variables are the distribution and the flows of each label to the next point and
    back.
    """
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, diags, hstack, vstack

    n = len(grid)
    gaps = np.diff(grid)
    step = diags([np.ones(n - 1), -np.ones(n - 1)], [0, -1], shape=(n, n - 1))
    flows = block_diag([hstack([step, -step])] * 2)
    distribution = vstack([diags(grid), diags(1 - grid)])
    cost = np.concatenate([np.zeros(n), np.tile(gaps, 4)])
    solution = linprog(
        cost,
        A_eq=hstack([distribution, flows]).tocsr(),
        b_eq=masses.ravel(),
        method="highs",
    )
    if solution.status != 0:
        raise RuntimeError(
            f"lower_distance_to_calibration: expected a solved linear program, got HiGHS's "
            f"{solution.message!r}. Choose a coarser resolution."
        )
    return solution.eqlin.marginals.reshape(2, n), solution.x[:n]


def bound_grid_excess(program, solution):
    """Bound how far the optimum over all of [0, 1] is below that on the grid.

    Let x and z be linear between two points a and b. Then t x + (1 - t) z is the chord
    of its ends less (x' - z') (t - a) (b - t). Lowering x and z by its largest value
    makes them feasible everywhere, and lowers their objective by as much.
    """
    grid = program.grid
    x, z = solution.prices
    # Between two grid points the dual constraint bends by a parabola. Its largest
    # violation bounds what a finer grid could gain.
    slack = -(grid * x + (1 - grid) * z)
    left = slack[:-1]
    right = slack[1:]
    bend = np.maximum(np.diff(z - x) * np.diff(grid), 1e-300)
    position = np.clip(0.5 + (left - right) / (2 * bend), 0.0, 1.0)
    rest = 1 - position
    violation = bend * position * rest - left * rest - right * position
    above = float(violation.max())
    dual_value = float(program.ones @ x + program.zeros @ z)
    return max(solution.value - dual_value + above, 0.0)


def compute_upper_and_lower_distance(
    score, ones, zeros, n_cells, gap, max_iter=20_000, check_interval=25
):
    """Return an upper and a lower bound that are at most `gap` apart.

    The upper bound comes from a feasible coupling.

    `ones` and `zeros` are the label-1 and label-0 mass at each distinct score.

    The mass X[u, j] moves from column j, a pair (v_j, y_j) of mass q_j, to the
    calibrated prediction u. Columns sum to q exactly; that rows balance is a penalty
    with multipliers in [-1, 1],
        min_X max_l sum X[u, j] (|u - v_j| + l_u B[u, j]),  B = 1 - u where y_j = 1,
        else -u,
    solved by the extragradient method, entropic in X, to the requested gap or
    `max_iter`. Rounding (`_get_mass_with_surplus_at_ends`) removes an imbalance at no
    more than its penalty; any l gives a lower bound.
    """
    # Atoms without mass have no constraint and would make log(q) infinite.
    q = np.concatenate([ones, zeros])
    has_mass = q > 0
    v = np.tile(score, 2)[has_mass]
    q = q[has_mass]
    ones = np.repeat([True, False], len(score))[has_mass]
    u = np.linspace(0.0, 1.0, n_cells + 1)
    cost = np.abs(u[:, None] - v)
    balance = np.where(ones, 1 - u[:, None], -u[:, None])
    # The saddle point of Hu, Jambulapati, Tian, Yang (2024), section 4: entropic steps
    # in the coupling and Euclidean ones in the multipliers, whose ratio balances the
    # two geometries.
    problem = _DistanceSaddlePoint(cost, balance, np.log(q), ratio=float(len(u)))
    log_x, x, multipliers = problem.make_log_mass_mass_and_multipliers(q)
    sum_x = 0.0
    sum_l = 0.0
    total = 0.0
    step = 1.0
    upper = np.inf
    lower = -np.inf
    for iteration in range(1, max_iter + 1):
        step, half_x, half_l, log_x, x, multipliers = (
            problem.backtrack_extragradient_step(step, log_x, x, multipliers)
        )
        sum_x = sum_x + step * half_x
        sum_l = sum_l + step * half_l
        total += step
        step *= 1.2
        if iteration % check_interval == 0:
            # Averages converge with the proven rate, but the last iterate is often
            # better; any multipliers give a valid lower bound.
            for candidate in (sum_l / total, half_l):
                reduced = cost + candidate[:, None] * balance
                lower = max(lower, float(q @ reduced.min(axis=0)))
            for candidate in (sum_x / total, half_x):
                rounded = _get_mass_with_surplus_at_ends(candidate, u, ones, balance)
                upper = min(upper, float((cost * rounded).sum()))
            if upper - lower <= gap:
                break
        # The averages start anew, because early iterates are far from the solution.
        if iteration % (8 * check_interval) == 0:
            sum_x = 0.0
            sum_l = 0.0
            total = 0.0
    return upper, lower


class _DistanceSaddlePoint(NamedTuple):
    """The saddle point problem of the upper distance; `ratio` is of the two steps."""

    cost: np.ndarray
    balance: np.ndarray
    log_q: np.ndarray
    ratio: float

    def make_log_mass_mass_and_multipliers(self, q):
        n = len(self.cost)
        x = np.tile(q / n, (n, 1))
        return np.log(x), x, np.zeros(n)

    def backtrack_extragradient_step(self, step_size, log_x, x, multipliers):
        """Take a step, halved until its own test of convergence holds.

        The test is that of Nemirovski (2004).
        """
        slope_x, slope_l = self._compute_slopes(x, multipliers)
        while True:
            half_log, half_l = self._take_step(
                log_x, multipliers, slope_x, slope_l, step_size
            )
            half_x = np.exp(half_log)
            new_slope_x, new_slope_l = self._compute_slopes(half_x, half_l)
            new_log, new_l = self._take_step(
                log_x, multipliers, new_slope_x, new_slope_l, step_size
            )
            new_x = np.exp(new_log)
            # The condition under which the extragradient step is known to converge.
            # Testing it allows far longer steps than the global Lipschitz constant.
            gain = ((new_slope_x - slope_x) * (half_x - new_x)).sum()
            gain -= (new_slope_l - slope_l) @ (half_l - new_l)
            # Entropic in the coupling, Euclidean in the multipliers.
            distance = (new_x * (new_log - half_log)).sum()
            distance += (half_x * (half_log - log_x)).sum()
            square = ((new_l - half_l) ** 2).sum() + ((half_l - multipliers) ** 2).sum()
            distance += square / (2 * self.ratio)
            if gain * step_size <= distance + 1e-15 or step_size < 1e-6:
                return step_size, half_x, half_l, new_log, new_x, new_l
            step_size /= 2

    def _compute_slopes(self, x, m):
        return self.cost + m[:, None] * self.balance, (x * self.balance).sum(axis=1)

    def _take_step(self, log_x, m, slope_x, slope_l, step):
        log = log_x - step * slope_x
        # Each column of the coupling is a distribution times its mass q; the
        # log-sum-exp normalises it without overflow.
        top = log.max(axis=0)
        log = log - (top + np.log(np.exp(log - top).sum(axis=0))) + self.log_q
        return log, np.clip(m + step * self.ratio * slope_l, -1, 1)


def _get_mass_with_surplus_at_ends(x, u, ones, balance):
    """Return the mass, with surplus label 1 moved to u = 1 and label 0 to u = 0."""
    # Label-1 mass fits at u = 1 and label-0 mass at u = 0 without violating
    # calibration, so the rounded coupling is feasible: a rounding procedure in the
    # sense of definition 6 of Hu, Jambulapati, Tian, Yang (2024).
    surplus = (x * balance).sum(axis=1)
    tiny = np.finfo(float).tiny
    x = x.copy()
    for label, label_rate, target in ((ones, 1 - u, -1), (~ones, u, 0)):
        excess = np.maximum(surplus if target else -surplus, 0) / np.maximum(
            label_rate, tiny
        )
        held = x[:, label].sum(axis=1)
        moved_mass = (
            x[:, label] * np.minimum(excess / np.maximum(held, tiny), 1.0)[:, None]
        )
        x[:, label] -= moved_mass
        x[target, label] += moved_mass.sum(axis=0)
    return x
