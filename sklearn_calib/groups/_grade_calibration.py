"""grade_calibration: the events of rating grades against their probabilities."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._argument_checks import (
    check_between,
    check_level,
    is_real_number,
    validate_count,
)
from .._kernels._grades import (
    compute_jeffreys_p,
    compute_joint_p_from_smallest_p,
    compute_order_p,
    compute_pluto_tasche_upper_rates,
    compute_two_sided_total_events_p,
    compute_upper_binomial_p,
)
from .._kernels._proportion import compute_exact_interval
from .._random import check_seed, make_generator
from .._show import MarkedCell, RenderableMixin, Section, Table, make_printable
from .._typing import ArrayLike, RandomStateLike
from .._validation import check_and_get_common_index, read_labels
from ..exceptions import invalid_input
from ..metrics import validate_predictions
from ._grades import check_two_classes, to_grades

# Larger sums of counts are not whole numbers of float64.
MAX_EXACT_ROWS = 9e15
_TABLE_HEADER = (
    "grade",
    "rows",
    "events",
    "predicted",
    "observed",
    "Jeffreys p",
    "binomial p",
    "light",
    "prudent",
)


class GradeRow(NamedTuple):
    """One rating grade: its rows, its events and its test.

    Parameters
    ----------
    grade : str
    low, high : float
        Its probabilities: from `low`, below `high`.
    n_rows, events : int
    predicted, observed : float
        The mean probability of its rows, and the share of events. NaN without rows.
    observed_low, observed_high : float
        Clopper and Pearson's interval of the rate, of this grade by itself.
    jeffreys_p : float
        P(rate <= predicted) under Jeffreys' posterior, Beta(events + 1/2, rows - events
        + 1/2): small if the probability is too low. 1 without rows.
    binomial_p : float
        P(X >= events) of a binomial law with the predicted rate, the same in another
        way.
    light : {"green", "amber", "red"}
        By `compute_jeffreys_p` and the two levels of `lights`; of this grade by itself.
    prudent : float
        The most prudent rate (Pluto, Tasche): the upper bound, at `prudent_level`, of
        the rate of this grade and all worse ones together, at least that of the better
        grades.
    """

    grade: str
    low: float
    high: float
    n_rows: int
    events: int
    predicted: float
    observed: float
    observed_low: float
    observed_high: float
    jeffreys_p: float
    binomial_p: float
    light: str
    prudent: float


@dataclass(frozen=True, eq=False)
class GradeCalibration(RenderableMixin):
    """The result of `grade_calibration`.

    Attributes
    ----------
    rows : list of GradeRow
        From the best grade to the worst.
    p_value : float
        Of the hypothesis that the probabilities of all grades are right, on both sides:
        it controls the family of grades, which single lights do not.
    order_p_value : float
        Of the hypothesis that the rates do not fall from a grade to a worse one.
    portfolio_p_value : float
        Of the hypothesis that the number of events in all grades together is right, on
        both sides: it finds grades that are all a little too low, which `p_value`, of
        the grade that is farthest off, may not.
    level : float
        The level of the intervals.
    prudent_level : float
    lights : tuple of (float, float)
    n_resamples : int
    n_unsure : int
        Rows of a summary in cells that reach across an edge: at most so many may belong
        to the grade next to theirs. 0 for rows.

    Examples
    --------
    >>> from sklearn_calib.groups import Grades, grade_calibration
    >>> found = grade_calibration([1, 0], [0.02, 0.02], [0.01, 0.05], counts=[5, 95])
    >>> round(found.rows[1].jeffreys_p, 10), round(found.rows[1].binomial_p, 10)
    (0.0286140335, 0.0508304454)
    >>> round(found.rows[1].prudent, 10), found.rows[1].light
    (0.0733268377, 'amber')
    """

    rows: list[GradeRow]
    p_value: float
    order_p_value: float
    portfolio_p_value: float
    level: float
    prudent_level: float
    lights: tuple[float, float]
    n_resamples: int
    n_unsure: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as a dict of numbers, texts and lists; NaN becomes None."""
        fields = dict(vars(self))
        grades = []
        for row in fields.pop("rows"):
            # NaN does not equal itself.
            cells = row._asdict().items()
            grades.append({name: None if v != v else v for name, v in cells})
        return {**fields, "lights": [*self.lights], "grades": grades}

    @property
    def summary(self) -> str:
        """Describe the result in sentences."""
        n_rows = sum(row.n_rows for row in self.rows)
        events = sum(row.events for row in self.rows)
        text = (
            f"{n_rows} rows with {events} events in {len(self.rows)} grades: "
            f"p = {self.p_value:.3g} for all grades together, p = {self.order_p_value:.3g} for "
            f"rates that do not fall from a grade to a worse one, p = {self.portfolio_p_value:.3g} "
            "for the number of events in the whole portfolio."
        )
        empty = [row.grade for row in self.rows if not row.n_rows]
        if empty:
            text += f" Without rows: {', '.join(make_printable(name, 40) for name in empty)}."
        if self.n_unsure:
            text += (
                f" Of the summary at most {self.n_unsure} rows, in cells that reach across an "
                "edge, may belong to the grade next to theirs."
            )
        return text

    def section(self) -> Section:
        """Build the section of a report: the summary and the table."""
        cells = [*map(self._format_row, self.rows), self._format_portfolio_row()]
        table = Table(_TABLE_HEADER, cells, "", "names unbroken", hidden_if_narrow=(6,))
        amber, red = self.lights
        note = (
            f"Observed rates with {100 * self.level:.0f} % intervals (Clopper, Pearson). Jeffreys "
            "p, binomial p: small where the probability of the grade is too low. Lights by "
            f"Jeffreys p: amber up to {amber:g}, red up to {red:g}; each is of its grade alone, "
            "and of many some are lit by chance. Prudent: most prudent rate at "
            f"{100 * self.prudent_level:.0f} % (Pluto, Tasche). Portfolio: all grades; its p is "
            "two-sided."
        )
        return Section("Grades", sentences=[self.summary], tables=[table], notes=[note])

    def _make_sections(self):
        return [self.section()]

    def _format_row(self, row):
        """Return the cells of a grade; a grade without rows has only a prudent rate."""
        if not row.n_rows:
            return (
                make_printable(row.grade, 40),
                "0",
                "0",
                *("-",) * 5,
                _format_fraction(row.prudent),
            )
        light = row.light if row.light == "green" else MarkedCell(row.light)
        return (
            make_printable(row.grade, 40),
            str(row.n_rows),
            str(row.events),
            _format_fraction(row.predicted),
            _format_with_interval(row.observed, row.observed_low, row.observed_high),
            f"{row.jeffreys_p:.3g}",
            f"{row.binomial_p:.3g}",
            light,
            _format_fraction(row.prudent),
        )

    def _format_portfolio_row(self):
        """Return the cells of the line for all grades together."""
        # A grade without rows has no predicted rate.
        rows = [row for row in self.rows if row.n_rows]
        n_rows = sum(row.n_rows for row in rows)
        events = sum(row.events for row in rows)
        expected = sum(row.n_rows * row.predicted for row in rows)
        low, high = compute_exact_interval(events, n_rows, self.level)
        return (
            "portfolio",
            str(n_rows),
            str(events),
            _format_fraction(expected / n_rows),
            _format_with_interval(events / n_rows, low, high),
            "-",
            f"{self.portfolio_p_value:.3g}",
            "-",
            "-",
        )


