"""CalibratingFunctionDisplay: what recalibrators do to a score, beside the data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._show import escape_mathtext
from .._typing import (
    ArrayLike,
    AxesLike,
    Estimator,
    FloatArray,
    NumberOfBins,
    RecalibratorLike,
    Self,
)
from ..exceptions import invalid_input
from ..metrics import ReliabilityCurve, reliability_curve
from ..recalibrators import resolve_recalibrator
from ._base import (
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
    draw_unit_square_and_diagonal,
)


@dataclass(eq=False, repr=False)
class CalibratingFunctionDisplay(Display):
    """The maps from score to calibrated probability that several methods learned, one panel each.

    Grey dots are the reliability curve of the scores themselves: the observed frequency
    in bins of equal mass. A good map passes through them without following their noise.
    The curves of ``curve_kwargs`` are the maps; a label is the title of its panel.

    Parameters
    ----------
    scores : ndarray of shape (n_points,)
        Where the maps were evaluated, in [0, 1].
    functions : dict of str to ndarray of shape (n_points,)
        Names of methods and their values.
    curve : ReliabilityCurve or None
        Of the scores.
    truth : ndarray of shape (n_points,) or None
        The true probabilities.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        One per method.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import CalibratingFunctionDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> display = CalibratingFunctionDisplay.from_predictions(y, proba, ["platt", "isotonic"])
    >>> [ax.get_title() for ax in display.axes_]
    ['platt', 'isotonic']
    """

    scores: FloatArray
    functions: dict[str, FloatArray]
    curve: ReliabilityCurve | None = None
    truth: FloatArray | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        recalibrators: Sequence[str] | Mapping[str, RecalibratorLike],
        *,
        classes: ArrayLike | None = None,
        truth: Callable[[FloatArray], ArrayLike] | None = None,
        n_points: int = 1001,
        n_bins: NumberOfBins = 15,
        sample_weight: ArrayLike | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Fit recalibrators to predictions of two classes and draw their maps.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, 2), (n_samples, 1) or (n_samples,)
        recalibrators : list of str, or dict of str to recalibrator or str
            What to fit; given instances are cloned.
        classes : array-like of shape (2,), default=None
            Both classes in the order of the columns, as in `Recalibrator.fit`: the last
            one owns a single column.
        truth, n_points, n_bins, sample_weight
            As in `from_recalibrators`.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : CalibratingFunctionDisplay

        Raises
        ------
        ValueError
            More than two classes, or no recalibrators.
        """
        if not isinstance(recalibrators, dict):
            recalibrators = {str(name): name for name in recalibrators}
        # Some methods do not take weights, so None is not passed.
        options = {"sample_weight": sample_weight, "classes": classes}
        options = {key: value for key, value in options.items() if value is not None}
        fitted = {}
        for name, method in recalibrators.items():
            recalibrator = resolve_recalibrator(method)
            fitted[name] = recalibrator.fit(y_proba, y_true, **options)
        return cls.from_recalibrators(
            fitted,
            y_true,
            y_proba,
            truth=truth,
            n_points=n_points,
            n_bins=n_bins,
            sample_weight=sample_weight,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    @classmethod
    def from_recalibrators(
        cls,
        recalibrators: Estimator | dict[str, Estimator],
        y_true: ArrayLike | None = None,
        y_proba: ArrayLike | None = None,
        *,
        truth: Callable[[FloatArray], ArrayLike] | None = None,
        n_points: int = 1001,
        n_bins: NumberOfBins = 15,
        sample_weight: ArrayLike | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the maps of fitted recalibrators of two classes.

        Parameters
        ----------
        recalibrators : recalibrator or dict of str to recalibrator
            Fitted.
        y_true, y_proba : array-like, default=None
            For the dots: calibration rows, or better other ones; their classes are
            those of the recalibrators, in the same order.
        truth : callable, default=None
            The true probability of a score, if it is known.
        n_points : int, default=1001
            Scores between 0 and 1 at which the maps are drawn.
        n_bins : int, "cube_root" or "sweep", default=15
            Dots at most; as in `reliability_curve`.
        sample_weight : array-like of shape (n_samples,), default=None
            Of the dots' rows.
        ax, curve_kwargs
            As in `plot`; one of the axes per recalibrator.

        Returns
        -------
        display : CalibratingFunctionDisplay

        Raises
        ------
        ValueError
            More than two classes, or no recalibrators.
        """
        if not isinstance(recalibrators, dict):
            recalibrators = {type(recalibrators).__name__: recalibrators}
        if not recalibrators:
            raise invalid_input(
                expected="at least one recalibrator",
                got="none",
                hint="Pass a name or an instance",
            )
        # The maps are evaluated on a grid, since most have no closed form to plot.
        scores = np.linspace(0.0, 1.0, n_points)
        functions = {}
        for name, fitted in recalibrators.items():
            if len(fitted.classes_) != 2:
                raise invalid_input(
                    "recalibrators",
                    expected="recalibrators of two classes",
                    got=f"{len(fitted.classes_)} in {name}",
                    hint=(
                        "Draw one class against the rest: fit on its column and y == label"
                    ),
                )
            columns = np.column_stack([1 - scores, scores])
            functions[name] = np.asarray(fitted.predict_proba(columns))[:, 1]
        curve = None
        if y_true is not None and y_proba is not None:
            [curve] = reliability_curve(
                y_true,
                y_proba,
                strategy="quantile",
                n_bins=n_bins,
                n_resamples=0,
                sample_weight=sample_weight,
                labels=fitted.classes_,
            )
        true_values = (
            None if truth is None else np.asarray(truth(scores), dtype=np.float64)
        )
        display = cls(scores, functions, curve, true_values)
        return display.plot(ax=ax, curve_kwargs=curve_kwargs)

    def get_plotted_data(self) -> PlottedData:
        """Return the observed frequencies, the truth and the map of each method.

        Returns
        -------
        panels : list of list of tuple of ndarray
            For each method, as far as they are known.
        """
        shared = []
        if self.curve is not None:
            shared.append((self.curve.predicted, self.curve.observed))
        if self.truth is not None:
            shared.append((self.scores, self.truth))
        return [[*shared, (self.scores, values)] for values in self.functions.values()]

    def _make_axes(self, plt):
        return self._make_figure_and_get_panel_axes(plt, 3.0, 3.0)

    def _get_default_styles(self):
        return {
            name: {"color": "C0", "label": escape_mathtext(name)}
            for name in self.functions
        }

    def _draw(self, *axes):
        """Draw each map over the observed frequencies and the truth, if these are known."""
        for ax, (name, values) in zip(axes, self.functions.items(), strict=True):
            style = {"linewidth": 1.6} | self.styles_[name]
            draw_unit_square_and_diagonal(
                ax, title=style["label"], xlabel="score", ylabel="calibrated"
            )
            if self.truth is not None:
                ax.plot(
                    self.scores,
                    self.truth,
                    color="C1",
                    lw=3,
                    alpha=0.5,
                    label="truth",
                )
            if self.curve is not None:
                # The area of a dot is proportional to the rows of its bin.
                dot_sizes = 6 + 90 * self.curve.weight / self.curve.weight.sum()
                ax.scatter(
                    self.curve.predicted,
                    self.curve.observed,
                    s=dot_sizes,
                    color=blend_text_with_background(ax, 0.45),
                    lw=0,
                    label="observed",
                    zorder=2,
                )
            ax.plot(self.scores, values, zorder=3, **style | {"label": "map"})
        if self.truth is not None or self.curve is not None:
            add_legend(axes[0], loc="best", bbox_to_anchor=None)
