"""Classical tests of calibration, for two classes or the largest probability of several."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from .._argument_checks import (
    check_choice,
    check_level,
    read_bool_with_none_as_false,
    validate_count,
)
from .._kernels import _classical_tests
from .._kernels._binning import find_scores_index_mass_and_event_rates
from .._kernels._cluster_sums import run_score_test
from .._kernels._log_odds import compute_finite_log_odds
from .._kernels._polynomial_test import (
    LogisticPolynomial,
    fit_logistic_polynomial_if_possible,
)
from .._random import check_seed, make_generator
from .._typing import ArrayLike, FloatArray, RandomStateLike
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ..metrics import validate_predictions
from ._clusters import (
    ClusteredLine,
    ClusterSample,
    validate_clustered_predictions,
    warn_few_event_clusters,
)
from ._monte_carlo import MonteCarloResult


class SignificanceResult(NamedTuple):
    """The statistic of a test and its p-value."""

    statistic: float
    pvalue: float


def spiegelhalter_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
) -> SignificanceResult:
    """Test two-sided whether the Brier loss is that of calibrated predictions (Spiegelhalter).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; of more than two classes the largest is tested.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question (clusters): the
        variance is that of their sums, see `cox_test`. At least two.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.

    Returns
    -------
    result : SignificanceResult
        (z, p-value). z > 0: the loss is larger than it should be.

    Notes
    -----
    Blind to errors that do not change the expected loss, such as at p = 1/2. Normal
    approximation. If all predictions are 0, 1/2 or 1 the statistic has no variance:
    z = 0, p-value 1, unless a certain prediction is wrong: z infinite, p-value 0. Cost:
    O(n).

    References
    ----------
    Spiegelhalter (1986), "Probabilistic prediction in patient management and clinical
    trials", section 4.

    Examples
    --------
    >>> from sklearn_calib.inference import spiegelhalter_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> spiegelhalter_test(y, proba).pvalue < 0.001
    True
    """
    arguments = y_true, y_proba, sample_weight, labels, pos_label
    problem, predictions = _make_single_problem_and_predictions(
        arguments, groups, soft_labels, warn=False
    )
    p = problem.score
    outcome = problem.hit
    weight = problem.weight
    if predictions.clusters is not None:
        # Spiegelhalter's statistic is a weighted sum of residuals with weights 1 - 2 p, so
        # its score test serves clusters too.
        statistics = run_score_test(
            (1 - 2 * p)[:, None],
            outcome - p,
            p * (1 - p),
            weight,
            predictions.clusters,
        )
        return SignificanceResult(*statistics)
    excess = weight * (outcome - p) * (1 - 2 * p)
    is_impossible = ((outcome != p) & ((p == 0) | (p == 1))).any()
    variance = (weight**2) @ ((1 - 2 * p) ** 2 * p * (1 - p))
    statistics = _classical_tests.run_spiegelhalter_test(
        excess.sum(),
        variance,
        is_impossible,
    )
    return SignificanceResult(*statistics)


def hosmer_lemeshow_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    n_bins: int = 10,
    held_out: bool = True,
    n_parameters: int = 2,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
) -> SignificanceResult:
    """Test calibration by chi-square over bins of equally many rows (Hosmer-Lemeshow).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; of more than two classes the largest is tested.
    n_bins : int, default=10
    held_out : bool, default=True
        Whether these rows are new to the model. If True, there are as many degrees of
        freedom as bins. If False (a logistic model tested on the rows that it was
        fitted to), there are `n_parameters` fewer.
    n_parameters : int, default=2
        Used only with ``held_out=False``.
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question: clusters, at
        least two, which need not be independent inside. The law of the statistic is
        then drawn, see `calibration_test`.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.
    n_resamples : int, default=999
        Draws, with `groups` or soft labels; the smallest p-value is 1 / (1 +
        n_resamples).
    random_state : int, Generator, RandomState or None, default=0
        Of the draws.

    Returns
    -------
    result : SignificanceResult
        (chi-square, p-value).

    Raises
    ------
    ValueError
        Too few bins; fewer than two groups, or groups of rows that the model was fitted
        to.

    Warns
    -----
    CalibrationWarning
        Of clusters: fewer than five are expected to have an event, or to have none.

    Notes
    -----
    Equal predictions share a bin. The usual number of degrees of freedom, n_bins - 2,
    is wrong for held-out rows: it rejects calibrated predictions too often. A bin in
    which all predictions are exactly 0 or 1 adds nothing if all of them are right, and
    makes the statistic infinite if one is wrong. Cost: O(n log n).

    The p-value is that of the chi-square law. If a bin has fewer than 5 expected events
    or non-events, and ``held_out=True``, it is that of a multiple of such a law, with
    the variance that the statistic has: of calibrated predictions with a mean of 0.01
    on 300 rows the test rejects 0.05 at 0.05 and 0.01 at 0.01; the plain law rejects
    0.14 and 0.09.

    With `groups` labels are drawn as for the expected calibration error in
    `calibration_test`: a bin of few clusters keeps its size if residuals change sign.
    Of calibrated predictions in 20 clusters 0.03 to 0.04 of 400 tests reject at 0.05 and
    0.00 to 0.01 at 0.01; with half of the clusters copies of one row 0.07 at 0.05
    (``benchmarks/cluster_coverage``, hosmer_lemeshow.csv).

    References
    ----------
    Hosmer, Lemeshow (1980), "Goodness of fit tests for the multiple logistic regression
    model". Hosmer, Hjort (2002), "Goodness-of-fit processes for logistic regression".

    Examples
    --------
    >>> from sklearn_calib.inference import hosmer_lemeshow_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> hosmer_lemeshow_test(y, proba).pvalue < 0.001
    True
    """
    n_resamples = validate_count(n_resamples, "n_resamples")
    check_seed(random_state)
    problem, predictions = _make_single_problem_and_predictions(
        (y_true, y_proba, None, labels, pos_label), groups, soft_labels
    )
    n_parameters = validate_count(n_parameters, "n_parameters", 0)
    lost_freedom = 0 if held_out else n_parameters
    n_bins = validate_count(n_bins, "n_bins", lost_freedom + 1, "Use more bins")
    if predictions.clusters is not None:
        if lost_freedom:
            raise invalid_input(
                expected="held_out=True, with groups or soft labels",
                got="held_out=False",
                hint="Test on rows that the model has not seen",
            )

        def compute_chi_square(score, mass, hits, _):
            return _classical_tests.compute_chi_square_and_used_bins(
                score, mass, hits, n_bins
            )[0]

        # With clusters the statistic has no known distribution, so it is ranked among
        # statistics of drawn labels.
        return _rank_among_draws(
            problem,
            predictions,
            compute_chi_square,
            _draw_event_weights,
            n_resamples,
            random_state,
            "hosmer_lemeshow_test",
        )
    values, _, rows, event_rate = find_scores_index_mass_and_event_rates(
        problem.score, problem.hit, np.ones(len(problem.hit))
    )
    statistics = _classical_tests.run_hosmer_lemeshow_test(
        values, rows, rows * event_rate, n_bins, lost_freedom
    )
    return SignificanceResult(*statistics)


def cox_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
) -> SignificanceResult:
    """Test intercept 0 and slope 1 of the log-odds by likelihood ratio (Cox).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; of more than two classes the largest is tested.
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question: clusters, at
        least two, which need not be independent inside. The score test is then taken in
        place of the likelihood ratio.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.

    Returns
    -------
    result : SignificanceResult
        (twice the difference of the log-likelihoods, p-value of chi-square with 2
        degrees).

    Warns
    -----
    CalibrationWarning
        Of clusters: fewer than five are expected to have an event, or to have none.

    Notes
    -----
    Finds predictions that are too high, too low, over- or underconfident; other shapes
    only by chance. If a threshold separates the classes the fitted likelihood is its
    supremum (1, but for ties at the threshold). Cost: O(n).

    With `groups`: U' V^-1 U with U the sums of y - p and of (y - p) z, z the log-odds;
    V from the sums of the clusters, divided by what the squared residuals of the rows
    are and multiplied by what they are if calibrated, so that few events by chance do
    not make it small. Chi-square with 2 degrees. Measured level, for few clusters and
    rare events: ``benchmarks/cluster_coverage``.

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression". Rao, Scott
    (1992), "A simple method for the analysis of clustered binary data", for clusters.

    Examples
    --------
    >>> from sklearn_calib.inference import cox_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> cox_test(y, proba).pvalue < 0.001
    True
    """
    problem, predictions = _make_single_problem_and_predictions(
        (y_true, y_proba, None, labels, pos_label), groups, soft_labels
    )
    p = problem.score
    outcome = problem.hit
    weight = problem.weight
    if predictions.clusters is not None:
        z = compute_finite_log_odds(p, 1 - p)
        line = ClusteredLine(z, outcome, weight, predictions.clusters)
        return SignificanceResult(*line.test_line())
    rows = np.ones(len(p))
    statistics = _classical_tests.run_cox_test(p, 1 - p, rows, outcome)
    return SignificanceResult(*statistics)


def cumulative_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    statistic: Literal["kuiper", "kolmogorov_smirnov"] = "kuiper",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
) -> SignificanceResult:
    """Test calibration by cumulative sums of label minus prediction, in order of the predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; of more than two classes the largest is tested.
    statistic : {"kuiper", "kolmogorov_smirnov"}, default="kuiper"
        The range of the cumulative differences, or their largest absolute value,
        divided by the standard deviation of the last.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the samples of one question: clusters, at
        least two, which need not be independent inside. The law of the statistic is
        then drawn, see `calibration_test`.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.
    n_resamples : int, default=999
        Draws, with `groups` or soft labels; the smallest p-value is 1 / (1 +
        n_resamples).
    random_state : int, Generator, RandomState or None, default=0
        Of the draws.

    Returns
    -------
    result : SignificanceResult
        (statistic, p-value).

    Raises
    ------
    ValueError
        An unknown statistic; fewer than two groups.

    Warns
    -----
    CalibrationWarning
        Of clusters: fewer than five are expected to have an event, or to have none.

    Notes
    -----
    In the limit the path is a Brownian motion, not a bridge: the p-values are those of
    its range and of its largest absolute value. No bins. Equal predictions are one
    step. The maximum over finitely many steps is a little smaller than the limit's, so
    the test is slightly conservative. Cost: O(n log n).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), "Metrics of calibration for
    probabilistic predictions". Feller (1951), "The asymptotic distribution of the range
    of sums of independent random variables", eq. 3.6.

    Examples
    --------
    >>> from sklearn_calib.inference import cumulative_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> cumulative_test(y, proba).pvalue < 0.01
    True
    """
    laws = _classical_tests.SURVIVAL_FUNCTIONS
    check_choice("statistic", statistic, laws)
    n_resamples = validate_count(n_resamples, "n_resamples")
    check_seed(random_state)
    problem, predictions = _make_single_problem_and_predictions(
        (y_true, y_proba, sample_weight, labels, pos_label), groups, soft_labels
    )
    if predictions.clusters is not None:

        def compute_cumulative_statistic(score, mass, hits, variance):
            return _classical_tests.compute_path_statistic(
                score, hits - mass * score, variance, statistic
            )

        return _rank_among_draws(
            problem,
            predictions,
            compute_cumulative_statistic,
            ClusterSample.draw_event_weights,
            n_resamples,
            random_state,
            "cumulative_test",
        )
    p = problem.score
    outcome = problem.hit
    weight = problem.weight
    order = np.argsort(p, kind="stable")
    residual = (weight * (outcome - p))[order]
    variance = (weight**2 * p * (1 - p)).sum()
    statistics = _classical_tests.run_cumulative_test(
        p[order], residual, variance, statistic
    )
    return SignificanceResult(*statistics)


def _make_single_problem_and_predictions(arguments, groups, soft_labels, warn=True):
    """Return the two-class problem, and the predictions with the cluster of each row."""
    predictions = validate_clustered_predictions(
        *arguments, soft_labels=soft_labels, groups=groups
    )
    (problem,) = predictions.problems()
    if warn:
        warn_few_event_clusters(predictions, problem)
    return problem, predictions


def _draw_event_weights(sample, n_draws, rng) -> list[FloatArray]:
    """Return the weight of label 1 in each cell, for labels drawn many times.

    Residuals that only change sign are too coarse: a bin of few clusters would keep the
    size of its deviation.
    """
    return [sample.draw_dependent_labels(rng).weight[1::2] for _ in range(n_draws)]


def _rank_among_draws(
    problem, predictions, statistic, draw, n_resamples, random_state, name
):
    """Compute a statistic of cells and its rank among draws."""
    items = None if predictions.items is None else predictions.items[problem.rows]
    sample = ClusterSample(problem, predictions.clusters, items=items)
    score = sample.proba[:, 1]
    mass = sample.weight.sum(axis=1)
    variance = (sample.squares.sum(axis=1) * score * (1 - score)).sum()
    draws = draw(sample, n_resamples, make_generator(random_state))
    observed = statistic(score, mass, sample.weight[:, 1], variance)
    null_values = [statistic(score, mass, hits, variance) for hits in draws]
    result = MonteCarloResult.from_draws(observed, np.array(null_values), name)
    return SignificanceResult(result.statistic, result.pvalue)


@dataclass(frozen=True)
class PolynomialTest:
    """A polynomial in the predicted log-odds, fitted to the outcomes, and the test of it.

    Attributes
    ----------
    statistic : float
        Twice the difference of the log-likelihoods of the polynomial and of the
        predictions.
    pvalue : float
    degree : int
        From 1 to 4, chosen by the data.
    coef : ndarray of shape (degree + 1,)
        Of 1, z, z^2, ... with z the predicted log-odds. Calibrated predictions have 0,
        1, 0, ...
    covariance : ndarray of shape (degree + 1, degree + 1)
        Of `coef`; infinite if the outcomes are separated.
    held_out : bool
        Whether the model has not seen these rows.
    """

    statistic: float
    pvalue: float
    degree: int
    coef: FloatArray
    covariance: FloatArray
    held_out: bool
    _fit: LogisticPolynomial = field(repr=False)

    def belt(
        self, proba: ArrayLike, *, level: float = 0.95
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the calibration belt: the true probabilities at all predictions at once.

        Parameters
        ----------
        proba : array-like of shape (n_points,)
            Predicted probabilities of the event, in [0, 1].
        level : float in (0, 1), default=0.95
            Probability that the belt holds the whole curve.

        Returns
        -------
        low, high : ndarray of shape (n_points,)
            [0, 1] if the outcomes are separated, so that no polynomial fits best.

        Raises
        ------
        ValueError
            Predictions outside [0, 1], or a level outside (0, 1).

        Examples
        --------
        >>> from sklearn_calib.inference import polynomial_test
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(2, 500)
        >>> low, high = polynomial_test(y, proba).belt([0.1, 0.9])
        >>> bool(low[0] > 0.1), bool(high[1] < 0.9)  # overconfident at both ends
        (True, True)
        """
        p = np.asarray(proba, dtype=float)
        # NaN is not inside either.
        is_inside = (p >= 0) & (p <= 1)
        if not is_inside.all():
            first_bad = p[~is_inside].flat[0]
            raise invalid_input(
                expected="probabilities in [0, 1]",
                got=repr(float(first_bad)),
                hint="Pass those of the event",
            )
        check_level(level)
        return self._fit.compute_belt(compute_finite_log_odds(p, 1 - p), level)


