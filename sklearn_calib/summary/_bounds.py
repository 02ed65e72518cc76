"""How far a measure of the cells can be from that of the rows: one function for each measure.

All weights are divided by their sum. Of a cell: W its mass, Y that of label 1, p' the mean score, h
the width. A row of residual r = w (y - p) is moved by at most h, and by h / 2 on average, so that

    A = Y (1 - p') + (W - Y) p' + W h / 2   is at least the sum of |r| over the cell,
    E1 = sum A h,   D1 = sum W h / 2,   d = max Y (W - Y) / W.

Cells keep scores in steps of 36 bits, so a cell of one row is as wide as a step. All bounds are 0
while a summary is exact: each score has its own cell then, in all its digits.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._kernels._binning import ON_EDGE, bin_of_distinct, bin_sums
from .._kernels._cells import (
    ID,
    N0,
    N1,
    N_CUTS,
    OFFSET,
    STEP_BITS,
    dropped_bits,
    label_sums,
    last_keys,
    mean_scores,
    real,
    start_and_side,
    steps_of,
    values_of,
)
from .._kernels._temperature import fit_temperature
from .._simplex import (
    LARGEST_FLOOR,
    SHARE_ROUNDING,
    SMALLEST_PROBABILITY,
    learned_floor,
    log_odds,
    log_proba,
    low_end,
    raised,
)
from .._typing import AnyArray, FloatArray, Strategy
from ..metrics import BinaryProblem, lower_distance_interval, random_interval_calibration_error
from ._state import CellState

_NARROWEST = 1e-6  # width of intervals that the measure takes


class BoundedValue(NamedTuple):
    """A number computed from cells, and how far it can be from the number of the rows.

    Parameters
    ----------
    value : float
    bound : float
        The number of the rows is in [value - bound, value + bound].
    """

    value: float
    bound: float


class CellSums(NamedTuple):
    """Arrays of shape (n_cells,), cells in increasing order of the score; masses sum to 1.

    Parameters
    ----------
    score, mass, hits : ndarray
        p', W and Y.
    low, high : ndarray
        Where the rows of a cell are, at most.
    width : ndarray
        h.
    logit_width : ndarray
        The width on the scale of log-odds.
    whole : ndarray of bool
        Whether the rows have one score, known or not.
    """

    score: FloatArray
    mass: FloatArray
    hits: FloatArray
    low: FloatArray
    high: FloatArray
    width: FloatArray
    logit_width: FloatArray
    whole: AnyArray

    @property
    def residuals(self) -> FloatArray:
        """A."""
        off = self.hits * (1 - self.score) + (self.mass - self.hits) * self.score
        return off + self.mass * self.width / 2

    @property
    def unsure(self) -> FloatArray:
        """Y (W - Y) / W."""
        return self.hits * (self.mass - self.hits) / self.mass

    @property
    def moved(self) -> float:
        """E1."""
        return float(self.residuals @ self.width)


def cell_sums(state: CellState) -> CellSums:
    """What bounds are computed from."""
    table, shift = state.table, state.shift
    weight = label_sums(table)[0]
    total = weight.sum()
    first, last = _ends(table, shift)
    whole = (table[:, N0] + table[:, N1] == 1) | (first == last)
    ends = [values_of(first), values_of(last)]
    score = mean_scores(table)[:, 1]
    high_side = table[:, ID] < 0
    near, far = (np.where(high_side, 1.0 - end, end) for end in ends)
    raised_ends = [np.maximum(end, SMALLEST_PROBABILITY) for end in ends]
    logits = [np.log(end) - np.log1p(-end) for end in raised_ends]
    return CellSums(
        score,
        weight.sum(axis=1) / total,
        weight[:, 1] / total,
        np.minimum(near, far),
        np.maximum(near, far),
        ends[1] - ends[0],
        logits[1] - logits[0],
        whole,
    )


def rows_across(state: CellState, edges: AnyArray) -> int:
    """How many rows are in cells with scores below an edge and from it on."""
    cells, edges = cell_sums(state), np.sort(edges)
    first, last = (np.searchsorted(edges, ends, "right") for ends in (cells.low, cells.high))
    rows = state.table[:, N0] + state.table[:, N1]
    return int(rows[(first < last) & ~cells.whole].sum())


def _ends(table, shift):
    """The first and the last key that rows of each cell may have."""
    start, high_side = start_and_side(table[:, ID])
    last = last_keys(start, high_side, dropped_bits(table[:, ID], np.int64(shift)))
    offset, weight = real(table)[:, OFFSET], label_sums(table)[0].sum(axis=1)
    one_step = (table[:, N0] + table[:, N1] == 1) | (offset == 0)
    middle = (steps_of(start) + np.rint(offset / weight).astype(np.int64)) << STEP_BITS
    half = 1 << (STEP_BITS - 1)
    first = np.where(one_step, np.maximum(start, middle - half), start)
    last = np.where(one_step, np.minimum(last, middle + half - 1), last)
    return first, np.where((start == 0) & (offset == 0), 0, last)  # nobody's scores are 1e-319


# -- one function for each measure ----------------------------------------------------------------


def smooth(cells: CellSums, problem: BinaryProblem, value: float) -> float:
    """Functions of slope at most 1 change by at most h where a residual is moved."""
    return cells.moved


def distance(cells: CellSums, problem: BinaryProblem, value: float, **options: Any) -> float:
    """Moving the scores to the means costs E|p - p'|; and the error of the program."""
    rows = problem.hit, problem.score
    own = lower_distance_interval(*rows, sample_weight=problem.weight, labels=[0, 1], **options)
    return float(cells.mass @ cells.width) / 2 + own.bound


