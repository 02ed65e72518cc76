"""Logistic likelihoods of a stream from whole numbers per cell of log-odds.

Rows that come one by one are counted in cells of their log-odds: rows, events, and the
sums of the places within the cell, of their squares, and of those of the events. All
are whole numbers, so they are the same in every bit for all batches and orders. The
likelihood of sigmoid(shift + slope * log-odds) follows from them: that of the events
without loss, that of all rows as if each cell were two atoms of the same mean and
variance.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, expit, log_expit

from .._typing import AnyArray, FloatArray, IntArray
from ._logistic_grid import LineGrid
from ._newton import minimise_by_newton

# Log-odds beyond this are counted here.
_MAX_ABS_LOG_ODDS = 700.0
# A position within a cell is rounded to such a fraction of its width.
_POSITIONS_PER_CELL = 4096
# The standard deviations of shift and slope in the mixture, around 0 and 1.
_SHIFT_SLOPE_PRIOR_SCALES = np.array([1.0, 0.5])
_IDENTITY_LINE = np.array([0.0, 1.0])
_N_REGION_RAYS = 256
# A shift or slope beyond half of it is reported as infinite.
_SHIFT_OR_SLOPE_SEARCH_LIMIT = 100.0


class LogOddsCellGrid:
    """Cells of log-odds z with a width in proportion to sqrt(z^2 + 4).

    A fixed grid for rows that come one by one, so that sums do not depend on their
    order.

    Parameters
    ----------
    fineness : int
        Cells for each unit of log-odds near 0, times 2.
    """

    def __init__(self, fineness: int) -> None:
        self.fineness = fineness
        # Cells are equally wide in arcsinh(z / 2): about constant near 0, where
        # probabilities change fast, and in proportion to z in the tails.
        self.max_index = round(fineness * float(np.arcsinh(_MAX_ABS_LOG_ODDS / 2)))
        self.n_cells = 2 * self.max_index + 1
        edge_index = np.arange(self.n_cells + 1) - self.max_index - 0.5
        self.edges = 2 * np.sinh(edge_index / fineness)
        centre_index = np.arange(self.n_cells) - self.max_index
        self.centre = 2 * np.sinh(centre_index / fineness)
        self.width = np.diff(self.edges)

    def sum_row_moments_by_part_and_cell(
        self, log_odds: FloatArray, outcome: AnyArray, part: IntArray, n_parts: int
    ) -> IntArray:
        """Count the rows of each part in whole numbers; shape (n_parts, 5, n_cells)."""
        near = np.clip(log_odds, -_MAX_ABS_LOG_ODDS, _MAX_ABS_LOG_ODDS)
        cell = np.rint(self.fineness * np.arcsinh(near / 2)).astype(np.intp)
        cell += self.max_index
        # Positions within a cell are integers, so their sums do not depend on the order
        # or the batches of the rows.
        scale = _POSITIONS_PER_CELL / self.width[cell]
        position = np.rint((near - self.centre[cell]) * scale)
        cell += self.n_cells * part
        counts = np.empty((n_parts, 5, self.n_cells), dtype=np.int64)
        weights = (
            None,
            outcome,
            position,
            position * position,
            position * outcome,
        )
        for number, weight in enumerate(weights):
            sums = np.bincount(cell, weight, minlength=n_parts * self.n_cells)
            counts[:, number] = sums.reshape(n_parts, self.n_cells)
        return counts


FINE_LOG_ODDS_GRID = LogOddsCellGrid(16)
COARSE_LOG_ODDS_GRID = LogOddsCellGrid(4)


class LogOddsAtoms(NamedTuple):
    """Log-odds with their numbers of rows, and of events."""

    # This and `rows` have the shape (n_atoms,).
    log_odds: FloatArray
    rows: FloatArray
    # This and `events` have the shape (n_event_atoms,).
    event_log_odds: FloatArray
    events: FloatArray

    @property
    def event_count_and_log_odds_sum(self) -> FloatArray:
        """Return the number of events, and the sum of their log-odds."""
        return np.array([self.events.sum(), self.events @ self.event_log_odds])


def split_cells_into_atoms(counts: IntArray, cells: LogOddsCellGrid) -> LogOddsAtoms:
    """Return two atoms per cell with its mean and variance, of (5, n_cells) `counts`."""
    used = counts[0] > 0
    n, k, d, square, event_positions = counts[:, used].astype(np.float64)
    step = cells.width[used] / _POSITIONS_PER_CELL
    mean = d / n
    # Two atoms at mean +- standard deviation have the cell's first two moments. The
    # error of the likelihood is of third order in the width.
    half_distance = step * np.sqrt(np.maximum(square / n - mean * mean, 0.0))
    log_odds = cells.centre[used] + step * mean
    has_events = k > 0
    k = k[has_events]
    event_mean = step[has_events] * event_positions[has_events] / k
    event_log_odds = cells.centre[used][has_events] + event_mean
    half_event_distance = half_distance[has_events]
    return LogOddsAtoms(
        np.concatenate([log_odds - half_distance, log_odds + half_distance]),
        np.concatenate([n, n]) / 2,
        np.concatenate(
            [event_log_odds - half_event_distance, event_log_odds + half_event_distance]
        ),
        np.concatenate([k, k]) / 2,
    )


def compute_log_likelihood_gain(
    counts: LogOddsAtoms, shift: FloatArray, slope: FloatArray
) -> FloatArray:
    """Return the log-likelihood of each pair less that of the identity, in nats."""
    total, linear = counts.event_count_and_log_odds_sum
    pair = np.multiply.outer(slope, counts.log_odds) + np.asarray(shift)[..., None]
    # The events enter only through their number and the sum of their log-odds, the
    # sufficient statistics.
    event_part = total * np.asarray(shift) + linear * (np.asarray(slope) - 1.0)
    return event_part + (log_expit(-pair) - log_expit(-counts.log_odds)) @ counts.rows


def compute_log_likelihood_gain_by_line(
    counts: LogOddsAtoms, grid: LineGrid
) -> FloatArray:
    """Return the log-likelihood gain of each pair of a grid, in nats."""
    return compute_log_likelihood_gain(counts, grid.shift, grid.slope)


# -- fits -----------------------------------------------------------------------------------------


def fit_line_and_information(
    counts: LogOddsAtoms, precision: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the most probable (shift, slope), and the information there.

    The priors are normal around (0, 1). A `precision` of inf fixes a parameter at its
    prior mean.
    """
    free = np.isfinite(precision)
    finite_precision = np.where(free, precision, 0.0)
    basis = np.column_stack([np.ones_like(counts.log_odds), counts.log_odds])

    def evaluate_loss(theta) -> tuple[float, None]:
        penalty = 0.5 * finite_precision @ (theta - _IDENTITY_LINE) ** 2
        return penalty - float(compute_log_likelihood_gain(counts, *theta)), None

    def compute_derivatives(theta):
        """Return gradient and Hessian of the loss; fixed parameters have the identity."""
        p = expit(basis @ theta)
        pull = finite_precision * (theta - _IDENTITY_LINE)
        gradient = (
            basis.T @ (counts.rows * p) - counts.event_count_and_log_odds_sum + pull
        )
        information = _compute_information(basis, counts, p)
        prior_information = np.diag(np.where(free, finite_precision, 1.0))
        hessian = information * np.outer(free, free) + prior_information
        return gradient * free, hessian

    def find_step_and_decrement(theta, _):
        gradient, hessian = compute_derivatives(theta)
        step = -np.linalg.solve(hessian, gradient)
        return step, -gradient @ step

    theta = minimise_by_newton(
        evaluate_loss, find_step_and_decrement, _IDENTITY_LINE, 1e-13
    ).theta
    return theta, compute_derivatives(theta)[1]


