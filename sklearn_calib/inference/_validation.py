"""The table of numbers that validations of clinical prediction models report."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from math import isnan
from typing import Literal

import numpy as np
from scipy import special, stats

from .._argument_checks import (
    check_choice,
    check_level,
    import_optional,
    is_scalar_equal,
    unknown_name_error,
    validate_count,
)
from .._kernels import _logistic as logistic
from .._kernels._classical_tests import run_spiegelhalter_test
from .._kernels._cluster_sums import compute_oe_interval_and_z
from .._kernels._log_odds import compute_finite_log_odds
from .._kernels._proportion import compute_exact_interval
from .._show import RenderableMixin, Section, Table
from .._simplex_array import compute_log_losses
from .._typing import (
    ArrayLike,
    DataFrame,
    Multiclass,
    RandomStateLike,
    RecalibratorLike,
)
from .._warnings import warn_calibration
from ..decomposition import compute_problem_indices
from ..exceptions import invalid_input
from ..metrics import Predictions
from ._classical import spiegelhalter_test, warn_certain_and_wrong
from ._clusters import (
    ClusteredLine,
    ClusterSample,
    validate_clustered_predictions,
    warn_few_event_clusters,
)
from ._monte_carlo import MonteCarloResult
from ._resampling import (
    compute_observed_ranked_and_null_values,
    pool_rows_if_worthwhile,
)


@dataclass(frozen=True)
class ValidationRow:
    """One line of a `ValidationTable`; a number that does not exist is NaN.

    Attributes
    ----------
    quantity : str
    estimate : float
    low, high : float
        Confidence interval.
    null_mean : float
        The value for calibrated predictions: the target of O/E, intercepts and slope;
        for all others the expectation on rows with these predictions.
    pvalue : float
        Of the predictions being calibrated.
    """

    quantity: str
    estimate: float
    low: float
    high: float
    null_mean: float
    pvalue: float


@dataclass(frozen=True)
class ValidationTable:
    """The validation table of one two-class problem.

    Attributes
    ----------
    problem : str
        "class x", "confidence" or "predicted x".
    n_samples : int
        Rows of weight above 0.
    event_rate : float
        Observed, weighted.
    rows : tuple of ValidationRow

    Examples
    --------
    >>> from sklearn_calib.inference import validation_summary
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> (table,) = validation_summary(y, proba, n_resamples=9).tables
    >>> table["slope"].high < 1  # overconfident
    True
    """

    problem: str
    n_samples: int
    event_rate: float
    rows: tuple[ValidationRow, ...]

    def __getitem__(self, quantity: str) -> ValidationRow:
        """Return the row of a quantity.

        Raises
        ------
        KeyError
            No such row.
        """
        for row in self.rows:
            if row.quantity == quantity:
                return row
        raise unknown_name_error("a quantity", quantity, [*self], error=KeyError)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the rows, as of a dict."""
        return (row.quantity for row in self.rows)


@dataclass(frozen=True)
class ValidationSummary(RenderableMixin):
    """The result of `validation_summary`: one `ValidationTable`, or one per class.

    Printed it is a table; a notebook shows it as HTML.

    Attributes
    ----------
    tables : tuple of ValidationTable
        One per two-class problem.
    level : float
        The level of the intervals.
    ci : {"profile", "wald", "sandwich"}
        How those of intercepts and slope were made.
    smoother : str
        Of the ICI, E50, E90 and Emax.
    n_resamples : int
        Draws of labels behind the values for calibrated predictions.
    """

    tables: tuple[ValidationTable, ...]
    level: float
    ci: str
    smoother: str
    n_resamples: int

    def __getitem__(self, quantity: str) -> ValidationRow:
        """Return the row of a quantity if there is one table.

        Raises
        ------
        KeyError
            No such row, or several tables.
        """
        return self._get_only_table()[quantity]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the rows if there is one table."""
        return iter(self._get_only_table())

    def _get_only_table(self):
        if len(self.tables) != 1:
            raise invalid_input(
                expected="one table",
                got=f"{len(self.tables)} tables",
                hint="Take one out of tables first",
                error=KeyError,
            )
        return self.tables[0]

    def to_frame(self) -> DataFrame:
        """Return all rows as a pandas DataFrame, with the problem in the first column.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        rows = []
        for table in self.tables:
            rows += [{"problem": table.problem, **asdict(row)} for row in table.rows]
        return pd.DataFrame(rows)

    def _make_sections(self):
        """Return one section with a table for each problem."""
        head = [
            "",
            "estimate",
            f"{100 * self.level:g} % interval",
            "if calibrated",
            "p-value",
        ]
        tables = []
        for table in self.tables:
            title = f"{table.problem}: {table.n_samples} rows, event rate {table.event_rate:.4g}"
            tables.append(
                Table(head, [_format_cells(row) for row in table.rows], title)
            )
        note = (
            f"Intervals of intercepts and slope: {self.ci}. ICI to Emax: smoother "
            f"{self.smoother}; p-values and values if calibrated from {self.n_resamples} "
            "draws of labels."
        )
        return [Section(tables=tables, notes=[note])]


