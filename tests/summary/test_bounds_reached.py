"""Rows that are made to reach the bounds of summaries: a bound that is halved is noticed.

A cell gives away the sums of its rows alone, so rows are put on both ends of each cell, with labels
and weights of which some hundreds were tried by chance. The seeds below are those of the worst
rows, each with the share of the bound that lies between their number and that of their cells. Half
a bound would double that share: more than the whole where it is above a half, and elsewhere another
number than the one that stands here.
"""

import numpy as np
import pytest
from test_bounds import ROUNDING, of_rows

from sklearn_calib.summary import CalibrationSummary
from sklearn_calib.summary._bounds import BOUNDS

LAST = 1 - 2.0**-20  # of the way through a cell
BINS = (4, 5, 7, 9, 16)


def worst_rows(seed):
    """Labels, scores, weights and the number of cells: rows at the low and high end of each."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(1, 6)
    count = rng.integers(1, 7)
    edges = rng.integers(1, 99, count) % (n := rng.choice(BINS, count))
    points = np.where(rng.random(count) < 0.5, edges / n, 10.0 ** -rng.uniform(0, 2, count))
    points = np.where((points <= 0) | (points >= 1), 0.3, points)
    near = np.minimum(points, 1 - points)
    width = 2.0 ** np.floor(np.log2(near)) / 2.0**bits
    start = np.floor(near / width) * width
    cells = np.column_stack([start, start + LAST * width])
    high = points > 0.5
    cells = np.unique(np.where(high[:, None], 1 - cells[:, ::-1], cells), axis=0)
    weight = np.where(
        rng.random((len(cells), 4)) < rng.choice([0.2, 0.5]),
        0.0,
        10.0 ** rng.uniform(-rng.choice([0.5, 2.0]), 0, (len(cells), 4)),
    )
    p, y, w = np.repeat(cells.ravel(), 2), np.tile([0, 1], 2 * len(cells)), weight.ravel()
    return y[w > 0], p[w > 0], w[w > 0], int((weight.sum(axis=1) > 0).sum())


def share_of_bound(name, options, seed):
    """How much of it is between the numbers of the rows and of the cells: at most 1."""
    y, p, w, count = worst_rows(seed)
    summary = CalibrationSummary(count).update(y, p, w)
    value, bound = summary.measure(name, return_bound=True, **options)
    expected, error = of_rows(name, options, y, p, w)
    assert abs(value - expected) <= bound + error + ROUNDING
    return abs(value - expected) / bound if bound > 1e-4 else 0.0


#: Measure, options, the seed of the rows, and how much of the bound they reach.
REACHED = [
    ("smooth_calibration_error", {}, 33, 0.425),
    ("lower_distance_to_calibration", {}, 19, 0.297),
    ("expected_calibration_error", {}, 245, 0.475),
    ("expected_calibration_error", {"strategy": "uniform", "n_bins": 7}, 240, 0.32),
    ("expected_calibration_error", {"bin_weight": "equal", "n_bins": 5}, 162, 0.418),
    ("expected_calibration_error", {"n_bins": "cube_root"}, 269, 0.564),
    ("calibration_error", {"norm": "l2"}, 156, 0.27),
    ("calibration_error", {"norm": "l2", "bin_weight": "equal", "n_bins": 4}, 162, 0.607),
    ("maximum_calibration_error", {"n_bins": 4}, 162, 0.893),
    ("maximum_calibration_error", {"strategy": "uniform", "n_bins": 9}, 245, 0.477),
    ("random_interval_calibration_error", {}, 33, 0.425),
    ("random_interval_calibration_error", {"width": 0.37}, 19, 0.482),
    ("interval_calibration_error", {}, 33, 0.68),
    ("kernel_calibration_error", {}, 33, 0.324),
    ("kernel_calibration_error", {"bandwidth": 0.1}, 75, 0.486),
    ("convolved_calibration_error", {}, 156, 0.201),
    ("convolved_calibration_error", {"bandwidth": 0.05}, 72, 0.198),
    ("averaged_two_bin_error", {}, 447, 0.297),
    ("isotonic_refinement_brier", {}, 167, 0.5),
    ("temperature_refinement_log_loss", {}, 130, 0.851),
]


@pytest.mark.parametrize(("name", "options", "seed", "stated"), REACHED)
def test_the_worst_rows_reach_the_stated_share(name, options, seed, stated, small_cells):
    assert share_of_bound(name, options, seed) == pytest.approx(stated, rel=0.05)


def test_each_bound_has_its_rows():
    assert {name for name, *_ in REACHED} == {*BOUNDS}
