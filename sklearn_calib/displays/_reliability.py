"""ReliabilityDisplay: draws reliability curves; the numbers come from `reliability_curve`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from .._argument_checks import check_known
from .._kernels._picture_axes import HISTOGRAM_EDGES, LogitAxis
from .._show import escape_mathtext
from .._sklearn_compat import safe_indexing
from .._typing import (
    ArrayLike,
    Axes,
    AxesLike,
    CurveStrategy,
    Estimator,
    Features,
    Multiclass,
    NumberOfBins,
    RandomStateLike,
    Self,
)
from .._validation import align_columns, check_indexes
from ..exceptions import invalid_input
from ..metrics import ReliabilityCurve, reliability_curve
from ._base import (
    CurveKwargs,
    ModelsDisplay,
    add_legend,
    blend_color,
    draw_unit_square,
    label_once,
    name_models,
    on_log_odds,
    predict_models,
)

_BANDS = ("auto", "both", "consistency", "confidence", "none")
_SCALES = ("auto", "linear", "logit")
_BINNED = ("quantile", "uniform")
_N_RESAMPLES = 200  # for bands, by default
#: What the legend says of a band that is filled, by strategy.
_FILLED = {
    "isotonic": None,
    "polynomial": "calibration belt ({level:.0%})",
    "loess": "interval at each point ({level:.0%})",
    "spline": "interval at each point ({level:.0%})",
}


class ReliabilityDisplay(ModelsDisplay):
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
        Below the panels.

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
        multilabel: Literal["macro", "micro"] | None = None,
        random_state: RandomStateLike = 0,
        name: str | None = None,
        bands: Literal["auto", "both", "consistency", "confidence", "none"] = "auto",
        scale: Literal["auto", "linear", "logit"] = "auto",
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
            As in `reliability_curve`; by default 200, or 0 if no bands are drawn.
        name : str, default="model"
            The name of a single model.
        bands, scale, ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        check_known("bands", bands, _BANDS)
        models = name_models(y_proba, name)
        if n_resamples is None:
            is_hidden = bands == "none" or (bands == "auto" and len(models) > 1)
            n_resamples = 0 if is_hidden else _N_RESAMPLES
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
            ax=ax, curve_kwargs=curve_kwargs, bands=bands, scale=scale
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
        multilabel: Literal["macro", "micro"] | None = None,
        random_state: RandomStateLike = 0,
        name: str | None = None,
        bands: Literal["auto", "both", "consistency", "confidence", "none"] = "auto",
        scale: Literal["auto", "linear", "logit"] = "auto",
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
        pos_label, multilabel, random_state, bands, scale, ax, curve_kwargs
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
        models = name_models(estimator, name, type(estimator).__name__)
        y_proba, labels = predict_models(cls, models, X, y, labels, multilabel)
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
        multilabel: Literal["macro", "micro"] | None = None,
        random_state: RandomStateLike = 0,
        name: str | None = None,
        bands: Literal["auto", "both", "consistency", "confidence", "none"] = "auto",
        scale: Literal["auto", "linear", "logit"] = "auto",
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
        random_state, bands, scale, ax, curve_kwargs
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
        check_indexes(X, y)
        proba, classes, rows = _pool_folds(
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
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def plot(
        self,
        *,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
        bands: Literal["auto", "both", "consistency", "confidence", "none"] = "auto",
        scale: Literal["auto", "linear", "logit"] = "auto",
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
            one model and none for several.
        scale : {"auto", "linear", "logit"}, default="auto"
            Of both axes. "logit" is for rare events, and for probabilities near 0 or 1.
            "auto" is the scale of the display that is on the axes already, else
            "linear".

        Returns
        -------
        self : ReliabilityDisplay

        Raises
        ------
        ValueError
            An unknown option, another number of axes than panels, or axes on which a
            display of the other scale is.
        """
        check_known("bands", bands, _BANDS)
        check_known("scale", scale, _SCALES)
        if bands == "auto":
            bands = "both" if len(self.curves) == 1 else "none"
        drawn = (
            set()
            if ax is None
            else {find_scale(one) for one in np.ravel(np.array(ax))} - {None}
        )
        if scale == "auto":
            scale = "logit" if drawn == {"logit"} else "linear"
        if drawn - {scale}:
            (other,) = drawn - {scale}
            raise invalid_input(
                expected=f"axes for scale={scale!r}",
                got=f"axes with a display of scale={other!r}",
                hint="Leave scale out, or pass other axes",
            )
        return self._drawn_on(ax, curve_kwargs, bands=bands, logit=scale == "logit")

    def points(self) -> list[list[tuple[Any, ...]]]:
        """Return the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            For each panel the observed frequencies against the predicted probabilities
            of each model.
        """
        return [
            [
                (curve.predicted, curve.observed)
                for curve in named.values()
                if curve is not None
            ]
            for _, named in self._list_panels()
        ]

    def _list_panels(self):
        """Return, for each panel, its title and {model: its curve or None}."""
        titles = [curve.title for curve in next(iter(self.curves.values()))]
        return [
            (
                title,
                {
                    name: _find_panel(curves, title, at)
                    for name, curves in self.curves.items()
                },
            )
            for at, title in enumerate(titles)
        ]

    def _new_axes(self, plt):
        return self._make_grid(plt, 4.2, 5.0, "tight")

    def _draw(self, *axes, bands, logit):
        self.histogram_axes_ = []
        for ax, (title, curves) in zip(axes, self._list_panels(), strict=True):
            panel = Panel(
                ax, [one for one in curves.values() if one is not None], logit
            )
            for curve, style in self._in_turn(ax, curves):
                panel.add_curve(curve, bands, style)
            ax.set_title(escape_mathtext(title))
            panel.finish_panel(ax is axes[0])
            self.histogram_axes_.append(panel.histogram)


