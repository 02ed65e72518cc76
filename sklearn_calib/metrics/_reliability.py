"""Reliability curves: the numbers behind a reliability diagram."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import expit

from .._argument_checks import check_choice, check_level, is_real_number, validate_count
from .._kernels._binning import (
    assign_rows_to_bins,
    assign_values_to_monotonic_bins,
    compute_rounded_up_cube_root,
    find_distinct_scores_and_index,
    sum_bins,
)
from .._kernels._loess import Loess
from .._kernels._log_odds import compute_finite_log_odds
from .._kernels._picture_axes import (
    compute_weight_fractions_by_bin as log_odds_histogram,
)
from .._kernels._polynomial_test import (
    fit_logistic_polynomial_if_possible,
    fit_logistic_spline,
)
from .._kernels._proportion import compute_exact_interval, compute_wilson_interval
from .._random import draw_row_counts, make_generator
from .._sklearn_compat import fit_isotonic_shares
from .._typing import (
    ArrayLike,
    CurveStrategy,
    FloatArray,
    Multiclass,
    NumberOfBins,
    RandomStateLike,
)
from ..exceptions import invalid_input
from ._predictions import (
    BinaryProblem,
    Predictions,
    validate_multilabel,
    validate_predictions,
)

MAX_BINS = 10**6

_STRATEGY_NAMES = get_args(CurveStrategy)
_N_BELT_POINTS = 201
# Points of an isotonic curve: more cannot be seen, and bands need points x resamples.
_MAX_ISOTONIC_CURVE_POINTS = 1000


@dataclass(frozen=True)
class ReliabilityCurve:
    """Observed frequency against predicted probability for one binary problem.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_points,)
        Mean prediction and frequency of each bin; for "isotonic" the distinct scores
        and the fit there, or 1000 of them evenly spaced in rank, as for "loess"; for
        "polynomial" and "spline" scores evenly spaced, and evenly spaced in log-odds,
        and the fit there.
    weight : ndarray of shape (n_points,)
        Sum of the sample weights; for "polynomial" and "spline" of the rows nearest to
        each point.
    consistency_low, consistency_high : ndarray of shape (n_points,) or None
        Where the observed frequency lies, with probability `level` for each point by
        itself, if the predictions are calibrated.
    confidence_low, confidence_high : ndarray of shape (n_points,) or None
        Confidence interval for the true frequency of each point; for "polynomial" of
        all points at once, the calibration belt.
    level : float
    strategy : str
    title : str
        The binary problem: "class x", "confidence", "predicted x" or "label x".
    histogram : ndarray of shape (20,)
        Share of the rows with a score in each twentieth of [0, 1].
    log_odds_histogram : ndarray of shape (66,)
        Share of the rows with a score of exactly 0, in each half of a unit of log-odds
        from -16 to 16 (the first and the last one with what lies beyond), and of
        exactly 1.
    """

    predicted: FloatArray
    observed: FloatArray
    weight: FloatArray
    consistency_low: FloatArray | None
    consistency_high: FloatArray | None
    confidence_low: FloatArray | None
    confidence_high: FloatArray | None
    level: float
    strategy: str
    title: str
    histogram: FloatArray
    log_odds_histogram: FloatArray


class ReliabilityCurves(list[ReliabilityCurve]):
    """Reliability curves, one per binary problem; a single curve's attributes are passed on.

    Examples
    --------
    >>> from sklearn_calib.metrics import reliability_curve
    >>> curves = reliability_curve([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6], n_bins=2)
    >>> len(curves), curves[0].observed, curves.observed
    (1, array([0., 1.]), array([0., 1.]))
    """

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the only curve."""
        if name not in ReliabilityCurve.__dataclass_fields__:
            raise AttributeError(f"ReliabilityCurves has no {name}")
        if len(self) != 1:
            titles = ", ".join(repr(curve.title) for curve in self[:5])
            raise invalid_input(
                expected="one curve",
                got=f"{len(self)} ({titles})",
                hint=f"Take one of them, such as curves[0].{name}",
                error=AttributeError,
            )
        return getattr(self[0], name)


