"""Penalised logistic regression on natural cubic splines, the penalty by leave-one-out.

Green and Silverman (1994), chapter 2, in coordinates in which all penalties are diagonal: a curve
is f = c_0 + c_1 x + sum_j w_j g_j(x), with natural splines g_j without a linear part over the knots
and int g_i'' g_j'' = 1{i = j}. With h the gaps of the knots, Q' takes values at the knots to second
differences (b_{j+1} - b_j) / h_j - (b_j - b_{j-1}) / h_{j-1}, and R, tridiagonal with (h_{j-1} +
h_j) / 3 and h_j / 6, takes second derivatives to the same: Q'b = R g (their eq. 2.4). So for R =
CC' the columns of C are the second differences of g_j, and those of C^-T its second derivatives.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky_banded, lapack, solve_banded
from scipy.special import expit

from .._count_weights import are_counts
from ._binning import bin_distinct_values, find_distinct

LINE = np.inf  # the penalty that leaves the straight lines
_PENALTIES = (LINE, *10.0 ** np.arange(4, -4.1, -0.5))
_FEW = 40  # coefficients; of more a product of matrices is faster
_NEWTON_STEPS = 100  # five are many
_PRIOR_POINTS = 101
_SAME = 1e-12  # of the range: points that are nearer are one
_WIN = 1e-7  # by less a weaker penalty does not win


class SplineCurve(NamedTuple):
    """A cubic between knots, given by values and slopes there; straight lines outside."""

    knots: np.ndarray
    values: np.ndarray  # shape (n_knots,) or, for several curves, (n_knots, n_curves)
    slopes: np.ndarray

    def __call__(self, x):
        """Values at x, one row each."""
        knots, values, slopes = self
        left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
        width = knots[left + 1] - knots[left]
        inside = np.clip(x, knots[left], knots[left + 1])
        t = (inside - knots[left]) / width
        beyond = x - inside
        shape = (-1,) + (1,) * (values.ndim - 1)
        rest, square = 1 - t, t * t
        parts = (
            (rest * rest * (1 + 2 * t), values, left),
            (square * (3 - 2 * t), values, left + 1),
            (width * t * rest * rest + np.minimum(beyond, 0), slopes, left),
            (-width * square * rest + np.maximum(beyond, 0), slopes, left + 1),
        )
        return sum(weight.reshape(shape) * table[rows] for weight, table, rows in parts)


class SplineCells(NamedTuple):
    """Labels at sorted distinct scores. Rows 0 and 1 of the tables are for the labels 0 and 1."""

    x: np.ndarray
    mass: np.ndarray  # weights that are fitted, shape (2, n_cells)
    scored: np.ndarray  # weights that count in leave-one-out, shape (2, n_cells)
    unit: np.ndarray  # what one row weighs, shape (2, n_cells)


class SplineFit(NamedTuple):
    curve: SplineCurve
    penalty: float  # of int f''^2; infinite for a straight line
    edf: float  # effective degrees of freedom, the line's included
    loo: float  # approximate leave-one-out log loss, mean over the weights
    loss: float  # log loss, sum over the weights


def natural_basis(knots):
    """The curves 1, x and g_j of the module's text, from at least two knots: one `SplineCurve`."""
    gaps = np.diff(knots)
    ones, count = np.ones_like(knots), len(knots) - 2
    if count == 0:
        return SplineCurve(knots, np.column_stack([ones, knots]), np.column_stack([0 * ones, ones]))
    R = np.stack([(gaps[:-1] + gaps[1:]) / 3, np.append(gaps[1:-1], 0.0) / 6])
    factor = cholesky_banded(R, lower=True, check_finite=False)
    jumps = np.diag(factor[0]) + np.diag(factor[1, :-1], -1)  # C: changes of the secants
    upper = np.stack([np.append(0.0, factor[1, :-1]), factor[0]])
    second = np.zeros((len(knots), count))
    second[1:-1] = solve_banded((0, 1), upper, np.eye(count), check_finite=False)
    secants = np.vstack([np.zeros(count), np.cumsum(jumps, axis=0)])
    values = np.vstack([np.zeros(count), np.cumsum(gaps[:, None] * secants, axis=0)])
    centred = knots - knots.mean()
    tilt = centred @ values / (centred @ centred)
    values -= values.mean(axis=0) + np.outer(centred, tilt)
    secants -= tilt
    wide = gaps[:, None]
    slopes = secants - wide * (2 * second[:-1] + second[1:]) / 6
    last = secants[-1] + gaps[-1] * second[-2] / 6
    return SplineCurve(
        knots,
        np.column_stack([ones, knots, values]),
        np.column_stack([0 * ones, ones, np.vstack([slopes, last])]),
    )


