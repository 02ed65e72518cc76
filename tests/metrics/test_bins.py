"""Numbers of bins by rule: the cube root, and the sweep of Roelofs et al."""

from itertools import pairwise

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from golden_sets import golden_set

from sklearn_calib._kernels import _binning
from sklearn_calib._kernels._binning import (
    assign_values_to_monotonic_bins,
    compute_rounded_up_cube_root,
)
from sklearn_calib.displays import CalibratingFunctionDisplay, ReliabilityDisplay
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import (
    calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.summary import CalibrationSummary

Y, P = golden_set()


def by_hand(p, y, strategy):
    """The bin of each row, sorted by score; a tie is where its first row is."""
    n, first = len(p), np.searchsorted(p, p)
    best, before = np.zeros(n, dtype=int), 1
    for b in range(2, 400):
        bins = (
            first * b // n
            if strategy == "quantile"
            else np.ceil(p * b - 1e-12).clip(1) - 1
        )
        filled = np.unique(bins)
        if len(filled) == before:
            continue
        before = len(filled)
        rates = [y[bins == number].mean() for number in filled]
        if any(after < rate - 1e-12 for rate, after in pairwise(rates)):
            break
        best = np.searchsorted(filled, bins)
        if before == len(np.unique(p)):
            break
    return best


def test_golden_sweep():
    assert len(reliability_curve(Y, P, n_bins="sweep", n_resamples=0)[0].observed) == 10
    assert calibration_error(Y, P, n_bins="sweep") == pytest.approx(
        0.0674153465, abs=1e-10
    )
    l2 = calibration_error(Y, P, n_bins="sweep", norm="l2")
    assert l2 == pytest.approx(0.0762621735, abs=1e-10)
    ten = calibration_error(Y, P, n_bins=10)
    assert expected_calibration_error(Y, P, n_bins="sweep") == pytest.approx(
        ten, abs=1e-15
    )
    ten = maximum_calibration_error(Y, P, n_bins=10)
    assert maximum_calibration_error(Y, P, n_bins="sweep") == pytest.approx(
        ten, abs=1e-15
    )


@run_every_case("strategy", ["quantile", "uniform"])
@run_every_case("seed", range(8))
def test_sweep_is_that_of_the_definition(strategy, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 150))
    p = np.sort(rng.beta(0.5, 1, n) if seed % 2 else rng.random(n).round(1))
    y = (rng.random(n) < p).astype(float)
    values, place = np.unique(p, return_inverse=True)
    for unit in (1.0, 1 / 7):
        sums = np.bincount(place) * unit, np.bincount(place, y) * unit
        found = assign_values_to_monotonic_bins(values, *sums, strategy)[place]
        assert found.tolist() == by_hand(p, y, strategy).tolist()
    error = calibration_error(y, p, n_bins="sweep", strategy=strategy, labels=[0, 1])
    gaps = np.bincount(found, y - p)
    assert error == pytest.approx(np.abs(gaps).sum() / n, abs=1e-12)
    debiased = calibration_error(
        y, p, n_bins="sweep", strategy=strategy, labels=[0, 1], debias=True
    )
    assert debiased <= error


def test_sweep_ends_where_nothing_falls():
    p = np.linspace(0, 1, 5000)
    y = (p > 0.6).astype(int)
    error = expected_calibration_error(y, p, n_bins="sweep")
    assert error == expected_calibration_error(y, p, n_bins=_binning.MAX_SWEPT_BINS)
    assert error == pytest.approx(np.abs(y - p).mean(), abs=1e-3)
    assert expected_calibration_error([1, 0], [0.5, 0.5], n_bins="sweep") == 0
    assert expected_calibration_error(
        [0, 1], [0.2, 0.6], n_bins="sweep"
    ) == pytest.approx(0.3)


def test_each_problem_has_its_own_sweep():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    found = calibration_error(y, proba, n_bins="sweep", multiclass="classwise")
    each = [calibration_error(y == c, proba[:, c], n_bins="sweep") for c in range(3)]
    assert found == pytest.approx(np.mean(each), abs=1e-12)


@run_every_case(("n", "bins"), [(1, 1), (2, 2), (8, 2), (9, 3), (1000, 10), (1001, 11)])
def test_cube_root_is_rounded_up(n, bins):
    assert compute_rounded_up_cube_root(n) == bins


def test_cube_root():
    value = expected_calibration_error(Y, P, n_bins="cube_root")
    assert value == expected_calibration_error(Y, P, n_bins=6)
    assert (
        len(reliability_curve(Y, P, n_bins="cube_root", n_resamples=0)[0].observed) == 6
    )


@pytest.mark.slow
def test_wherever_bins_are_taken():
    drawn = ReliabilityDisplay.from_predictions(Y, P, n_bins="sweep", bands="none")
    assert len(drawn.curves["model"][0].observed) == 10
    platt = PlattScaling().fit(P, Y)
    dots = CalibratingFunctionDisplay.from_recalibrators(
        platt, Y, P, n_bins="cube_root"
    )
    assert len(dots.curve.observed) == 6
    summary = CalibrationSummary().update(Y, P)
    for rule, bins in (("sweep", 10), ("cube_root", 6)):
        assert (
            len(summary.reliability_curve(n_bins=rule, n_resamples=0)[0].observed)
            == bins
        )
        value = summary.measure("calibration_error", n_bins=rule)
        assert value == pytest.approx(calibration_error(Y, P, n_bins=rule), abs=1e-9)
    tested = calibration_test(
        Y, P, statistic="calibration_error", n_bins="sweep", n_resamples=99
    )
    assert tested.statistic == pytest.approx(0.0674153465, abs=1e-10)


@pytest.mark.parametrize("n_bins", [0, 2.5, True, "fd"])
def test_refused(n_bins):
    for function in (calibration_error, reliability_curve):
        with raises_invalid_input(
            ValueError, expected="n_bins >= 1, 'cube_root' or 'sweep'"
        ):
            function(Y, P, n_bins=n_bins)
