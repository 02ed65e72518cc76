"""Terms into the sums of `_exact_sums`, compiled.

Terms below 2^9 can be rounded to multiples of 2^-84 before: two integers hold one then.
"""

import numpy as np

from .._simplex_array import LOG_LOSS_FLOOR
from ._compile import compile_helper, compile_kernel
from ._exact_sums import SUM_FRACTION_BITS, convert_floats_to_sums

# The integers of so many terms cannot overflow when they are added.
CHUNK_ROWS = 8192
# The number of bits behind the binary point in the first and in the second integer.
_HIGH_FRACTION_BITS = 40
_LOW_FRACTION_BITS = 44
_HIGH_SCALE = 2.0**_HIGH_FRACTION_BITS
_LOW_SCALE = 2.0**_LOW_FRACTION_BITS
# After this number has been added to another one, the last bits hold the whole part of
# that one.
_ROUNDING_ADDEND = 1.5 * 2.0**52
_ROUNDING_ADDEND_BITS = np.float64(_ROUNDING_ADDEND).view(np.int64)
_MANTISSA_MASK = np.int64((1 << 52) - 1)
_FLOAT_ONE_BITS = np.float64(1.0).view(np.int64)
# Added to a mantissa, it carries into the exponent if the mantissa is above sqrt(2).
_SQRT_2_CARRY = np.int64(0x95F64) << 32
_WORD_MASK = np.int64(0xFFFFFFFF)
# Bits of the terms that are added at a time.
_BITS_PER_LEVEL = 49
# So many levels cover all exponents of float64.
_MAX_SUM_EXPONENT_LEVELS = 48
# Terms of more bits do not fit into levels.
_MAX_TERM_BITS = 900