def random_interval(
    cells: CellSums, problem: BinaryProblem, value: float, *, width: float
) -> float:
    """A shifted edge parts p from p' with probability |p - p'| / width; then 2 |r| change."""
    return 2 * cells.moved / width


def interval(cells: CellSums, problem: BinaryProblem, value: float) -> float:
    """The smallest of R(e) + e over halved widths e, where each R(e) is off by 2 E1 / e at most.

    R grows when e is halved, so that R(e) is at least what is known of any wider interval.
    """
    moved = 2 * cells.moved
    if moved == 0:
        return 0.0
    width, known, low, high = 1.0, 0.0, np.inf, 2.0
    while width > max(moved, _NARROWEST):
        error = random_interval_calibration_error.of_problem(problem, width=width)
        high = min(high, error + width + moved / width)
        known = max(known, error - moved / width)
        low = min(low, known + width)
        width /= 2
    return float(max(high - value, value - min(low, known)))


def laplace(
    cells: CellSums, problem: BinaryProblem, value: float, *, bandwidth: float, kernel: str
) -> float:
    """The square has two arguments, each of slope 1 / bandwidth at most.

    Near 0 the root can rise by more than it can fall, because it cannot fall below 0.
    """
    square = 2 * cells.moved * cells.residuals.sum() / bandwidth
    low, high = max(value**2 - square, 0.0) ** 0.5, (value**2 + square) ** 0.5
    return max(value - low, high - value) if square else 0.0


def convolved(
    cells: CellSums, problem: BinaryProblem, value: float, *, bandwidth: float | None
) -> float:
    """Gaussians of width s around p and p' differ by sqrt(2 / pi) |p - p'| / s in the L1 norm.

    The error at width s falls with s and is off by c / s, so its fixed point is off by t at most,
    where t (value - t) = c.
    """
    c = np.sqrt(2 / np.pi) * cells.moved
    if bandwidth is not None:
        return c / bandwidth
    if value**2 < 4 * c:
        return float(max(value, (np.sqrt(value**2 + 4 * c) - value) / 2))
    return float((value - np.sqrt(value**2 - 4 * c)) / 2)


def isotonic_brier(cells: CellSums, problem: BinaryProblem, value: float) -> float:
    """Inside a cell the cumulated hits lie at most d below their chord, for 2 d in the loss."""
    return float(2 * cells.unsure.max(initial=0.0, where=~cells.whole))


def logistic(cells: CellSums, slope: float) -> float:
    """How far the mean log loss of sigmoid(slope z + b) is off, z the log-odds of the scores.

    The labels' mean log-odds in a cell differ by its width at most; the loss has curvature
    slope^2 / 4, and the log-odds of the mean are within h_z^2 / 8 of the mean of the log-odds.
    """
    width = cells.logit_width
    straight, curved = cells.unsure @ width, cells.mass @ width**2
    return float(abs(slope) * straight + (abs(slope) / 8 + slope**2 / 32) * curved)


def temperature_log(cells: CellSums, problem: BinaryProblem, value: float) -> float:
    """The loss is known to `logistic` at each slope and convex, so its minimum is near."""
    if not _zeros_count_alike(cells):
        return max(value, math.log(2) - value)
    proba = np.column_stack([1 - cells.score, cells.score])
    z = log_odds(raised(proba, learned_floor(proba)))
    end = (cells.score <= 0) | (cells.score >= 1)  # raised by half the smallest score
    if end.any() and not end.all():
        near = (_from_an_end(cells)[0] <= 2 * LARGEST_FLOOR) & ~end
        smallest = cells.logit_width.max(initial=0.0, where=near)
        cells = cells._replace(logit_width=np.where(end, smallest, cells.logit_width))

    def loss(a):
        return cells.hits @ np.logaddexp(0, -a * z) + (cells.mass - cells.hits) @ np.logaddexp(
            0, a * z
        )

    rows = np.column_stack([1 - problem.score, problem.score])
    log = log_proba(raised(rows, learned_floor(rows)))
    slope = fit_temperature(log, problem.hit.astype(np.intp), problem.weight).beta
    highest = loss(slope) + logistic(cells, slope)
    for step in np.geomspace(1e-6, 1e3, 200):
        wide = slope + step * max(slope, 1e-3)
        if loss(wide) - logistic(cells, wide) > highest:
            return logistic(cells, wide)
    return max(value, math.log(2) - value)


