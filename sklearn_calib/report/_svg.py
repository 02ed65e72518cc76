"""Reliability diagrams as inline SVG: curves in, text out.

Colours are classes, which the style of a report fills; the numbers of the element under
the pointer are its ``<title>``. Nothing that a user named is drawn: names stand in the
text around a picture.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

from .._kernels._picture_axes import INNER_LOG_ODDS_EDGES, LogitAxis, format_probability
from .._show import escape_html

if TYPE_CHECKING:
    from ..metrics import ReliabilityCurve


class DiagramSeries(NamedTuple):
    """One model in a diagram.

    Attributes
    ----------
    curve : ReliabilityCurve
        Of bins: drawn as dots with their intervals.
    steps : ReliabilityCurve or None
        Of strategy "isotonic": drawn as a line of steps.
    tone : int
        Its colour and shape: 0 filled dots ("before"), 1 open ones ("after").
    """

    curve: "ReliabilityCurve"
    steps: "ReliabilityCurve | None" = None
    tone: int = 0


class DiagramFrame(NamedTuple):
    """Where a diagram lies in its picture, in units of the picture.

    Attributes
    ----------
    width, height : int
        Of the picture.
    left, top, side : int
        Of the square of the diagram.
    bars : tuple of int
        Top and bottom of the histogram below it.
    ticks : tuple of float
        Numbers at both axes.
    axis : LogitAxis or None
        If both are on log-odds.
    """

    width: int
    height: int
    left: int
    top: int
    side: int
    bars: tuple[int, int]
    ticks: tuple[float, ...]
    axis: LogitAxis | None = None

    def locate_x(self, value: float) -> float:
        """Return the horizontal place of a probability."""
        return self.left + self.side * self._locate_fraction_on_axis(value)

    def locate_y(self, value: float) -> float:
        """Return the vertical place of a frequency."""
        return self.top + self.side * (1 - self._locate_fraction_on_axis(value))

    def _locate_fraction_on_axis(self, value):
        if self.axis is None:
            return value
        return np.clip(self.axis.locate_fraction(value), 0, 1)

    def make_log_odds_frame(
        self, curves: "Iterable[ReliabilityCurve]"
    ) -> "DiagramFrame":
        """Return the frame whose axes are on log-odds, with space for the curves."""
        axis = LogitAxis.from_curves(curves)
        ticks = axis.get_tick_probabilities_and_labels(self.side / _DIGIT_WIDTH)
        left = self.left + _EXTRA_LEFT_MARGIN
        width = self.width + _EXTRA_LEFT_MARGIN
        return self._replace(
            left=left, width=width, axis=axis, ticks=tuple(p for p, _ in ticks)
        )


_DIGIT_WIDTH = 7.2
# Numbers of dots that are closer would overlap.
_MIN_NUMBER_DISTANCE = 13
# Space for 0.0001 at the left axis.
_EXTRA_LEFT_MARGIN = 14

LARGE_FRAME = DiagramFrame(
    360,
    414,
    56,
    10,
    296,
    (316, 372),
    (0, 0.2, 0.4, 0.6, 0.8, 1),
)
SMALL_FRAME = DiagramFrame(198, 222, 46, 6, 146, (158, 186), (0, 0.5, 1))


def draw_diagram(
    series: Sequence[DiagramSeries],
    label: str,
    frame: DiagramFrame = LARGE_FRAME,
    number_bins: bool = True,
) -> str:
    """Draw a reliability diagram above the histogram of the scores, as an SVG element.

    Parameters
    ----------
    series : sequence of DiagramSeries
        At least one. The band of calibrated predictions is drawn if there is only one.
    label : str
        What the picture shows, as a sentence, for those who do not see it; not yet
        escaped.
    frame : Frame
    number_bins : bool, default=True
        Number the dots of a large diagram as in the table of bins, which has the rows
        before recalibration.
    """
    number_bins = number_bins and frame.side == LARGE_FRAME.side
    parts = _make_reliability_axis_elements(
        frame, series[0].curve.title == "confidence"
    )
    parts += [_format_margin_borders_svg_if_any(frame)]
    left = frame.left
    bottom = frame.top + frame.side
    # Bands of two series would hide each other.
    if len(series) == 1:
        parts.append(_format_consistency_band_svg_if_any(frame, series[0].curve))
    parts.append(
        f'<path class="diagonal" d="M{_format_xy(left, bottom)}'
        f'L{_format_xy(left + frame.side, frame.top)}">'
        "<title>calibrated: as often as predicted</title></path>"
    )
    for model_series in series:
        parts.append(
            _format_series_svg(
                frame, model_series, number_bins and model_series.tone == 0
            )
        )
    parts.append(_format_histogram_svg(frame, series))
    size = "small" if frame.side < LARGE_FRAME.side else "large"
    return (
        f'<svg class="diagram {size}" viewBox="0 0 {frame.width} {frame.height}" role="img" '
        f'aria-label="{escape_html(label, None)}">\n'
        + "\n".join(filter(None, parts))
        + "\n</svg>"
    )


def _format_px(value):
    """Format a coordinate to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _format_xy(x, y):
    return f"{_format_px(x)} {_format_px(y)}"


