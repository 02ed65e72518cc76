"""Level sets of predictions for several classes: rounding, grouping, sums.

The level set of a row p is the integer vector m = floor(n_levels * p). Floats need care twice:
floor((m / n) * n) is not m for many m (0.29 * 100), and rows stored as float32 miss lattice points
by 3e-8; so fractions within `snap` of the next integer count as it, by a rule that does not depend
on the dtype, and levels are kept as integers, never found again from a rounded vector.

The compiled functions take the table as it is stored, float32 or float64, and divide each row by
its sum on the way; no array of the table's size is made.
"""

import numpy as np
from numba import njit


def snap(n_levels):
    """How far below an integer n_levels * p may lie and still count as it."""
    return min(0.01, max(1e-9, 2e-6 * n_levels))


def levels(proba, n_levels):
    """Integer level vectors of rows on the simplex."""
    return np.floor(np.asarray(proba) * float(n_levels) + snap(n_levels)).astype(np.int64)


def rounded(level, n_levels):
    """The member of a level set that is nearest to the simplex in every coordinate.

    The rest n_levels - sum(m) is spread evenly; it is below the number of classes, so that the
    result lies in the same level set (in exact arithmetic: do not round it again).
    """
    level = np.asarray(level, dtype=float)
    rest = n_levels - level.sum(axis=-1, keepdims=True)
    return (level + rest / level.shape[-1]) / n_levels


def projected(z):
    """The nearest point of the simplex to a vector."""
    z = np.asarray(z, dtype=float)
    excess = z.sum() - 1
    if excess <= 0 and z.min() >= excess / len(z):
        return z - excess / len(z)
    descending = np.sort(z)[::-1]
    shift = (np.cumsum(descending) - 1) / np.arange(1, len(z) + 1)
    size = int(np.flatnonzero(descending > shift)[-1])
    return np.maximum(z - shift[size], 0)


def group_rows(table, n_levels, seed=0):
    """Rows of equal level: (order, starts), the groups being runs of `order`.

    Levels are hashed to 64 bits, sorted, and compared with those of the first row of their run; a
    collision starts anew with other multipliers, so that the grouping is exact.
    """
    rng = np.random.default_rng(seed)
    n, k = table.shape
    while True:
        odd = rng.integers(0, 2**63, k, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        keys = _hashes(table, float(n_levels), snap(n_levels), odd)
        order = np.argsort(keys, kind="stable")
        fresh = np.ones(n, dtype=bool)
        np.not_equal(keys[order[1:]], keys[order[:-1]], out=fresh[1:])
        starts = np.flatnonzero(fresh)
        if _equal_in_runs(table, float(n_levels), snap(n_levels), order, starts):
            return order, starts


@njit(cache=True, nogil=True)
def _row_scale(row):
    total = 0.0
    for j in range(len(row)):
        total += max(np.float64(row[j]), 0.0)
    return 1.0 / total


@njit(cache=True, nogil=True)
def _hashes(table, n_levels, slack, odd):
    """sum_j odd_j m_j modulo 2^64: exact, and independent of the order of summation."""
    n, k = table.shape
    keys = np.empty(n, dtype=np.uint64)
    for i in range(n):
        scale = n_levels * _row_scale(table[i])
        key = np.uint64(0)
        for j in range(k):
            m = np.floor(max(np.float64(table[i, j]), 0.0) * scale + slack)
            if m > 0:
                key += np.uint64(m) * odd[j]
        keys[i] = key
    return keys


@njit(cache=True, nogil=True)
def _equal_in_runs(table, n_levels, slack, order, starts):
    k = table.shape[1]
    level = np.empty(k)
    for g in range(len(starts)):
        end = starts[g + 1] if g + 1 < len(starts) else len(order)
        if end - starts[g] == 1:
            continue
        for place in range(starts[g], end):
            i = order[place]
            scale = n_levels * _row_scale(table[i])
            for j in range(k):
                m = np.floor(max(np.float64(table[i, j]), 0.0) * scale + slack)
                if place == starts[g]:
                    level[j] = m
                elif level[j] != m:
                    return False
    return True


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def gap_powers(table, codes, weight, order, starts, p):
    """(sum of p-th powers of the cells' gaps, or the largest gap for p = inf; that of the rows').

    The gap of a cell in a class is the weighted sum of prediction minus label. The second number
    is the sum of squares over single rows, which an unbiased estimate for p = 2 takes off.
    """
    k = table.shape[1]
    gap = np.zeros(k)
    total, own, largest = 0.0, 0.0, 0.0
    for g in range(len(starts)):
        end = starts[g + 1] if g + 1 < len(starts) else len(order)
        gap[:] = 0.0
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


@njit(cache=True, nogil=True)
def draw_labels(table, uniform):
    """One label a row from its probabilities, by inversion of uniform numbers."""
    n, k = table.shape
    codes = np.empty(n, dtype=np.int64)
    for i in range(n):
        left = uniform[i] / _row_scale(table[i])
        last = 0
        for j in range(k):
            mass = max(np.float64(table[i, j]), 0.0)
            if mass > 0:
                last = j
                left -= mass
                if left < 0:
                    break
        codes[i] = last
    return codes


def find_cells(table, n_levels, cells, seed=0):
    """For each row the position of its level among `cells` (b, k), or -1."""
    n, k = table.shape
    found = np.full(n, -1, dtype=np.intp)
    if not len(cells):
        return found
    rng = np.random.default_rng(seed)
    odd = rng.integers(0, 2**63, k, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = (cells.astype(np.uint64) * odd).sum(axis=1, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    if (keys[order[1:]] == keys[order[:-1]]).any():
        return find_cells(table, n_levels, cells, seed + 1)
    hashes = _hashes(table, float(n_levels), snap(n_levels), odd)
    place = np.minimum(np.searchsorted(keys[order], hashes), len(keys) - 1)
    candidate = order[place]
    candidate[keys[candidate] != hashes] = -1
    _confirm(table, float(n_levels), snap(n_levels), cells, candidate, found)
    return found


@njit(cache=True, nogil=True)
def _confirm(table, n_levels, slack, cells, candidate, found):
    for i in range(len(table)):
        if candidate[i] < 0:
            continue
        scale = n_levels * _row_scale(table[i])
        same = True
        for j in range(table.shape[1]):
            if (
                np.floor(max(np.float64(table[i, j]), 0.0) * scale + slack)
                != cells[candidate[i], j]
            ):
                same = False
                break
        if same:
            found[i] = candidate[i]
