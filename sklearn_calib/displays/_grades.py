"""GradeDisplay: observed rates of rating grades against their probabilities."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._show import escape_mathtext
from .._typing import ArrayLike, AxesLike, Estimator, Features, RandomStateLike, Self
from ..groups import GradeCalibration, grade_calibration
from ._base import (
    BAR_STYLE_OPTIONS,
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
    predict_proba_and_column_labels,
)

_COLOR_BY_LIGHT = {"green": "#4c9f70", "amber": "#e0a030", "red": "#c8413b"}
_LABEL_BY_LIGHT = {"green": "green light", "amber": "amber", "red": "red"}


@dataclass(eq=False, repr=False)
class GradeDisplay(Display):
    """Bars of the observed rates of grades, with intervals, beside their probabilities.

    A grade without events has its interval alone, and a grade without rows has no bar.
    The colour of a bar is its light, which is of one grade alone: the p-value below is
    of all grades. Call ``ax_.set_yscale("log")`` if the rates differ by powers of ten.
    The curves of ``curve_kwargs`` are the observed and the predicted rates.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`.

    Parameters
    ----------
    found : GradeCalibration
        As `grade_calibration` returns it.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.displays import GradeDisplay
    >>> proba, y = make_overconfident(2, 2000)
    >>> display = GradeDisplay.from_predictions(y, proba, [0.05, 0.2, 0.5])
    >>> len(display.ax_.patches)
    4
    """

    found: GradeCalibration

    @classmethod
    def from_predictions(
        cls,
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
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the grades of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, 2) or (n_samples,)
        grades : array-like of shape (n_samples,), or of edges
            As in `grade_calibration`.
        counts, level, prudent_level, lights, n_resamples, random_state, labels
            As in `grade_calibration`.
        pos_label
            As in `grade_calibration`.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : GradeDisplay
        """
        calibration = grade_calibration(
            y_true,
            y_proba,
            grades,
            counts=counts,
            level=level,
            prudent_level=prudent_level,
            lights=lights,
            n_resamples=n_resamples,
            random_state=random_state,
            labels=labels,
            pos_label=pos_label,
        )
        return cls(calibration).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Features,
        y: ArrayLike,
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
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the grades of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        grades, counts, level, prudent_level, lights, n_resamples, random_state, labels
            As in `from_predictions`.
        pos_label, ax, curve_kwargs
            As in `from_predictions`.

        Returns
        -------
        display : GradeDisplay

        Raises
        ------
        TypeError
            A model without ``predict_proba``; the message names what to write.
        """
        y_proba, labels = predict_proba_and_column_labels(cls, estimator, X, y, labels)
        return cls.from_predictions(
            y,
            y_proba,
            grades,
            counts=counts,
            level=level,
            prudent_level=prudent_level,
            lights=lights,
            n_resamples=n_resamples,
            random_state=random_state,
            labels=labels,
            pos_label=pos_label,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the observed and the predicted rates against the numbers of the grades.

        Returns
        -------
        panels : list of list of tuple of ndarray
        """
        positions, rows = self._get_positions_and_filled_grades()
        names = "observed", "predicted"
        rates = (np.array([getattr(row, name) for row in rows]) for name in names)
        return [[(positions, rate) for rate in rates]]

    def _get_positions_and_filled_grades(self):
        """Return the grades that have rows, with their positions."""
        # Grades without rows keep their place on the axis.
        all_rows = self.found.rows
        positions = np.flatnonzero([row.n_rows for row in all_rows])
        return positions, [all_rows[position] for position in positions]

    def _get_subplot_options(self):
        return {"figsize": (max(4.4, 1.6 + 0.62 * len(self.found.rows)), 4.2)}

    _style_options = BAR_STYLE_OPTIONS

    _default_styles: ClassVar = {
        "observed": {"label": "observed"},
        "predicted": {"label": "predicted", "color": "C0"},
    }

    def _draw(self, ax):
        positions, rows = self._get_positions_and_filled_grades()
        colors = [_COLOR_BY_LIGHT[row.light] for row in rows]
        bar_style = {"color": colors} | self.styles_["observed"]
        bar_label = bar_style.pop("label")
        labels = [f"{bar_label}, {_LABEL_BY_LIGHT[row.light]}" for row in rows]
        # A label that begins with an underscore has no entry in the legend.
        bar_style["label"] = [
            "_" * (label in labels[:number]) + label
            for number, label in enumerate(labels)
        ]
        observed = [row.observed for row in rows]
        ax.bar(positions, observed, 0.62, zorder=1, **bar_style)
        interval_label = f"{100 * self.found.level:.0f} % interval of one grade"
        ax.vlines(
            positions,
            [row.observed_low for row in rows],
            [row.observed_high for row in rows],
            color=blend_text_with_background(ax, 0.2),
            lw=1.4,
            zorder=2,
            label=interval_label,
        )
        ax.plot(
            positions,
            [row.predicted for row in rows],
            "_",
            zorder=3,
            ms=26,
            mew=2.4,
            **self.styles_["predicted"],
        )
        names = [escape_mathtext(row.grade, 14) for row in self.found.rows]
        ax.set(xlim=(-0.7, len(names) - 0.3), ylim=(0, None))
        ax.set_xticks(np.arange(len(names)), names)
        # Long names would overlap if written horizontally.
        if max(map(len, names)) > 6:
            ax.tick_params(axis="x", labelrotation=35)
            for tick_label in ax.get_xticklabels():
                tick_label.set_horizontalalignment("right")
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
        ax.set(ylabel="rate of events")
        ax.set_xlabel(f"grade (all together: p = {self.found.p_value:.2g})")
        add_legend(ax, ncols=2, markerscale=0.6)
        ax.grid(axis="y", color=blend_text_with_background(ax, 0.93), zorder=0)
        ax.set_axisbelow(True)