def _find_panel(curves, title, panel):
    """Return the curve of a panel; a model may lack one ("predicted x")."""
    if panel < len(curves) and curves[panel].title == title:
        return curves[panel]
    return next((curve for curve in curves if curve.title == title), None)


def _pool_folds(cv_results, X, has_one_label):
    """Return the predictions of all folds, the classes, and the rows that are predicted."""
    if missing := {"estimator", "indices"} - set(cv_results):
        raise invalid_input(
            "cv_results",
            expected="cv_results with 'estimator' and 'indices'",
            got=f"no {' and no '.join(repr(m) for m in sorted(missing))}",
            hint="Call cross_validate(..., return_estimator=True, return_indices=True)",
        )
    models = cv_results["estimator"]
    tests = cv_results["indices"]["test"]
    classes = models[0].classes_
    if has_one_label:
        classes = np.sort(classes)
    parts = []
    for model, test in zip(models, tests, strict=True):
        known = model.classes_
        if not np.array_equal(np.sort(known) if has_one_label else known, classes):
            raise invalid_input(
                expected="the same classes in every fold",
                got=f"{known.tolist()} and {classes.tolist()}",
                hint="Use stratified folds",
            )
        part = model.predict_proba(safe_indexing(X, test))
        parts.append(align_columns(part, known, classes) if has_one_label else part)
    return _stack_folds(parts), classes, np.concatenate(tests)


def _stack_folds(parts):
    """Stack the probabilities of several folds; those of many labels may be lists."""
    if isinstance(parts[0], list):
        return [np.vstack(part) for part in zip(*parts, strict=True)]
    return np.vstack(parts)


_HISTOGRAM = "_histogram of a reliability diagram"
_MARGIN = "_where a margin begins"


def find_histogram(ax: Axes) -> Axes | None:
    """Return the axes below a panel of a display; None for other axes."""
    others = (
        ax.get_shared_x_axes().get_siblings(ax)
        if hasattr(ax, "get_shared_x_axes")
        else []
    )
    return next((one for one in others if one.get_label() == _HISTOGRAM), None)


