"""RefinementCurveDisplay: risk and refinement along the stages of a training."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sklearn.utils.validation import check_is_fitted

from .._show import escape_mathtext
from .._typing import CV, ArrayLike, AxesLike, Estimator, RecalibratorLike, Self
from ..decomposition import RefinementCurve, refinement_curve
from ..metrics import LossLike, get_loss
from ._base import (
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
)


@dataclass(eq=False, repr=False)
class RefinementCurveDisplay(Display):
    """Risk, refinement and calibration against the stage of a training.

    The curves of ``curve_kwargs`` are the risk and the refinement.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`.

    Parameters
    ----------
    curve : RefinementCurve
        From `refinement_curve`, or ``refinement_curve_`` of `RefineThenCalibrateCV`.
    chosen : int, default=None
        Position of the chosen stage; by default the one with the smallest criterion.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_hastie_10_2
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from sklearn_calib.displays import RefinementCurveDisplay
    >>> X, y = make_hastie_10_2(600, random_state=0)
    >>> model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X[:300], y[:300])
    >>> display = RefinementCurveDisplay.from_predictions(
    ...     y[300:], model.staged_predict_proba(X[300:]), unit="boosting rounds"
    ... )
    >>> display.ax_.get_xlabel()
    'boosting rounds'
    """

    curve: RefinementCurve
    chosen: int | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        staged_proba: Iterable[ArrayLike],
        *,
        stages: Sequence[int] | None = None,
        kind: Literal["proba", "logits"] = "proba",
        loss: LossLike = "log",
        recalibrator: RecalibratorLike = "temperature",
        cv: CV = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        unit: str = "stages",
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the refinement curve of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        staged_proba : iterable of array-like
            Probabilities of each stage, as in `refinement_curve`.
        stages, kind, loss, recalibrator, cv, sample_weight, labels, pos_label, unit
            As in `refinement_curve`.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : RefinementCurveDisplay
        """
        curve = refinement_curve(
            y_true,
            staged_proba,
            stages=stages,
            kind=kind,
            loss=loss,
            recalibrator=recalibrator,
            cv=cv,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            unit=unit,
        )
        return cls(curve).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the curve of a fitted `RefineThenCalibrateCV`.

        Parameters
        ----------
        estimator : RefineThenCalibrateCV
            Fitted.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : RefinementCurveDisplay
        """
        check_is_fitted(estimator)
        curve = estimator.refinement_curve_
        chosen = curve.best(estimator.selection)
        return cls(curve, chosen).plot(ax=ax, curve_kwargs=curve_kwargs)

    def get_plotted_data(self) -> PlottedData:
        """Return risk and refinement.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: both against the stages.
        """
        curve = self.curve
        return [[(curve.stage, curve.risk), (curve.stage, curve.refinement)]]

    def _get_default_styles(self):
        return {
            "risk": {
                "color": "C0",
                "label": escape_mathtext(get_loss(self.curve.loss).title),
            },
            "refinement": {"color": "C1", "label": "refinement: remains"},
        }

    def _draw(self, ax):
        """Draw risk and refinement, filled between, with the chosen stages marked."""
        curve = self.curve
        chosen_stage = curve.best() if self.chosen is None else self.chosen
        lowest_risk_stage = int(curve.risk.argmin())
        loss = get_loss(curve.loss)
        risk, refinement = self.styles_.values()
        ax.fill_between(
            curve.stage,
            curve.refinement,
            curve.risk,
            where=curve.risk >= curve.refinement,
            color=risk["color"],
            alpha=0.12,
            lw=0,
            label="calibration: removable",
        )
        ax.plot(
            curve.stage,
            curve.risk,
            markevery=[lowest_risk_stage],
            **{"marker": "o"} | risk,
        )
        ax.plot(
            curve.stage,
            curve.refinement,
            markevery=[chosen_stage],
            **{"marker": "o"} | refinement,
        )
        ax.axvline(curve.stage[chosen_stage], color=refinement["color"], lw=1, ls=":")
        # Early stages can be so bad that all others would be a flat line, so these do not
        # determine the limits.
        top = max(curve.risk[lowest_risk_stage], 1.05 * curve.refinement[0])
        span = max(top, curve.risk[-1]) - curve.refinement.min()
        worst = min(curve.risk.max(), curve.refinement.min() + 1.6 * span)
        ax.set_ylim(curve.refinement.min() - 0.06 * span, worst + 0.06 * span)
        ax.set(xlabel=escape_mathtext(curve.unit), ylabel=escape_mathtext(loss.label))
        by_risk = curve.stage[lowest_risk_stage]
        by_refinement = curve.stage[chosen_stage]
        label = f"stop at {by_risk}, or at {by_refinement} by refinement"
        ax.plot([], [], "o", color=blend_text_with_background(ax, 0.3), label=label)
        add_legend(ax, ncols=2)