def _compute_information(basis, counts, p):
    return basis.T @ (basis * (counts.rows * p * (1 - p))[:, None])


# -- a region that holds at every look ------------------------------------------------------------


def get_log_evidence_mode_and_covariance_root(
    counts: LogOddsAtoms,
) -> tuple[float, FloatArray, FloatArray]:
    """Return the log of the mean likelihood over normal shifts and slopes.

    Also returns the mode and a square root of the covariance.

    The sum over points of a regular lattice around the mode, which for a function this
    smooth is the integral; what lies outside the lattice is left out, which makes it
    smaller.

    Returns
    -------
    log_evidence : float
    mode : ndarray of shape (2,)
    root : ndarray of shape (2, 2)
        Of the covariance at the mode.
    """
    precision = _SHIFT_SLOPE_PRIOR_SCALES**-2.0
    mode, information = fit_line_and_information(counts, precision)
    root = np.linalg.cholesky(np.linalg.inv(information))
    # In standard deviations.
    side = np.arange(-6.0, 7.0)
    # The posterior is nearly normal, for which the trapezoid rule with a step of one
    # standard deviation converges fast.
    lattice = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    theta = mode + lattice @ root.T
    log = compute_log_likelihood_gain(counts, theta[:, 0], theta[:, 1])
    log = log - 0.5 * ((theta - _IDENTITY_LINE) ** 2) @ precision
    top = float(log.max())
    prior_volume = 2 * np.pi * float(np.prod(_SHIFT_SLOPE_PRIOR_SCALES))
    volume = abs(float(np.linalg.det(root))) / prior_volume
    log_evidence = top + float(np.log(np.exp(log - top).sum() * volume))
    return log_evidence, mode, root


