"""Confidence intervals of measures, also of calibration errors near 0 (no bootstrap)."""

from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import Any, Literal

import numpy as np

from .._argument_checks import (
    check_choice,
    check_level,
    check_progress_callback,
    unknown_name_error,
    validate_count,
)
from .._count_weights import are_counts
from .._kernels._binning import compute_rounded_up_cube_root
from .._typing import ArrayLike, Progress, RandomStateLike, RecalibratorLike
from .._validation import get_rows_per_weight
from .._warnings import ignore_calibration_warnings
from ..exceptions import invalid_input
from ..metrics import Measure, Predictions, all_metrics
from ..recalibrators import fit_clone, predict_proba_aligned
from ._clusters import (
    ClusterSample,
    compute_mean_loss_interval,
    compute_rare_class_loss_interval,
    compute_small_sample_inflation,
    depends_only_on_residuals,
    validate_clustered_predictions,
)
from ._measure_forms import BATCH_EVALUATOR_BY_MEASURE, evaluate_population_value
from ._monte_carlo import make_missing_scores_error
from ._resampling import (
    pool_rows_if_worthwhile,
    simulate_batches,
    simulate_bootstrap_distribution,
    simulate_distribution,
    simulate_null_distribution,
)

# There are thousands of draws of the cells of a summary.
MAX_SUMMARY_CELLS = 1024
# Draws of rows cost more than those of the cells of a summary.
_MAX_CELLS_WHEN_POOLING_ROWS = 256
_INTERVAL_METHODS = ("auto", "bootstrap", "inversion")
_OTHER_PACKAGES_MEASURES = (
    "auc",
    "roc_auc",
    "accuracy",
    "f1",
    "precision",
    "recall",
    "average_precision",
)
# The largest error that is tried, in units of the observed one: probabilities are then
# 0 or 1.
_MAX_ERROR_STRENGTH = 64.0


@dataclass(frozen=True)
class ConfidenceInterval:
    """An interval for the value of a measure.

    Attributes
    ----------
    estimate : float
        Always in the interval. With "inversion" that of these predictions with all
        labels that they may have: the value of the sample's cells, which may differ
        from the population's (see `confidence_interval`). It is unbiased in the median
        if the error has the shape of the recalibrator, too high as often as too low:
        what chance adds to the measure is taken off, and it is 0 for every second set
        of calibrated predictions. Else it is `sample_value`, or the nearer end should
        that lie outside.
    low, high : float
    level : float
    method : {"bootstrap", "inversion", "gamma", "logarithm"}
    sample_value : float
        The measure itself, as the function of its name returns it. A calibration error
        of few rows is too large, and may be above `high`.
    null_mean : float or None
        With "inversion" the mean of the measure over labels drawn from these
        predictions: what it would be on these rows if they were calibrated.
    """

    estimate: float
    low: float
    high: float
    level: float
    method: str
    sample_value: float
    null_mean: float | None = None


