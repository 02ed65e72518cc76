"""Clusters of rows: several rows of one question or patient, which are not independent.

One mechanism serves all of inference: what each cluster adds to each cell of the
scores. Clusters are drawn with replacement (resamples), their residuals change sign
(what calibrated predictions have by chance), or their sums are squared (standard
errors). No assumption is made about the dependence inside of a cluster, except if
labels are drawn (errors of bins: as alike in all clusters); clusters are independent of
each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, stats
from scipy.special import expit, gammaincinv, stdtrit

from .._kernels._cells import find_cell_starts_to_limit
from .._kernels._cluster_sums import (
    EventTotalTest,
    bound_total_within_cluster_covariance,
    compute_cluster_mean_with_error_and_df,
    compute_expected_over_observed_squares,
    compute_jackknife_standard_errors_and_df,
    estimate_df_and_variance_ratio,
    run_score_test,
)
from .._kernels._proportion import compute_exact_interval
from .._random import draw_rescaled_cluster_counts
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray
from .._validation import check_and_get_common_index
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ..metrics import (
    BinaryProblem,
    Predictions,
    PredictionsByScore,
    ProperLoss,
    all_metrics,
    validate_predictions,
)
from ..recalibrators import encode_groups

MAX_CLUSTER_CELLS = 4096
# Rows, or clusters, of the rarest class from which no gamma law is needed.
MIN_RAREST_CLASS_ROWS_FOR_NORMAL_LAW = 50
# A gamma law of a smaller skewness has the digits of a normal one.
_MIN_SKEWNESS = 1e-4
# The largest loss of this many rows states little about those of other rows.
_LARGEST_LOSS_DOUBLING_ROWS = 50
# Stands for a weight, or a variance, of 0.
_ZERO_WEIGHT_SUBSTITUTE = 1e-300
# With 1 to 3 clusters of either outcome, tests at 0.05 reject in 0.05 to 0.25.
MIN_CLUSTERS_PER_OUTCOME = 5
# Signs that are held in memory at a time.
_MAX_SIGN_ENTRIES = 2**22
# A soft label is replaced by at most this many votes.
_MAX_SOFT_LABEL_VOTES = 50
# In clusters of one row the covariance over the variance may differ from 0 by this.
COVARIANCE_TO_VARIANCE_TOLERANCE = 1e-9


def add_cluster_ids(predictions: Predictions, groups: ArrayLike | None) -> Predictions:
    """Return the predictions with a cluster index for each row.

    The rows that a soft label stands for are one cluster, if `groups` do not name
    larger ones.

    Parameters
    ----------
    predictions : Predictions
    groups : array-like of shape (n_given,) or None
        Values of any type, none missing, one for each row that was given.

    Raises
    ------
    ValueError
        Another number of values, missing ones, or fewer than two clusters.
    """
    if groups is None and predictions.items is None:
        return predictions
    check_and_get_common_index(groups, first=predictions.index)
    n = predictions.n_given
    # Soft labels repeat a row for each of its classes; these copies are one cluster.
    cluster_names = np.arange(n) if groups is None else encode_groups(groups, n)
    ids_by_row = predictions.expand_input_column(cluster_names)
    codes = np.unique(ids_by_row, return_inverse=True)[1].ravel()
    if not len(codes) or codes.max() == 0:
        raise invalid_input(
            expected="at least two groups, which are drawn",
            got="one",
            hint="Pass one value for each question or patient, say, or leave groups out",
        )
    return predictions.with_clusters(codes)


def validate_clustered_predictions(
    *arguments: Any, groups: ArrayLike | None, soft_labels: bool
) -> Predictions:
    """Validate `arguments` as `validate_predictions` does, and add the rows' clusters."""
    predictions = validate_predictions(*arguments, soft_labels=soft_labels)
    return add_cluster_ids(predictions, groups)


