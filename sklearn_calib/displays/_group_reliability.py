"""GroupReliabilityDisplay: observed over expected events of groups, and curves of the worst."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, ClassVar, Literal

import numpy as np

from .._argument_checks import validate_count
from .._show import escape_mathtext, make_printable
from .._typing import (
    ArrayLike,
    AxesLike,
    CurveStrategy,
    Estimator,
    Features,
    RandomStateLike,
    Self,
)
from ..exceptions import invalid_input
from ..groups import GroupCalibration, GroupRow, group_calibration
from ..metrics import ReliabilityCurve, reliability_curve, validate_predictions
from ._base import (
    BAR_STYLE_OPTIONS,
    CurveKwargs,
    Display,
    PlottedData,
    add_legend,
    blend_text_with_background,
    draw_unit_square_and_diagonal,
    predict_proba_and_column_labels,
)
from ._reliability import draw_curve

_TITLE_LINE_CHARACTERS = 31
_LABEL_LINE_CHARACTERS = 42


@dataclass(eq=False, repr=False)
class GroupReliabilityDisplay(Display):
    """Dot plot of observed over expected events by group, and reliability diagrams of the worst.

    The dot plot shows the groups with the largest sigma, sorted by observed over
    expected events (O/E). Their intervals are those of `group_calibration`, which hold
    for all groups at once. Groups whose adjusted p-value rejects calibration have
    another colour. Next to the dot plot are the reliability curves of the worst groups,
    isotonic (CORP) ones by default. Grey bands show where a curve would lie if the
    predictions were calibrated; the curves of ``strategy="loess"``, "spline" and
    "polynomial" have none, and show their intervals.

    Make one with `from_predictions` or `from_estimator`; draw it again with `plot`. The
    curves of ``curve_kwargs`` are two kinds, of groups without an error that was found
    and of miscalibrated ones.

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

    found: GroupCalibration
    curves: Sequence[tuple[GroupRow, ReliabilityCurve]] = ()
    n_dots: int = 20

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        groups: Any,
        *,
        depth: Literal[1, 2] = 1,
        n_bins: int = 3,
        min_rows: int = 50,
        level: float = 0.95,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        multiclass: Literal["auto", "confidence", "classwise"] = "auto",
        n_curves: int = 4,
        n_dots: int = 20,
        strategy: CurveStrategy = "isotonic",
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the groups of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        groups : table, dict of columns or list of masks
            As in `group_calibration`.
        depth, n_bins, min_rows, level, n_resamples, random_state, sample_weight, labels
            As in `group_calibration`.
        pos_label, multiclass
            As in `group_calibration`.
        n_curves : int, default=4
            How many reliability curves are drawn; 0 for the dot plot alone.
        n_dots : int, default=20
            The number of groups in the dot plot; 0 for none.
        strategy : {"quantile", "uniform", "isotonic", "polynomial", "loess", "spline"},
        \
