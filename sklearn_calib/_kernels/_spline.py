"""Penalised logistic regression on natural cubic splines, the penalty by leave-one-out.

Green and Silverman (1994), chapter 2, in coordinates in which all penalties are
diagonal: a curve is f = c_0 + c_1 x + sum_j w_j g_j(x), with natural splines g_j
without a linear part over the knots and int g_i'' g_j'' = 1{i = j}. With h the gaps of
the knots, Q' takes values at the knots to second differences (b_{j+1} - b_j) / h_j -
(b_j - b_{j-1}) / h_{j-1}, and R, tridiagonal with (h_{j-1} + h_j) / 3 and h_j / 6,
takes second derivatives to the same: Q'b = R g (their eq. 2.4). So for R = CC' the
columns of C are the second differences of g_j, and those of C^-T its second
derivatives.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky_banded, lapack, solve_banded
from scipy.special import expit

from .._count_weights import are_counts
from ._binning import assign_values_to_bins, find_distinct_scores_and_index

# An infinite penalty leaves only the straight lines.
LINE_PENALTY = np.inf
_DEFAULT_PENALTIES = (LINE_PENALTY, *10.0 ** np.arange(4, -4.1, -0.5))
# With more coefficients a product of matrices is faster than the compiled loop.
_MAX_COMPILED_COEFFICIENTS = 40
# Five steps are already many.
_MAX_NEWTON_STEPS = 100
_PRIOR_GRID_SIZE = 101
# Points that are nearer, relative to the range, are one.
_SAME_POINT_RANGE_FRACTION = 1e-12
# A weaker penalty has to lower the loss by more than this.
_MIN_LOSS_GAIN = 1e-7


class SplineCurve(NamedTuple):
    """A cubic between knots, and straight lines outside.

    It is given by the values and slopes at the knots.
    """

    knots: np.ndarray
    # Of shape (n_knots,), or (n_knots, n_curves) for several curves.
    values: np.ndarray
    slopes: np.ndarray

    def __call__(self, x):
        """Return values at x, one row each."""
        knots, values, slopes = self
        left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
        width = knots[left + 1] - knots[left]
        inside = np.clip(x, knots[left], knots[left + 1])
        # Hermite's form of a cubic, from values and slopes at its knots; outside, the
        # curve continues as a line.
        t = (inside - knots[left]) / width
        beyond = x - inside
        shape = (-1,) + (1,) * (values.ndim - 1)
        rest = 1 - t
        square = t * t
        parts = (
            (rest * rest * (1 + 2 * t), values, left),
            (square * (3 - 2 * t), values, left + 1),
            (width * t * rest * rest + np.minimum(beyond, 0), slopes, left),
            (-width * square * rest + np.maximum(beyond, 0), slopes, left + 1),
        )
        return sum(weight.reshape(shape) * table[rows] for weight, table, rows in parts)


class LabelWeightsByScore(NamedTuple):
    """Labels at sorted distinct scores.

    Rows 0 and 1 of the tables are for the labels 0 and 1.

    Invented points of the prior are fitted but not scored, hence two tables of weights.
    """

    x: np.ndarray
    # The weights that are fitted, of shape (2, n_cells).
    mass: np.ndarray
    # The weights that count in the leave-one-out loss, of shape (2, n_cells).
    scored_weight: np.ndarray
    # The weight of one row, of shape (2, n_cells).
    unit_weight: np.ndarray


class SplineFit(NamedTuple):
    curve: SplineCurve
    # The factor of the integral of f''^2; infinite for a straight line.
    penalty: float
    # The effective degrees of freedom, including the two of the line.
    edf: float
    # The approximate leave-one-out log loss, a mean over the weights.
    leave_one_out_loss: float
    # The log loss, a sum over the weights.
    loss: float


def make_natural_basis(knots) -> SplineCurve:
    """Return 1, x and g_j of the module's text as one `SplineCurve`.

    There are two or more knots.
    """
    gaps = np.diff(knots)
    ones = np.ones_like(knots)
    count = len(knots) - 2
    if count == 0:
        values = np.column_stack([ones, knots])
        slopes = np.column_stack([0 * ones, ones])
        return SplineCurve(knots, values, slopes)
    R = np.stack([(gaps[:-1] + gaps[1:]) / 3, np.append(gaps[1:-1], 0.0) / 6])
    factor = cholesky_banded(R, lower=True, check_finite=False)
    # C: changes of the secants
    # The columns of C are the second differences of the basis functions, so cumulative
    # sums give their secants and values.
    jumps = np.diag(factor[0]) + np.diag(factor[1, :-1], -1)
    upper = np.stack([np.append(0.0, factor[1, :-1]), factor[0]])
    second = np.zeros((len(knots), count))
    second[1:-1] = solve_banded((0, 1), upper, np.eye(count), check_finite=False)
    secants = np.vstack([np.zeros(count), np.cumsum(jumps, axis=0)])
    values = np.vstack([np.zeros(count), np.cumsum(gaps[:, None] * secants, axis=0)])
    centred = knots - knots.mean()
    tilt = centred @ values / (centred @ centred)
    # Removing the line makes the basis functions orthogonal to 1 and x over the knots.
    values -= values.mean(axis=0) + np.outer(centred, tilt)
    secants -= tilt
    wide = gaps[:, None]
    slopes = secants - wide * (2 * second[:-1] + second[1:]) / 6
    last = secants[-1] + gaps[-1] * second[-2] / 6
    slopes = np.vstack([slopes, last])
    values = np.column_stack([ones, knots, values])
    slopes = np.column_stack([0 * ones, ones, slopes])
    return SplineCurve(knots, values, slopes)


def make_spline_cells(score, y_encoded, weight):
    """Return the cells of the distinct scores.

    Of weights that are whole numbers a row weighs 1; of others what the rows of its
    label weigh at its score, the mean weighted by the weights themselves.
    """
    values, index = find_distinct_scores_and_index(score)
    index *= 2
    index += y_encoded
    size = 2 * len(values)
    mass = np.bincount(index, weight, size)
    unit_weight = np.ones(size)
    if not are_counts(weight):
        squares = np.bincount(index, weight * weight, size)
        np.divide(squares, mass, out=unit_weight, where=mass > 0)
    mass = mass.reshape(-1, 2).T
    unit_weight = unit_weight.reshape(-1, 2).T
    return LabelWeightsByScore(values, mass, mass, unit_weight)


def coarsen_cells(cells, max_cells):
    """Return at most `max_cells` cells of about equal mass, each at its mean."""
    if len(cells.x) <= max_cells:
        return cells
    total = cells.mass.sum(axis=0)
    number = assign_values_to_bins(cells.x, total, max_cells, "quantile")
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    mass = np.add.reduceat(cells.mass, starts, axis=1)
    scored_weight = np.add.reduceat(cells.scored_weight, starts, axis=1)
    square = np.add.reduceat(cells.unit_weight * cells.mass, starts, axis=1)
    unit_weight = np.divide(square, mass, out=np.ones_like(mass), where=mass > 0)
    x = np.add.reduceat(cells.x * total, starts) / mass.sum(axis=0)
    return LabelWeightsByScore(x, mass, scored_weight, unit_weight)


def add_prior_points(cells, prior):
    """Add 101 points over the cells' range whose labels confirm the score, not scored.

    A point on a cell joins it: one before or behind would not be so when the classes
    are swapped.
    """
    if prior == 0:
        return cells
    low, high = cells.x[[0, -1]]
    grid = np.linspace(low, high, _PRIOR_GRID_SIZE)
    # The mean with the mirrored grid is exactly symmetric: swapping the classes turns
    # the grid into -grid.
    grid = (grid - np.linspace(-high, -low, _PRIOR_GRID_SIZE)[::-1]) / 2
    mass = prior / _PRIOR_GRID_SIZE * np.stack([expit(-grid), expit(grid)])
    order = np.argsort(x := np.append(cells.x, grid), kind="stable")
    starts = np.append(
        True, np.diff(x[order]) > _SAME_POINT_RANGE_FRACTION * (high - low)
    )
    index = np.empty(len(x), dtype=np.intp)
    index[order] = np.cumsum(starts) - 1
    size = index.max() + 1
    cell_index = index[: len(cells.x)]
    joined = np.zeros((2, size))
    scored_weight = np.zeros((2, size))
    unit_weight = np.ones((2, size))
    scored_weight[:, cell_index] = cells.scored_weight
    unit_weight[:, cell_index] = cells.unit_weight
    for label in range(2):
        added = np.append(cells.mass[label], mass[label])
        joined[label] = np.bincount(index, added, size)
    points = np.empty(size)
    # If a cell and a point of the grid coincide, the cell's value is kept.
    points[index[::-1]] = x[::-1]
    return LabelWeightsByScore(points, joined, scored_weight, unit_weight)


def choose_knots(x, mass, count):
    """Return weighted quantiles (j - 1/2) / count of sorted x.

    They are at least two, and 1e-3 standard deviations or more apart.
    """
    # Knots at quantiles put flexibility where the rows are.
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    wanted = np.interp((np.arange(count) + 0.5) / count, middle, x)
    mean = mass @ x / mass.sum()
    # Knots closer than this would make the basis nearly singular.
    near = 1e-3 * np.sqrt(mass @ (x - mean) ** 2 / mass.sum())
    chosen = [wanted[0]]
    for knot in wanted[1:]:
        if knot - chosen[-1] > near:
            chosen.append(knot)
    return np.array(chosen) if len(chosen) > 1 else chosen[0] + np.array([-0.5, 0.5])


def fit_spline(
    cells, knots, *, identity_ridge=1.0, penalties=None, coarse_cells=None
) -> SplineFit:
    """Return the penalised fit by the best of several penalties.

    Parameters
    ----------
    cells : LabelWeightsByScore
    knots : ndarray of shape (n_knots,), at least 2
    identity_ridge : float or ndarray of shape (2,)
        Factor of half the squared distance of the straight part from the identity, or
        one for the intercept and one for the slope.
    penalties : sequence of float, default=None
        Factors of half the integral of f''^2, tried in this order. By default
        `LINE_PENALTY` and 17 values in proportion to the cube of the range of the
        knots.
    coarse_cells : LabelWeightsByScore, default=None
        Those by which the penalty is chosen, if not by `cells`.

    Returns
    -------
    best : SplineFit
        A penalty wins against those before it by at least 1e-7 nats of the
        leave-one-out loss.
    """
    if penalties is None:
        # The integral of f''^2 has the unit of 1 / x^3, so penalties are stated
        # relative to the range of the scores.
        scale = (knots[-1] - knots[0]) ** 3 / len(knots)
        # Two knots make a line, whatever the penalty.
        n_penalties = None if len(knots) > 2 else 1
        penalties = [scale * penalty for penalty in _DEFAULT_PENALTIES[:n_penalties]]
    basis = make_natural_basis(knots)
    theta = np.zeros(len(knots))
    theta[1] = 1.0
    task = _CellSplineFitter(
        basis, cells if coarse_cells is None else coarse_cells, identity_ridge
    )
    best = task.fit_best_penalty(
        penalties, theta, 1e-12 if len(penalties) > 1 else 1e-14
    )
    if coarse_cells is None:
        return best
    if coarse_cells is not cells:
        task = _CellSplineFitter(basis, cells, identity_ridge)
    return task.fit_best_penalty([best.penalty], theta, 1e-14)


class _CellSplineFitter:
    """Fits of the same cells by several penalties."""

    def __init__(self, basis, cells, identity_ridge):
        self.basis = basis
        self.cells = cells
        self.pull = identity_ridge
        self.design = np.ascontiguousarray(basis(cells.x).T)
        self.mass = cells.mass.sum(axis=0)
        self.ones = cells.mass[1].copy()
        self.scored_weight = float(cells.scored_weight.sum())
        n_free, n_cells = self.design.shape
        self.tables = np.empty((2, 4, n_cells))
        self.row = np.empty(n_cells)
        self.vectors = np.empty((3, n_free))

    def fit_best_penalty(self, penalties, start, precision):
        """Return the best fit; each penalty is fitted from the one before it."""
        from ._spline_path import sum_left_out_losses

        theta = start.copy()
        best = None
        for penalty in penalties:
            free = 2 if penalty == LINE_PENALTY else len(theta)
            ridge = np.full(free, penalty)
            # The first two coefficients are the line, which is drawn to the identity;
            # the others are the curvature.
            ridge[:2] = self.pull
            theta[:free], loss, tables = self.find_coef_loss_and_cell_tables(
                ridge, theta[:free], precision
            )
            cells = self.cells
            loss_sum = sum_left_out_losses(
                cells.scored_weight, cells.unit_weight, tables
            )
            left_out_loss = loss_sum / self.scored_weight
            if best is None or left_out_loss < best.leave_one_out_loss - _MIN_LOSS_GAIN:
                # The trace of the smoother matrix.
                edf = float(self.mass @ (tables[3] * tables[2]))
                values = self.basis.values @ theta
                slopes = self.basis.slopes @ theta
                curve = SplineCurve(self.basis.knots, values, slopes)
                best = SplineFit(curve, float(penalty), edf, left_out_loss, loss)
        return best

    def find_coef_loss_and_cell_tables(self, ridge, start, precision):
        """Minimise by Newton's method with halving.

        Returns the coefficients, the loss and the tables of the cells.

        It ends when half the decrement, the distance from the minimum, is below this
        share of it.
        """
        from . import _spline_path as path

        free = len(ridge)
        mass = self.mass
        ones = self.ones
        design = self.design[:free]
        scale, gradient, step = self.vectors[:, :free]
        square = np.empty((free, free))
        tables, trial = self.tables
        theta = start.copy()
        loss, objective = path.fill_tables_and_get_loss_and_ridge_loss(
            design, mass, ones, ridge, theta, tables
        )
        for _ in range(_MAX_NEWTON_STEPS):
            if free <= _MAX_COMPILED_COEFFICIENTS:
                path.fill_lower_hessian(design, mass, tables, self.row, square)
            else:
                square = (design * (mass * tables[2])) @ design.T
            decrement = path.fill_newton_step_and_get_decrement(
                design, mass, ones, tables, theta, ridge, square, scale, gradient, step
            )
            if not decrement >= 0:
                raise np.linalg.LinAlgError(
                    "a matrix of second derivatives that is not definite"
                )
            if decrement / 2 <= precision * (1 + abs(objective)):
                break
            length = 1.0
            candidate = theta + step
            losses = path.fill_tables_and_get_loss_and_ridge_loss(
                design, mass, ones, ridge, candidate, trial
            )
            while (
                length >= 1e-12
                and not losses[1] <= objective - 1e-4 * length * decrement
            ):
                length *= 0.5
                candidate = theta + length * step
                losses = path.fill_tables_and_get_loss_and_ridge_loss(
                    design, mass, ones, ridge, candidate, trial
                )
            if length < 1e-12:
                # No progress is possible in floating point.
                break
            # The tables of the accepted step become current, and the old ones are
            # overwritten next: no allocation in the loop.
            theta = candidate
            loss, objective = losses
            tables, trial = trial, tables
        tables[3] = _compute_cell_leverages(design, square, scale)
        return theta, loss, tables


def _compute_cell_leverages(design, lower, scale):
    """Return b'H^-1 b of each cell's column b, from the factor of the scaled H."""
    half = (lapack.dtrtri(lower, lower=1)[0] / scale) @ design
    half *= half
    return half.sum(axis=0)


def make_increasing(curve, cells, project):
    """Return the curve with increasing values, and slopes that keep it monotone.

    `project` is an isotonic regression, ``project(values, sample_weight=)``; a knot
    weighs what the curvatures of the likelihood near it do. A cubic whose slopes at
    both ends are between 0 and 3 times its secant is monotone (Fritsch and Carlson
    1980, section 3).
    """
    knots = curve.knots
    eta = curve(cells.x)
    # The projection weighs knots by the information that the rows near them have.
    weight = cells.mass.sum(axis=0) * expit(eta) * expit(-eta)
    position = np.interp(cells.x, knots, np.arange(len(knots)))
    left = np.minimum(position.astype(np.intp), len(knots) - 2)
    right_weight = weight * (position - left)
    weight = np.bincount(left, weight - right_weight, len(knots))
    weight += np.bincount(left + 1, right_weight, len(knots))
    values = project(curve.values, sample_weight=weight + 1e-12 * weight.sum())
    secants = np.diff(values) / np.diff(knots)
    min_secants = np.minimum(np.append(secants, np.inf), np.append(np.inf, secants))
    return curve._replace(
        # Fritsch and Carlson's sufficient condition: slopes of at most three times the
        # smaller secant keep a cubic monotone.
        values=values,
        slopes=np.clip(curve.slopes, 0.0, 3 * min_secants),
    )