def warn_few_event_clusters(predictions: Predictions, problem: BinaryProblem) -> None:
    """Warn if too few clusters are expected to have an event, or to have none.

    The expectation is that of the predictions: the labels are what a test is about.

    Parameters
    ----------
    predictions : Predictions
    problem : BinaryProblem
        One of `predictions.problems`.
    """
    if predictions.clusters is None:
        return
    groups = predictions.clusters[problem.rows]
    row_weight = np.ones(len(problem.score))
    # A soft label repeats its row for each class; the copies count as one row.
    if predictions.items is not None:
        items = predictions.items[problem.rows]
        row_weight /= np.bincount(items)[items]
    events = np.bincount(groups, row_weight * problem.score)
    non_events = np.bincount(groups, row_weight * (1 - problem.score))
    # A cluster counts at most once, however many events it expects.
    fewest = min(np.minimum(events, 1).sum(), np.minimum(non_events, 1).sum())
    if fewest < MIN_CLUSTERS_PER_OUTCOME:
        warn_calibration(
            expected="five clusters with an event and five without, by the predictions",
            got=f"{fewest:.2g} for the rarer outcome ({problem.title})",
            hint=(
                "Tests at 0.05 may reject calibrated predictions in 0.1 to 0.3 of all cases, "
                "and the slope is uncertain: take more clusters, or several studies together; "
                "look at O/E"
            ),
        )


def depends_only_on_residuals(name: str) -> bool:
    """Return whether a measure is a calibration error or a proper loss.

    The lower distance is excluded: it moves predictions to frequencies between 0 and 1,
    and a residual of the opposite sign may have a frequency outside of them.
    """
    measure = all_metrics().get(name)
    if measure is None or name == "lower_distance_to_calibration":
        return False
    spec = measure.spec
    if not spec.poolable:
        return False
    is_error = spec.perfect == 0 and measure.has_pos_label
    return is_error or spec.loss is not None


def compute_small_sample_inflation(
    weight: FloatArray, groups: IntArray, level: float
) -> float:
    """Return the factor by which an interval exceeds percentiles of few resampled clusters.

    It is Student's quantile over the normal one, times the factor by which the
    jackknife's error is larger if sizes differ; see `estimate_df_and_variance_ratio`.
    """
    degrees, ratio = estimate_df_and_variance_ratio(np.bincount(groups, weight))
    tail = (1 + level) / 2
    # The bootstrap underestimates the variance of few clusters, and its percentiles are
    # those of a normal distribution; both are corrected.
    student_quantile = stats.t.ppf(tail, degrees)
    return float(np.sqrt(ratio) * student_quantile / stats.norm.ppf(tail))


class _VotingItems(NamedTuple):
    """Rows, or soft labels, that vote for their labels in `draw_dependent_labels`."""

    cell: IntArray
    weight: FloatArray
    cluster: IntArray
    n_votes: int
    # The probability of following the random number that a cluster shares.
    follow_proba: float