default="isotonic"
            Of the curves, as in `reliability_curve`.
        ax, curve_kwargs
            As in `plot`.

        Returns
        -------
        display : GroupReliabilityDisplay
        """
        n_curves = validate_count(n_curves, "n_curves", 0)
        n_dots = validate_count(n_dots, "n_dots", 0)
        if not n_curves + n_dots:
            raise invalid_input(
                expected="n_curves or n_dots above 0",
                got=f"n_curves={n_curves}, n_dots={n_dots}",
                hint="Leave them out for four curves and 20 dots",
            )
        calibration = group_calibration(
            y_true,
            y_proba,
            groups,
            depth=depth,
            n_bins=n_bins,
            min_rows=min_rows,
            level=level,
            n_resamples=n_resamples,
            random_state=random_state,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            multiclass=multiclass,
        )
        predictions = validate_predictions(
            y_true, y_proba, sample_weight, labels, pos_label
        )
        problems = {
            problem.title: problem for problem in predictions.problems(multiclass)
        }
        weighted_rows = predictions.kept
        if weighted_rows is None:
            weighted_rows = np.arange(len(predictions.codes))
        curves = []
        for row, members in _select_worst_rows_with_members(calibration, n_curves):
            # Members are numbers of the rows that the caller passed; the predictions do
            # not have those of weight 0.
            rows = np.searchsorted(weighted_rows, members)
            problem = problems[row.event]
            (curve,) = reliability_curve(
                problem.hit[rows].astype(int),
                problem.score[rows],
                strategy=strategy,
                level=calibration.level,
                sample_weight=problem.weight[rows],
                labels=[0, 1],
            )
            curves.append((row, curve))
        return cls(calibration, curves, n_dots).plot(ax=ax, curve_kwargs=curve_kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: Features,
        y: ArrayLike,
        groups: Any,
        *,
        depth: Literal[1, 2] = 1,
        n_bins: int = 3,
        min_rows: int = 50,
        level: float = 0.95,
        n_resamples: int = 999,
        random_state: RandomStateLike = 0,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: object = None,
        multiclass: Literal["auto", "confidence", "classwise"] = "auto",
        n_curves: int = 4,
        n_dots: int = 20,
        strategy: CurveStrategy = "isotonic",
        ax: AxesLike | None = None,
        curve_kwargs: CurveKwargs = None,
    ) -> Self:
        """Draw the groups of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups, depth, n_bins, min_rows, level, n_resamples, random_state, sample_weight
            As in `from_predictions`.
        labels, pos_label, multiclass, n_curves, n_dots, strategy, ax, curve_kwargs
            As in `from_predictions`.

        Returns
        -------
        display : GroupReliabilityDisplay

        Raises
        ------
        TypeError
            A model without ``predict_proba``; the message names what to write.
        """
        y_proba, labels = predict_proba_and_column_labels(cls, estimator, X, y, labels)
        return cls.from_predictions(
            y,
            y_proba,
            groups,
            depth=depth,
            n_bins=n_bins,
            min_rows=min_rows,
            level=level,
            n_resamples=n_resamples,
            random_state=random_state,
            sample_weight=sample_weight,
            labels=labels,
            pos_label=pos_label,
            multiclass=multiclass,
            n_curves=n_curves,
            n_dots=n_dots,
            strategy=strategy,
            ax=ax,
            curve_kwargs=curve_kwargs,
        )

    def get_plotted_data(self) -> PlottedData:
        """Return the dots, and the curves.

        Returns
        -------
        panels : list of list of tuple of ndarray
            O/E against the places from below, if there are dots; then for each curve
            the observed frequencies against the predicted probabilities.
        """
        rows = self._select_dots()
        ratios = np.array([row.observed_over_expected for row in rows])
        panels: list[list[tuple[Any, ...]]] = []
        if rows:
            panels.append([(ratios, np.arange(len(rows)))])
        for _, curve in self.curves:
            panels.append([(curve.predicted, curve.observed)])
        return panels

    def _select_dots(self):
        """Return the groups of the dot plot, from below."""
        rows = self.found.worst(len(self.found.rows))
        shown = [row for row in rows if np.isfinite(row.observed_over_expected)]
        return sorted(shown[: self.n_dots], key=lambda row: row.observed_over_expected)

    def _make_axes(self, plt):
        """Make axes for the dots at the left, and for the curves in columns beside them."""
        n_dots = len(self._select_dots())
        n_curves = len(self.curves)
        if not n_dots or not n_curves:
            n_columns = min(n_curves, 4)
        else:
            # Beside the dots there is space for two columns of diagrams.
            n_columns = 1 if n_curves < 3 else 2
        n_lines = max(-(-n_curves // max(n_columns, 1)), 1)
        # The sizes are in inches.
        widths = [3.1] * n_columns
        height = 3.5 * n_lines if n_curves else 0.0
        # A mosaic names the panel of each cell; "." leaves a cell empty.
        panel_numbers = np.arange(n_lines * n_columns).reshape(n_lines, n_columns)
        cells = np.where(
            panel_numbers < n_curves, panel_numbers.astype(str), "."
        ).tolist()
        if n_dots:
            widths = [6.6, *widths]
            height = max(1.5 + 0.34 * n_dots, height)
            cells = [["dots", *row] for row in cells]
        figure, axes = plt.subplot_mosaic(
            cells,
            figsize=(sum(widths), height),
            width_ratios=widths,
            layout="constrained",
        )
        # The title of a panel is below the label of another one.
        figure.get_layout_engine().set(h_pad=0.12)
        return [*axes.values()]

    _style_options = BAR_STYLE_OPTIONS

    _default_styles: ClassVar = {
        "no error found": {"color": "C0", "label": "no error found"},
        "miscalibrated": {"color": "C3", "label": "miscalibrated"},
    }

    def _choose_style(self, row):
        calibrated_style, miscalibrated_style = self.styles_.values()
        return (
            miscalibrated_style
            if row.adjusted_p_value <= self.found.alpha
            else calibrated_style
        )

    def _draw(self, *axes):
        rows = self._select_dots()
        if rows:
            self._draw_dots(axes[0], rows)
        for ax, (row, curve) in zip(axes[bool(rows) :], self.curves, strict=True):
            self._draw_curve(ax, row, curve)

    def _draw_dots(self, ax, rows):
        """Draw the ratio of each group as a dot with its interval."""
        positions = np.arange(len(rows))
        ratios, low, high = (
            np.array([getattr(row, name) for row in rows])
            for name in ("observed_over_expected", "ratio_low", "ratio_high")
        )
        # A group without an interval is shown as a dot.
        low, high = (np.where(np.isnan(end), ratios, end) for end in (low, high))
        styles = [self._choose_style(row) for row in rows]
        ax.axvline(
            1, color=blend_text_with_background(ax, 0.35), lw=1, ls="--", zorder=1
        )
        for style in self.styles_.values():
            has_style = np.array([row_style is style for row_style in styles])
            if has_style.any():
                ax.hlines(
                    positions[has_style],
                    low[has_style],
                    high[has_style],
                    lw=1.6,
                    **{"alpha": 0.7} | style,
                )
        colors = [style["color"] for style in styles]
        ax.scatter(ratios, positions, s=28, c=colors, zorder=2.5)
        # One infinite or very long interval must not compress all others.
        longest_end = max(2.0, 1.8 * ratios.max())
        right = max(1.0, min(high.max(), longest_end))
        left = min(low.min(), 1.0)
        ax.set(yticks=positions, ylim=(-0.8, len(rows) - 0.2))
        margin = 0.04 * max(right - left, 0.5)
        ax.set_xlim(left - margin, right + margin)
        labels = []
        for row in rows:
            name = _name_group_and_event_if_several(self.found, row)
            labels.append(_wrap_name(name, _LABEL_LINE_CHARACTERS, 2))
        ax.set_yticklabels(labels, fontsize=8, linespacing=1.05)
        level = f"({100 * self.found.level:.0f} % intervals, for all groups at once)"
        ax.set_xlabel(f"observed / expected events\n{level}", fontsize=9)
        add_legend(ax, ncols=2)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", color=blend_text_with_background(ax, 0.93), zorder=0)
        ax.set_axisbelow(True)

    def _draw_curve(self, ax, row, curve):
        """Draw the reliability diagram of one group."""
        draw_unit_square_and_diagonal(
            ax, aspect="equal", xlabel="predicted", ylabel="observed"
        )
        bands = "confidence" if curve.consistency_low is None else "consistency"
        draw_curve(ax, curve, {"linewidth": 1.6} | self._choose_style(row), bands)
        name = _name_group_and_event_if_several(self.found, row)
        ax.set_title(_wrap_name(name, _TITLE_LINE_CHARACTERS, 3), fontsize=8.5)
        caption = f"{row.n_rows} rows\n{row.sigma:.1f} sigma\nadjusted p {row.adjusted_p_value:.2g}"
        ax.text(
            0.04,
            0.96,
            caption,
            transform=ax.transAxes,
            va="top",
            fontsize=8,
            color=blend_text_with_background(ax, 0.25),
        )
        ax.tick_params(labelsize=8)


def _wrap_name(name, width, max_lines):
    """Wrap a name into at most `max_lines` lines, cut in the middle if it is longer."""
    lines = wrap(make_printable(name, None), width)
    if len(lines) > max_lines:
        # Breaks between words leave a part of each line empty.
        n_characters = width * max_lines - width // 3
        lines = wrap(make_printable(name, n_characters), width)[:max_lines]
    return "\n".join(escape_mathtext(line, 2 * width) for line in lines)


def _name_group_and_event_if_several(calibration, row):
    """Return the name of the group, with the event if there are several."""
    events = {other_row.event for other_row in calibration.rows}
    return f"{row.group} | {row.event}" if len(events) > 1 else row.group


def _select_worst_rows_with_members(calibration, n):
    """Return the rows of the largest sigma with their members."""
    order = np.argsort([-row.sigma for row in calibration.rows], kind="stable")
    return [
        (calibration.rows[index], calibration.members[index]) for index in order[:n]
    ]