def _format_path(points):
    """Return the path through points."""
    return "M" + "L".join(_format_xy(x, y) for x, y in points)


def _make_reliability_axis_elements(frame, confidence):
    """Draw grid, numbers and names of the axes."""
    left = frame.left
    right = frame.left + frame.side
    low = frame.bars[1]
    high = frame.bars[0]
    grid = ""
    numbers = []
    for tick in frame.ticks:
        x = frame.locate_x(tick)
        y = frame.locate_y(tick)
        grid += f"M{_format_xy(left, y)}H{_format_px(right)}"
        grid += f"M{_format_xy(x, frame.top)}V{frame.top + frame.side}"
        text = f"{tick:g}" if frame.axis is None else format_probability(tick)
        numbers.append(
            f'<text x="{_format_px(x)}" y="{low + 14}" class="middle">{text}</text>'
        )
        numbers.append(
            f'<text x="{_format_px(left - 8)}" y="{_format_px(y + 4)}" class="end">{text}</text>'
        )
    small = frame.side < LARGE_FRAME.side
    across, up = ("predicted", "observed") if small else _choose_axis_names(confidence)
    if frame.axis is not None:
        across, up = (name.replace("(0 to 1)", "(log-odds)") for name in (across, up))
    numbers.append(
        f'<text x="{_format_px((left + right) / 2)}" y="{frame.height - 6}" class="middle name">'
        f"{across}</text>"
    )
    numbers.append(
        _format_rotated_text_svg(up, 10 if small else 14, frame.top + frame.side / 2)
    )
    if not small:
        numbers.append(_format_rotated_text_svg("rows, %", 14, (low + high) / 2))
    return [
        f'<path class="grid" d="{grid}"/>',
        f'<path class="frame" d="M{_format_xy(left, low)}H{_format_px(right)}"/>',
        *numbers,
    ]


def _format_margin_borders_svg_if_any(frame):
    """Return dotted lines behind which exact zeros and ones lie."""
    if frame.axis is None or not frame.axis.margin_border_proba:
        return ""
    right = frame.left + frame.side
    bottom = frame.top + frame.side
    lines = "".join(
        f"M{_format_px(frame.locate_x(p))} {frame.top}V{bottom}M{frame.left} "
        f"{_format_px(frame.locate_y(p))}H{right}"
        for p in frame.axis.margin_border_proba
    )
    return (
        f'<path class="margin" d="{lines}"><title>beyond: exactly 0 or 1</title></path>'
    )


def _choose_axis_names(confidence):
    if confidence:
        return "confidence: the largest probability (0 to 1)", "accuracy (0 to 1)"
    return "predicted probability (0 to 1)", "observed frequency (0 to 1)"


def _format_rotated_text_svg(text, x, y):
    return (
        f'<text transform="translate({x} {_format_px(y)}) rotate(-90)" class="middle name">'
        f"{text}</text>"
    )


def _format_consistency_band_svg_if_any(frame, curve):
    """Return the area in which the points of calibrated predictions lie."""
    if curve.consistency_low is None or curve.consistency_high is None:
        return ""
    x = frame.locate_x(curve.predicted)
    around = [
        *zip(x, frame.locate_y(curve.consistency_low), strict=True),
        *zip(x[::-1], frame.locate_y(curve.consistency_high)[::-1], strict=True),
    ]
    return (
        f'<path class="band" d="{_format_path(around)}Z"><title>calibrated predictions lie here '
        f"with probability {100 * curve.level:.0f} %</title></path>"
    )


