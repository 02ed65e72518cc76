"""Whether weights count rows."""

import numpy as np

from ._typing import FloatArray

#: Above it, neighbouring whole numbers are one float64.
_MAX_COUNT = 2.0**53
_COUNT_TOLERANCE = 1e-6
#: Weights that are looked at together: the first ones mostly show of which kind all are.
_WEIGHTS_PER_BLOCK = 4096


def are_counts(weight: FloatArray) -> bool:
    """Return whether all weights are whole numbers up to 2^53, or within 1e-6 of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib._count_weights import are_counts
    >>> are_counts(np.array([0.0, 3.0])), are_counts(np.array([0.5])), are_counts(np.array([1e300]))
    (True, False, False)
    """
    if not weight.max() <= _MAX_COUNT:
        return False
    blocks = range(0, len(weight), _WEIGHTS_PER_BLOCK)
    return all(
        _mark_whole_weights(weight[i : i + _WEIGHTS_PER_BLOCK]).all() for i in blocks
    )


def _mark_whole_weights(weight):
    """Return which weights are whole numbers up to rounding.

    A weight of 1e-7 is not rounded to 0, which would be an absent row.
    """
    near = np.rint(weight)
    return abs(weight - near) <= _COUNT_TOLERANCE * (near > 0)
