"""One panel of a reliability diagram: curves with bands, and the histogram below them."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from .._kernels._logit_axis import EDGES, LogitAxis
from .._show import in_legend
from .._typing import Axes
from ._base import draw_diagonal, next_color, on_log_odds, once, shade

if TYPE_CHECKING:
    from ..metrics import ReliabilityCurve

_HISTOGRAM = "_histogram of a reliability diagram"
_MARGIN = "_where a margin begins"


def histogram_of(ax: Axes) -> Axes | None:
    """The axes below a panel that a display has drawn; None of other axes."""
    others = ax.get_shared_x_axes().get_siblings(ax) if hasattr(ax, "get_shared_x_axes") else []
    return next((one for one in others if one.get_label() == _HISTOGRAM), None)


def scale_of(ax: Axes) -> str | None:
    """The scale of the display on these axes, "linear" or "logit"; None where there is none."""
    if histogram_of(ax) is None:
        return None
    return "logit" if ax.get_xscale() == "function" else "linear"


class Panel:
    """A reliability diagram on one axes, and the axes of the histogram below.

    Parameters
    ----------
    ax : matplotlib Axes
        New ones, or those of a display that was drawn before: then the histogram is shared.
    curves : list of ReliabilityCurve
        Those that will be added.
    logit : bool
        Whether both axes are on log-odds.
    """

    histogram: Any  # matplotlib's types know no columns of `stairs`
    axis: LogitAxis

    def __init__(self, ax: Axes, curves: "list[ReliabilityCurve]", logit: bool) -> None:
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        self.ax, self.logit = ax, logit
        known = histogram_of(ax)
        self.alone = known is None and len(curves) == 1
        if known is None:
            draw_diagonal(ax)
            divider = make_axes_locatable(ax)
            known = divider.append_axes("bottom", size="22%", pad=0.12, sharex=ax)
            known.set_label(_HISTOGRAM)
        self.histogram = known
        for patch in self.histogram.patches:  # of the display before, which is no longer alone
            patch.set(edgecolor=patch.get_facecolor(), fill=False, linewidth=1)
        if logit:
            self._on_log_odds(curves)
        else:
            ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.set(ylabel="observed frequency", aspect="equal")
        ax.tick_params(labelbottom=False)
        self.histogram.set(xlabel="predicted probability", ylabel="share")
        for one in (ax, self.histogram):
            one.spines[["top", "right"]].set_visible(False)

    def _on_log_odds(self, curves):
        """Scale, limits and ticks, with room for these curves and for those drawn before."""
        ax = self.ax
        axis = self.axis = on_log_odds(ax, LogitAxis.of_curves(curves))
        self.histogram.tick_params(axis="x", labelsize="small")
        for line in [line for line in ax.lines if line.get_label() == _MARGIN]:
            line.remove()
        given = {"color": shade(ax, 0.55), "lw": 0.8, "ls": ":", "zorder": 1.4, "label": _MARGIN}
        for border in axis.borders:
            ax.axvline(border, **given)
            ax.axhline(border, **given)

    def add(self, name: str, curve: "ReliabilityCurve | None", bands: str) -> None:
        """Draw a curve with its bands and its histogram; without one its colour is left out."""
        ax, color = self.ax, next_color(self.ax)
        ends: Any
        style: dict[str, Any]
        if curve is None:
            return
        if self.logit:
            curve = _part(curve, self.axis.shows(curve.predicted))
        if bands in ("both", "consistency") and curve.consistency_low is not None:
            label = once(ax, f"if calibrated ({curve.level:.0%})")
            ends = curve.consistency_low, curve.consistency_high
            grey = shade(ax, 0.85)
            ax.fill_between(curve.predicted, *ends, color=grey, lw=0, zorder=1, label=label)
        if bands in ("both", "confidence") and curve.confidence_low is not None:
            _draw_confidence(ax, curve, color)
        style = {"drawstyle": "steps-mid"} if curve.strategy == "isotonic" else {}
        binned = curve.strategy in ("quantile", "uniform")
        if binned:
            style = {"marker": "o", "ms": 4}
        ax.plot(curve.predicted, curve.observed, color=color, label=in_legend(name), **style)
        if self.logit:
            self._mark_ends(curve, color, binned)
            shares, edges = curve.log_odds_histogram[1:-1], expit(EDGES)
            self._draw_ends(curve, color)
        else:
            shares, edges = curve.histogram, np.linspace(0, 1, len(curve.histogram) + 1)
        self.histogram.stairs(shares, edges, color=color, fill=self.alone, alpha=0.8)

    def _mark_ends(self, curve, color, binned):
        """Open markers where a prediction or a frequency is exactly 0 or 1."""
        x, y = curve.predicted, curve.observed
        ends = (x <= 0) | (x >= 1) | (((y <= 0) | (y >= 1)) & binned)
        if ends.any():
            given = {"color": color, "mfc": self.ax.get_facecolor(), "zorder": 2.5}
            self.ax.plot(x[ends], y[ends], "o", ms=5, **given)

    def _draw_ends(self, curve, color):
        """The shares of rows of exactly 0 and 1, as bars in the margins."""
        ends = curve.log_odds_histogram[[0, -1]]
        for p, share in zip((0, 1), ends, strict=True):
            if share > 0:
                given = {"color": color, "lw": 5 if self.alone else 2, "alpha": 0.8}
                self.histogram.plot([p, p], [0, share], solid_capstyle="butt", **given)

    def finish(self, legend: bool) -> None:
        """Fit the histogram's height; one entry of the legend for each curve and kind of band."""
        columns = [patch.get_data().values.max() for patch in self.histogram.patches]
        ends = [line.get_ydata().max() for line in self.histogram.lines]
        self.histogram.set_ylim(0, 1.05 * max([*columns, *ends], default=1))
        if not legend:
            return
        self.ax.legend(loc="upper left", frameon=False, fontsize="small")


def _part(curve, shown):
    """The points of a curve that are shown."""
    kinds = ("consistency_low", "consistency_high", "confidence_low", "confidence_high")
    bands = {kind: getattr(curve, kind) for kind in kinds}
    return replace(
        curve,
        predicted=curve.predicted[shown],
        observed=curve.observed[shown],
        **{kind: band if band is None else band[shown] for kind, band in bands.items()},
    )


def _draw_confidence(axes, curve, color):
    if curve.strategy in ("isotonic", "polynomial"):
        belt = curve.strategy == "polynomial"
        label = once(axes, f"calibration belt ({curve.level:.0%})") if belt else None
        ends = curve.confidence_low, curve.confidence_high
        style = {"step": None if belt else "mid", "color": color, "alpha": 0.25, "lw": 0}
        axes.fill_between(curve.predicted, *ends, label=label, **style)
        return
    low = np.minimum(curve.confidence_low, curve.observed)
    high = np.maximum(curve.confidence_high, curve.observed)
    axes.vlines(curve.predicted, low, high, color=color, lw=1, alpha=0.7)
