"""InstabilityDisplay: how much predictions change when a model is developed on other rows."""

import textwrap
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import ArrayLike, AxesLike, Estimator, Features, RandomStateLike, Self
from ..inference import Instability, InternalValidation, internal_validation
from ._base import CurveKwargs, Display, PlottedData, blend_color, draw_unit_square

# The range of at most this many rows is drawn.
_MAX_BARS = 300
_MAX_CURVES = 100
# Panels below this width get shorter titles.
NARROW_PANEL_INCHES = 2.2
# The width of a letter, relative to the font size.
_LETTER_WIDTH_RATIO = 0.52
#: Of each panel the labels of the axes, and the title of a small one.
_PANEL_TEXTS = (
    (
        "prediction of the model",
        "prediction of the resampled models",
        "resampled predictions",
    ),
    ("prediction of the model", "mean absolute difference", "mean absolute difference"),
    (
        "prediction of the model",
        "share of models that decide otherwise",
        "share deciding otherwise",
    ),
    ("prediction on the original rows", "observed, smoothed", "observed, smoothed"),
)
# The window that smooths the ends of the ranges has 1 / 20 of the rows.
_N_SMOOTHING_WINDOWS = 20


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
        found = self.instability
        order = np.argsort(found.predicted, kind="stable")
        x = found.predicted[order]
        # Rows of equal predictions share a value, so that the line is a function.
        _, place = np.unique(x, return_inverse=True)
        shown = [
            [
                (x, _average_equal_predictions(place, _smooth_medians(end[order])))
                for end in (found.low, found.high)
            ],
            [(x, found.mean_absolute_error[order])],
            [(x, found.changed[order])],
        ]
        several = zip(*(part[:_MAX_CURVES] for part in found.curves), strict=True)
        return [*shown, [found.curve, *several]]

    _figure: ClassVar = {"figsize": (8.6, 7.4), "nrows": 2, "ncols": 2}

    _styled = ("alpha", "color")

    _look: ClassVar = {
        "resampled models": {"color": "C0"},
        "the model": {"color": "C3"},
    }

    def _draw(self, ranges, errors, decisions, curves):
        found = self.instability
        panels = self.get_plotted_data()
        order = np.argsort(found.predicted, kind="stable")
        # Evenly spaced ranks: thousands of bars would be a filled area.
        some = order[
            np.unique(np.linspace(0, len(order) - 1, _MAX_BARS).round().astype(np.intp))
        ]
        predicted = found.predicted[some]
        low = found.low[some]
        high = found.high[some]
        draw_unit_square(ranges)
        several, one = self.styles_.values()
        ranges.vlines(predicted, low, high, lw=0.7, **{"alpha": 0.35} | several)
        label = f"{100 * found.level:.0f} % of the models" + ", smoothed" * (
            not _is_narrow(ranges)
        )
        for end, name in zip(panels[0], (label, None), strict=True):
            ranges.plot(*end, lw=1.4, label=name, **one)
        mean = found.mean_absolute_error.mean()
        errors.scatter(*panels[1][0], s=7, lw=0, **{"alpha": 0.4} | several)
        errors.axhline(mean, lw=1.4, **one, label=f"mean {mean:.3f}")
        # The legend is above the points.
        errors.set_ylim(0, 1.2 * errors.get_ylim()[1])
        decisions.scatter(*panels[2][0], s=7, lw=0, **{"alpha": 0.4} | several)
        label = f"threshold {found.threshold:.3g}"
        decisions.axvline(
            found.threshold,
            color=blend_color(decisions, 0.35),
            lw=1,
            ls="--",
            label=label,
        )
        decisions.set(ylim=(-0.02, 1.02))
        draw_unit_square(curves)
        own, *others = panels[3]
        for number, other in enumerate(others):
            label = (
                None if number else "resampled" + " models" * (not _is_narrow(curves))
            )
            curves.plot(*other, lw=0.7, label=label, **{"alpha": 0.3} | several)
        label = "the model" + " itself" * (not _is_narrow(curves))
        curves.plot(*own, lw=1.8, label=label, **one)
        places = ("left", "left", "right" if found.threshold < 0.5 else "left", "left")
        for ax, texts, place in zip(
            (ranges, errors, decisions, curves), _PANEL_TEXTS, places, strict=True
        ):
            ax.set(xlim=(-0.02, 1.02))
            (_write_small_labels if _is_narrow(ax) else _write_labels)(
                ax, place, *texts
            )


def _is_narrow(ax):
    return ax.get_window_extent().width < NARROW_PANEL_INCHES * ax.figure.dpi


def _write_labels(ax, place, x_text, y_text, _):
    """Write the labels, in as many lines as needed, and the legend."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size=ax.yaxis.label.get_size()).get_size_in_points()
    height = 72 * ax.get_window_extent().height / ax.figure.dpi
    lines = textwrap.wrap(y_text, max(int(height / (_LETTER_WIDTH_RATIO * size)), 8))
    ax.set(xlabel=x_text, ylabel="\n".join(lines))
    _add_legend(ax, place, "small")


def _write_small_labels(ax, place, _, __, title):
    """Write a title in place of a label on a small panel, with three ticks."""
    ax.set_title(title, loc="left", fontsize="x-small", pad=3)
    spec = ax.get_subplotspec()
    if spec is None or spec.is_last_row():
        ax.set_xlabel("prediction", fontsize="x-small", labelpad=1)
    ax.tick_params(labelsize="x-small", pad=2)
    ax.locator_params(nbins=3)
    _add_legend(ax, place, "x-small", handlelength=1, borderpad=0, handletextpad=0.4)


def _add_legend(ax, place, size, **options):
    """Add a legend above the drawing, which stays visible."""
    ax.legend(
        loc=f"upper {place}",
        fontsize=size,
        framealpha=0.7,
        edgecolor="none",
        fancybox=False,
        **options,
    )


def _average_equal_predictions(place, values):
    """Average rows of one prediction, such as those of a forest, so that a line has one value."""
    return (np.bincount(place, values) / np.bincount(place))[place]


def _smooth_medians(values):
    """Smooth values with medians of neighbours."""
    half = len(values) // (2 * _N_SMOOTHING_WINDOWS)
    if half == 0:
        return values
    # At the ends the window contains copies of the end value.
    padded = np.pad(values, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    # Medians at 200 places are enough for a line.
    places = np.unique(np.linspace(0, len(values) - 1, 200).round().astype(np.intp))
    return np.interp(np.arange(len(values)), places, np.median(windows[places], axis=1))
