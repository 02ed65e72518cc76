"""InstabilityDisplay: how much predictions change when a model is developed on other rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import ArrayLike, AxesLike, Estimator, Features, Self
from ..inference import internal_validation
from ._base import Display, draw_diagonal, shade

if TYPE_CHECKING:
    from ..inference import Instability, InternalValidation

_MOST_BARS = 300  # rows whose range is drawn
_MOST_CURVES = 100
_WINDOW = 20  # of the smoothed ends: a part of 1 / 20 of the rows on either side


class InstabilityDisplay(Display):
    """How much the predictions for each row depend on which rows the model was developed on.

    Four panels against the predictions of the model itself: the range of the predictions of the
    resampled models for each row, their mean absolute difference, the share of these models that
    decide otherwise at a threshold, and their calibration curves on the original rows.

    Make one with `from_validation` or `from_estimator`; draw it again with `plot`.

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
    Riley, Collins (2023), "Stability of clinical prediction models developed using statistical or
    machine learning methods", figures 1 to 5.

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

    def __init__(self, instability: "Instability") -> None:
        self.instability = instability

    @classmethod
    def from_validation(
        cls,
        validation: "InternalValidation",
        *,
        threshold: float = 0.5,
        pos_label: object = None,
        ax: AxesLike | None = None,
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
        ax : sequence of 4 matplotlib Axes, default=None
            A new figure by default.

        Returns
        -------
        display : InstabilityDisplay

        Raises
        ------
        ValueError
            As `InternalValidation.instability`.
        """
        return cls(validation.instability(threshold, pos_label=pos_label)).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Features,
        y: ArrayLike,
        *,
        threshold: float = 0.5,
        pos_label: object = None,
        ax: AxesLike | None = None,
        **options: Any,
    ) -> Self:
        """Fit a classifier on resamples and draw.

        Parameters
        ----------
        estimator : classifier
            As `internal_validation` takes it.
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        threshold, pos_label, ax
            As in `from_validation`.
        **options
            Passed to `internal_validation`: n_resamples, groups, sample_weight, level,
            random_state, n_jobs.

        Returns
        -------
        display : InstabilityDisplay
        """
        options.setdefault("measures", ["log loss"])
        found = internal_validation(estimator, X, y, **options)
        return cls.from_validation(found, threshold=threshold, pos_label=pos_label, ax=ax)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """What the panels show, rows in the order of their predictions.

        Returns
        -------
        panels : list of list of tuple of ndarray
            The smoothed lower and upper ends of the rows' ranges, the mean absolute differences,
            and the shares of other decisions against the predictions; the calibration curve of the
            model, then those of the first 100 resampled models.
        """
        found = self.instability
        order = np.argsort(found.predicted, kind="stable")
        x = found.predicted[order]
        _, place = np.unique(x, return_inverse=True)
        shown = [
            [(x, _means(place, _smooth(end[order]))) for end in (found.low, found.high)],
            [(x, found.mean_absolute_error[order])],
            [(x, found.changed[order])],
        ]
        several = zip(*(part[:_MOST_CURVES] for part in found.curves), strict=True)
        return [*shown, [found.curve, *several]]

    def _new_axes(self, plt):
        return plt.subplots(2, 2, figsize=(8.6, 7.4), layout="constrained")[1]

    def _draw(self, ranges, errors, decisions, curves):
        found, panels = self.instability, self.points()
        order = np.argsort(found.predicted, kind="stable")
        some = order[np.unique(np.linspace(0, len(order) - 1, _MOST_BARS).round().astype(np.intp))]
        ends = found.low[some], found.high[some]
        draw_diagonal(ranges)
        ranges.vlines(found.predicted[some], *ends, color="C0", lw=0.7, alpha=0.35)
        label = f"{found.level:.0%} of the models, smoothed"
        for end, name in zip(panels[0], (label, None), strict=True):
            ranges.plot(*end, color="C3", lw=1.4, label=name)
        ranges.set(ylabel="prediction of the resampled models", ylim=(-0.02, 1.02))
        ranges.legend(loc="upper left", frameon=False, fontsize="small")
        mean = found.mean_absolute_error.mean()
        errors.scatter(*panels[1][0], s=7, color="C0", alpha=0.4, lw=0)
        errors.axhline(mean, color="C3", lw=1.4, label=f"mean {mean:.3f}")
        errors.set(ylabel="mean absolute difference", ylim=(0, None))
        errors.legend(loc="upper left", frameon=False, fontsize="small")
        decisions.scatter(*panels[2][0], s=7, color="C0", alpha=0.4, lw=0)
        label = f"threshold {found.threshold:.3g}"
        decisions.axvline(found.threshold, color=shade(decisions, 0.35), lw=1, ls="--", label=label)
        decisions.set(ylabel="share of models that decide otherwise", ylim=(-0.02, 1.02))
        decisions.legend(loc="upper right", frameon=False, fontsize="small")
        draw_diagonal(curves)
        own, *others = panels[3]
        for number, other in enumerate(others):
            label = None if number else "resampled models"
            curves.plot(*other, color="C0", lw=0.7, alpha=0.3, label=label)
        curves.plot(*own, color="C3", lw=1.8, label="the model itself")
        curves.set(ylabel="observed, smoothed", ylim=(-0.02, 1.02))
        curves.legend(loc="upper left", frameon=False, fontsize="small")
        for ax in (ranges, errors, decisions, curves):
            ax.set(xlabel="prediction of the model", xlim=(-0.02, 1.02))
            ax.spines[["top", "right"]].set_visible(False)
        curves.set(xlabel="prediction on the original rows")


def _means(place, values):
    """Of rows of one prediction, such as a forest has, the mean: a line has one value there."""
    return (np.bincount(place, values) / np.bincount(place))[place]


def _smooth(values):
    """Medians of neighbours."""
    half = len(values) // (2 * _WINDOW)
    if half == 0:
        return values
    padded = np.pad(values, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    places = np.unique(np.linspace(0, len(values) - 1, 200).round().astype(np.intp))
    return np.interp(np.arange(len(values)), places, np.median(windows[places], axis=1))
