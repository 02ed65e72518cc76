"""One pass of temperature or vector scaling, compiled: all sums from one reading of the scores.

Temperature, few classes: blocks of rows are transposed into the first cache, and the
vector units work across rows. Many classes: they work across the classes of a row.
"""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import uint64

from ._compile import compile_kernel, count_threads

_BLOCK_ROWS = 128
# From so many classes on, one row fills the vector units by itself.
_MIN_VECTORISED_CLASSES = 32

# From so many entries on, several threads pay. They work on so many parts.
_MIN_PARALLEL_ENTRIES = 2_000_000
_N_PARALLEL_PARTS = 16

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds to a whole number, which then stands in the low bits.
_ROUNDING_ADDEND = 6755399441055744.0


@compile_kernel(fastmath={"contract"})
def exponentiate_nonpositive_float(x):
    """Return exp(x) for x <= 0, relative error 1e-14.

    Unlike a library call, the compiler vectorises it.

    Cody and Waite's reduction x = n log 2 + r, the Taylor polynomial of degree 11 in r,
    and n put into the exponent bits. Below -708 the value of -708 (3e-308) is returned.
    With the library's exponential a fit of 300,000 rows of 3 classes, or 50,000 of 100,
    takes twice as long.
    """
    x = max(x, -708.0)
    shifted = x * _LOG2_E + _ROUNDING_ADDEND
    n = shifted - _ROUNDING_ADDEND
    # Cody and Waite's reduction: log 2 in two parts, so that the first product is
    # exact. The polynomial is the Taylor series of degree 11.
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    # The rounded number stands in the low bits of `shifted`; shifted into the exponent
    # it becomes 2^n.
    bits = (np.float64(shifted).view(np.int64) << 52) + (np.int64(1023) << 52)
    return p * np.int64(bits).view(np.float64)


def compute_six_temperature_loss_sums(logits, y_encoded, weight, beta):
    """Return (L, L', L'', L''', D, M) at beta; see `_temperature` for their meaning."""
    logits = np.ascontiguousarray(logits)
    y_encoded = np.ascontiguousarray(y_encoded)
    weight = np.ascontiguousarray(weight)
    kernel = (
        _sum_few_classes
        if logits.shape[1] < _MIN_VECTORISED_CLASSES
        else _sum_many_classes
    )
    if logits.size < _MIN_PARALLEL_ENTRIES:
        return kernel(logits, y_encoded, weight, float(beta))
    # The kernels release the lock, so plain threads use all cores. The parts and the
    # order of their sums do not depend on the number of threads, so neither does the
    # result.
    cuts = np.linspace(0, len(logits), _N_PARALLEL_PARTS + 1).astype(int)
    parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]

    def sum_part(part):
        return kernel(logits[part], y_encoded[part], weight[part], float(beta))

    threads = count_threads()
    if threads == 1:
        return np.sum([sum_part(part) for part in parts], axis=0)
    with ThreadPoolExecutor(threads) as pool:
        return np.sum(list(pool.map(sum_part, parts)), axis=0)


