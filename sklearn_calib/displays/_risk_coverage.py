"""RiskCoverageDisplay: the error rate among the most confident rows."""

from typing import Any, ClassVar

import numpy as np

from .._typing import ArrayLike, AxesLike, Estimator, Features, Self
from ..decisions import risk_coverage_curve
from ._base import (
    BaseCurveByModelDisplay,
    CurveKwargs,
    PlottedData,
    add_legend,
    blend_text_with_background,
    name_models,
    omit_repeated_label,
    predict_proba_by_model_and_labels,
)


class RiskCoverageDisplay(BaseCurveByModelDisplay):
    """Risk-coverage curve: error rate of the answers against the share of rows answered.

    The legend has the area under each curve. If there is only one curve, its intervals
    are drawn, and a second curve for comparison: the best possible one with the same
    number of errors, which a model has if it is less confident in each of its errors
    than in any correct answer.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`.

    Parameters
    ----------
    curves : dict of str to RiskCoverageCurve
        Names and results of `risk_coverage_curve`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.displays import RiskCoverageDisplay
    >>> proba, y = make_overconfident(3, 1000)
    >>> display = RiskCoverageDisplay.from_predictions(y, proba)
    >>> display.ax_.get_xlabel()
    'coverage: share of rows answered'
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the risk-coverage curve of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict
            Probabilities, or a dict of the names of models to their probabilities.
        level, sample_weight, labels, pos_label
            As in `risk_coverage_curve`.
        name : str, default="model"
            The name of a single model.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : RiskCoverageDisplay
        """
        curves = {}
        for key, proba in name_models(y_proba, name).items():
            curves[key] = risk_coverage_curve(
                y_true,
                proba,
                level=level,
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
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        name: str | None = None,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the risk-coverage curve of a fitted classifier, or of several.

        Parameters
        ----------
        estimator : classifier or dict of str to classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        level, sample_weight, labels, pos_label, ax, curve_kwargs
            As in `from_predictions`.
        name : str, default=None
            The name of a single model; by default that of its class.

        Returns
        -------
        display : RiskCoverageDisplay

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
            level=level,
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
            One panel: risks against coverages.
        """
        return [[(curve.coverage, curve.risk) for curve in self.curves.values()]]

    _subplot_options: ClassVar = {"figsize": (6.4, 4.2)}

    def _draw(self, ax):
        top_before = ax.get_ylim()[1] if ax.lines else 0.0
        for curve, style in self._iter_styled_curves(ax):
            style["label"] = f"{style['label']}: area {curve.area:.3f}"
            ax.plot(curve.coverage, curve.risk, zorder=3, **style)
            if len(self.curves) == 1:
                label = omit_repeated_label(
                    ax, f"{100 * curve.level:.0f} % interval, each threshold"
                )
                ax.fill_between(
                    curve.coverage,
                    curve.low,
                    curve.high,
                    color=style["color"],
                    alpha=0.2,
                    lw=0,
                    label=label,
                )
                label = f"errors last: area {curve.perfect_area:.3f}"
                coverage = np.linspace(0.001, 1, 1000)
                ax.plot(
                    coverage,
                    curve.perfect_risk_at(coverage),
                    color=blend_text_with_background(ax, 0.4),
                    lw=1,
                    ls="--",
                    label=label,
                )
        # The risk of the first few rows is noisy, and their intervals reach up to 1.
        top = max(top_before, 0.01)
        for curve in self.curves.values():
            top = max(top, 1.1 * curve.risk[curve.coverage >= 0.05].max())
        ax.set(xlim=(0, 1.01), ylim=(-0.02 * top, top))
        ax.set(
            xlabel="coverage: share of rows answered",
            ylabel="error rate of the answers",
        )
        add_legend(ax, ncols=2)