def polynomial_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    held_out: bool = True,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> PolynomialTest:
    """Test whether outcomes follow a polynomial of the log-odds other than the identity (GiViTI).

    Its belt, `PolynomialTest.belt`, is drawn by ``ReliabilityDisplay`` with
    ``strategy="polynomial"``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; of more than two classes the largest is tested.
    held_out : bool, default=True
        Whether the model has not seen these rows. On the rows that a logistic
        regression without penalty was fitted to, intercept and slope are 0 and 1 by
        construction: with ``False`` the degree starts at 2 and the law of the statistic
        has a degree of freedom less.
    labels : array-like of shape (n_classes,), default=None
    pos_label : label, default=None

    Returns
    -------
    result : PolynomialTest

    Raises
    ------
    ValueError
        ``held_out=False`` with fewer than three different predictions, or invalid
        scores or labels; see `canonical_proba`.

    Warns
    -----
    CalibrationWarning
        A prediction of exactly 0 or 1 is wrong. It counts as 1.2e-38 or as 1 less that,
        and then decides the test alone.

    Notes
    -----
    logit P(y = 1) = b_0 + b_1 z + ... + b_m z^m. From m = 1 the degree is raised, to 4
    at most, while the likelihood ratio of the next one exceeds k = 3.84, the 0.95
    quantile of chi-square with one degree of freedom. Given m, the statistic is that of
    a chi-square variable with two degrees of freedom and m - 1 with one degree that are
    known to exceed k; p-values are of this law, by quadrature. If all predictions
    are equal only b_0 is free: one degree of freedom.

    `cox_test` stops at m = 1 and is the same there; this test also finds curves, such
    as predictions that are right on average and at neither end. The law is that of many
    events: at the 5 % level calibrated predictions are rejected in 4 to 6 % of samples
    of 100 to 2000 rows, but on the rows of the fit with 7 events only in 10 %
    (``benchmarks/validation``). Cost: O(n) a Newton step.

    The belt is b'z +- c se with c^2 the quantile of the law above, so it holds for all
    z together and agrees with the test. The published belt takes the likelihood region
    in place of the ellipsoid, which is the same for many rows. The diagonal of
    calibrated predictions leaves the 95 % belt in 2 to 5 % of samples.

    References
    ----------
    Nattino, Finazzi, Bertolini (2014), "A new calibration test and a reappraisal of the
    calibration belt for the assessment of prediction models based on dichotomous
    outcomes".

    Examples
    --------
    >>> from sklearn_calib.inference import polynomial_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> result = polynomial_test(y, proba)
    >>> result.degree, result.pvalue < 0.001
    (1, True)
    """
    held_out = read_bool_with_none_as_false(held_out, "held_out")
    predictions = validate_predictions(y_true, y_proba, None, labels, pos_label)
    (problem,) = predictions.problems()
    p = problem.score
    outcome = problem.hit
    warn_certain_and_wrong(p, outcome, "the test rests on it")
    fit = fit_logistic_polynomial_if_possible(
        compute_finite_log_odds(p, 1 - p),
        np.ones(len(p)),
        outcome,
        internal=not held_out,
    )
    if fit is None:
        raise invalid_input(
            expected="at least 3 different predictions for held_out=False",
            got=f"{len(np.unique(p))}",
            hint=(
                "On fewer, a logistic regression with an intercept and a slope has nothing to test"
            ),
        )
    degree = len(fit.coef) - 1
    return PolynomialTest(
        fit.statistic,
        fit.pvalue,
        degree,
        fit.coef,
        fit.coef_covariance,
        held_out,
        fit,
    )


def warn_certain_and_wrong(p: FloatArray, hit: FloatArray, consequence: str) -> None:
    """Give a `CalibrationWarning` if a prediction of 0 or 1 is wrong: `consequence` rests on it."""
    n_wrong = int(((hit != p) & ((p == 0) | (p == 1))).sum())
    if n_wrong:
        warn_calibration(
            expected="certain predictions that are right",
            got=f"{n_wrong} wrong ones",
            sentence=f"{n_wrong} of {len(p)} rows have probability 0 or 1 and the other outcome",
            hint=(
                f"Each counts as 1.2e-38, and {consequence}: clip such predictions if they are "
                "rounded"
            ),
        )
