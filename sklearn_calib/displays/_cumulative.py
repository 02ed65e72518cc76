"""CumulativeDifferenceDisplay: where events exceed predictions, without bins."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._argument_checks import check_choice
from .._show import escape_mathtext
from .._typing import ArrayLike, AxesLike, Estimator, Features, Multiclass, Self
from ..metrics import CumulativeDifferences, cumulative_differences
from ._base import (
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
    predict_proba_and_column_labels,
)

_AXIS_KINDS = ("rows", "score")
_N_UPPER_TICKS = 6
# The width of the triangle, as a fraction of the rows.
_TRIANGLE_WIDTH_ROW_SHARE = 0.03


@dataclass(eq=False, repr=False)
class CumulativeDifferenceDisplay(Display):
    """Cumulative differences between events and predictions, in the order of the predictions.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`. Of
    more than two classes the largest probability is shown. Where the path rises events
    are more frequent than predicted, where it falls rarer; the slope between any two of
    its points is by how much, on average over the rows between them. The lower axis
    counts rows, the upper one shows their predictions. The triangle at the origin
    reaches two standard deviations of the last difference up and down: calibrated
    predictions hardly leave its height.

    With ``axis="score"`` the lower axis is a threshold, and there are two steps: the
    differences of the predictions up to it, and of those above it. The mean of their
    squares over all thresholds is `averaged_two_bin_error`, which the legend states
    beside its mean for calibrated predictions. The curves of ``curve_kwargs`` are the
    path, or these two.

    Parameters
    ----------
    differences : CumulativeDifferences
        From `cumulative_differences`.
    axis : {"rows", "score"}, default="rows"
        What the lower axis counts.

    Attributes
    ----------
    differences : CumulativeDifferences
    axis : str
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    score_ax_ : matplotlib Axes
        The upper axis; with ``axis="score"`` None.

    Raises
    ------
    ValueError
        An unknown `axis`.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), section 2. Hartline, Hu, Wu
    (2026).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import CumulativeDifferenceDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> display = CumulativeDifferenceDisplay.from_predictions(y, proba)
    >>> display.score_ax_.get_xlabel()
    'predicted probability'
    """

    differences: CumulativeDifferences
    _: KW_ONLY
    axis: Literal["rows", "score"] = "rows"

    def __post_init__(self) -> None:
        check_choice("axis", self.axis, _AXIS_KINDS)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        multiclass: Multiclass = "auto",
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        axis: Literal["rows", "score"] = "rows",
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the cumulative differences of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        multiclass, sample_weight, labels, pos_label
            As in `cumulative_differences`.
        axis : {"rows", "score"}, default="rows"
            What the lower axis counts.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : CumulativeDifferenceDisplay
        """
        # With several classes there is one result, that of the largest probability.
        differences: Any = cumulative_differences(
            y_true,
            y_proba,
            multiclass=multiclass,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
        )
        return cls(differences, axis=axis).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Features,
        y: ArrayLike,
        *,
        multiclass: Multiclass = "auto",
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        axis: Literal["rows", "score"] = "rows",
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the cumulative differences of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        multiclass, sample_weight, labels, pos_label, axis, ax, curve_kwargs
            As in `from_predictions`.

        Returns
        -------
        display : CumulativeDifferenceDisplay

        Raises
        ------
        TypeError
            A model without ``predict_proba``; the message names what to write.
        """
        y_proba, labels = predict_proba_and_column_labels(cls, estimator, X, y, labels)
        return cls.from_predictions(
            y,
            y_proba,
            multiclass=multiclass,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            axis=axis,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the path.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: differences against the share of the rows, from (0, 0); with
            ``axis="score"`` those up to each threshold and those above it.
        """
        differences = self.differences
        if self.axis == "score":
            # The path as a function of the threshold is a step function from 0 to 1.
            below = np.r_[0.0, differences.difference, differences.difference[-1]]
            threshold = np.r_[0.0, differences.score, 1.0]
            return [[(threshold, below), (threshold, below[-1] - below)]]
        return [
            [
                (
                    np.append(0.0, differences.weight),
                    np.append(0.0, differences.difference),
                )
            ]
        ]

    _subplot_options: ClassVar = {"figsize": (6, 4.2)}

    def _get_default_styles(self):
        if self.axis == "rows":
            return {"path": {"color": "C0"}}
        names = "up to the threshold", "above it"
        return {name: {"color": f"C{n}", "label": name} for n, name in enumerate(names)}

    def _draw(self, ax):
        if self.axis == "score":
            self._draw_differences_by_threshold(ax)
        else:
            self._draw_rows(ax)
        ax.set_title(escape_mathtext(self.differences.title))

    def _draw_differences_by_threshold(self, ax):
        differences = self.differences
        [[below, above]] = self.get_plotted_data()
        # The standard deviation of the last point of the path if the predictions are
        # calibrated.
        height = 2 * differences.sigma
        label = "two standard deviations of all rows"
        ax.axhspan(
            -height,
            height,
            color=blend_text_with_background(ax, 0.85),
            lw=0,
            label=label,
        )
        ax.axhline(0, color=blend_text_with_background(ax, 0.35), lw=1, ls="--")
        for values, style in zip((below, above), self.styles_.values(), strict=True):
            ax.step(*values, **style)
        error = differences.averaged_two_bin
        expected = differences.sigma**2
        title = f"averaged two-bin error {error:.3g},\n{expected:.3g} if calibrated"
        add_legend(ax, title=title)
        ax.set(xlim=(0, 1), xlabel="threshold", ylabel="cumulative difference")
        self.score_ax_ = None

    def _draw_rows(self, ax):
        differences = self.differences
        [[path]] = self.get_plotted_data()
        height = 2 * differences.sigma
        ax.axhline(
            0, color=blend_text_with_background(ax, 0.35), lw=1, ls="--", zorder=1.5
        )
        ax.fill(
            [0, _TRIANGLE_WIDTH_ROW_SHARE, 0],
            [height, 0, -height],
            color=blend_text_with_background(ax, 0.7),
            lw=0,
            zorder=1,
            label="two standard deviations",
        )
        label = f"range {differences.range:.3g}"
        if differences.sigma > 0:
            label += f", {differences.range / differences.sigma:.1f} deviations"
        ax.plot(*path, zorder=2, **{"label": label} | self.styles_["path"])
        ax.set(xlim=(0, 1), ylabel="cumulative difference")
        ax.set_xlabel("share of the rows, in order of prediction")
        add_legend(ax)
        self.score_ax_ = ax.secondary_xaxis("top")
        shares = np.linspace(0, 1, _N_UPPER_TICKS)
        # The upper axis shows the prediction at evenly spaced ranks.
        row_indices = np.searchsorted(differences.weight, shares * (1 - 1e-9))
        labels = [
            f"{p:.2g}"
            for p in differences.score[
                np.minimum(row_indices, len(differences.score) - 1)
            ]
        ]
        self.score_ax_.set_xticks(shares, labels)
        self.score_ax_.set_xlabel("predicted probability")
