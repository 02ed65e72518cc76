"""What the methods share that compare fits along a path of penalties."""

from typing import Any

import numpy as np
from scipy.special import xlogy

from .._kernels._binning import find_scores_index_mass_and_event_rates
from .._kernels._log_odds import compute_rounded_unclipped_log_odds
from .._typing import AnyArray, FloatArray, IntArray

MAX_PENALTIES = 100


def pool_log_odds_mass_and_event_rates(
    proba: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pool distinct log-odds, increasing, with their weights and frequencies."""
    knots, _, mass, share = find_scores_index_mass_and_event_rates(
        compute_rounded_unclipped_log_odds(proba), codes, weight
    )
    return knots, mass, share


def select_evenly_by_rank(values: AnyArray, max_values: int) -> AnyArray:
    """Select at most `max_values` values, evenly by rank, with both ends."""
    if len(values) <= max_values:
        return values
    ranks = np.round(np.linspace(0, len(values) - 1, max_values))
    return values[np.unique(ranks.astype(int))]


def number_runs(values: AnyArray) -> IntArray:
    """Return the number of the run of equal values that each value is in."""
    return np.append(0, np.cumsum(np.diff(values) != 0))


def find_run_starts_and_values(
    path: Any, lam: float, digits: int
) -> tuple[IntArray, FloatArray]:
    """Return the starts and values, within [0, 1], of runs that agree to some digits."""
    starts, values = path.find_group_starts_and_values(lam)
    values = np.clip(np.round(values, digits), 0.0, 1.0)
    first = np.append(True, np.diff(values) != 0)
    return starts[first], values[first]


def compute_deviance_rows_and_positives(
    starts: IntArray, value: FloatArray, path: Any
) -> tuple[float, FloatArray, FloatArray]:
    """Compute -2 log-likelihood of values on groups, and the groups' rows and positives."""
    zeros, ones = path.sum_labels_by_group(starts)
    log_likelihood = xlogy(ones, value) + xlogy(zeros, 1 - value)
    return -2 * log_likelihood.sum(), zeros + ones, ones


def compute_bic_penalty_per_df(total: float) -> float:
    """Return the penalty for a degree of freedom in the authors' programs."""
    return np.log(total) + np.log(2 * np.pi)


def compute_model_weights(criterion: FloatArray) -> FloatArray:
    """Compute weights with sum 1 of models from their information criteria."""
    weights = np.exp((criterion.min() - criterion) / 2)
    return weights / weights.sum()