def _format_cells(row):
    ends = "" if isnan(row.low) else f"{row.low:.4f} to {row.high:.4f}"
    numbers = ["" if isnan(x) else f"{x:.4f}" for x in (row.estimate, row.null_mean)]
    p = ""
    if row.pvalue < 0.001:
        p = "< 0.001"
    elif not isnan(row.pvalue):
        p = f"{row.pvalue:.3f}"
    return [row.quantity, numbers[0], ends, numbers[1], p]


_NAN = float("nan")
_MISSING_INTERVAL = (_NAN, _NAN)


def validation_summary(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    level: float = 0.95,
    ci: Literal["profile", "wald", "sandwich"] = "profile",
    smoother: RecalibratorLike = "loess",
    multiclass: Multiclass = "auto",
    n_resamples: int = 199,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    groups: ArrayLike | None = None,
    soft_labels: bool = False,
) -> ValidationSummary:
    """Validate a prediction model: the numbers that clinical papers report, in one table.

    In the place of R's ``rms::val.prob`` and ``CalibrationCurves::val.prob.ci.2``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities.
    level : float in (0, 1), default=0.95
        The level of the intervals.
    ci : {"profile", "wald", "sandwich"}, default="profile"
        Intervals of intercepts and slope: if the profile likelihood is not much
        below its maximum; the estimate give or take so many standard errors; the same
        with standard errors of the sandwich, which hold if the true curve is not a
        straight line in the log-odds.
    smoother : str or recalibrator, default="loess"
        Of the ICI, as in `sklearn_calib.decomposition.integrated_calibration_index`.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        As in `sklearn_calib.metrics.calibration_error`: one table per two-class
        problem.
    n_resamples : int, default=199
        Draws of labels from the predictions, for the column "if calibrated" and the
        p-values of ICI, E50, E90 and Emax, of which the smallest is 1 / (1 +
        n_resamples).
    n_jobs : int, default=None
        Threads, as in joblib. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default=0
        Of the draws.
    sample_weight : array-like of shape (n_samples,), default=None
        Each row is one observation, regardless of its weight: repeat rows for counts.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as the visits of a patient or the samples of one
        question: clusters, at least three, which need not be independent inside. Not
        the subgroups that `sklearn_calib.groups.group_calibration` looks at one by one.
    soft_labels : bool, default=False
        Whether `y_true` holds shares of classes, as measures take them. What stands for
        one row is then one cluster, if `groups` do not name larger ones.

    Returns
    -------
    summary : ValidationSummary
        Rows by name, such as ``summary["slope"].low``: "O/E", "calibration in the
        large", "intercept", "slope", "Cox chi-square", "ICI", "E50", "E90", "Emax",
        "Brier", "scaled Brier", "log loss", "AUC" and "Nagelkerke R2".

    Raises
    ------
    ValueError, TypeError
        A level outside (0, 1), an unknown `ci` or smoother, fewer than one draw,
        predictions that are all 0, or invalid scores, labels or weights; see
        `canonical_proba`. Fewer than three groups, or groups with another smoother than
        "loess".

    Warns
    -----
    CalibrationWarning
        Some rows of the table do not exist (NaN): all outcomes are equal, or all
        predictions are; or the outcomes are separated by a threshold, so that the slope
        is infinite (and, if they are predicted with certainty, no intercept is better
        than another); or a prediction of 0 or 1 is wrong, and counts as 1.2e-38; or, of
        clusters, fewer than five are expected to have an event, or to have none.

    Notes
    -----
    With z the log-odds of the predictions p, y the outcomes and w the weights:

    * O/E: sum w y / sum w p. Its interval is Clopper and Pearson's for the sum of y,
      divided by the sum of p, with Kish's number of rows under weights; too wide if
      predictions differ much, as a sum of unequal chances varies less than a binomial
      number. p-value: two-sided, from sum w (y - p), normal.
    * Calibration in the large: a in logit P = a + z, the slope held at 1. Target 0.
    * Intercept and slope: a and b in logit P = a + b z, fitted together. Their targets
      are 0 and 1. This intercept is not the calibration in the large: it depends on
      where z is 0.
    * p-values by likelihood ratios: of calibration in the large against 0; of the slope
      against 1 given the former; "Cox chi-square", of intercept and slope against 0 and
      1, is the statistic of `cox_test` and has 2 degrees of freedom.
    * With `groups` `ci` is "sandwich", and few clusters or rare events are allowed for.
      p-values of O/E, intercepts and slope: score tests, whose variance is the design
      effect of the clusters times p (1 - p), see `cox_test`; "Cox chi-square" is that
      of the score test. Intervals of O/E and of calibration in the large: what such a
      test, with p (1 - p) of the mean, does not reject. Of intercept and slope:
      standard errors by leaving out each cluster, and Student's law with degrees of
      freedom from the fourth moments of binary outcomes. The column "if calibrated" and
      the p-values of ICI to Emax: draws that turn the sign of a cluster's residuals
      (see `calibration_test`). Measured with 5 rows a cluster:
      ``benchmarks/cluster_coverage``.
    * With unequal weights `ci` is always "sandwich"; p-values, and the
      chi-square statistic, are then Wald's.
    * The interval of calibration in the large by "profile" or "wald" takes the slope
      for 1: it is a little too narrow if predictions are overconfident (holds the
      truth in 93 % of draws at a slope of 0.7). Take "sandwich" there.
    * ICI, E50, E90, Emax: mean, median, 90 % quantile and largest of abs(c(p) - p), c
      the smoothed calibration curve. They are above 0 for calibrated predictions too:
      compare with the column "if calibrated". p-values: the rank of the value among the
      draws, exact. No interval is given; `confidence_interval` has one, by inversion.
    * Brier: with the p-value of `spiegelhalter_test`. Scaled Brier: 1 - Brier / (r (1 -
      r)), r the event rate. Log loss: as `log_loss`. AUC: ties count 1/2. R2:
      Nagelkerke's, of the predictions as they are, so below 0 if the event rate
      alone does better, as in ``rms::val.prob``; ``val.prob.ci.2`` has that of the
      recalibrated predictions.

    Measured coverage of the intervals: ``benchmarks/validation``. Cost: O(n) a Newton
    step, some hundred of them, and `n_resamples` draws and smooths of at most 4096
    cells.

    References
    ----------
    Cox (1958), "Two further applications of a model for binary regression". Van Calster
    et al. (2016), "A calibration hierarchy for risk models was defined". Austin,
    Steyerberg (2019), "The integrated calibration index (ICI) and related metrics for
    quantifying the calibration of logistic regression models". Rao, Scott (1992), "A
    simple method for the analysis of clustered binary data"; Bell, McCaffrey (2002),
    "Bias reduction in standard errors for linear regression with multi-stage samples",
    for clusters.

    Examples
    --------
    >>> from sklearn_calib.inference import validation_summary
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> summary = validation_summary(y, proba, n_resamples=99)
    >>> slope = summary["slope"]
    >>> slope.high < 1, slope.pvalue < 0.001  # overconfident
    (True, True)
    >>> summary["ICI"].estimate > 3 * summary["ICI"].null_mean
    True
    """
    check_level(level)
    check_choice("ci", ci, ("profile", "wald", "sandwich"))
    n_resamples = validate_count(
        n_resamples, "n_resamples", hint="An ICI says nothing without its draws"
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
    has_equal_weights = bool((predictions.weight == predictions.weight[0]).all())
    # With unequal weights the likelihood is not that of the sampling.
    interval_method = "sandwich"
    if predictions.clusters is None:
        interval_method = ci if has_equal_weights else interval_method
    # Other smoothers have no version for clusters.
    elif not is_scalar_equal(smoother, "loess"):
        raise invalid_input(
            expected="smoother='loess' with groups or soft labels",
            got=repr(smoother)[:60],
            hint="Leave smoother out",
        )
    draws = {"n_resamples": n_resamples, "random_state": random_state, "n_jobs": n_jobs}
    tables = []
    for problem in predictions.problems(multiclass):
        # The clusters of the rows of this problem, numbered without gaps.
        ids = None
        if predictions.clusters is not None:
            clusters = predictions.clusters[problem.rows]
            ids = np.unique(clusters, return_inverse=True)[1].ravel()
            if ids.max() < 2:
                raise invalid_input(
                    expected="at least three groups",
                    got=f"{ids.max() + 1} ({problem.title})",
                    hint="More clusters are needed, not more rows",
                )
            warn_few_event_clusters(predictions, problem)
        # Only ratios matter, and the squares of these weights are finite.
        weight = problem.weight / problem.weight.max()
        # Each problem is one of two classes from here on.
        columns = np.column_stack([1 - problem.score, problem.score])
        codes = problem.hit.astype(np.intp)
        binary_predictions = Predictions(
            columns, codes, None if has_equal_weights else problem.weight, np.arange(2)
        )
        rows = _make_oe_rows(problem, weight, level, ids)
        warn_certain_and_wrong(problem.score, problem.hit, "the slope rests on it")
        lines = _RecalibrationLines(problem, weight, level, interval_method, ids)
        rows += lines.make_rows()
        rows += _make_overall_rows(binary_predictions, weight, smoother, draws, ids)
        rate = float(weight @ problem.hit / weight.sum())
        n_rows = len(codes)
        # A soft label repeats its row for each class; the copies count as one row.
        if predictions.items is not None:
            n_rows = len(np.unique(predictions.items[problem.rows]))
        tables.append(ValidationTable(problem.title, n_rows, rate, tuple(rows)))
    name = smoother if isinstance(smoother, str) else type(smoother).__name__
    return ValidationSummary(
        tuple(tables), float(level), interval_method, name, int(n_resamples)
    )


# -- observed and expected ------------------------------------------------------------------------


def _make_oe_rows(problem, weight, level, groups=None):
    """Return the row of observed over expected events, with interval and p-value."""
    p = problem.score
    outcome = problem.hit
    expected = weight @ p
    observed = weight @ outcome
    total = weight.sum()
    if not expected > 0:
        raise invalid_input(
            expected="a prediction above 0",
            got=f"0 in all rows ({problem.title})",
            hint="O/E needs expected events: leave this class out",
        )
    if groups is not None:
        events = np.bincount(groups, weight * outcome)
        expected_events = np.bincount(groups, weight * p)
        low, high, z = compute_oe_interval_and_z(events, expected_events, total, level)
        pvalue = float(2 * stats.norm.sf(abs(z)))
    else:
        # The number of equally weighted rows with the same variance.
        kish = total**2 / (weight @ weight)
        ends = compute_exact_interval(kish * observed / total, kish, level)
        # The interval of the event rate over the mean prediction, which is taken as
        # fixed.
        low, high = (float(end * total / expected) for end in ends)
        variance = (weight**2) @ (p * (1 - p))
        # A variance of 0 means that all predictions are certain; if the events differ
        # from them, calibration is refuted.
        is_impossible = variance <= 0 and observed != expected
        pvalue = run_spiegelhalter_test(observed - expected, variance, is_impossible)[1]
    return [ValidationRow("O/E", float(observed / expected), low, high, 1.0, pvalue)]


# -- calibration in the large, intercept and slope ------------------------------------------------


class _RecalibrationLines:
    """Estimates, intervals and p-values of logit P = a + b z for one problem."""

    def __init__(self, problem, weight, level, ci, groups=None):
        self.z = compute_finite_log_odds(problem.score, 1 - problem.score)
        self.hit = problem.hit
        self.weight = weight
        self.title = problem.title
        self.ci = ci
        self.ones = np.ones_like(self.z)
        # All predictions are 0 or 1, and right.
        self.is_certain_and_right = bool((problem.score == problem.hit).all())
        self.columns = np.column_stack([self.ones, self.z])
        # The profile interval: twice the log-likelihood falls by at most this quantile
        # (Wilks).
        self.likelihood_drop = float(stats.chi2(1).ppf(level))
        self.clusters = None
        if groups is not None:
            self.clusters = ClusteredLine(self.z, self.hit, weight, groups, level)

    def make_rows(self):
        names = "calibration in the large", "intercept", "slope", "Cox chi-square"
        targets = 0.0, 0.0, 1.0, 2.0
        estimates = self._list_estimates_with_interval_and_p()
        rows = []
        for name, computed, target in zip(names, estimates, targets, strict=True):
            estimate, ends, pvalue = computed
            rows.append(ValidationRow(name, estimate, *ends, target, pvalue))
        return rows

    def _list_estimates_with_interval_and_p(self):
        """Compute (estimate, interval, p-value) of each row."""
        missing = (_NAN, _MISSING_INTERVAL, _NAN)
        got = f"the same in all rows ({self.title})"
        if (self.hit == self.hit[0]).all():
            warn_calibration(
                expected="both outcomes",
                got=got,
                hint="There is no slope, AUC or R2: take rows of both",
                estimator=self,
            )
            return [missing] * 4
        start = logistic.compute_log_likelihood(self.z, self.hit, self.weight)
        # All predictions are 0 or 1 and right: the likelihood is 1 for every slope
        # above 0, and for any intercept.
        if self.is_certain_and_right:
            return [missing, *self._estimate_line_rows(start, 0.0, start)]
        # Calibration in the large: the slope is fixed at 1.
        large, top = logistic.fit_coefficient_and_likelihood(
            self.z, self.ones, self.hit, self.weight
        )
        shift_test = self._estimate_in_the_large(large, top, 2 * (top - start))
        if (self.z == self.z[0]).all():
            warn_calibration(
                expected="at least two different predictions",
                got=got,
                hint="There is no slope: check where the predictions come from",
                estimator=self,
            )
            return [shift_test, missing, missing, missing]
        return [shift_test, *self._estimate_line_rows(start, large, top)]

    def _estimate_in_the_large(
        self, estimate, max_log_likelihood, likelihood_ratio
    ) -> tuple[float, tuple[float, float], float]:
        """Return (estimate, interval, p-value) of the intercept at slope 1.

        `max_log_likelihood` is the largest log-likelihood, and `likelihood_ratio` the
        likelihood ratio of 0.
        """
        if self.clusters is not None:
            return estimate, *self.clusters.compute_in_the_large_interval_and_p_value(
                estimate
            )
        error = self._compute_covariance_and_errors(
            self.columns[:, :1], self.z + estimate
        )[1][0]
        if self.ci == "profile":

            def compute_log_likelihood_at_shift(a):
                return logistic.compute_log_likelihood(
                    self.z + a, self.hit, self.weight
                )

            ends = logistic.find_profile_interval(
                compute_log_likelihood_at_shift,
                estimate,
                max_log_likelihood,
                error,
                self.likelihood_drop,
            )
        else:
            ends = self._compute_wald_interval(estimate, error)
        if self.ci == "sandwich":
            likelihood_ratio = (estimate / error) ** 2
        return estimate, ends, float(stats.chi2.sf(likelihood_ratio, 1))

    def _estimate_line_rows(
        self, null_log_likelihood, shift_estimate, shift_log_likelihood
    ):
        """Return (estimate, interval, p-value) of intercept, slope and Cox's chi-square.

        `null_log_likelihood` is the log-likelihood of the predictions as they are;
        `shift_estimate` is the intercept at slope 1, with log-likelihood
        `shift_log_likelihood`.
        """
        (a, b), top = logistic.fit_logistic_line_and_likelihood(
            self.z, self.hit, self.weight
        )
        # Likelihood ratios of the slope, and of intercept and slope together.
        ratios = (
            max(2 * (top - shift_log_likelihood), 0.0),
            max(2 * (top - null_log_likelihood), 0.0),
        )
        if self.clusters is not None:
            ratios = self.clusters.compute_slope_and_line_chi_squares(shift_estimate)
        # The estimate is infinite; only the profile likelihood has an end on one side.
        if logistic.threshold_separates(self.z, self.hit):
            return self._warn_and_make_separated_line_rows(b, top, ratios)
        if self.clusters is not None:
            ends = self.clusters.compute_line_intervals(a, b)
            return self._make_intercept_slope_and_cox_rows(
                float(a), float(b), ends, ratios
            )
        covariance, errors = self._compute_covariance_and_errors(
            self.columns, a + b * self.z
        )
        if self.ci == "profile":
            ends = []
            for column, estimate, start in ((0, a, b), (1, b, a)):
                interval = logistic.find_profile_interval(
                    self._make_profile(column, start),
                    estimate,
                    top,
                    errors[column],
                    self.likelihood_drop,
                )
                ends.append(interval)
        else:
            ends = [
                self._compute_wald_interval(a, errors[0]),
                self._compute_wald_interval(b, errors[1]),
            ]
        if self.ci == "sandwich":
            deviation = np.array([a, b - 1])
            # Wald statistics of the slope, and of both: the likelihood ratio would need
            # independent rows of equal weight.
            ratios = (
                ((b - 1) / errors[1]) ** 2,
                deviation @ np.linalg.solve(covariance, deviation),
            )
        return self._make_intercept_slope_and_cox_rows(float(a), float(b), ends, ratios)

    def _warn_and_make_separated_line_rows(self, b, top, ratios):
        """Warn of an infinite slope, and return what exists of the three rows."""
        sign = np.sign(b)
        warn_calibration(
            expected="outcomes that overlap in the prediction",
            got=f"a threshold that separates them ({self.title})",
            hint=(
                "The slope is infinite and there is no intercept: more rows show whether that is so"
            ),
            estimator=self,
        )
        ends = _MISSING_INTERVAL
        # The sandwich has infinite standard errors here.
        if self.ci == "sandwich" and self.clusters is None:
            ratios = _MISSING_INTERVAL
        if self.ci == "profile":
            step = 1 / max(np.abs(self.z).max(), 1e-3)
            profile = self._make_profile(1, 0.0)
            ends = logistic.find_profile_interval(
                profile, sign * np.inf, top, step, self.likelihood_drop
            )
        intervals = [_MISSING_INTERVAL, ends]
        return self._make_intercept_slope_and_cox_rows(
            _NAN, sign * np.inf, intervals, ratios
        )

    def _make_intercept_slope_and_cox_rows(self, a, b, ends, ratios):
        slope_pvalue = float(stats.chi2.sf(ratios[0], 1))
        line_pvalue = float(stats.chi2.sf(ratios[1], 2))
        return [
            (a, ends[0], _NAN),
            (b, ends[1], slope_pvalue),
            (float(ratios[1]), _MISSING_INTERVAL, line_pvalue),
        ]

    def _make_profile(self, column, start):
        """Return the function of one coefficient that maximises over the other one.

        `column` is 0 for the intercept and 1 for the slope. Each search begins where the
        previous one ended, the first at `start`.
        """
        fixed = self.columns[:, column]
        free = np.ascontiguousarray(self.columns[:, 1 - column])
        # Neighbouring points of a profile have neighbouring maxima.
        last_estimate = [start]

        def compute_max_log_likelihood_at(c):
            last_estimate[0], value = logistic.fit_coefficient_and_likelihood(
                c * fixed, free, self.hit, self.weight, last_estimate[0]
            )
            return value

        return compute_max_log_likelihood_at

    def _compute_covariance_and_errors(self, columns, eta):
        squares = self.weight**2 if self.ci == "sandwich" else None
        covariance = logistic.compute_coefficient_covariance(
            columns, eta, self.hit, self.weight, squares
        )
        return covariance, np.sqrt(covariance.diagonal())

    def _compute_wald_interval(self, estimate, error):
        half_width = np.sqrt(self.likelihood_drop) * error
        return float(estimate - half_width), float(estimate + half_width)


# -- the whole curve ------------------------------------------------------------------------------


_CURVE_QUANTITIES = ("ICI", "E50", "E90", "Emax")
_QUANTITY_NAMES = (
    *_CURVE_QUANTITIES,
    "Brier",
    "scaled Brier",
    "log loss",
    "AUC",
    "Nagelkerke R2",
)


def _compute_entropy(p):
    return special.entr(p) + special.entr(1 - p)


#: Exact expectations of a row for calibrated predictions.
_EXPECTED_LOSS_BY_QUANTITY = {
    "Brier": lambda p: p * (1 - p),
    "log loss": _compute_entropy,
}


def _make_overall_rows(predictions, weight, smoother, draws, groups=None):
    """Return the rows ICI to R2 of two classes; values if calibrated come from draws."""
    if groups is None:
        sample = pool_rows_if_worthwhile(predictions)
    else:
        sample = ClusterSample(predictions.problems()[0], groups)
    evaluate = partial(_compute_validation_quantities, smoother=smoother)
    observed, ranked, simulated = compute_observed_ranked_and_null_values(
        predictions, sample, evaluate, **draws
    )
    p = predictions.second
    outcome = predictions.codes
    brier_pvalue = spiegelhalter_test(
        outcome, p, sample_weight=weight, labels=[0, 1], groups=groups
    ).pvalue
    rows = []
    for number, name in enumerate(_QUANTITY_NAMES):
        null_values = simulated[:, number]
        pvalue = _NAN
        if name in _CURVE_QUANTITIES:
            result = MonteCarloResult.from_draws(
                observed[number], null_values, name, ranked[number]
            )
            pvalue = result.pvalue
        elif name == "Brier":
            pvalue = brier_pvalue
        # A draw without events, or of nothing else, does not have an AUC or R2.
        finite_values = null_values[np.isfinite(null_values)]
        expected = float(finite_values.mean()) if len(finite_values) else _NAN
        # Losses have an exact expectation, which needs no draws.
        if name in _EXPECTED_LOSS_BY_QUANTITY:
            expected = predictions.mean(_EXPECTED_LOSS_BY_QUANTITY[name](p))
        estimate = float(observed[number])
        row = ValidationRow(name, estimate, *_MISSING_INTERVAL, expected, pvalue)
        rows.append(row)
    return rows


def _compute_validation_quantities(predictions, smoother):
    """Return the `_QUANTITY_NAMES` of two classes; NaN if one needs both outcomes."""
    (problem,) = predictions.problems()
    score, mass, hits = problem.cells
    misses = mass - hits
    total = mass.sum()
    rate = hits.sum() / total
    brier = (hits @ (1 - score) ** 2 + misses @ score**2) / total
    loss = hits @ compute_log_losses(score) + misses @ compute_log_losses(1 - score)
    loss /= total
    scaled = _NAN
    area = _NAN
    r2 = _NAN
    if 0 < rate < 1:
        scaled = 1 - brier / (rate * (1 - rate))
        # The AUC of cells: non-events of lower scores, ties count one half.
        below = np.cumsum(misses) - misses / 2
        area = (hits / hits.sum()) @ (below / misses.sum())
        # Cox and Snell's R2 over its maximum (Nagelkerke, 1991).
        entropy = _compute_entropy(rate)
        r2 = np.expm1(2 * (loss - entropy)) / np.expm1(-2 * entropy)
    return (*compute_problem_indices(problem, smoother), brier, scaled, loss, area, r2)
