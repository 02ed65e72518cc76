"""Two models on the same rows: the difference of a measure, with an interval."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import t

from .._argument_checks import check_choice, check_level, validate_count
from .._kernels._cluster_sums import compute_cluster_mean_with_error_and_df
from .._kernels._exact_sums import SUM_FRACTION_BITS, add_sum_lists
from .._typing import ArrayLike, FloatArray, IntArray, RandomStateLike, Self
from .._validation import check_and_get_common_index, check_weights, read_numeric_array
from ..exceptions import invalid_input
from ..metrics import all_metrics, validate_predictions
from ..recalibrators import encode_groups
from ._clusters import (
    add_cluster_ids,
    compute_rare_class_loss_interval,
    compute_small_sample_inflation,
)
from ._intervals import confidence_interval, is_calibration_error, is_summary
from ._resampling import simulate_bootstrap_distribution


def mark_correct_predictions(proba: FloatArray, codes: IntArray) -> FloatArray:
    """Return 1 for rows whose true class has the (first) largest probability, else 0."""
    proba = np.asarray(proba)
    # Of two columns a comparison is five times as fast.
    if proba.shape[1] == 2:
        return ((proba[:, 1] > proba[:, 0]) == codes).astype(float)
    return (proba.argmax(axis=1) == codes).astype(float)


@dataclass(frozen=True)
class PairedDifference:
    """The result of `paired_difference`: the difference between two models, with an interval.

    Attributes
    ----------
    measure : str
    first, second : float
        The measure of each.
    difference : float
        ``second - first``.
    low, high : float
        The interval of the difference.
    level : float
    method : {"normal", "gamma", "bootstrap", "combined"}
    """

    measure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    level: float
    method: str


class PairedLosses:
    """The losses of two models on the same rows, added up block by block.

    For rows that do not fit into memory: six exact sums, so that the result is the same
    in every bit however the rows were cut into blocks.

    Attributes
    ----------
    n_samples : int
        Rows so far.

    Notes
    -----
    Cost: some 10 ns a row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import PairedLosses, paired_difference
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = (rng.random(500) < p).astype(int)
    >>> sums = PairedLosses()
    >>> for rows in (slice(0, 200), slice(200, 500)):
    ...     one, two = (1 - np.where(y[rows] == 1, q[rows], 1 - q[rows]) for q in (p, p**2))
    ...     sums = sums.add(one**2, two**2)
    >>> found = sums.difference("brier_loss")
    >>> at_once = paired_difference(y, p, p**2, "brier_loss")
    >>> bool(abs(found.low - at_once.low) < 1e-12)
    True
    """

    def __init__(self) -> None:
        self.n_samples = 0
        # The sums of w, w^2, w l1, w l2, w^2 d and w^2 d^2 with d = l2 - l1.
        self._sums = [0] * 6
        # The sums of w and w d of each cluster.
        self._clusters: dict[Any, tuple[float, float]] | None = None

    def add(
        self,
        first: ArrayLike,
        second: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add a block of rows.

        Parameters
        ----------
        first, second : array-like of shape (n_samples,)
            The loss of each row by each model, finite.
        sample_weight : array-like of shape (n_samples,), default=None
            At least 0; all of a block may be 0.
        groups : array-like of shape (n_samples,), default=None
            Rows that belong together, such as the samples of one question (clusters):
            in all blocks or in none. A value means the same cluster in every block. Two
            sums of each cluster are kept, in floating point.

        Returns
        -------
        self : PairedLosses

        Raises
        ------
        ValueError
            Losses that are not finite, other lengths, invalid weights, or groups of
            some blocks only. Nothing is added then.
        """
        from .._kernels._exact_sums_compiled import sum_to_exact_integers

        check_and_get_common_index(first, second, sample_weight, groups)
        first_loss = read_numeric_array(first, "losses").astype(np.float64)
        second_loss = read_numeric_array(second, "losses").astype(np.float64)
        shapes = [first_loss.shape, second_loss.shape]
        weight = None
        if sample_weight is not None:
            weight = read_numeric_array(sample_weight, "sample_weight").astype(
                np.float64
            )
            check_weights(weight, checks_size_limits=True)
            shapes.append(weight.shape)
        if first_loss.ndim != 1 or len(set(shapes)) > 1:
            raise invalid_input(
                expected="columns of one length",
                got=f"shapes {shapes}",
                hint="Pass one number for each row",
            )
        change = second_loss - first_loss
        # An infinite loss has no mean to compare.
        infinite_rows = np.flatnonzero(~np.isfinite(change))
        if len(infinite_rows):
            row = infinite_rows[0]
            raise invalid_input(
                expected="finite losses",
                got=f"{first_loss[row]} and {second_loss[row]}",
                hint="Cut off the loss, as log_loss does",
                row=row,
            )
        self._add_clusters(groups, change, weight)
        if weight is None:
            # Sums of blocks are exact, so the result does not depend on the size of the
            # blocks.
            squares = np.square(change, out=change)
            sums = sum_to_exact_integers(np.array([first_loss, second_loss, squares]))
            n = len(first_loss) << SUM_FRACTION_BITS
            sums = [n, n, sums[0], sums[1], sums[1] - sums[0], sums[2]]
        else:
            square = weight**2
            terms = [
                weight,
                square,
                weight * first_loss,
                weight * second_loss,
                square * change,
                square * change**2,
            ]
            sums = sum_to_exact_integers(np.array(terms))
        self._sums = add_sum_lists(self._sums, sums)
        self.n_samples += len(first_loss)
        return self

    def _add_clusters(self, groups, change, weight):
        """Add the sums of w and w d of each cluster; `change` holds the differences d."""
        if self.n_samples and (groups is None) != (self._clusters is None):
            raise invalid_input(
                expected="groups in all blocks or in none",
                got="groups in some blocks only",
                hint="Pass them each time",
            )
        if groups is None:
            return
        # This only rejects missing names: codes would differ between blocks.
        encode_groups(groups, len(change))
        # Names as texts, which are comparable between blocks.
        names, places = np.unique(np.asarray(groups).astype(str), return_inverse=True)
        places = places.ravel()
        weight = np.ones(len(change)) if weight is None else weight
        masses = np.bincount(places, weight).tolist()
        changes = np.bincount(places, weight * change).tolist()
        sums = self._clusters = self._clusters or {}
        for name, mass, total in zip(names.tolist(), masses, changes, strict=True):
            old_mass, old_total = sums.get(name, (0.0, 0.0))
            sums[name] = old_mass + mass, old_total + total

    def difference(self, measure: str, level: float = 0.95) -> PairedDifference:
        """Compute the difference of the mean losses with its normal interval.

        Parameters
        ----------
        measure : str
            What the losses are called.
        level : float in (0, 1), default=0.95

        Returns
        -------
        found : PairedDifference

        Raises
        ------
        ValueError
            A level outside (0, 1), no rows of positive weight, or fewer than two
            groups.

        Notes
        -----
        With groups the standard error is the jackknife's, which leaves out one cluster
        at a time, and the law Student's with Satterthwaite's degrees: one less than
        clusters of one size, fewer if sizes differ. Bell, McCaffrey (2002), "Bias
        reduction in standard errors for linear regression with multi-stage samples".
        """
        check_level(level)
        # Fractions: the variance is a small difference of large sums.
        fractions = [Fraction(number, 1 << SUM_FRACTION_BITS) for number in self._sums]
        total, squares, first_sum, second_sum, weighted_change, squared_change = (
            fractions
        )
        if not total:
            raise invalid_input(
                expected="rows of positive weight", got="none", hint="Call add first"
            )
        mean = (second_sum - first_sum) / total
        residual_square = squared_change - 2 * mean * weighted_change
        residual_square = max(residual_square + mean**2 * squares, Fraction(0))
        # For equal weights this is n (n - 1), the divisor of the unbiased variance of a
        # mean.
        freedom = total**2 - squares
        half_width = float("inf")
        if freedom > 0:
            error = np.sqrt(float(residual_square / freedom))
            half_width = float(ndtri((1 + level) / 2) * error)
        if self._clusters is not None:
            half_width = self._compute_cluster_half_width(level)
        estimate = float(mean)
        return PairedDifference(
            measure,
            float(first_sum / total),
            float(second_sum / total),
            estimate,
            estimate - half_width,
            estimate + half_width,
            level,
            "normal",
        )

    def _compute_cluster_half_width(self, level):
        """Compute half of the interval from the sums of the clusters."""
        mass, change = np.array([*(self._clusters or {}).values()]).T
        has_mass = mass > 0
        mass = mass[has_mass]
        change = change[has_mass]
        n = len(mass)
        if n < 2:
            raise invalid_input(
                expected="at least two groups",
                got=f"{n}",
                hint="Pass one value for each question, say",
            )
        _, error, degrees = compute_cluster_mean_with_error_and_df(change, mass)
        return float(t.ppf((1 + level) / 2, degrees) * error)