def count_chunks(n_rows):
    """Return how many chunks of `CHUNK_ROWS` rows there are."""
    return -(-n_rows // CHUNK_ROWS)


def sum_to_exact_integers(columns):
    """Sum each column of a float64 array of shape (n_columns, n_rows) exactly."""
    levels = np.zeros(
        (count_chunks(columns.shape[1]), len(columns), _MAX_SUM_EXPONENT_LEVELS, 2),
        np.int64,
    )
    # Terms that are too large for the levels are added exactly.
    # Python integers hold any exponent, at the cost of a slow loop.
    if not _fill_bit_level_sums(columns, np.empty(CHUNK_ROWS), levels):
        return [sum(convert_floats_to_sums(column)) for column in columns]
    sums = [0] * len(columns)
    used = np.nonzero(levels[..., 1])
    for j, (shift, integer) in zip(
        used[1].tolist(), levels[used].tolist(), strict=True
    ):
        sums[j] += integer << shift
    return sums


@compile_kernel
def _fill_bit_level_sums(columns, remainder, levels):
    """Sum chunks by bits that are added as integers.

    Returns whether all terms are small enough.
    """
    for chunk in range(len(levels)):
        for j in range(len(columns)):
            column = columns[j, chunk * CHUNK_ROWS : (chunk + 1) * CHUNK_ROWS]
            top = _copy_terms_and_get_largest_bit_pattern(column, remainder)
            if top >> 52 >= 1022 + _MAX_TERM_BITS:
                return False
            level = 0
            shift = np.int64(_MAX_TERM_BITS)
            while top > 0:
                # Each level takes 49 bits off all terms of a chunk: 8192 of them then
                # add up within 63 bits.
                shift = max(
                    min((top >> 52) - 1022, shift) - _BITS_PER_LEVEL, -SUM_FRACTION_BITS
                )
                # Adding and subtracting this constant rounds a number to a multiple of
                # 2^shift, without a call.
                magic = np.int64(((shift + 1075) << 52) | (np.int64(1) << 51)).view(
                    np.float64
                )
                integer, top = _extract_level_sum_and_max_rest_bits(
                    remainder[: len(column)], magic
                )
                levels[chunk, j, level, 0] = shift + SUM_FRACTION_BITS
                levels[chunk, j, level, 1] = integer
                level += 1
    return True


@compile_helper
def _copy_terms_and_get_largest_bit_pattern(terms, remainder):
    """Copy the terms, and return the bits of the largest."""
    top = np.int64(0)
    for i in range(len(terms)):
        remainder[i] = terms[i]
        top = max(top, np.float64(abs(terms[i])).view(np.int64))
    return top


@compile_helper
def _extract_level_sum_and_max_rest_bits(remainder, magic):
    """Take the leading bits off each term.

    Returns their sum, and the bits of the largest remainder.
    """
    integer_sum = top = np.int64(0)
    bits = np.float64(magic).view(np.int64)
    for i in range(len(remainder)):
        high = remainder[i] + magic
        remainder[i] -= high - magic
        integer_sum += np.float64(high).view(np.int64) - bits
        top = max(top, np.float64(abs(remainder[i])).view(np.int64))
    return integer_sum, top


@compile_kernel
def fill_negative_logs(x, min_x, out):
    """Fill -log(max(x, min_x)), by the same operations on every machine.

    As fdlibm does it: the error is below 1 in the last place. In a part of its own the
    loop would not be vectorised.
    """
    for i in range(len(x)):
        bits = np.float64(max(x[i], min_x)).view(np.int64)
        mantissa = bits & _MANTISSA_MASK
        above = (mantissa + _SQRT_2_CARRY) & (_MANTISSA_MASK + 1)
        power = np.float64(np.int32((bits >> 52) - 1023 + (above >> 52)))
        f = np.int64(mantissa | (above ^ _FLOAT_ONE_BITS)).view(np.float64) - 1.0
        # The polynomial of FreeBSD's `log` (msun). A library's logarithm may differ in
        # the last bit between machines, and sums would then differ too.
        s = f / (2.0 + f)
        z = s * s
        w = z * z
        even = w * (
            0.3999999999940941908
            + w * (0.2222219843214978396 + w * 0.1531383769920937332)
        )
        odd = 0.2857142874366239149 + w * (
            0.1818357216161805012 + w * 0.1479819860511658591
        )
        rest = even + z * (0.6666666666666735130 + w * odd)
        half = 0.5 * f * f
        small = s * (half + rest) + power * 1.90821492927058770002e-10
        out[i] = (half - small) - f - power * 6.93147180369123816490e-01


@compile_helper
def split_to_integers(value):
    """Return a number below 2^9 as two integers, in units of 2^-40 and 2^-84."""
    # The rounded number stands in the last bits of the float, so a view as an integer
    # replaces a conversion, which vector units lack.
    high = value * _HIGH_SCALE + _ROUNDING_ADDEND
    low = (
        value * _HIGH_SCALE - (high - _ROUNDING_ADDEND)
    ) * _LOW_SCALE + _ROUNDING_ADDEND
    high_integer = np.float64(high).view(np.int64) - _ROUNDING_ADDEND_BITS
    return high_integer, np.float64(low).view(np.int64) - _ROUNDING_ADDEND_BITS


def sum_and_join_integer_parts(parts):
    """Return sums of integers of `split_to_integers`, of shape (n_chunks, n_sums, 2)."""
    high_words = (parts >> 32).sum(axis=0).tolist()
    low_words = (parts & _WORD_MASK).sum(axis=0).tolist()
    shift = SUM_FRACTION_BITS - _HIGH_FRACTION_BITS - _LOW_FRACTION_BITS
    return [
        ((h1 << 32) + h0 << _LOW_FRACTION_BITS) + (l1 << 32) + l0 << shift
        for (h1, l1), (h0, l0) in zip(high_words, low_words, strict=True)
    ]


# The terms of a row: both losses, their squares, their expectations and the variances
# of these.
N_ROW_TERMS = 8


def compute_loss_terms_true_largest_and_argmax(columns, y_encoded):
    """Return losses of rows, and the moments of losses of labels drawn from them.

    Parameters
    ----------
    columns : ndarray of shape (n_classes, n_samples), float64
        Columns that sum to 1.
    y_encoded : ndarray of shape (n_samples,)

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
    terms = np.zeros((N_ROW_TERMS, n))
    true, largest, argmax = np.zeros((3, n))
    log = np.empty(CHUNK_ROWS)
    for start in range(0, n, CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        block = [array[rows] for array in (y_encoded, true, largest, argmax)]
        block_terms = terms[:, rows]
        minus = log[: len(block[0])]
        for c, column in enumerate(columns[:, rows]):
            fill_negative_logs(column, LOG_LOSS_FLOOR, minus)
            _add_class_moments(column, minus, c, *block, block_terms)
        fill_negative_logs(block[1], LOG_LOSS_FLOOR, minus)
        _fill_log_and_brier_terms_in_place(minus, block[1], block_terms)
    return terms, true, largest, argmax


@compile_kernel
def _add_class_moments(p, log, c, y_encoded, true, largest, argmax, terms):
    """Add the moments of one class.

    Sums of p^2 and p^3 are stored if the Brier loss will be.
    """
    for i in range(len(p)):
        x = p[i]
        minus = log[i]
        # Assignments with a condition on the value, not branches, so that the loop can
        # use vector units.
        is_larger = x > largest[i]
        largest[i] = x if is_larger else largest[i]
        argmax[i] = c if is_larger else argmax[i]
        true[i] = x if y_encoded[i] == c else true[i]
        square = x * x
        terms[2, i] += x * minus
        terms[3, i] += x * minus * minus
        terms[4, i] += square
        terms[5, i] += square * x


@compile_kernel
def _fill_log_and_brier_terms_in_place(log_loss, true, terms):
    """Turn sums over the classes of each row into the terms of both losses, in place."""
    for i in range(len(log_loss)):
        mean = terms[2, i]
        square = terms[4, i]
        cube = terms[5, i]
        # The Brier loss is sum_j (p_j - y_j)^2 = sum_j p_j^2 - 2 p_y + 1; its
        # expectation under p is 1 - sum_j p_j^2.
        brier = square - 2.0 * true[i] + 1.0
        terms[0, i] = log_loss[i]
        terms[1, i] = log_loss[i] * log_loss[i]
        # Rounding can make the variance of a certain prediction slightly negative.
        terms[3, i] = max(terms[3, i] - mean * mean, 0.0)
        terms[4, i] = brier
        terms[5, i] = brier * brier
        terms[6, i] = 1.0 - square
        terms[7, i] = max(4.0 * (cube - square * square), 0.0)
