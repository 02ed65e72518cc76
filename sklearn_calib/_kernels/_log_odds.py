"""Arithmetic of probabilities that are given by their log-odds, and their rounding.

Every function is exact at both ends: swapping the classes changes the sign of the
log-odds and nothing else, and two probabilities that floating point rounds to 1 remain
different.
"""

import numpy as np
from scipy.special import expit, log_expit

from .._simplex_array import compute_log_odds, get_exact_log
from .._typing import FloatArray

#: If scores are only ordered, a zero comes before the smallest float64, 2^-1074.
LOG_OF_ZERO = -1075 * np.log(2.0)


def compute_finite_log_odds(score, complement):
    """Return finite log-odds.

    A probability below the smallest normal float32 counts as that.

    `complement` is 1 - score, with all its digits.
    """
    tiny = np.finfo(np.float32).tiny
    return np.log(np.maximum(score, tiny)) - np.log(np.maximum(complement, tiny))


def subtract_sigmoids(low, high):
    """Return sigmoid(high) - sigmoid(low) of log-odds, for low <= high."""
    # The difference of two nearly equal probabilities would cancel; this product has
    # full relative precision.
    return -np.expm1(low - high) * expit(high) * expit(-low)


def average_log_odds_as_probabilities(low, high):
    """Return the log-odds of the mean of two probabilities, within [low, high]."""
    # Adding the probabilities and their complements as logarithms keeps both ends
    # exact.
    ones = np.logaddexp(log_expit(low), log_expit(high))
    return np.clip(ones - np.logaddexp(log_expit(-low), log_expit(-high)), low, high)


def interpolate_in_probability(log_odds, knots, values):
    """Interpolate linearly in the probability between increasing knots.

    Constant outside.
    """
    if len(knots) == 1:
        return np.full(len(log_odds), values[0])
    left = np.clip(
        np.searchsorted(knots, log_odds, side="right") - 1, 0, len(knots) - 2
    )
    low = knots[left]
    high = knots[left + 1]
    log_odds = np.clip(log_odds, low, high)
    # The fraction (p(x) - p(low)) / (p(high) - p(low)) of three probabilities, written
    # without differences of probabilities.
    fraction = np.exp(log_expit(log_odds) - log_expit(high)) * np.expm1(low - log_odds)
    fraction = np.clip(fraction / np.expm1(low - high), 0.0, 1.0)
    return values[left] + fraction * (values[left + 1] - values[left])


def round_to_36_bits(scores: FloatArray, least_exponent: int = -2000) -> FloatArray:
    """Round scores to 36 significant bits (1.5e-11), for methods that pool equal scores.

    A model may give the same row another last digit alone than in a batch; such rows
    are ties. Scores below 2^least_exponent are rounded as those above, to the same
    multiples.
    """
    _, exponent = np.frexp(scores)
    last = np.maximum(exponent, least_exponent) - 36
    return np.ldexp(np.round(np.ldexp(scores, -last)), last)


def find_smallest_log_odds_rounding_beyond(
    log_odds_bounds: FloatArray, *, inclusive: bool
) -> FloatArray:
    """Return the smallest log-odds that `round_to_36_bits` moves above bounds, or onto them.

    Steps at such edges give to numbers as they are what steps at the bounds give to
    rounded ones.
    """
    log_odds_bounds = np.asarray(log_odds_bounds, dtype=np.float64)

    def rounds_above_bounds(x):
        rounded = round_to_36_bits(x, 0)
        return rounded >= log_odds_bounds if inclusive else rounded > log_odds_bounds

    def measure_gap_to_rounded_below(x):
        """Return how far the next rounded number below lies."""
        _, exponent = np.frexp(np.nextafter(x, -np.inf))
        return np.ldexp(1.0, np.maximum(exponent, 0) - 36)

    target = round_to_36_bits(log_odds_bounds, 0)
    target = np.where(
        rounds_above_bounds(target),
        target,
        target + measure_gap_to_rounded_below(-target),
    )
    # Numbers are rounded to the nearest one, so the preimage begins halfway below;
    # whether the midpoint belongs to it depends on rounding to even.
    edge = target - measure_gap_to_rounded_below(target) / 2
    return np.where(rounds_above_bounds(edge), edge, np.nextafter(edge, np.inf))


def get_rounded_second_class_column(proba: FloatArray) -> FloatArray:
    """Return the probability of the second of two classes, without rounding noise."""
    return round_to_36_bits(np.asarray(proba)[:, 1])


def compute_rounded_unclipped_log_odds(proba: FloatArray) -> FloatArray:
    """Return log-odds without rounding noise, which order the rows of two classes.

    No probability is raised before the logarithm, so all float64 numbers keep their
    order; a zero counts as half the smallest of them. Swapping the classes changes the
    sign.
    """
    return round_to_36_bits(compute_unclipped_log_odds(proba), least_exponent=0)


def compute_unclipped_log_odds(proba: FloatArray) -> FloatArray:
    """Return what `compute_rounded_unclipped_log_odds` rounds."""
    log = get_exact_log(proba)
    if log is None:
        with np.errstate(divide="ignore"):
            log = np.maximum(np.log(np.asarray(proba)), LOG_OF_ZERO)
    return log[:, 1] - log[:, 0]


def compute_map_input(proba: FloatArray, score: str) -> FloatArray:
    """Return what a map reads of each row of two classes: "proba", "logit" or "rank"."""
    if score == "proba":
        return np.asarray(proba)[:, 1]
    if score == "logit":
        return compute_log_odds(proba)
    return compute_unclipped_log_odds(proba)
