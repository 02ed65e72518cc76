"""The different values of a column in bounded memory: sorted, thinned where they are many."""

import numpy as np

MOST_DISTINCT = 2**16
_SIGN = np.int64(np.iinfo(np.int64).max)


def keys_in_order(values):
    """Integers in the order of numbers, dates or durations."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # no -0.0
    return bits ^ ((bits >> 63) & _SIGN)


def thinned(values, counts, shift=0):
    """(values, counts, shift): of values whose keys agree but for `shift` bits the largest.

    `values` are sorted. As few bits are dropped as make them at most `MOST_DISTINCT`, whatever the
    order in which they came; none where they are so few.
    """
    while True:
        cells = keys_in_order(values) >> shift
        last = np.flatnonzero(np.append(cells[1:] != cells[:-1], True)[: len(cells)])
        if len(last) <= MOST_DISTINCT:
            break
        shift += 1
    if len(last) == len(values):
        return values, counts, shift
    reached = np.cumsum(counts)[last]
    return values[last], np.diff(np.append(0, reached)), shift
