"""StackDisplay: the weights of a stack's candidates, and their losses."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._typing import AxesLike, Self
from ..recalibrators import StackedCalibration
from ._base import CurveKwargs, Display, PlottedData, name_rows


@dataclass(eq=False, repr=False)
class StackDisplay(Display):
    """Bars of the weights of `StackedCalibration`, and the candidates' losses beside them.

    On the right the log loss that each candidate has on rows that it has not seen, with
    one standard error to both sides. Candidates of nearly equal loss share the weight;
    what is much worse than the best has next to none. The curves of ``curve_kwargs``,
    with alpha and color, are the weights and the losses.

    Make one with `from_estimator`; draw it again with `plot`. It has no
    ``from_predictions``, since it shows a fitted recalibrator.

    Parameters
    ----------
    weights : dict of str to float
        By candidate, in the order of the bars.
    losses : dict of str to tuple of float
        Mean and standard error, as `StackedCalibration.cv_losses_`; if it is empty
        there is no panel on the right.

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

    weights: dict[str, float]
    losses: dict[str, tuple[float, float]]

    @classmethod
    def from_estimator(
        cls,
        stack: StackedCalibration,
        *,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw a fitted stack, the largest weight first.

        Parameters
        ----------
        stack : StackedCalibration
            Fitted.
        ax, curve_kwargs
            As in `plot`. There is one panel if the stack was fitted without
            cross-validation.

        Returns
        -------
        display : StackDisplay
        """
        order = sorted(stack.weights_, key=lambda name: -stack.weights_[name])
        weights = {name: stack.weights_[name] for name in order}
        losses = {}
        for name in order:
            if name in stack.cv_losses_:
                losses[name] = stack.cv_losses_[name]
        return cls(weights, losses).plot(ax=ax, curve_kwargs=curve_kwargs)

    def get_plotted_data(self) -> PlottedData:
        """Return the ends of the bars, and the mean losses.

        Returns
        -------
        panels : list of list of tuple of ndarray
            Weights, and losses in nats, against the candidates' places.
        """
        weights = np.array([*self.weights.values()])
        panels: list[Any] = [[(weights, np.arange(len(weights)))]]
        if self.losses:
            means, _ = np.array([*self.losses.values()]).T
            panels.append([(means, self._compute_loss_positions())])
        return panels

    def _compute_loss_positions(self):
        names = list(self.weights)
        return np.array([names.index(name) for name in self.losses])

    def _get_subplot_options(self):
        figure_size = 8 if self.losses else 5, 1.4 + 0.35 * len(self.weights)
        return {
            "figsize": figure_size,
            "ncols": len(self.get_plotted_data()),
            "sharey": True,
        }

    _style_options = ("alpha", "color")

    _default_styles: ClassVar = {
        "weights": {"color": "C0", "alpha": 0.75},
        "losses": {"color": "C0"},
    }

    def _draw(self, ax, losses=None):
        """Draw the weights, and the losses on a second panel if they are known."""
        positions = np.arange(len(self.weights))
        ax.barh(positions, [*self.weights.values()], 0.6, **self.styles_["weights"])
        ax.set_xlabel("weight")
        name_rows(ax, self.weights)
        if losses is None:
            return
        means, errors = np.array([*self.losses.values()]).T
        losses.plot(
            means, self._compute_loss_positions(), "o", **self.styles_["losses"]
        )
        style = self.styles_["losses"]
        losses.hlines(
            self._compute_loss_positions(),
            means - errors,
            means + errors,
            lw=1,
            **style,
        )
        # A candidate that is far worse must not compress all others.
        lowest_mean = means.min()
        highest_mean = means[means < lowest_mean + 20 * errors.max()].max()
        losses.set_xlim(
            lowest_mean - 2 * errors.max(),
            max(highest_mean, lowest_mean) + 2 * errors.max(),
        )
        losses.set_xlabel("log loss of unseen rows [nats]")
        name_rows(losses, self.weights)
