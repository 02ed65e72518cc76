"""Randomness: one policy for `random_state`, one way to draw labels and bootstrap counts."""

from functools import cached_property

import numpy as np

from ._typing import AnyArray, ArrayLike, FloatArray, IntArray, RandomStateLike
from .exceptions import InvalidInputError, invalid_input

# Fractions of the weight of a cell below this are treated as 0.
_MIN_WEIGHT_FRACTION = 2.0**-53
# The increment of SplitMix64: 2^64 divided by the golden ratio.
GOLDEN_RATIO_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
# The shift and the factor of each mixing round of SplitMix64.
_SPLITMIX_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
# Up to so many rows per cell, on average, drawing each row takes less time than drawing
# the number of ones.
MIN_ROWS_PER_CELL = 16


def make_generator(random_state: RandomStateLike) -> np.random.Generator:
    """Make a numpy Generator from any `random_state`.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        An int gives the same draws each time, None others each time. A Generator or
        RandomState is used, and moves on.

    Examples
    --------
    >>> from sklearn_calib._random import make_generator
    >>> bool(make_generator(0).random() == make_generator(0).random())
    True
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(
            random_state.randint(0, 2**32, size=4, dtype=np.uint32)
        )
    try:
        if isinstance(random_state, bool):
            raise TypeError
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise _random_state_error(random_state) from None


def make_random_state(random_state: RandomStateLike) -> np.random.RandomState:
    """Make a RandomState from any `random_state`, for scikit-learn and published draws."""
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**32))
    try:
        if isinstance(random_state, bool):
            raise TypeError
        return np.random.RandomState(random_state)
    except (TypeError, ValueError):
        raise _random_state_error(random_state) from None


def check_seed(random_state: RandomStateLike) -> None:
    """Reject an invalid `random_state`, without drawing from a valid one."""
    types = (np.integer, np.random.RandomState, np.random.Generator)
    if random_state is not None and not isinstance(random_state, types):
        make_generator(random_state)


def _random_state_error(random_state: object) -> InvalidInputError:
    return invalid_input(
        expected="random_state as a whole number from 0, a Generator, a RandomState or None",
        got=repr(random_state),
        hint="Pass for instance random_state=0",
    )


def spawn_generators(
    random_state: RandomStateLike, n: int
) -> list[np.random.Generator]:
    """Return `n` independent Generators that depend on `random_state` alone."""
    seeds = make_generator(random_state).integers(0, 2**63, size=(n, 2))
    return [np.random.default_rng(seed) for seed in seeds]


def mix_bits(key: AnyArray) -> AnyArray:
    """Mix the bits of unsigned 64-bit numbers (the last steps of splitmix64).

    Different numbers give keys that can be used as random numbers.
    """
    for shift, factor in _SPLITMIX_ROUNDS:
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    return key ^ (key >> np.uint64(31))


def draw_labels(bounds: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one label per row from its distribution.

    Parameters
    ----------
    bounds : ndarray of shape (n_samples, n_classes)
        Cumulated probabilities, as `cumulate_proba` makes them.
    rng : Generator

    Returns
    -------
    codes : ndarray of shape (n_samples,), intp
    """
    u = rng.random(len(bounds))
    if bounds.shape[1] == 2:
        return (u >= bounds[:, 0]).astype(np.intp)
    return (u[:, None] >= bounds[:, :-1]).sum(axis=1)


def cumulate_proba(proba: ArrayLike) -> FloatArray:
    """Compute the bounds for `draw_labels`: cumulated rows, the last exactly 1."""
    bounds = np.cumsum(np.asarray(proba, dtype=float), axis=1)
    return bounds / bounds[:, -1:]


def draw_row_counts(n: int, rng: np.random.Generator) -> FloatArray:
    """Draw how often each of `n` rows is in a bootstrap sample: float64, sums to n."""
    return np.bincount(rng.integers(0, n, n), minlength=n).astype(float)


def draw_rescaled_cluster_counts(n_groups: int, rng: np.random.Generator) -> FloatArray:
    """Draw the counts of clusters, one fewer than there are, for unbiased variances.

    Rao, Wu (1988), "Resampling inference with complex survey data", section 2.
    """
    counts = np.bincount(rng.integers(0, n_groups, n_groups - 1), minlength=n_groups)
    return counts.astype(float) * (n_groups / (n_groups - 1))


