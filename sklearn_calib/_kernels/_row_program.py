"""A fitted map as one list of steps, which is run for each row: see `recalibrators/_row_program`.

A row's numbers stand in a column of `w`, some rows beside each other. A step is six whole numbers:
what to do, where the result goes, where its one or two arguments are, how many numbers they have,
and where in `data` its constants begin. A step is made for all rows before the next one.
"""

import math

from ._compile import kernel, part

(
    PAIR,  # two numbers: of b, of a
    MARGIN,  # of two numbers, the second less the first
    MATRIX,  # rows data[:n], data[n:2n], ... times a, and data[n n:]
    LOG,  # of max(a, data[0])
    LEAST,  # max(a, data[0])
    AFFINE,  # data[:n] a + data[n:]
    ADD,  # a + data[0] b
    OTHERS,  # sums of all entries of a but one
    LOG_OTHERS,  # logarithms of such sums of exponentials
    CENTRE,  # a less its largest entry
    SOFTMAX,
    SQUEEZE,  # 1 / (1 + the largest entry of a - a), divided by the sum
    RAISE,  # a, or with an entry below data[0]: the larger of both, divided by the sum
    DIVIDE,  # a by its sum; b where the sum is 0
    POLYNOMIAL,  # of degree n, in (a - data[0]) / data[1]
    CUBIC,  # between n knots: domain, knots, values, slopes
    STEPS,  # n edges and their n + 1 values
    SIGMOID,  # two numbers: of -a and of a
    CLIPPED,  # two numbers: 1 - p and p, for p = a in [0, 1]
) = range(19)


