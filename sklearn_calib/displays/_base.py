"""Display: what all displays share."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._extras import require
from .._typing import AnyArray, Axes, AxesLike, Self
from ..exceptions import refuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Display:
    """A picture of a result: the axes, the figure and what is in it.

    A subclass stores the result in its constructor and computes nothing there. It writes `points`
    and ``_draw(*axes)``, which gets one matplotlib Axes per panel; the public `plot` is written
    here, makes the axes where none are given, and calls ``_draw``. A display with options has a
    ``plot`` of its own that ends with ``return self._drawn_on(ax, option=option)``.

    Attributes
    ----------
    figure_ : matplotlib Figure
        After `plot`.
    axes_ : ndarray of matplotlib Axes
        After `plot`, one per panel.
    ax_ : matplotlib Axes
        After `plot`, where there is one panel.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import Display
    >>> class LineDisplay(Display):
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def points(self):
    ...         return [[(self.x, self.y)]]
    ...     def _draw(self, ax):
    ...         ax.plot(self.x, self.y)
    >>> display = LineDisplay([0, 1], [2, 3]).plot()
    >>> display.figure_ is display.ax_.figure
    True
    """

    figure_: "Figure"
    axes_: AnyArray
    ax_: Axes

    def points(self) -> list[list[tuple[Any, ...]]]:
        """What the display shows, as numbers.

        Returns
        -------
        panels : list of list of tuple of array-like of shape (n_points,)
            For each panel the pairs (x, y) that are drawn there as a line, as dots or as the ends
            of bars; (x, y, value) where the value is shown by a colour.
        """
        raise NotImplementedError(f"{type(self).__name__} has no points; see Display")

    def plot(self, *, ax: AxesLike | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of Axes, default=None
            Where to draw, one per panel; a new figure by default.

        Returns
        -------
        self : Display

        Raises
        ------
        ValueError
            Another number of axes than panels.
        ModuleNotFoundError
            Matplotlib is not installed.
        """
        return self._drawn_on(ax)

    def _drawn_on(self, axes, **options):
        """Draw on the axes or on new ones; returns the display itself."""
        where = f"{type(self).__name__}.plot"
        if axes is None:
            axes = self._new_axes(require("matplotlib.pyplot", "plot", where))
        axes = np.ravel(np.asarray(axes, dtype=object))
        count = len(self.points())
        if len(axes) != count:
            refuse(
                where,
                f"{count} axes, one per panel",
                f"{len(axes)}",
                "Leave them out for a new figure",
            )
        self._draw(*axes, **options)
        self.axes_, self.figure_ = axes, axes[0].figure
        if count == 1:
            self.ax_ = axes[0]
        return self

    def _new_axes(self, plt):
        """The axes of a new figure; by default one, of the size that ``_size()`` tells."""
        return plt.subplots(figsize=self._size(), layout="constrained")[1]

    def _size(self):
        """Width and height of a new figure in inches; None is Matplotlib's default."""
        return None

    def _draw(self, *axes):
        raise NotImplementedError(f"{type(self).__name__} has no _draw; see Display")


def grid(
    plt: Any,
    count: int,
    panel: tuple[float, float],
    margin: tuple[float, float] = (0.0, 0.0),
    **options: Any,
) -> AnyArray:
    """The axes of a new figure in rows of four or fewer, shape (n_rows, n_columns).

    Parameters
    ----------
    plt : module
        ``matplotlib.pyplot``.
    count : int
        Panels; the places behind them are empty.
    panel, margin : tuple of float
        Width and height in inches of one panel, and of what surrounds them all.
    **options
        Passed to ``subplots``.
    """
    columns = min(count, 4)
    rows = -(-count // columns)
    size = margin[0] + panel[0] * columns, margin[1] + panel[1] * rows
    _, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, **options)
    for unused in axes.flat[count:]:
        unused.remove()
    return axes


def draw_diagonal(ax: Axes) -> None:
    """Where observed frequencies equal predicted probabilities."""
    ax.plot([0, 1], [0, 1], color="0.35", lw=1, ls="--", zorder=1.5)