@compile_kernel(fastmath={"contract"})
def _sum_few_classes(logits, y_encoded, weight, beta):
    """Return the sums, with the vector units working across rows."""
    # With unsigned indices the compiler need not handle negative ones, which would
    # prevent vectorised loops.
    rows = uint64(_BLOCK_ROWS)
    zero = uint64(0)
    one = uint64(1)
    n = uint64(logits.shape[0])
    k = uint64(logits.shape[1])
    block = np.empty((k, rows))
    top = np.empty(rows)
    true = np.empty(rows)
    w = np.empty(rows)
    d_sum = np.empty(rows)
    s0 = np.empty(rows)
    s1 = np.empty(rows)
    s2 = np.empty(rows)
    s3 = np.empty(rows)
    first = np.zeros(rows)
    second = np.zeros(rows)
    third = np.zeros(rows)
    at_infinity = np.zeros(rows)
    at_zero = np.zeros(rows)
    loss = 0.0
    start = zero
    while start < n:
        here = min(rows, n - start)
        if here < rows:
            # The last block is padded with rows of weight 0, so that the loops below
            # have a constant length.
            block[:] = 0.0
            true[:] = 0.0
            w[:] = 0.0
        for c in range(k):
            for i in range(here):
                block[c, i] = logits[start + i, c]
        for i in range(here):
            true[i] = logits[start + i, uint64(y_encoded[start + i])]
            w[i] = weight[start + i]
        for i in range(rows):
            top[i] = block[zero, i]
            s0[i] = 1.0
            s1[i] = 0.0
            s2[i] = 0.0
            s3[i] = 0.0
            d_sum[i] = 0.0
        # The largest logit is moved to `top`, where its power is 1; the others stay.
        for c in range(one, k):
            for i in range(rows):
                larger = max(top[i], block[c, i])
                smaller = min(top[i], block[c, i])
                top[i] = larger
                block[c, i] = smaller
        for c in range(one, k):
            for i in range(rows):
                d = block[c, i] - top[i]
                power = exponentiate_nonpositive_float(beta * d)
                d_sum[i] += d
                s0[i] += power
                power *= d
                s1[i] += power
                power *= d
                s2[i] += power
                power *= d
                s3[i] += power
        for i in range(rows):
            d_true = true[i] - top[i]
            inverse = 1.0 / s0[i]
            e1 = s1[i] * inverse
            e2 = s2[i] * inverse
            e3 = s3[i] * inverse
            true[i] = d_true
            first[i] += w[i] * (e1 - d_true)
            second[i] += w[i] * (e2 - e1 * e1)
            third[i] += w[i] * (e3 - 3 * e1 * e2 + 2 * e1 * e1 * e1)
            at_infinity[i] -= w[i] * d_true
            at_zero[i] += w[i] * (d_sum[i] / k - d_true)
        for i in range(here):
            loss += w[i] * (math.log(s0[i]) - beta * true[i])
        start += rows
    return (
        loss,
        first.sum(),
        second.sum(),
        third.sum(),
        at_infinity.sum(),
        at_zero.sum(),
    )


@compile_kernel(fastmath={"reassoc", "contract", "nsz"})
def _sum_many_classes(logits, y_encoded, weight, beta):
    """Return the sums, with the vector units working across the classes of a row."""
    n, k = logits.shape
    loss = first = second = third = at_infinity = at_zero = 0.0
    for i in range(n):
        top = np.float64(logits[i, 0])
        for c in range(k):
            top = max(top, np.float64(logits[i, c]))
        s0 = s1 = s2 = s3 = d_sum = 0.0
        for c in range(k):
            d = np.float64(logits[i, c]) - top
            power = exponentiate_nonpositive_float(beta * d)
            d_sum += d
            s0 += power
            power *= d
            s1 += power
            power *= d
            s2 += power
            power *= d
            s3 += power
        d_true = np.float64(logits[i, y_encoded[i]]) - top
        inverse = 1.0 / s0
        w = weight[i]
        e1 = s1 * inverse
        e2 = s2 * inverse
        e3 = s3 * inverse
        loss += w * (math.log(s0) - beta * d_true)
        first += w * (e1 - d_true)
        second += w * (e2 - e1 * e1)
        third += w * (e3 - 3 * e1 * e2 + 2 * e1 * e1 * e1)
        at_infinity -= w * d_true
        at_zero += w * (d_sum / k - d_true)
    return loss, first, second, third, at_infinity, at_zero


@compile_kernel(fastmath={"reassoc", "contract", "nsz"})
def add_vector_scaling_loss_and_gradient(
    logits, y_encoded, weight, beta, coef, intercept, gradient, row_buffer
):
    """Return the loss, and add the gradient to `gradient`.

    `row_buffer`, (2, k), is overwritten.
    """
    n, k = logits.shape
    loss = 0.0 * beta
    for i in range(n):
        top = np.float64(logits[i, 0])
        for c in range(k):
            top = max(top, np.float64(logits[i, c]))
        # A start below all logits, as a float: a literal would be compiled as a type of
        # its own.
        highest = intercept[0] - 1e300
        for c in range(k):
            s = max(beta * (np.float64(logits[i, c]) - top), -1e4)
            u = coef[c] * s + intercept[c]
            row_buffer[0, c] = s
            row_buffer[1, c] = u
            highest = max(highest, u)
        true = row_buffer[1, y_encoded[i]] - highest
        w = weight[i]
        total = 0.0 * beta
        for c in range(k):
            power = exponentiate_nonpositive_float(row_buffer[1, c] - highest)
            row_buffer[1, c] = power
            total += power
        scale = w / total
        for c in range(k):
            p = scale * row_buffer[1, c]
            gradient[0, c] += p * row_buffer[0, c]
            gradient[1, c] += p
        gradient[0, y_encoded[i]] -= w * row_buffer[0, y_encoded[i]]
        gradient[1, y_encoded[i]] -= w
        loss += w * (math.log(total) - true)
    return loss
