"""RiskCoverageDisplay: the error rate among the most confident rows."""

from typing import Any, ClassVar

import numpy as np

from ..decisions import risk_coverage_curve
from ._base import ModelsDisplay, legend, once, shade


class RiskCoverageDisplay(ModelsDisplay):
    """Risk-coverage curve: error rate of the answers against the share of rows answered.

    The legend has the area under each curve. If there is only one curve, its intervals are drawn,
    and a second curve for comparison: the best possible one with the same number of errors, which
    a model has if it is less confident in each of its errors than in any correct answer.

    Make one with `from_predictions` or `from_estimator`, which call `risk_coverage_curve`,
    whose options are level, sample_weight and labels; draw it again with `plot`.

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

    _result_of = staticmethod(risk_coverage_curve)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """Return the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: risks against coverages.
        """
        return [[(curve.coverage, curve.risk) for curve in self.curves.values()]]

    _figure: ClassVar = {"figsize": (6.4, 4.2)}

    def _draw(self, ax):
        before = ax.get_ylim()[1] / 1.6 if ax.lines else 0.0
        for curve, style in self._in_turn(ax):
            style["label"] = f"{style['label']}: area {curve.area:.3f}"
            ax.plot(curve.coverage, curve.risk, zorder=3, **style)
            if len(self.curves) == 1:
                label = once(ax, f"{curve.level:.0%} interval, each threshold")
                band = {"color": style["color"], "alpha": 0.2, "lw": 0, "label": label}
                ax.fill_between(curve.coverage, curve.low, curve.high, **band)
                label = f"errors last: area {curve.perfect_area:.3f}"
                share = np.linspace(0.001, 1, 1000)
                line = {"color": shade(ax, 0.4), "lw": 1, "ls": "--", "label": label}
                ax.plot(share, curve.perfect_risk_at(share), **line)
        # the intervals of the first few rows reach up to 1
        curves = self.curves.values()
        top = max(before, *(curve.risk[curve.coverage >= 0.05].max() for curve in curves))
        ax.set(xlim=(0, 1.01), ylim=(-0.02 * top, max(1.6 * top, 0.01)))
        ax.set(xlabel="coverage: share of rows answered", ylabel="error rate of the answers")
        legend(ax, loc="upper center")
