"""Distributions of a statistic on labels drawn for rows or their cells, and on resampled rows."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from .._argument_checks import check_jobs, check_progress_callback
from .._kernels._cells import find_cell_starts_to_limit
from .._random import (
    CellBinomialSampler,
    cumulate_proba,
    draw_labels,
    draw_rescaled_cluster_counts,
    draw_row_counts,
    spawn_generators,
)
from .._simplex_array import has_exact_log
from .._typing import AnyArray, FloatArray, IntArray, Progress, RandomStateLike
from ..metrics import Predictions

# The draws do not depend on the number of tasks.
_REPLICATES_PER_TASK = 37


def simulate_null_distribution(
    predictions: "Predictions",
    evaluate: "Callable[[Predictions], Any]",
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    law: FloatArray | None = None,
) -> FloatArray:
    """Compute a statistic of `Predictions` on labels drawn from the predictions.

    Parameters
    ----------
    predictions : Predictions
    evaluate : callable
        Takes `Predictions`; returns a float, or an array of several.
    n_resamples : int
    random_state : int, Generator, RandomState or None, default=0
    n_jobs : int, default=None
        Threads, as in joblib. The result does not depend on it.
    progress : callable, default=None
        Called with (done, total) after every batch.
    law : ndarray of shape (n_samples, n_classes), default=None
        Instead of the predictions.

    Returns
    -------
    values : ndarray of shape (n_resamples, ...)
    """
    bounds = cumulate_proba(predictions.proba if law is None else law)

    def draw_predictions_with_null_labels(rng):
        return predictions.with_labels(draw_labels(bounds, rng))

    return simulate_distribution(
        draw_predictions_with_null_labels,
        evaluate,
        n_resamples,
        random_state,
        n_jobs=n_jobs,
        progress=progress,
    )


def simulate_bootstrap_distribution(
    predictions: "Predictions",
    evaluate: "Callable[[Predictions], Any]",
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    groups: IntArray | None = None,
) -> FloatArray:
    """Compute a statistic of `Predictions` on bootstrap samples of the rows.

    The arguments are those of `simulate_null_distribution`, and `groups`: the cluster
    of each row, numbered from 0. With it, whole clusters are drawn, one fewer than
    there are.
    """
    n_groups = 0 if groups is None else int(groups.max()) + 1

    def draw_bootstrap_predictions(rng):
        # Multiplicities as weights: rows need not be copied or sorted again.
        if groups is None:
            counts = draw_row_counts(len(predictions.codes), rng)
        else:
            counts = draw_rescaled_cluster_counts(n_groups, rng)[groups]
        return predictions.with_weight(predictions.weight * counts)

    return simulate_distribution(
        draw_bootstrap_predictions,
        evaluate,
        n_resamples,
        random_state,
        n_jobs=n_jobs,
        progress=progress,
    )


def simulate_distribution(
    draw: "Callable[[np.random.Generator], Predictions]",
    evaluate: "Callable[[Predictions], Any]",
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Compute a statistic on many random draws, in parallel.

    Parameters
    ----------
    draw : callable
        Takes a Generator, returns `Predictions`.
    evaluate, n_resamples, random_state, n_jobs, progress
        As in `simulate_null_distribution`.

    Returns
    -------
    values : ndarray of shape (n_resamples, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import simulate_distribution
    >>> from sklearn_calib.metrics import brier_loss, validate_predictions
    >>> predictions = validate_predictions([0, 1, 1, 0], [0.2, 0.4, 0.9, 0.3])
    >>> def half(rng):
    ...     return predictions.take(rng.choice(4, 2, replace=False))
    >>> simulate_distribution(half, brier_loss.evaluate, 3).shape
    (3,)
    """

    def evaluate_batch(size, rng):
        return np.array([evaluate(draw(rng)) for _ in range(size)])

    return simulate_batches(
        evaluate_batch, n_resamples, random_state, n_jobs=n_jobs, progress=progress
    )


