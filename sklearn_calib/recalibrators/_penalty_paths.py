"""What the methods share that compare fits along a path of penalties."""

from typing import Any

import numpy as np
from scipy.special import xlogy

from .._kernels._binning import pool
from .._simplex import rank_score
from .._typing import AnyArray, FloatArray, IntArray

MAX_PENALTIES = 100  # of a path, that are compared


def pooled(
    proba: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-odds of the distinct scores, increasing, their weights and their frequencies."""
    knots, _, mass, share = pool(rank_score(proba), codes, weight)
    return knots, mass, share


def thinned(values: AnyArray, most: int) -> AnyArray:
    """At most so many of the values, evenly by rank, with both ends."""
    if len(values) <= most:
        return values
    return values[np.unique(np.round(np.linspace(0, len(values) - 1, most)).astype(int))]


def runs(values: AnyArray) -> IntArray:
    """The number of the run of equal values that each belongs to."""
    return np.append(0, np.cumsum(np.diff(values) != 0))


def run_starts(path: Any, lam: float, digits: int) -> tuple[IntArray, FloatArray]:
    """Where the runs of values equal to some digits start, and these values, within [0, 1]."""
    starts, values = path.groups(lam)
    values = np.clip(np.round(values, digits), 0.0, 1.0)
    first = np.append(True, np.diff(values) != 0)
    return starts[first], values[first]


def loss_of_groups(
    starts: IntArray, value: FloatArray, path: Any
) -> tuple[float, FloatArray, FloatArray]:
    """-2 log-likelihood of values on groups, and the groups' rows and positives."""
    zeros, ones = path.sums(starts)
    return -2 * (xlogy(ones, value) + xlogy(zeros, 1 - value)).sum(), zeros + ones, ones


def bic_price(total: float) -> float:
    """What the authors' programs ask for a degree of freedom, given the number of rows."""
    return np.log(total) + np.log(2 * np.pi)


def model_weights(criterion: FloatArray) -> FloatArray:
    """Weights with sum 1 of models by their information criteria."""
    weights = np.exp((criterion.min() - criterion) / 2)
    return weights / weights.sum()
