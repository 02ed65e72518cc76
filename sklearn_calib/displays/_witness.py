"""WitnessDisplay: where predictions are off, under a reliability curve."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._show import escape_mathtext
from .._typing import ArrayLike, AxesLike, Estimator, Features, Self
from ..inference import MonteCarloResult
from ..metrics import (
    CalibrationWitness,
    ReliabilityCurve,
    calibration_witness,
    reliability_curve,
    smooth_calibration_error,
)
from ._base import (
    BAR_STYLE_OPTIONS,
    LINE_STYLE_OPTIONS,
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
    draw_unit_square_and_diagonal,
    predict_proba_and_column_labels,
)


@dataclass(eq=False, repr=False)
class WitnessDisplay(Display):
    """A reliability curve, and below it the witness of the smooth calibration error.

    The witness is the function of slope at most 1 that shows the most of the
    miscalibration: higher where events are more frequent than predicted, lower where
    they are rarer. Of more than two classes the largest probability is shown.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`. The
    curves of ``curve_kwargs`` are the reliability curve and the witness; neither has a
    label.

    Parameters
    ----------
    curve : ReliabilityCurve
    witness : CalibrationWitness
    error : float
        The smooth calibration error.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of two matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import WitnessDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> display = WitnessDisplay.from_predictions(y, proba)
    >>> display.axes_[1].get_ylabel()
    'witness'
    """

    curve: ReliabilityCurve
    witness: CalibrationWitness
    error: float

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the witness of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        sample_weight, labels, pos_label
            As in `smooth_calibration_error`.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : WitnessDisplay
        """
        error = smooth_calibration_error(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
        # With several classes there is one result, that of the largest probability.
        witness: Any = calibration_witness(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
        (curve,) = reliability_curve(
            y_true,
            y_proba,
            strategy="isotonic",
            n_resamples=0,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
        return cls(curve, witness, error).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Features,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the witness of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight, labels, pos_label, ax, curve_kwargs
            As in `from_predictions`.

        Returns
        -------
        display : WitnessDisplay

        Raises
        ------
        TypeError
            A model without ``predict_proba``; the message names what to write.
        """
        y_proba, labels = predict_proba_and_column_labels(cls, estimator, X, y, labels)
        return cls.from_predictions(
            y,
            y_proba,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the reliability curve, and the witness.

        Returns
        -------
        panels : list of list of tuple of ndarray
            Two panels: observed frequencies against predicted probabilities, and the
            witness at 0, at its scores and at 1.
        """
        ends = np.concatenate([[0.0], self.witness.scores, [1.0]])
        curve = self.curve
        return [[(curve.predicted, curve.observed)], [(ends, self.witness(ends))]]

    _subplot_options: ClassVar = {
        "figsize": (5, 6),
        "nrows": 2,
        "sharex": True,
        "height_ratios": (3, 1.2),
    }

    _style_options = tuple(name for name in LINE_STYLE_OPTIONS if name != "label")

    _default_styles: ClassVar = {"curve": {"color": "C0"}, "witness": {"color": "C1"}}

    def _draw(self, above, below):
        curve = self.curve
        draw_unit_square_and_diagonal(
            above, ylabel="observed frequency", title=escape_mathtext(curve.title)
        )
        curve_style, witness_style = self.styles_.values()
        above.step(curve.predicted, curve.observed, where="mid", **curve_style)
        above.fill_between(
            curve.predicted,
            curve.predicted,
            curve.observed,
            step="mid",
            color=curve_style["color"],
            alpha=0.15,
        )
        self.witness.plot(ax=below, **witness_style)
        p = self.witness.scores
        below.fill_between(
            p, 0, self.witness(p), color=witness_style["color"], alpha=0.2, lw=0
        )
        below.set_title(f"smooth calibration error {self.error:.4f}", fontsize="medium")


@dataclass(eq=False, repr=False)
class NullDistributionDisplay(Display):
    """Histogram of a test's statistic for calibrated predictions, with the value that was found.

    It has no ``from_predictions``: call `calibration_test` with its own options first.

    Parameters
    ----------
    result : MonteCarloResult
        From `calibration_test`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import NullDistributionDisplay
    >>> from sklearn_calib.inference import calibration_test
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 200)
    >>> result = calibration_test(y, proba, n_resamples=99, random_state=0)
    >>> display = NullDistributionDisplay(result).plot()
    >>> display.ax_.get_ylabel()
    'replicates'
    """

    result: MonteCarloResult

    _style_options = BAR_STYLE_OPTIONS

    _default_styles: ClassVar = {
        "replicates": {"label": "if calibrated"},
        "statistic": {"color": "C3"},
    }

    def plot(
        self,
        *,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
        bins: int = 40,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        curve_kwargs : dict or list of 2 dict, default=None
            Of the replicates and of the statistic: alpha, color, label.
        bins : int, default=40

        Returns
        -------
        self : NullDistributionDisplay
        """
        return self._draw_on_axes(ax, curve_kwargs, bins=bins)

    def get_plotted_data(self, bins: int = 40) -> PlottedData:
        """Return the histogram of the replicates, and the statistic.

        Parameters
        ----------
        bins : int, default=40
            As in `plot`.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: counts against the middles of the bins, and a line at the
            statistic over the height of the picture, 0 to 1.
        """
        counts, edges = np.histogram(self.result.null_distribution, bins=bins)
        line_x = np.full(2, self.result.statistic)
        centres = (edges[:-1] + edges[1:]) / 2
        return [[(centres, counts), (line_x, np.array([0.0, 1.0]))]]

    _subplot_options: ClassVar = {"figsize": (6, 3.2)}

    def _draw(self, ax, bins):
        result = self.result
        style = {"color": blend_text_with_background(ax, 0.75)} | self.styles_[
            "replicates"
        ]
        ax.hist(result.null_distribution, bins=bins, **style)
        line_options = {
            "label": f"found: {result.statistic:.4g}, p = {result.pvalue:.3g}"
        }
        ax.axvline(result.statistic, lw=2, **line_options | self.styles_["statistic"])
        ax.set(xlabel=result.name.replace("_", " "), ylabel="replicates")
        add_legend(ax, ncols=2)