def confidence_interval(
    y_true: Any,
    y_proba: ArrayLike | None = None,
    measure: str = "smooth_calibration_error",
    *,
    method: Literal["auto", "bootstrap", "inversion"] = "auto",
    level: float = 0.95,
    n_resamples: int = 499,
    recalibrator: RecalibratorLike = "platt",
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> ConfidenceInterval:
    """Compute a confidence interval for any measure.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or CalibrationSummary
        A summary stands for labels, scores and weights; it does not contain clusters.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    measure : str, default="smooth_calibration_error"
        A name from `all_metrics`; with a summary one that reads the weight of each
        label at each score and nothing else.
    method : {"auto", "bootstrap", "inversion"}, default="auto"
        "auto": test inversion for calibration errors, the bootstrap for all others,
        such as proper losses, costs and refinement; for proper losses "gamma" if a
        class has few rows, and "logarithm" of other rows in clusters, which draw
        nothing.
    level : float, default=0.95
    n_resamples : int, default=499
        Of the bootstrap; of each simulation of the inversion, which excludes nothing
        with fewer than 2 / (1 - level) - 1, 39 of them at 0.95: the interval is then as
        wide as can be.
    recalibrator : str or recalibrator, default="platt"
        For the inversion: a model of the true probabilities. A smooth map with
        few parameters; a flexible one, such as "isotonic", fits noise, the simulated
        errors then have less in common with each other than the true ones, and the
        upper end comes out too low.
    n_jobs : int, default=None
        Threads, as in joblib.
    random_state : int, Generator, RandomState or None, default=0
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question: clusters, at
        least two, which need not be independent inside. Whole clusters are drawn, and
        the inversion gives the residuals of each one sign (see `calibration_test`). Not
        for summaries.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.
    progress : callable, default=None
        Called with (done, total): after every batch of replicates of the bootstrap, and
        after each of the four searches of the inversion.
    **options
        Options of the measure.

    Returns
    -------
    interval : ConfidenceInterval

    Raises
    ------
    ValueError
        An unknown measure or method, a level outside (0, 1), or invalid scores, labels
        or weights; see `canonical_proba`. Groups of a summary; the inversion of a
        measure that is not a calibration error, or with groups of one with other options
        than its default ones; the bootstrap of an isotonic refinement.

    Notes
    -----
    "gamma", of proper losses if fewer than 50 rows, and fewer than two thirds of an
    equal share, have the rarest class: the interval of a Poisson number of events of
    one size that has the variance and the skewness of the mean, with one event more
    towards large losses and half an event more on the other side (Fay, Feuer 1997). It
    has a width, and there is a `CalibrationWarning`, if no row has the class. With
    `groups` clusters are counted. With 1, 2 and 5 % events 95 % intervals of one model
    held the truth in 0.96 to 0.99 of 350 draws of 30 and 60 rows (at 1 % all misses are
    intervals that are too high) and in 0.92 to 0.98 of 300 and 2,000 rows; percentiles in
    0.20 to 0.90 and 0.80 to 0.97 (``benchmarks/interval_coverage``, rare.csv).

    "bootstrap": percentiles over resampled rows. Valid, as the number of rows of each
    class grows, for means of rows such as proper losses, and used from 50 rows of each
    class on. Rejected for the isotonic refinements, whose fit is closer still to
    resampled rows: 95 % intervals of 200 rows were too low and held the truth in 0.35 to
    0.55 of all cases. Not valid for calibration errors: they are the norm of a mean,
    biased upwards, and near 0 the resampled values lie above the estimate and far above
    the truth.

    "inversion": labels are simulated from p + t (c - p), cut to [0, 1], with c the
    recalibrated predictions, for t = 0 (calibrated) up to 64 times the observed error:
    if the estimate is small by chance, the truth may be many times as large. The
    interval has those values of the measure, on these predictions with all labels that
    they may have, whose simulated estimates are neither nearly all above nor nearly all
    below the observed one; the estimate is the value for which half are below. The bias
    is simulated and so removed; the lower end is 0 if calibration is not rejected.
    Exact for t = 0; otherwise it relies on c for the shape of the error. It is the
    value of the sample's own predictions, not of further ones. Of measures whose cells
    are those of the rows, such as the l_p error, whose cells nearly all hold one row if
    there are several classes, it is smaller or larger than the value of the population.
    Of the l_p error of 200 rows with three classes and true log-odds 0.8 times those
    predicted, intervals held the value of the population in 0.965 of 200 draws and that
    of the sample's cells in 0.980; estimates were above them in 0.785 and 0.575
    (``benchmarks/interval_coverage``, stated.csv). It is that of the plug-in form: what
    a measure subtracts for chance with ``debias=True`` or an unbiased estimator is
    nothing there, and such an option makes the simulated values another, not the truth.
    Cost: some 25 simulations of `n_resamples` evaluations of the measure. The expected,
    the maximum and the smooth calibration error without options are simulated on at
    most 256 cells of rows of nearly equal probability, many draws at once; of more than
    16 rows per cell the number of events is binomial with the mean probability of the
    cell.

    "logarithm", of proper losses with `groups` or soft labels: Student's interval of
    the logarithm of what the mean loss is above the least one possible, with the error
    of the jackknife over clusters and fewer degrees if their sizes differ (Bell,
    McCaffrey 2002, "Bias reduction in standard errors for linear regression with
    multi-stage samples"). 95 % intervals of the log loss and the Brier loss held the
    truth in 0.94 to 0.97 of 600 draws of 10, 20 and 40 clusters of equal and unequal
    sizes; with 7 % events in 0.86 to 0.89 (10 clusters), 0.88 to 0.94 (20) and 0.92 to 0.95
    (40), the truth above them (``benchmarks/cluster_coverage``). Other measures with
    `groups` have percentiles of resampled clusters, made longer as much.

    Of a summary the same is done on at most 1024 cells, observed and drawn alike: the
    number of events in a cell is binomial. More than two classes are then right or
    wrong: labels are not drawn from whole vectors.

    Measured coverage of 95 % intervals by inversion, 500 rows, predictions too low by a
    constant, 100 draws of 99 resamples (``benchmarks/interval_coverage``): for an error
    of 0.02 0.97 for the smooth and the expected calibration error, for 0.05 0.99 and 0.97.
    The lower end is the smaller of those for an error of the fitted shape and for the
    same error of half of the rows, those where it is largest. The estimate is unbiased
    in the median for shapes of the fitted map, by default a line in the log-odds
    (calibrated, shifted, over- or underconfident), and for errors that change their
    sign often. If only one side of the predictions is wrong, it is too large more often
    than not: of 2,000 rows whose upper half is too high by 0.03, 0.05 or 0.10, intervals
    of the expected error held the population's in 0.980, 0.975 and 0.965 of 200 draws, and
    estimates were above it in 0.655, 0.720 and 0.800 (stated.csv). The upper end is the
    larger of those for an error of the fitted shape and for a constant shift.

    References
    ----------
    DiCiccio, Romano (1990), "Nonparametric confidence limits by resampling methods and
    least favorable families", for inversion along a one-parameter family.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.inference import confidence_interval
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p
    >>> interval = confidence_interval(
    ...     y, p, "smooth_calibration_error", n_resamples=99, random_state=0
    ... )
    >>> interval.low, interval.low <= interval.estimate <= interval.high
    (0.0, True)
    >>> interval.sample_value > interval.estimate
    True
    """
    function = _find_measure(measure)
    check_choice("method", method, _INTERVAL_METHODS)
    check_level(level)
    n_resamples = validate_count(n_resamples, "n_resamples", 2)
    check_progress_callback(progress)
    _reject_isotonic_bootstrap(measure, method)
    sample = None
    clusters = None
    if is_summary(y_true):
        _check_summary_alone(
            y_proba,
            sample_weight,
            labels,
            pos_label,
            groups,
            soft_labels,
        )
        sample_value, sample, options = _compute_value_cell_sample_and_options(
            y_true, function, options
        )
        predictions = sample.predictions
        fit_rows, _ = sample.filled_predictions_and_squares
        # Weights that are not counts stand for as many rows as have their variance.
        rows_per_weight = sample.weight.sum() / sample.squares.sum()
        unit = 1.0 if are_counts(sample.weight) else rows_per_weight
    else:
        if y_proba is None:
            raise make_missing_scores_error(y_true, "Pass it as y_true")
        predictions = fit_rows = validate_clustered_predictions(
            y_true,
            y_proba,
            sample_weight,
            labels,
            pos_label,
            soft_labels=soft_labels,
            groups=groups,
        )
        clusters = predictions.clusters
        unit = 1.0 if soft_labels else get_rows_per_weight(predictions.weight)
        function.check_options(options)
        sample_value = function.evaluate(predictions, **options)
    counts = None if sample is None else sample.counts
    if method == "auto":
        # The mean of a proper loss has an interval without draws.
        if function.spec.loss is not None and not options:
            exact_interval = compute_mean_loss_interval(
                predictions,
                function.spec.loss,
                level,
                counts,
            )
            if exact_interval is not None:
                method_name, low, high = exact_interval
                return ConfidenceInterval(
                    float(min(max(sample_value, low), high)),
                    low,
                    high,
                    level,
                    method_name,
                    float(sample_value),
                )
        # Calibration errors are not negative and biased upwards. Near 0 their bootstrap
        # distribution excludes the truth, so tests are inverted instead.
        method = "inversion" if is_calibration_error(function) else "bootstrap"
    _check_inversion(function, method)
    if clusters is not None and method == "inversion":
        sample = _check_options_and_make_cluster_sample(predictions, function, options)
        predictions = sample.predictions
        fit_rows, _ = sample.filled_predictions_and_squares
    draws = {"n_resamples": n_resamples, "random_state": random_state, "n_jobs": n_jobs}
    if method == "bootstrap":
        # This call only warns if a class has no rows.
        compute_rare_class_loss_interval(predictions, None, level, counts)
        evaluate = partial(function.evaluate, **options)
        draw_options = draws | {"progress": progress}
        values = _bootstrap_values(
            predictions, sample, clusters, evaluate, draw_options
        )
        low, high = map(float, np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
        if clusters is not None:
            weight = predictions.weight
            inflation = compute_small_sample_inflation(weight, clusters, level)
            low = sample_value + inflation * (low - sample_value)
            high = sample_value + inflation * (high - sample_value)
        estimate = min(max(sample_value, low), high)
        null_mean = None
    else:
        law = _fit_clone_and_predict_proba(fit_rows, recalibrator, unit, predictions)
        observed, simulate = _make_value_and_simulator(
            predictions, function, options, sample, draws
        )
        measure_population = partial(evaluate_population_value, function, **options)
        has_confidence = "confidence" in function.spec.multiclass
        reads_top = has_confidence and "multiclass" not in options
        line = partial(
            _InterpolatedTruths,
            predictions,
            measure_population,
            simulate,
            reads_top=reads_top,
        )
        low, estimate, high, null_mean = _find_low_estimate_high_and_null_mean(
            line,
            predictions,
            law,
            observed,
            (1 - level) / 2,
            progress,
        )
    return ConfidenceInterval(
        float(estimate),
        low,
        high,
        level,
        method,
        float(sample_value),
        null_mean,
    )


def _check_summary_alone(*arguments):
    """Raise if labels, weights or groups are passed beside a summary, which holds them."""
    if any(argument is not None and argument is not False for argument in arguments):
        raise invalid_input(
            expected="a summary alone",
            got="other arguments",
            sentence="A summary cannot be combined with scores, weights, labels or groups",
            hint="Give weights and labels to CalibrationSummary; groups need the rows",
        )


def _find_measure(name):
    """Return the measure of a name; raise if this package does not have it."""
    function = all_metrics().get(name) if isinstance(name, str) else None
    if function is not None:
        return function
    if str(name).lower() in _OTHER_PACKAGES_MEASURES:
        raise invalid_input(
            expected="a measure of calibration, or a loss",
            got=f"{name!r}, which measures how well classes are separated or found",
            hint=(
                "validation_summary(y, p) has an interval of the AUC. Here take "
                "'calibration_error'"
            ),
        )
    raise unknown_name_error("a measure", name, all_metrics(), "See the list")


def _check_inversion(function, method):
    """Raise for the inversion of a measure that is not a calibration error."""
    if method == "inversion" and not is_calibration_error(function):
        raise invalid_input(
            expected="a calibration error for method 'inversion'",
            got=repr(function.spec.name),
            hint="Take method='bootstrap'",
        )


def _reject_isotonic_bootstrap(measure, method):
    """Raise for the bootstrap of an isotonic measure, whose interval misses the truth."""
    if measure.startswith("isotonic") and method != "inversion":
        alternative = measure.replace("isotonic", "temperature")
        raise invalid_input(
            expected="a measure whose bootstrap interval is valid",
            got=repr(measure),
            hint=f"Take {alternative!r}, or the loss of a map that was fitted to other rows",
        )


def _bootstrap_values(predictions, sample, groups, evaluate, options):
    """Return a measure on bootstrap samples of the rows, or of the cells of a summary."""
    if sample is None:
        return simulate_bootstrap_distribution(
            predictions, evaluate, **options, groups=groups
        )
    return simulate_distribution(sample.draw_bootstrap_sample, evaluate, **options)


def is_calibration_error(function: Measure) -> bool:
    """Return whether a measure is 0 if predictions equal the probabilities of labels."""
    return bool(function.spec.multiclass) and function.spec.perfect == 0


def is_summary(rows: object) -> bool:
    """Return whether these are the cells of a `CalibrationSummary`, recognised by a field."""
    return hasattr(rows, "significant_bits")


def _compute_value_cell_sample_and_options(summary, function, options):
    """Return the measure, the cells to draw from, and the options for them."""
    name = function.spec.name
    is_multiclass = summary.classes is not None and len(summary.classes) > 2
    samples = summary.samples(MAX_SUMMARY_CELLS)
    if options.get("n_bins") == "cube_root":
        options = {**options, "n_bins": compute_rounded_up_cube_root(summary.n_samples)}
    is_valid = len(samples) == 1 and function.spec.poolable
    if not is_valid or (is_multiclass and not function.has_pos_label):
        raise invalid_input(
            expected="a measure of one two-class problem, with a summary",
            got=repr(name),
            hint="Pass the labels and probabilities of the rows",
        )
    value = summary.measure(name, **options)
    # The summary has turned several classes into one two-class problem.
    if is_multiclass:
        options = {key: options[key] for key in options if key != "multiclass"}
    return value, samples[0], options


def _check_options_and_make_cluster_sample(predictions, function, options):
    """Return the cells of clusters to draw from, for a calibration error."""
    name = function.spec.name
    is_valid = function.has_pos_label and depends_only_on_residuals(name)
    if options or not is_valid:
        raise invalid_input(
            expected="a calibration error with its default options, with groups",
            got=repr(name),
            hint="Take method='bootstrap', or leave groups out",
        )
    (problem,) = predictions.problems()
    return ClusterSample(problem, predictions.clusters, MAX_SUMMARY_CELLS)


def _fit_clone_and_predict_proba(
    predictions, recalibrator, rows_per_weight=1.0, rows=None
):
    """Recalibrate the probabilities of `rows` (None: of `predictions`).

    The map is fitted to `predictions`. A weight of 1 stands for `rows_per_weight` rows, so that a
    common factor of all weights changes nothing, even in code that counts them.
    """
    numbers = np.arange(len(predictions.classes))
    weighted_rows = np.flatnonzero(predictions.weight)
    # Without a row, a class would be as frequent as predicted: it gets a copy of the
    # middle row.
    absent = np.setdiff1d(numbers, predictions.codes[weighted_rows])
    middle_row = weighted_rows[len(weighted_rows) // 2]
    fit_rows = np.append(weighted_rows, np.full_like(absent, middle_row))
    codes = np.append(predictions.codes[weighted_rows], absent)
    weight = rows_per_weight * predictions.weight[fit_rows]
    # A law that is constant or smoothed serves as well, so warnings of the fit are not
    # shown.
    with ignore_calibration_warnings():
        fitted = fit_clone(
            recalibrator,
            predictions.proba[fit_rows],
            codes,
            numbers,
            weight,
        )
    rows = predictions if rows is None else rows
    return predict_proba_aligned(fitted, rows.proba, numbers)


def _make_value_and_simulator(predictions, function, options, sample, draw_options):
    """Return the value to compare with simulations, and the function that simulates them."""
    evaluate = partial(function.evaluate, **options)
    if sample is not None:

        def simulate_values_from_cells(truth):
            draw = partial(sample.simulate_labels, law=truth[::2, 1])
            return simulate_distribution(draw, evaluate, **draw_options)

        return evaluate(predictions), simulate_values_from_cells
    # Some measures have a form for many draws at once, on pooled cells, which is many
    # times faster.
    evaluate_draws = BATCH_EVALUATOR_BY_MEASURE.get(function.spec.name)
    pooled = None
    if evaluate_draws is not None and not options:
        pooled = pool_rows_if_worthwhile(
            predictions, _MAX_CELLS_WHEN_POOLING_ROWS, always=True
        )
    if pooled is None:
        draw = partial(
            simulate_null_distribution, predictions, evaluate, **draw_options
        )
        return evaluate(predictions), lambda truth: draw(law=truth)

    def simulate_values_from_pooled_rows(truth):
        rows = pooled.with_label_probabilities(truth)
        score = pooled.score
        mass = pooled.mass

        def evaluate_batch(size, rng):
            return evaluate_draws(score, mass, rows.draw_event_weights(size, rng))

        return simulate_batches(evaluate_batch, **draw_options)

    return evaluate(pooled.predictions), simulate_values_from_pooled_rows


def _find_low_estimate_high_and_null_mean(
    make_line, predictions, law, observed, tail, progress
):
    """Return the lower end, the estimate, the upper end, and the mean if calibrated.

    The lower end and the estimate lie on the line from the predictions to `law`; the
    upper end is the larger one of that line and of a common shift. `make_line` makes a
    `_InterpolatedTruths` to a law; `tail` is the share of draws beyond each end.
    """
    # Values that differ only by rounding count as equal to the observed one.
    tolerance = 1e-12 * max(1.0, abs(observed))
    # Truths between the predictions and their recalibration: the shape of the
    # miscalibration is taken from the data, and its size is tested.
    shaped_line = make_line(law)
    n_done = count(1)

    def search_end(line, are_too_small):
        end = line.compute_population_value(line.find_smallest_strength(are_too_small))
        if progress is not None:
            progress(next(n_done), 4)
        return end

    def make_is_rejected_function(significance):
        def is_rejected(simulated_values):
            is_extreme = simulated_values >= observed - tolerance
            return _compute_monte_carlo_pvalue(is_extreme) <= significance

        return is_rejected

    def is_simulated_truth_too_weak(values):
        is_extreme = values <= observed + tolerance
        return _compute_monte_carlo_pvalue(is_extreme) > tail

    low = search_end(shaped_line, make_is_rejected_function(tail))
    estimate = search_end(shaped_line, make_is_rejected_function(0.5))
    # If it is 0, calibration is not rejected, and all lines begin there.
    if low > 0:
        # A one-sided miscalibration has the same error with a smaller distance
        # elsewhere, so it can give a smaller lower end.
        half_line = make_line(_replace_law_by_proba_in_nearer_half(predictions, law))
        strength = half_line.find_smallest_strength(make_is_rejected_function(tail))
        low = min(low, half_line.compute_population_value(strength))
        # It holds tables as large as the predictions.
        del half_line
    # An unbiased estimate may be near 0, or below, although the truth is not.
    distance = max(observed, 0.1 / np.sqrt(len(law)))
    shifted_proba = _compute_proba_shifted_to_frequency(predictions, distance)
    high = max(
        low,
        search_end(shaped_line, is_simulated_truth_too_weak),
        search_end(make_line(shifted_proba), is_simulated_truth_too_weak),
    )
    null_mean = float(shaped_line.simulate_values(0.0).mean())
    return low, min(max(low, estimate), high), high, null_mean


def _compute_monte_carlo_pvalue(as_extreme):
    """Compute the p-value of a Monte Carlo test."""
    return (1 + np.count_nonzero(as_extreme)) / (1 + len(as_extreme))


def _replace_law_by_proba_in_nearer_half(predictions, law):
    """Return the law on the half of rows farthest from it, and predictions on the rest.

    The noise of the other, calibrated half adds more to an estimate than it does if all
    rows are miscalibrated.
    """
    proba = np.asarray(predictions.proba)
    distance = np.abs(law - proba).sum(axis=1)
    return np.where((distance >= np.median(distance))[:, None], law, proba)


def _compute_proba_shifted_to_frequency(predictions, proba_distance):
    """Shift predictions by `proba_distance` towards the frequencies of the classes."""
    proba = np.asarray(predictions.proba)
    weight = predictions.weight / predictions.weight.sum()
    frequency = np.bincount(predictions.codes, weights=weight, minlength=proba.shape[1])
    direction = frequency - weight @ proba
    largest = np.abs(direction).max()
    # Predictions that are right on average are shifted in any direction.
    if largest < 1e-12:
        direction = np.eye(proba.shape[1])[0] - 1 / proba.shape[1]
        largest = 1.0
    return proba + direction * (max(proba_distance, 1e-6) / largest)


class _InterpolatedTruths:
    """Truths p + t (law - p), t >= 0: the measure on labels drawn from each, and its limit.

    `reads_top` is whether a measure of several classes reads the predicted one alone.
    """

    def __init__(
        self, predictions, evaluate_population_value, simulate, law, reads_top=False
    ):
        self.predictions = predictions
        self.evaluate_population_value = evaluate_population_value
        self.proba = np.asarray(predictions.proba)
        self.law = law
        self.reads_top = reads_top
        # Both searches begin with the same points, which are simulated only once.
        self.simulate_values = cache(lambda t: simulate(self.compute_true_proba(t)))

    def compute_true_proba(self, error_strength):
        truth = np.clip(self.proba + error_strength * (self.law - self.proba), 0, None)
        return truth / truth.sum(axis=1, keepdims=True)

    def compute_population_value(self, t):
        """Compute the value of the sample's cells: each row with every label, weighted."""
        tables = self.proba, self.compute_true_proba(t)
        classes = self.predictions.classes
        if self.reads_top and len(classes) > 2:
            # Two copies of each row instead of k: the predicted class, or another one.
            top = self.proba.argmax(axis=1)[:, None]
            top_columns = (np.take_along_axis(table, top, axis=1) for table in tables)
            tables = [np.hstack([1 - column, column]) for column in top_columns]
            classes = np.arange(2)
        proba, truth = tables
        n, k = proba.shape
        all_labels = Predictions(
            np.tile(proba, (k, 1)),
            np.repeat(np.arange(k), n),
            (truth * self.predictions.weight[:, None]).T.ravel(),
            classes,
        )
        # The copies of a row are one item, not additional rows.
        all_labels.items = np.tile(np.arange(n), k)
        value = self.evaluate_population_value(all_labels)
        # A value that is 0 but for rounding is 0.
        return 0.0 if abs(value) < 1e-15 else float(value)

    def find_smallest_strength(self, are_too_small):
        """Find the smallest t, to 2 %, that is large enough; else the largest one tried."""
        low = 0.0
        high = 1.0
        if not are_too_small(self.simulate_values(low)):
            return 0.0
        while high < _MAX_ERROR_STRENGTH and are_too_small(self.simulate_values(high)):
            low = high
            high *= 2
        # 2 % is below the Monte Carlo error of the p-values that are inverted.
        while high - low > 0.02 * max(high, 1.0):
            middle = (low + high) / 2
            if are_too_small(self.simulate_values(middle)):
                low = middle
            else:
                high = middle
        return high
