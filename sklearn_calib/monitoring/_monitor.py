"""CalibrationMonitor: evidence against calibration and the detection of a change, row by row."""

import itertools
import math
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from .._argument_checks import (
    check_between,
    check_choice,
    check_level,
    read_bool_with_none_as_false,
)
from .._atomic import restore_if_raised
from .._kernels import _logistic_grid as grid
from .._typing import AnyArray, ArrayLike, FloatArray, Self
from .._validation import read_labels
from ..exceptions import invalid_input
from ._aftermath import (
    Diagnosis,
    ShiftRegion,
    compute_shift_region,
    diagnose_stream_if_any_rows,
    find_stream,
)
from ._record import StreamCellCounts
from ._result import (
    Alarm,
    MonitorHistory,
    StreamHistory,
    describe_shift,
    e_benjamini_hochberg,
)
from ._rows import BatchRows, check_time_order, format_time, read_rows_in_time_order
from ._state import convert_labels_to_list, convert_monitor_to_dict, restore_monitor

# Ratios are computed for this many rows at once.
BLOCK_ROWS = 256
_MAX_KEPT_ALARMS_PER_UPDATE = 50
_MAX_KEPT_ALARMS = 100
# The prior weights of the pairs of shift and slope.
_PRIOR_WEIGHTS = np.exp(grid.COARSE_LINE_GRID.log_prior)
_ALARM_RULES = ("detector", "test")
_MULTICLASS_MODES = ("auto", "confidence", "classwise")


