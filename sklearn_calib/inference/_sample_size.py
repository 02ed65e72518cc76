"""How many rows with labels a validation needs, from predictions alone."""

from dataclasses import asdict, dataclass
from math import asinh, ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri

from .._argument_checks import (
    check_between,
    check_level,
    import_optional,
    to_float_or_nan,
)
from .._kernels._detectable_error import DetectableErrors
from .._show import RenderableMixin, Section, Table
from .._typing import ArrayLike, DataFrame, FloatArray
from .._validation import canonical_weight, check_and_get_common_index, read_proba
from ..exceptions import invalid_input

_LINEAR_PREDICTOR_HINT = ", or say their law by linear_predictor=(mean, deviation)"

# A law is represented by at least this many predictions.
MIN_LAW_PREDICTIONS = 50
# The power of the test is computed on this many cells.
N_POWER_CELLS = 512
# The grid of a normal law, and its half-width in standard deviations.
_N_NORMAL_NODES = 20_001
_NORMAL_DEVIATIONS = 10.0
# Keeps a whole number that rounding has raised.
_FACTOR_BEFORE_CEILING = 1 - 1e-9
MIN_NORMAL_FLOAT32 = np.finfo(np.float32).tiny


@dataclass(frozen=True)
class SampleSizeTarget:
    """One target of `validation_sample_size`, and how many rows it takes.

    Attributes
    ----------
    target : str
        "O/E", "calibration slope", "C statistic", "net benefit at 0.1", or "error of
        0.02".
    anticipated : float
        The value of the quantity, if the predictions are calibrated; of an error its
        size.
    width : float or None
        Of the interval that is aimed at; None for an error, which is found with
        probability 0.8.
    standard_error : float or None
        That of O/E is of its logarithm.
    n_samples : int
    n_events : int
        How many of these have the event, at the prevalence.
    """

    target: str
    anticipated: float
    width: float | None
    standard_error: float | None
    n_samples: int
    n_events: int


