"""What a monitor has found: alarms, its course, and what they mean in words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._typing import AnyArray, FloatArray, IntArray
from ._aftermath import Diagnosis

# Slopes above this, or below its inverse, and larger shifts are described in words.
_MAX_MODERATE_SLOPE = 1.1
_MAX_MODERATE_LOG_ODDS_SHIFT = 0.1


class Alarm(NamedTuple):
    """One alarm of a `CalibrationMonitor`.

    Attributes
    ----------
    n_samples : int
        The number of rows until then, with the one that raised it.
    time : float, str or None
        The time of that row, a text in ISO form for dates; None if no times were
        given.
    log_statistic : float
        Logarithm of the detector's statistic, or of the e-value with ``alarm="test"``;
        inf if an event happened whose probability was 0.
    slope, shift : float
        Means over the posterior, see `CalibrationMonitor.posterior_`.
    stream : str or None
        The group, the class, or both, with the largest part of the statistic; None
        if there is only one.
    meaning : str
        Slope and shift in words.
    time_as_given : str or None
        The time as it came, if it came as text or as a whole number.
    diagnosis : Diagnosis or None
        Since when the stream is off, and what is enough to repair it; None if an event
        of probability 0 raised the alarm. Of alarms that follow each other closely it
        is looked for again when a fifth of the rows is new.
    """

    n_samples: int
    time: float | str | None
    log_statistic: float
    slope: float
    shift: float
    stream: str | None
    meaning: str
    time_as_given: str | None = None
    diagnosis: Diagnosis | None = None

    def __str__(self) -> str:
        time_text = "" if self.time is None else f" ({self.time_as_given or self.time})"
        stream_text = "" if self.stream is None else f", {self.stream}"
        return f"row {self.n_samples}{time_text}{stream_text}: {self.meaning}"


class MonitorHistory(NamedTuple):
    """The course of a `CalibrationMonitor`: up to 512 moments, in arrays of shape (n_moments,).

    Attributes
    ----------
    n_samples : ndarray of int
        Rows until then.
    log_e_value, log_detector : ndarray of float
        Logarithms of the evidence and of the detector's statistic, the latter before an
        alarm sets it to 0.
    slope, shift : ndarray of float
        Means over the posterior.
    time : ndarray of float or datetime64, or None
        None if no times were given.
    """

    n_samples: IntArray
    log_e_value: FloatArray
    log_detector: FloatArray
    slope: FloatArray
    shift: FloatArray
    time: AnyArray | None


def describe_shift(
    slope: float, shift: float, *, impossible: int = 0, confidence: bool = False
) -> str:
    """Describe in words what a slope and a shift of the log-odds mean for probabilities."""
    subject = "confidences" if confidence else "probabilities"
    phrases = []
    if slope < 1 / _MAX_MODERATE_SLOPE:
        phrases.append("too extreme")
    elif slope > _MAX_MODERATE_SLOPE:
        phrases.append("too cautious")
    if abs(shift) > _MAX_MODERATE_LOG_ODDS_SHIFT:
        phrases.append("too low" if shift > 0 else "too high")
    verdict = f"{subject} differ little on the whole"
    if phrases:
        verdict = f"{subject} are {' and '.join(phrases)}"
    text = f"{verdict} (slope {slope:.2f}, shift {shift:+.2f})"
    if impossible:
        events = "event" if impossible == 1 else "events"
        text = f"{impossible} {events} of probability 0 happened; {text}"
    return text


def e_benjamini_hochberg(e_values: Sequence[float], alpha: float) -> AnyArray:
    """Return which hypotheses are rejected with a false discovery rate of at most `alpha`.

    The result has shape (n,) and is bool. The e-values may depend on each other.
    """
    e = np.asarray(e_values, dtype=float)
    order = np.argsort(-e, kind="stable")
    # The procedure of Benjamini and Hochberg for e-values rejects the k largest, for the
    # largest k with k e_(k) >= n / alpha. It holds under any dependence (Wang and
    # Ramdas, 2022).
    is_enough = e[order] * np.arange(1, len(e) + 1) >= len(e) / alpha
    is_rejected = np.zeros(len(e), dtype=bool)
    if is_enough.any():
        n_rejected = int(np.flatnonzero(is_enough)[-1]) + 1
        is_rejected[order[:n_rejected]] = True
    return is_rejected


MAX_COURSE_MOMENTS = 512

#: Rows, log e-value, log of the detector, slope, shift, time.
Moment = tuple[int, float, float, float, float, Any]


class StreamHistory:
    """Moments of a stream, which are further apart the longer the stream is.

    Attributes
    ----------
    moments : list of tuple
    stride : int
        Rows between two of them, at least.
    """

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.stride = 1

    def is_due(self, n_samples: int) -> bool:
        """Return whether the last moment is far enough behind."""
        return not self.moments or n_samples >= self.moments[-1][0] + self.stride

    def add(self, moment: Moment) -> None:
        """Add a moment; drop every other one if there are too many."""
        self.moments.append(moment)
        if len(self.moments) >= MAX_COURSE_MOMENTS:
            self.moments = self.moments[::2]
            self.stride = max(2 * self.stride, moment[0] // MAX_COURSE_MOMENTS)

    def make_history(self, last_moment: Moment) -> MonitorHistory:
        """Return the history of all moments up to the last row."""
        moments = [*self.moments]
        if last_moment[0] and (not moments or last_moment[0] > moments[-1][0]):
            moments.append(last_moment)
        # Without moments each of the six columns is empty.
        columns: list[Any] = [*zip(*moments, strict=True)] or [()] * 6
        n_samples, *numbers, time = columns
        arrays: list[Any] = [np.array(column, dtype=float) for column in numbers]
        has_times = bool(moments) and None not in time
        arrays.append(np.array(time) if has_times else None)
        return MonitorHistory(np.array(n_samples, dtype=np.intp), *arrays)
