"""The passes over a table of `_level_sets`, and the sums over its cells, compiled.

They take the table as it is stored, float32 or float64, and divide each row by its sum on the way;
no array of the table's size is made.
"""

import numpy as np

from ._compile import compile_helper, compile_kernel


@compile_helper
def _row_scale(row):
    total = 0.0
    for j in range(len(row)):
        total += max(np.float64(row[j]), 0.0)
    return 1.0 / total


@compile_helper
def _level(value, scale, slack):
    return np.floor(max(np.float64(value), 0.0) * scale + slack)


@compile_helper
def _end(starts, g, n):
    return starts[g + 1] if g + 1 < len(starts) else n


def hashes(table, n_levels, slack, odd):
    """sum_j odd_j m_j modulo 2^64: exact, and independent of the order of summation."""
    keys = np.empty(len(table), dtype=np.uint64)
    _hash_rows(table, n_levels, slack, odd, keys)
    return keys


@compile_kernel
def _hash_rows(table, n_levels, slack, odd, keys):
    for i in range(len(table)):
        scale = n_levels * _row_scale(table[i])
        key = np.uint64(0)
        for j in range(table.shape[1]):
            m = _level(table[i, j], scale, slack)
            if m > 0:
                key += np.uint64(m) * odd[j]
        keys[i] = key


def equal_in_runs(table, n_levels, slack, order, starts):
    """Whether the rows of each run of `order` have the same levels."""
    return _equal_in_runs(table, n_levels, slack, order, starts, np.empty(table.shape[1]))


@compile_kernel
def _equal_in_runs(table, n_levels, slack, order, starts, level):
    for g in range(len(starts)):
        end = _end(starts, g, len(order))
        if end - starts[g] == 1:
            continue
        for place in range(starts[g], end):
            i = order[place]
            scale = n_levels * _row_scale(table[i])
            for j in range(len(level)):
                m = _level(table[i, j], scale, slack)
                if place == starts[g]:
                    level[j] = m
                elif level[j] != m:
                    return False
    return True


@compile_helper
def _power(value, p):
    value = abs(value)
    if p == 2.0:
        return value * value
    if p == 1.0:
        return value
    if p == 1.5:
        return value * np.sqrt(value)
    if p == 4.0:
        return value * value * value * value
    return value**p


def gap_powers(table, codes, weight, order, starts, p):
    """(sum of p-th powers of the cells' gaps, or the largest gap for p = inf; that of the rows').

    The gap of a cell in a class is the weighted sum of prediction minus label. The second number
    is the sum of squares over single rows, which an unbiased estimate for p = 2 takes off.
    """
    return _gap_powers(table, codes, weight, order, starts, p, np.empty(table.shape[1]))


@compile_kernel
def _gap_powers(table, codes, weight, order, starts, p, gap):
    k = len(gap)
    total, own, largest = 0.0, 0.0, 0.0
    for g in range(len(starts)):
        end = _end(starts, g, len(order))
        for j in range(k):
            gap[j] = 0.0
        for place in range(starts[g], end):
            i = order[place]
            scale = _row_scale(table[i])
            for j in range(k):
                residual = max(np.float64(table[i, j]), 0.0) * scale
                if j == codes[i]:
                    residual -= 1.0
                residual *= weight[i]
                gap[j] += residual
                own += residual * residual
        cell = 0.0
        for j in range(k):
            if np.isinf(p):
                largest = max(largest, abs(gap[j]))
            else:
                cell += _power(gap[j], p)
        total += cell
    return (largest if np.isinf(p) else total), own


def draw_labels(table, uniform):
    """One label per row from its probabilities, by inversion of uniform numbers."""
    codes = np.empty(len(table), dtype=np.int64)
    _draw(table, uniform, codes)
    return codes


@compile_kernel
def _draw(table, uniform, codes):
    for i in range(len(table)):
        left = uniform[i] / _row_scale(table[i])
        last = 0
        for j in range(table.shape[1]):
            mass = max(np.float64(table[i, j]), 0.0)
            if mass > 0:
                last = j
                left -= mass
                if left < 0:
                    break
        codes[i] = last


@compile_kernel
def confirm(table, n_levels, slack, cells, candidate, found):
    for i in range(len(table)):
        if candidate[i] < 0:
            continue
        scale = n_levels * _row_scale(table[i])
        same = True
        for j in range(table.shape[1]):
            if _level(table[i, j], scale, slack) != cells[candidate[i], j]:
                same = False
                break
        if same:
            found[i] = candidate[i]