@dataclass(frozen=True)
class ValidationSampleSize(RenderableMixin):
    """The result of `validation_sample_size`: one line per target; the largest number decides.

    Printed it is a table; a notebook shows it as HTML.

    Attributes
    ----------
    targets : tuple of SampleSizeTarget
    prevalence : float
        Share of events that is anticipated.
    c_statistic : float
        Anticipated area under the ROC curve.
    level : float
        The level of the intervals.
    """

    targets: tuple[SampleSizeTarget, ...]
    prevalence: float
    c_statistic: float
    level: float

    @property
    def largest(self) -> SampleSizeTarget:
        """Return the target that takes the most rows."""
        return max(self.targets, key=lambda target: target.n_samples)

    @property
    def n_samples(self) -> int:
        """Return the number of rows that serve all targets."""
        return self.largest.n_samples

    @property
    def n_events(self) -> int:
        """Return the number of these rows with the event, at the prevalence."""
        return self.largest.n_events

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and names for JSON."""
        names = ("n_samples", "n_events", "prevalence", "c_statistic", "level")
        numbers = {name: getattr(self, name) for name in names}
        return {**numbers, "targets": [asdict(target) for target in self.targets]}

    def to_frame(self) -> DataFrame:
        """Return the targets as a pandas DataFrame with one row each.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed.
        """
        pd = import_optional("pandas", "cli")
        return pd.DataFrame([asdict(target) for target in self.targets])

    def _make_sections(self):
        """Return one section with a row for each target."""
        head = ["", "anticipated", "width", "standard error", "rows", "events"]
        rows = []
        for target in self.targets:
            # An error to be detected has neither a width nor a standard error.
            numbers = (target.width, target.standard_error)
            rows.append(
                [
                    target.target,
                    f"{target.anticipated:.4g}",
                    *("" if number is None else f"{number:.4g}" for number in numbers),
                    f"{target.n_samples}",
                    f"{target.n_events}",
                ]
            )
        sentences = (
            f"Rows with labels that serve all targets: {self.n_samples}, some {self.n_events} of "
            f"them with the event ({self.largest.target} takes the most)."
        )
        note = (
            f"Prevalence {self.prevalence:.4g}, C statistic {self.c_statistic:.4g}. Widths are "
            f"those of {100 * self.level:g} % intervals if the predictions are calibrated; a mean "
            "error is found with probability 80 %."
        )
        return [
            Section(sentences=[sentences], tables=[Table(head, rows)], notes=[note])
        ]


def validation_sample_size(
    y_proba: ArrayLike | None = None,
    *,
    linear_predictor: tuple[float, float] | None = None,
    c_statistic: float | None = None,
    prevalence: float | None = None,
    oe_width: float | None = 0.2,
    slope_width: float | None = 0.2,
    c_width: float | None = 0.1,
    threshold: float | None = None,
    net_benefit_width: float = 0.2,
    error: float | ArrayLike | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
) -> ValidationSampleSize:
    """Compute the labelled rows that a validation needs, from probabilities without labels.

    Describe the expected predictions by one of three: a sample of them, the
    normal law of their log-odds, or C statistic and prevalence.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Predictions of the population, at least 50.
    linear_predictor : tuple of two floats, default=None
        Mean and standard deviation (> 0) of normal log-odds.
    c_statistic : float in (0.5, 1), default=None
        With `prevalence` alone: log-odds are normal with one variance among rows with
        and without the event. With one of the others it replaces their value.
    prevalence : float in (1e-9, 1), default=None
        Share of events; the same.
    oe_width : float in (1e-6, 1e6) or None, default=0.2
        Width of the interval of observed / expected events. None leaves the target out,
        as for the others.
    slope_width : float in (1e-6, 1e6) or None, default=0.2
        Of the calibration slope.
    c_width : float in (1e-6, 1e6) or None, default=0.1
        Of the C statistic.
    threshold : float in (1e-9, 1), default=None
        Where one acts; adds the target of the net benefit there.
    net_benefit_width : float in (1e-6, 1e6), default=0.2
        Of the net benefit over the prevalence.
    error : float or array-like of shape (n_errors,), default=None
        Mean distances between predictions and truth, in (0, 0.5), such as (0.01, 0.02,
        0.05). Adds the rows with which the verdict of `calibration_report` finds each
        with probability 0.8.
    level : float in (0, 1), default=0.95
        The level of the intervals.
    sample_weight : array-like of shape (n_samples,), default=None
        Of `y_proba`, if these represent the population with weights.

    Returns
    -------
    size : ValidationSampleSize

    Raises
    ------
    ValueError
        None or two of the three laws; fewer than 50 predictions, equal ones, or of more
        than two classes; a number outside its range, an error that no such predictions
        can have, no target; or invalid scores or weights, see `canonical_proba`.

    Notes
    -----
    All sizes are for predictions that are calibrated: O/E and slope are 1. With phi the
    prevalence, L the log-odds, and means over the law of the predictions (Riley et al.
    2021):

    * O/E: n = (1 - phi) / (phi se^2), with se that of the logarithm: width 2 sinh(z
      se).
    * slope: n = I_a / (se^2 (I_a I_b - I_ab^2)) with I_a = E p(1-p), I_b = E L^2
      p(1-p), I_ab = E L p(1-p).
    * C statistic: the smallest n with Newcombe's variance C(1-C)(1 + (n/2 -
      1)(1-C)/(2-C) + (n/2 - 1)C/(1+C)) / (n^2 phi(1-phi)) at most se^2.
    * net benefit / phi at t: n = (s(1-s)/phi + w^2 r(1-r)/(1-phi) + w^2
      (1-r)^2/(phi(1-phi))) / se^2 with sensitivity s, specificity r and w = (1-phi)/phi
      t/(1-t).
    * error: the power of the test by the kernel calibration error against two kinds of
      error, log-odds all shifted or all drawn to their mean; the larger size of both.
      Of a sample of any size its cells count, not their number. Simulated
      (``benchmarks/verdict``): the errors are found in 0.75 to 0.84 of the draws, within
      three standard deviations of 0.8.

    Cost: O(n log n), and 0.2 s with `error`.

    References
    ----------
    Riley et al. (2021), "Minimum sample size for external validation of a clinical
    prediction model with a binary outcome", for the four targets. Newcombe (2006),
    "Confidence intervals for an effect size measure based on the Mann-Whitney
    statistic", for the variance of C.

    Examples
    --------
    >>> from sklearn_calib.inference import validation_sample_size
    >>> size = validation_sample_size(c_statistic=0.8, prevalence=0.1)
    >>> size.n_samples, size.largest.target
    (4196, 'calibration slope')
    >>> len(validation_sample_size(linear_predictor=(-2.5, 1.2), error=[0.02, 0.05]).targets)
    5
    """
    check_level(level)
    widths = {
        "oe_width": oe_width,
        "slope_width": slope_width,
        "c_width": c_width,
        "net_benefit_width": net_benefit_width,
    }
    for name, width in widths.items():
        if width is not None:
            check_between(
                "width",
                width,
                1e-6,
                1e6,
                expected=f"{name} between 1e-6 and 1e6",
                hint="Pass the width of an interval, or None",
            )
    fractions = {
        "c_statistic": c_statistic,
        "prevalence": prevalence,
        "threshold": threshold,
    }
    for name, fraction in fractions.items():
        if fraction is not None:
            low = 1e-9
            hint = "Pass a share, such as 0.1 for 10 %"
            if name == "c_statistic":
                low = 0.5
                hint = "0.5 is chance, 1 certainty"
            check_between(
                "share",
                fraction,
                low,
                1,
                expected=f"{name} strictly between {low:g} and 1",
                hint=hint,
            )
    law = _make_distribution(
        y_proba, linear_predictor, c_statistic, prevalence, sample_weight
    )
    phi = law.prevalence if prevalence is None else float(prevalence)
    c = law.c_statistic if c_statistic is None else float(c_statistic)
    # Levels next to 0 and 1 would divide by 0.
    z = float(np.clip(ndtri((1 + level) / 2), 1e-9, 9))
    # Of each target: its name, anticipated value, width, standard error and rows.
    rows_by_target: list[tuple[Any, ...]] = []
    if oe_width is not None:
        # The interval of O/E is exp(+-z se) times O/E on the logarithmic scale; its
        # width at O/E = 1 is 2 sinh(z se).
        se = asinh(oe_width / 2) / z
        rows_by_target.append(("O/E", 1.0, oe_width, se, (1 - phi) / (phi * se**2)))
    if slope_width is not None:
        # Symmetric intervals have the width 2 z se.
        se = slope_width / (2 * z)
        rows = law.compute_slope_variance_times_rows() / se**2
        rows_by_target.append(("calibration slope", 1.0, slope_width, se, rows))
    if c_width is not None:
        se = c_width / (2 * z)
        rows = _compute_min_rows_for_c_statistic(c, phi, se)
        rows_by_target.append(("C statistic", c, c_width, se, rows))
    if threshold is not None:
        se = net_benefit_width / (2 * z)
        t = float(threshold)
        value, variance = law.get_relative_net_benefit_and_row_variance(t, phi)
        name = f"net benefit at {t:.4g}"
        rows = variance / se**2
        rows_by_target.append((name, value, net_benefit_width, se, rows))
    if error is not None:
        rows_by_target += _iter_error_target_fields(law, error)
    if not rows_by_target:
        raise invalid_input(
            expected="at least one target",
            got="none",
            hint="Give one of the widths, a threshold or an error",
        )
    targets = []
    for name, value, width, se, rows in rows_by_target:
        n_samples = ceil(rows * _FACTOR_BEFORE_CEILING)
        n_events = ceil(rows * phi * _FACTOR_BEFORE_CEILING)
        targets.append(SampleSizeTarget(name, value, width, se, n_samples, n_events))
    return ValidationSampleSize(tuple(targets), phi, c, level)


class _ScoreDistribution(NamedTuple):
    """Predictions in increasing order, their log-odds, and weights that sum to 1.

    In a continuous law of log-odds each node stands for an interval of width `step`
    around it.
    """

    p: FloatArray
    z: FloatArray
    weight: FloatArray
    step: float = 0.0

    @property
    def prevalence(self) -> float:
        return float(self.weight @ self.p)

    @property
    def c_statistic(self) -> float:
        events = self.weight * self.p
        non_events = self.weight * (1 - self.p)
        # The sums of equal predictions: ties between an event and a non-event count one
        # half.
        starts = np.flatnonzero(np.append(True, np.diff(self.p) > 0))
        events = np.add.reduceat(events, starts)
        non_events = np.add.reduceat(non_events, starts)
        non_events_below = np.cumsum(non_events) - non_events / 2
        return float(events @ non_events_below / (events.sum() * non_events.sum()))

    def compute_slope_variance_times_rows(self) -> float:
        """Compute the variance of the slope, times the number of rows."""
        information = self.weight * self.p * (1 - self.p)
        # Entries of the Fisher information of intercept and slope; the variance of the
        # slope is the entry of its inverse.
        a = information.sum()
        b = information @ self.z**2
        ab = information @ self.z
        return float(a / (a * b - ab**2))

    def get_relative_net_benefit_and_row_variance(
        self, t: float, phi: float
    ) -> tuple[float, float]:
        """Compute the net benefit at t over phi, and its variance times the number of rows."""
        acted_share = (self.p >= t).astype(float)
        # A grid point stands for an interval, so the one next to the threshold is counted
        # in part.
        if self.step:
            acted_share = np.clip((self.z - logit(t)) / self.step + 0.5, 0.0, 1.0)
        events = self.weight * self.p
        non_events = self.weight * (1 - self.p)
        hit_rate = float(events @ acted_share / events.sum())
        false_alarm_rate = float(non_events @ acted_share / non_events.sum())
        # The weight of a false alarm in units of the prevalence.
        w = (1 - phi) / phi * t / (1 - t)
        lost = w * false_alarm_rate
        variance = hit_rate * (1 - hit_rate) / phi
        variance += w**2 * false_alarm_rate * (1 - false_alarm_rate) / (1 - phi)
        variance += lost**2 / (phi * (1 - phi))
        return hit_rate - lost, variance


def _make_distribution(
    y_proba, linear_predictor, c_statistic, prevalence, sample_weight
):
    """Return the law of the predictions from whichever of the three was given."""
    n_laws = (y_proba is not None) + (linear_predictor is not None)
    has_rates = c_statistic is not None and prevalence is not None
    if n_laws > 1 or not (n_laws or has_rates):
        got = "both of the first" if n_laws > 1 else "none"
        raise invalid_input(
            expected="y_proba, or linear_predictor, or c_statistic with prevalence",
            got=got,
            hint="Pass one law of the predictions",
        )
    if y_proba is not None:
        return _make_score_distribution(y_proba, sample_weight)
    if sample_weight is not None:
        raise invalid_input(
            "sample_weight",
            expected="sample_weight with y_proba",
            got="sample_weight alone",
            sentence="sample_weight needs y_proba",
            hint="Leave it out",
        )
    if linear_predictor is not None:
        mean, deviation = _read_mean_and_deviation(linear_predictor)
        means = [mean]
        shares = [1.0]
    else:
        # Events and non-events have normal log-odds of equal variance. These are
        # calibrated if the two means differ by that variance, and the C statistic is
        # then Phi(difference of the means / (sqrt(2) deviation)).
        deviation = sqrt(2) * float(ndtri(c_statistic))
        means = [float(logit(prevalence)) + sign * deviation**2 / 2 for sign in (-1, 1)]
        shares = [1 - prevalence, prevalence]
    low = min(means) - _NORMAL_DEVIATIONS * deviation
    high = max(means) + _NORMAL_DEVIATIONS * deviation
    # A fine grid of the normal law stands for a sample.
    z = np.linspace(low, high, _N_NORMAL_NODES)
    weight = 0.0
    for share, mean in zip(shares, means, strict=True):
        weight += share * np.exp(-(((z - mean) / deviation) ** 2) / 2)
    return _ScoreDistribution(expit(z), z, weight / np.sum(weight), z[1] - z[0])


def _read_mean_and_deviation(pair):
    values = [to_float_or_nan(value) for value in pair] if np.ndim(pair) == 1 else []
    if len(values) != 2 or not np.isfinite(values).all() or not values[1] > 0:
        raise invalid_input(
            expected="linear_predictor as (mean, standard deviation > 0)",
            got=repr(pair),
            hint="Those of the log-odds, such as (-2.5, 1.2)",
        )
    return values


def _make_score_distribution(y_proba, sample_weight):
    """Return the law of the predictions of a sample, in increasing order."""
    proba = read_proba(y_proba)
    if proba.shape[1] != 2:
        raise invalid_input(
            expected="probabilities of two classes",
            got=f"{proba.shape[1]} columns",
            hint="Pass the column of one class, proba[:, c], or the largest of each row",
        )
    check_and_get_common_index(y_proba, sample_weight)
    weight = canonical_weight(sample_weight, len(proba))
    has_weight = weight > 0
    p = np.asarray(proba)[has_weight, 1]
    weight = weight[has_weight]
    if len(p) < MIN_LAW_PREDICTIONS:
        raise invalid_input(
            "y_proba",
            expected=f"at least {MIN_LAW_PREDICTIONS} rows of y_proba",
            got=f"{len(p)}",
            hint="Pass more" + _LINEAR_PREDICTOR_HINT,
        )
    order = np.argsort(p, kind="stable")
    p = p[order]
    weight = weight[order]
    # Finite log-odds for predictions of 0 and 1.
    clipped = np.clip(p, MIN_NORMAL_FLOAT32, np.nextafter(1, 0))
    z = np.log(clipped) - np.log1p(-clipped)
    law = _ScoreDistribution(p, z, weight / weight.sum())
    # The slope is not determined by certain predictions.
    uncertain = z[(p > 0) & (p < 1)]
    if not len(uncertain) or np.ptp(uncertain) < 1e-9:
        raise invalid_input(
            expected="predictions that differ, and not by certain ones alone",
            got=(
                f"{len(np.unique(p))} different, of which {len(np.unique(uncertain))} "
                "are not 0 or 1"
            ),
            hint="Nothing can be learned about a slope or an order of such predictions",
        )
    return law


def _compute_min_rows_for_c_statistic(c, phi, se):
    """Return the smallest number of rows with Newcombe's standard error of at most `se`."""
    slope = (1 - c) / (2 - c) + c / (1 + c)
    # Newcombe's terms with n/2 events, solved for n: the quadratic equation
    # n^2 = scale (1 + (n/2 - 1) slope).
    scale = c * (1 - c) / (phi * (1 - phi) * se**2)
    half = scale * slope / 4
    return max(half + sqrt(max(half**2 + scale * (1 - slope), 0.0)), 2.0)