def reliability_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    strategy: CurveStrategy = "quantile",
    n_bins: NumberOfBins = 15,
    multiclass: Multiclass = "auto",
    level: float = 0.9,
    n_resamples: int = 200,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    multilabel: Literal["macro", "micro"] | None = None,
    random_state: RandomStateLike = 0,
) -> ReliabilityCurves:
    """Compute a reliability curve: observed frequencies against predictions, with bands.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or (n_samples, n_labels) with
    `multilabel`
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        With `multilabel` of shape (n_samples, n_labels), or a list of n_labels arrays
        of shape (n_samples, 2).
    strategy : {"quantile", "uniform", "isotonic", "polynomial", "loess", "spline"}, \
default="quantile"
        Bins of equal mass, of equal width, or no bins: the isotonic fit (CORP), which
        needs no choice of bins and is monotone; a polynomial in the log-odds with the
        calibration belt of GiViTI, as in `sklearn_calib.inference.polynomial_test` for
        held-out rows; or the flexible curves that clinical papers draw, with an
        interval at each point: local regression as in R's ``loess``, or a logistic
        regression on a restricted cubic spline of the log-odds with five knots, at
        their 10, 30, 50, 70 and 90 % quantiles.
    n_bins : int, "cube_root" or "sweep", default=15
        For the two kinds of bins; as in `calibration_error`. "sweep" chooses them by
        the labels; the bands take them as given.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        As in `calibration_error`.
    level : float in (0, 1), default=0.9
        Probability of each band at each point; of the belt, at all points at once.
    n_resamples : int, default=200
        For the consistency bands, and for the confidence band of "isotonic"; 0 draws no
        such band.
    sample_weight, labels, pos_label
        As in `calibration_error`.
    multilabel : {"macro", "micro"}, default=None
        For many labels per row. "macro": a curve for each label. "micro": one of all
        pairs of a row and a label. `labels` are then names of the labels; by default
        those of the columns of `y_true`.
    random_state : int, Generator, RandomState or None, default=0
        Of the resamples.

    Returns
    -------
    curves : ReliabilityCurves
        A list of `ReliabilityCurve`, one per binary problem: one for two classes and
        "confidence", else one per class or label. If there is one, the list has its
        attributes too: ``curves.observed`` is ``curves[0].observed``. If there are
        several, that is an AttributeError which names them.

    Notes
    -----
    Consistency band: labels are drawn again from the predictions, which is exact under
    calibration. Confidence band of a bin: Clopper and Pearson's, with Kish's number of
    rows under weights. Confidence band of the isotonic curve: the percentile bootstrap.
    The belt has no consistency band: predictions are calibrated as far as the test can
    tell where the diagonal lies within it; weights are scaled to add up to Kish's
    number of rows. Nor have the flexible curves: Wilson's interval of the local
    regression, with as many rows as have a mean of the same variance, and Wald's of the
    spline on log-odds. Both are of the curve's own expectation: what smoothing flattens
    they do not see. Cost: O(n log n), and O(n) a resample or a Newton step.

    References
    ----------
    Broecker, Smith (2007), "Increasing the reliability of reliability diagrams".
    Dimitriadis, Gneiting, Jordan (2021), "Stable reliability diagrams for probabilistic
    classifiers". Nattino, Finazzi, Bertolini (2014), "A new calibration test and a
    reappraisal of the calibration belt for the assessment of prediction models based on
    dichotomous outcomes".

    Examples
    --------
    >>> from sklearn_calib.metrics import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6], n_bins=2)
    >>> curve.predicted, curve.observed
    (array([0.3, 0.6]), array([0., 1.]))
    """
    rng = make_generator(random_state)
    problems = []
    if multilabel is None:
        predictions = validate_predictions(
            y_true,
            y_proba,
            sample_weight,
            labels,
            pos_label,
        )
        for problem in predictions.problems(multiclass):
            problems.append((problem, predictions))
    else:
        for title, predictions in validate_multilabel(
            y_true,
            y_proba,
            multilabel,
            sample_weight=sample_weight,
            labels=labels,
        ):
            (problem,) = predictions.problems()
            problems.append((replace(problem, title=title), predictions))
    curves = []
    for problem, predictions in problems:
        rows = CurveRows.from_problem(problem)
        n_used_bins = resolve_n_bins_unless_sweep(n_bins, predictions)
        curve = compute_curve(rows, strategy, n_used_bins, level, n_resamples, rng)
        curves.append(replace(curve, weight=curve.weight * predictions.unit))
    return ReliabilityCurves(curves)


