"""Sums of float64 numbers that are the same in every bit, in any order and parts.

They are whole numbers of 2^-1074, the smallest float64, so nothing is ever rounded when
they are added; `_exact_sums_compiled` makes them.
"""

import numpy as np

# All finite float64 are whole multiples of 2^-1074, the smallest subnormal number, and
# so are their sums.
SUM_FRACTION_BITS = 1074


def convert_sums_to_floats(sums):
    """Return the nearest float64 numbers; infinity if a sum is too large."""
    return np.array([_convert_sum_to_float(number) for number in sums])


def _convert_sum_to_float(number):
    try:
        # The division of Python integers is correctly rounded, however long they are.
        return number / (1 << SUM_FRACTION_BITS)
    except OverflowError:
        return np.inf


def convert_floats_to_sums(numbers):
    """Return float64 numbers as sums; infinite ones become 2^1024."""
    return [
        _convert_float_to_sum(number)
        for number in np.asarray(numbers, dtype=np.float64).tolist()
    ]


def _convert_float_to_sum(number):
    if not np.isfinite(number):
        return 1 << (1024 + SUM_FRACTION_BITS)
    # The denominator is a power of 2 of at most 2^1074, so the division is exact.
    above, below = number.as_integer_ratio()
    return (above << SUM_FRACTION_BITS) // below


def add_sum_lists(sums, other_sums):
    """Add two lists of sums."""
    return [left + right for left, right in zip(sums, other_sums, strict=True)]