def find_confidence_centre_and_border(
    counts: LogOddsAtoms, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return a centre and the border of the confidence region of shift and slope.

    The region {pairs: mean likelihood < their likelihood / (1 - level)} is convex.

    Returns
    -------
    centre : ndarray of shape (2,)
        A shift and a slope within.
    border : ndarray of shape (256, 2)
        In turn around the centre; infinite if it is beyond 50.
    """
    log, mode, root = get_log_evidence_mode_and_covariance_root(counts)
    # By Ville's inequality the mean likelihood exceeds 1 / (1 - level) times that of
    # the true pair with probability at most 1 - level, at any time.
    bound = log + np.log1p(-level)
    # If the truth is far from the prior, the mode is outside the region; the maximum of
    # the likelihood lies inside.
    if float(compute_log_likelihood_gain(counts, mode[0], mode[1])) < bound:
        mode, information = fit_line_and_information(counts, np.full(2, 1e-6))
        root = np.linalg.cholesky(np.linalg.inv(information))
    angle = 2 * np.pi * np.arange(_N_REGION_RAYS) / _N_REGION_RAYS
    direction = np.column_stack([np.cos(angle), np.sin(angle)]) @ root.T

    def are_lengths_inside_region(length):
        pairs = mode + length[:, None] * direction
        return compute_log_likelihood_gain(counts, pairs[:, 0], pairs[:, 1]) >= bound

    # The region can be unbounded, for instance before the first event.
    max_length = _SHIFT_OR_SLOPE_SEARCH_LIMIT / np.abs(direction).max(axis=1)
    low = np.zeros(_N_REGION_RAYS)
    high = np.minimum(1.0, max_length)
    going = are_lengths_inside_region(high)
    while going.any():
        low[going] = high[going]
        high[going] = np.minimum(2 * high[going], max_length[going])
        going &= (low < max_length) & are_lengths_inside_region(high)
    for _ in range(40):
        middle = (low + high) / 2
        within = are_lengths_inside_region(middle)
        low = np.where(within, middle, low)
        high = np.where(within, high, middle)
    border = mode + low[:, None] * direction
    is_far = np.abs(border) > _SHIFT_OR_SLOPE_SEARCH_LIMIT / 2
    return mode, np.where(is_far, np.copysign(np.inf, border), border)


def is_in_confidence_region(
    counts: LogOddsAtoms, level: float, shift: float, slope: float
) -> bool:
    """Return whether a pair is in the region."""
    log = get_log_evidence_mode_and_covariance_root(counts)[0]
    log_likelihood = float(
        compute_log_likelihood_gain(counts, np.float64(shift), np.float64(slope))
    )
    return bool(log_likelihood >= log + np.log1p(-level))


# -- the smallest repair -------------------------------------------------------------------------


def fit_shift_and_line_with_tests(
    counts: LogOddsAtoms, cells: LogOddsCellGrid
) -> tuple[FloatArray, FloatArray, float, float]:
    """Return the best shift alone, the best line, and score tests of what they leave.

    The bends are at the edges of cells that are nearest to the thirds of the rows.

    Returns
    -------
    offset, line : ndarray of shape (2,)
        Shift and slope; of the first, slope 1.
    pvalue_slope, pvalue_curvature : float
        P-values: that no slope is missing beside the shift; that no bends at the thirds
        of the rows are missing beside the line. 1 if the rows are not informative.
    """
    weak = np.full(2, 1e-4)
    offset = fit_line_and_information(counts, np.array([1e-4, np.inf]))[0]
    line = fit_line_and_information(counts, weak)[0]
    order = np.argsort(counts.log_odds, kind="stable")
    cumulated = np.cumsum(counts.rows[order])
    indices = np.searchsorted(cumulated, cumulated[-1] * np.array([1 / 3, 2 / 3]))
    # A piecewise linear curve with bends at the thirds of the rows is the alternative
    # to a line. Bends lie on cell edges, so that no cell is divided.
    thirds = counts.log_odds[order][np.minimum(indices, len(order) - 1)]
    bends = cells.edges[np.abs(cells.edges[:, None] - thirds).argmin(axis=0)]

    def make_hinge_basis(log_odds):
        columns = [np.ones_like(log_odds), log_odds]
        for bend in bends:
            columns.append(np.maximum(log_odds - bend, 0))
        return np.column_stack(columns)

    row_basis = make_hinge_basis(counts.log_odds)
    event_basis = make_hinge_basis(counts.event_log_odds)
    pvalue_slope = _compute_score_test_p_value(
        counts,
        row_basis[:, :2],
        event_basis[:, :2],
        offset,
        1,
    )
    pvalue_curvature = _compute_score_test_p_value(
        counts, row_basis, event_basis, line, 2
    )
    return offset, line, pvalue_slope, pvalue_curvature


def _compute_score_test_p_value(
    counts: LogOddsAtoms,
    row_basis: Any,
    event_basis: Any,
    theta: FloatArray,
    n_fitted_columns: int,
) -> float:
    """Return the p-value of Rao's test of columns after the first `n_fitted_columns`."""
    p = expit(theta[0] + theta[1] * counts.log_odds)
    score = event_basis.T @ counts.events - row_basis.T @ (counts.rows * p)
    information = _compute_information(row_basis, counts, p)
    inner = information[:n_fitted_columns, :n_fitted_columns]
    cross = information[:n_fitted_columns, n_fitted_columns:]
    # Rao's score test with nuisance parameters: score and information of the tested
    # columns, given the fitted ones.
    solved = np.linalg.lstsq(inner, cross, rcond=None)[0]
    conditional_information = (
        information[n_fitted_columns:, n_fitted_columns:] - cross.T @ solved
    )
    conditional_score = score[n_fitted_columns:] - solved.T @ score[:n_fitted_columns]
    symmetric = (conditional_information + conditional_information.T) / 2
    values, vectors = np.linalg.eigh(symmetric)
    sure = values > 1e-9 * max(float(np.abs(information).max()), 1e-300)
    if not sure.any():
        return 1.0
    squares = (vectors[:, sure].T @ conditional_score) ** 2
    statistic = float((squares / values[sure]).sum())
    return float(chdtrc(sure.sum(), statistic))


# -- when it changed ------------------------------------------------------------------------------


def locate_onset_block_and_interval(
    gains: FloatArray, rows: IntArray, log_prior: FloatArray, level: float
) -> tuple[int, int, int]:
    """Return after which block the change began, and the blocks of an interval.

    Before the change the predictions hold, behind it one of the pairs, by their prior
    weights; each row is as likely to be the first one behind it. Within a block the
    logarithm is taken as linear.

    Parameters
    ----------
    gains : ndarray of shape (n_blocks, n_pairs)
    rows : ndarray of shape (n_blocks,)
    log_prior : ndarray of shape (n_pairs,)
    level : float

    Returns
    -------
    likely, low, high : int
        Blocks: the change is likeliest at the first row of `likely`, and with
        probability `level` between the first row of `low` and the last row of `high`.
    """
    # The gain of a change after block i is that of all later blocks, summed over a grid
    # of changes with its prior.
    behind = np.cumsum(gains[::-1], axis=0)[::-1] + log_prior
    top = behind.max(axis=1)
    log = top + np.log(np.exp(behind - top[:, None]).sum(axis=1))
    # After the last block no change has happened.
    log = np.append(log, 0.0)
    weight = np.exp(log - log.max())
    mass = rows * (weight[:-1] + weight[1:]) / 2
    cumulated = np.cumsum(mass) / mass.sum()
    outside = (1 - level) / 2
    low, high = np.searchsorted(cumulated, [outside, 1 - outside])
    return int(log[:-1].argmax()), int(low), int(min(high, len(rows) - 1))