def _iter_error_target_fields(law, error):
    """Iterate over (target, size, None, None, rows) of mean errors to be detected."""
    sizes = np.atleast_1d(np.asarray(error, dtype=object)).ravel().tolist()
    for size in sizes:
        check_between(
            "size",
            size,
            0,
            0.5,
            expected="an error strictly between 0 and 0.5",
            hint="Write 0.02 for 2 percentage points",
        )
    errors = DetectableErrors(*_pool_law_to_scores_weights_and_log_odds(law))
    for size in map(float, sizes):
        rows = errors.count_rows_to_detect(size)
        if rows is None:
            raise invalid_input(
                expected="an error that some 1e12 rows of such predictions would show",
                got=f"{size:g}",
                hint="Ask for a larger one",
            )
        yield f"error of {size:.4g}", size, None, None, max(rows, 2.0)


def _pool_law_to_scores_weights_and_log_odds(law):
    """Pool scores, shares and log-odds in at most 512 cells of equal weight."""
    cell = (np.cumsum(law.weight) * N_POWER_CELLS).astype(int)
    cell = np.minimum(cell, N_POWER_CELLS - 1)
    cell_weight = np.bincount(cell, law.weight, N_POWER_CELLS)
    events = np.bincount(cell, law.weight * law.p, N_POWER_CELLS)
    is_filled = cell_weight > 0
    cell_weight = cell_weight[is_filled]
    score = events[is_filled] / cell_weight
    score = np.clip(score, MIN_NORMAL_FLOAT32, np.nextafter(1, 0))
    return score, cell_weight, np.log(score) - np.log1p(-score)
