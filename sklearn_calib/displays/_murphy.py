"""MurphyDisplay: the mean elementary score at every threshold, or how two models differ in it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy.special import expit

from .._argument_checks import check_choice, read_bool_with_none_as_false
from .._kernels._picture_axes import MAX_LOG_ODDS_AXIS_MEDIAN_PROBA, LogitAxis
from .._show import escape_legend_label
from .._typing import (
    ArrayLike,
    AxesLike,
    Estimator,
    Features,
    FloatArray,
    PictureScale,
    RandomStateLike,
    Self,
)
from ..decisions import (
    NetBenefitDifference,
    decision_difference,
    validate_binary_predictions,
)
from ..exceptions import invalid_input
from ._base import (
    BaseCurveByModelDisplay,
    CurveKwargs,
    PlottedData,
    add_legend,
    blend_text_with_background,
    draw_bands,
    name_models,
    predict_proba_by_model_and_labels,
    set_log_odds_scale,
)

_N_MURPHY_THRESHOLDS = 99


@dataclass(eq=False, repr=False)
class MurphyDisplay(BaseCurveByModelDisplay):
    """Murphy diagram: which of two models is better for which users, and for every proper loss.

    The elementary score of a row at a threshold t is what someone loses who acts on
    probabilities of at least t: t for acting without the event, 1 - t for an event
    without acting. Every proper loss is a mixture of elementary scores, so a model
    whose curve is nowhere above that of another one is at least as good by all of them.
    Half the Brier loss is the area under the curve, and on the axis of log-odds the log
    loss is.

    With one curve there are its intervals at each threshold and, lighter, the band for
    all thresholds.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`.
    Several on the same axes take colours in turn.

    Parameters
    ----------
    curves : dict of str to NetBenefitDifference
        Names, and results of `decision_difference`: by how much the net benefit of a
        perfect prediction is above that of the model or, with `difference`, that of the
        first model above that of the one named. Times 1 - threshold this is an
        elementary score or a difference.
    difference : bool, default=False
    scale : {"linear", "logit"}, default="linear"
        Of the thresholds.

    Attributes
    ----------
    curves : dict
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Notes
    -----
    Intervals and bands are those of `decision_difference`, times 1 - t. Measured
    coverage of 95 % (``benchmarks/decisions``, 500 and 5000 rows, 500 draws each): of
    an elementary score 0.934 to 1 at each threshold, the truth above it in at most 3.8 %
    and below it in at most 3.6 %, bands 0.960 to 0.992; of a difference as there. Cost:
    O(n log n), some 0.3 s for a million rows.

    References
    ----------
    Ehm, Gneiting, Jordan, Krüger (2016), "Of quantiles and expectiles: consistent
    scoring functions, Choquet representations and forecast rankings"; here ties are
    acted on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.displays import MurphyDisplay
    >>> proba, y = make_overconfident(2, 1000)
    >>> models = {"raw": proba, "softer": 0.8 * proba + 0.1}
    >>> display = MurphyDisplay.from_predictions(y, models, difference=True)
    >>> display.ax_.get_ylabel().splitlines()[1]
    'below 0: softer is better'
    """

    curves: dict[str, NetBenefitDifference]
    difference: bool = False
    scale: Literal["linear", "logit"] = "linear"

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        thresholds: ArrayLike | None = None,
        level: float = 0.95,
        prevalence: float | None = None,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        difference: bool = False,
        scale: PictureScale = "auto",
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the Murphy diagram of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, 2) or (n_samples,), or dict
            Probabilities, or a dict of the names of models to their probabilities.
        thresholds, level, prevalence, n_resamples, random_state, sample_weight, labels
            As in `decision_difference`.
        pos_label
            As in `decision_difference`.
        difference : bool, default=False
            Whether to draw how far the first model is above each of the others.
        scale : {"auto", "linear", "logit"}, default="auto"
            Of the thresholds. "auto" is the scale of the display on the axes, else
            "logit" if the median probability of every model is below 0.02, else
            "linear". By default 99 thresholds are evenly spaced on it.
        name : str, default="model"
            The name of a single model.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : MurphyDisplay
        """
        models = name_models(y_proba, name)
        check_choice("scale", scale, get_args(PictureScale))
        if read_bool_with_none_as_false(difference, "difference") and len(models) < 2:
            raise invalid_input(
                expected="at least two models for difference=True",
                got=f"{len(models)}",
                hint="Pass a dict of names to probabilities",
            )
        scores: dict[str, FloatArray] = {}
        for key, proba in models.items():
            _, problem = validate_binary_predictions(
                y_true, proba, sample_weight, labels, pos_label
            )
            scores[key] = problem.score
        used_scale = (
            _choose_logit_or_linear_scale(list(scores.values()), ax)
            if scale == "auto"
            else scale
        )
        if used_scale == "logit" and thresholds is None:
            ranges = [np.quantile(score, [0.01, 0.99]) for score in scores.values()]
            axis = LogitAxis.from_values(ranges)
            thresholds = expit(np.linspace(axis.low, axis.high, _N_MURPHY_THRESHOLDS))
        outcome = problem.hit.astype(int)
        # The elementary score is the difference of net benefits to a perfect prediction.
        reference = outcome.astype(np.float64)
        if difference:
            reference = scores.pop(next(iter(scores)))
        curves = {}
        for key, score in scores.items():
            curves[key] = decision_difference(
                outcome,
                score,
                reference,
                thresholds=thresholds,
                level=level,
                prevalence=prevalence,
                n_resamples=n_resamples,
                random_state=random_state,
                sample_weight=problem.weight,
                labels=[0, 1],
            )
        return cls(curves, difference, used_scale).plot(
            ax=ax, curve_kwargs=curve_kwargs
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator | dict[str, Estimator],
        X: Features,
        y: ArrayLike,
        *,
        thresholds: ArrayLike | None = None,
        level: float = 0.95,
        prevalence: float | None = None,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        difference: bool = False,
        scale: PictureScale = "auto",
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the Murphy diagram of a fitted classifier, or of several.

        Parameters
        ----------
        estimator : classifier or dict of str to classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        thresholds, level, prevalence, n_resamples, random_state, sample_weight, labels
            As in `from_predictions`.
        pos_label, difference, scale, ax, curve_kwargs
            As in `from_predictions`.
        name : str, default=None
            The name of a single model; by default that of its class.

        Returns
        -------
        display : MurphyDisplay

        Raises
        ------
        TypeError
            A model without ``predict_proba``; the message names what to write.
        """
        y_proba, labels = predict_proba_by_model_and_labels(
            cls, estimator, name, X, y, labels
        )
        return cls.from_predictions(
            y,
            y_proba,
            thresholds=thresholds,
            level=level,
            prevalence=prevalence,
            n_resamples=n_resamples,
            random_state=random_state,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            difference=difference,
            scale=scale,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: mean elementary scores, or differences, against the thresholds.
        """
        panel = [
            (curve.threshold, _scale_to_elementary_score(curve, "difference"))
            for curve in self.curves.values()
        ]
        return [panel]

    _subplot_options: ClassVar = {"figsize": (6.4, 4.4)}

    def _draw(self, ax):
        """Draw the curves, with intervals and a band if there is only one."""
        if self.scale == "logit":
            ends = [curve.threshold[[0, -1]] for curve in self.curves.values()]
            set_log_odds_scale(ax, LogitAxis.from_values(ends), "x")
        elif ax.get_xscale() == "linear":
            ax.set_xlim(0, 1)
        for curve, style in self._iter_styled_curves(ax):
            ax.plot(
                curve.threshold,
                _scale_to_elementary_score(curve, "difference"),
                zorder=3,
                **style,
            )
            if len(self.curves) == 1:
                # A mean score is not negative, a difference can be.
                lowest = -np.inf if self.difference else 0.0
                ends = []
                for prefix in ("", "band_"):
                    low = np.maximum(
                        _scale_to_elementary_score(curve, f"{prefix}low"), lowest
                    )
                    ends.append(
                        (low, _scale_to_elementary_score(curve, f"{prefix}high"))
                    )
                draw_bands(ax, curve.threshold, curve.level, style["color"], *ends)
        y_label = "mean elementary score"
        if self.difference:
            ax.axhline(0, color=blend_text_with_background(ax, 0.2), lw=1.2, ls="--")
            subject = "they are"
            if len(self.curves) == 1:
                subject = f"{escape_legend_label(next(iter(self.curves)), 24)} is"
            y_label = f"difference of elementary scores\nbelow 0: {subject} better"
        elif ax.get_ylim()[0] != 0:
            ax.set_ylim(0, None, auto=None)
        ax.set(xlabel="threshold", ylabel=y_label)
        add_legend(ax, ncols=2)


def _scale_to_elementary_score(curve, name):
    """Scale a column of a difference of net benefits to elementary scores."""
    return (1 - curve.threshold) * getattr(curve, name)


def _choose_logit_or_linear_scale(scores, ax):
    """Return the scale of axes that were drawn on, or the one for rare events if needed."""
    if ax is not None:
        (first_axes,) = np.ravel(np.asarray(ax, dtype=object))[:1]
        # Anything other than axes is rejected later, when it is drawn on.
        if getattr(first_axes, "lines", ()):
            return "logit" if first_axes.get_xscale() == "function" else "linear"
    are_rare = all(
        np.median(score) < MAX_LOG_ODDS_AXIS_MEDIAN_PROBA for score in scores
    )
    return "logit" if are_rare else "linear"
