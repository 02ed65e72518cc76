"""StackDisplay: the weights of a stack's candidates, and their losses."""

from typing import Any

import numpy as np

from .._show import in_picture
from .._typing import AxesLike, Self
from ..recalibrators import StackedCalibration
from ._base import Display


class StackDisplay(Display):
    """Bars of the weights of `StackedCalibration`, and the candidates' losses beside them.

    On the right the log loss that each candidate has on rows that it has not seen, with one
    standard error to both sides. Candidates of nearly equal loss share the weight; what is much
    worse than the best has next to none.

    Make one with `from_estimator`; draw it again with `plot`.

    Parameters
    ----------
    weights : dict of str to float
        By candidate, in the order of the bars.
    losses : dict of str to tuple of float
        Mean and standard error, as `StackedCalibration.cv_losses_`; where it is empty there is no
        panel on the right.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import StackDisplay
    >>> from sklearn_calib.recalibrators import StackedCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> stack = StackedCalibration().fit(*make_overconfident(2, 300))
    >>> display = StackDisplay.from_estimator(stack)
    >>> len(display.axes_)
    2
    """

    def __init__(self, weights: dict[str, float], losses: dict[str, tuple[float, float]]) -> None:
        self.weights = weights
        self.losses = losses

    @classmethod
    def from_estimator(cls, stack: StackedCalibration, *, ax: AxesLike | None = None) -> Self:
        """Draw a fitted stack, the largest weight first.

        Parameters
        ----------
        stack : StackedCalibration
            Fitted.
        ax : sequence of matplotlib Axes, default=None
            Two, or one where the stack was fitted without cross-validation; a new figure by
            default.

        Returns
        -------
        display : StackDisplay
        """
        order = sorted(stack.weights_, key=lambda name: -stack.weights_[name])
        weights = {name: stack.weights_[name] for name in order}
        losses = {name: stack.cv_losses_[name] for name in order if name in stack.cv_losses_}
        return cls(weights, losses).plot(ax=ax)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """The ends of the bars, and the mean losses.

        Returns
        -------
        panels : list of list of tuple of ndarray
            Weights, and losses in nats, against the candidates' places.
        """
        panels: list[list[tuple[Any, ...]]] = [
            [(np.array([*self.weights.values()]), np.arange(len(self.weights)))]
        ]
        if self.losses:
            means, _ = np.array([*self.losses.values()]).T
            panels.append([(means, self._places())])
        return panels

    def _places(self):
        names = list(self.weights)
        return np.array([names.index(name) for name in self.losses])

    def _size(self):
        return (8 if self.losses else 5), 1.4 + 0.35 * len(self.weights)

    def _several(self):
        return {"ncols": len(self.points()), "sharey": True}

    def _draw(self, ax, losses=None):
        place = np.arange(len(self.weights))
        ax.barh(place, [*self.weights.values()], 0.6, color="C0", alpha=0.75)
        ax.set(yticks=place, xlabel="weight")
        ax.set_yticklabels([in_picture(name) for name in self.weights])
        ax.set_ylim(len(place) - 0.5, -0.5)
        if losses is None:
            return
        means, errors = np.array([*self.losses.values()]).T
        losses.plot(means, self._places(), "o", color="C0")
        for mean, error, y in zip(means, errors, self._places(), strict=True):
            losses.plot([mean - error, mean + error], [y, y], color="C0", lw=1)
        best = means.min()
        far = means[means < best + 20 * errors.max()].max()
        losses.set_xlim(best - 2 * errors.max(), max(far, best) + 2 * errors.max())
        losses.set(xlabel="log loss of unseen rows [nats]", yticks=place)
        losses.set_ylim(len(place) - 0.5, -0.5)
