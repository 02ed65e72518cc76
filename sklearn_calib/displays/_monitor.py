"""MonitorDisplay: the course of a monitor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import AxesLike, Self
from ..monitoring import Alarm, CalibrationMonitor, MonitorHistory
from ._base import (
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
)


@dataclass(eq=False, repr=False)
class MonitorDisplay(Display):
    """The course of a `CalibrationMonitor`: its evidence, its detector and its alarms.

    Above, the logarithms of the e-value and of the detector's statistic, with the two
    lines at which they would raise an alarm; alarms are vertical lines. Below, the
    means of slope and shift over the posterior: 1 and 0 (dashed) if the
    probabilities are calibrated. The curves of ``curve_kwargs`` are these four:
    e-value, detector, slope, shift.

    Make one with `from_monitor`; draw it again with `plot`. It has no
    ``from_predictions``, since the evidence depends on the order of the updates.

    Parameters
    ----------
    history : MonitorHistory
        ``history_`` of a monitor that has seen rows.
    alpha : float
        The e-value 1/alpha is enough.
    average_run_length : float
        The detector's statistic that is enough.
    alarms : list of Alarm, default=()

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        Of the evidence, and of slope and shift.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.displays import MonitorDisplay
    >>> from sklearn_calib.monitoring import CalibrationMonitor
    >>> monitor, (proba, y) = CalibrationMonitor(), make_overconfident(2, 1000)
    >>> for rows in range(0, 1000, 50):
    ...     monitor = monitor.update(y[rows : rows + 50], proba[rows : rows + 50])
    >>> display = MonitorDisplay.from_monitor(monitor)
    >>> len(display.axes_)
    2
    """

    history: MonitorHistory
    alpha: float
    average_run_length: float
    alarms: Sequence[Alarm] = ()

    @classmethod
    def from_monitor(
        cls,
        monitor: CalibrationMonitor,
        *,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the course of a monitor.

        Parameters
        ----------
        monitor : CalibrationMonitor
            After at least one `update`.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : MonitorDisplay
        """
        display = cls(
            monitor.history_,
            monitor.alpha,
            monitor.average_run_length,
            [*monitor.alarms_],
        )
        return display.plot(ax=ax, curve_kwargs=curve_kwargs)

    def get_plotted_data(self) -> PlottedData:
        """Return both curves of each panel.

        Returns
        -------
        panels : list of list of tuple of ndarray
            The logarithms of e-value and detector, and slope and shift; against the
            rows, or the times if the monitor has them.
        """
        x = self._get_x_values()
        history = self.history
        return [
            [
                (x, self._to_common_logarithm(history.log_e_value)),
                (x, self._to_common_logarithm(history.log_detector)),
            ],
            [(x, history.slope), (x, history.shift)],
        ]

    def _get_x_values(self):
        history = self.history
        return history.n_samples if history.time is None else history.time

    @staticmethod
    def _to_common_logarithm(log):
        """Convert to common logarithms; NaN at the start of the detector."""
        return np.where(np.isfinite(log), log, np.nan) / np.log(10)

    _subplot_options: ClassVar = {
        "figsize": (9, 5.5),
        "nrows": 2,
        "sharex": True,
        "height_ratios": (3, 2),
    }

    _default_styles: ClassVar = {
        name: {"color": f"C{n}", "label": name}
        for n, name in enumerate(("e-value", "detector", "slope", "shift"))
    }

    def _draw(self, upper, lower):
        """Draw evidence and detector above, slope and shift below, and lines at alarms."""
        evidence, posterior = self.get_plotted_data()
        styles = [*self.styles_.values()]
        curves = [*evidence, *posterior]
        axes = upper, upper, lower, lower
        for ax, curve, style in zip(axes, curves, styles, strict=True):
            ax.plot(*curve, **style)
        # The e-value is enough at 1 / alpha, the detector at the average run length.
        limits = (1 / self.alpha, self.average_run_length)
        for limit, style in zip(limits, styles[:2], strict=True):
            upper.axhline(
                np.log10(limit),
                color=style["color"],
                lw=1,
                ls=":",
                label=f"{style['label']}: enough at {limit:,g}",
            )
        upper.set_ylabel("logarithm (base 10)")
        # Shift 0 and slope 1: calibrated.
        for level in (0, 1):
            lower.axhline(
                level,
                color=blend_text_with_background(lower, 0.6),
                lw=0.8,
                ls="--",
                zorder=0.5,
            )
        lower.set_ylabel("posterior mean")
        by_time = self.history.time is not None
        lower.set_xlabel("time" if by_time else "rows")
        for number, alarm in enumerate(self.alarms):
            # Only the first line is in the legend.
            position = self._get_alarm_x(alarm)
            upper.axvline(
                position,
                color=blend_text_with_background(upper, 0.3),
                lw=1,
                label=None if number else "alarm",
            )
            lower.axvline(position, color=blend_text_with_background(lower, 0.3), lw=1)
        for ax in (upper, lower):
            ax.margins(x=0.01)
            add_legend(ax, loc="center left", bbox_to_anchor=(1.0, 0.5))
        if by_time and self.history.time.dtype.kind == "M":
            for label in lower.get_xticklabels():
                label.set(rotation=30, ha="right")

    def _get_alarm_x(self, alarm):
        time = self.history.time
        if time is None:
            return alarm.n_samples
        return np.datetime64(alarm.time, "us") if time.dtype.kind == "M" else alarm.time