class CellBinomialSampler:
    """Rows of two classes in cells, of which labels are drawn.

    A label is 1 if a uniform number u is below the chance of its row. Of the rows of a
    cell whose chances lie between a and b, those with u < a are 1 and those with u >= b
    are 0 in any case, so their numbers are binomial; the others, few where the cell is
    narrow, are any of the rows with equal probability, and are drawn one by one.

    Parameters
    ----------
    n_rows_by_cell : ndarray of shape (n_cells,), int
        The number of rows of each cell.
    chance : ndarray of shape (n_samples,) or (n_cells,)
        The probability of label 1 of each row, or of each cell if `of_rows` is False.
    of_rows : bool
    """

    def __init__(
        self, n_rows_by_cell: IntArray, chance: FloatArray, *, of_rows: bool
    ) -> None:
        self.n_rows_by_cell = n_rows_by_cell
        max_few_rows = MIN_ROWS_PER_CELL * len(n_rows_by_cell)
        self.has_few_rows_per_cell = n_rows_by_cell.sum() <= max_few_rows
        # The chance of a label 1, of each row (`of_rows`) or of each cell.
        self._chance = chance
        self._of_rows = of_rows

    @cached_property
    def _row_cells(self):
        """Return the cell of each row."""
        return np.repeat(np.arange(len(self.n_rows_by_cell)), self.n_rows_by_cell)

    @cached_property
    def _row_probabilities(self):
        """Return the probability of each row."""
        return self._chance if self._of_rows else self._chance[self._row_cells]

    @cached_property
    def _cell_starts(self):
        return np.append(0, self.n_rows_by_cell[:-1].cumsum())

    @cached_property
    def _cell_probability_ranges(self):
        """Return the smallest and the largest probability of the rows of each cell."""
        ends = np.minimum, np.maximum
        return [end.reduceat(self._chance, self._cell_starts) for end in ends]

    def draw_event_totals_by_cell(
        self, rng: np.random.Generator, weight: FloatArray | None = None
    ) -> AnyArray:
        """Draw how many labels are 1 in each cell, or their summed weight."""
        if weight is None and not self.has_few_rows_per_cell:
            if self._of_rows:
                return self._draw_counts(rng)
            return rng.binomial(self.n_rows_by_cell, self._chance)
        ones = rng.random(len(self._row_probabilities)) < self._row_probabilities
        if weight is not None:
            ones = ones * weight
        return np.bincount(self._row_cells, ones, len(self.n_rows_by_cell))

    def _draw_counts(self, rng):
        """Draw the number of ones in cells whose rows have slightly different chances.

        A row has a one if a uniform number is below its chance. Numbers below the
        smallest chance of the cell, and above the largest, decide without the row; only
        the few between them need one.
        """
        low, high = self._cell_probability_ranges
        ones = rng.binomial(self.n_rows_by_cell, low)
        between = (high - low) / np.where(low < 1, 1 - low, 1)
        n_undecided = rng.binomial(self.n_rows_by_cell - ones, np.minimum(between, 1))
        cell = np.repeat(np.arange(len(n_undecided)), n_undecided)
        row = self._cell_starts[cell] + self._draw_distinct_positions_in_cells(
            n_undecided, rng
        )
        u = low[cell] + rng.random(len(cell)) * (high - low)[cell]
        is_one = u < self._row_probabilities[row]
        return ones + np.bincount(cell[is_one], minlength=len(ones))

    def _draw_distinct_positions_in_cells(self, n_drawn_by_cell, rng):
        """Draw different rows of each cell with equal probabilities, as positions in the cells."""
        # A single row is any row; several rows of a cell are drawn without replacement.
        places = rng.integers(0, np.repeat(self.n_rows_by_cell, n_drawn_by_cell))
        ends = n_drawn_by_cell.cumsum()
        for cell in np.flatnonzero(n_drawn_by_cell > 1):
            cell_slice = slice(ends[cell] - n_drawn_by_cell[cell], ends[cell])
            places[cell_slice] = rng.choice(
                self.n_rows_by_cell[cell], n_drawn_by_cell[cell], replace=False
            )
        return places


def compute_weight_moments_and_equality(
    counts: AnyArray, weight: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray, bool]:
    """Compute mean and variance of the weights in each cell, and whether all variances are 0.

    Parameters
    ----------
    counts : ndarray of int
        Numbers of rows.
    weight, squares : ndarray
        Sums of their weights and squared weights.
    """
    number = np.maximum(counts, 1)
    mean = weight / number
    variance = squares / number - mean**2
    # A smaller variance is rounding: the weights are equal.
    variance = np.where(variance > 1e-9 * mean**2, variance, 0.0)
    return mean, variance, not variance.any()


def draw_partial_row_weight(
    n_drawn: AnyArray,
    counts: AnyArray,
    weight: FloatArray,
    moments: tuple[FloatArray, FloatArray, bool],
    rng: np.random.Generator,
) -> FloatArray:
    """Draw the weight of `n_drawn` rows out of `counts` without replacement.

    `moments` are those of `compute_weight_moments_and_equality`. The share of the weight is
    a beta variable with the mean and the variance of such draws.
    """
    mean, variance, equal = moments
    weight_drawn = np.where(n_drawn < counts, n_drawn * mean, weight)
    if not equal:
        split = (variance > 0) & (n_drawn > 0) & (n_drawn < counts)
        n = counts[split]
        k = n_drawn[split]
        size = np.maximum(mean[split] ** 2 * (n - 1) / variance[split] - 1, 1e-3)
        share = rng.beta(size * k / n, size * (n - k) / n)
        # The draws go down to 1e-300; a share near 1 is rounded to 1 in the same way.
        share[share < _MIN_WEIGHT_FRACTION] = 0.0
        weight_drawn[split] = weight[split] * share
    return weight_drawn