def cells_of(score, codes, weight):
    """The distinct scores.

    Of weights that are whole numbers a row weighs 1; of others what the rows of its label weigh at
    its score, the mean weighted by the weights themselves.
    """
    values, row_value = find_distinct(score)
    place, size = 2 * row_value + codes, 2 * len(values)
    mass = np.bincount(place, weight, size)
    unit = np.ones(size)
    if not are_counts(weight):
        np.divide(np.bincount(place, weight * weight, size), mass, out=unit, where=mass > 0)
    mass, unit = mass.reshape(-1, 2).T, unit.reshape(-1, 2).T
    return SplineCells(values, mass, mass, unit)


def coarser(cells, most):
    """No more than `most` cells, of about equal mass, each at its mean."""
    if len(cells.x) <= most:
        return cells
    total = cells.mass.sum(axis=0)
    number = bin_distinct_values(cells.x, total, most, "quantile")
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    mass, scored = (np.add.reduceat(table, starts, axis=1) for table in cells[1:3])
    square = np.add.reduceat(cells.unit * cells.mass, starts, axis=1)
    unit = np.divide(square, mass, out=np.ones_like(mass), where=mass > 0)
    x = np.add.reduceat(cells.x * total, starts) / mass.sum(axis=0)
    return SplineCells(x, mass, scored, unit)


def with_prior(cells, prior):
    """The cells and 101 points over their range whose labels confirm the score, not scored.

    A point on a cell joins it: one before or behind would not be so when the classes are swapped.
    """
    if prior == 0:
        return cells
    low, high = cells.x[[0, -1]]
    grid = np.linspace(low, high, _PRIOR_POINTS)
    grid = (grid - np.linspace(-high, -low, _PRIOR_POINTS)[::-1]) / 2  # swapped classes: -grid
    mass = prior / _PRIOR_POINTS * np.stack([expit(-grid), expit(grid)])
    order = np.argsort(x := np.append(cells.x, grid), kind="stable")
    starts = np.append(True, np.diff(x[order]) > _SAME * (high - low))
    place = np.empty(len(x), dtype=np.intp)
    place[order] = np.cumsum(starts) - 1
    size, own = place.max() + 1, place[: len(cells.x)]
    joined, scored, unit = np.zeros((2, size)), np.zeros((2, size)), np.ones((2, size))
    scored[:, own], unit[:, own] = cells.scored, cells.unit
    for label in range(2):
        added = np.append(cells.mass[label], mass[label])
        joined[label] = np.bincount(place, added, size)
    points = np.empty(size)
    points[place[::-1]] = x[::-1]  # of a cell and a point the cell's
    return SplineCells(points, joined, scored, unit)


def spread_knots(x, mass, count):
    """Weighted quantiles (j - 1/2) / count of sorted x: at least two, 1e-3 sd or more apart."""
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    wanted = np.interp((np.arange(count) + 0.5) / count, middle, x)
    mean = mass @ x / mass.sum()
    near = 1e-3 * np.sqrt(mass @ (x - mean) ** 2 / mass.sum())
    kept = [wanted[0]]
    for knot in wanted[1:]:
        if knot - kept[-1] > near:
            kept.append(knot)
    return np.array(kept) if len(kept) > 1 else kept[0] + np.array([-0.5, 0.5])


def fit_spline(cells, knots, *, pull=1.0, penalties=None, few=None):
    """The penalised fit by the best of several penalties.

    Parameters
    ----------
    cells : SplineCells
    knots : ndarray of shape (n_knots,), at least 2
    pull : float or ndarray of shape (2,)
        Factor of half the squared distance of the straight part from the identity, or one for the
        intercept and one for the slope.
    penalties : sequence of float, default=None
        Factors of half the integral of f''^2, tried in this order. By default `LINE` and 17 values
        in proportion to the cube of the range of the knots.
    few : SplineCells, default=None
        Those by which the penalty is chosen, if not by `cells`.

    Returns
    -------
    best : SplineFit
        A penalty wins against those before it by at least 1e-7 nats of the leave-one-out loss.
    """
    if penalties is None:
        scale = (knots[-1] - knots[0]) ** 3 / len(knots)
        penalties = [scale * penalty for penalty in _PENALTIES[: None if len(knots) > 2 else 1]]
    basis, theta = natural_basis(knots), np.zeros(len(knots))
    theta[1] = 1.0
    task = _Task(basis, cells if few is None else few, pull)
    best = task.best(penalties, theta, 1e-12 if len(penalties) > 1 else 1e-14)
    if few is None:
        return best
    if few is not cells:
        task = _Task(basis, cells, pull)
    return task.best([best.penalty], theta, 1e-14)


