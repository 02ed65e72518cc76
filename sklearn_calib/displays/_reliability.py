"""ReliabilityDisplay: draws reliability curves; the numbers come from `reliability_curve`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from scipy.special import expit

from .._argument_checks import check_choice
from .._kernels._picture_axes import INNER_LOG_ODDS_EDGES, LogitAxis
from .._show import escape_mathtext
from .._sklearn_compat import safe_indexing
from .._typing import (
    ArrayLike,
    Axes,
    AxesLike,
    Bands,
    CurveStrategy,
    Estimator,
    Features,
    Multiclass,
    Multilabel,
    NumberOfBins,
    PictureScale,
    RandomStateLike,
    Self,
)
from .._validation import align_columns, check_and_get_common_index
from ..exceptions import invalid_input
from ..metrics import ReliabilityCurve, reliability_curve
from ._base import (
    BaseCurveByModelDisplay,
    CurveKwargs,
    PlottedData,
    add_legend,
    blend_text_with_background,
    draw_unit_square_and_diagonal,
    name_models,
    omit_repeated_label,
    predict_proba_by_model_and_labels,
    set_log_odds_scale,
)

_BINNED_STRATEGIES = ("quantile", "uniform")
_N_BAND_RESAMPLES = 200
#: The label in the legend of a filled band.
_BAND_LABEL_BY_STRATEGY = {
    "isotonic": None,
    "polynomial": "calibration belt ({level})",
    "loess": "interval at each point ({level})",
    "spline": "interval at each point ({level})",
}


class ReliabilityDisplay(BaseCurveByModelDisplay):
    """Reliability diagram: observed frequency against predicted probability.

    With ``scale="logit"`` both axes and the histogram are on log-odds, with ticks in
    probabilities: rare events fill the picture, which otherwise are a blot in its
    corner. Exact zeros and ones have no log-odds; they lie in margins behind dotted
    lines, with open markers.

    Several displays on the same axes, ``ax=first.axes_``, take colours in turn, share
    the histogram, and have one entry for the bands in the legend.

    Make one with `from_predictions`, `from_estimator` or `from_cv_results`; draw it
    again with `plot`. ``multilabel="macro"`` draws one panel for each of many labels
    per row.

    Parameters
    ----------
    curves : dict of str to list of ReliabilityCurve
        Model names and their curves, one per panel, as `reliability_curve` returns
        them.

    Attributes
    ----------
    curves : dict
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        One per panel.
    histogram_axes_ : list of matplotlib Axes
        Below the panels, inside the area of their axes; empty without histograms.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import ReliabilityDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> display = ReliabilityDisplay.from_predictions(y, proba, name="overconfident")
    >>> display.axes_[0].get_ylabel()
    'observed frequency'
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        strategy: CurveStrategy = "quantile",
        n_bins: NumberOfBins = 15,
        multiclass: Multiclass = "auto",
        level: float = 0.9,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        multilabel: Multilabel = None,
        random_state: RandomStateLike = 0,
        name: str | None = None,
        bands: Bands = "auto",
        scale: PictureScale = "auto",
        histogram: bool = True,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the reliability curve of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict
            Probabilities, or a dict of the names of models to their probabilities.
        strategy, n_bins, multiclass, level, sample_weight, labels, pos_label
            As in `reliability_curve`.
        multilabel, random_state
            As in `reliability_curve`.
        n_resamples : int, default=None
            As in `reliability_curve`; by default 200, or 0 if no band needs them.
        name : str, default="model"
            The name of a single model.
        bands, scale, histogram, ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        check_choice("bands", bands, get_args(Bands))
        models = name_models(y_proba, name)
        if n_resamples is None:
            shown_bands = _choose_bands(bands, models)
            needs_resamples = strategy == "isotonic" or shown_bands != "confidence"
            n_resamples = (
                _N_BAND_RESAMPLES if needs_resamples and shown_bands != "none" else 0
            )
        curves = {}
        for key, proba in models.items():
            curves[key] = reliability_curve(
                y_true,
                proba,
                strategy=strategy,
                n_bins=n_bins,
                multiclass=multiclass,
                level=level,
                n_resamples=n_resamples,
                sample_weight=sample_weight,
                labels=labels,
                pos_label=pos_label,
                multilabel=multilabel,
                random_state=random_state,
            )
        return cls(curves).plot(
            ax=ax,
            curve_kwargs=curve_kwargs,
            bands=bands,
            scale=scale,
            histogram=histogram,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator | dict[str, Estimator],
        X: Features,
        y: ArrayLike,
        *,
        strategy: CurveStrategy = "quantile",
        n_bins: NumberOfBins = 15,
        multiclass: Multiclass = "auto",
        level: float = 0.9,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        multilabel: Multilabel = None,
        random_state: RandomStateLike = 0,
        name: str | None = None,
        bands: Bands = "auto",
        scale: PictureScale = "auto",
        histogram: bool = True,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the reliability curve of a fitted classifier, or of several.

        Parameters
        ----------
        estimator : classifier or dict of str to classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        strategy, n_bins, multiclass, level, n_resamples, sample_weight, labels
            As in `from_predictions`.
        pos_label, multilabel, random_state, bands, scale, histogram, ax, curve_kwargs
            As in `from_predictions`.
        name : str, default=None
            The name of a single model; by default that of its class.

        Returns
        -------
        display : ReliabilityDisplay

        Raises
        ------
        TypeError
            A model without ``predict_proba``; the message names what to write.
        """
        y_proba, labels = predict_proba_by_model_and_labels(
            cls, estimator, name, X, y, labels, multilabel
        )
        return cls.from_predictions(
            y,
            y_proba,
            strategy=strategy,
            n_bins=n_bins,
            multiclass=multiclass,
            level=level,
            n_resamples=n_resamples,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            multilabel=multilabel,
            random_state=random_state,
            bands=bands,
            scale=scale,
            histogram=histogram,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        X: Features,
        y: ArrayLike,
        *,
        strategy: CurveStrategy = "quantile",
        n_bins: NumberOfBins = 15,
        multiclass: Multiclass = "auto",
        level: float = 0.9,
        n_resamples: int | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        multilabel: Multilabel = None,
        random_state: RandomStateLike = 0,
        name: str | None = None,
        bands: Bands = "auto",
        scale: PictureScale = "auto",
        histogram: bool = True,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw pooled out-of-fold predictions.

        Parameters
        ----------
        cv_results : dict
            From ``sklearn.model_selection.cross_validate`` with
            ``return_estimator=True`` and ``return_indices=True``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The data that were cross-validated.
        strategy, n_bins, multiclass, level, n_resamples, labels, pos_label, multilabel
            As in `from_predictions`.
        random_state, bands, scale, histogram, ax, curve_kwargs
            As in `from_predictions`.
        sample_weight : array-like of shape (n_samples,), default=None
            One entry per row of `X`.
        name : str, default=None
            By default that of the class of the estimators.

        Returns
        -------
        display : ReliabilityDisplay

        Raises
        ------
        ValueError
            The results hold no estimators or no indices, or a fold's model missed a
            class.
        """
        check_and_get_common_index(X, y, sample_weight)
        proba, classes, rows = _pool_held_out_proba_classes_and_rows(
            cv_results, X, has_one_label=multilabel is None
        )
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight)[rows]
        if multilabel is None and labels is None:
            labels = classes
        name = name or type(cv_results["estimator"][0]).__name__
        return cls.from_predictions(
            safe_indexing(y, rows),
            proba,
            strategy=strategy,
            n_bins=n_bins,
            multiclass=multiclass,
            level=level,
            n_resamples=n_resamples,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            multilabel=multilabel,
            random_state=random_state,
            name=name,
            bands=bands,
            scale=scale,
            histogram=histogram,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def plot(
        self,
        *,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
        bands: Bands = "auto",
        scale: PictureScale = "auto",
        histogram: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of Axes, default=None
            One per panel; a new figure by default.
        curve_kwargs : dict or list of dict, default=None
            What the curves of the models look like: alpha, color, label, linestyle,
            linewidth, marker, markersize. Bands and histogram have the colour of their
            curve.
        bands : {"auto", "both", "consistency", "confidence", "none"}, default="auto"
            Consistency band: where the points would lie if the predictions were
            calibrated. Confidence band: for the true frequencies. "auto" draws both for
            one model, confidence bands for two, and none for more.
        scale : {"auto", "linear", "logit"}, default="auto"
            Of both axes. "logit" is for rare events, and for probabilities near 0 or 1.
            "auto" is the scale of the display that is on the axes already, else
            "linear".
        histogram : bool, default=True
            Whether to draw how often each probability is predicted, below the curve.
            Both share the area of the axes. A display that is drawn on the axes of
            another follows that one.

        Returns
        -------
        self : ReliabilityDisplay

        Raises
        ------
        ValueError
            An unknown option, another number of axes than panels, or axes on which a
            display of the other scale is.
        """
        check_choice("bands", bands, get_args(Bands))
        check_choice("scale", scale, get_args(PictureScale))
        bands = _choose_bands(bands, self.curves)
        previous_scales = set()
        if ax is not None:
            previous_scales = set(map(find_display_scale, np.array(ax).flat)) - {None}
        if scale == "auto":
            scale = "logit" if previous_scales == {"logit"} else "linear"
        for previous_scale in previous_scales - {scale}:
            raise invalid_input(
                expected=f"axes for scale={scale!r}",
                got=f"axes with a display of scale={previous_scale!r}",
                hint="Leave scale out, or pass other axes",
            )
        return self._draw_on_axes(
            ax,
            curve_kwargs,
            bands=bands,
            logit=scale == "logit",
            histogram=histogram,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            For each panel the observed frequencies against the predicted probabilities
            of each model.
        """
        panels = []
        for _, curve_by_model in self._list_titles_with_curve_by_model():
            curves = [curve for curve in curve_by_model.values() if curve is not None]
            panels.append([(curve.predicted, curve.observed) for curve in curves])
        return panels

    def _list_titles_with_curve_by_model(self):
        """Return, for each panel, its title and {model: its curve or None}."""
        panels = []
        for panel, first_curve in enumerate(next(iter(self.curves.values()))):
            title = first_curve.title
            curve_by_model = {}
            for name, curves in self.curves.items():
                curve_by_model[name] = _find_curve(curves, title, panel)
            panels.append((title, curve_by_model))
        return panels

    def _make_axes(self, plt):
        return self._make_figure_and_get_panel_axes(plt, 4.2, 5.3)

    def _draw(self, *axes, bands, logit, histogram):
        self.histogram_axes_ = []
        for ax, (title, curves) in zip(
            axes, self._list_titles_with_curve_by_model(), strict=True
        ):
            drawn_curves = [curve for curve in curves.values() if curve is not None]
            panel = Panel(ax, drawn_curves, logit, histogram)
            for curve, style in self._iter_styled_curves(ax, curves):
                panel.add_curve(curve, bands, style)
            ax.set_title(escape_mathtext(title))
            if panel.histogram is not None:
                panel.scale_histogram_axis()
                self.histogram_axes_.append(panel.histogram)
        add_legend(axes[0], loc="best", bbox_to_anchor=None)


def _choose_bands(bands, models):
    """Return the bands that are drawn for so many models."""
    if bands != "auto":
        return bands
    return {1: "both", 2: "confidence"}.get(len(models), "none")


def _find_curve(curves, title, panel):
    """Return the curve of a panel; a model may lack one ("predicted x")."""
    if panel < len(curves) and curves[panel].title == title:
        return curves[panel]
    return next((curve for curve in curves if curve.title == title), None)


def _pool_held_out_proba_classes_and_rows(cv_results, X, has_one_label):
    """Return the predictions of all folds, the classes, and the rows that are predicted."""
    if missing := {"estimator", "indices"} - set(cv_results):
        raise invalid_input(
            "cv_results",
            expected="cv_results with 'estimator' and 'indices'",
            got=repr(sorted(cv_results))[:80],
            sentence=f"cv_results lacks {' and '.join(map(repr, sorted(missing)))}",
            hint="Call cross_validate(..., return_estimator=True, return_indices=True)",
        )
    models = cv_results["estimator"]
    tests = cv_results["indices"]["test"]
    classes = models[0].classes_
    if has_one_label:
        classes = np.sort(classes)
    proba_by_fold = []
    for model, test in zip(models, tests, strict=True):
        model_classes = model.classes_
        if not np.array_equal(
            np.sort(model_classes) if has_one_label else model_classes, classes
        ):
            raise invalid_input(
                expected="the same classes in every fold",
                got=f"{model_classes.tolist()} and {classes.tolist()}",
                hint="Use stratified folds",
            )
        proba = model.predict_proba(safe_indexing(X, test))
        proba_by_fold.append(
            align_columns(proba, model_classes, classes) if has_one_label else proba
        )
    return _stack_folds(proba_by_fold), classes, np.concatenate(tests)


def _stack_folds(proba_by_fold):
    """Stack the probabilities of several folds; those of many labels may be lists."""
    if isinstance(proba_by_fold[0], list):
        return [
            np.vstack(label_proba) for label_proba in zip(*proba_by_fold, strict=True)
        ]
    return np.vstack(proba_by_fold)


_HISTOGRAM_LABEL = "_histogram of a reliability diagram"
_DIAGONAL_LABEL = "_diagonal of a reliability diagram"
_MARGIN_LABEL = "_where a margin begins"
#: Of the side of a diagram: the height of its histogram, and the gap between them.
_HISTOGRAM_HEIGHT_FRACTION = 0.22
_HISTOGRAM_GAP_FRACTION = 0.05
#: The tick labels and the label below a panel, in lines of text.
_TICK_LABEL_LINES = 3.4
_SMALL_SIDE_INCHES = 1.8


def find_histogram(ax: Axes) -> Axes | None:
    """Return the histogram below a panel of a display; None for other axes."""
    children = getattr(ax, "child_axes", ())
    return next(
        (child for child in children if child.get_label() == _HISTOGRAM_LABEL),
        None,
    )


def find_display_scale(ax: Axes) -> str | None:
    """Return the scale of the display on these axes, or None without a display."""
    labels = [line.get_label() for line in getattr(ax, "lines", ())]
    if _DIAGONAL_LABEL not in labels:
        return None
    return "logit" if ax.get_xscale() == "function" else "linear"


class _SquarePanelLocator:
    """Place a square, its histogram and its labels inside the area of an axes.

    It is what matplotlib calls an axes locator: the layout of the figure chooses the
    area, and this chooses the place of the square in it. If the square would be small,
    a rectangle fills the area, and the labels are outside it as those of other axes.
    """

    def __init__(self, ax):
        # The layouts of a figure ask the locator for it.
        self.get_subplotspec = ax.get_subplotspec

    def __call__(self, ax, renderer):
        from matplotlib import rcParams
        from matplotlib.transforms import Bbox

        area = ax.get_position(original=True)
        width, height = ax.figure.bbox.size / ax.figure.dpi
        labels = _TICK_LABEL_LINES * rcParams["font.size"] / 72
        total_height = 1 + _HISTOGRAM_GAP_FRACTION + _HISTOGRAM_HEIGHT_FRACTION
        side = min(area.width * width, (area.height * height - labels) / total_height)
        if side < _SMALL_SIDE_INCHES:
            bottom = area.y1 - area.height / total_height
            return Bbox.from_extents(area.x0, bottom, area.x1, area.y1)
        left = area.x0 + (area.width - side / width) / 2
        slack = area.height - (total_height * side + labels) / height
        top = area.y1 - max(slack, 0.0) / 2
        return Bbox.from_extents(left, top - side / height, left + side / width, top)


class Panel:
    """A reliability diagram on one axes, and the axes of the histogram below.

    Parameters
    ----------
    ax : matplotlib Axes
        New ones, or those of a display that was drawn before: then the histogram is
        shared.
    curves : list of ReliabilityCurve
        Those that will be added.
    logit : bool
        Whether both axes are on log-odds.
    with_histogram : bool
        Whether new axes get a histogram.
    """

    axis: LogitAxis

    def __init__(
        self,
        ax: Axes,
        curves: list[ReliabilityCurve],
        logit: bool,
        with_histogram: bool,
    ) -> None:
        self.ax = ax
        self.logit = logit
        is_new = find_display_scale(ax) is None
        self.is_only_curve = is_new and len(curves) == 1
        if is_new:
            # The locator of a histogram chooses the aspect.
            draw_unit_square_and_diagonal(
                ax, aspect="auto" if with_histogram else "equal"
            )
            ax.lines[-1].set_label(_DIAGONAL_LABEL)
        # The types of matplotlib do not describe the columns of `stairs`.
        self.histogram: Any = find_histogram(ax)
        if is_new and with_histogram:
            self.histogram = self._make_inset_histogram_axes()
        lowest = ax if self.histogram is None else self.histogram
        if is_new:
            lowest.set_xlabel("predicted probability")
            ax.set_ylabel("observed frequency")
        if self.histogram is not None:
            for patch in self.histogram.patches:
                # The histogram of an earlier display is no longer alone.
                patch.set(edgecolor=patch.get_facecolor(), fill=False, linewidth=1)
        if logit:
            self._set_log_odds_scale(curves)
        if lowest is not ax:
            ax.tick_params(labelbottom=False)

    def _make_inset_histogram_axes(self):
        """Add axes below the diagram; the two share the area of the axes."""
        locator = _SquarePanelLocator(self.ax)
        self.ax.set_axes_locator(locator)
        self.ax.apply_aspect(locator(self.ax, None))
        bottom = -_HISTOGRAM_GAP_FRACTION - _HISTOGRAM_HEIGHT_FRACTION
        position = 0, bottom, 1, _HISTOGRAM_HEIGHT_FRACTION
        histogram = self.ax.inset_axes(position, sharex=self.ax, label=_HISTOGRAM_LABEL)
        histogram.set(ylabel="share")
        histogram.spines[["top", "right"]].set_visible(False)
        return histogram

    def _set_log_odds_scale(self, curves):
        """Scale, limits and ticks, with space for these curves and for those drawn before."""
        ax = self.ax
        engine = ax.figure.get_layout_engine()
        if engine is not None:
            # The number of ticks depends on the final size of the panel.
            engine.execute(ax.figure.canvas.figure)
            locator = ax.get_axes_locator()
            ax.apply_aspect(locator and locator(ax, None))
        axis = self.axis = set_log_odds_scale(ax, LogitAxis.from_curves(curves))
        if self.histogram is not None:
            self.histogram.tick_params(axis="x", labelsize="small")
        for line in [*ax.lines]:
            if line.get_label() == _MARGIN_LABEL:
                line.remove()
        style: dict[str, Any] = {
            "color": blend_text_with_background(ax, 0.55),
            "lw": 0.8,
            "ls": ":",
            "zorder": 1.4,
            "label": _MARGIN_LABEL,
        }
        for border in axis.margin_border_proba:
            ax.axvline(border, **style)
            ax.axhline(border, **style)

    def add_curve(
        self, curve: ReliabilityCurve | None, bands: str, style: dict[str, Any]
    ) -> None:
        """Draw a curve with its bands and its histogram; without one its colour is left out."""
        if curve is None:
            return
        if self.logit:
            curve = _restrict_curve_to_shown_points(
                curve, self.axis.is_proba_drawn_unclipped(curve.predicted)
            )
        draw_curve(self.ax, curve, style, bands)
        color = style["color"]
        is_binned = curve.strategy in _BINNED_STRATEGIES
        if self.logit:
            self._mark_exact_values(curve, color, is_binned)
        if self.histogram is not None:
            self._draw_shares(curve, color)

    def _draw_shares(self, curve, color):
        """Draw the histogram of the scores."""
        fractions = curve.histogram
        edges = np.linspace(0, 1, len(fractions) + 1)
        if self.logit:
            fractions = curve.log_odds_histogram[1:-1]
            edges = expit(INNER_LOG_ODDS_EDGES)
            self._draw_end_bars(curve, color)
        self.histogram.stairs(
            fractions, edges, color=color, fill=self.is_only_curve, alpha=0.8
        )

    def _mark_exact_values(self, curve, color, is_binned):
        """Open markers if a prediction or a frequency is exactly 0 or 1."""
        x = curve.predicted
        y = curve.observed
        is_exact = (x <= 0) | (x >= 1) | (((y <= 0) | (y >= 1)) & is_binned)
        if is_exact.any():
            self.ax.plot(
                x[is_exact],
                y[is_exact],
                "o",
                ms=5,
                color=color,
                mfc=self.ax.get_facecolor(),
                zorder=2.5,
            )

    def _draw_end_bars(self, curve, color):
        """Draw the shares of rows at exactly 0 and 1 as bars in the margins."""
        end_fractions = curve.log_odds_histogram[[0, -1]]
        for p, fraction in zip((0, 1), end_fractions, strict=True):
            if fraction > 0:
                self.histogram.plot(
                    [p, p],
                    [0, fraction],
                    solid_capstyle="butt",
                    color=color,
                    lw=5 if self.is_only_curve else 2,
                    alpha=0.8,
                )

    def scale_histogram_axis(self) -> None:
        """Fit the height of the histogram to its columns."""
        columns = [patch.get_data().values.max() for patch in self.histogram.patches]
        ends = [line.get_ydata().max() for line in self.histogram.lines]
        self.histogram.set_ylim(0, 1.05 * max([*columns, *ends], default=1))


def _restrict_curve_to_shown_points(curve, is_shown):
    """Select the visible points of a curve."""
    names = ("consistency_low", "consistency_high", "confidence_low", "confidence_high")
    bands = {name: getattr(curve, name) for name in names}
    return replace(
        curve,
        predicted=curve.predicted[is_shown],
        observed=curve.observed[is_shown],
        **{
            name: band if band is None else band[is_shown]
            for name, band in bands.items()
        },
    )


def draw_curve(
    ax: Axes, curve: ReliabilityCurve, style: dict[str, Any], bands: str = "both"
) -> None:
    """Draw a reliability curve with its bands.

    Parameters
    ----------
    ax : matplotlib Axes
    curve : ReliabilityCurve
    style : dict
        What it looks like; its color is that of the confidence band, too.
    bands : {"both", "consistency", "confidence", "none"}, default="both"
        As far as the curve has them.
    """
    if bands in ("both", "consistency") and curve.consistency_low is not None:
        label = omit_repeated_label(ax, f"if calibrated ({100 * curve.level:.0f} %)")
        ends: Any = (curve.consistency_low, curve.consistency_high)
        band_color = blend_text_with_background(ax, 0.85)
        ax.fill_between(
            curve.predicted,
            *ends,
            color=band_color,
            lw=0,
            zorder=1,
            label=label,
        )
    if bands in ("both", "confidence") and curve.confidence_low is not None:
        _draw_confidence(ax, curve, style["color"])
    line_style: dict[str, Any] = {}
    if curve.strategy == "isotonic":
        line_style = {"drawstyle": "steps-mid"}
    if curve.strategy in _BINNED_STRATEGIES:
        line_style = {"marker": "o", "markersize": 4}
    ax.plot(curve.predicted, curve.observed, **line_style | style)


def _draw_confidence(axes, curve, color):
    if curve.strategy in _BAND_LABEL_BY_STRATEGY:
        text = _BAND_LABEL_BY_STRATEGY[curve.strategy]
        level = f"{100 * curve.level:.0f} %"
        label = omit_repeated_label(axes, text.format(level=level)) if text else None
        axes.fill_between(
            curve.predicted,
            curve.confidence_low,
            curve.confidence_high,
            label=label,
            step=None if text else "mid",
            color=color,
            alpha=0.25,
            lw=0,
        )
        return
    low = np.minimum(curve.confidence_low, curve.observed)
    high = np.maximum(curve.confidence_high, curve.observed)
    axes.vlines(curve.predicted, low, high, color=color, lw=1, alpha=0.7)
