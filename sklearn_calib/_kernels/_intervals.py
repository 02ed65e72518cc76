"""Sums over scores: randomly shifted intervals, the Laplace kernel, linear binning."""

import numpy as np

from ._compile import compile_kernel


def shifted_intervals(offset, cell, residual, n_cells, width):
    """The mean over shifts r, uniform in [0, width), of the sum of |residual mass| of the cells.

    Rows sorted by offset = score mod width; cell = score // width. At r = 0 a row lies in the cell
    above its own, and moves one down when r passes its offset.
    """
    return _mean_of_shifts(offset, cell, residual, np.zeros(n_cells + 2), width)


@compile_kernel
def _mean_of_shifts(offset, cell, residual, mass, width):
    for i in range(len(cell)):
        mass[cell[i] + 1] += residual[i]
    total, mean, last = 0.0, 0.0, 0.0
    for j in range(len(mass)):
        total += abs(mass[j])
    for i in range(len(cell)):
        mean += (offset[i] - last) * total
        last = offset[i]
        upper, lower = cell[i] + 1, cell[i]
        total -= abs(mass[upper]) + abs(mass[lower])
        mass[upper] -= residual[i]
        mass[lower] += residual[i]
        total += abs(mass[upper]) + abs(mass[lower])
    return (mean + (width - last) * total) / width


@compile_kernel
def laplace_square(score, residual, bandwidth):
    """sum_ij r_i r_j exp(-|v_i - v_j| / bandwidth) for increasing scores."""
    total, running = 0.0, 0.0
    for i in range(len(score)):
        if i > 0:
            running *= np.exp((score[i - 1] - score[i]) / bandwidth)
        total += residual[i] * (2 * running + residual[i])
        running += residual[i]
    return total


def linear_bins(score, residual, n_cells):
    """Residuals shared between the two cells whose centres are nearest."""
    mass = np.zeros(n_cells)
    _share(score, residual, n_cells, mass)
    return mass


@compile_kernel
def _share(score, residual, n_cells, mass):
    for i in range(len(score)):
        place = min(max(score[i] * n_cells - 0.5, 0.0), n_cells - 1.0)
        left = min(int(place), n_cells - 2)
        right = (place - left) * residual[i]
        mass[left] += residual[i] - right
        mass[left + 1] += right


def sums_of_equal_widths(score, hit, weight, n_bins):
    """Mass and summed residuals of rows in the "uniform" bins of `bin_distinct_values`."""
    sums = np.zeros((2, n_bins))
    _equal_widths(score, hit, weight, np.arange(n_bins + 1) / n_bins, n_bins, sums)
    return sums


@compile_kernel
def _equal_widths(score, hit, weight, edges, n_bins, sums):
    for i in range(len(score)):
        place = min(int(score[i] * n_bins), n_bins - 1)
        place += score[i] > edges[place + 1]
        place = max(place - (score[i] <= edges[place]), 0)
        sums[0, place] += weight[i]
        sums[1, place] += weight[i] * (hit[i] - score[i])
