"""Sums over scores: shifted intervals, the Laplace kernel, linear binning, local parabolas."""

import numpy as np

from ._compile import compile_kernel


def average_interval_error_over_shifts(offset, cell, residual, n_cells, width):
    """Average the sum of |residual mass| of the cells over shifts in [0, width).

    Rows sorted by offset = score mod width; cell = score // width. At r = 0 a row lies
    in the cell above its own, and moves one down when r passes its offset.
    """
    return _average_abs_bin_sums_over_shifts(
        offset, cell, residual, np.zeros(n_cells + 2), width
    )


@compile_kernel
def _average_abs_bin_sums_over_shifts(offset, cell, residual, mass, width):
    """Return the mean over shifts of the sum of |sum of residuals| over bins."""
    for i in range(len(cell)):
        # At shift 0 every row is in its upper cell. Growing the shift moves one row at
        # a time to the cell below, which changes two terms of the sum. The mean over
        # all shifts is the inner expectation of eq. (29) of Hu, Jambulapati, Tian, Yang
        # (2024).
        mass[cell[i] + 1] += residual[i]
    total = 0.0
    mean = 0.0
    last = 0.0
    for j in range(len(mass)):
        total += abs(mass[j])
    for i in range(len(cell)):
        mean += (offset[i] - last) * total
        last = offset[i]
        upper = cell[i] + 1
        lower = cell[i]
        total -= abs(mass[upper]) + abs(mass[lower])
        mass[upper] -= residual[i]
        mass[lower] += residual[i]
        total += abs(mass[upper]) + abs(mass[lower])
    return (mean + (width - last) * total) / width


@compile_kernel
def sum_residual_products_by_laplace_kernel(score, residual, bandwidth):
    """Return sum_ij r_i r_j exp(-|v_i - v_j| / bandwidth) for increasing scores."""
    total = 0.0
    running = 0.0
    for i in range(len(score)):
        if i > 0:
            # The Laplace kernel factorises over sorted scores, so one pass replaces the
            # sum over all pairs.
            running *= np.exp((score[i - 1] - score[i]) / bandwidth)
        total += residual[i] * (2 * running + residual[i])
        running += residual[i]
    return total


def compute_linearly_binned_residuals(score, residual, n_cells):
    """Return residuals by cell, each split between the two cells of nearest centres."""
    mass = np.zeros(n_cells)
    _add_linearly_binned_residuals_in_place(score, residual, n_cells, mass)
    return mass


@compile_kernel
def _add_linearly_binned_residuals_in_place(score, residual, n_cells, residual_sums):
    for i in range(len(score)):
        # Linear binning splits a row between two cells in proportion to its distance,
        # which makes a grid estimate continuous in the score.
        position = min(max(score[i] * n_cells - 0.5, 0.0), n_cells - 1.0)
        left = min(int(position), n_cells - 2)
        right = (position - left) * residual[i]
        residual_sums[left] += residual[i] - right
        residual_sums[left + 1] += right


def sum_uniform_bin_weights_and_residuals(score, outcome, weight, n_bins):
    """Return mass and summed residuals of the "uniform" bins of `assign_values_to_bins`."""
    sums = np.zeros((2, n_bins))
    _fill_uniform_bin_weights_and_residuals(
        score,
        outcome,
        weight,
        np.arange(n_bins + 1) / n_bins,
        n_bins,
        sums,
    )
    return sums


@compile_kernel
def _fill_uniform_bin_weights_and_residuals(
    score, outcome, weight, edges, n_bins, sums
):
    for i in range(len(score)):
        index = min(int(score[i] * n_bins), n_bins - 1)
        index += score[i] > edges[index + 1]
        index = max(index - (score[i] <= edges[index]), 0)
        sums[0, index] += weight[i]
        sums[1, index] += weight[i] * (outcome[i] - score[i])


@compile_kernel(fastmath={"reassoc", "contract"})
def fill_local_parabola_weights(
    score, mass, centre, width, begin, end, tolerance, rows
):
    """Fill in the weight of each event in the fit at each centre, within its window.

    A row is tricube(t) times the parabola that makes the fit at t = 0, written in
    polynomials that are orthogonal under the weights: 1, `first` and `second`.
    """
    for i in range(len(centre)):
        inverse = 1 / width[i]
        # The compiler vectorises a loop that starts at 0, hence the slices.
        x = score[begin[i] : end[i]]
        weight = mass[begin[i] : end[i]]
        row = rows[i, begin[i] : end[i]]
        size = mean = spread = level = cross = bend = 0.0
        for j in range(len(x)):
            t = (x[j] - centre[i]) * inverse
            near = 1 - abs(t) * t * t
            row[j] = near * near * near
            size += weight[j] * row[j]
            mean += weight[j] * row[j] * t
        mean /= size
        for j in range(len(x)):
            t = (x[j] - centre[i]) * inverse
            share = weight[j] * row[j]
            first = t - mean
            spread += share * first * first
            level += share * t * t
            cross += share * t * t * first
        level /= size
        # A column in the span of those before it is left out.
        first_scale = 1 / spread if spread > tolerance * size else 0.0
        slope = cross * first_scale
        for j in range(len(x)):
            t = (x[j] - centre[i]) * inverse
            second = t * t - level - slope * (t - mean)
            bend += weight[j] * row[j] * second * second
        second_scale = 1 / bend if bend > tolerance * size else 0.0
        first_scale *= mean
        second_scale *= slope * mean - level
        for j in range(len(x)):
            t = (x[j] - centre[i]) * inverse
            first = t - mean
            second = t * t - level - slope * first
            row[j] *= 1 / size - first_scale * first + second_scale * second


@compile_kernel(fastmath={"reassoc", "contract"})
def fill_interpolation_errors(rows, mass, low, high, fraction, new, bends):
    """Sum the changes of each new row against the line between two others, with mass."""
    for i in range(len(new)):
        a = rows[low[i]]
        b = rows[high[i]]
        c = rows[new[i]]
        total = 0.0
        for j in range(len(mass)):
            total += mass[j] * abs(c[j] - a[j] - fraction[i] * (b[j] - a[j]))
        bends[i] = total
