"""What a monitor tells of the rows that it has seen."""

import math
from typing import Any

import numpy as np

from .._kernels._logistic_grid import COARSE, log_mixture
from .._typing import AnyArray, FloatArray
from ..exceptions import check_known, check_level, refuse
from ._aftermath import Diagnosis, ShiftRegion, choose, diagnosis, shift_region
from ._course import Course
from ._record import Record
from ._result import Alarm, MonitorHistory, e_benjamini_hochberg, meaning

MOST_NEW = 50  # alarms of one update that are kept


class Findings:
    """The answers of a `CalibrationMonitor`, which documents them."""

    slopes_: FloatArray = np.unique(COARSE.slope)
    shifts_: FloatArray = np.unique(COARSE.shift)

    alarm: str
    multiclass: str
    average_run_length: float
    alpha: float
    groups: AnyArray | None
    classes_: AnyArray | None
    n_samples_: int
    n_alarms_: int
    rejected_at_: int | None
    alarms_: list[Alarm]

    _total: FloatArray  # of shape (n_groups, n_parallel, n_pairs): sums of logarithms of ratios
    _detector: FloatArray  # of the same shape
    _impossible: AnyArray  # of shape (n_groups, n_parallel)
    _records: list[list[Record]]  # of each group and each problem
    _largest: float  # of the logarithms of the e-values
    _last: Any  # time
    _written: str | None  # the same as it came
    _n_before: int  # alarms before the last update
    _course: Course

    @property
    def alarm_(self) -> bool:
        return bool(self.alarms_) if self.alarm == "test" else bool(self.new_alarms_)

    @property
    def new_alarms_(self) -> list[Alarm]:
        new = min(self.n_alarms_ - self._n_before, MOST_NEW)
        return self.alarms_[len(self.alarms_) - new :]

    @property
    def log_e_value_(self) -> float:
        return float(
            np.logaddexp.reduce(self._log_e_values(), axis=None) - math.log(self._impossible.size)
        )

    @property
    def e_value_(self) -> float:
        return _exp(self.log_e_value_)

    @property
    def p_value_(self) -> float:
        return math.exp(-self._largest)

    @property
    def log_detector_(self) -> float:
        total = float((self._detector @ np.exp(COARSE.log_prior)).mean(axis=1).sum())
        return math.log(total) if total > 0 else -math.inf

    @property
    def impossible_(self) -> int:
        return int(self._impossible.sum())

    @property
    def e_values_(self) -> dict[Any, float]:
        log = self._log_e_values()
        if self.groups is not None:
            log = np.logaddexp.reduce(log, axis=1) - math.log(log.shape[1])
            return dict(zip(self.groups.tolist(), map(_exp, log.tolist()), strict=True))
        if self.multiclass == "classwise" and self.classes_ is not None:
            return dict(zip(self.classes_.tolist(), map(_exp, log[0].tolist()), strict=True))
        return {}

    @property
    def flagged_(self) -> list[Any]:
        found = self.e_values_
        flags = e_benjamini_hochberg([*found.values()], self.alpha)
        return [name for name, flag in zip(found, flags.tolist(), strict=True) if flag]

    @property
    def posterior_(self) -> FloatArray:
        if self.alarm == "test":
            log = self._total + COARSE.log_prior
            weight = np.exp(log - log.max()).sum(axis=(0, 1))
        else:
            weight = (self._detector * np.exp(COARSE.log_prior)).sum(axis=(0, 1))
        if not weight.sum() > 0:  # the detector has just begun
            weight = np.exp(COARSE.log_prior)
        return (weight / weight.sum()).reshape(len(self.slopes_), len(self.shifts_))

    @property
    def slope_(self) -> float:
        return math.exp(self.posterior_.sum(axis=1) @ np.log(self.slopes_))

    @property
    def shift_(self) -> float:
        return float(self.posterior_.sum(axis=0) @ self.shifts_)

    @property
    def meaning_(self) -> str:
        given = {"impossible": self.impossible_, "confidence": self._is_confidence()}
        return meaning(self.slope_, self.shift_, **given)

    @property
    def history_(self) -> MonitorHistory:
        return self._course.history(self._moment())

    def region(
        self, level: float = 0.95, *, since: str = "start", stream: str | None = None
    ) -> ShiftRegion:
        """Where shift and slope of the log-odds are, at every look at once.

        The pairs against which the mean likelihood of all pairs (shift normal around 0 with
        standard deviation 1, slope around 1 with 1/2) has not gathered 1 / (1 - level). While the
        true log-odds are shift + slope * those of the predictions, with one pair all the time, the
        probability that this pair is ever outside is at most 1 - level, however often one looks.

        Parameters
        ----------
        level : float, default=0.95
            Between 0 and 1.
        since : {"start", "alarm"}, default="start"
            Which rows: all, or those behind the last alarm, of which each begins a new promise.
            Rows that raised an alarm are not among the latter, so that none were chosen.
        stream : str, default=None
            Of several groups or classes the name of one, as ``Alarm.stream`` says it.

        Returns
        -------
        region : ShiftRegion

        Raises
        ------
        ValueError
            A level that is not between 0 and 1; unknown names.

        Notes
        -----
        Where the truth changes meanwhile there is no one pair to cover; the region then shrinks
        around the pair that fits the mixture of all rows best. Ask for the rows since the alarm.
        With "confidence" the pair is that of the largest probability.

        The log-odds are kept in cells of a sixteenth of sqrt(z^2 + 4), with mean and variance: the
        intervals are those of all rows to 1e-4. Cost: some 50 ms, whatever the number of rows.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.monitoring import CalibrationMonitor
        >>> proba, y = make_overconfident(2, 2000)
        >>> found = CalibrationMonitor().update(y, proba).region()
        >>> [round(end, 2) for end in found.slope_interval], found.calibrated
        ([0.33, 0.49], False)
        """
        where = "CalibrationMonitor.region"
        check_level(level, where)
        check_known(where, "since", since, ("start", "alarm"))
        record = self._record_of(choose(self._streams(), stream, where))
        return shift_region(record.since(since == "alarm"), level)

    def diagnose(self, *, stream: str | None = None) -> Diagnosis:
        """Since when the probabilities are off, by all rows until now, and what is enough.

        The change is looked for in the rows from the earliest onset that the last alarm left open.
        As ``Alarm.diagnosis``, with the rows that came since: the more, the surer.

        Parameters
        ----------
        stream : str, default=None
            Of several groups or classes the name of one, as ``Alarm.stream`` says it. By default
            that of the last alarm.

        Returns
        -------
        diagnosis : Diagnosis
            ``advice`` says it in words.

        Raises
        ------
        ValueError
            No alarm yet; no rows of the stream; unknown names.

        Notes
        -----
        The onset has a posterior: each row is as likely to be the first one behind the change, the
        54 pairs have their weights. Old rows are kept in blocks, the larger the older, and the ends
        of its interval are ends of blocks, the newest of 32 rows. `enough` follows from two score
        tests at 5 % on the rows behind the likeliest onset. Unlike `region` they promise nothing at
        every look: they are judged at the moment when the alarm comes, by rows that it chose; how
        often they err was counted (``benchmarks/monitoring``). Begin anew (`reset`) after a
        repair: rows of old and new probabilities together say nothing.

        Examples
        --------
        >>> from sklearn_calib.datasets import make_overconfident
        >>> from sklearn_calib.monitoring import CalibrationMonitor
        >>> proba, y = make_overconfident(2, 2000)
        >>> found = CalibrationMonitor().update(y, proba).diagnose()
        >>> found.onset, found.enough
        (1, 'line')
        """
        where = "CalibrationMonitor.diagnose"
        if not self.alarms_:
            cure = "Until then region() says where shift and slope are"
            refuse(where, "a monitor that has raised an alarm", "none so far", cure)
        names = self._streams()
        last = self.alarms_[-1].stream
        record = self._record_of(choose(names, last if stream is None else stream, where))
        found = diagnosis(record, self._is_confidence(), forget=False)
        if found is None:
            refuse(where, "rows since the alarm that say something", "none", "Add rows")
        return found

    def _is_confidence(self):
        """Whether the largest probability is watched."""
        several = self.classes_ is not None and len(self.classes_) > 2
        return self.multiclass == "confidence" or (self.multiclass == "auto" and several)

    def _streams(self):
        """Names of all groups and problems, as alarms say them."""
        groups = [None] if self.groups is None else self.groups.tolist()
        columns = self._impossible.shape[1]
        return [
            self._name(group, column if columns > 1 else None)
            for group in groups
            for column in range(columns)
        ]

    def _name(self, group, column):
        said = [] if group is None else [f"group {group}"]
        if column is not None:
            assert self.classes_ is not None
            said.append(f"class {self.classes_[column]}")
        return ", ".join(said)

    def _record_of(self, number):
        return self._records[number // self._impossible.shape[1]][
            number % self._impossible.shape[1]
        ]

    def __str__(self) -> str:
        """One line, as for a mail."""
        rows = f"{self.n_samples_} row{'s' * (self.n_samples_ != 1)}"
        evidence = f"evidence e = {self.e_value_:.3g} (p = {self.p_value_:.2g})"
        detector = f"detector {_exp(self.log_detector_):.3g} of {self.average_run_length:g}"
        said = "no alarm" if not self.alarms_ else f"last alarm at {self.alarms_[-1]}"
        if self.alarm_:
            more = self.n_alarms_ - self._n_before - 1
            said = f"ALARM at {(self.new_alarms_ or self.alarms_)[0]}"
            said += f", and {more} more" if more > 0 else ""
            if (last := self.alarms_[-1]).diagnosis is not None:
                said += f"; {last.stream or ''}{' ' * bool(last.stream)}{last.diagnosis.advice}"
        if flagged := self.flagged_:
            said += f"; flagged: {', '.join(map(str, flagged))}"
        return f"{said}; {rows}, {detector}, {evidence}"

    def _log_e_values(self):
        """Of each group and each problem."""
        return np.where(self._impossible > 0, np.inf, log_mixture(self._total, COARSE))

    def _moment(self, n_samples=None, log_detector=None, when=None):
        return (
            self.n_samples_ if n_samples is None else n_samples,
            self.log_e_value_,
            self.log_detector_ if log_detector is None else log_detector,
            self.slope_,
            self.shift_,
            self._last if when is None else when,
        )


def _exp(log):
    return math.exp(log) if log < 709.0 else math.inf