def _format_with_interval(value, low, high):
    """Format a fraction with its interval."""
    ends = f"{_format_fraction(low)} to {_format_fraction(high)}"
    return f"{_format_fraction(value)} ({ends})"


def _format_fraction(value):
    return f"{100 * value:.3g} %"


def grade_calibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    grades: Any,
    *,
    counts: ArrayLike | None = None,
    level: float = 0.9,
    prudent_level: float = 0.75,
    lights: tuple[float, float] = (0.05, 0.01),
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> GradeCalibration:
    """Test the probabilities of rating grades against what happened.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_proba : array-like of shape (n_samples,) or (n_samples, 2)
        Probabilities.
    grades : Grades, sequence of edges, or dict
        See `Grades`; a dict has "edges" and "names".
    counts : array-like of int of shape (n_samples,), default=None
        How many rows each of these stands for, as GROUP BY returns them.
    level : float in (0, 1), default=0.9
        The level of the intervals of the observed rates.
    prudent_level : float in (0, 1), default=0.75
        Of the most prudent rates.
    lights : (float, float), default=(0.05, 0.01)
        Up to which p-value a light is amber, and red.
    n_resamples : int, default=999
        Draws behind the test of the order.
    random_state : int, Generator, RandomState or None, default=0
    labels : array-like of shape (2,), default=None
        Both classes in the order of the columns; needed if `y_true` lacks one, unless
        it is of 0 and 1, or of booleans: a year without defaults needs none.
    pos_label : label, default=None
        The positive class, which owns a single column; the second by default. Required
        with a single column for labels other than 0 and 1, False and True, or -1 and 1,
        unless `labels` is given.

    Returns
    -------
    found : GradeCalibration

    Raises
    ------
    ValueError
        More than two classes, counts that are not whole numbers >= 0, levels out of
        range, and what `Grades` and `canonical_proba` reject.

    Notes
    -----
    What controls what:

    * A light, taken alone, means that so many events of its grade are rare if its mean
      probability is right. Of ten right grades one or more is amber or red in up to 40
      % of the audits.
    * `GradeCalibration.p_value` is of all grades together: how often the smallest
      two-sided binomial p-value of right grades is as small as here, by the law of
      their numbers of events, which are independent because grades have no row in
      common. Below alpha with a probability of alpha at most if all probabilities are
      right, also if they differ within a grade (Hoeffding: such events vary less).
      Measured at 0.05: 0.046 to 0.050 with rates from 0.1 % to 30 %; 0.039 with 50 rows in
      each grade and 1 to 6 %, 0.033 with 3 % in each, if few different p-values are
      possible (``benchmarks/grades``).
    * `GradeCalibration.portfolio_p_value` counts the events of all grades: a binomial
      law with the mean and the variance of their number. Measured at 0.05 with seven
      right grades of 1000 rows from 0.1 % to 30 %: 0.042; of rates 1.15 times as large
      it rejects 0.95, `p_value` 0.76.
    * The order is tested by the likelihood ratio of the observed rates against the best
      rates that do not fall; its law is that of the events dealt out to all rows, which
      of all rates in order is the worst case. It does not compare with the
      probabilities.
    * Rows must be independent. Defaults of one year are not: they have a common cause,
      and all p-values are then too small.

    `group_calibration` takes `Grades` too, and looks inside them: its joint p-value is
    exact by draws, and detects probabilities that are right only on the mean of a
    grade.

    References
    ----------
    Pluto, Tasche (2005), "Thinking positively", section 3; Robertson, Wright, Dykstra
    (1988), "Order restricted statistical inference", section 2.3, for the test of the
    order.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.groups import grade_calibration
    >>> proba, y = make_overconfident(2, 2000)
    >>> found = grade_calibration(y, proba, [0.1, 0.5, 0.9])
    >>> [row.light for row in found.rows]
    ['red', 'red', 'green', 'green']
    """
    check_seed(random_state)
    check_level(level)
    check_between(
        "prudent_level",
        prudent_level,
        0,
        1,
        expected="prudent_level between 0 and 1",
        hint="Pass 0.75",
    )
    n_resamples = validate_count(n_resamples, "n_resamples", hint="Pass 999")
    amber, red = _get_validated_amber_and_red_levels(lights)
    bands = to_grades(grades)
    # Portfolios with few defaults often have a year without any, or with nothing else:
    # the other class is added then.
    if labels is None:
        classes, _ = read_labels(y_true)
        if len(classes) == 1 and classes.dtype.kind in "biuf" and classes[0] in (0, 1):
            labels = np.array([0, 1], dtype=classes.dtype)
    predictions = validate_predictions(y_true, y_proba, None, labels, pos_label)
    check_two_classes(predictions)
    check_and_get_common_index(counts, first=predictions.index)
    row_counts = _get_checked_row_counts_or_ones(counts, len(predictions.codes))
    score = np.asarray(predictions.proba)[:, predictions.positive]
    has_event = predictions.codes == predictions.positive
    # A score on an edge belongs to the worse grade.
    grade_index = np.searchsorted(bands.edges, score, side="right")
    k = len(bands.names)
    rows = np.bincount(grade_index, weights=row_counts, minlength=k)
    events = np.bincount(grade_index, weights=row_counts * has_event, minlength=k)
    expected = np.bincount(grade_index, weights=row_counts * score, minlength=k)
    is_filled = rows > 0
    if not is_filled.any():
        raise invalid_input(
            expected="at least one row", got="none", hint="Check the counts"
        )
    predicted = np.full(k, math.nan)
    # The mean of values in [0, 1] may exceed 1 in its last bit.
    predicted[is_filled] = np.clip(expected[is_filled] / rows[is_filled], 0.0, 1.0)
    filled_events = events[is_filled]
    filled_rows = rows[is_filled]
    filled_predicted = predicted[is_filled]
    # A grade without rows has p-values of 1: there is no evidence against it.
    jeffreys_p = np.ones(k)
    binomial_p = np.ones(k)
    jeffreys_p[is_filled] = compute_jeffreys_p(
        filled_events, filled_rows, filled_predicted
    )
    binomial_p[is_filled] = compute_upper_binomial_p(
        filled_events, filled_rows, filled_predicted
    )
    low, high = compute_exact_interval(events, rows, level)
    conditions = [jeffreys_p <= red, jeffreys_p <= amber]
    light_names = np.select(conditions, ["red", "amber"], "green").tolist()
    observed = np.divide(events, rows, out=np.full(k, math.nan), where=is_filled)
    # The columns of `GradeRow`.
    columns = zip(
        bands.names,
        (0.0, *bands.edges),
        (*bands.edges, 1.0),
        rows.astype(int).tolist(),
        events.astype(int).tolist(),
        predicted.tolist(),
        observed.tolist(),
        # Without rows the interval is [0, 1].
        np.where(is_filled, low, 0.0).tolist(),
        np.where(is_filled, high, 1.0).tolist(),
        jeffreys_p.tolist(),
        binomial_p.tolist(),
        light_names,
        compute_pluto_tasche_upper_rates(events, rows, prudent_level).tolist(),
        strict=True,
    )
    return GradeCalibration(
        [GradeRow(*row) for row in columns],
        compute_joint_p_from_smallest_p(filled_events, filled_rows, filled_predicted),
        compute_order_p(
            filled_events, filled_rows, n_resamples, make_generator(random_state)
        ),
        compute_two_sided_total_events_p(filled_events, filled_rows, filled_predicted),
        level,
        prudent_level,
        (amber, red),
        n_resamples,
    )


