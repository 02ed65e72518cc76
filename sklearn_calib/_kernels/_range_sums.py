"""Sums over ranges of rows without a subtraction.

A difference of prefix sums loses what is small beside the rows before it: weights that are not
whole numbers leave 1e-17 where a sum is 0, and weights that span 16 decades leave nothing. A
binary tree of partial sums adds only what belongs to the range, in O(log n).
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _tree(leaves):
    n, m = leaves.shape
    tree = np.zeros((2 * n, m))
    tree[n:] = leaves
    for i in range(n - 1, 0, -1):
        for j in range(m):
            tree[i, j] = tree[2 * i, j] + tree[2 * i + 1, j]
    return tree


@njit(cache=True, nogil=True)
def _sums(tree, start, end):
    n, m = len(tree) // 2, tree.shape[1]
    out = np.zeros((m, len(start)))
    for q in range(len(start)):
        low, high = start[q] + n, end[q] + n
        while low < high:
            if low & 1:
                for j in range(m):
                    out[j, q] += tree[low, j]
                low += 1
            if high & 1:
                high -= 1
                for j in range(m):
                    out[j, q] += tree[high, j]
            low >>= 1
            high >>= 1
    return out


class RangeSums:
    """Sums of columns over rows start to end - 1, for arrays of starts and ends.

    Equal columns have equal sums to the last bit: the order of the additions depends on the range
    only.
    """

    def __init__(self, *columns):
        self.n = len(columns[0])
        self._partial = _tree(np.column_stack(columns).astype(np.float64))

    def between(self, start, end):
        """One array for each column."""
        return _sums(self._partial, np.asarray(start, np.int64), np.asarray(end, np.int64))

    def of_runs(self, starts):
        """Sums of the runs that start there; the last one ends with the rows."""
        return self.between(starts, np.append(starts[1:], self.n))