def _format_series_svg(frame, series, number_bins):
    """Return the line or steps of a series, its intervals, and its dots with texts."""
    curve = series.curve
    x = frame.locate_x(curve.predicted)
    y = frame.locate_y(curve.observed)
    parts = []
    if series.steps is not None:
        parts.append(
            f'<path class="steps" d="{format_steps_path(frame, series.steps)}">'
            "<title>isotonic fit (no bins)</title></path>"
        )
    else:
        parts.append(f'<path class="line" d="{_format_path(zip(x, y, strict=True))}"/>')
    low = curve.confidence_low
    high = curve.confidence_high
    if low is not None and high is not None:
        bars = zip(x, frame.locate_y(low), frame.locate_y(high), strict=True)
        bars = "".join(
            f"M{_format_xy(across, a)}V{_format_px(b)}" for across, a, b in bars
        )
        parts.append(f'<path class="interval" d="{bars}"/>')
    radius = 4 if frame.side == LARGE_FRAME.side else 3
    # A larger transparent circle makes the text of a dot easy to find with the pointer.
    for a, b, text in zip(x, y, _make_dot_hover_texts(curve), strict=True):
        parts.append(
            f'<g class="point"><title>{text}</title>'
            f'<circle class="near" cx="{_format_px(a)}" cy="{_format_px(b)}" r="{2.5 * radius:g}"/>'
            f'<circle class="dot" cx="{_format_px(a)}" cy="{_format_px(b)}" r="{radius}"/></g>'
        )
    if number_bins:
        parts += _iter_bin_ordinal_elements(curve, x, y, frame.width)
    return f'<g class="tone{series.tone}">\n' + "\n".join(parts) + "\n</g>"


def _iter_bin_ordinal_elements(curve, x, y, right):
    """Write the number of its bin beside each dot, away from the diagonal.

    A number without space beside the one before it is left out.
    """
    numbered = 0
    for index in range(len(x)):
        distance = np.hypot(x[index] - x[numbered], y[index] - y[numbered])
        if index and distance < _MIN_NUMBER_DISTANCE:
            continue
        numbered = index
        # Below the diagonal the number is placed to the lower right, above it to the
        # upper left.
        place = f'x="{_format_px(x[index] + 6)}" y="{_format_px(y[index] + 14)}" class="start bin"'
        if curve.observed[index] >= curve.predicted[index]:
            place = f'x="{_format_px(x[index] - 6)}" y="{_format_px(y[index] - 6)}" class="end bin"'
        elif x[index] + 6 + 2 * _DIGIT_WIDTH > right:
            # To the right of the dot the picture would cut the number off.
            place = (
                f'x="{_format_px(x[index] - 6)}" y="{_format_px(y[index] + 14)}" '
                'class="end bin"'
            )
        yield f"<text {place}>{index + 1}</text>"


def format_steps_path(frame: DiagramFrame, curve: "ReliabilityCurve") -> str:
    """Return the path of an increasing curve that is constant around each of its points.

    Steps lie midway between the points; points that repeat the value before them are
    left out.
    """
    x = curve.predicted
    y = curve.observed
    # Only the jumps are drawn: a path of all points would be megabytes.
    rises = np.flatnonzero(np.diff(y)) + 1
    path = f"M{_format_xy(frame.locate_x(x[0]), frame.locate_y(y[0]))}"
    for number in rises:
        # The fit jumps somewhere between two scores; the middle is as good as any
        # place.
        middle = frame.locate_x((x[number - 1] + x[number]) / 2)
        path += f"H{_format_px(middle)}V{_format_px(frame.locate_y(y[number]))}"
    return f"{path}H{_format_px(frame.locate_x(x[-1]))}"