class CalibrationMonitor:
    """Watch the calibration of a model while labels come in, with guarantees at any time.

    A test of a fixed number of rows, repeated every week, rejects every good model in
    the end. This monitor may be looked at after each row. It compares the probabilities
    with 54 others, sigmoid(shift + slope * log-odds): too extreme, not extreme enough,
    too low, too high.

    * The **detector** tests whether something has changed *lately*. While the
      probabilities are calibrated, the mean number of rows until a false alarm is at
      least `average_run_length`. After an alarm it starts anew.
    * The **evidence** ``e_value_`` tests whether the probabilities were calibrated *all
      along*. The probability that it ever reaches 1/alpha, while they are, is at most
      `alpha`.

    Both are always computed; `alarm` chooses which of them raises alarms. For each
    alarm `diagnose` estimates since when the probabilities are off and what repairs
    them, and `region` how far off they are, at every look at once.

    Parameters
    ----------
    alarm : {"detector", "test"}, default="detector"
        What raises alarms. "detector" for a model in production; "test" for one
        question with one answer: with "test" there is one alarm at most, and one of
        each monitor that `merge` adds.
    average_run_length : float, default=10_000
        A number of rows, above 1 and at most 1e12. While the probabilities are
        calibrated, the detector raises a false alarm after this many rows on average,
        or later.
    alpha : float, default=0.05
        Between 0 and 1: the level of the test, and the false discovery rate of
        ``flagged_``.
    groups : array-like of shape (n_groups,), default=None
        The names of all groups, which must be known in advance. `update` is given the
        group of each row. Each group is watched by itself; see Notes.
    classes : array-like of shape (n_classes,), default=None
        All classes in the order of the columns. Needed unless the labels are 0 to k - 1
        or booleans, because a batch may not contain all classes. If the order is not
        the sorted one, each batch is checked for columns that are in another order.
    multiclass : {"auto", "confidence", "classwise"}, default="auto"
        How more than two classes are watched. "confidence", and "auto" with more than
        two: the largest probability, and whether that class is true. "classwise": each
        class against the others, averaged.

    Attributes
    ----------
    n_samples_ : int
        Rows so far.
    e_value_, log_e_value_ : float
        Evidence against calibration and its logarithm; 1 and 0 at the start, inf if
        an event happened whose probability was 0. The mean over the groups.
    p_value_ : float
        The inverse of the largest e-value so far, at most 1: valid whenever it is
        looked at.
    rejected_at_ : int or None
        The number of rows at which the e-value first reached 1/alpha.
    log_detector_ : float
        Logarithm of the detector's statistic; -inf at the start and after an alarm.
    alarm_ : bool
        Whether the last update raised an alarm; with ``alarm="test"``, whether any has.
    alarms_, new_alarms_ : list of Alarm
        The last 100 alarms, and those that the last update raised (the first 50 of
        them); ``n_alarms_`` counts all.
    posterior_ : ndarray of shape (6, 9)
        How probable each pair of a slope and a shift is, if the probabilities are off:
        for the rows since the change that the detector finds, or for all rows with
        ``alarm="test"``.
    slopes_, shifts_ : ndarray of shape (6,) and (9,)
        The pairs: a slope below 1 means too extreme probabilities, a shift above 0 too
        low ones.
    slope_, shift_ : float
        The geometric mean of the slope and the mean of the shift over the posterior.
    meaning_ : str
        The posterior in words.
    e_values_ : dict of str or label to float
        The evidence of each group; without groups and with "classwise", of each class.
    flagged_ : list
        The groups or classes that ``e_values_`` show to be miscalibrated. On average,
        at most the share `alpha` of the groups in this list are calibrated after all
        (e-BH), however the groups depend on each other.
    impossible_ : int
        How many events happened whose probability was 0.
    history_ : MonitorHistory
        The course, at up to 512 moments.
    classes_ : ndarray of shape (n_classes,) or None

    Notes
    -----
    The guarantees hold for any predictions, which may depend on all the past, and
    however often the monitor is looked at. They do need each probability to be
    calibrated given the labels that were processed before it. If labels arrive late,
    pass each row when its label arrives. The guarantees are lost if earlier rows, whose
    labels were not yet known at the time of the prediction, determine a label better
    than its probability does (overlapping forecasts of one event).

    Groups: the e-value for "some group" is the mean over all groups. Each row adds 1 to
    the mean of the sum of the detectors, so their sum raises the alarm, and the run
    length counts the rows of all groups.

    Cost: some 7 µs a row in batches, for each class with "classwise"; memory does not
    grow with the rows. Small departures cost many rows: the power against a slope of
    0.8 within 1000 rows is 0.55; a test that looks once, after a number of rows
    that was fixed before, has 0.83.

    References
    ----------
    Shin, Ramdas, Rinaldo (2024), "E-detectors: a nonparametric framework for sequential
    change detection", section 2, for the guarantee of the detector. Henzi, Ziegel
    (2022), "Valid sequential inference on probability forecast performance", for
    e-values of forecasts. Wang, Ramdas (2022), "False discovery rate control with
    e-values", for ``flagged_``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.monitoring import CalibrationMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = CalibrationMonitor()
    >>> for week in range(30):
    ...     truth = 1 / (1 + np.exp(-1.5 * rng.normal(size=200)))
    ...     y = rng.random(200) < truth
    ...     said = truth if week < 15 else truth**2 / (truth**2 + (1 - truth) ** 2)
    ...     if monitor.update(y, said).alarm_:
    ...         break
    >>> week
    15
    >>> print(monitor.alarms_[0].meaning)
    probabilities are too extreme (slope 0.54, shift +0.09)
    """

    slopes_: FloatArray = np.unique(grid.COARSE_LINE_GRID.slope)
    shifts_: FloatArray = np.unique(grid.COARSE_LINE_GRID.shift)
    # Sums of logarithms of likelihood ratios, of shape (n_groups, n_parallel, n_pairs).
    _log_ratio_sums: FloatArray
    # The detector's statistic of each pair of shift and slope, of the same shape.
    _detector: FloatArray
    # The number of events of probability 0, of shape (n_groups, n_parallel).
    _n_impossible: AnyArray

    def __init__(
        self,
        alarm: Literal["detector", "test"] = "detector",
        average_run_length: float = 10_000,
        alpha: float = 0.05,
        groups: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        multiclass: Literal["auto", "confidence", "classwise"] = "auto",
    ) -> None:
        check_choice("alarm", alarm, _ALARM_RULES)
        check_choice("multiclass", multiclass, _MULTICLASS_MODES)
        hint = "Leave it out for the default"
        check_between(
            "average_run_length",
            average_run_length,
            1,
            1e12 + 1,
            expected="average_run_length above 1, at most 1e12",
            hint=hint,
        )
        check_between("alpha", alpha, 0, 1, expected="alpha between 0 and 1", hint=hint)
        self.alarm = alarm
        self.multiclass = multiclass
        self.average_run_length = float(average_run_length)
        self.alpha = float(alpha)
        self._initial_classes = _read_names_or_none(classes, "classes", 2)
        self.groups = _read_names_or_none(groups, "groups", 1)
        self.reset()

    # -- rows ---------------------------------------------------------------------------------

    def reset(self) -> Self:
        """Forget all rows: start anew, as after a new model was deployed.

        Returns
        -------
        self : CalibrationMonitor
        """
        self.classes_ = self._initial_classes
        self.n_samples_ = self.n_alarms_ = 0
        self.rejected_at_: int | None = None
        self.alarms_: list[Alarm] = []
        # The number of alarms before the last update.
        self._n_alarms_before = 0
        # The largest logarithm of the e-value so far.
        self._largest_log_e_value = 0.0
        # The time of the last row, and how it was written.
        self._last_time_and_text: Any = (None, None)
        # The current block, and how many of its rows the records already have.
        self._current_rows: BatchRows | None = None
        self._n_recorded = 0
        self._history = StreamHistory()
        self._allocate_state()
        return self

    def update(
        self,
        y: ArrayLike,
        y_proba: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        only_later: bool = False,
        soft_labels: bool = False,
    ) -> Self:
        """Add rows whose labels have come: a batch, or a single row.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or a label
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or a number
            Probabilities in [0, 1] that were predicted before the labels were known:
            one column per class, or the second class of two alone.
        groups : array-like of shape (n_samples,), or a name, default=None
            The group of each row, if the monitor has groups.
        time : array-like of shape (n_samples,), or one for all rows, default=None
            Numbers, dates, or text in ISO form: the rows of a batch are put in this
            order, and none may come before the last row of an earlier batch. Times with
            a zone are kept in UTC.
        only_later : bool, default=False
            Reject also rows of the same time as the last row of an earlier batch, so
            that no batch can be given twice.
        soft_labels : bool, default=False
            Whether `y` holds shares of classes, of shape (n_samples,) or (n_samples,
            n_classes), as measures take them. See Notes.

        Returns
        -------
        self : CalibrationMonitor
            See ``alarm_``.

        Raises
        ------
        ValueError, TypeError
            Anything `canonical_proba` rejects; missing labels (give such rows when
            their labels come); labels or groups that are not among the known ones;
            times that run backwards. After an error or an interruption the monitor is
            as it was before.

        Warns
        -----
        CalibrationWarning
            `classes` in an order of their own if the columns of this batch fit
            another one far better.

        Notes
        -----
        Soft labels, such as the mean of several annotators: what holds for labels holds
        for shares whose mean is the probability. The evidence of a row is that of both
        labels, weighed by their shares: at most a bet on the share that is fair, so the
        guarantees hold, and are conservative. Each row counts once, however many
        annotators it had. `diagnose`, `region` and the interval of the onset read one
        label for each row, drawn from its shares.
        """
        self._add_batch(y, y_proba, groups, time, only_later, soft_labels)
        return self

    def _add_batch(
        self, y, y_proba, groups, time, only_later, soft_labels, *, is_new=True
    ) -> None:
        """Read and add rows; unless `is_new` they belong to the last batch."""
        rows, classes = read_rows_in_time_order(
            y,
            y_proba,
            groups,
            time,
            classes=self.classes_,
            known_groups=self.groups,
            multiclass=self.multiclass,
            soft=read_bool_with_none_as_false(soft_labels, "soft_labels"),
        )
        strict = read_bool_with_none_as_false(only_later, "only_later")
        check_time_order(
            self._last_time_and_text[0],
            self._last_time_and_text[1],
            rows,
            strict=strict,
        )
        with restore_if_raised(self):
            if self.classes_ is None:
                self.classes_ = classes
                self._allocate_state()
            if is_new:
                self._n_alarms_before = self.n_alarms_
            for start in range(0, len(rows.hit), BLOCK_ROWS):
                self._add_rows(rows.take(slice(start, start + BLOCK_ROWS)))

    def merge(self, other: "CalibrationMonitor") -> Self:
        """Add what another monitor of the same kind has seen, as of another server.

        The evidence is that of all rows together. The detectors are added up: the mean
        number of rows to a false alarm, counted over both, stays at least
        `average_run_length`. `p_value_` and `rejected_at_` are those of a course in
        which the other's rows came at the end, all at once.

        Parameters
        ----------
        other : CalibrationMonitor
            With the same settings, groups and classes; it is not changed.

        Returns
        -------
        self : CalibrationMonitor

        Raises
        ------
        ValueError
            Another kind of monitor.
        """
        is_monitor = isinstance(other, CalibrationMonitor)
        if not is_monitor or self._get_settings() != other._get_settings():
            raise invalid_input(
                expected="a monitor of the same settings and classes",
                got="one that differs in these",
                hint="Make both with the same arguments",
            )
        if other.classes_ is None:
            return self
        moments = [self._last_time_and_text, other._last_time_and_text]
        moments = [moment for moment in moments if moment[0] is not None]
        if len({type(time) for time, _ in moments}) > 1:
            raise invalid_input(
                expected="times of one kind",
                got="numbers and dates",
                hint="Give both the same times",
            )
        if self.classes_ is None:
            self.classes_ = other.classes_
            self._allocate_state()
        elif not np.array_equal(self.classes_, other.classes_):
            raise invalid_input(
                expected="monitors of the same classes",
                got=f"{self.classes_.tolist()} and {other.classes_.tolist()}",
                hint="Merge those of one model",
            )
        # Logarithms of likelihood ratios of independent rows add up, so the evidence of
        # both streams is a product.
        self._log_ratio_sums = self._log_ratio_sums + other._log_ratio_sums
        self._n_impossible = self._n_impossible + other._n_impossible
        # The detector is a sum over possible starts of a change; each start is in one
        # of the two streams.
        self._detector = self._detector + other._detector
        for record, other_record in zip(self._records, other._records, strict=True):
            record.merge(other_record, self.n_samples_)
        self.n_samples_ += other.n_samples_
        self.n_alarms_ += other.n_alarms_
        self.alarms_ = [*self.alarms_, *other.alarms_][-_MAX_KEPT_ALARMS:]
        self._n_alarms_before = self.n_alarms_
        # The merged stream continues after the later of both times.
        self._last_time_and_text = max(
            moments, key=itemgetter(0), default=self._last_time_and_text
        )
        evidence = np.array([self.log_e_value_])
        is_rejected = (
            self._update_and_find_new_rejection_index(evidence, self.n_samples_)
            is not None
        )
        if is_rejected and self.alarm == "test":
            self._record_alarm_and_restart_counts(
                self.log_e_value_,
                self.rejected_at_,
                self._last_time_and_text,
                self._compute_log_e_values(),
            )
        # float64 overflows at exp(709).
        statistic = math.exp(min(self.log_detector_, 700.0))
        if statistic >= self.average_run_length:
            self._raise_alarm_if_enabled_and_reset_detector(
                self.log_detector_, self.n_samples_, self._last_time_and_text
            )
        return self

    # -- answers ------------------------------------------------------------------------------

    @property
    def alarm_(self) -> bool:
        return bool(self.alarms_) if self.alarm == "test" else bool(self.new_alarms_)

    @property
    def new_alarms_(self) -> list[Alarm]:
        n_new = min(self.n_alarms_ - self._n_alarms_before, _MAX_KEPT_ALARMS_PER_UPDATE)
        return self.alarms_[len(self.alarms_) - n_new :]

    @property
    def log_e_value_(self) -> float:
        # The mean of the e-values of all groups and classes is an e-value under any
        # dependence.
        log_sum = np.logaddexp.reduce(self._compute_log_e_values(), axis=None)
        return float(log_sum - math.log(self._n_impossible.size))

    @property
    def e_value_(self) -> float:
        return _exp_or_inf(self.log_e_value_)

    @property
    def p_value_(self) -> float:
        # By Ville's inequality, the largest e-value so far exceeds 1 / p with
        # probability at most p.
        return math.exp(-self._largest_log_e_value)

    @property
    def log_detector_(self) -> float:
        total = float((self._detector @ _PRIOR_WEIGHTS).mean(axis=1).sum())
        return math.log(total) if total > 0 else -math.inf

    @property
    def impossible_(self) -> int:
        return int(self._n_impossible.sum())

    @property
    def e_values_(self) -> dict[Any, float]:
        log = self._compute_log_e_values()
        if self.groups is not None:
            names = self.groups
            # The mean over the problems of each group.
            log = np.logaddexp.reduce(log, axis=1) - math.log(log.shape[1])
        elif self.multiclass == "classwise" and self.classes_ is not None:
            names = self.classes_
            log = log[0]
        else:
            return {}
        return dict(zip(names.tolist(), map(_exp_or_inf, log.tolist()), strict=True))

    @property
    def flagged_(self) -> list[Any]:
        e_values = self.e_values_
        is_flagged = e_benjamini_hochberg([*e_values.values()], self.alpha)
        return [*itertools.compress(e_values, is_flagged)]

    @property
    def posterior_(self) -> FloatArray:
        if self.alarm == "test":
            # The posterior over the grid, with the prior weights of the mixture.
            log = self._log_ratio_sums + grid.COARSE_LINE_GRID.log_prior
            weight = np.exp(log - log.max()).sum(axis=(0, 1))
        else:
            weight = (self._detector * _PRIOR_WEIGHTS).sum(axis=(0, 1))
        # All sums are 0 if the detector has just begun: the posterior is the prior.
        if not weight.sum() > 0:
            weight = _PRIOR_WEIGHTS
        return (weight / weight.sum()).reshape(len(self.slopes_), len(self.shifts_))

    @property
    def slope_(self) -> float:
        return math.exp(self.posterior_.sum(axis=1) @ np.log(self.slopes_))

    @property
    def shift_(self) -> float:
        return float(self.posterior_.sum(axis=0) @ self.shifts_)

    @property
    def meaning_(self) -> str:
        return describe_shift(
            self.slope_,
            self.shift_,
            impossible=self.impossible_,
            confidence=self._is_confidence(),
        )

    @property
    def history_(self) -> MonitorHistory:
        return self._history.make_history(self._get_history_row_tuple())

    def region(
        self, level: float = 0.95, *, since: str = "start", stream: str | None = None
    ) -> ShiftRegion:
        """Compute a region for shift and slope of the log-odds, valid at every look at once.

        The pairs against which the mean likelihood of all pairs (shift normal around 0
        with standard deviation 1, slope around 1 with 1/2) has not gathered 1 / (1 -
        level). While the true log-odds are shift + slope * those of the predictions,
        with one pair all the time, the probability that this pair is ever outside is at
        most 1 - level, however often one looks.

        Parameters
        ----------
        level : float, default=0.95
            Between 0 and 1.
        since : {"start", "alarm"}, default="start"
            Which rows: all, or those behind the last alarm, of which each begins a new
            promise. Rows that raised an alarm are not among the latter, so that none
            were chosen.
        stream : str, default=None
            Of several groups or classes the name of one, as in ``Alarm.stream``.

        Returns
        -------
        region : ShiftRegion

        Raises
        ------
        ValueError
            A level that is not between 0 and 1; unknown names.

        Notes
        -----
        If the truth changes meanwhile there is no one pair to cover; the region then
        shrinks around the pair that fits the mixture of all rows best. Pass
        ``since="alarm"`` for later rows. With "confidence" the pair is that of the
        largest probability.

        The log-odds are kept in cells of a sixteenth of sqrt(z^2 + 4), with mean and
        variance: the intervals are those of all rows to 1e-4. Cost: some 50 ms, for any
        number of rows.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.monitoring import CalibrationMonitor
        >>> proba, y = make_overconfident(2, 2000)
        >>> found = CalibrationMonitor().update(y, proba).region()
        >>> [round(end, 2) for end in found.slope_interval], found.calibrated
        ([0.33, 0.49], False)
        """
        check_level(level)
        check_choice("since", since, ("start", "alarm"))
        record = self._records[find_stream(self._list_stream_names(), stream)]
        return compute_shift_region(
            record.update_and_get_cells(since == "alarm"), level
        )

    def diagnose(self, *, stream: str | None = None) -> Diagnosis:
        """Diagnose since when the probabilities are off, from all rows so far, and what suffices.

        The change is looked for in the rows from the earliest onset that the last alarm
        left open. As ``Alarm.diagnosis``, with the rows that came since: the more, the
        surer.

        Parameters
        ----------
        stream : str, default=None
            Of several groups or classes the name of one, as in ``Alarm.stream``.
            By default that of the last alarm.

        Returns
        -------
        diagnosis : Diagnosis
            ``advice`` is the text of it.

        Raises
        ------
        ValueError
            No alarm yet; no rows of the stream; unknown names.

        Notes
        -----
        The onset has a posterior: each row is as likely to be the first one behind the
        change, the 54 pairs have their weights. Old rows are kept in blocks, the larger
        the older, and the ends of its interval are ends of blocks, the newest of 32
        rows. `repair` follows from two score tests at 5 % on the rows behind the
        likeliest onset. Unlike `region` they promise nothing at every look: they are
        judged at the moment when the alarm comes, by rows that it chose; how often they
        err was counted (``benchmarks/monitoring``). Begin anew (`reset`) after a
        repair: rows of old and new probabilities together are uninformative.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.monitoring import CalibrationMonitor
        >>> proba, y = make_overconfident(2, 2000)
        >>> found = CalibrationMonitor().update(y, proba).diagnose()
        >>> found.onset, found.repair
        (1, 'line')
        """
        if not self.alarms_:
            raise invalid_input(
                expected="a monitor that has raised an alarm",
                got="one without alarms",
                sentence="The monitor has not raised an alarm",
                hint="Until then, region() returns the set of plausible shifts and slopes",
            )
        stream = self.alarms_[-1].stream if stream is None else stream
        record = self._records[find_stream(self._list_stream_names(), stream)]
        diagnosis = diagnose_stream_if_any_rows(
            record, self._is_confidence(), drop_earlier_blocks=False
        )
        if diagnosis is None:
            raise invalid_input(
                expected="enough rows since the alarm",
                got="none",
                sentence="There are too few rows since the alarm for a diagnosis",
                hint="Add rows",
            )
        return diagnosis

    def _is_confidence(self):
        """Return whether the largest probability is monitored."""
        if self.multiclass != "auto":
            return self.multiclass == "confidence"
        return self.classes_ is not None and len(self.classes_) > 2

    def _list_stream_names(self):
        """Return the names of all groups and problems, as alarms show them."""
        groups = [""]
        if self.groups is not None:
            groups = [f"group {name}" for name in self.groups.tolist()]
        classes = [""]
        if self._n_impossible.shape[1] > 1:
            classes = [f"class {label}" for label in self.classes_]
        pairs = itertools.product(groups, classes)
        return [", ".join(filter(None, pair)) for pair in pairs]

    def __str__(self) -> str:
        """Return one line, as for a mail."""
        rows = "1 row" if self.n_samples_ == 1 else f"{self.n_samples_} rows"
        limit_text = f"of {self.average_run_length:g}"
        numbers = (
            f"detector {_exp_or_inf(self.log_detector_):.3g} {limit_text}, "
            f"evidence e = {self.e_value_:.3g} (p = {self.p_value_:.2g})"
        )
        alarm_text = (
            "no alarm" if not self.alarms_ else f"last alarm at {self.alarms_[-1]}"
        )
        if self.alarm_:
            n_more = self.n_alarms_ - self._n_alarms_before - 1
            first_alarm = (self.new_alarms_ or self.alarms_)[0]
            alarm_text = f"ALARM at {first_alarm}"
            # The statistic that raised the alarm: the evidence of all rows may still be
            # small.
            statistic = f"{_exp_or_inf(first_alarm.log_statistic):.3g}"
            numbers = f"evidence e = {statistic} of {1 / self.alpha:g} there"
            if self.alarm == "detector":
                numbers = f"detector {statistic} {limit_text} there"
            if n_more > 0:
                alarm_text += f", and {n_more} more"
            last_alarm = self.alarms_[-1]
            if last_alarm.diagnosis is not None:
                stream = f"{last_alarm.stream} " if last_alarm.stream else ""
                alarm_text += f"; {stream}{last_alarm.diagnosis.advice}"
        if flagged := self.flagged_:
            alarm_text += f"; flagged: {', '.join(map(str, flagged))}"
        return f"{alarm_text}; {rows}, {numbers}"

    def _compute_log_e_values(self):
        """Compute the log e-value of each group and each problem."""
        log_e_values = grid.compute_log_mixture(
            self._log_ratio_sums, grid.COARSE_LINE_GRID
        )
        return np.where(self._n_impossible > 0, np.inf, log_e_values)

    # -- files --------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the monitor as numbers, texts, lists and dicts.

        Returns
        -------
        state : dict
            ``json.dumps(state, allow_nan=False)`` writes it and `from_state_dict` reads
            it; no bit is lost. Some 100 KB at most, and 5 to 50 KB for each group.

        Raises
        ------
        ValueError
            Classes or groups that are not numbers, booleans or text.

        Examples
        --------
        >>> import json
        >>> from sklearn_calib.monitoring import CalibrationMonitor
        >>> monitor = CalibrationMonitor().update([0, 1, 1], [0.2, 0.9, 0.4])
        >>> text = json.dumps(monitor.state_dict(), allow_nan=False)
        >>> again = CalibrationMonitor.from_state_dict(json.loads(text))
        >>> again.e_value_ == monitor.e_value_
        True
        """
        return convert_monitor_to_dict(self)

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> Self:
        """Restore a monitor from the dict that `state_dict` returned.

        Parameters
        ----------
        state : dict

        Returns
        -------
        monitor : CalibrationMonitor

        Raises
        ------
        ValueError
            A state of another version, one that was changed or cut off, as its checksum
            shows, or none.
        """
        return restore_monitor(cls, state)

    # -- the machinery ------------------------------------------------------------------------

    def _allocate_state(self):
        """Allocate arrays for each group and each problem that is monitored."""
        n_groups = 1 if self.groups is None else len(self.groups)
        n_classes = 0 if self.classes_ is None else len(self.classes_)
        shape = n_groups, max(n_classes, 1) if self.multiclass == "classwise" else 1
        # One sum per group, problem and pair of shift and slope; the state does not
        # grow with the rows.
        self._log_ratio_sums = np.zeros((*shape, len(grid.COARSE_LINE_GRID.slope)))
        self._detector = np.zeros_like(self._log_ratio_sums)
        self._n_impossible = np.zeros(shape, dtype=np.int64)
        self._records = [
            StreamCellCounts(n_classes) for _ in range(shape[0] * shape[1])
        ]

    def _get_settings(self):
        return {
            "alarm": self.alarm,
            "average_run_length": self.average_run_length,
            "alpha": self.alpha,
            "groups": convert_labels_to_list(self.groups),
            "classes": convert_labels_to_list(self._initial_classes),
            "multiclass": self.multiclass,
        }

    def _add_rows(self, rows):
        """Add a block of rows to the evidence, the detector and the records."""
        n, n_parallel = rows.hit.shape
        compute_ratios = grid.compute_line_gains_and_impossible
        if rows.hit.dtype != bool:
            compute_ratios = grid.compute_soft_gains_and_impossible
        # Rows of probability 0 whose event happened are counted apart: their ratio is
        # infinite.
        gain, impossible = compute_ratios(
            rows.log_pair.reshape(-1, 2), rows.hit.ravel(), grid.COARSE_LINE_GRID
        )
        gain = gain.reshape(n, n_parallel, -1)
        impossible = impossible.reshape(n, n_parallel)
        self._current_rows = rows
        self._n_recorded = 0
        # An impossible event raises an alarm at once.
        is_impossible_row = impossible.any(axis=1)
        start = 0
        # The detector stops at the row of an alarm, so the alarm describes the monitor
        # before any later row.
        while start < n:
            row, statistic = grid.update_state_and_find_alarm_or_end(
                self._detector,
                gain,
                is_impossible_row,
                rows.group,
                grid.COARSE_LINE_GRID,
                self.average_run_length,
                start,
            )
            self._add_evidence_and_raise_alarm(
                gain, impossible, rows, start, min(row + 1, n)
            )
            if row < n:
                log_statistic = math.inf
                if not is_impossible_row[row]:
                    log_statistic = math.log(statistic)
                n_samples = self.n_samples_ + row + 1
                self._raise_alarm_if_enabled_and_reset_detector(
                    log_statistic, n_samples, rows.get_time(row)
                )
            start = row + 1
        # The remaining rows after the last alarm of the block.
        self._add_new_rows_to_records(n)
        self._current_rows = None
        self.n_samples_ += n
        if rows.time is not None:
            self._last_time_and_text = rows.get_time(-1)
        if self._history.is_due(self.n_samples_):
            self._history.add(self._get_history_row_tuple())

    def _add_new_rows_to_records(self, stop):
        """Add the rows of the block before row `stop` to the records."""
        rows = self._current_rows
        start = self._n_recorded
        if rows is None or start == stop:
            return
        self._n_recorded = stop
        new_rows = slice(start, stop)
        number = self.n_samples_ + 1 + np.arange(start, stop)
        time = None if rows.time is None else rows.time[new_rows]
        # NaN if both logarithms are infinite.
        with np.errstate(invalid="ignore"):
            z = rows.log_pair[new_rows, :, 1] - rows.log_pair[new_rows, :, 0]
        hit = rows.hit[new_rows]
        code = rows.label[new_rows]
        group = rows.group[new_rows]
        if hit.dtype != bool:
            # The diagnosis counts labels, so one label is drawn from each row's shares.
            # A draw by the number of the row is reproducible.
            hit = grid.draw_label_flags_by_column(hit, number)
            code = grid.draw_class(code, number)
        n_groups, n_columns = self._n_impossible.shape
        for group_number in np.unique(group).tolist() if n_groups > 1 else (0,):
            is_in_group = group == group_number if n_groups > 1 else slice(None)
            group_time = None if time is None else time[is_in_group]
            for column in range(n_columns):
                record = self._records[group_number * n_columns + column]
                record.add(
                    z[is_in_group, column],
                    hit[is_in_group, column],
                    number[is_in_group],
                    group_time,
                    code[is_in_group],
                )

    def _add_evidence_and_raise_alarm(self, gain, impossible, rows, start, stop):
        """Add some rows of a block; the test raises its alarm at the first row that is enough."""
        is_waiting = self.alarm == "test" and self.rejected_at_ is None
        state_before = (
            (self._log_ratio_sums.copy(), self._n_impossible.copy())
            if is_waiting
            else None
        )
        path = self._add_ratios_and_get_log_e_values(
            gain[start:stop], impossible[start:stop], rows.group[start:stop]
        )
        alarm_offset = self._update_and_find_new_rejection_index(
            path, self.n_samples_ + 1 + start
        )
        if not is_waiting or alarm_offset is None:
            return
        state_after = (self._log_ratio_sums, self._n_impossible)
        row = start + alarm_offset
        # The alarm describes the state at its row, so that state is computed again and
        # then replaced.
        self._log_ratio_sums, self._n_impossible = state_before
        rows_until_alarm = slice(start, row + 1)
        self._add_ratios_and_get_log_e_values(
            gain[rows_until_alarm],
            impossible[rows_until_alarm],
            rows.group[rows_until_alarm],
        )
        self._record_alarm_and_restart_counts(
            float(path[alarm_offset]),
            self.rejected_at_,
            rows.get_time(row),
            self._compute_log_e_values(),
        )
        self._log_ratio_sums, self._n_impossible = state_after

    def _add_ratios_and_get_log_e_values(self, gain, impossible, group):
        """Add the rows, and return the log e-value after each of them."""
        # The evidence after each row is the mean over groups; groups without the row
        # keep their value.
        log_e_before = np.logaddexp.reduce(self._compute_log_e_values(), axis=1)
        # One line per group.
        path = np.repeat(log_e_before[:, None], len(gain), axis=1)
        for group_number in np.unique(group):
            rows = np.flatnonzero(group == group_number)
            total = self._log_ratio_sums[group_number] + np.cumsum(gain[rows], axis=0)
            count = self._n_impossible[group_number] + np.cumsum(
                impossible[rows], axis=0
            )
            log = grid.compute_log_mixture(total, grid.COARSE_LINE_GRID)
            log = np.where(count > 0, np.inf, log)
            self._log_ratio_sums[group_number] = total[-1]
            self._n_impossible[group_number] = count[-1]
            # After each row of the block: how many rows of this group have come.
            n_seen = np.searchsorted(rows, np.arange(len(gain)), side="right")
            values = np.append(
                log_e_before[group_number], np.logaddexp.reduce(log, axis=1)
            )
            path[group_number] = values[n_seen]
        return np.logaddexp.reduce(path, axis=0) - math.log(self._n_impossible.size)

    def _update_and_find_new_rejection_index(self, path, first_row):
        """Store the largest evidence; return the first row at which it is enough, or None."""
        # Every row counts for the maximum, not only the end of a batch.
        self._largest_log_e_value = max(self._largest_log_e_value, float(path.max()))
        # By Ville's inequality the evidence exceeds 1 / alpha with probability alpha at
        # most, if the predictions are calibrated.
        is_enough = path >= -math.log(self.alpha)
        if self.rejected_at_ is not None or not is_enough.any():
            return None
        row = int(is_enough.argmax())
        self.rejected_at_ = first_row + row
        return row

    def _raise_alarm_if_enabled_and_reset_detector(
        self, log_statistic, n_samples, time_and_text
    ):
        """Begin the detector anew, after an alarm if it is what raises alarms."""
        if self.alarm == "detector":
            with np.errstate(divide="ignore"):
                log_detectors = np.log(self._detector @ _PRIOR_WEIGHTS)
            self._record_alarm_and_restart_counts(
                log_statistic, n_samples, time_and_text, log_detectors
            )
            time, _ = time_and_text
            self._history.add(
                self._get_history_row_tuple(n_samples, log_statistic, time)
            )
        # After an alarm the detector begins anew, so the next run length is again that
        # of a fresh start.
        self._detector[:] = 0.0

    def _record_alarm_and_restart_counts(
        self, log_statistic, n_samples, time_and_text, stream_values
    ):
        """Append an alarm at row `n_samples`, with a diagnosis of the stream that caused it.

        `stream_values` holds the statistic of each stream, of shape (n_groups, n_parallel);
        `time_and_text` is what `BatchRows.get_time` returns for the row.
        """
        time, time_text = time_and_text
        self._add_new_rows_to_records(n_samples - self.n_samples_)
        largest = int(stream_values.argmax())
        stream = None if stream_values.size == 1 else self._list_stream_names()[largest]
        # An impossible event is a proof by itself; its log-odds cannot be fitted.
        diagnosed = None
        if log_statistic != math.inf:
            diagnosed = self._get_diagnosis_updated_if_due(self._records[largest])
        alarm = Alarm(
            n_samples,
            None if time is None else format_time(time),
            log_statistic,
            self.slope_,
            self.shift_,
            stream,
            self.meaning_,
            time_text,
            diagnosed,
        )
        # All streams restart at an alarm of one of them, as the detector does.
        for record in self._records:
            record.restart_fresh_counts_after(n_samples)
        if self.n_alarms_ - self._n_alarms_before < _MAX_KEPT_ALARMS_PER_UPDATE:
            self.alarms_ = [*self.alarms_, alarm][-_MAX_KEPT_ALARMS:]
        self.n_alarms_ += 1

    def _get_diagnosis_updated_if_due(self, record):
        """Diagnose a record again if enough rows have come, else return its last diagnosis."""
        if record.is_diagnosis_due() or record.diagnosis is None:
            record.diagnosis = diagnose_stream_if_any_rows(
                record, self._is_confidence(), drop_earlier_blocks=True
            )
        return record.diagnosis

    def _get_history_row_tuple(
        self, n_samples=None, log_detector=None, moment_time=None
    ):
        return (
            self.n_samples_ if n_samples is None else n_samples,
            self.log_e_value_,
            self.log_detector_ if log_detector is None else log_detector,
            self.slope_,
            self.shift_,
            self._last_time_and_text[0] if moment_time is None else moment_time,
        )


def add_rows_to_last_batch_in_place(
    monitor: CalibrationMonitor,
    y: ArrayLike,
    y_proba: ArrayLike,
    *,
    time: ArrayLike | None,
    soft_labels: bool,
) -> None:
    """Add rows to the batch of the last `CalibrationMonitor.update`.

    They may have the time of the rows before them, and the alarms of the whole batch stay
    the new ones.
    """
    monitor._add_batch(y, y_proba, None, time, False, soft_labels, is_new=False)


def _exp_or_inf(log):
    # float64 overflows above.
    return math.exp(log) if log < 709.0 else math.inf


def _read_names_or_none(values, role, min_names):
    """Return the names of all classes or groups, validated, or None if none are passed."""
    if values is None:
        return None
    if np.ndim(values) == 1 and len(values) < min_names:
        raise invalid_input(
            expected=f"at least {min_names} of the {role}",
            got=f"{len(values)}",
            hint="Name all of them",
        )
    return read_labels(values, classes=values)[0]
