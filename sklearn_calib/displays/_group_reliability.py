"""GroupReliabilityDisplay: observed over expected events of groups, and curves of the worst."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from .._show import in_picture, plain
from ..canonical import canonical_weight
from ..exceptions import check_count, refuse
from ..groups import GroupCalibration, GroupRow, group_calibration
from ..metrics import ReliabilityCurve, canonical_case, reliability_curve
from ._base import ABOVE_RIGHT, ResultDisplay, legend, shade, unit_square

_FINE, _WRONG = "C0", "C3"
_LINE = 31  # characters of a title
_LABEL = 42


@dataclass(eq=False, repr=False)
class GroupReliabilityDisplay(ResultDisplay):
    """Dot plot of observed over expected events by group, and reliability diagrams of the worst.

    The dot plot shows the groups with the largest sigma, sorted by observed over expected events
    (O/E). Their intervals are those of `group_calibration`, which hold for all groups at once.
    Groups whose adjusted p-value rejects calibration have another colour. Next to the dot plot are
    the isotonic (CORP) reliability curves of the worst groups. The shaded bands show where these
    curves would lie if the predictions were calibrated.

    Make one with ``from_predictions(y_true, y_proba, groups)`` or with
    ``from_estimator(estimator, X, y, groups)``, groups being a table, dict of columns or list of
    masks as `group_calibration` takes them. Both take ``n_curves``, how many reliability curves are
    drawn (4 by default, 0 for the dot plot alone), `n_dots`, and the options of
    `group_calibration`: depth, n_bins, min_rows, level, n_resamples, multiclass, sample_weight,
    labels, pos_label and random_state. Draw it again with `plot`.

    Parameters
    ----------
    found : GroupCalibration
        As `group_calibration` returns it.
    curves : list of (GroupRow, ReliabilityCurve)
        The worst groups with their curves; may be empty.
    n_dots : int, default=20
        The number of groups in the dot plot; 0 for none.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        The dot plot if there is one, and one for each curve.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from sklearn_calib.displays import GroupReliabilityDisplay
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 600)
    >>> site = {"site": np.array(["north", "south", "west"])[np.arange(600) % 3]}
    >>> display = GroupReliabilityDisplay.from_predictions(y, proba, site, n_curves=2)
    >>> len(display.axes_)
    3
    """

    _result_of = staticmethod(group_calibration)

    found: GroupCalibration
    curves: Sequence[tuple[GroupRow, ReliabilityCurve]] = ()
    n_dots: int = 20

    @classmethod
    def _made(cls, y_true, y_proba, groups, *, n_curves=4, n_dots=20, **options):
        where = "GroupReliabilityDisplay.from_predictions"
        n_curves, n_dots = (
            check_count(n, name, where, 0)
            for n, name in ((n_curves, "n_curves"), (n_dots, "n_dots"))
        )
        if not n_curves + n_dots:
            got = f"n_curves={n_curves}, n_dots={n_dots}"
            refuse(where, "something to draw", got, "Leave them out for four curves and 20 dots")
        found = group_calibration(y_true, y_proba, groups, **options)
        given = {key: options.get(key) for key in ("sample_weight", "labels", "pos_label")}
        case = canonical_case(where, y_true, y_proba, *given.values())
        problems = {one.title: one for one in case.problems(options.get("multiclass", "auto"))}
        kept = np.arange(len(case.codes))
        if given["sample_weight"] is not None:
            kept = np.flatnonzero(canonical_weight(given["sample_weight"], len(np.asarray(y_true))))
        curves = []
        for row, members in _worst(found, n_curves):
            rows, problem = np.searchsorted(kept, members), problems[row.event]
            (curve,) = reliability_curve(
                problem.hit[rows].astype(int),
                problem.score[rows],
                labels=[0, 1],
                sample_weight=problem.weight[rows],
                strategy="isotonic",
                level=found.level,
            )
            curves.append((row, curve))
        return cls(found, curves, n_dots)

    def points(self) -> list[list[tuple[Any, ...]]]:
        """The dots, and the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            O/E against the places from below, if there are dots; then for each curve the observed
            frequencies against the predicted probabilities.
        """
        rows = self._dots()
        ratios = np.array([row.observed_over_expected for row in rows])
        dots = [[(ratios, np.arange(len(rows)))]] if rows else []
        return [*dots, *([(one.predicted, one.observed)] for _, one in self.curves)]

    def _dots(self) -> list[GroupRow]:
        """The groups of the dot plot, from below."""
        known = [
            row
            for row in self.found.worst(len(self.found.rows))
            if np.isfinite(row.observed_over_expected)
        ]
        return sorted(known[: self.n_dots], key=lambda row: row.observed_over_expected)

    def _new_axes(self, plt):
        dots, count = len(self._dots()), len(self.curves)
        columns = (1 if count < 3 else 2) * bool(count) if dots else min(count, 4)
        lines = max(-(-count // max(columns, 1)), 1)
        left = 6.6 if dots else 0.0
        height = max(1.5 + 0.34 * dots if dots else 0.0, 3.5 * lines if count else 0.0)
        figure = plt.figure(figsize=(left + 3.1 * columns, height), layout="constrained")
        widths = [left] * bool(dots) + [3.1] * columns
        grid = figure.add_gridspec(lines, len(widths), width_ratios=widths)
        axes = [figure.add_subplot(grid[:, 0])] if dots else []
        first = len(axes)
        for number in range(count):
            line, column = divmod(number, columns)
            axes.append(figure.add_subplot(grid[line, first + column]))
        return axes

    def _draw(self, *axes):
        rows = self._dots()
        if rows:
            self._draw_dots(axes[0], rows)
        for ax, (row, curve) in zip(axes[bool(rows) :], self.curves, strict=True):
            self._draw_curve(ax, row, curve)

    def _draw_dots(self, ax, rows):
        place = np.arange(len(rows))
        value, low, high = (
            np.array([getattr(row, name) for row in rows])
            for name in ("observed_over_expected", "ratio_low", "ratio_high")
        )
        low, high = (np.where(np.isnan(end), value, end) for end in (low, high))  # no interval
        wrong = np.array([row.adjusted_p_value <= self.found.alpha for row in rows])
        ax.axvline(1, color=shade(ax, 0.35), lw=1, ls="--", zorder=1)
        kinds = ((~wrong, _FINE, "no error found"), (wrong, _WRONG, "miscalibrated"))
        for chosen, color, label in kinds:
            if chosen.any():
                ends = place[chosen], low[chosen], high[chosen]
                ax.hlines(*ends, color=color, lw=1.6, alpha=0.7, label=label)
        ax.scatter(value, place, s=28, c=np.where(wrong, _WRONG, _FINE), zorder=2.5)
        right = max(1.0, min(high.max(), max(2.0, 1.8 * value.max())))
        left = min(low.min(), 1.0)
        ax.set(yticks=place, ylim=(-0.8, len(rows) - 0.2))
        margin = 0.04 * max(right - left, 0.5)
        ax.set_xlim(left - margin, right + margin)
        names = [_in_lines(_name(self.found, row), _LABEL, 2) for row in rows]
        ax.set_yticklabels(names, fontsize=8, linespacing=1.05)
        level = f"({self.found.level:.0%} intervals, for all groups at once)"
        ax.set_xlabel(f"observed / expected events\n{level}", fontsize=9)
        legend(ax, ncols=2, **ABOVE_RIGHT)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", color=shade(ax, 0.93), zorder=0)
        ax.set_axisbelow(True)

    def _draw_curve(self, ax, row, curve):
        unit_square(ax, aspect="equal")
        if curve.consistency_low is not None:
            ends = curve.consistency_low, curve.consistency_high
            ax.fill_between(
                curve.predicted, *ends, color=shade(ax, 0.85), lw=0, zorder=1, step="mid"
            )
        color = _WRONG if row.adjusted_p_value <= self.found.alpha else _FINE
        ax.step(curve.predicted, curve.observed, where="mid", color=color, lw=1.6)
        name = _name(self.found, row)
        ax.set_title(_in_lines(name, _LINE, 3), fontsize=8.5)
        told = f"{row.n_rows} rows\n{row.sigma:.1f} sigma\nadjusted p {row.adjusted_p_value:.2g}"
        ax.text(
            0.04, 0.96, told, transform=ax.transAxes, va="top", fontsize=8, color=shade(ax, 0.25)
        )
        ax.set_xlabel("predicted", fontsize=9)
        ax.set_ylabel("observed", fontsize=9)
        ax.tick_params(labelsize=8)


def _in_lines(name, width, most):
    """A name in so many lines at most, cut in the middle where they do not hold it."""
    lines = wrap(plain(name, None), width)
    if len(lines) > most:
        lines = wrap(plain(name, width * most - width // 3), width)[:most]
    return "\n".join(in_picture(line, 2 * width) for line in lines)


def _name(found, row):
    """The group, and of several events which."""
    several = len({one.event for one in found.rows}) > 1
    return f"{row.group} | {row.event}" if several else row.group


def _worst(found, n):
    """The rows of the largest sigma with their members."""
    order = np.argsort([-row.sigma for row in found.rows], kind="stable")
    return [(found.rows[place], found.members[place]) for place in order[:n]]