@dataclass(frozen=True)
class CurveRows:
    """The input of `compute_curve`: scores and outcomes of rows or of pooled rows, and their draws.

    A `BinaryProblem` draws single rows, and `PredictionsByScore` draw rows or whole
    clusters in their cells. A curve needs only what both have in common.

    Attributes
    ----------
    score, weight, hits, squares : ndarray of shape (n,)
        The score, the sum of the weights, that of the rows with the event, and that of
        squared weights.
    title : str
    relabelled : callable
        Takes a Generator, returns `hits` with labels drawn from the scores.
    redrawn : callable
        Takes a Generator, returns `weight` and `hits` of rows drawn with replacement.
    compute_frequency_intervals : callable or None
        Intervals of the frequencies of bins, if rows belong together.
    """

    score: FloatArray
    weight: FloatArray
    hits: FloatArray
    squares: FloatArray
    title: str
    simulate_labels: Callable[[np.random.Generator], FloatArray]
    draw_bootstrap_sample: Callable[
        [np.random.Generator], tuple[FloatArray, FloatArray]
    ]
    compute_frequency_intervals: Callable[..., tuple[FloatArray, FloatArray]] | None = (
        None
    )

    @classmethod
    def from_problem(cls, problem: BinaryProblem) -> "CurveRows":
        """Return the rows of a two-class problem."""
        score = problem.score
        weight = problem.weight
        hits = weight * problem.hit

        def redraw_labels(rng):
            return weight * (rng.random(len(score)) < score)

        def redraw_rows(rng):
            counts = draw_row_counts(len(score), rng)
            return weight * counts, hits * counts

        return cls(
            score,
            weight,
            hits,
            weight**2,
            problem.title,
            redraw_labels,
            redraw_rows,
        )

    @classmethod
    def from_pooled(cls, pooled: Any, title: str) -> "CurveRows":
        """Return the cells of pooled rows; their draws are those of rows or of clusters."""

        def redraw_labels(rng):
            return pooled.simulate_labels(rng).weight[1::2]

        def redraw_rows(rng):
            weight = pooled.draw_bootstrap_sample(rng).weight.reshape(-1, 2)
            return weight.sum(axis=1), weight[:, 1]

        compute_intervals = None
        if pooled.n_clusters is not None:
            compute_intervals = pooled.compute_frequency_intervals
        return cls(
            score=pooled.proba[:, 1],
            weight=pooled.weight.sum(axis=1),
            hits=pooled.weight[:, 1],
            squares=pooled.squares.sum(axis=1),
            title=title,
            simulate_labels=redraw_labels,
            draw_bootstrap_sample=redraw_rows,
            compute_frequency_intervals=compute_intervals,
        )


