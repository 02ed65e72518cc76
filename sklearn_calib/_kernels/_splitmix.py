"""Keys that are as good as drawn at random, from numbers that differ."""

import numpy as np

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def scrambled(key):
    """Bits of unsigned 64-bit numbers mixed (the last steps of splitmix64)."""
    for shift, factor in _STEPS:
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    return key ^ (key >> np.uint64(31))
