"""RegretDisplay: what miscalibration costs at every threshold of action."""

from typing import Any, ClassVar

from .._typing import Axes
from ..decisions import RegretCurve, regret_curve
from ._base import ModelsDisplay, legend, shade


class RegretDisplay(ModelsDisplay):
    """Regret curve: the loss by acting on predictions without recalibration, at each threshold.

    The area below a curve is half of what recalibration takes off the Brier loss; the dot is the
    threshold that loses most, with the interval of the largest regret.

    Make one with `from_predictions` or `from_estimator`, which call `regret_curve`, whose
    options are recalibrated, cv, level, n_resamples, random_state, sample_weight, labels and
    pos_label; draw it again with `plot`.

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

    _result_of = staticmethod(regret_curve)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """Return the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: for each model the regret against the threshold, and both ends of the
            interval of the largest one.
        """
        parts = []
        for curve in self.curves.values():
            worst = curve.worst_threshold
            parts += [(curve.threshold, curve.regret), ([worst, worst], curve.maximum_interval)]
        return [parts]

    _figure: ClassVar = {"figsize": (7, 3.6)}

    def _draw(self, ax):
        draw_regret(ax, [*self._in_turn(ax)])
        ax.set(xlim=(0, 1), xlabel="threshold of action")


def draw_regret(ax: Axes, curves: list[tuple[RegretCurve, dict[str, Any]]]) -> None:
    """Draw regrets, each with what it looks like."""
    for curve, style in curves:
        color = style["color"]
        low, high = curve.maximum_interval
        text = f"{style['label']}: largest {curve.maximum:.2g} at {curve.worst_threshold:.2f}"
        text += f", {100 * curve.level:g} % interval {low:.2g} to {high:.2g}"
        ax.plot(curve.threshold, curve.regret, **{"linewidth": 1.2} | style | {"label": text})
        if len(curves) == 1:
            ax.fill_between(curve.threshold, 0, curve.regret, color=color, alpha=0.2, lw=0)
        worst = curve.worst_threshold
        ax.plot(worst, curve.maximum, "o", color=color, ms=4)
        ax.plot([worst, worst], [low, high], color=color, lw=1, marker="_")
    ax.axhline(0, color=shade(ax, 0.2), lw=0.8)
    low, high = ax.get_ylim()
    ax.set(ylabel="regret", ylim=(low, high + 0.25 * (high - low)))
    legend(ax, loc="upper right")