def compute_curve(
    rows: CurveRows,
    strategy: CurveStrategy,
    n_bins: NumberOfBins,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> ReliabilityCurve:
    """Compute `reliability_curve` for validated rows or cells, with the same options."""
    check_choice("strategy", strategy, _STRATEGY_NAMES)
    check_level(level)
    n_resamples = validate_count(n_resamples, "n_resamples", 0)
    score = rows.score
    weight = rows.weight
    hits = rows.hits
    tails = [(1 - level) / 2, (1 + level) / 2]
    # Only isotonic and binned curves have a band for drawn labels.
    consistency: Any = ()
    if strategy == "isotonic":
        values, row_value = find_distinct_scores_and_index(score)
        mass, total = sum_bins(row_value, len(values), weight, hits)
        points = _choose_curve_point_indices(len(values))
        predicted = values[points]
        observed = fit_isotonic_shares(total / mass, mass)[points]
        consistency = _compute_isotonic_fits_to_drawn_labels(
            rows,
            row_value,
            mass,
            points,
            n_resamples,
            rng,
        )
        resampled_fits = _bootstrap_isotonic_fits(
            rows,
            row_value,
            mass,
            points,
            n_resamples,
            rng,
        )
        confidence = None, None
        if n_resamples:
            confidence = np.quantile(resampled_fits, tails, axis=0)
        mass = np.add.reduceat(mass, points)
    elif strategy == "loess":
        predicted, observed, mass, confidence = _fit_loess_curve(rows, level)
    elif strategy in ("polynomial", "spline"):
        predicted, observed, mass, confidence = _fit_curve_and_belt_on_log_odds(
            rows, strategy, level
        )
    else:
        n_bins = resolve_n_bins_unless_sweep(n_bins)
        if n_bins == "sweep":
            values, row_value = find_distinct_scores_and_index(score)
            mass, total = sum_bins(row_value, len(values), weight, hits)
            row_bin = assign_values_to_monotonic_bins(values, mass, total, strategy)[
                row_value
            ]
            n_bins = row_bin.max() + 1
        else:
            row_bin = assign_rows_to_bins(score, weight, n_bins, strategy)
        mass, mean, total, squares = sum_bins(
            row_bin,
            n_bins,
            weight,
            weight * score,
            hits,
            rows.squares,
        )
        is_filled = mass > 0
        mass = mass[is_filled]
        squares = squares[is_filled]
        predicted = mean[is_filled] / mass
        observed = total[is_filled] / mass
        # Bins are numbered without the empty ones.
        filled_bin = (np.cumsum(is_filled) - 1)[row_bin]
        consistency = np.empty((n_resamples, len(mass)))
        for i in range(n_resamples):
            drawn_hits = np.bincount(filled_bin, rows.simulate_labels(rng), len(mass))
            consistency[i] = drawn_hits / mass
        if rows.compute_frequency_intervals is None:
            # Kish's effective number of rows of each bin, in whose unit Clopper and
            # Pearson's interval is computed.
            n_effective = mass**2 / squares
            n_hits = observed * n_effective
            confidence = compute_exact_interval(n_hits, n_effective, level)
        else:
            low, high = rows.compute_frequency_intervals(row_bin, n_bins, level)
            confidence = low[is_filled], high[is_filled]
    expected: Any = (None, None)
    if len(consistency):
        expected = np.quantile(consistency, tails, axis=0)
    counts, _ = np.histogram(score, bins=20, range=(0, 1), weights=weight)
    return ReliabilityCurve(
        predicted=predicted,
        observed=observed,
        weight=mass,
        consistency_low=expected[0],
        consistency_high=expected[1],
        confidence_low=confidence[0],
        confidence_high=confidence[1],
        level=level,
        strategy=strategy,
        title=rows.title,
        histogram=counts / weight.sum(),
        log_odds_histogram=log_odds_histogram(score, weight),
    )


def _fit_loess_curve(rows, level):
    """Return scores, a local regression, the weight nearest to each, and Wilson's interval."""
    values, row_value = find_distinct_scores_and_index(rows.score)
    mass, total, squares = sum_bins(
        row_value, len(values), rows.weight, rows.hits, rows.squares
    )
    points = _choose_curve_point_indices(len(values))
    loess = Loess(values)
    observed = loess(mass, total)[points]
    effective_rows = loess.count_effective_rows(mass, squares)[points]
    interval = compute_wilson_interval(observed, effective_rows, level)
    return values[points], observed, np.add.reduceat(mass, points), interval


def _fit_curve_and_belt_on_log_odds(rows, strategy, level):
    """Return points, the fitted curve, the weight nearest to each, and its interval or belt."""
    # Weights are scaled so that their sum is Kish's number of rows.
    kish = rows.weight.sum() / rows.squares.sum()
    z = compute_finite_log_odds(rows.score, 1 - rows.score)
    fit_curve = (
        fit_logistic_polynomial_if_possible
        if strategy == "polynomial"
        else fit_logistic_spline
    )
    fit = fit_curve(z, kish * rows.weight, kish * rows.hits)
    # Points evenly spaced in the probability and in the log-odds, so that the curve is
    # smooth on either axis.
    proba_grid = np.linspace(rows.score.min(), rows.score.max(), _N_BELT_POINTS)
    log_odds_grid = expit(np.linspace(z.min(), z.max(), _N_BELT_POINTS))
    points = np.union1d(
        proba_grid, np.clip(log_odds_grid, proba_grid[0], proba_grid[-1])
    )
    nearest = np.searchsorted((points[1:] + points[:-1]) / 2, rows.score)
    z = compute_finite_log_odds(points, 1 - points)
    mass = np.bincount(nearest, rows.weight, len(points))
    return points, fit.compute_curve_probabilities(z), mass, fit.compute_belt(z, level)


def _choose_curve_point_indices(n):
    """Return at most `_MAX_ISOTONIC_CURVE_POINTS` of `n` positions, evenly spaced in rank."""
    positions = np.linspace(0, n - 1, min(n, _MAX_ISOTONIC_CURVE_POINTS))
    return np.unique(positions.astype(np.intp))


def _compute_isotonic_fits_to_drawn_labels(
    rows, row_value, mass, point_indices, n_resamples, rng
):
    """Return the isotonic fit at some points for labels drawn from the predictions.

    `row_value` is the place of each row's score among the distinct ones, and `mass`
    their weight. The result has shape (n_resamples, n_points).
    """
    fits = []
    for _ in range(n_resamples):
        total = np.bincount(row_value, rows.simulate_labels(rng), len(mass))
        fits.append(fit_isotonic_shares(total / mass, mass)[point_indices])
    return np.array(fits)


def _bootstrap_isotonic_fits(rows, row_value, mass, point_indices, n_resamples, rng):
    """Return the isotonic fit at some points for resampled rows, in the same shape."""
    fits = []
    for _ in range(n_resamples):
        mass_drawn, total = sum_bins(
            row_value, len(mass), *rows.draw_bootstrap_sample(rng)
        )
        # A bootstrap sample lacks some scores; the curve is interpolated there by rank.
        drawn_values = np.flatnonzero(mass_drawn)
        mass_drawn = mass_drawn[drawn_values]
        fit = fit_isotonic_shares(total[drawn_values] / mass_drawn, mass_drawn)
        fits.append(np.interp(point_indices, drawn_values, fit))
    return np.array(fits)


def resolve_n_bins_unless_sweep(
    n_bins: NumberOfBins, predictions: Predictions | None = None
) -> NumberOfBins:
    """Return the number of bins, or "sweep", which needs the labels."""
    if isinstance(n_bins, str) and n_bins == "sweep":
        return n_bins
    if isinstance(n_bins, str) and n_bins == "cube_root" and predictions is not None:
        return compute_rounded_up_cube_root(predictions.n_items)
    if (
        isinstance(n_bins, int | np.integer)
        and not isinstance(n_bins, bool)
        and 1 <= n_bins <= MAX_BINS
    ):
        return int(n_bins)
    expected = "n_bins >= 1, 'cube_root' or 'sweep'"
    if is_real_number(n_bins) and n_bins > MAX_BINS:
        expected = f"n_bins <= {MAX_BINS}"
    raise invalid_input(expected=expected, got=repr(n_bins), hint="Pass a whole number")