def _zeros_count_alike(cells):
    """Whether exact zeros count as the same number in the cells as in their rows, or nearly.

    What counts is which scores there are near an end, and whether all are shares of votes.
    """
    nearest, farthest = _from_an_end(cells)
    if cells.whole.all() or nearest.min(initial=1.0) > SHARE_ROUNDING:
        return True
    one_power = (nearest > 0) & (np.frexp(nearest)[1] == np.frexp(farthest)[1])
    if (~cells.whole & ~one_power & (nearest <= 2 * LARGEST_FLOOR)).any():
        return False
    known = cells.score[cells.whole]
    return low_end(np.column_stack([1 - known, known])).levels == 0


def _from_an_end(cells):
    """How far from 0 or 1 the rows of each cell are, at least and at most."""
    ends = np.array([[cells.low, cells.high], [1 - cells.high, 1 - cells.low]])
    side = np.where(cells.score > 0.5, 1, 0)
    return ends[side, :, np.arange(len(side))].T


def cumulative(cells: CellSums, total: float, scale: float) -> float:
    """The path of the summed residuals may leave its chord by A inside a cell, to both sides."""
    return float(2 * total * cells.residuals.max(initial=0.0, where=~cells.whole) / scale)


def two_bins(cells: CellSums, problem: BinaryProblem, value: float) -> float:
    """The path is off inside cells only: by A at most, and by A h in its integral.

    An error of d at a sum c below the threshold changes c^2 + (t - c)^2 by 2 d (2 c - t + d).
    """
    path = np.cumsum(cells.hits - cells.mass * cells.score)
    slope = np.abs(2 * path - path[-1])
    slope = np.maximum(slope, np.append(abs(path[-1]), slope[:-1]))  # before the cell, and after
    area = cells.residuals * cells.width
    return float(min(2 * area @ (slope + cells.residuals), 1.0))


def binned(
    cells: CellSums,
    problem: BinaryProblem,
    value: float,
    *,
    strategy: Strategy,
    n_bins: int,
    norm: str = "l1",
    bin_weight: str = "mass",
) -> float:
    """Only rows of cells that hold the end of a bin may belong to another bin."""
    first, last = _bins_of_ends(cells, strategy, n_bins)
    residual, mass = cells.residuals, cells.mass
    split = np.flatnonzero(last > first)
    if not len(split):
        return 0.0
    if norm == "l1" and bin_weight == "mass":
        return float(min(2 * residual[split].sum(), 1.0))
    bins = bin_of_distinct(cells.score, mass, n_bins, strategy)
    own, gap = bin_sums(bins, n_bins, mass, cells.hits - mass * cells.score)
    loose, wrong = np.zeros(n_bins), np.zeros(n_bins)  # mass and residuals that may come or go
    for c in split:
        loose[first[c] : last[c] + 1] += mass[c]
        wrong[first[c] : last[c] + 1] += residual[c]
    if ((loose >= own) & (loose > 0)).any():
        return 1.0
    touched = loose > 0
    left = np.where(touched, own - loose, 1.0)
    gap = np.abs(gap)
    if norm == "l2" and bin_weight == "mass":
        each = wrong / np.sqrt(left) + gap * loose / (2 * left**1.5)
        return min(float(np.linalg.norm(each[touched])), 1.0)
    each = np.where(touched, (wrong + loose * gap / np.maximum(own, left)) / left, 0.0)
    if norm == "max":
        return min(float(each.max()), 1.0)
    filled = each[own > 0]
    off = filled.mean() if norm == "l1" else np.sqrt(np.mean(filled**2))
    return float(min(off, 1.0))


def _bins_of_ends(cells, strategy, n_bins):
    """The first and the last bin that the rows of each cell may belong to."""
    if strategy == "uniform":
        if N_CUTS % n_bins == 0:  # no cell crosses an edge
            return np.zeros((2, len(cells.score)), dtype=np.intp)
        return [bin_of_distinct(end, None, n_bins, strategy) for end in (cells.low, cells.high)]
    before = np.cumsum(cells.mass) - cells.mass
    ends = before * n_bins - ON_EDGE, (before + cells.mass) * n_bins + ON_EDGE
    first, last = (np.clip(np.floor(end), 0, n_bins - 1).astype(np.intp) for end in ends)
    return first, np.where(cells.whole, first, last)


#: Measure by name to the function of its bound.
BOUNDS: dict[str, Callable[..., float]] = {
    "averaged_two_bin_error": two_bins,
    "calibration_error": binned,
    "convolved_calibration_error": convolved,
    "expected_calibration_error": binned,
    "interval_calibration_error": interval,
    "isotonic_refinement_brier": isotonic_brier,
    "kernel_calibration_error": laplace,
    "lower_distance_to_calibration": distance,
    "maximum_calibration_error": lambda *cells, **options: binned(*cells, norm="max", **options),
    "random_interval_calibration_error": random_interval,
    "smooth_calibration_error": smooth,
    "temperature_refinement_log_loss": temperature_log,
}
