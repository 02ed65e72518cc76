"""RegretDisplay: what miscalibration costs at every threshold of action."""

from typing import Any, ClassVar

from .._typing import (
    CV,
    ArrayLike,
    Axes,
    AxesLike,
    Estimator,
    Features,
    RandomStateLike,
    RecalibratorLike,
    Self,
)
from ..decisions import RegretCurve, regret_curve
from ._base import (
    BaseCurveByModelDisplay,
    CurveKwargs,
    PlottedData,
    add_legend,
    blend_text_with_background,
    name_models,
    predict_proba_by_model_and_labels,
)


class RegretDisplay(BaseCurveByModelDisplay):
    """Regret curve: the loss by acting on predictions without recalibration, at each threshold.

    The area below a curve is half of what recalibration takes off the Brier loss; the
    dot is the threshold that loses most, with the interval of the largest regret.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`.

    Parameters
    ----------
    curves : dict of str to RegretCurve
        Names and results of `regret_curve`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.displays import RegretDisplay
    >>> proba, y = make_overconfident(2, 1000)
    >>> display = RegretDisplay.from_predictions(y, proba)
    >>> display.ax_.get_ylabel()
    'regret'
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        recalibrated: ArrayLike | RecalibratorLike = "isotonic",
        cv: CV = 5,
        level: float = 0.95,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the regret of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, 2) or (n_samples,), or dict
            Probabilities, or a dict of the names of models to their probabilities.
        recalibrated, cv, level, n_resamples, random_state, sample_weight, labels
            As in `regret_curve`.
        pos_label
            As in `regret_curve`.
        name : str, default="model"
            The name of a single model.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : RegretDisplay
        """
        curves = {}
        for key, proba in name_models(y_proba, name).items():
            curves[key] = regret_curve(
                y_true,
                proba,
                recalibrated=recalibrated,
                cv=cv,
                level=level,
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
        recalibrated: ArrayLike | RecalibratorLike = "isotonic",
        cv: CV = 5,
        level: float = 0.95,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the regret of a fitted classifier, or of several.

        Parameters
        ----------
        estimator : classifier or dict of str to classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        recalibrated, cv, level, n_resamples, random_state, sample_weight, labels
            As in `from_predictions`.
        pos_label, ax, curve_kwargs
            As in `from_predictions`.
        name : str, default=None
            The name of a single model; by default that of its class.

        Returns
        -------
        display : RegretDisplay

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
            recalibrated=recalibrated,
            cv=cv,
            level=level,
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
            One panel: for each model the regret against the threshold, and both ends of
            the interval of the largest one.
        """
        lines = []
        for curve in self.curves.values():
            worst = curve.worst_threshold
            lines += [
                (curve.threshold, curve.regret),
                ([worst, worst], curve.maximum_interval),
            ]
        return [lines]

    _subplot_options: ClassVar = {"figsize": (7, 3.6)}

    def _draw(self, ax):
        draw_regret(ax, [*self._iter_styled_curves(ax)])
        ax.set(xlim=(0, 1), xlabel="threshold of action")


def draw_regret(ax: Axes, curves: list[tuple[RegretCurve, dict[str, Any]]]) -> None:
    """Draw regrets, each with its style."""
    for curve, style in curves:
        color = style["color"]
        low, high = curve.maximum_interval
        text = f"{style['label']}: largest {curve.maximum:.2g} at {curve.worst_threshold:.2f}"
        text += f",\n{100 * curve.level:g} % interval {low:.2g} to {high:.2g}"
        ax.plot(
            curve.threshold,
            curve.regret,
            **{"linewidth": 1.2} | style | {"label": text},
        )
        if len(curves) == 1:
            ax.fill_between(
                curve.threshold,
                0,
                curve.regret,
                color=color,
                alpha=0.2,
                lw=0,
            )
        worst = curve.worst_threshold
        ax.plot(worst, curve.maximum, "o", color=color, ms=4)
        ax.plot([worst, worst], [low, high], color=color, lw=1, marker="_")
    ax.axhline(0, color=blend_text_with_background(ax, 0.2), lw=0.8)
    ax.set_ylabel("regret")
    add_legend(ax)
