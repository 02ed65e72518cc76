"""Forms of measures that only inference needs: of whole populations, and of many draws at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._kernels._binning import find_bin_starts_and_end, sum_runs
from .._typing import FloatArray
from ..metrics import Measure, Predictions

#: Options with which nothing is subtracted for chance and no row is paired with
#: another. With them a measure of all labels that rows may have, each by its
#: probability, is that of the population.
POPULATION_OPTIONS_BY_MEASURE: dict[str, dict[str, Any]] = {
    "averaged_two_bin_error": {"debias": False},
    "calibration_error": {"debias": False},
    "expected_calibration_error": {"debias": False},
    "kernel_calibration_error": {"estimator": "biased"},
    "lp_calibration_error": {"estimator": "plugin"},
    # With numbered folds, all rows of one prediction are in the same fold.
    "variational_calibration_error": {"cv": 5},
}


def evaluate_population_value(
    measure: Measure, predictions: Predictions, **options: Any
) -> float:
    """Return the measure of rows with every label, each weighted by its probability.

    Parameters
    ----------
    measure : Measure
    predictions : Predictions
        Each row once for every label.
    **options
        Options of the measure.

    Returns
    -------
    value : float
    """
    population_options = options | POPULATION_OPTIONS_BY_MEASURE.get(
        measure.spec.name, {}
    )
    return measure.evaluate(predictions, **population_options)


_DEFAULT_N_BINS = 15


def _compute_bin_gaps_by_draw_and_masses(score, mass, events):
    """Return the absolute mean residuals of the bins, (n_draws, n_bins), and their masses."""
    starts = find_bin_starts_and_end(mass, _DEFAULT_N_BINS)
    bin_mass, total = sum_runs(starts, mass, events - mass * score)
    is_filled = bin_mass > 0
    return np.abs(total[:, is_filled]) / bin_mass[is_filled], bin_mass[is_filled]


def _average_gaps_by_draw(score, mass, events):
    gaps, bin_mass = _compute_bin_gaps_by_draw_and_masses(score, mass, events)
    return gaps @ bin_mass / bin_mass.sum()


def _find_largest_gaps(score, mass, events):
    gaps, _ = _compute_bin_gaps_by_draw_and_masses(score, mass, events)
    return gaps.max(axis=1)


def _compute_smooth_error_by_draw(score, mass, events):
    from .._kernels._smooth_calibration import compute_smooth_error

    residuals = (events - mass * score) / mass.sum()
    return np.array([compute_smooth_error(score, residual) for residual in residuals])


#: The measure with its default options for many draws of the labels of one two-class
#: problem: a function of the scores and masses of its cells, and of the weights of the
#: events in each draw and cell, of shape (n_draws, n_cells). It takes the place of one
#: call for each draw.
BATCH_EVALUATOR_BY_MEASURE: dict[
    str, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
] = {
    "expected_calibration_error": _average_gaps_by_draw,
    "maximum_calibration_error": _find_largest_gaps,
    "smooth_calibration_error": _compute_smooth_error_by_draw,
}
