"""HeatmapDisplay: a number against two others."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from .._show import in_picture
from .._typing import AnyArray, AxesLike, Self
from ..exceptions import check_known, refuse
from ._base import CurveKwargs, Display


@dataclass(eq=False, repr=False)
class HeatmapDisplay(Display):
    """Heat map of a table, with the numbers written in.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
        NaN is left blank.
    rows, columns : sequence
        What the rows and columns stand for.
    row_name, column_name, value_name : str, default=""
        For the axes and the colour bar.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn_calib.displays import HeatmapDisplay
    >>> display = HeatmapDisplay([[0.1, 0.2], [0.3, 0.4]], ["a", "b"], [1, 2]).plot()
    >>> len(display.ax_.texts)
    4
    """

    values: AnyArray
    rows: Sequence[object]
    columns: Sequence[object]
    _: KW_ONLY
    row_name: str = ""
    column_name: str = ""
    value_name: str = ""

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        row: str,
        column: str,
        *,
        value: str = "criterion",
        **drawn: Any,
    ) -> Self:
        """Draw a search over two parameters.

        Parameters
        ----------
        cv_results : dict
            ``cv_results_`` of `RefineThenCalibrateCV`, or of scikit-learn's searches.
        row, column : str
            Names of two of its columns, such as "param_max_depth" or "stage".
        value : str, default="criterion"
            A column of numbers; the smallest of all other parameters and stages is shown, or the
            largest where its name says "score".
        **drawn
            Passed to `plot`.

        Returns
        -------
        display : HeatmapDisplay

        Raises
        ------
        ValueError
            A name that is not a column.
        """
        for name in (row, column, value):
            check_known("HeatmapDisplay.from_cv_results", "a column", name, cv_results)
        where = [list(cv_results[name]) for name in (row, column)]
        labels = [sorted(set(names), key=_order) for names in where]
        numbers = np.asarray(cv_results[value], dtype=float)
        pick = np.fmax if "score" in value else np.fmin
        table = np.full((len(labels[0]), len(labels[1])), np.nan)
        for r, c, number in zip(*where, numbers, strict=True):
            cell = labels[0].index(r), labels[1].index(c)
            table[cell] = pick(table[cell], number)
        names = {"row_name": _plain(row), "column_name": _plain(column), "value_name": value}
        return cls(table, *labels, **names).plot(**drawn)

    def plot(
        self,
        *,
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
        fmt: str = "{:.3g}",
        colorbar: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure by default.
        curve_kwargs : dict, default=None
            Of the cells: alpha; cmap, "viridis" by default; and vmin and vmax, the numbers at the
            ends of the colours, by default the smallest and the largest.
        fmt : str, default="{:.3g}"
            Of the written numbers; an empty text for none.
        colorbar : bool, default=True

        Returns
        -------
        self : HeatmapDisplay
        """
        if np.shape(self.values) != (len(self.rows), len(self.columns)):
            rule = f"values of shape ({len(self.rows)}, {len(self.columns)})"
            got, cure = f"shape {np.shape(self.values)}", "Pass a label for every row and column"
            refuse("HeatmapDisplay.plot", rule, got, cure)
        return self._drawn_on(ax, curve_kwargs, fmt=fmt, colorbar=colorbar)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """The numbers with their places.

        Returns
        -------
        panels : list of list of tuple of ndarray
            One panel: middles of the columns, middles of the rows, and the values.
        """
        values = np.asarray(self.values, dtype=float)
        row, column = np.indices(values.shape).reshape(2, -1)
        return [[(column + 0.5, row + 0.5, values.ravel())]]

    def _subplots(self):
        return {"figsize": (2.5 + 0.75 * len(self.columns), 1.6 + 0.5 * len(self.rows))}

    _styled = ("alpha", "cmap", "vmin", "vmax")

    _look: ClassVar = {"cells": {"cmap": "viridis"}}

    def _draw(self, ax, fmt, colorbar):
        values = np.asarray(self.values, dtype=float)
        masked = np.ma.masked_invalid(values)
        image = ax.pcolormesh(masked, edgecolors="w", linewidth=1, **self.styles_["cells"])
        ax.invert_yaxis()
        dark = image.norm(values)
        for r, c in np.ndindex(values.shape) if fmt else ():
            if np.isfinite(values[r, c]):
                red, green, blue, _ = image.cmap(dark[r, c])
                ink = "k" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "w"
                given = {"ha": "center", "va": "center", "color": ink, "fontsize": "small"}
                ax.text(c + 0.5, r + 0.5, fmt.format(values[r, c]), **given)
        ax.set_xticks(np.arange(len(self.columns)) + 0.5, [_label(v) for v in self.columns])
        ax.set_yticks(np.arange(len(self.rows)) + 0.5, [_label(v) for v in self.rows])
        ax.tick_params(length=0)
        ax.set(xlabel=in_picture(self.column_name), ylabel=in_picture(self.row_name))
        if colorbar:
            ax.figure.colorbar(image, ax=ax, label=in_picture(self.value_name))


def _order(value):
    """Numbers by size, then the rest as text."""
    number = isinstance(value, int | float | np.number)
    return (not number, value if number else 0, str(value))


def _plain(name):
    return name.removeprefix("param_").rpartition("__")[2]


def _label(value):
    return f"{value:.3g}" if isinstance(value, float | np.floating) else in_picture(value)