def _make_dot_hover_texts(curve):
    """Return the texts of the dots."""
    share = curve.weight / curve.weight.sum()
    texts = []
    for index in range(len(share)):
        lines = [
            f"predicted {format_with_min_two_digits(curve.predicted[index], 4)}",
            f"observed {format_with_min_two_digits(curve.observed[index], 4)}"
            + _describe_interval_if_any(curve, "confidence", index),
        ]
        if expected := _describe_interval_if_any(curve, "consistency", index):
            lines.append(f"if calibrated{expected}")
        lines.append(
            f"bin {index + 1} of {len(share)}: {100 * share[index]:.1f} % of the rows"
        )
        texts.append("\n".join(lines))
    return texts


def _describe_interval_if_any(curve, kind, index):
    low = getattr(curve, f"{kind}_low")
    high = getattr(curve, f"{kind}_high")
    if low is None or high is None:
        return ""
    return (
        f" ({100 * curve.level:.0f} %: {format_with_min_two_digits(low[index], 4)} "
        f"to {format_with_min_two_digits(high[index], 4)})"
    )


def format_with_min_two_digits(value: float, digits: int) -> str:
    """Format a probability with so many decimals, or with two significant digits."""
    # Below this, so many decimals would show only one significant digit or none.
    if value != 0 and value < 10.0**-digits * 10:
        return f"{value:.2g}"
    return f"{value:.{digits}f}"


def _get_histogram(frame, curve):
    """Return the shares of a histogram, its edges, and the shares of exactly 0 and 1."""
    if frame.axis is None:
        shares = curve.histogram
        return shares, np.linspace(0, 1, len(shares) + 1), (0.0, 0.0)
    zeros, *inside, ones = curve.log_odds_histogram
    edges = expit(INNER_LOG_ODDS_EDGES)
    is_inside = frame.axis.is_proba_drawn_unclipped
    shown = is_inside(edges[1:]) | is_inside(edges[:-1])
    edges = edges[np.append(shown, False) | np.append(False, shown)]
    return np.array(inside)[shown], edges, (zeros, ones)


def _format_histogram_svg(frame, series):
    """Return the shares of the scores: filled for one model, outlines for several."""
    top, bottom = frame.bars
    histograms = [_get_histogram(frame, model_series.curve) for model_series in series]
    largest = max(float(max(*beyond, *shares)) for shares, _, beyond in histograms)
    small = frame.side < LARGE_FRAME.side
    scale = (bottom - top) / largest if largest else 0.0
    parts = [
        f'<text x="{frame.left - 8}" y="{top + 8}" class="end">{100 * largest:.0f}'
        f"{'%' if small else ''}</text>",
    ]
    for model_series, (shares, edges, beyond) in zip(series, histograms, strict=True):
        heights = bottom - scale * shares
        kind = "bars" if len(series) == 1 else "outline"
        outline = f"M{_format_xy(frame.locate_x(edges[0]), bottom)}"
        for right, height in zip(edges[1:], heights, strict=True):
            outline += f"V{_format_px(height)}H{_format_px(frame.locate_x(right))}"
        outline += f"V{bottom}"
        # Bars for exactly 0 and 1, beyond the axis of log-odds.
        for p, share in zip((0, 1), beyond, strict=True):
            if share > 0:
                left = frame.locate_x(p) - 3
                outline += f"M{_format_xy(left, bottom)}v{_format_px(-scale * share)}h6V{bottom}"
        parts.append(f'<path class="{kind} tone{model_series.tone}" d="{outline}"/>')
    if not small:
        parts += _iter_hover_columns(
            frame, [shares for shares, *_ in histograms], histograms[0][1]
        )
    return "\n".join(parts)


def _iter_hover_columns(frame, heights, edges):
    """Yield transparent columns of the histogram with their texts."""
    top, bottom = frame.bars
    for index, (left, right) in enumerate(pairwise(edges)):
        shares = " and ".join(f"{100 * share[index]:.1f} %" for share in heights)
        width = frame.locate_x(right) - frame.locate_x(left)
        yield (
            f'<rect class="near" x="{_format_px(frame.locate_x(left))}" y="{top}" '
            f'width="{_format_px(width)}" '
            f'height="{bottom - top}"><title>{format_with_min_two_digits(left, 2)} '
            f"to {format_with_min_two_digits(right, 2)}: "
            f"{shares} of the rows</title></rect>"
        )
