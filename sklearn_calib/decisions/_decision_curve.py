"""Decision curves: the net benefit of acting on a prediction, at every threshold of action."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from .._argument_checks import (
    check_between,
    check_level,
    import_optional,
    to_float_or_nan,
    validate_count,
)
from .._kernels._net_benefit import NetBenefit, draw_max_abs_z_quantile
from .._random import make_generator
from .._show import RenderableMixin, Section, Table
from .._typing import (
    ArrayLike,
    DataFrame,
    FloatArray,
    RandomStateLike,
    RecalibratorLike,
)
from ..exceptions import invalid_input
from ..metrics import validate_predictions
from ._costs import canonical_thresholds, validate_binary_predictions
from ._regret import RegretCurve, regret_curve

_MAX_TABLE_THRESHOLDS = 10


@dataclass(frozen=True)
class NetBenefitDifference(RenderableMixin):
    """The difference between the net benefits of two models at each threshold, with intervals.

    Attributes
    ----------
    threshold : ndarray of shape (n_thresholds,)
    difference : ndarray of shape (n_thresholds,)
    standard_error : ndarray of shape (n_thresholds,)
        Of the difference, by paired rows.
    low, high : ndarray of shape (n_thresholds,)
        An interval at each threshold by itself.
    band_low, band_high : ndarray of shape (n_thresholds,)
        A band for all thresholds together.
    level : float
        The level of the intervals and of the band.
    """

    threshold: FloatArray
    difference: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    level: float

    def to_frame(self) -> DataFrame:
        """Return the difference as a pandas DataFrame with one row per threshold."""
        pd = import_optional("pandas", "cli")
        return pd.DataFrame(_collect_arrays(self))

    def _make_sections(self):
        header = _make_header("difference", self.level)
        table = Table(header, _format_shown_threshold_rows(self, self.difference))
        note = _describe_shown_thresholds(self.threshold)
        return [Section(tables=[table], notes=[note])]


@dataclass(frozen=True)
class DecisionCurve(RenderableMixin):
    """The net benefit of a prediction at each threshold of action, with intervals.

    Attributes
    ----------
    threshold : ndarray of shape (n_thresholds,)
        A row is acted on if its probability is at least that.
    net_benefit : ndarray of shape (n_thresholds,)
        Events that are acted on per row, less the false alarms per row times t / (1 -
        t); less `harms`.
    standard_error : ndarray of shape (n_thresholds,)
    low, high : ndarray of shape (n_thresholds,)
        An interval at each threshold by itself.
    band_low, band_high : ndarray of shape (n_thresholds,)
        A band for all thresholds together.
    treat_all : ndarray of shape (n_thresholds,)
        The net benefit of acting on every row. That of acting on none is 0.
    over_all : NetBenefitDifference
        `net_benefit` less `treat_all`, by paired rows.
    acted : ndarray of shape (n_thresholds,)
        The share of the population that is acted on.
    prevalence : float
        The share of events in the population.
    harms : float
    level : float
    regret : RegretCurve or None
        If `decision_curve` was given `recalibrated`.
    """

    threshold: FloatArray
    net_benefit: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    treat_all: FloatArray
    over_all: NetBenefitDifference
    acted: FloatArray
    prevalence: float
    harms: float
    level: float
    regret: RegretCurve | None = None

    @property
    def standardised(self) -> FloatArray:
        """Return the net benefit divided by the prevalence, its maximum.

        NaN without events.
        """
        # Without events the maximum of the net benefit is 0.
        if self.prevalence == 0:
            return np.full_like(self.net_benefit, np.nan)
        return self.net_benefit / self.prevalence

    @property
    def net_benefit_untreated(self) -> FloatArray:
        """Return the net benefit of not acting: TN/n less FN/n times (1 - t) / t, less harms."""
        # In the unit of a true negative: a true positive is worth (1 - t) / t of them
        # (Vickers and Elkin, 2006).
        return self.over_all.difference * (1 - self.threshold) / self.threshold

    @property
    def interventions_avoided(self) -> FloatArray:
        """Return the actions per 100 rows that are saved over acting on all, net of misses."""
        return 100 * self.net_benefit_untreated

    def to_frame(self) -> DataFrame:
        """Return the curve as a pandas DataFrame with one row per threshold."""
        pd = import_optional("pandas", "cli")
        table = _collect_arrays(self)
        over = _collect_arrays(self.over_all)
        table["over_all"] = over.pop("difference")
        # Both have the same thresholds.
        del over["threshold"]
        table |= {f"over_all_{name}": over[name] for name in over}
        for name in ("standardised", "net_benefit_untreated", "interventions_avoided"):
            table[name] = getattr(self, name)
        return pd.DataFrame(table)

    def _make_sections(self):
        """Return one section with the curve and acting on all at some thresholds."""
        treat_all = self.treat_all[_choose_shown_positions(self.threshold)]
        rows = _format_shown_threshold_rows(self, self.net_benefit)
        for row, benefit in zip(rows, treat_all, strict=True):
            row.append(f"{benefit:.4f}")
        header = [*_make_header("net benefit", self.level), "act on all"]
        table = Table(header, rows)
        note = f"prevalence {self.prevalence:.4g}; {_describe_shown_thresholds(self.threshold)}"
        return [Section(tables=[table], notes=[note])]


def _make_header(name, level):
    percent = f"{100 * level:.4g} %"
    return ["threshold", name, f"{percent} interval", f"{percent} band"]


def _format_shown_threshold_rows(curve, values):
    """Return threshold, value, interval and band as text, at some thresholds."""
    rows = []
    for i in _choose_shown_positions(curve.threshold):
        interval = _format_interval(curve.low[i], curve.high[i])
        band = _format_interval(curve.band_low[i], curve.band_high[i])
        rows.append([f"{curve.threshold[i]:.4g}", f"{values[i]:.4f}", interval, band])
    return rows


def _format_interval(low, high):
    return f"{low:.4f} to {high:.4f}"


def _choose_shown_positions(threshold):
    """Choose at most ten evenly spaced thresholds, and return their positions."""
    n = len(threshold)
    positions = np.linspace(0, n - 1, min(n, _MAX_TABLE_THRESHOLDS))
    return positions.round().astype(np.intp)


def _describe_shown_thresholds(threshold):
    count = len(_choose_shown_positions(threshold))
    return f"{count} of {len(threshold)} thresholds; to_frame() has all columns"


def _collect_arrays(curve):
    """Return the fields of a dataclass that are arrays."""
    arrays = {}
    for name, value in vars(curve).items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
    return arrays


def decision_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    thresholds: ArrayLike | None = None,
    level: float = 0.95,
    harms: float = 0.0,
    prevalence: float | None = None,
    recalibrated: ArrayLike | RecalibratorLike | None = None,
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> DecisionCurve:
    """Compute a decision curve: the net benefit of acting on predictions, by threshold.

    Someone who acts at a probability of t thinks that a miss costs (1 - t) / t times as
    much as a false alarm. The curve shows for which t the prediction beats acting on
    all rows, and on none.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_proba : array-like of shape (n_samples, 2) or (n_samples,)
        Probabilities.
    thresholds : array-like of shape (n_thresholds,), default=None
        Increasing, strictly between 0 and 1; 0.01, 0.02, ... 0.99 by default.
    level : float in (0, 1), default=0.95
        The level of the intervals and of the bands.
    harms : float, default=0.0
        What it costs to make the prediction, per row, in units of net benefit: 0.01 if
        one event would have to be found among 100 predictions to make up for them.
    prevalence : float in (0, 1), default=None
        The share of events in the population, if the rows of each class were sampled
        by themselves (case-control data).
    recalibrated : array-like, str or recalibrator, default=None
        Makes the attribute ``regret``: what a recalibration is worth; see
        `regret_curve`, which gets `level`, `n_resamples` and `random_state` as well.
    n_resamples : int, default=999
        Draws of the multiplier bootstrap for the bands.
    random_state : int, Generator, RandomState or None, default=0
        Of these draws.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (2,), default=None
        Both classes in the order of the columns; needed if `y_true` lacks one.
    pos_label : label, default=None
        The class of the event, which owns a single column; the second by default.
        Required with a single column for labels other than 0 and 1, False and True, or
        -1 and 1, unless `labels` is given.

    Returns
    -------
    curve : DecisionCurve

    Raises
    ------
    ValueError
        Thresholds that do not increase or are not strictly between 0 and 1, a level or
        a prevalence outside (0, 1), harms that are not numbers, more than two classes,
        or invalid scores, labels or weights; see `canonical_proba`. With `prevalence`:
        rows of one class only.

    Notes
    -----
    With w = t / (1 - t), a the rows with a probability of at least t and y the events,
    net benefit is the mean of g = a (y - w (1 - y)); acting on all has the prevalence
    less (1 - prevalence) w. With `prevalence` P it is P TPR - (1 - P) w FPR.

    Uncertainty. Net benefit and its difference to acting on all are means of one number
    per row, so the standard error is the standard deviation over sqrt(n) (weights:
    sqrt(sum w^2 (g - mean)^2) / sum w; with `prevalence` within each class). At a
    threshold that few rows reach, one false alarm more or less moves the curve far, and
    the estimate plus or minus 1.96 standard errors misses the truth (at one that 4 of
    500 rows reach, in one draw out of nine). So the intervals are those of the shares
    of events and of false alarms (Wilson's; for bands, whose ends lie farther out,
    Clopper and Pearson's), put together as their standard errors would be; with many
    rows acted on they are the normal ones. The band takes the quantile of the largest
    deviation over all thresholds, in standard errors and by a multiplier bootstrap, in
    place of 1.96. Measured coverage of 95 % (``benchmarks/decisions``, 500 and 5000
    rows): intervals 0.93 to 1, bands 0.94 to 1.

    `interventions_avoided` and `net_benefit_untreated` are the difference to acting on
    all in other units. Cost: O(n log n) for the sort, then O(n_thresholds^3 +
    n_resamples n_thresholds^2).

    References
    ----------
    Vickers, Elkin (2006), "Decision curve analysis: a novel method for evaluating
    prediction models", for net benefit. Kerr, Brown, Zhu, Janes (2016), "Assessing the
    clinical impact of risk prediction models with decision curves", for the
    standardised one and case-control data. Zou, Donner (2008), "Construction of
    confidence limits about effect measures", for the intervals.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.decisions import decision_curve
    >>> proba, y = make_overconfident(2, 2000)
    >>> curve = decision_curve(y, proba, thresholds=[0.1, 0.5, 0.9])
    >>> curve.net_benefit > curve.treat_all  # overconfident: harmful where one acts early
    array([False,  True,  True])
    >>> curve.to_frame().shape
    (3, 18)
    """
    n_resamples = validate_count(n_resamples, "n_resamples")
    table = _check_options_and_read_thresholds(thresholds, level, prevalence)
    if not np.isfinite(to_float_or_nan(harms)):
        raise invalid_input(
            expected="harms as one number",
            got=repr(harms),
            hint="Leave it out if predictions are free",
        )
    _, problem = validate_binary_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    _check_both_classes_if_prevalence(problem.hit, prevalence)
    kernel = NetBenefit([problem.score], problem.hit, problem.weight, table, prevalence)
    rng = make_generator(random_state)

    def compare(reference):
        return _compare_benefits(
            0,
            reference,
            kernel,
            table,
            level,
            n_resamples,
            rng,
            float(harms),
        )

    # The interval and the band of the curve, and those of its difference to acting on
    # all, use draws of one generator one after the other.
    arrays = _collect_arrays(compare(None))
    regret = None
    if recalibrated is not None:
        regret = regret_curve(
            y_true,
            y_proba,
            recalibrated,
            level=level,
            n_resamples=n_resamples,
            random_state=random_state,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
    return DecisionCurve(
        net_benefit=arrays.pop("difference"),
        **arrays,
        treat_all=kernel.compute_treat_all_net_benefit(),
        over_all=compare("all"),
        acted=kernel.get_acted_fraction(0),
        prevalence=float(kernel.prevalence),
        harms=float(harms),
        level=level,
        regret=regret,
    )


def decision_difference(
    y_true: ArrayLike,
    first_proba: ArrayLike,
    second_proba: ArrayLike,
    *,
    thresholds: ArrayLike | None = None,
    level: float = 0.95,
    harms: tuple[float, float] = (0.0, 0.0),
    prevalence: float | None = None,
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> NetBenefitDifference:
    """Compare the decision curves of two models: the net benefit of the second minus the first.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    first_proba, second_proba : array-like of shape (n_samples, 2) or (n_samples,)
        Probabilities of the same rows by each model.
    harms : tuple of two floats, default=(0.0, 0.0)
        Of each model.
    thresholds, level, prevalence, n_resamples, random_state, sample_weight, labels, pos_label
        As in `decision_curve`.

    Returns
    -------
    difference : NetBenefitDifference
        ``second - first``.

    Raises
    ------
    ValueError
        As `decision_curve`.

    Notes
    -----
    The difference is the mean of the differences row by row, which vary less than the
    numbers themselves if the models agree; see `decision_curve`. With t a threshold
    and R the regret of the first model if the second one is its recalibration, it is
    R(t) / (1 - t).

    References
    ----------
    Vickers, Cronin, Elkin, Gonen (2008), "Extensions to decision curve analysis", for
    intervals.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.decisions import decision_difference
    >>> from sklearn_calib.recalibrators import cross_fitted_proba
    >>> proba, y = make_overconfident(2, 2000)
    >>> found = decision_difference(y, proba, cross_fitted_proba("platt", proba, y))
    >>> bool((found.band_low > 0).any())  # recalibration helps someone
    True
    """
    n_resamples = validate_count(n_resamples, "n_resamples")
    table = _check_options_and_read_thresholds(thresholds, level, prevalence)
    harm_by_model = np.asarray([to_float_or_nan(harm) for harm in np.ravel(harms)])
    if harm_by_model.shape != (2,) or not np.isfinite(harm_by_model).all():
        raise invalid_input(
            expected="harms as two numbers",
            got=repr(harms),
            hint="Pass those of the first and the second",
        )
    _, first_problem = validate_binary_predictions(
        y_true,
        first_proba,
        sample_weight,
        labels,
        pos_label,
        input_name="first_proba",
    )
    (second_problem,) = validate_predictions(
        y_true,
        second_proba,
        sample_weight,
        labels,
        pos_label,
        input_name="second_proba",
    ).problems()
    _check_both_classes_if_prevalence(first_problem.hit, prevalence)
    scores = [first_problem.score, second_problem.score]
    kernel = NetBenefit(
        scores, first_problem.hit, first_problem.weight, table, prevalence
    )
    # A constant harm of each test shifts the difference; it has no variance.
    harm = np.diff(harm_by_model).item()
    return _compare_benefits(
        1,
        0,
        kernel,
        table,
        level,
        n_resamples,
        make_generator(random_state),
        harm,
    )


def _check_options_and_read_thresholds(thresholds, level, prevalence):
    """Check the options of both functions, and return the thresholds."""
    check_level(level)
    if prevalence is not None:
        check_between(
            "prevalence",
            prevalence,
            0,
            1,
            expected="a prevalence strictly between 0 and 1",
            hint="Leave it out unless the rows of each class were sampled by themselves",
        )
    return canonical_thresholds(thresholds)


def _check_both_classes_if_prevalence(outcome, prevalence):
    if prevalence is not None and len(np.unique(outcome)) < 2:
        raise invalid_input(
            expected="rows of both classes with prevalence=",
            got="rows of one class only",
            hint="Leave prevalence out",
        )


def _compare_benefits(
    first_model, second_model, kernel, table, level, n_resamples, rng, harm
):
    """Return the difference of two net benefits (or of one to 0), less the harm."""
    benefit = kernel.compare_models(first_model, second_model)
    benefit = benefit._replace(mean=benefit.mean - harm)
    # The band holds for all thresholds at once: the critical value is the quantile of
    # the largest standardised deviation of a normal vector with this covariance.
    critical = draw_max_abs_z_quantile(benefit.covariance, level, n_resamples, rng)
    intervals = [
        *benefit.find_interval(ndtri((1 + level) / 2)),
        *benefit.find_interval(critical, exact=True),
    ]
    error = np.sqrt(np.diag(benefit.covariance))
    return NetBenefitDifference(table, benefit.mean, error, *intervals, level)