def paired_difference(
    y_true: Any,
    first_proba: Any,
    second_proba: Any,
    measure: str = "log_loss",
    *,
    level: float = 0.95,
    n_resamples: int = 199,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
) -> PairedDifference:
    """Compare two models on the same rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        None with two summaries.
    first_proba, second_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or \
            CalibrationSummary
        Probabilities of the same rows by each model. Of calibration errors summaries
        are enough; what is a mean of one number per row needs pairs of them, which
        `PairedLosses` adds up.
    measure : str, default="log_loss"
        A name from `all_metrics`, or "accuracy".
    level : float in (0, 1), default=0.95
    n_resamples : int, default=199
        For measures that are not means of rows; see `confidence_interval` for the
        fewest.
    n_jobs : int, default=None
        Threads, as in joblib.
    random_state : int, Generator, RandomState or None, default=0
        Of the draws; without effect if the interval is "normal".
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question: clusters, at
        least two, which need not be independent inside. Standard errors are those of
        the clusters' sums, whole clusters are drawn. Not for summaries.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.

    Returns
    -------
    found : PairedDifference

    Raises
    ------
    ValueError
        An unknown measure, a level outside (0, 1), or invalid scores, labels, weights
        or groups; see `canonical_proba`.

    Notes
    -----
    "normal", for the log loss, the Brier loss and the accuracy: these are means of one
    number per row, so their difference is the mean of the differences row by row, which
    vary less than the numbers themselves if the models agree. Cost: O(n).

    "gamma", for these two losses if fewer than 50 rows, and fewer than two thirds of an
    equal share, have the rarest class: as in `confidence_interval`. `PairedLosses`,
    which has no labels, is always "normal".

    "bootstrap", for other proper losses, costs, refinement and the area under risk and
    coverage: percentiles of the difference over rows drawn with replacement, the same
    for both. Cost: 2 `n_resamples` evaluations.

    "combined", for calibration errors, whose bootstrap fails near 0 (see
    `confidence_interval`): with (l, u) the interval by inversion of each model alone,
    the ends are l2 - u1 and u2 - l1. This holds the level even if one estimate falls
    as the other rises, as when one model is too low and the other too high. If they
    rise and fall together the interval is wider than it need be: a difference that it
    shows is there, one that it does not show may be there. The values and their
    difference are those on these rows, from which chance is not taken off; the interval
    is made longer if it would leave the difference out. Cost: twice that of
    `confidence_interval`.

    Measured coverage: ``benchmarks/paired_coverage``. With `groups` 95 % intervals of
    differences of the log loss and the Brier loss held the truth in 0.94 to 0.98 of 600
    draws of 10, 20 and 40 clusters of equal and unequal sizes, 0.94 to 0.99 with 7 %
    events (``benchmarks/cluster_coverage``); resampled ones are made longer for few
    clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import paired_difference
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = (rng.random(500) < p).astype(int)
    >>> found = paired_difference(y, p, p**2)
    >>> 0 < found.low < found.difference < found.high
    True
    """
    measures = all_metrics()
    check_choice("a measure", measure, ["accuracy", *measures], "See the list")
    check_level(level)
    n_resamples = validate_count(n_resamples, "n_resamples", 2)
    probas = first_proba, second_proba
    draws: dict[str, Any] = {
        "n_resamples": n_resamples,
        "n_jobs": n_jobs,
        "random_state": random_state,
    }
    if y_true is None and all(map(is_summary, probas)):
        _check_summaries_suffice(measure, groups is not None or soft_labels)
        first_interval, second_interval = (
            confidence_interval(summary, None, measure, level=level, **draws)
            for summary in probas
        )
        return _make_paired_difference_from_intervals(
            measure, first_interval, second_interval
        )
    validate = partial(
        validate_predictions,
        y_true,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
        soft_labels=soft_labels,
    )
    first = validate(first_proba, input_name="first_proba")
    second = validate(second_proba, input_name="second_proba")
    first = add_cluster_ids(first, groups)
    loss = None if measure == "accuracy" else measures[measure].spec.loss
    # These measures are means of one number per row.
    if measure == "accuracy" or loss is not None:
        return _compare_losses(measure, loss, first, second, level)
    if not is_calibration_error(measures[measure]):
        return _bootstrap_difference(measure, first, second, level, draws)
    # The weights of the validated predictions, which no longer have rows of weight 0.
    has_weights = sample_weight is not None or soft_labels
    compute_interval: Any = partial(
        confidence_interval,
        measure=measure,
        level=level,
        sample_weight=first.weight if has_weights else None,
        # Codes are the labels now: warnings about the original ones have been given.
        labels=range(len(first.classes)),
        groups=first.clusters,
        **draws,
    )
    first_interval = compute_interval(first.codes, first.proba)
    second_interval = compute_interval(second.codes, second.proba)
    return _make_paired_difference_from_intervals(
        measure, first_interval, second_interval
    )