@part
def _place(data, start, n, x):
    """How many of n increasing numbers are at most x."""
    low, high = start, start + n
    while low < high:
        middle = (low + high) // 2
        if data[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low - start


@part
def _sigmoid(x):
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    up = math.exp(x)
    return up / (1.0 + up)


@part
def _log_sum(x, y):
    """log(e^x + e^y)."""
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@part
def _cubic(data, c, n, x):
    """As the node `piecewise_cubic`, whose domain stands before the knots."""
    x = min(max(x, data[c]), data[c + 1])
    c += 2
    left = c + min(max(_place(data, c, n, x) - 1, 0), n - 2)
    width = data[left + 1] - data[left]
    at = (x - data[left]) / width
    t = min(max(at, 0.0), 1.0)
    beyond = (at - t) * width
    s, square = 1.0 - t, t * t
    value, slope = left + n, left + 2 * n
    return (
        s * s * (1.0 + 2.0 * t) * data[value]
        + square * (3.0 - 2.0 * t) * data[value + 1]
        + (width * t * s * s + min(beyond, 0.0)) * data[slope]
        + (max(beyond, 0.0) - width * square * s) * data[slope + 1]
    )


@part
def _of_one(op, w, m, dst, a, n, c, data):
    """Steps whose argument is one number."""
    for r in range(m):
        x = w[a, r]
        if op == SIGMOID:
            w[dst, r], w[dst + 1, r] = _sigmoid(-x), _sigmoid(x)
        elif op == CLIPPED:
            x = min(max(x, 0.0), 1.0)
            w[dst, r], w[dst + 1, r] = 1.0 - x, x
        elif op == STEPS:
            w[dst, r] = data[c + n + _place(data, c, n, x)]
        elif op == CUBIC:
            w[dst, r] = _cubic(data, c, n, x)
        else:  # POLYNOMIAL
            z, y = (x - data[c]) / data[c + 1], data[c + 2 + n]
            for i in range(n - 1, -1, -1):
                y = y * z + data[c + 2 + i]
            w[dst, r] = y


@part
def _of_entries(op, w, m, dst, a, b, n, c, data):
    """Steps in which each of n numbers is by itself."""
    for i in range(n):
        first = data[c + i] if op == AFFINE else data[c]
        second = data[c + n + i] if op == AFFINE else 0.0
        for r in range(m):
            if op == LOG:
                w[dst + i, r] = math.log(max(w[a + i, r], first))
            elif op == AFFINE:
                w[dst + i, r] = w[a + i, r] * first + second
            elif op == ADD:
                w[dst + i, r] = w[a + i, r] + first * w[b + i, r]
            else:  # LEAST
                w[dst + i, r] = max(w[a + i, r], first)


@part
def _largest(w, r, a, n, sign):
    """The largest of n numbers, or with sign -1 minus the smallest."""
    top = sign * w[a, r]
    for i in range(1, n):
        top = max(top, sign * w[a + i, r])
    return top


@part
def _divided(w, r, dst, a, b, n):
    total = 0.0
    for i in range(n):
        total += w[a + i, r]
    if total <= 0.0:
        a, total = b, 0.0
        for i in range(n):
            total += w[a + i, r]
    for i in range(n):
        w[dst + i, r] = w[a + i, r] / total


@part
def _of_row(op, w, m, dst, a, b, n, c, data):
    """Steps that need all of the n numbers."""
    for r in range(m):
        if op == CENTRE:
            top = _largest(w, r, a, n, 1.0)
            for i in range(n):
                w[dst + i, r] = w[a + i, r] - top
            continue
        if op == SOFTMAX:
            top = _largest(w, r, a, n, 1.0)
            for i in range(n):
                w[dst + i, r] = math.exp(w[a + i, r] - top)
        elif op == SQUEEZE:
            top = _largest(w, r, a, n, 1.0)
            for i in range(n):
                w[dst + i, r] = 1.0 / (1.0 + top - w[a + i, r])
        elif op == RAISE:
            low = -_largest(w, r, a, n, -1.0) < data[c]
            for i in range(n):
                w[dst + i, r] = max(w[a + i, r], data[c]) if low else w[a + i, r]
            if not low:
                continue
        _divided(w, r, dst, a if op == DIVIDE else dst, b, n)


@part
def _matrix(w, m, dst, a, n, c, data):
    for i in range(n):
        for r in range(m):
            w[dst + i, r] = data[c + n * n + i]
        for j in range(n):
            x = data[c + i * n + j]
            for r in range(m):
                w[dst + i, r] += x * w[a + j, r]


@part
def _of_others(w, m, dst, a, n, logs):
    """From the left and from the right: no difference, which would lose digits."""
    for r in range(m):
        before, after = w[a, r], w[a + n - 1, r]
        for i in range(1, n):
            w[dst + i, r] = before
            x = w[a + i, r]
            before = _log_sum(before, x) if logs else before + x
        for i in range(n - 2, 0, -1):
            x, y = w[a + i, r], w[dst + i, r]
            w[dst + i, r] = _log_sum(y, after) if logs else y + after
            after = _log_sum(after, x) if logs else after + x
        w[dst, r] = after


@kernel
def run_rows(code, data, table, w, out):
    """Run the steps on the rows of `table`, as many at once as `w` has columns."""
    (n_rows, n_given), n_out, (end, width) = table.shape, out.shape[1], w.shape
    for first in range(0, n_rows, width):
        m = min(width, n_rows - first)
        for r in range(m):
            for i in range(n_given):
                w[i, r] = table[first + r, i]
        for line in range(len(code)):
            op, dst, a = code[line, 0], code[line, 1], code[line, 2]
            b, n, c = code[line, 3], code[line, 4], code[line, 5]
            if op == PAIR:
                for r in range(m):
                    w[dst, r], w[dst + 1, r] = w[b, r], w[a, r]
            elif op == MARGIN:
                for r in range(m):
                    w[dst, r] = w[a + 1, r] - w[a, r]
            elif op == MATRIX:
                _matrix(w, m, dst, a, n, c, data)
            elif op >= POLYNOMIAL:
                _of_one(op, w, m, dst, a, n, c, data)
            elif op >= CENTRE:
                _of_row(op, w, m, dst, a, b, n, c, data)
            elif op >= OTHERS:
                _of_others(w, m, dst, a, n, op == LOG_OTHERS)
            else:
                _of_entries(op, w, m, dst, a, b, n, c, data)
        for r in range(m):
            for i in range(n_out):
                out[first + r, i] = w[end - n_out + i, r]
