"""What a monitor tells of the rows that it has seen."""

import math
from typing import Any

import numpy as np

from .._kernels._logistic_grid import COARSE, log_mixture
from .._typing import AnyArray, FloatArray
from ._course import Course
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
        confidence = self.multiclass == "confidence" or (
            self.multiclass == "auto" and self.classes_ is not None and len(self.classes_) > 2
        )
        return meaning(self.slope_, self.shift_, impossible=self.impossible_, confidence=confidence)

    @property
    def history_(self) -> MonitorHistory:
        return self._course.history(self._moment())

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