def _compare_losses(measure, loss, first, second, level):
    """Return the difference of the means of one number per row: a loss, or hits."""
    row_losses = mark_correct_predictions if loss is None else loss.compute_row_losses
    losses = PairedLosses().add(
        row_losses(first.proba, first.codes),
        row_losses(second.proba, second.codes),
        first.weight,
        first.clusters,
    )
    normal = losses.difference(measure, level)
    if loss is None:
        return normal

    def compute_label_loss_changes():
        first_losses = loss.compute_label_losses(first.proba)
        return loss.compute_label_losses(second.proba) - first_losses

    # The normal interval is too short if the loss depends on a few rows of a rare
    # class.
    ends = compute_rare_class_loss_interval(first, compute_label_loss_changes, level)
    if ends is None:
        return normal
    low = min(ends[0], normal.low)
    high = max(ends[1], normal.high)
    return replace(normal, low=low, high=high, method="gamma")


def _bootstrap_difference(measure, first, second, level, draw_options):
    """Return the difference of a measure that no other interval fits, from resampled rows."""
    evaluate = all_metrics()[measure].evaluate
    groups = first.clusters
    first_value = evaluate(first)
    second_value = evaluate(second)
    estimate = second_value - first_value
    # The same seed draws the same rows for both models, which keeps the pairs.
    draw = partial(
        simulate_bootstrap_distribution,
        evaluate=evaluate,
        groups=groups,
        **draw_options,
    )
    changes = draw(second) - draw(first)
    ends = np.quantile(changes, [(1 - level) / 2, (1 + level) / 2])
    # A bootstrap of few clusters is too narrow.
    inflation = 1.0
    if groups is not None:
        inflation = compute_small_sample_inflation(first.weight, groups, level)
    low, high = (float(estimate + inflation * (end - estimate)) for end in ends)
    return PairedDifference(
        measure,
        first_value,
        second_value,
        estimate,
        low,
        high,
        level,
        "bootstrap",
    )


def _check_summaries_suffice(measure, needs_rows):
    """Raise if summaries cannot be compared by a measure, or if an argument needs the rows."""
    if needs_rows:
        raise invalid_input(
            expected="rows, with groups or soft labels",
            got="summaries, which contain neither",
            hint="Pass the rows",
        )
    if measure == "accuracy" or all_metrics()[measure].spec.proper:
        raise invalid_input(
            expected=f"rows for {measure!r}",
            got="summaries, which do not contain pairs of rows",
            hint="Add up the losses of each row with PairedLosses",
        )


def _make_paired_difference_from_intervals(measure, first, second):
    """Combine two intervals into one of their difference."""
    difference = second.sample_value - first.sample_value
    # The difference of two intervals that hold with probability level each;
    # conservative, since paired rows are correlated. It must contain the difference, also
    # if one of the two intervals does not contain its value.
    low = min(second.low - first.high, difference)
    high = max(second.high - first.low, difference)
    return PairedDifference(
        measure,
        first.sample_value,
        second.sample_value,
        difference,
        low,
        high,
        first.level,
        "combined",
    )
