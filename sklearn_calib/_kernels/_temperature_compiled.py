"""One pass of temperature or vector scaling, compiled: all sums from one reading of the scores.

Temperature, few classes: blocks of rows are transposed into the first cache, and the vector units
work across rows. Many classes: they work across the classes of a row.
"""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import uint64

from ._compile import compile_kernel, count_threads

_BLOCK_ROWS = 128
_MANY_CLASSES = 32  # from here on one row by itself fills the vector units

_PARALLEL, _PARTS = 2_000_000, 16  # entries from which both cores pay, and their parts

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number, kept in the low bits


@compile_kernel(fastmath={"contract"})
def exp_negative(x):
    """exp(x) for x <= 0, relative error 1e-14; unlike a library call the compiler vectorises it.

    Cody and Waite's reduction x = n log 2 + r, the Taylor polynomial of degree 11 in r, and n put
    into the exponent bits. Below -708 the value of -708 (3e-308) is returned. With the library's
    exponential a fit of 300,000 rows of 3 classes, or 50,000 of 100, takes twice as long.
    """
    x = max(x, -708.0)
    shifted = x * _LOG2_E + _ROUND
    n = shifted - _ROUND
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
    bits = (np.float64(shifted).view(np.int64) << 52) + (np.int64(1023) << 52)
    return p * np.int64(bits).view(np.float64)


def temperature_sums(z, codes, weight, beta):
    """(L, L', L'', L''', D, M) at beta; see `_temperature` for their meaning."""
    z = np.ascontiguousarray(z)
    codes, weight = np.ascontiguousarray(codes), np.ascontiguousarray(weight)
    kernel = _few if z.shape[1] < _MANY_CLASSES else _many
    if z.size < _PARALLEL:
        return kernel(z, codes, weight, float(beta))
    # the kernels release the lock: plain threads use the cores. The parts and the order of their
    # sums do not depend on the number of threads, so neither does the result.
    cuts = np.linspace(0, len(z), _PARTS + 1).astype(int)
    parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]

    def one(part):
        return kernel(z[part], codes[part], weight[part], float(beta))

    threads = count_threads()
    if threads == 1:
        return np.sum([one(part) for part in parts], axis=0)
    with ThreadPoolExecutor(threads) as pool:
        return np.sum(list(pool.map(one, parts)), axis=0)


@compile_kernel(fastmath={"contract"})
def _few(z, codes, weight, beta):
    # unsigned indices: the compiler need not think of negative ones, which would stop the vectors
    rows, zero, one = uint64(_BLOCK_ROWS), uint64(0), uint64(1)
    n, k = uint64(z.shape[0]), uint64(z.shape[1])
    block = np.empty((k, rows))
    top, true, w, d_sum = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    s0, s1, s2, s3 = np.empty(rows), np.empty(rows), np.empty(rows), np.empty(rows)
    first, second, third = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    at_infinity, at_zero = np.zeros(rows), np.zeros(rows)
    loss = 0.0
    start = zero
    while start < n:
        here = min(rows, n - start)
        if here < rows:
            block[:], true[:], w[:] = 0.0, 0.0, 0.0
        for c in range(k):
            for i in range(here):
                block[c, i] = z[start + i, c]
        for i in range(here):
            true[i] = z[start + i, uint64(codes[start + i])]
            w[i] = weight[start + i]
        for i in range(rows):
            top[i] = block[zero, i]
            s0[i], s1[i], s2[i], s3[i], d_sum[i] = 1.0, 0.0, 0.0, 0.0, 0.0
        for c in range(one, k):  # the largest goes up: its power is 1, and the others are left
            for i in range(rows):
                larger, smaller = max(top[i], block[c, i]), min(top[i], block[c, i])
                top[i], block[c, i] = larger, smaller
        for c in range(one, k):
            for i in range(rows):
                d = block[c, i] - top[i]
                power = exp_negative(beta * d)
                d_sum[i] += d
                s0[i] += power
                power *= d
                s1[i] += power
                power *= d
                s2[i] += power
                power *= d
                s3[i] += power
        for i in range(rows):
            d_true, inverse = true[i] - top[i], 1.0 / s0[i]
            e1, e2, e3 = s1[i] * inverse, s2[i] * inverse, s3[i] * inverse
            true[i] = d_true
            first[i] += w[i] * (e1 - d_true)
            second[i] += w[i] * (e2 - e1 * e1)
            third[i] += w[i] * (e3 - 3 * e1 * e2 + 2 * e1 * e1 * e1)
            at_infinity[i] -= w[i] * d_true
            at_zero[i] += w[i] * (d_sum[i] / k - d_true)
        for i in range(here):
            loss += w[i] * (math.log(s0[i]) - beta * true[i])
        start += rows
    return loss, first.sum(), second.sum(), third.sum(), at_infinity.sum(), at_zero.sum()


@compile_kernel(fastmath={"reassoc", "contract", "nsz"})
def _many(z, codes, weight, beta):
    n, k = z.shape
    loss = first = second = third = at_infinity = at_zero = 0.0
    for i in range(n):
        top = np.float64(z[i, 0])
        for c in range(k):
            top = max(top, np.float64(z[i, c]))
        s0 = s1 = s2 = s3 = d_sum = 0.0
        for c in range(k):
            d = np.float64(z[i, c]) - top
            power = exp_negative(beta * d)
            d_sum += d
            s0 += power
            power *= d
            s1 += power
            power *= d
            s2 += power
            power *= d
            s3 += power
        d_true, inverse, w = np.float64(z[i, codes[i]]) - top, 1.0 / s0, weight[i]
        e1, e2, e3 = s1 * inverse, s2 * inverse, s3 * inverse
        loss += w * (math.log(s0) - beta * d_true)
        first += w * (e1 - d_true)
        second += w * (e2 - e1 * e1)
        third += w * (e3 - 3 * e1 * e2 + 2 * e1 * e1 * e1)
        at_infinity -= w * d_true
        at_zero += w * (d_sum / k - d_true)
    return loss, first, second, third, at_infinity, at_zero


@compile_kernel(fastmath={"reassoc", "contract", "nsz"})
def vector_sums(z, codes, weight, beta, coef, intercept, gradient, row):
    """The loss is returned, the gradient is added to `gradient`; `row`, (2, k), is overwritten."""
    n, k = z.shape
    loss = 0.0 * beta
    for i in range(n):
        top = np.float64(z[i, 0])
        for c in range(k):
            top = max(top, np.float64(z[i, c]))
        highest = intercept[0] - 1e300
        for c in range(k):
            s = max(beta * (np.float64(z[i, c]) - top), -1e4)
            u = coef[c] * s + intercept[c]
            row[0, c] = s
            row[1, c] = u
            highest = max(highest, u)
        true, w, total = row[1, codes[i]] - highest, weight[i], 0.0 * beta
        for c in range(k):
            power = exp_negative(row[1, c] - highest)
            row[1, c] = power
            total += power
        share = w / total
        for c in range(k):
            p = share * row[1, c]
            gradient[0, c] += p * row[0, c]
            gradient[1, c] += p
        gradient[0, codes[i]] -= w * row[0, codes[i]]
        gradient[1, codes[i]] -= w
        loss += w * (math.log(total) - true)
    return loss
