"""Terms into the sums of `_exact_sums`, compiled.

Terms below 2^9 can be rounded to multiples of 2^-84 before: two integers hold one then.
"""

import numpy as np

from .._simplex_array import LOG_LOSS_FLOOR
from ._compile import kernel, part
from ._exact_sums import UNIT_BITS, as_sums

CHUNK = 8192  # terms whose integers cannot overflow when they are added
_HIGH_BITS, _LOW_BITS = 40, 44  # behind the point, in the first and in the second integer
_HIGH, _LOW = 2.0**_HIGH_BITS, 2.0**_LOW_BITS
_MAGIC = 1.5 * 2.0**52  # added, the whole part of a number stands in the last bits
_MAGIC_BITS = np.float64(_MAGIC).view(np.int64)
_MANTISSA = np.int64((1 << 52) - 1)
_ONE_BITS = np.float64(1.0).view(np.int64)
_ROOT = np.int64(0x95F64) << 32  # added to a mantissa, carries where it is above sqrt(2)
_WORD = np.int64(0xFFFFFFFF)
_LEVEL_BITS = 49  # of the terms, added at a time
_LEVELS = 48  # enough for all exponents
_LARGEST_BITS = 900  # of the terms that fit into levels


def n_chunks(n_rows):
    """How many chunks of `CHUNK` rows there are."""
    return -(-n_rows // CHUNK)


def sums_of(columns):
    """The sum of each column of a float64 array of shape (n_columns, n_rows), exactly."""
    levels = np.zeros((n_chunks(columns.shape[1]), len(columns), _LEVELS, 2), np.int64)
    if not _add_levels(columns, np.empty(CHUNK), levels):  # huge terms
        return [sum(as_sums(column)) for column in columns]
    sums = [0] * len(columns)
    used = np.nonzero(levels[..., 1])
    for j, (shift, whole) in zip(used[1].tolist(), levels[used].tolist(), strict=True):
        sums[j] += whole << shift
    return sums


@kernel
def _add_levels(columns, rest, levels):
    """Sums of chunks, by bits that are added as integers; whether all terms are small enough."""
    for chunk in range(len(levels)):
        for j in range(len(columns)):
            column = columns[j, chunk * CHUNK : (chunk + 1) * CHUNK]
            top = _take(column, rest)
            if top >> 52 >= 1022 + _LARGEST_BITS:
                return False
            level, shift = 0, np.int64(_LARGEST_BITS)
            while top > 0:
                shift = max(min((top >> 52) - 1022, shift) - _LEVEL_BITS, -UNIT_BITS)
                magic = np.int64(((shift + 1075) << 52) | (np.int64(1) << 51)).view(np.float64)
                whole, top = _take_level(rest[: len(column)], magic)
                levels[chunk, j, level, 0] = shift + UNIT_BITS
                levels[chunk, j, level, 1] = whole
                level += 1
    return True


@part
def _take(terms, rest):
    """A copy, and the bits of the largest."""
    top = np.int64(0)
    for i in range(len(terms)):
        rest[i] = terms[i]
        top = max(top, np.float64(abs(terms[i])).view(np.int64))
    return top


@part
def _take_level(rest, magic):
    """The sum of the leading bits of each, and the bits of the largest of what is left."""
    whole = top = np.int64(0)
    bits = np.float64(magic).view(np.int64)
    for i in range(len(rest)):
        high = rest[i] + magic
        rest[i] -= high - magic
        whole += np.float64(high).view(np.int64) - bits
        top = max(top, np.float64(abs(rest[i])).view(np.int64))
    return whole, top


@kernel
def negative_logarithms(x, least, out):
    """-log(max(x, least)) of numbers from 0 on, by the same operations on every machine.

    As fdlibm does it: the error is below 1 in the last place. In a
    part of its own the loop would be no vector.
    """
    for i in range(len(x)):
        bits = np.float64(max(x[i], least)).view(np.int64)
        mantissa = bits & _MANTISSA
        above = (mantissa + _ROOT) & (_MANTISSA + 1)
        power = np.float64(np.int32((bits >> 52) - 1023 + (above >> 52)))
        f = np.int64(mantissa | (above ^ _ONE_BITS)).view(np.float64) - 1.0
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
        odd = 0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591)
        rest = even + z * (0.6666666666666735130 + w * odd)
        half = 0.5 * f * f
        small = s * (half + rest) + power * 1.90821492927058770002e-10
        out[i] = (half - small) - f - power * 6.93147180369123816490e-01


@part
def whole_parts(value):
    """A number below 2^9 as two integers, in units of 2^-40 and 2^-84."""
    high = value * _HIGH + _MAGIC
    low = (value * _HIGH - (high - _MAGIC)) * _LOW + _MAGIC
    whole = np.float64(high).view(np.int64) - _MAGIC_BITS
    return whole, np.float64(low).view(np.int64) - _MAGIC_BITS


def from_parts(parts):
    """Sums of integers from `whole_parts`: parts of shape (n_chunks, n_sums, 2)."""
    words = (parts >> 32).sum(axis=0).tolist(), (parts & _WORD).sum(axis=0).tolist()
    shift = UNIT_BITS - _HIGH_BITS - _LOW_BITS
    return [
        ((h1 << 32) + h0 << _LOW_BITS) + (l1 << 32) + l0 << shift
        for (h1, l1), (h0, l0) in zip(*words, strict=True)
    ]


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


@kernel
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


@kernel
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
