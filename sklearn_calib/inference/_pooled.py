"""Rows of two classes pooled into cells, so that tests evaluate cells and not rows.

A test is exact for any statistic as long as the labels have their law and the observed statistic is
the same function as those of the draws. So scores may be pooled, and the law of the labels is not
touched: each row keeps its own probability. A label is 1 where a uniform number u is below it. Of
the rows of a cell whose probabilities lie between a and b, those with u < a are 1 and those with
u >= b are 0 whatever they are, so their numbers are binomial; the others, few where the cell is
narrow, are any of the rows with equal probability, and are drawn one by one.
"""

from functools import cached_property

import numpy as np

from .._kernels._cells import runs_of_sorted
from .._simplex import carries_log
from .._typing import AnyArray, FloatArray, IntArray
from ..metrics import Case

MOST_CELLS = 4096
_FEW = 16  # rows per cell, on average: drawing rows takes less time then than drawing numbers


class PooledRows:
    """Rows of two classes in cells of nearly equal probability.

    Parameters
    ----------
    proba : ndarray of shape (n_samples, 2)
        Increasing in the second column.
    hit : ndarray of shape (n_samples,), bool
        Whether the label is the second.
    weight : ndarray of shape (n_samples,)
        Above 0.
    starts : ndarray of shape (n_cells,)
        The first row of each cell.
    where : str
        The opening of error messages.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference._pooled import PooledRows
    >>> proba = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    >>> pooled = PooledRows(proba, np.array([False, False, True]), np.ones(3), np.array([0, 1]))
    >>> pooled.observed.weight.tolist()  # of labels 0 and 1 in each cell
    [1.0, 0.0, 1.0, 1.0]
    """

    def __init__(
        self,
        proba: FloatArray,
        hit: AnyArray,
        weight: FloatArray,
        starts: IntArray,
        where: str = "measure",
    ) -> None:
        self._chance = proba[:, 1] / proba.sum(axis=1)
        self._weight, self._starts = weight, starts
        self._rows = np.diff(np.append(starts, len(proba)))
        self._total = np.add.reduceat(weight, starts)
        self._equal = bool((weight == 1).all())
        self._few = len(proba) <= _FEW * len(starts)
        mean = np.add.reduceat(proba * weight[:, None], starts, axis=0) / self._total[:, None]
        last = np.append(starts[1:], len(proba)) - 1
        for column, ends in ((0, (last, starts)), (1, (starts, last))):  # equal ones stay as is
            mean[:, column] = np.clip(mean[:, column], *(proba[end, column] for end in ends))
        codes = np.tile(np.arange(2), len(starts))
        cells = Case(np.repeat(mean, 2, axis=0), codes, None, np.arange(2), where=where)
        cells.problems()  # sorted once for all that is drawn
        self._cells = cells
        self.observed = self._labelled(np.add.reduceat(weight * hit, starts))

    def _labelled(self, ones):
        """The cells as a `Case`, two rows each, with these weights of label 1."""
        weight = np.empty((len(ones), 2))
        weight[:, 0], weight[:, 1] = self._total - ones, ones
        return self._cells.with_weight(weight.ravel())

    def relabelled(self, rng: np.random.Generator) -> Case:
        """The same rows, with labels drawn from the predictions.

        Parameters
        ----------
        rng : Generator

        Returns
        -------
        case : Case
            Two rows for each cell, one of each label.
        """
        if self._equal and not self._few:
            return self._labelled(self._numbers(rng).astype(np.float64))
        hit = rng.random(len(self._chance)) < self._chance
        drawn = hit if self._equal else hit * self._weight
        return self._labelled(np.bincount(self._cell, drawn, len(self._starts)))

    @cached_property
    def _cell(self):
        """The cell of each row."""
        return np.repeat(np.arange(len(self._starts)), self._rows)

    @cached_property
    def _range(self):
        """The smallest and the largest chance of the rows of each cell."""
        ends = np.minimum, np.maximum
        return [end.reduceat(self._chance, self._starts) for end in ends]

    def _numbers(self, rng):
        """How many labels are 1 in each cell."""
        low, high = self._range
        ones = rng.binomial(self._rows, low)
        between = (high - low) / np.where(low < 1, 1 - low, 1)
        open_ = rng.binomial(self._rows - ones, np.minimum(between, 1))
        cell = np.repeat(np.arange(len(open_)), open_)
        row = self._starts[cell] + self._places(open_, rng)
        u = low[cell] + rng.random(len(cell)) * (high - low)[cell]
        return ones + np.bincount(cell[u < self._chance[row]], minlength=len(ones))

    def _places(self, numbers, rng):
        """So many different rows of each cell, each with the same chance: places in the cells."""
        places = rng.integers(0, np.repeat(self._rows, numbers))
        ends = numbers.cumsum()
        for c in np.flatnonzero(numbers > 1):
            here = slice(ends[c] - numbers[c], ends[c])
            places[here] = rng.choice(self._rows[c], numbers[c], replace=False)
        return places


def pooled_rows(case: Case) -> PooledRows | None:
    """The rows of a case as cells, or None where that would not save work.

    Parameters
    ----------
    case : Case
        Of more than two classes, the largest probability against whether that class is true.

    Returns
    -------
    pooled : PooledRows or None
        At most 4096 cells, of equal scores if there are no more of these. None for less than two
        rows per cell, and for predictions that carry exact logarithms, which cells do not.
    """
    if carries_log(case.proba):
        return None
    if len(case.classes) == 2:
        proba, hit = np.asarray(case.proba), case.codes == 1
    else:
        (problem,) = case.problems()
        proba = np.column_stack([1.0 - problem.score, problem.score])
        hit = problem.hit == 1
    order = np.lexsort((-proba[:, 0], proba[:, 1]))
    proba = proba[order]
    new = (proba[1:] != proba[:-1]).any(axis=1)
    starts = np.flatnonzero(np.append(True, new))
    if len(starts) > MOST_CELLS:
        starts = runs_of_sorted(proba[:, 1], proba[:, 0], MOST_CELLS)
    if 2 * len(starts) > len(proba):
        return None
    return PooledRows(proba, hit[order], case.weight[order], starts, case.where)
