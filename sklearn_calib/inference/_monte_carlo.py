"""Exact tests of calibration: labels are drawn from the predictions themselves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._argument_checks import is_scalar_equal, unknown_name_error, validate_count
from .._typing import ArrayLike, FloatArray, Progress, RandomStateLike
from ..exceptions import InvalidInputError, invalid_input
from ..metrics import Measure, all_metrics
from ._clusters import (
    ClusterSample,
    depends_only_on_residuals,
    validate_clustered_predictions,
    warn_few_event_clusters,
)
from ._resampling import (
    compute_observed_ranked_and_null_values,
    pool_rows_if_worthwhile,
)

# These measures are computed from absolute values of bins, which are the same if the
# residuals of a bin change their sign.
_ABSOLUTE_BIN_GAP_MEASURES = ("expected_calibration_error", "maximum_calibration_error")


@dataclass(frozen=True)
class MonteCarloResult:
    """The result of a Monte Carlo test: the statistic, its p-value and its simulated values.

    Attributes
    ----------
    statistic : float
    pvalue : float
        (1 + the number of replicates at least as large) / (1 + n_resamples).
    null_distribution : ndarray of shape (n_resamples,)
        The statistic on labels drawn from the predictions.
    name : str
    ranked : float
        The number whose rank among `null_distribution` gives the p-value: the
        statistic, or if scores were pooled the statistic of the pooled scores.
    """

    statistic: float
    pvalue: float
    null_distribution: FloatArray = field(repr=False)
    name: str = "statistic"
    ranked: float = np.nan

    @classmethod
    def from_draws(
        cls,
        statistic: float,
        null_distribution: FloatArray,
        name: str,
        ranked: float | None = None,
    ) -> "MonteCarloResult":
        """Build the result from a statistic that is larger for worse calibration, and its draws.

        `ranked` is the value to compare with the draws if they are of pooled scores.
        """
        ranked = float(statistic if ranked is None else ranked)
        # Rounding must not make an equal replicate smaller.
        is_extreme = null_distribution >= ranked - 1e-12 * max(1.0, abs(ranked))
        # The observed statistic is one of the equally likely ones under the hypothesis,
        # which makes the test exact.
        pvalue = (1 + np.count_nonzero(is_extreme)) / (1 + len(null_distribution))
        return cls(float(statistic), float(pvalue), null_distribution, name, ranked)


def make_missing_scores_error(y_true: object, summary_hint: str) -> InvalidInputError:
    """Return the error for labels without probabilities; a summary needs `summary_hint`."""
    got = "labels alone"
    hint = "Pass both"
    # Only a `CalibrationSummary` has this field.
    if hasattr(y_true, "significant_bits"):
        got = "a summary"
        hint = summary_hint
    return invalid_input(
        expected="labels and probabilities of rows", got=got, hint=hint, error=TypeError
    )


def calibration_test(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    statistic: str | Callable[..., float] = "smooth",
    n_resamples: int = 999,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> MonteCarloResult:
    """Test whether predictions are perfectly calibrated: an exact p-value from any measure.

    If they are, each label is a draw from its prediction, so the distribution of any
    statistic can be simulated from the predictions alone.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels.
    statistic : str or callable, default="smooth"
        "smooth" for `smooth_calibration_error`, the name of another measure (see
        `all_metrics`), or a callable (y_true, y_proba) -> float that is larger for
        worse calibration, with labels as given and probabilities of shape (n_samples,
        n_classes).
    n_resamples : int, default=999
        The smallest possible p-value is 1 / (1 + n_resamples).
    n_jobs : int, default=None
        Threads, as in joblib. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
    sample_weight : array-like of shape (n_samples,), default=None
        Passed to a measure. Each row is one draw, whatever its weight: repeat rows for
        counts.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question: clusters, which
        need not be independent inside. The p-value is then approximate, see Notes.
        Subgroups to be tested one by one are something else:
        `sklearn_calib.groups.group_calibration`.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.
    progress : callable, default=None
        Called with (done, total) after every batch of replicates.
    **options
        Options of the measure, such as ``multiclass="classwise"``.

    Returns
    -------
    result : MonteCarloResult

    Raises
    ------
    ValueError
        An unknown measure, fewer than one resample, or invalid scores, labels or
        weights; see `canonical_proba`. With `groups` fewer than two of them, or a
        statistic that is neither a calibration error nor a proper loss with its default
        options.

    Warns
    -----
    CalibrationWarning
        Of clusters: fewer than five are expected to have an event, or to have none.

    Notes
    -----
    The test is exact at any n: under the null hypothesis the p-value is at most alpha
    with probability at most alpha. A small p-value means that the predictions are off,
    and the statistic measures how far; with many rows negligible errors are
    significant.

    Measures that see of two classes (or of the largest of several probabilities) only
    how much of each label there is at each score, which most do with their default
    options, are evaluated on cells: equal scores, or, where more than 4096 differ, at
    most 4096 narrow intervals of the score, each at its mean. The labels keep their
    law, each row its own probability, and the rank of the observed number among the
    drawn ones is taken on the cells for both, so the test stays exact. `statistic` is
    that of the rows; `ranked`, that of the cells, differs from it by less than a tenth
    of the standard deviation of the draws.

    With `groups` residuals (label less prediction) keep the dependence that they have
    inside a cluster, and those of each cluster get one random sign (wild bootstrap):
    exact for residuals of symmetric law, else as the number of clusters grows. One
    factor gives their squares the sum that the predictions imply, sum p (1 - p): if few
    events came by chance the residuals are small, and what is drawn from them would be
    too.

    ECE and maximum error are sums of sizes, one of each bin, and a change of sign
    leaves a bin with one cluster as large as it was. For these two, labels are drawn:
    two rows of a cluster follow one random number as often as makes the squared sums of
    the clusters as much larger than those of independent rows as they are, so the rows
    of all clusters are taken to be equally alike; what stands for a soft label is as
    many votes as have the spread of the shares. Clusters of one row and equal copies of
    a row are drawn by their exact law. If half of the clusters are copies and the
    others have independent rows, ECE rejects too often: 0.144 of 250 tests of calibrated
    predictions at 0.05. By maximum error 0.076 of those of 60 soft labels of 5 votes
    rejected. Level and power of both: ``benchmarks/cluster_coverage``.

    Cost: n_resamples times the measure's; by cells some 0.1 to 0.5 s for n = 10,000 and
    999 replicates, and a few seconds for a million rows.

    References
    ----------
    Hu, Jambulapati, Tian, Yang (2024), section 1, for testing; Cameron, Gelbach, Miller
    (2008), "Bootstrap-based improvements for inference with clustered errors", section
    III, for clusters; Vaicenavicius et al. (2019), "Evaluating model calibration in
    classification", section 4, for resampling under consistency.

    Examples
    --------
    >>> from sklearn_calib.inference import calibration_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> calibration_test(y, proba, random_state=0).pvalue  # overconfident
    0.001
    """
    if y_proba is None:
        raise make_missing_scores_error(y_true, "Call its method test")
    n_resamples = validate_count(
        n_resamples, "n_resamples", hint="Pass 999 for p-values down to 0.001"
    )
    predictions = validate_clustered_predictions(
        y_true,
        y_proba,
        sample_weight,
        labels,
        pos_label,
        soft_labels=soft_labels,
        groups=groups,
    )
    evaluate, name = _make_miscalibration_statistic_and_name(
        predictions, statistic, options
    )
    depends_on_cells = _depends_only_on_cells(predictions, name, statistic, options)
    sample: Any = None
    draw = None
    if predictions.clusters is None:
        # A statistic of cells is simulated on cells, which have the same law and are
        # fewer.
        if depends_on_cells:
            sample = pool_rows_if_worthwhile(predictions)
    else:
        if not (depends_on_cells and depends_only_on_residuals(name)):
            raise invalid_input(
                expected=(
                    "a calibration error or a proper loss with its default options, with "
                    "groups or soft labels"
                ),
                got=f"the statistic {name!r}",
                hint="Leave groups or options out",
            )
        (problem,) = predictions.problems()
        warn_few_event_clusters(predictions, problem)
        # Copies of an item of soft labels change their labels together.
        items = None if predictions.items is None else predictions.items[problem.rows]
        sample = ClusterSample(problem, predictions.clusters, items=items)
        # A change of sign of a cluster leaves the absolute value of its bin as it is.
        draw = (
            sample.draw_dependent_labels if name in _ABSOLUTE_BIN_GAP_MEASURES else None
        )
    observed, ranked, null_values = compute_observed_ranked_and_null_values(
        predictions,
        sample,
        evaluate,
        n_resamples,
        random_state,
        draw=draw,
        n_jobs=n_jobs,
        progress=progress,
    )
    return MonteCarloResult.from_draws(observed, null_values, name, ranked)


def _depends_only_on_cells(predictions, name, statistic, options):
    """Return whether the statistic depends only on the weight of each label at each score."""
    measure = statistic if callable(statistic) else all_metrics()[name]
    # Options may make a measure depend on single rows.
    if not isinstance(measure, Measure) or options or not measure.spec.poolable:
        return False
    return len(predictions.classes) == 2 or measure.has_pos_label


def _make_miscalibration_statistic_and_name(predictions, statistic, options):
    """Return a function of predictions, larger for worse calibration, and its name."""
    measure = statistic
    if not callable(statistic):
        name = statistic
        if is_scalar_equal(statistic, "smooth"):
            name = "smooth_calibration_error"
        measure = all_metrics().get(name) if isinstance(name, str) else None
        if measure is None:
            names = ("smooth", *all_metrics())
            raise unknown_name_error("a callable, or a statistic", statistic, names)
    if isinstance(measure, Measure):
        measure.check_options(options)
        sign = -1.0 if measure.spec.greater_is_better else 1.0
        return (
            lambda predictions: sign * measure.evaluate(predictions, **options),
            measure.spec.name,
        )

    # A copy: a statistic of the user may change its argument.
    proba = np.array(predictions.proba)

    def call_statistic(predictions):
        labels = predictions.classes[predictions.codes]
        return float(statistic(labels, proba, **options))

    return call_statistic, getattr(statistic, "__name__", "statistic")
