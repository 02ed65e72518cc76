"""Sums over ranges of rows without a subtraction.

A difference of prefix sums loses what is small beside the rows before it: weights that are not
whole numbers leave 1e-17 where a sum is 0, and weights that span 16 decades leave nothing. A
binary tree of partial sums adds only what belongs to the range, in O(log n).
"""

import numpy as np

from ._compile import kernel


@kernel
def _fill(tree):
    """Sums upwards from the leaves, which are the second half of the rows."""
    n, m = len(tree) // 2, tree.shape[1]
    for i in range(n - 1, 0, -1):
        for j in range(m):
            tree[i, j] = tree[2 * i, j] + tree[2 * i + 1, j]


@kernel
def _add(tree, start, end, out):
    n, m = len(tree) // 2, tree.shape[1]
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


class RangeSums:
    """Sums of columns over rows start to end - 1, for arrays of starts and ends.

    Equal columns have equal sums to the last bit: the order of the additions depends on the range
    only.
    """

    def __init__(self, *columns):
        self.n = len(columns[0])
        self._tree = np.zeros((2 * self.n, len(columns)))
        self._tree[self.n :] = np.column_stack(columns)
        _fill(self._tree)

    def between(self, start, end):
        """One array for each column."""
        start, end = (np.asarray(place, np.int64) for place in (start, end))
        out = np.zeros((self._tree.shape[1], len(start)))
        _add(self._tree, start, end, out)
        return out

    def of_runs(self, starts):
        """Sums of the runs that start there; the last one ends with the rows."""
        return self.between(starts, np.append(starts[1:], self.n))
