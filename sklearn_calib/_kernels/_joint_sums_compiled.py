"""What rows of several classes give to the totals of a summary, compiled: chunk by chunk."""

import numpy as np

from .._simplex import LOG_LOSS_FLOOR
from ._compile import kernel
from ._exact_sums_compiled import CHUNK, negative_logarithms

TERMS = 8  # of a row: both losses, squared, expected, and their variances


def joint_terms(columns, codes):
    """Losses of rows, and what labels drawn from the predictions would give.

    Parameters
    ----------
    columns : ndarray of shape (n_classes, n_samples), float64
        Columns that sum to 1.
    codes : ndarray of shape (n_samples,)

    Returns
    -------
    terms : ndarray of shape (8, n_samples)
        Log loss l, l^2, E(l), Var(l); Brier loss b, b^2, E(b), Var(b).
    true, largest : ndarray of shape (n_samples,)
        The probability of the true class, and the largest.
    place : ndarray of shape (n_samples,)
        The first class that has the largest.
    """
    n = columns.shape[1]
    terms = np.zeros((TERMS, n))
    true, largest, place = np.zeros((3, n))
    log = np.empty(CHUNK)
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        one = [array[rows] for array in (codes, true, largest, place)]
        found, minus = terms[:, rows], log[: len(one[0])]
        for c, column in enumerate(columns[:, rows]):
            negative_logarithms(column, LOG_LOSS_FLOOR, minus)
            _add_class(column, minus, c, *one, found)
        negative_logarithms(one[1], LOG_LOSS_FLOOR, minus)
        _finish(minus, one[1], found)
    return terms, true, largest, place


@kernel(error_model="numpy")
def _add_class(p, log, c, codes, true, largest, place, terms):
    """Moments of one class; sums of p^2 and p^3 stand where the Brier loss will."""
    for i in range(len(p)):
        x, minus = p[i], log[i]
        more = x > largest[i]
        largest[i] = x if more else largest[i]
        place[i] = c if more else place[i]
        true[i] = x if codes[i] == c else true[i]
        square = x * x
        terms[2, i] += x * minus
        terms[3, i] += x * minus * minus
        terms[4, i] += square
        terms[5, i] += square * x


@kernel(error_model="numpy")
def _finish(own, true, terms):
    for i in range(len(own)):
        mean, square, cube = terms[2, i], terms[4, i], terms[5, i]
        brier = square - 2.0 * true[i] + 1.0
        terms[0, i] = own[i]
        terms[1, i] = own[i] * own[i]
        terms[3, i] = max(terms[3, i] - mean * mean, 0.0)
        terms[4, i] = brier
        terms[5, i] = brier * brier
        terms[6, i] = 1.0 - square
        terms[7, i] = max(4.0 * (cube - square * square), 0.0)
