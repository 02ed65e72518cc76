"""What an exact zero among probabilities counts as."""

import math
from dataclasses import dataclass

import numpy as np

from .._simplex_array import (
    SMALLEST_PROBABILITY,
    attach_log_proba,
    get_absent_option_mask,
    has_exact_log,
)
from .._typing import FloatArray

#: The smallest probability of these rows may be large, and a new row may have a smaller
#: one.
MAX_FLOOR = 0.01
# Of float64 in [0, 1].
_N_FLOAT64_EXPONENTS = 1076
# Binary exponents without a value: a factor of 1000.
_MIN_EMPTY_EXPONENTS = 10
# Trees, neighbours, or three digits after the point.
_MAX_DENOMINATOR = 1000
_ALL_DENOMINATORS = np.arange(1, _MAX_DENOMINATOR + 1)
#: How far a multiple of 1 / N may be off: as far as float32 rounds.
COUNT_FRACTION_TOLERANCE = 1e-7


@dataclass(frozen=True)
class ProbabilityFloorStatistics:
    """What the floor depends on. Statistics of blocks of rows can be added.

    They record which values there are, not how often: a repeated row or a weight
    changes nothing.
    """

    zeros: bool
    # The smallest positive value of each binary exponent; infinite if there is none.
    smallest: FloatArray
    # The least N for which all values are multiples of 1 / N; 0 if there is none.
    denominator: int

    def __add__(
        self, other: "ProbabilityFloorStatistics"
    ) -> "ProbabilityFloorStatistics":
        denominator = math.lcm(self.denominator, other.denominator)
        return ProbabilityFloorStatistics(
            self.zeros or other.zeros,
            np.minimum(self.smallest, other.smallest),
            denominator if denominator <= _MAX_DENOMINATOR else 0,
        )

    @property
    def floor(self) -> float:
        """Return half a vote for fractions of votes, else half the smallest value.

        If there are exact zeros, values far below all others are rounding noise, and
        zeros too.
        """
        if self.denominator:
            return _compute_floor_from_smallest(1.0 / self.denominator)
        used_exponents = np.flatnonzero(self.smallest < np.inf)
        if len(used_exponents) == 0:
            return _compute_floor_from_smallest(1.0)
        # Values far below all others, next to exact zeros, are zeros up to rounding.
        # The floor is derived from the values above the gap.
        wide = np.flatnonzero(np.diff(used_exponents) >= _MIN_EMPTY_EXPONENTS)
        first = (
            used_exponents[wide[0] + 1]
            if self.zeros and len(wide)
            else used_exponents[0]
        )
        return _compute_floor_from_smallest(float(self.smallest[first]))


def collect_floor_statistics(
    proba: FloatArray, shares: bool = True
) -> ProbabilityFloorStatistics:
    """Return the statistics of rows; without `shares` no multiples of 1 / N are looked for."""
    table = np.asarray(proba)
    low = table[(table > 0) & (table <= 2 * MAX_FLOOR)]
    smallest = np.full(_N_FLOAT64_EXPONENTS, np.inf)
    # One minimum per binary exponent is enough to find a gap, and such minima can be
    # merged over blocks of rows.
    np.minimum.at(smallest, np.frexp(low)[1] + _N_FLOAT64_EXPONENTS - 2, low)
    if len(low) < np.count_nonzero(table):
        # The minima of large values are not needed one by one: they only show that
        # something lies above the largest floor.
        smallest[-1] = min(smallest[-1], 1.0)
    return ProbabilityFloorStatistics(
        bool((table == 0).any()),
        smallest,
        _find_common_denominator(table) if shares else 0,
    )


def estimate_floor(proba: FloatArray) -> float:
    """Return what an exact zero counts as; see `ProbabilityFloorStatistics.floor`."""
    table = np.asarray(proba)
    absent = get_absent_option_mask(proba)
    if absent is not None:
        table = table[~absent][:, None]
    if has_exact_log(proba) or (
        table.min(initial=1.0) > 0 and not _may_share_denominator(table)
    ):
        return _compute_floor_from_smallest(
            float(table.min(initial=1.0, where=table > 0))
        )
    return collect_floor_statistics(table).floor


def clip_to_floor(proba: FloatArray, floor: float) -> FloatArray:
    """Raise probabilities below the floor to it, and divide their rows by the sum.

    Arrays that carry exact logarithms, and rows without such a probability, stay as
    they are.
    """
    if has_exact_log(proba):
        return proba
    absent = get_absent_option_mask(proba)
    under = np.asarray(proba) < floor
    # This test of the whole array is faster than the one by rows.
    if not under.any():
        return proba
    if absent is not None:
        under &= ~absent
    low = under.any(axis=1)
    if not low.any():
        return proba
    out = np.array(proba)
    # Rows without a small probability are returned as they are, bit for bit.
    rows = np.maximum(out[low], floor)
    if absent is not None:
        rows[absent[low]] = 0.0
    out[low] = rows / rows.sum(axis=1, keepdims=True)
    return out if absent is None else attach_log_proba(out, None, absent)


def _compute_floor_from_smallest(smallest):
    return float(np.clip(smallest / 2, SMALLEST_PROBABILITY, MAX_FLOOR))


def _may_share_denominator(table):
    """Return whether some of the values are multiples of one 1 / N, as shares of votes are."""
    some = table.ravel()[: 4 * table.shape[1]][:16]
    return len(_keep_fitting_denominators(_ALL_DENOMINATORS, some)) > 0


def _find_common_denominator(table):
    """Return the least N up to 1000 with all values multiples of 1 / N, or 0."""
    flat = table.ravel()
    # Most tables are ruled out by 32 values; the whole table is only checked if those
    # fit.
    some = flat[:: max(1, len(flat) // 32)][:32]
    fitting = _keep_fitting_denominators(_ALL_DENOMINATORS, some)
    while len(fitting):
        denominator = int(fitting[0])
        scaled = flat * denominator
        wrong = np.flatnonzero(
            np.abs(scaled - np.rint(scaled)) > COUNT_FRACTION_TOLERANCE * denominator
        )
        if len(wrong) == 0:
            return denominator
        fitting = _keep_fitting_denominators(fitting, flat[wrong[:32]])
    return 0


def _keep_fitting_denominators(denominators, values):
    """Return those of the N for which all of the values are multiples of 1 / N."""
    # Few of the N pass the first value, which leaves little work for the others.
    for value in values.tolist():
        if len(denominators) == 0:
            break
        scaled = denominators * value
        away = np.abs(scaled - np.rint(scaled))
        denominators = denominators[away <= COUNT_FRACTION_TOLERANCE * denominators]
    return denominators
