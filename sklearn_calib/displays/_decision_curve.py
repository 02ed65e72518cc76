"""DecisionCurveDisplay: net benefit at every threshold, or how far one is above another."""

from typing import Any

import numpy as np

from .._typing import (
    ArrayLike,
    AxesLike,
    Estimator,
    Features,
    RandomStateLike,
    RecalibratorLike,
    Self,
)
from ..decisions import DecisionCurve, decision_curve
from ._base import (
    BaseCurveByModelDisplay,
    CurveKwargs,
    PlottedData,
    add_legend,
    blend_text_with_background,
    draw_bands,
    name_models,
    omit_repeated_label,
    predict_proba_by_model_and_labels,
)
from ._regret import draw_regret


class DecisionCurveDisplay(BaseCurveByModelDisplay):
    """Net benefit against the threshold of action, beside acting on all rows and on none.

    With one curve there are its intervals at each threshold and, lighter, the band for
    all thresholds. If a curve has a regret, a second panel shows what recalibration
    is worth.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`.

    Parameters
    ----------
    curves : dict of str to DecisionCurve or NetBenefitDifference
        Names and results of `decision_curve` or of `decision_difference`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.displays import DecisionCurveDisplay
    >>> proba, y = make_overconfident(2, 1000)
    >>> display = DecisionCurveDisplay.from_predictions(y, proba, recalibrated="platt")
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['net benefit', 'regret']
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        thresholds: ArrayLike | None = None,
        level: float = 0.95,
        harms: float = 0.0,
        prevalence: float | None = None,
        recalibrated: ArrayLike | RecalibratorLike | None = None,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the decision curve of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, 2) or (n_samples,), or dict
            Probabilities, or a dict of the names of models to their probabilities.
        thresholds, level, harms, prevalence, recalibrated, n_resamples, random_state
            As in `decision_curve`.
        sample_weight, labels, pos_label
            As in `decision_curve`.
        name : str, default="model"
            The name of a single model.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : DecisionCurveDisplay
        """
        curves = {}
        for key, proba in name_models(y_proba, name).items():
            curves[key] = decision_curve(
                y_true,
                proba,
                thresholds=thresholds,
                level=level,
                harms=harms,
                prevalence=prevalence,
                recalibrated=recalibrated,
                n_resamples=n_resamples,
                random_state=random_state,
                sample_weight=sample_weight,
                labels=labels,
                pos_label=pos_label,
            )
        return cls(curves).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator | dict[str, Estimator],
        X: Features,
        y: ArrayLike,
        *,
        thresholds: ArrayLike | None = None,
        level: float = 0.95,
        harms: float = 0.0,
        prevalence: float | None = None,
        recalibrated: ArrayLike | RecalibratorLike | None = None,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the decision curve of a fitted classifier, or of several.

        Parameters
        ----------
        estimator : classifier or dict of str to classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        thresholds, level, harms, prevalence, recalibrated, n_resamples, random_state
            As in `from_predictions`.
        sample_weight, labels, pos_label, ax, curve_kwargs
            As in `from_predictions`.
        name : str, default=None
            The name of a single model; by default that of its class.

        Returns
        -------
        display : DecisionCurveDisplay

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
            harms=harms,
            prevalence=prevalence,
            recalibrated=recalibrated,
            n_resamples=n_resamples,
            random_state=random_state,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            Net benefits, or differences, against the thresholds; and in a second panel
            the regrets, if there are any.
        """
        curves = self.curves.values()
        panels = [
            [(curve.threshold, _get_benefit_or_difference(curve)) for curve in curves]
        ]
        regrets = self._list_regrets()
        if regrets:
            panels.append([(regret.threshold, regret.regret) for regret in regrets])
        return panels

    def _list_regrets(self):
        regrets = [getattr(curve, "regret", None) for curve in self.curves.values()]
        return [regret for regret in regrets if regret is not None]

    def _get_subplot_options(self):
        if not self._list_regrets():
            return {"figsize": (7, 4.2)}
        return {
            "figsize": (7, 6.4),
            "nrows": 2,
            "sharex": True,
            "height_ratios": (2, 1),
        }

    def _draw(self, ax, *below):
        limits = self._compute_limits()
        # Curves that were drawn before stay visible.
        limits_before = ax.get_ylim() if ax.lines else ()
        styled_curves = [*self._iter_styled_curves(ax)]
        for curve, style in styled_curves:
            ax.plot(
                curve.threshold, _get_benefit_or_difference(curve), zorder=3, **style
            )
        first_curve = next(iter(self.curves.values()))
        bottom = min(*limits, *limits_before)
        top = max(*limits, *limits_before)
        ax.set(xlim=(0, 1), ylim=(bottom, top))
        is_difference = not isinstance(first_curve, DecisionCurve)
        ax.set_ylabel("difference of net benefit" if is_difference else "net benefit")
        if not is_difference:
            ax.plot(
                first_curve.threshold,
                first_curve.treat_all,
                color=blend_text_with_background(ax, 0.5),
                lw=1.2,
                label=omit_repeated_label(ax, "act on all"),
            )
        none_label = omit_repeated_label(ax, None if is_difference else "act on none")
        ax.axhline(
            0,
            color=blend_text_with_background(ax, 0.2),
            lw=1.2,
            ls="--",
            label=none_label,
        )
        # Bands of several models would hide each other.
        if len(self.curves) == 1:
            interval = (first_curve.low, first_curve.high)
            band = (first_curve.band_low, first_curve.band_high)
            draw_bands(
                ax,
                first_curve.threshold,
                first_curve.level,
                style["color"],
                interval,
                band,
            )
        add_legend(ax, ncols=2)
        lowest_panel = ax
        if below:
            (lowest_panel,) = below
            regrets = []
            for curve, style in styled_curves:
                if curve.regret is not None:
                    regrets.append((curve.regret, style))
            draw_regret(lowest_panel, regrets)
            lowest_panel.set(xlim=(0, 1))
        lowest_panel.set_xlabel("threshold of action")

    def _compute_limits(self):
        """Return limits around the curves, without the curve of acting on all, and the ends."""
        curves = self.curves.values()
        lines = []
        for curve in curves:
            # Near 0 and 1 few rows decide, and the intervals become wide.
            inner = (curve.threshold >= 0.05) & (curve.threshold <= 0.95)
            lines.append(_get_benefit_or_difference(curve)[inner])
            if len(curves) == 1:
                lines += [curve.low[inner], curve.high[inner]]
        values = np.concatenate([*lines, [0.0]])
        # Acting on all rows has the net benefit `prevalence` at threshold 0.
        prevalences = [getattr(curve, "prevalence", 0.0) for curve in curves]
        top = max(values.max(), *prevalences)
        bottom = values.min()
        if any(isinstance(curve, DecisionCurve) for curve in curves):
            # The net benefit is unbounded below at high thresholds.
            bottom = max(bottom, -0.5 * top)
        margin = 0.15 * (top - bottom) or 0.01
        return bottom - margin, top + margin


def _get_benefit_or_difference(curve):
    return curve.net_benefit if isinstance(curve, DecisionCurve) else curve.difference
