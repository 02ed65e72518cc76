"""The course of a monitor in little memory."""

from typing import Any

import numpy as np

from ._result import MonitorHistory

_MOST = 512  # moments

#: Rows, log e-value, log of the detector, slope, shift, time.
Moment = tuple[int, float, float, float, float, Any]


class Course:
    """Moments of a stream, the further apart the longer it is.

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
        """Whether the last moment is far enough behind."""
        return not self.moments or n_samples >= self.moments[-1][0] + self.stride

    def add(self, moment: Moment) -> None:
        """Add a moment; every other one goes where there are too many."""
        self.moments.append(moment)
        if len(self.moments) >= _MOST:
            self.moments = self.moments[::2]
            self.stride = max(2 * self.stride, moment[0] // _MOST)

    def history(self, now: Moment) -> MonitorHistory:
        """All moments, and the last row."""
        moments = [*self.moments]
        if now[0] and (not moments or now[0] > moments[-1][0]):
            moments.append(now)
        columns: list[Any] = [*zip(*moments, strict=True)] or [()] * 6
        n_samples, *numbers, time = columns
        known = np.array(time) if moments and all(t is not None for t in time) else None
        arrays: list[Any] = [*(np.array(column, dtype=float) for column in numbers), known]
        return MonitorHistory(np.array(n_samples, dtype=np.intp), *arrays)
