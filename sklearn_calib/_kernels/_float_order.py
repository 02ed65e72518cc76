"""The order of float64 or float32 numbers, and searches that use it.

All numbers of a type in their order are the whole numbers of a range, their keys:
neighbours differ by 1. Halving the range of keys finds where a function passes a level,
to the last bit, in at most 64 steps. Keys without their last bits are cells that keep
many values in bounded memory.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

_FLOAT_TYPES: Any = {
    "float64": (np.float64, np.uint64, 63),
    "float32": (np.float32, np.uint32, 31),
}
_MAX_BLOCK_CROSSINGS = 1 << 20
MAX_KEPT_VALUES = 2**16

ValueFunction = Callable[[Any], Any]


def encode_floats(numbers: Any, dtype: str) -> Any:
    """Return the rank of each number among all of its type, after rounding to it."""
    real, unsigned, last = _FLOAT_TYPES[dtype]
    bits = np.asarray(numbers, dtype=real).view(unsigned)
    sign = unsigned(1) << unsigned(last)
    # The bits of positive floats are ordered as integers; those of negative ones are in
    # reverse, which the complement corrects.
    return np.where(bits & sign, ~bits, bits | sign).astype(np.uint64)


def decode_floats(keys: Any, dtype: str) -> Any:
    """Return the numbers of these keys, as float64."""
    real, unsigned, last = _FLOAT_TYPES[dtype]
    sign = unsigned(1) << unsigned(last)
    keys = np.asarray(keys).astype(unsigned)
    bits = np.where(keys & sign, keys ^ sign, ~keys).astype(unsigned)
    # Adding 0.0 turns -0.0 into 0.0.
    return bits.view(real).astype(np.float64) + 0.0


def find_level_crossings(
    value: ValueFunction, starts: Any, stops: Any, levels: Any, dtype: str
) -> tuple[Any, ...]:
    """Find where a function passes levels, in ranges of keys on which it is monotone.

    Parameters
    ----------
    value : callable
        From an array of numbers to an array of the same length.
    starts, stops : ndarray of uint64
        First and last key of each range.
    levels : ndarray of float64
    dtype : {"float64", "float32"}

    Returns
    -------
    ranges, of_levels : ndarray of intp
        The ranges and levels that cross, each pair by its numbers.
    keys : ndarray of uint64
        The first key that is on the side of the last one: "at least the level", or
        below.
    first : ndarray of bool, of shape (n_ranges, n_levels)
        Whether the function is at least the level at the first key.
    last : ndarray of bool
        The same at the last key.
    """
    first = value(decode_floats(starts, dtype))[:, None] >= levels
    last = value(decode_floats(stops, dtype))[:, None] >= levels
    # A monotone function passes a level within a range only if its ends lie on
    # different sides.
    ranges, level_indices = np.nonzero(first != last)
    keys = np.empty(len(ranges), dtype=np.uint64)
    for begin in range(0, len(ranges), _MAX_BLOCK_CROSSINGS):
        block = slice(begin, begin + _MAX_BLOCK_CROSSINGS)
        i = ranges[block]
        j = level_indices[block]
        keys[block] = find_first_keys_beyond(
            value,
            starts[i],
            stops[i],
            levels[j],
            last[i, j],
            dtype,
        )
    return ranges, level_indices, keys, first, last


def find_first_keys_beyond(
    value: ValueFunction,
    low: Any,
    high: Any,
    level: Any,
    high_reaches_level: Any,
    dtype: str,
) -> Any:
    """Return the first key on the side of `high` between each low and high key.

    `high_reaches_level` is true if the function is at least the level at high; at low
    it is the opposite.
    """
    low = low.copy()
    high = high.copy()
    open_ = np.flatnonzero(high - low > 1)
    while len(open_):
        # The sum of both keys would overflow 64 bits.
        middle = low[open_] + (high[open_] - low[open_]) // np.uint64(2)
        beyond = (
            value(decode_floats(middle, dtype)) >= level[open_]
        ) == high_reaches_level[open_]
        high[open_[beyond]] = middle[beyond]
        low[open_[~beyond]] = middle[~beyond]
        open_ = open_[high[open_] - low[open_] > 1]
    return high


def keep_largest_value_per_cell(
    values: Any, counts: Any, shift: int = 0
) -> tuple[Any, Any, int]:
    """Keep the largest of the values whose keys agree but for `shift` bits.

    Returns (values, counts, shift).

    `values` are sorted: numbers, dates or durations. As few bits are dropped as make
    them at most `MAX_KEPT_VALUES`, in any order; none if there are few values.
    """
    is_float = values.dtype.kind == "f"
    # Adding 0.0 turns -0.0, which has another key, into 0.0.
    if is_float:
        keys = encode_floats(values + 0.0, "float64")
    else:
        keys = values.astype(np.int64)
    while True:
        cells = keys >> keys.dtype.type(shift)
        # The largest value of each cell is kept, with all counts up to it, so the kept
        # values have exact cumulative counts.
        is_last = np.append(cells[1:] != cells[:-1], True)[: len(cells)]
        last = np.flatnonzero(is_last)
        if len(last) <= MAX_KEPT_VALUES:
            break
        shift += 1
    if len(last) == len(values):
        return values, counts, shift
    reached = np.cumsum(counts)[last]
    return values[last], np.diff(np.append(0, reached)), shift