class _Task:
    """Fits of the same cells by several penalties."""

    def __init__(self, basis, cells, pull):
        self.basis, self.cells, self.pull = basis, cells, pull
        self.design = np.ascontiguousarray(basis(cells.x).T)
        self.mass, self.ones = cells.mass.sum(axis=0), cells.mass[1].copy()
        self.scored = float(cells.scored.sum())
        n_free, n_cells = self.design.shape
        self.tables, self.row = np.empty((2, 4, n_cells)), np.empty(n_cells)
        self.vectors = np.empty((3, n_free))

    def best(self, penalties, start, precision):
        """The best of the penalties, each fitted from the one before it."""
        from ._spline_path import left_out

        theta, best = start.copy(), None
        for penalty in penalties:
            free = 2 if penalty == LINE else len(theta)
            ridge = np.full(free, penalty)
            ridge[:2] = self.pull
            theta[:free], loss, tables = self.minimum(ridge, theta[:free], precision)
            loo = left_out(self.cells.scored, self.cells.unit, tables) / self.scored
            if best is None or loo < best.loo - _WIN:
                edf = float(self.mass @ (tables[3] * tables[2]))
                values, slopes = self.basis.values @ theta, self.basis.slopes @ theta
                curve = SplineCurve(self.basis.knots, values, slopes)
                best = SplineFit(curve, float(penalty), edf, loo, loss)
        return best

    def minimum(self, ridge, start, precision):
        """Newton's method with halving: the coefficients, the loss, the tables of the cells.

        It ends where half the decrement, the distance from the minimum, is below this share of it.
        """
        from . import _spline_path as path

        free, mass, ones = len(ridge), self.mass, self.ones
        design, (scale, gradient, step) = self.design[:free], self.vectors[:, :free]
        square, (tables, trial) = np.empty((free, free)), self.tables
        theta = start.copy()
        loss, objective = path.evaluate(design, mass, ones, ridge, theta, tables)
        for _ in range(_NEWTON_STEPS):
            if free <= _FEW:
                path.curvature(design, mass, tables, self.row, square)
            else:
                square = (design * (mass * tables[2])) @ design.T
            decrement = path.downhill(
                design, mass, ones, tables, theta, ridge, square, scale, gradient, step
            )
            if not decrement >= 0:
                raise np.linalg.LinAlgError("a matrix of second derivatives that is not definite")
            if decrement / 2 <= precision * (1 + abs(objective)):
                break
            length, moved = 1.0, theta + step
            found = path.evaluate(design, mass, ones, ridge, moved, trial)
            while length >= 1e-12 and not found[1] <= objective - 1e-4 * length * decrement:
                length *= 0.5
                moved = theta + length * step
                found = path.evaluate(design, mass, ones, ridge, moved, trial)
            if length < 1e-12:
                break  # no progress is possible in floating point
            theta, (loss, objective) = moved, found
            tables, trial = trial, tables
        tables[3] = _leverages(design, square, scale)
        return theta, loss, tables


def _leverages(design, lower, scale):
    """b'H^-1 b of each cell's column b, from the factor of the scaled H."""
    half = (lapack.dtrtri(lower, lower=1)[0] / scale) @ design
    half *= half
    return half.sum(axis=0)


def rising(curve, cells, project):
    """The curve with rising values, and slopes small enough for it to rise between the knots.

    `project` is an isotonic regression, ``project(values, sample_weight=)``; a knot weighs what the
    curvatures of the likelihood near it do. A cubic whose slopes at both ends are between 0 and 3
    times its secant is monotone (Fritsch and Carlson 1980, section 3).
    """
    knots, eta = curve.knots, curve(cells.x)
    weight = cells.mass.sum(axis=0) * expit(eta) * expit(-eta)
    place = np.interp(cells.x, knots, np.arange(len(knots)))
    left = np.minimum(place.astype(np.intp), len(knots) - 2)
    share = weight * (place - left)
    weight = np.bincount(left, weight - share, len(knots))
    weight += np.bincount(left + 1, share, len(knots))
    values = project(curve.values, sample_weight=weight + 1e-12 * weight.sum())
    secants = np.diff(values) / np.diff(knots)
    least = np.minimum(np.append(secants, np.inf), np.append(np.inf, secants))
    return curve._replace(values=values, slopes=np.clip(curve.slopes, 0.0, 3 * least))
