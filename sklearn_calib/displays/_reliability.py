"""ReliabilityDisplay: draws reliability curves; the numbers come from `reliability_curve`."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from .._show import in_picture
from .._sklearn_compat import safe_indexing
from .._typing import ArrayLike, AxesLike, Features, Self
from ..exceptions import check_known, named, refuse
from ..metrics import reliability_curve
from ._base import ModelsDisplay, grid
from ._reliability_panel import Panel, scale_of

_BANDS = ("auto", "both", "consistency", "confidence", "none")
_SCALES = ("auto", "linear", "logit")


class ReliabilityDisplay(ModelsDisplay):
    """Reliability diagram: observed frequency against predicted probability.

    With ``scale="logit"`` both axes and the histogram are on log-odds, with ticks in probabilities:
    rare events fill the picture, which otherwise are a blot in its corner. Exact zeros and ones
    have no log-odds; they lie in margins behind dotted lines, with open markers.

    Several displays on the same axes, ``ax=first.axes_``, take colours in turn, share the
    histogram, and have one entry for the bands in the legend.

    Make one with `from_predictions`, `from_estimator` or `from_cv_results`; draw it again with
    `plot`.

    Parameters
    ----------
    curves : dict of str to list of ReliabilityCurve
        Model names and their curves, one per panel, as `reliability_curve` returns them.

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

    _result_of = staticmethod(reliability_curve)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        name: str | None = None,
        ax: AxesLike | None = None,
        bands: Literal["auto", "both", "consistency", "confidence", "none"] = "auto",
        scale: Literal["auto", "linear", "logit"] = "auto",
        **options: Any,
    ) -> Self:
        """Draw predictions against labels.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), or (n_samples, n_labels) with `multilabel`
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict
            Probabilities, or several models' as a dict of name to probabilities. With `multilabel`
            those of many labels, in the forms that `reliability_curve` takes.
        name : str, default=None
            For the legend, where there is one model.
        ax : matplotlib Axes or sequence of Axes, default=None
            Where to draw, one per panel; a new figure by default.
        bands : {"auto", "both", "consistency", "confidence", "none"}, default="auto"
            Consistency band: where the points would lie if the predictions were calibrated.
            Confidence band: for the true frequencies. "auto" draws both for one model and none for
            several.
        scale : {"auto", "linear", "logit"}, default="auto"
            Of both axes. "logit" is for rare events, and for probabilities near 0 or 1. "auto" is
            the scale of the display that is on the axes already, else "linear".
        **options
            Passed to `reliability_curve`: strategy, n_bins, multiclass, multilabel, level,
            n_resamples, sample_weight, labels, pos_label, random_state. ``multilabel="macro"``
            draws one panel for each of many labels per row.

        Returns
        -------
        display : ReliabilityDisplay
        """
        check_known(f"{cls.__name__}.from_predictions", "bands", bands, _BANDS)
        models = y_proba if isinstance(y_proba, dict) else {name or "model": y_proba}
        if bands == "none" or (bands == "auto" and len(models) > 1):
            options.setdefault("n_resamples", 0)  # nobody would see them
        curves = {key: reliability_curve(y_true, p, **options) for key, p in models.items()}
        return cls(curves).plot(ax=ax, bands=bands, scale=scale)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        X: Features,
        y: ArrayLike,
        *,
        name: str | None = None,
        ax: AxesLike | None = None,
        **options: Any,
    ) -> Self:
        """Draw pooled out-of-fold predictions.

        Parameters
        ----------
        cv_results : dict
            From ``sklearn.model_selection.cross_validate`` with ``return_estimator=True`` and
            ``return_indices=True``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The data that were cross-validated.
        name, ax, **options
            As in `from_predictions`; a ``sample_weight`` has one entry per row of `X`.

        Returns
        -------
        display : ReliabilityDisplay

        Raises
        ------
        ValueError
            The results hold no estimators or no indices, or a fold's model missed a class.
        """
        missing = {"estimator", "indices"} - set(cv_results)
        if missing:
            refuse(
                "ReliabilityDisplay.from_cv_results",
                named("cv_results") + " with 'estimator' and 'indices'",
                f"no {' and no '.join(repr(m) for m in sorted(missing))}",
                "Call cross_validate(..., return_estimator=True, return_indices=True)",
            )
        rows = np.concatenate(cv_results["indices"]["test"])
        models = cv_results["estimator"]
        classes = models[0].classes_
        for model in models:
            if not np.array_equal(model.classes_, classes):
                refuse(
                    "ReliabilityDisplay.from_cv_results",
                    "the same classes in every fold",
                    f"{model.classes_.tolist()} and {classes.tolist()}",
                    "Use stratified folds",
                )
        parts = [
            model.predict_proba(safe_indexing(X, test))
            for model, test in zip(models, cv_results["indices"]["test"], strict=True)
        ]
        if options.get("sample_weight") is not None:
            options["sample_weight"] = np.asarray(options["sample_weight"])[rows]
        if options.get("multilabel") is None:
            options.setdefault("labels", classes)
        return cls.from_predictions(
            safe_indexing(y, rows),
            {name or type(models[0]).__name__: _stacked(parts)},
            ax=ax,
            **options,
        )

    def plot(
        self,
        *,
        ax: AxesLike | None = None,
        bands: Literal["auto", "both", "consistency", "confidence", "none"] = "auto",
        scale: Literal["auto", "linear", "logit"] = "auto",
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of Axes, default=None
            One per panel; a new figure by default.
        bands : {"auto", "both", "consistency", "confidence", "none"}, default="auto"
            As in `from_predictions`.
        scale : {"auto", "linear", "logit"}, default="auto"
            As in `from_predictions`.

        Returns
        -------
        self : ReliabilityDisplay

        Raises
        ------
        ValueError
            An unknown option, another number of axes than panels, or axes on which a display of
            the other scale is.
        """
        where = "ReliabilityDisplay.plot"
        check_known(where, "bands", bands, _BANDS)
        check_known(where, "scale", scale, _SCALES)
        if bands == "auto":
            bands = "both" if len(self.curves) == 1 else "none"
        drawn = set() if ax is None else {scale_of(one) for one in np.ravel(np.array(ax))} - {None}
        if scale == "auto":
            scale = "logit" if drawn == {"logit"} else "linear"
        if drawn - {scale}:
            (other,) = drawn - {scale}
            got = f"axes with a display of scale={other!r}"
            refuse(where, f"axes for scale={scale!r}", got, "Leave scale out, or pass other axes")
        return self._drawn_on(ax, bands=bands, logit=scale == "logit")

    def points(self) -> list[list[tuple[Any, ...]]]:
        """The curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            For each panel the observed frequencies against the predicted probabilities of each
            model.
        """
        return [
            [(curve.predicted, curve.observed) for curve in named.values() if curve is not None]
            for _, named in self._panels()
        ]

    def _panels(self):
        """For each panel its title, and {model: its curve or None}."""
        titles = [curve.title for curve in next(iter(self.curves.values()))]
        return [
            (title, {name: _panel(curves, title, at) for name, curves in self.curves.items()})
            for at, title in enumerate(titles)
        ]

    def _new_axes(self, plt):
        count = len(self._panels())
        return grid(plt, count, (4.2, 5.0), layout="tight").flat[:count]

    def _draw(self, *axes, bands, logit):
        self.histogram_axes_ = []
        for ax, (title, curves) in zip(axes, self._panels(), strict=True):
            panel = Panel(ax, [one for one in curves.values() if one is not None], logit)
            for name, curve in curves.items():
                panel.add(name, curve, bands)
            ax.set_title(in_picture(title))
            panel.finish(legend=ax is axes[0])
            self.histogram_axes_.append(panel.histogram)


def _panel(curves, title, panel):
    """The curve of a panel; a model may lack one ("predicted x" where it never predicts x)."""
    if panel < len(curves) and curves[panel].title == title:
        return curves[panel]
    return next((curve for curve in curves if curve.title == title), None)


def _stacked(parts):
    """Probabilities of several folds; those of many labels may be lists."""
    if isinstance(parts[0], list):
        return [np.vstack(part) for part in zip(*parts, strict=True)]
    return np.vstack(parts)