def find_scale(ax: Axes) -> str | None:
    """Return the scale of the display on these axes, or None without a display."""
    if find_histogram(ax) is None:
        return None
    return "logit" if ax.get_xscale() == "function" else "linear"


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
    """

    histogram: Any  # matplotlib's types know no columns of `stairs`
    axis: LogitAxis

    def __init__(self, ax: Axes, curves: list[ReliabilityCurve], logit: bool) -> None:
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        self.ax = ax
        self.logit = logit
        known = find_histogram(ax)
        self.alone = known is None and len(curves) == 1
        if known is None:
            draw_unit_square(ax, ylabel="observed frequency", aspect="equal")
            divider = make_axes_locatable(ax)
            known = divider.append_axes("bottom", size="22%", pad=0.12, sharex=ax)
            known.set_label(_HISTOGRAM)
        self.histogram = known
        for (
            patch
        ) in self.histogram.patches:  # of the display before, which is no longer alone
            patch.set(edgecolor=patch.get_facecolor(), fill=False, linewidth=1)
        if logit:
            self._on_log_odds(curves)
        ax.tick_params(labelbottom=False)
        self.histogram.set(xlabel="predicted probability", ylabel="share")
        self.histogram.spines[["top", "right"]].set_visible(False)

    def _on_log_odds(self, curves):
        """Scale, limits and ticks, with room for these curves and for those drawn before."""
        ax = self.ax
        axis = self.axis = on_log_odds(ax, LogitAxis.from_curves(curves))
        self.histogram.tick_params(axis="x", labelsize="small")
        for line in [line for line in ax.lines if line.get_label() == _MARGIN]:
            line.remove()
        color = blend_color(ax, 0.55)
        for border in axis.margin_borders:
            ax.axvline(border, color=color, lw=0.8, ls=":", zorder=1.4, label=_MARGIN)
            ax.axhline(border, color=color, lw=0.8, ls=":", zorder=1.4, label=_MARGIN)

    def add_curve(
        self, curve: ReliabilityCurve | None, bands: str, style: dict[str, Any]
    ) -> None:
        """Draw a curve with its bands and its histogram; without one its colour is left out."""
        if curve is None:
            return
        if self.logit:
            curve = _select_points(curve, self.axis.is_inside(curve.predicted))
        draw_curve(self.ax, curve, style, bands)
        color = style["color"]
        binned = curve.strategy in _BINNED
        if self.logit:
            self._mark_ends(curve, color, binned)
            shares = curve.log_odds_histogram[1:-1]
            edges = expit(HISTOGRAM_EDGES)
            self._draw_ends(curve, color)
        else:
            shares = curve.histogram
            edges = np.linspace(0, 1, len(curve.histogram) + 1)
        self.histogram.stairs(shares, edges, color=color, fill=self.alone, alpha=0.8)

    def _mark_ends(self, curve, color, binned):
        """Open markers where a prediction or a frequency is exactly 0 or 1."""
        x = curve.predicted
        y = curve.observed
        ends = (x <= 0) | (x >= 1) | (((y <= 0) | (y >= 1)) & binned)
        if ends.any():
            self.ax.plot(
                x[ends],
                y[ends],
                "o",
                ms=5,
                color=color,
                mfc=self.ax.get_facecolor(),
                zorder=2.5,
            )

    def _draw_ends(self, curve, color):
        """Draw the shares of rows at exactly 0 and 1 as bars in the margins."""
        ends = curve.log_odds_histogram[[0, -1]]
        for p, share in zip((0, 1), ends, strict=True):
            if share > 0:
                self.histogram.plot(
                    [p, p],
                    [0, share],
                    solid_capstyle="butt",
                    color=color,
                    lw=5 if self.alone else 2,
                    alpha=0.8,
                )

    def finish_panel(self, with_legend: bool) -> None:
        """Fit the histogram's height; one entry of the legend for each curve and kind of band."""
        columns = [patch.get_data().values.max() for patch in self.histogram.patches]
        ends = [line.get_ydata().max() for line in self.histogram.lines]
        self.histogram.set_ylim(0, 1.05 * max([*columns, *ends], default=1))
        if with_legend:
            add_legend(self.ax, loc="upper left")


def _select_points(curve, shown):
    """Select the visible points of a curve."""
    kinds = ("consistency_low", "consistency_high", "confidence_low", "confidence_high")
    bands = {kind: getattr(curve, kind) for kind in kinds}
    return replace(
        curve,
        predicted=curve.predicted[shown],
        observed=curve.observed[shown],
        **{kind: band if band is None else band[shown] for kind, band in bands.items()},
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
        label = label_once(ax, f"if calibrated ({curve.level:.0%})")
        ends: Any = (curve.consistency_low, curve.consistency_high)
        grey = blend_color(ax, 0.85)
        ax.fill_between(curve.predicted, *ends, color=grey, lw=0, zorder=1, label=label)
    if bands in ("both", "confidence") and curve.confidence_low is not None:
        _draw_confidence(ax, curve, style["color"])
    own: dict[str, Any] = (
        {"drawstyle": "steps-mid"} if curve.strategy == "isotonic" else {}
    )
    if curve.strategy in _BINNED:
        own = {"marker": "o", "markersize": 4}
    ax.plot(curve.predicted, curve.observed, **own | style)


def _draw_confidence(axes, curve, color):
    if curve.strategy in _FILLED:
        text = _FILLED[curve.strategy]
        label = label_once(axes, text.format(level=curve.level)) if text else None
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
