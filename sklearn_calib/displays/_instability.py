"""InstabilityDisplay: how much predictions change when a model is developed on other rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import ArrayLike, AxesLike, Estimator, Features, RandomStateLike, Self
from ..inference import Instability, InternalValidation, internal_validation
from ._base import (
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
    draw_unit_square_and_diagonal,
    is_small,
)

# The range of at most this many rows is drawn.
_MAX_RANGE_BARS = 300
_MAX_RESAMPLED_CURVES = 100
#: Labels of the x axis and of the y axis.
_AXIS_LABELS_BY_PANEL = (
    (
        "prediction of the model",
        "prediction of the\nresampled models",
    ),
    ("prediction of the model", "mean absolute difference"),
    (
        "prediction of the model",
        "share of models that\ndecide otherwise",
    ),
    ("prediction on original rows", "observed, smoothed"),
)
# The window that smooths the ends of the ranges has 1 / 20 of the rows.
_SMOOTHING_WINDOW_DIVISOR = 20


@dataclass(eq=False, repr=False)
class InstabilityDisplay(Display):
    """How much the prediction for each row changes if the model is developed on other rows.

    Four panels against the predictions of the model itself: the range of the
    predictions of the resampled models for each row, their mean absolute difference,
    the share of these models that decide otherwise at a threshold, and their
    calibration curves on the original rows. The curves of ``curve_kwargs``, with alpha
    and color, are the resampled models, and the options of the model itself or of all
    rows.

    Make one with `from_validation` or `from_estimator`; draw it again with `plot`. It
    has no ``from_predictions``, since the model is fitted again.

    Parameters
    ----------
    instability : Instability
        As `InternalValidation.instability` returns it.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of 4 matplotlib Axes

    References
    ----------
    Riley, Collins (2023), "Stability of clinical prediction models developed using
    statistical or machine learning methods", figures 1 to 5.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.displays import InstabilityDisplay
    >>> from sklearn_calib.inference import internal_validation
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = internal_validation(LogisticRegression(), X[:, [1, 8]], y, n_resamples=20)
    >>> display = InstabilityDisplay.from_validation(found, threshold=0.2)
    >>> [ax.get_ylabel() for ax in display.axes_][1]
    'mean absolute difference'
    """

    instability: Instability

    @classmethod
    def from_validation(
        cls,
        validation: InternalValidation,
        *,
        threshold: float = 0.5,
        pos_label: object = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the instability of a model that was validated.

        Parameters
        ----------
        validation : InternalValidation
            Of bootstrap samples, with their predictions.
        threshold : float in (0, 1), default=0.5
            Of the decision.
        pos_label : label, default=None
            Whose probability it is about; the event of two classes by default.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : InstabilityDisplay

        Raises
        ------
        ValueError
            As `InternalValidation.instability`.
        """
        instability = validation.instability(threshold, pos_label=pos_label)
        return cls(instability).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Features,
        y: ArrayLike,
        *,
        threshold: float = 0.5,
        pos_label: object = None,
        n_resamples: int = 200,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        level: float = 0.95,
        random_state: RandomStateLike = 0,
        n_jobs: int | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Fit a classifier on resamples and draw.

        Parameters
        ----------
        estimator : classifier
            As `internal_validation` takes it.
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        threshold, pos_label
            As in `from_validation`.
        n_resamples, groups, sample_weight, level, random_state, n_jobs
            As in `internal_validation`.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : InstabilityDisplay
        """
        validation = internal_validation(
            estimator,
            X,
            y,
            measures=["log loss"],
            n_resamples=n_resamples,
            groups=groups,
            sample_weight=sample_weight,
            level=level,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        return cls.from_validation(
            validation,
            threshold=threshold,
            pos_label=pos_label,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the plotted data, with rows in the order of their predictions.

        Returns
        -------
        panels : list of list of tuple of ndarray
            The smoothed lower and upper ends of the rows' ranges, the mean absolute
            differences, and the shares of other decisions against the predictions; the
            calibration curve of the model, then those of the first 100 resampled
            models.
        """
        instability = self.instability
        order = np.argsort(instability.predicted, kind="stable")
        x = instability.predicted[order]
        # Rows of equal predictions share a value, so that the line is a function.
        _, value_index = np.unique(x, return_inverse=True)
        ranges = []
        for end in (instability.low, instability.high):
            smoothed = _smooth_medians(end[order])
            ranges.append((x, _replace_values_by_index_means(value_index, smoothed)))
        predicted, observed = instability.curves
        resampled_curves = zip(
            predicted[:_MAX_RESAMPLED_CURVES],
            observed[:_MAX_RESAMPLED_CURVES],
            strict=True,
        )
        return [
            ranges,
            [(x, instability.mean_absolute_error[order])],
            [(x, instability.changed[order])],
            [instability.curve, *resampled_curves],
        ]

    _subplot_options: ClassVar = {"figsize": (8.6, 7.4), "nrows": 2, "ncols": 2}

    _style_options = ("alpha", "color")

    _default_styles: ClassVar = {
        "resampled models": {"color": "C0"},
        "the model": {"color": "C3"},
    }

    def _draw(self, ranges, errors, decisions, curves):
        instability = self.instability
        panels = self.get_plotted_data()
        order = np.argsort(instability.predicted, kind="stable")
        # Evenly spaced ranks: thousands of bars would be a filled area.
        shown_rows = order[_choose_evenly_spaced_indices(len(order), _MAX_RANGE_BARS)]
        draw_unit_square_and_diagonal(ranges)
        resampled_style, model_style = self.styles_.values()
        ranges.vlines(
            instability.predicted[shown_rows],
            instability.low[shown_rows],
            instability.high[shown_rows],
            lw=0.7,
            **{"alpha": 0.35} | resampled_style,
        )
        models = "models" if is_small(ranges) else "the models, smoothed"
        label = f"{100 * instability.level:.0f} % of {models}"
        for end, name in zip(panels[0], (label, None), strict=True):
            ranges.plot(*end, lw=1.4, label=name, **model_style)
        dot_style = {"s": 7, "lw": 0, "alpha": 0.4} | resampled_style
        mean = instability.mean_absolute_error.mean()
        errors.scatter(*panels[1][0], **dot_style)
        errors.axhline(mean, lw=1.4, **model_style, label=f"mean {mean:.3f}")
        # The legend is above the points.
        errors.set_ylim(0, 1.2 * errors.get_ylim()[1])
        decisions.scatter(*panels[2][0], **dot_style)
        decisions.axvline(
            instability.threshold,
            color=blend_text_with_background(decisions, 0.35),
            lw=1,
            ls="--",
            label=f"threshold {instability.threshold:.3g}",
        )
        decisions.set(ylim=(-0.02, 1.02))
        draw_unit_square_and_diagonal(curves)
        model_curve, *resampled_curves = panels[3]
        for number, curve in enumerate(resampled_curves):
            label = None if number else "resampled"
            curves.plot(*curve, lw=0.7, label=label, **{"alpha": 0.3} | resampled_style)
        curves.plot(*model_curve, lw=1.8, label="the model", **model_style)
        all_axes = (ranges, errors, decisions, curves)
        for ax, (x_text, y_text) in zip(all_axes, _AXIS_LABELS_BY_PANEL, strict=True):
            ax.set(xlim=(-0.02, 1.02), xlabel=x_text, ylabel=y_text)
            # The legend must not cover the line at a small threshold.
            is_right = ax is decisions and instability.threshold < 0.5
            side = "right" if is_right else "left"
            add_legend(ax, loc=f"upper {side}", bbox_to_anchor=None)


def _replace_values_by_index_means(value_index, values):
    """Average rows of one prediction, such as those of a forest, so that a line has one value."""
    totals = np.bincount(value_index, values)
    means = totals / np.bincount(value_index)
    return means[value_index]


def _choose_evenly_spaced_indices(n, n_indices):
    """Return at most `n_indices` evenly spaced indices of an array of length `n`."""
    return np.unique(np.linspace(0, n - 1, n_indices).round().astype(np.intp))


def _smooth_medians(values):
    """Smooth values with medians of neighbours."""
    half = len(values) // (2 * _SMOOTHING_WINDOW_DIVISOR)
    if half == 0:
        return values
    # At the ends the window contains copies of the end value.
    padded = np.pad(values, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    # Medians at 200 places are enough for a line.
    positions = _choose_evenly_spaced_indices(len(values), 200)
    medians = np.median(windows[positions], axis=1)
    return np.interp(np.arange(len(values)), positions, medians)
