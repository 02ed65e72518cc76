"""RiskCoverageDisplay: the error rate among the most confident rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import in_legend
from .._typing import ArrayLike, AxesLike, Self
from ..decisions import risk_coverage_curve
from ._base import Display

if TYPE_CHECKING:
    from ..decisions import RiskCoverageCurve


class RiskCoverageDisplay(Display):
    """Error rate among the answers against the share of rows that are answered.

    The legend has the area under each curve. With one curve there are its intervals, and the curve
    of the same predictions if all errors were less confident than all other rows.

    Make one with `from_predictions`; draw it again with `plot`.

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

    def __init__(self, curves: "dict[str, RiskCoverageCurve]") -> None:
        self.curves = curves

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, Any],
        *,
        name: str = "model",
        ax: AxesLike | None = None,
        **options: Any,
    ) -> Self:
        """Draw predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), or dict
            Probabilities, or several models' as a dict of name to probabilities.
        name : str, default="model"
            Where there is one model.
        ax : matplotlib Axes, default=None
            A new figure by default.
        **options
            Passed to `risk_coverage_curve`: level, sample_weight, labels.

        Returns
        -------
        display : RiskCoverageDisplay
        """
        models = y_proba if isinstance(y_proba, dict) else {name: y_proba}
        curves = {key: risk_coverage_curve(y_true, p, **options) for key, p in models.items()}
        return cls(curves).plot(ax=ax)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """The curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: risks against coverages.
        """
        return [[(curve.coverage, curve.risk) for curve in self.curves.values()]]

    def _size(self):
        return 6.4, 4.2

    def _draw(self, ax):
        for number, (name, curve) in enumerate(self.curves.items()):
            color, alone = f"C{number}", len(self.curves) == 1
            label = f"{in_legend(name)}: area {curve.area:.3f}"
            ax.plot(curve.coverage, curve.risk, color=color, label=label, zorder=3)
            if alone:
                ends = curve.low, curve.high
                label = f"{curve.level:.0%} interval, each threshold"
                ax.fill_between(curve.coverage, *ends, color=color, alpha=0.2, lw=0, label=label)
                label = f"errors last: area {curve.perfect_area:.3f}"
                share = np.linspace(0.001, 1, 1000)
                line = {"color": "0.4", "lw": 1, "ls": "--", "label": label}
                ax.plot(share, curve.perfect_risk_at(share), **line)
        # the intervals of the first few rows reach up to 1
        top = max(curve.risk[curve.coverage >= 0.05].max() for curve in self.curves.values())
        ax.set(xlim=(0, 1.01), ylim=(-0.02 * top, max(1.6 * top, 0.01)))
        ax.set(xlabel="coverage: share of rows answered", ylabel="error rate of the answers")
        ax.legend(frameon=False, fontsize="small", loc="upper center")