def _get_validated_amber_and_red_levels(lights):
    """Return the levels of the amber and the red light, validated."""
    is_pair = isinstance(lights, tuple | list) and len(lights) == 2
    is_pair = is_pair and all(map(is_real_number, lights))
    if not is_pair or not 0 < lights[1] <= lights[0] < 1:
        raise invalid_input(
            expected="two lights, the larger level first",
            got=repr(lights)[:60],
            hint="Pass (0.05, 0.01)",
        )
    return float(lights[0]), float(lights[1])


def _get_checked_row_counts_or_ones(counts, n):
    """Return the number of rows that each row stands for, validated."""
    if counts is None:
        return np.ones(n)
    numbers = np.asarray(counts)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iuf":
        raise invalid_input(
            "counts",
            expected=f"counts, {n} whole numbers",
            got=f"{numbers.dtype} of shape {numbers.shape}",
            hint="Pass one number for each row",
        )
    # NaN is not >= 0; infinity equals its floor.
    is_count = (numbers >= 0) & (numbers == np.floor(numbers)) & np.isfinite(numbers)
    if not is_count.all():
        raise invalid_input(
            expected="counts, whole numbers >= 0",
            got="other numbers",
            hint="Pass numbers of rows, not weights",
        )
    total = numbers.sum(dtype=np.float64)
    if total > MAX_EXACT_ROWS:
        raise invalid_input(
            expected=f"counts of {MAX_EXACT_ROWS:.0e} rows at most",
            got=f"{total:.3g}",
            hint="Check the counts",
        )
    return numbers.astype(float)