class ClusterSample(PredictionsByScore):
    """Rows of a two-class problem in clusters, which are resampled as a whole.

    Has the attributes and draws of `sklearn_calib.summary.CellSample`.

    Parameters
    ----------
    problem : BinaryProblem
    groups : ndarray of shape (n_samples,), intp
        The cluster of each row, numbered from 0; at least two.
    max_cells : int, default=4096
        Equal scores share a cell; of more different ones the narrowest intervals.
    items : ndarray of shape (n_samples,), intp, default=None
        The soft label that each row is a part of, for `draw_dependent_labels`.

    Attributes
    ----------
    proba : ndarray of shape (n_cells, 2)
        Mean probabilities of both labels, cells in increasing order of the second.
    counts, weight, squares : ndarray of shape (n_cells, 2)
        Numbers of rows with label 0 and 1, sums of their weights and squared weights.
    n_samples, n_clusters : int
    groups, table_column, row_weight : ndarray of shape (n_samples,)
        The cluster of each row, its column of `table`, and its weight.
    table : sparse array of shape (n_clusters, 2 n_cells)
        The weight of each cluster in each entry of the flattened `weight`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import ClusterSample
    >>> from sklearn_calib.metrics import validate_predictions
    >>> (problem,) = validate_predictions([0, 1, 1, 1], [0.2, 0.2, 0.9, 0.9]).problems()
    >>> sample = ClusterSample(problem, np.array([0, 0, 1, 1]))
    >>> sample.weight.tolist(), sample.table.toarray().tolist()
    ([[1.0, 1.0], [0.0, 2.0]], [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    """

    n_clusters: int

    def __init__(
        self,
        problem: BinaryProblem,
        groups: IntArray,
        max_cells: int = MAX_CLUSTER_CELLS,
        items: IntArray | None = None,
    ) -> None:
        # Rows of nearly equal scores become one cell.
        score = problem.score
        is_event = problem.hit > 0
        order = np.argsort(score, kind="stable")
        sorted_score = score[order]
        starts = np.flatnonzero(np.append(True, sorted_score[1:] != sorted_score[:-1]))
        # Scores are pooled so that the table of clusters and cells stays small; the
        # width of a cell is far below any bin.
        if len(starts) > max_cells:
            starts = find_cell_starts_to_limit(
                sorted_score, 1 - sorted_score, max_cells
            )
        cell = np.zeros(len(score), dtype=np.intp)
        cell[starts[1:]] = 1
        cell[order] = np.cumsum(cell)
        n = len(starts)
        mass = np.bincount(cell, problem.weight, n)
        mean = np.bincount(cell, problem.weight * score, n) / mass
        last_row = np.append(starts[1:], len(score)) - 1
        # Rounding must not move the mean of equal scores.
        mean = np.clip(mean, sorted_score[starts], sorted_score[last_row])
        self.proba = np.column_stack([1 - mean, mean])
        self.groups = groups
        # Columns of the table alternate: cell 0 label 0, cell 0 label 1, cell 1 label 0.
        self.table_column = 2 * cell + is_event
        self.row_weight = problem.weight
        self._items = items
        self.counts = self._sum_by_cell_and_label(None)
        self.weight = self._sum_by_cell_and_label(problem.weight)
        self.squares = self._sum_by_cell_and_label(problem.weight**2)
        self.n_samples = len(score)
        self.n_clusters = int(groups.max()) + 1
        # The sparse table has one entry per row: drawing clusters is then a product of
        # a matrix and a vector.
        entries = problem.weight, (groups, self.table_column)
        self.table = sparse.csr_array(entries, shape=(self.n_clusters, 2 * n))

    def _sum_by_cell_and_label(self, values):
        """Return the sum of values over the rows of each label in each cell, or their number."""
        sums = np.bincount(self.table_column, values, 2 * len(self.proba))
        return sums.reshape(-1, 2)

    def draw_bootstrap_sample(self, rng: np.random.Generator) -> Predictions:
        """Draw clusters with replacement, which gives the cells other weights.

        See `draw_rescaled_cluster_counts`.
        """
        counts = draw_rescaled_cluster_counts(self.n_clusters, rng)
        # Rounding can leave a sum of weights just below 0.
        weight = np.maximum(self.table.T @ counts, 0.0)
        return self.predictions.with_weight(weight)

    def simulate_labels(
        self, rng: np.random.Generator, law: FloatArray | None = None
    ) -> Predictions:
        """Draw labels of calibrated rows: residuals of whole clusters change their sign.

        All are made larger or smaller by one factor, so that their squares are those
        that the probabilities imply: the observed ones are too small if few events came
        by chance.

        Parameters
        ----------
        rng : Generator
        law : ndarray of shape (n_cells,), default=None
            The probability of label 1 in each cell, instead of the predictions.

        Returns
        -------
        predictions : Predictions
            The cells with other weights, whose sums over labels are those of the rows.
            Single ones may be below 0: they are for what is a function of the residuals
            of cells.
        """
        (event_weight,) = self._draw_sign_flipped_cell_event_weights(1, rng, law)
        return self._make_predictions_with_event_weight(event_weight)

    def _make_predictions_with_event_weight(self, event_weight):
        """Return the cells with another weight of label 1, and the same weight in total."""
        other_weight = self.weight.sum(axis=1) - event_weight
        weight = np.stack([other_weight, event_weight], axis=1)
        return self.predictions.with_weight(weight.ravel())

    def draw_event_weights(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Draw labels many times: the weight of label 1, of shape (n_draws, n_cells)."""
        return self._draw_sign_flipped_cell_event_weights(n_draws, rng, None)

    def _draw_sign_flipped_cell_event_weights(self, n_draws, rng, law):
        """Return the weight of label 1, (n_draws, n_cells), with a random sign per cluster."""
        # Residuals whose signs change (the wild bootstrap) keep their sizes, so they
        # are scaled to the variance of labels drawn from the law.
        if law is None:
            event_proba = self.proba[:, 1]
            residual_factor = self._residual_factor
        else:
            event_proba = law
            residual_factor = self._compute_residual_scale_factor(law)
        expected = self.weight.sum(axis=1) * event_proba
        events = np.empty((n_draws, len(event_proba)))
        # The signs of all draws at once would not fit into memory.
        draws_per_step = max(1, _MAX_SIGN_ENTRIES // self.n_clusters)
        for start in range(0, n_draws, draws_per_step):
            n_signs = min(draws_per_step, n_draws - start)
            coins = rng.integers(0, 2, (n_signs, self.n_clusters))
            signs = residual_factor * (2.0 * coins - 1)
            sums = (self.table.T @ signs.T).T
            signed_events = sums[:, 1::2]
            signed_weight = sums[:, ::2] + signed_events
            events[start : start + n_signs] = (
                expected + signed_events - signed_weight * event_proba
            )
        return events

    @cached_property
    def _residual_factor(self):
        return self._compute_residual_scale_factor(self.proba[:, 1])

    def _compute_residual_scale_factor(self, law):
        """Return the factor that gives residuals the squares of labels from this law."""
        column_proba = np.repeat(law, 2)
        residual = np.tile([0.0, 1.0], len(law)) - column_proba
        variance = column_proba * (1 - column_proba)
        return np.sqrt(
            compute_expected_over_observed_squares(
                residual, variance, self.weight.ravel()
            )
        )

    def draw_dependent_labels(self, rng: np.random.Generator) -> Predictions:
        """Draw labels of calibrated rows, for norms of bins, which ignore the sign.

        Two rows of a cluster follow one random number as often as gives the squared
        sums of the clusters' residuals the excess that they have; a cluster of one row
        is an independent draw. What stands for a soft label is as many votes as have
        the spread of the shares.

        Parameters
        ----------
        rng : Generator

        Returns
        -------
        predictions : Predictions
            The cells with other weights, whose sums over labels are those of the rows.
        """
        cell, mass, groups, n_votes, follow_proba = self._label_vote_model
        event_proba = self.proba[cell, 1]
        if follow_proba == 0:
            votes = rng.binomial(n_votes, event_proba)
        else:
            votes = np.zeros(len(cell), dtype=np.int64)
            for _ in range(n_votes):
                single = rng.random(len(cell))
                shared = rng.random(self.n_clusters)[groups]
                follows = rng.random(len(cell)) < follow_proba
                # Rows of a cluster follow a common uniform number with some
                # probability, which makes their labels as dependent as observed.
                votes += np.where(follows, shared, single) < event_proba
        total = self.weight.sum(axis=1)
        event_weight = np.bincount(cell, mass * votes / n_votes, len(total))
        # Rounding must not make a weight larger than that of the whole cell.
        return self._make_predictions_with_event_weight(np.minimum(event_weight, total))

    @cached_property
    def _label_vote_model(self):
        cell = self.table_column // 2
        groups = self.groups
        mass = self.row_weight
        n_votes = 1
        event_weight = mass * (self.table_column % 2)
        # The rows of a soft label are one item, which votes for its classes.
        if self._items is not None:
            _, first, items = np.unique(
                self._items, return_index=True, return_inverse=True
            )
            cell = cell[first]
            groups = groups[first]
            event_weight = np.bincount(items, event_weight)
            mass = np.bincount(items, mass)
        p = self.proba[cell, 1]
        residual = event_weight - mass * p
        expected_square = mass**2 @ (p * (1 - p))
        observed_square = residual @ residual
        if observed_square == 0 or expected_square == 0:
            return _VotingItems(cell, mass, groups, 1, 0.0)
        # Shares of classes vary less than single labels: so many votes have the same
        # variance as the observed shares.
        if self._items is not None:
            ratio = np.rint(expected_square / observed_square)
            n_votes = int(np.clip(ratio, 1, _MAX_SOFT_LABEL_VOTES))
        # The covariance within clusters relative to the variance, and the largest value
        # that it could have.
        excess = (np.bincount(groups, residual) ** 2).sum() / observed_square - 1
        largest_excess = (
            bound_total_within_cluster_covariance(p, mass, groups) / expected_square
        )
        # Two rows follow the common number together with probability follow_proba^2.
        follow_proba = 0.0
        if largest_excess > COVARIANCE_TO_VARIANCE_TOLERANCE:
            follow_proba = np.sqrt(np.clip(excess / largest_excess, 0.0, 1.0))
        return _VotingItems(cell, mass, groups, n_votes, follow_proba)

    def count_effective_rows(self) -> float:
        """Return the effective number of clusters if the rows of each were all alike."""
        cluster_weight = self.table.sum(axis=1)
        return float(self.weight.sum() ** 2 / (cluster_weight**2).sum())

    def compute_frequency_intervals(
        self, cell_bin: IntArray, n_bins: int, level: float
    ) -> tuple[FloatArray, FloatArray]:
        """Compute intervals for the frequency of label 1 in each bin.

        NaN for empty bins.

        Clopper and Pearson's with as many rows as have the variance of the clusters'
        sums, fewer for few clusters: Korn, Graubard (1998), "Confidence intervals for
        proportions with small expected number of positive counts estimated from survey
        data", eqs. 2 and 3. Of events all alike, each cluster counts as one row.

        Parameters
        ----------
        cell_bin : ndarray of shape (n_cells,)
        n_bins : int
        level : float
        """
        cells = np.arange(len(cell_bin))
        entries = np.ones(len(cells)), (cells, cell_bin)
        bin_of_cell = sparse.csr_array(entries, (len(cells), n_bins))
        events = self.table[:, 1::2] @ bin_of_cell
        mass = (events + self.table[:, ::2] @ bin_of_cell).toarray()
        squares = np.bincount(cell_bin, self.squares.sum(axis=1), n_bins)
        total = mass.sum(axis=0)
        is_filled = total > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            frequency = np.clip(events.toarray().sum(axis=0) / total, 0.0, 1.0)
            residual = events.toarray() - frequency * mass
            n_rows = _count_effective_rows(frequency, residual, mass, squares, level)
        ends: Any = np.full((2, n_bins), np.nan)
        n_events = frequency * n_rows
        ends[:, is_filled] = compute_exact_interval(
            n_events[is_filled], n_rows[is_filled], level
        )
        return ends[0], ends[1]


def _count_effective_rows(frequency, residual, mass, squares, level):
    """Return the number of rows whose exact interval is that of the clusters in each bin.

    `residual` and `mass` have the shape (n_clusters, n_bins), `squares` are the sums of
    squared weights of rows in each bin.
    """
    total = mass.sum(axis=0)
    n_clusters = np.count_nonzero(mass, axis=0)
    variance = frequency * (1 - frequency)
    # The variance of a frequency by clusters (a ratio estimator), expressed as an
    # effective number of rows for Clopper and Pearson's interval.
    residual_square = (residual**2).sum(axis=0) * n_clusters / (n_clusters - 1.0)
    n_rows = variance * total**2 / residual_square
    # Without residuals there is no variance to match: a cluster is one row then.
    n_equal_clusters = total**2 / (mass**2).sum(axis=0)
    has_residuals = (variance > 1e-12) & (residual_square > 0)
    n_rows = np.where(has_residuals, n_rows, n_equal_clusters)
    # Few clusters have a larger quantile of Student's distribution, so the effective
    # number is reduced by the square of the ratio.
    n_independent = total**2 / squares
    tail = (1 + level) / 2
    row_quantile = stats.t.ppf(tail, np.maximum(n_independent - 1, 1))
    cluster_quantile = stats.t.ppf(tail, np.maximum(n_clusters - 1, 1))
    quantile_ratio = np.minimum(row_quantile / cluster_quantile, 1.0)
    return np.minimum(n_rows, n_independent) * quantile_ratio**2


def compute_clustered_loss_interval(
    losses: FloatArray,
    weight: FloatArray,
    groups: IntArray,
    level: float,
    limits: tuple[float, float],
) -> tuple[float, float]:
    """Compute the interval of a mean loss of rows in clusters.

    See `compute_cluster_mean_with_error_and_df`.

    It is Student's interval of the logarithm of the mean less the smallest loss: the
    error of a mean of skewed losses rises with the mean, so an interval symmetric around
    the mean would miss the truth on one side.

    Parameters
    ----------
    losses, weight : ndarray of shape (n_samples,)
    groups : ndarray of shape (n_samples,), intp
    level : float
    limits : tuple of float
        The least and the largest loss possible.
    """
    lowest, highest = limits
    totals = np.bincount(groups, weight * np.maximum(losses - lowest, 0.0))
    mass = np.bincount(groups, weight)
    mean, error, degrees = compute_cluster_mean_with_error_and_df(totals, mass)
    if not error > 0:
        low = high = lowest + float(mean)
        return low, high
    # An interval on the logarithm: losses are skewed, and their mean is positive.
    distance = stats.t.ppf((1 + level) / 2, degrees) * error / mean
    with np.errstate(over="ignore"):
        low, high = lowest + mean * np.exp([-distance, distance])
    return float(low), float(min(high, highest))


def compute_rare_class_loss_interval(
    predictions: Predictions,
    compute_label_losses: Callable[[], FloatArray] | None,
    level: float,
    counts: AnyArray | None = None,
) -> tuple[float, float] | None:
    """Return the ends of the interval of a mean loss if the rarest class has few rows.

    What the rarest class adds to the mean is a sum over a random number of rows. The
    interval is that of a Poisson number of events of one size whose sum has the
    variance and the skewness seen here: a gamma law, whose side towards large losses
    counts one more event, and whose other side half an event. Such an event has the
    mean loss of the rarest class by these probabilities. A difference of losses counts
    one more row on that side too, with 1 + (50 / n)**2 times the largest loss seen
    there: few rows may add most to it.

    Parameters
    ----------
    predictions : Predictions
        Its clusters, if it has any, are what is counted, instead of rows.
    compute_label_losses : callable or None
        Returns the loss of each row for each label, of shape (n_samples, n_classes).
        None for a measure that is not a mean of such losses: no more than the warning
        is given then.
    level : float in (0, 1)
    counts : ndarray of shape (n_samples,), default=None
        How many rows each row of the predictions stands for, one by default.

    Returns
    -------
    ends : tuple of float or None
        None if every class is seen in 50 rows (clusters), or in two thirds of the rows
        that each would have if they had equal shares. The bootstrap, or an interval
        around the mean, is right then. None for a single row.

    Warns
    -----
    CalibrationWarning
        If no row has one of the classes.

    References
    ----------
    Fay, Feuer (1997), "Confidence intervals for directly standardized rates: a method
    based on the gamma distribution".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import compute_rare_class_loss_interval
    >>> from sklearn_calib.metrics import BrierLoss, validate_predictions
    >>> predictions = validate_predictions([0] * 59 + [1], np.full(60, 0.05))
    >>> losses = BrierLoss().compute_label_losses(predictions.proba)
    >>> ends = compute_rare_class_loss_interval(predictions, lambda: losses, 0.95)
    >>> np.round(ends, 3).tolist()
    [0.004, 0.086]
    """
    groups = predictions.clusters
    n_classes = len(predictions.classes)
    # Units are rows, or clusters: of each class those with a row of it.
    if groups is None:
        groups = np.arange(len(predictions.codes))
        counts = np.ones(len(groups)) if counts is None else np.ravel(counts)
        class_counts = np.bincount(predictions.codes, counts, n_classes)
    else:
        pairs = np.unique(groups * n_classes + predictions.codes)
        class_counts = np.bincount(pairs % n_classes, minlength=n_classes)
        counts = np.ones(groups.max() + 1)
    n = counts.sum()
    fewest = class_counts.min()
    if n < 2:
        return None
    is_rarest = class_counts == fewest
    if not fewest:
        warn_calibration(
            expected="rows of every class, for an interval",
            got=f"none with the label {predictions.classes[np.argmax(is_rarest)]}",
            hint=(
                "A mean loss gets an interval that counts one row of it; collect such rows"
            ),
        )
    # With enough rows of every class the distribution of the mean is close to normal.
    enough = min(MIN_RAREST_CLASS_ROWS_FOR_NORMAL_LAW, 2 / 3 * n / n_classes)
    if compute_label_losses is None or fewest >= enough:
        return None
    losses = compute_label_losses()
    weight = predictions.weight
    mass = np.bincount(groups, weight)
    total = mass.sum()
    row_loss = weight * losses[np.arange(len(weight)), predictions.codes]
    mean = row_loss.sum() / total
    deviation = np.bincount(groups, row_loss) - mean * mass
    mean_deviation = deviation / np.maximum(counts, 1)
    # The weight of one more unit of the rarest class: the mean of those in the sample.
    unit_weight = total / n
    if fewest:
        is_rare_row = is_rarest[predictions.codes]
        unit_weight = weight[is_rare_row].sum() / class_counts[is_rarest].sum()
    # The predictions tell which rows are likely to have the rarest class.
    rare_weight = weight[:, None] * np.asarray(predictions.proba)[:, is_rarest]
    rare_weight += _ZERO_WEIGHT_SUBSTITUTE
    rare_loss = np.average(losses[:, is_rarest], weights=rare_weight)
    # What one more row of the rarest class would add to the sum: with few of them the
    # sum jumps.
    jump = unit_weight * (rare_loss - mean)
    square_sum = deviation @ mean_deviation
    cube_sum = deviation @ mean_deviation**2
    # The side of the long tail.
    side = np.copysign(1.0, cube_sum + jump**3)
    tail = (1 + level) / 2
    degrees = max(total**2 / (mass**2 / np.maximum(counts, 1)).sum() - 1, 1)
    quantile_ratio = stdtrit(degrees, tail) / stdtrit(np.inf, tail) / total

    def compute_end_distance(side, jump, n_more, tail):
        """Return how far the end is from the mean, in the direction of `side`."""
        variance = max(square_sum + n_more * jump**2, _ZERO_WEIGHT_SUBSTITUTE)
        # A gamma distribution with the same variance and third moment.
        scale = side * (cube_sum + n_more * jump**3) / variance
        scale = max(scale, _MIN_SKEWNESS * np.sqrt(variance))
        shape = variance / scale**2
        deviate = gammaincinv(shape, tail) - shape
        return quantile_ratio * (side * n_more * jump + scale * deviate)

    short_side = min(
        compute_end_distance(side, jump, 0.5 if fewest else 0.0, 1 - tail), 0.0
    )
    long_side = max(compute_end_distance(side, jump, 1.0, tail), 0.0)
    # Losses below 0 are differences of two models, where few rows may add most on the
    # other side too. The largest loss of a small sample is too small: it is enlarged.
    if losses.min() < 0:
        inflation = 1 + (_LARGEST_LOSS_DOUBLING_ROWS / n) ** 2
        excess = (side * losses).min() - side * mean
        opposite_jump = inflation * unit_weight * side * excess
        short_side = min(
            short_side, -compute_end_distance(-side, opposite_jump, 1.0, tail)
        )
    low, high = sorted([mean + side * short_side, mean + side * long_side])
    return float(low), float(high)


def compute_mean_loss_interval(
    predictions: Predictions,
    loss: ProperLoss,
    level: float,
    counts: AnyArray | None = None,
) -> tuple[str, float, float] | None:
    """Return the method and both ends of the interval of a mean loss that needs no draws.

    Parameters
    ----------
    predictions, level, counts
        As in `compute_rare_class_loss_interval`.
    loss : ProperLoss

    Returns
    -------
    found : tuple of str, float and float, or None
        "gamma" if a class is rare, "logarithm" of other rows in clusters
        (`compute_clustered_loss_interval`), and None if the bootstrap is right.
    """
    method = "gamma"
    ends = compute_rare_class_loss_interval(
        predictions,
        partial(loss.compute_label_losses, predictions.proba),
        level,
        counts,
    )
    if ends is None:
        if predictions.clusters is None:
            return None
        method = "logarithm"
        losses = loss.compute_row_losses(predictions.proba, predictions.codes)
        ends = compute_clustered_loss_interval(
            losses, predictions.weight, predictions.clusters, level, loss.range
        )
    low, high = np.clip(ends, *loss.range).tolist()
    return method, low, high


def compute_clustered_sum_error(terms: FloatArray, groups: IntArray) -> float:
    """Compute the standard deviation of a sum of terms of mean 0 from the cluster sums."""
    sums = np.bincount(groups, terms)
    correction = len(sums) / (len(sums) - 1)
    return float(np.sqrt(correction * (sums**2).sum()))


@dataclass(eq=False)
class ClusteredLine:
    """Intercept and slope of the outcomes on predicted log-odds.

    Parameters
    ----------
    z, hit, weight : ndarray of shape (n_samples,)
        Log-odds, outcomes and weights above 0.
    groups : ndarray of shape (n_samples,), intp
        The cluster of each row, numbered from 0.
    level : float, default=0.95
        Of the intervals.
    """

    z: FloatArray
    hit: FloatArray
    weight: FloatArray
    groups: IntArray
    level: float = 0.95

    def compute_in_the_large_interval_and_p_value(
        self, estimate: float
    ) -> tuple[tuple[float, float], float]:
        """Compute the interval of calibration in the large, and the p-value of 0."""

        def compute_expected_events_by_cluster(a):
            return np.bincount(self.groups, self.weight * expit(a + self.z))

        events = np.bincount(self.groups, self.weight * self.hit)
        total = EventTotalTest(
            events, self.weight.sum(), compute_expected_events_by_cluster
        )
        interval = total.find_parameter_interval(estimate, self.level)
        pvalue = 2 * stats.norm.sf(abs(total.standardise_total(0.0)))
        return interval, float(pvalue)

    def compute_line_intervals(self, a: float, b: float) -> list[tuple[float, float]]:
        """Compute the intervals of intercept and slope around their estimates."""
        columns = np.column_stack([np.ones_like(self.z), self.z])
        errors, freedom = compute_jackknife_standard_errors_and_df(
            columns, a + b * self.z, self.hit, self.weight, self.groups
        )
        widths = stdtrit(freedom, (1 + self.level) / 2) * errors
        intervals = []
        for value, width in zip((a, b), widths, strict=True):
            intervals.append((float(value - width), float(value + width)))
        return intervals

    def compute_slope_and_line_chi_squares(self, large: float) -> tuple[float, float]:
        """Score tests: of slope 1 given calibration in the large; of intercept 0 and slope 1."""
        columns, *rows = self._make_score_test_arguments(large)
        slope = run_score_test(columns[:, 1:], *rows)[0]
        return slope**2, self.test_line()[0]

    def test_line(self) -> tuple[float, float]:
        """Return (chi-square, p-value) of intercept 0 and slope 1."""
        root, pvalue = run_score_test(*self._make_score_test_arguments(0.0))
        return root**2, pvalue

    def _make_score_test_arguments(self, a):
        """Return columns uncorrelated at slope 1, and the other arguments of `run_score_test`."""
        mean = expit(a + self.z)
        variance = mean * (1 - mean)
        mass = self.weight * variance
        centre = (mass @ self.z) / mass.sum() if mass.any() else 0.0
        columns = np.column_stack([np.ones_like(self.z), self.z - centre])
        return columns, self.hit - mean, variance, self.weight, self.groups
