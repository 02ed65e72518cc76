"""Rows drawn again, labels drawn from the predictions, and folds, of cells instead of rows.

Each has the law of the same thing done to the rows, as far as measures depend on it,
which use the weight of each label in each cell. Rows of one cell and label are alike,
so their numbers are all there is to draw:

* rows with replacement: the numbers are multinomial, that is Poisson and independent
  but for their total, which the measures do not see;
* labels, if the predictions are calibrated: binomial, with the mean score of the cell.
  The mean is exact; the variance is too large by a part h^2 / (4 p (1 - p)) at most in
  a cell of width h;
* a random partition of the rows: each fold takes a binomial share of what is left.

If weights differ inside a cell, the weight of N rows drawn with replacement follows
a gamma law, that of N of its n rows a beta law on the share; mean and variance are
those of such draws.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._kernels._binning import sum_bins
from .._kernels._cells import (
    COUNT_COLUMN_0,
    compute_mean_label_proba_by_cell,
    get_label_weight_sums_and_squares,
)
from .._kernels._proportion import compute_exact_interval
from .._random import (
    CellBinomialSampler,
    compute_weight_moments_and_equality,
    draw_partial_row_weight,
)
from .._typing import AnyArray, FloatArray, IntArray, RecalibratorLike
from .._validation import (
    MIN_PERMUTED_ACCURACY_GAIN,
    OrderedPairAndRowCounts,
    are_ranked_well,
)
from ..metrics import Predictions, PredictionsByScore
from ..recalibrators import (
    fit_recalibrator,
    predict_proba_aligned,
    resolve_recalibrator,
    warn_repeated_rows_in_counts,
)


class Fold(NamedTuple):
    """The rows of one fold of a summary: arrays of shape (n_cells, 2), one column per label.

    Parameters
    ----------
    counts : ndarray
        Numbers of rows.
    weight, squares : ndarray
        Sums of their weights and squared weights.
    """

    counts: AnyArray
    weight: FloatArray
    squares: FloatArray


class HeldOutPredictions(NamedTuple):
    """Rows of all folds in turn, each recalibrated by a fit to the other folds.

    Attributes
    ----------
    predictions : Predictions
        With the recalibrated probabilities.
    sample_indices : ndarray of shape (n_rows,)
        Which of the predictions of the sample they are; equal rows may be in several
        folds.
    squares : ndarray of shape (n_rows,)
        Their sums of squared weights.
    """

    predictions: Predictions
    sample_indices: IntArray
    squares: FloatArray


class CellSample(PredictionsByScore):
    """Rows of a two-class problem in cells, from which resamples are drawn.

    Parameters
    ----------
    proba : ndarray of shape (n_cells, 2)
        Probabilities of both labels at the mean of each cell, cells in increasing order
        of the second.
    counts : ndarray of shape (n_cells, 2), int64
        Numbers of rows with label 0 and 1.
    weight, squares : ndarray of shape (n_cells, 2)
        Sums of their weights and squared weights; equal to `counts` if all rows
        weigh 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.metrics import brier_loss
    >>> from sklearn_calib.summary import CellSample
    >>> counts = np.array([[300, 100], [100, 300]])
    >>> sample = CellSample(np.array([[0.75, 0.25], [0.25, 0.75]]), counts, counts, counts)
    >>> rng = np.random.default_rng(0)
    >>> samples = [sample.draw_bootstrap_sample(rng) for _ in range(99)]
    >>> drawn = [brier_loss.evaluate(one) for one in samples]
    >>> round(float(np.mean(drawn)), 2), round(brier_loss.evaluate(sample.predictions), 4)
    (0.19, 0.1875)
    """

    def __init__(
        self,
        proba: FloatArray,
        counts: AnyArray,
        weight: FloatArray,
        squares: FloatArray,
    ) -> None:
        self.proba = proba
        self.counts = np.asarray(counts, dtype=np.int64)
        self.weight = np.asarray(weight, dtype=float)
        self.squares = np.asarray(squares, dtype=float)
        self.n_samples = int(self.counts.sum())

    @classmethod
    def from_table(cls, table: AnyArray, shift: int, max_cells: int) -> "CellSample":
        """Return the cells of a table, made coarser where they are more than `max_cells`."""
        from .._kernels._cells_compiled import merge_cells_to_limit

        # Drawing takes time in proportion to the cells.
        if len(table) > max_cells:
            table, _ = merge_cells_to_limit(table, shift, max_cells)
        return cls(
            compute_mean_label_proba_by_cell(table),
            table[:, COUNT_COLUMN_0 : COUNT_COLUMN_0 + 2],
            *get_label_weight_sums_and_squares(table),
        )

    @property
    def exchanged(self) -> bool:
        """Whether the rows fit the two classes far better the other way round.

        See `find_column_order` for what must hold.
        """
        zeros, ones = self.counts.T.astype(float)
        second = self.proba[:, 1] > 0.5
        wrong = zeros[second].sum() + ones[~second].sum()
        n = zeros.sum() + ones.sum()
        if 2 * wrong - n < MIN_PERMUTED_ACCURACY_GAIN * n or not (
            zeros.any() and ones.any()
        ):
            return False
        return are_ranked_well([self.backwards], 2)

    @property
    def backwards(self) -> OrderedPairAndRowCounts:
        """How the probability of the second class ranks the first."""
        zeros, ones = self.counts.T.astype(float)
        # The Mann-Whitney statistic of cells sorted by score; ties count one half.
        below = np.cumsum(ones) - ones / 2
        return OrderedPairAndRowCounts(zeros @ below, zeros.sum(), ones.sum())

    def count_effective_rows(self) -> float:
        """Return how many rows of equal weight are as informative (Kish)."""
        return float(self.weight.sum() ** 2 / self.squares.sum())

    def compute_frequency_intervals(
        self, cell_bin: IntArray, n_bins: int, level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Compute intervals for the frequency of label 1 in each bin.

        NaN for empty bins.

        Clopper and Pearson's, with Kish's number of rows.

        Parameters
        ----------
        cell_bin : ndarray of shape (n_cells,)
        n_bins : int
        level : float
        """
        mass, events, squares = sum_bins(
            cell_bin,
            n_bins,
            self.weight.sum(axis=1),
            self.weight[:, 1],
            self.squares.sum(axis=1),
        )
        low, high = np.full((2, n_bins), np.nan)
        filled = mass > 0
        # Kish's number of rows in each bin.
        rows = mass[filled] ** 2 / squares[filled]
        share = np.minimum(events[filled] / mass[filled], 1.0)
        low[filled], high[filled] = compute_exact_interval(share * rows, rows, level)
        return low, high

    def draw_bootstrap_sample(self, rng: np.random.Generator) -> Predictions:
        """Draw as many rows with replacement.

        Parameters
        ----------
        rng : Generator

        Returns
        -------
        predictions : Predictions
            The cells with other weights.
        """
        if self._label_sampler.has_few_rows_per_cell:
            drawn = rng.integers(0, self.n_samples, self.n_samples)
            counts = np.bincount(
                self._cell_label_index_by_row[drawn], minlength=self.counts.size
            )
            counts = counts.reshape(self.counts.shape)
        else:
            # Independent Poisson numbers are a multinomial draw but for their total, on
            # which normalised measures do not depend.
            counts = rng.poisson(self.counts)
        mean, variance, equal = self._cell_label_weight_moments_and_equality
        weight = counts * mean
        if not equal:
            varied = variance > 0
            # A gamma law with the mean and the variance of a sum of so many of the
            # weights.
            scale = variance[varied] / mean[varied]
            weight[varied] = rng.gamma(weight[varied] / scale, scale)
        return self.predictions.with_weight(weight.ravel())

    def simulate_labels(
        self, rng: np.random.Generator, law: FloatArray | None = None
    ) -> Predictions:
        """Return the same rows, with labels drawn from the predictions, or from another law.

        Parameters
        ----------
        rng : Generator
        law : ndarray of shape (n_cells,), default=None
            The probability of label 1 in each cell.

        Returns
        -------
        predictions : Predictions
            The cells with other weights.
        """
        rows, total, moments = self._cell_counts_weights_moments
        labels = (
            self._label_sampler
            if law is None
            else CellBinomialSampler(rows, law, of_rows=False)
        )
        weight = draw_partial_row_weight(
            labels.draw_event_totals_by_cell(rng),
            rows,
            total,
            moments,
            rng,
        )
        return self.predictions.with_weight(
            np.stack([total - weight, weight], axis=1).ravel()
        )

    def draw_event_weights(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw the labels of `simulate_labels` many times, as sums for each cell.

        Parameters
        ----------
        n_draws : int
        rng : Generator

        Returns
        -------
        weight : ndarray of shape (n_draws, n_cells)
            The weight of label 1 in each cell.
        """
        rows, total, moments = self._cell_counts_weights_moments
        shape = n_draws, len(rows)
        # Single rows need a uniform number each, which is faster than a binomial one.
        if (rows <= 1).all():
            ones = (rng.random(shape) < self.proba[:, 1]) * rows
        else:
            ones = rng.binomial(rows, self.proba[:, 1], shape)
        if moments[2]:
            return ones * moments[0]
        return np.array(
            [draw_partial_row_weight(some, rows, total, moments, rng) for some in ones]
        )

    def split_into_folds(self, n_folds: int, rng: np.random.Generator) -> list[Fold]:
        """Return the rows, parted at random into folds.

        Each row is in each fold with the same probability, independently of the others.

        Parameters
        ----------
        n_folds : int
        rng : Generator

        Returns
        -------
        folds : list of Fold
        """
        warn_repeated_rows_in_counts(self.counts)
        left = Fold(self.counts, self.weight, self.squares)
        folds = []
        for folds_left in range(n_folds, 1, -1):
            # Of the remaining rows each is in the next fold with this probability: a
            # random partition.
            counts = rng.binomial(left.counts, 1 / folds_left)
            share = counts / np.maximum(left.counts, 1)
            weight = draw_partial_row_weight(
                counts,
                left.counts,
                left.weight,
                compute_weight_moments_and_equality(*left),
                rng,
            )
            folds.append(Fold(counts, weight, left.squares * share))
            left = Fold(
                *(whole - drawn for whole, drawn in zip(left, folds[-1], strict=True))
            )
        return [*folds, left]

    def recalibrate_held_out(
        self, recalibrator: RecalibratorLike, folds: Sequence[Fold]
    ) -> HeldOutPredictions:
        """Recalibrate each row by a fit to the folds that it is not in.

        Parameters
        ----------
        recalibrator : str or recalibrator
            Cloned for each fold.
        folds : sequence of Fold
            What `split_into_folds` returned.

        Returns
        -------
        held : HeldOutPredictions
            The cells of each fold in turn, one row for each label that has weight
            there. The rows and their order depend on the folds alone.
        """
        codes = np.tile(np.arange(2), len(self.proba))
        rows = np.repeat(self.proba, 2, axis=0)
        proba_of_folds = []
        for fold in folds:
            # Rounding of drawn weights must not leave a negative rest.
            train = np.maximum(self.weight - fold.weight, 0.0).ravel()
            seen = train > 0
            needed = fold.weight.any(axis=1)
            fitted = fit_recalibrator(
                resolve_recalibrator(recalibrator),
                rows[seen],
                codes[seen],
                classes=[0, 1],
                sample_weight=train[seen],
            )
            predicted = np.full((len(self.proba), 2), 0.5)
            if needed.any():
                predicted[needed] = predict_proba_aligned(
                    fitted, self.proba[needed], np.arange(2)
                )
            proba_of_folds.append(np.repeat(predicted, 2, axis=0))
        weight = np.concatenate([fold.weight.ravel() for fold in folds])
        squares = np.concatenate([fold.squares.ravel() for fold in folds])
        kept = np.flatnonzero(weight)
        place = kept % len(codes)
        proba = np.vstack(proba_of_folds)[kept]
        predictions = Predictions(proba, codes[place], weight[kept], np.arange(2), 1)
        return HeldOutPredictions(predictions, place, squares[kept])

    @cached_property
    def _cell_label_weight_moments_and_equality(self):
        """Mean and variance of the weights of each cell and label; whether all variances are 0."""
        return compute_weight_moments_and_equality(
            self.counts, self.weight, self.squares
        )

    @cached_property
    def _cell_label_index_by_row(self):
        """The place among cells and labels of each row."""
        return np.repeat(np.arange(self.counts.size), self.counts.ravel())

    @cached_property
    def _cell_counts_weights_moments(self):
        """Numbers of rows, weights and moments of the weights of each cell."""
        sums = [
            cell_values.sum(axis=1)
            for cell_values in (self.counts, self.weight, self.squares)
        ]
        return sums[0], sums[1], compute_weight_moments_and_equality(*sums)

    @cached_property
    def _label_sampler(self):
        """The rows of all cells, each with the mean score of its cell."""
        return CellBinomialSampler(
            self._cell_counts_weights_moments[0], self.proba[:, 1], of_rows=False
        )
