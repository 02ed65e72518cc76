"""RefinementCurveDisplay: risk and refinement along the stages of a training."""

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .._show import in_picture
from .._typing import Estimator, Self
from ..decomposition import RefinementCurve, refinement_curve
from ..metrics import get_loss
from ._base import ABOVE_RIGHT, ResultDisplay, legend, shade


@dataclass(eq=False, repr=False)
class RefinementCurveDisplay(ResultDisplay):
    """Risk, refinement and calibration against the stage of a training.

    The curves of ``curve_kwargs`` are the risk and the refinement.

    Make one with `from_estimator` or with ``from_predictions(y_true, staged_proba)``, where there
    is an array of probabilities for each stage, and which takes the options of `refinement_curve`:
    stages, kind, loss, recalibrator, cv, sample_weight, labels and unit; draw it again with `plot`.

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

    _result_of = staticmethod(refinement_curve)

    curve: RefinementCurve
    chosen: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Estimator, **drawn: Any) -> Self:  # type: ignore[override]
        """Draw the curve of a fitted `RefineThenCalibrateCV`.

        Parameters
        ----------
        estimator : RefineThenCalibrateCV
            Fitted.
        **drawn
            As in `plot`: ax, curve_kwargs.

        Returns
        -------
        display : RefinementCurveDisplay
        """
        check_is_fitted(estimator)
        curve = estimator.refinement_curve_
        return cls(curve, curve.best(estimator.selection)).plot(**drawn)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """Return risk and refinement.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: both against the stages.
        """
        curve = self.curve
        return [[(curve.stage, curve.risk), (curve.stage, curve.refinement)]]

    def _curves(self):
        return {
            "risk": {"color": "C0", "label": in_picture(get_loss(self.curve.loss).title)},
            "refinement": {"color": "C1", "label": "refinement: remains"},
        }

    def _draw(self, ax):
        curve = self.curve
        chosen = curve.best() if self.chosen is None else self.chosen
        by_risk = int(curve.risk.argmin())
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
        ax.plot(curve.stage, curve.risk, markevery=[by_risk], **{"marker": "o"} | risk)
        ax.plot(curve.stage, curve.refinement, markevery=[chosen], **{"marker": "o"} | refinement)
        ax.axvline(curve.stage[chosen], color=refinement["color"], lw=1, ls=":")
        # early stages can be so bad that the rest would be a flat line
        top = max(curve.risk[by_risk], 1.05 * curve.refinement[0])
        span = max(top, curve.risk[-1]) - curve.refinement.min()
        worst = min(curve.risk.max(), curve.refinement.min() + 1.6 * span)
        ax.set_ylim(curve.refinement.min() - 0.06 * span, worst + 0.06 * span)
        ax.set(xlabel=in_picture(curve.unit), ylabel=in_picture(loss.label))
        label = f"stop at {curve.stage[by_risk]}, or at {curve.stage[chosen]} by refinement"
        ax.plot([], [], "o", color=shade(ax, 0.3), label=label)
        legend(ax, ncols=2, **ABOVE_RIGHT)