def simulate_batches(
    evaluate_batch: Callable[[int, np.random.Generator], FloatArray],
    n_resamples: int,
    random_state: RandomStateLike = 0,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Compute `simulate_distribution` with a function that returns many values at once."""
    check_jobs(n_jobs)
    check_progress_callback(progress)
    # Each task has a generator of its own, so the draws do not depend on the number of
    # jobs.
    starts = range(0, n_resamples, _REPLICATES_PER_TASK)
    sizes = [min(_REPLICATES_PER_TASK, n_resamples - start) for start in starts]
    rngs = spawn_generators(random_state, len(sizes))
    values_by_task = []
    n_done = 0
    # Threads: most of the time is spent in numpy and in compiled code, which release
    # the lock.
    batches = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
        delayed(evaluate_batch)(size, rng)
        for size, rng in zip(sizes, rngs, strict=True)
    )
    for values in batches:
        values_by_task.append(values)
        n_done += len(values)
        if progress is not None:
            progress(n_done, n_resamples)
    return np.concatenate(values_by_task) if values_by_task else np.empty(0)


def compute_observed_ranked_and_null_values(
    predictions: Predictions,
    sample: Any,
    evaluate: Callable[[Predictions], Any],
    n_resamples: int,
    random_state: RandomStateLike,
    *,
    draw: Callable[[np.random.Generator], Predictions] | None = None,
    **options: Any,
) -> tuple[Any, Any, FloatArray]:
    """Return a statistic, the number that is ranked, and its values for drawn labels.

    Parameters
    ----------
    predictions : Predictions
    sample : RowsInScoreCells, ClusterSample or None
        The rows as cells, of which labels are drawn. None: rows are drawn and ranked
        themselves.
    evaluate, n_resamples, random_state
        As in `simulate_null_distribution`.
    draw : callable, default=None
        Instead of ``sample.simulate_labels``.
    **options
        n_jobs and progress of `simulate_null_distribution`.
    """
    observed = evaluate(predictions)
    if sample is None:
        null_values = simulate_null_distribution(
            predictions, evaluate, n_resamples, random_state, **options
        )
        return observed, observed, null_values
    # The null distribution is that of the pooled predictions, so the statistic of the
    # pooled rows is ranked in it.
    null_values = simulate_distribution(
        draw or sample.simulate_labels, evaluate, n_resamples, random_state, **options
    )
    return observed, evaluate(sample.predictions), null_values


MAX_POOLED_CELLS = 4096


class RowsInScoreCells:
    """Rows of two classes in cells of nearly equal probability.

    The rows are known, so labels are drawn with the chance of each row.
    `PredictionsByScore` know cells alone, and draw with the mean chance of a cell.

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
    place : tuple of ndarray, default=()
        Where the chance of each row stands in a law of the predictions: its rows and
        their columns.

    Attributes
    ----------
    predictions : Predictions
        Two rows for each cell, one of each label.
    score, mass : ndarray of shape (n_cells,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference._resampling import RowsInScoreCells
    >>> proba = np.array([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    >>> hit = np.array([False, False, True])
    >>> pooled = RowsInScoreCells(proba, hit, np.ones(3), np.array([0, 1]))
    >>> pooled.predictions.weight.tolist()  # of labels 0 and 1 in each cell
    [1.0, 0.0, 1.0, 1.0]
    """

    def __init__(
        self,
        proba: FloatArray,
        hit: AnyArray,
        weight: FloatArray,
        starts: IntArray,
        proba_index: tuple[IntArray, ...] = (),
    ) -> None:
        # Where each row is in a law: its row and column, for `with_label_probabilities`.
        self._proba_index = proba_index
        self._starts = starts
        rows = np.diff(np.append(starts, len(proba)))
        self._rows = CellBinomialSampler(
            rows, proba[:, 1] / proba.sum(axis=1), of_rows=True
        )
        self._weight = None if (weight == 1).all() else weight
        self.mass = np.add.reduceat(weight, starts)
        mean = np.add.reduceat(proba * weight[:, None], starts, axis=0)
        mean /= self.mass[:, None]
        # Rounding must not move a mean beyond the scores of its cell. Rows are in the
        # order of column 1, so column 0 falls.
        last_rows = np.append(starts[1:], len(proba)) - 1
        mean[:, 0] = np.clip(mean[:, 0], proba[last_rows, 0], proba[starts, 0])
        mean[:, 1] = np.clip(mean[:, 1], proba[starts, 1], proba[last_rows, 1])
        self.score = mean[:, 1]
        codes = np.tile(np.arange(2), len(starts))
        cells = Predictions(np.repeat(mean, 2, axis=0), codes, None, np.arange(2))
        # Cells are sorted here, once for all draws.
        cells.problems()
        self._cells = cells
        self.predictions = self._make_predictions(np.add.reduceat(weight * hit, starts))

    def with_label_probabilities(self, law: FloatArray) -> "RowsInScoreCells":
        """Return the same rows with labels of another law, of shape (n_samples, n_classes).

        If cells hold many rows, all rows of a cell get the mean chance of these.
        """
        redistributed = copy(self)
        event_proba = law[self._proba_index]
        rows = self._rows.n_rows_by_cell
        # Labels of unweighted cells are binomial with the mean chance of the cell.
        is_binomial = self._weight is None and not self._rows.has_few_rows_per_cell
        if is_binomial:
            event_proba = np.add.reduceat(event_proba, self._starts) / rows
        redistributed._rows = CellBinomialSampler(
            rows, event_proba, of_rows=not is_binomial
        )
        return redistributed

    def draw_event_weights(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw labels many times: the weight of label 1, of shape (n_draws, n_cells)."""
        weights = [
            self._rows.draw_event_totals_by_cell(rng, self._weight)
            for _ in range(n_draws)
        ]
        return np.array(weights, dtype=np.float64)

    def _make_predictions(self, event_weight):
        """Return the cells as `Predictions`, two rows each, with these weights of label 1."""
        weight = np.empty((len(event_weight), 2))
        weight[:, 0] = self.mass - event_weight
        weight[:, 1] = event_weight
        return self._cells.with_weight(weight.ravel())

    def simulate_labels(self, rng: np.random.Generator) -> Predictions:
        """Return the same rows with labels drawn from the predictions.

        Parameters
        ----------
        rng : Generator

        Returns
        -------
        predictions : Predictions
            Two rows for each cell, one of each label.
        """
        return self._make_predictions(
            self._rows.draw_event_totals_by_cell(rng, self._weight)
        )


def pool_rows_if_worthwhile(
    predictions: Predictions,
    max_cells: int = MAX_POOLED_CELLS,
    *,
    always: bool = False,
) -> RowsInScoreCells | None:
    """Pool the rows of predictions into cells, or return None if that saves no work.

    Parameters
    ----------
    predictions : Predictions
        With more than two classes: the largest probability, and whether that class is
        true.
    max_cells : int, default=4096
    always : bool, default=False
        Also with less than two rows per cell.

    Returns
    -------
    pooled : RowsInScoreCells or None
        At most so many cells, of equal scores if there are no more of these. None for
        less than two rows per cell, and for predictions that carry exact logarithms,
        which cells do not.
    """
    # Exact logarithms would be lost in cells.
    if has_exact_log(predictions.proba):
        return None
    if len(predictions.classes) == 2:
        proba = np.asarray(predictions.proba)
        is_event = predictions.codes == 1
        column = 1
    else:
        (problem,) = predictions.problems()
        proba = np.column_stack([1.0 - problem.score, problem.score])
        is_event = problem.hit == 1
        column = np.asarray(predictions.proba).argmax(axis=1)
    # Ties of a rounded second column are ordered by the first one.
    order = np.lexsort((-proba[:, 0], proba[:, 1]))
    proba = proba[order]
    is_new = (proba[1:] != proba[:-1]).any(axis=1)
    starts = np.flatnonzero(np.append(True, is_new))
    if len(starts) > max_cells:
        starts = find_cell_starts_to_limit(proba[:, 1], proba[:, 0], max_cells)
    # Pooling pays only if it halves the number of rows.
    if 2 * len(starts) > len(proba) and not always:
        return None
    proba_index = order, np.broadcast_to(column, len(order))[order]
    return RowsInScoreCells(
        proba, is_event[order], predictions.weight[order], starts, proba_index
    )
