"""A number for each row that its digits decide, compiled: which rows a sample keeps."""

import numpy as np

from ._compile import kernel
from ._exact_sums_compiled import CHUNK

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TWO, _ONE, _HALF = np.uint64(2), np.uint64(1), np.uint64(32)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def scrambled(key):
    """Bits of unsigned 64-bit numbers mixed (the last steps of splitmix64)."""
    key = (key ^ (key >> _SHIFTS[0])) * _FIRST
    key = (key ^ (key >> _SHIFTS[1])) * _SECOND
    return key ^ (key >> _SHIFTS[2])


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


@kernel(error_model="numpy")
def _add_columns(columns, key):
    for c in range(len(columns)):
        odd = _ODD * (_TWO * np.uint64(c) + _ONE)
        for i in range(len(key)):
            x = columns[c, i] + 0.0  # no -0.0
            bits = np.float64(x).view(np.uint64)
            key[i] += (bits ^ (bits >> _HALF)) * odd
