"""A number for each row that its digits decide, compiled: which rows a sample keeps."""

import numpy as np

from .._random import ODD, scrambled
from ._compile import kernel
from ._exact_sums_compiled import CHUNK

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_TWO, _ONE, _HALF = np.uint64(2), np.uint64(1), np.uint64(32)


def row_keys(columns, codes):
    """Keys of rows: equal for rows of equal scores and labels, else as good as drawn at random.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_samples), float64
    codes : ndarray of shape (n_samples,)

    Returns
    -------
    key : ndarray of shape (n_samples,), uint64
    """
    key = codes.astype(np.uint64) * _FIRST
    for start in range(0, len(key), CHUNK):
        rows = slice(start, start + CHUNK)
        _add_columns(columns[:, rows], key[rows])
    return scrambled(key)


@kernel
def _add_columns(columns, key):
    for c in range(len(columns)):
        odd = ODD * (_TWO * np.uint64(c) + _ONE)
        for i in range(len(key)):
            x = columns[c, i] + 0.0  # no -0.0
            bits = np.float64(x).view(np.uint64)
            key[i] += (bits ^ (bits >> _HALF)) * odd
