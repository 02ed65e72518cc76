"""RegretDisplay: what miscalibration costs at every threshold of action."""

from typing import TYPE_CHECKING, Any

from .._show import in_legend
from .._typing import Axes
from ..decisions import regret_curve
from ._base import ModelsDisplay

if TYPE_CHECKING:
    from ..decisions import RegretCurve


class RegretDisplay(ModelsDisplay):
    """The regret of acting on predictions that are not recalibrated, against the threshold.

    The area below a curve is half of what recalibration takes off the Brier loss; the dot is the
    threshold that loses most.

    Make one with `from_predictions` or `from_estimator`, which call `regret_curve`, whose
    options are recalibrated, cv, sample_weight, labels and pos_label; draw it again with
    `plot`.

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
        """The curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: the regrets against the thresholds.
        """
        return [[(curve.threshold, curve.regret) for curve in self.curves.values()]]

    def _size(self):
        return 7, 3.6

    def _draw(self, ax):
        draw_regret(ax, self.curves)
        ax.set(xlim=(0, 1), xlabel="threshold of action")


def draw_regret(
    ax: Axes, curves: "dict[str, RegretCurve]", colors: list[str] | None = None
) -> None:
    """Draw regrets; `colors` are the names that the colours are counted from."""
    names = list(curves) if colors is None else colors
    for name, curve in curves.items():
        color = f"C{names.index(name)}"
        text = f"{in_legend(name)}: at most {curve.maximum:.2g}, at {curve.worst_threshold:.2f}"
        ax.plot(curve.threshold, curve.regret, color=color, lw=1.2, label=text)
        if len(curves) == 1:
            ax.fill_between(curve.threshold, 0, curve.regret, color=color, alpha=0.2, lw=0)
        ax.plot(curve.worst_threshold, curve.maximum, "o", color=color, ms=4)
    ax.axhline(0, color="0.2", lw=0.8)
    low, high = ax.get_ylim()
    ax.set(ylabel="regret", ylim=(low, high + 0.25 * (high - low)))
    ax.legend(frameon=False, fontsize="small", loc="upper right")
