"""Axes of pictures: probabilities on log-odds, and the plane of losses."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

# The inner edges of a histogram of log-odds; its end bins hold everything beyond.
INNER_LOG_ODDS_EDGES = np.arange(-32, 33) / 2
_MIN_AXIS_SPAN_LOG_ODDS = 3.0
# The space around the points, as a fraction of the span.
_AXIS_PAD_FRACTION = 0.04
# From the axis to the positions of 0 and 1, as a fraction of the span.
_INNER_MARGIN_SPAN_FRACTION = 0.09
# Behind these positions, as a fraction of the span.
_OUTER_MARGIN_SPAN_FRACTION = 0.04
# A smaller share of the rows next to 0 or 1 does not widen an axis.
_MIN_AXIS_WIDENING_ROW_FRACTION = 5e-3
# The least distance of two numbers at an axis, in characters.
_MIN_TICK_GAP_CHARACTERS = 1.3
# On each side, as a fraction of the range of the points.
_PLANE_PAD_FRACTION = 0.14
# The approximate number of lines.
_N_LOSS_LINES = 5
# From end to end, as a fraction of the uncertainty.
_MIN_PLANE_SPAN_FRACTION = 0.02
# Pictures are drawn on log-odds if the median of the probabilities is smaller.
MAX_LOG_ODDS_AXIS_MEDIAN_PROBA = 0.02


def compute_weight_fractions_by_bin(score, weight):
    """Return the fractions of the weight at 0, in each bin, and at 1; shape (66,).

    The bins are those of `INNER_LOG_ODDS_EDGES`.
    """
    # A logarithm in float32 takes half the time, and bins of half a unit do not need
    # more digits. Zeros and ones are counted separately and exactly.
    rough = score.astype(np.float32)
    with np.errstate(divide="ignore"):
        rough = np.log(rough) - np.log1p(-rough)
    last = len(INNER_LOG_ODDS_EDGES) - 1
    index = np.clip(2 * rough + last / 2, 0, last - 1).astype(np.intp) + 1
    index[score <= 0] = 0
    index[score >= 1] = last + 1
    return np.bincount(index, weight, last + 2) / weight.sum()


class LogitAxis:
    """Places of probabilities on log-odds; a callable that works on arrays.

    A probability between `low` and `high`, which are log-odds, lies at its log-odds,
    others at the nearer one of them; exactly 0 and 1 lie by themselves, a margin
    farther out. Values below 0 and above 1 go on from there, so that the limits of an
    axis may lie beyond its margins.

    Parameters
    ----------
    low, high : float
        Log-odds.
    zeros, ones : bool
        Whether the axis shows the margins.
    """

    def __init__(self, low, high, zeros=False, ones=False):
        self.low = float(low)
        self.high = float(high)
        self.zeros = bool(zeros)
        self.ones = bool(ones)
        self.span = self.high - self.low

    @classmethod
    def from_values(cls, values: Iterable, histograms: Iterable = ()) -> "LogitAxis":
        """Return the axis with space for probabilities and the bins of histograms."""
        values = np.concatenate([np.empty(0), *map(np.ravel, values)])
        inner = values[(values > 0) & (values < 1)]
        # The clipping keeps the ends of the axis finite for probabilities next to 0 or
        # 1.
        positions = [logit(np.clip(inner, 1e-300, 1 - 1e-16))]
        zeros = (values <= 0).any()
        ones = (values >= 1).any()
        for fractions in histograms:
            zeros = zeros or fractions[0] > 0
            ones = ones or fractions[-1] > 0
            # The fraction of the rows from a bin to the nearer end.
            from_low = np.cumsum(fractions[1:33])
            from_high = np.cumsum(fractions[-2:32:-1])[::-1]
            is_large = np.append(from_low, from_high) > _MIN_AXIS_WIDENING_ROW_FRACTION
            filled = np.flatnonzero(is_large & (fractions[1:-1] > 0))
            positions += [
                INNER_LOG_ODDS_EDGES[filled],
                INNER_LOG_ODDS_EDGES[filled + 1],
            ]
        ends = np.concatenate(positions)
        low, high = (ends.min(), ends.max()) if len(ends) else (0.0, 0.0)
        missing = max(_MIN_AXIS_SPAN_LOG_ODDS - (high - low), 0.0) / 2
        pad = _AXIS_PAD_FRACTION * (high - low + 2 * missing) + missing
        return cls(low - pad, high + pad, zeros, ones)

    @classmethod
    def from_curves(cls, curves: Iterable) -> "LogitAxis":
        """Return the axis for reliability curves and their histograms.

        The few rows at the ends do not widen it.

        Parameters
        ----------
        curves : iterable of ReliabilityCurve
        """
        shown: list = []
        histograms: list = []
        for curve in curves:
            is_frequent = _mark_points_not_in_rare_ends(curve)
            shown += [curve.predicted[is_frequent], curve.observed[is_frequent]]
            histograms.append(curve.log_odds_histogram)
        return cls.from_values(shown, histograms)

    def is_proba_drawn_unclipped(self, p):
        """Return whether a probability is drawn at its position, not at the axis' end."""
        is_at_position = np.clip(self(p), self.low, self.high) == self(p)
        return (
            (p <= 0)
            | (p >= 1)
            | (is_at_position & (p >= expit(self.low)) & (p <= expit(self.high)))
        )

    def merge_axes(self, other: "LogitAxis") -> "LogitAxis":
        """Return the axis with space for the content of either of two."""
        low = min(self.low, other.low)
        high = max(self.high, other.high)
        return LogitAxis(low, high, self.zeros or other.zeros, self.ones or other.ones)

    def __call__(self, p):
        p = np.asarray(p, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            position = np.clip(np.log(p) - np.log1p(-p), self.low, self.high)
        # 0 and 1 have no log-odds, so they get positions of their own outside the axis.
        below = self.low - self.span * (_INNER_MARGIN_SPAN_FRACTION - np.minimum(p, 0))
        above = self.high + self.span * (
            _INNER_MARGIN_SPAN_FRACTION + np.maximum(p - 1, 0)
        )
        return np.where(p <= 0, below, np.where(p >= 1, above, position))

    def get_proba_at_logit_position(self, position):
        """Return the probability at a position; 0 or 1 in the gap before a margin."""
        position = np.asarray(position, dtype=np.float64)
        below = np.minimum(
            (position - self.low) / self.span + _INNER_MARGIN_SPAN_FRACTION, 0.0
        )
        above = 1 + np.maximum(
            (position - self.high) / self.span - _INNER_MARGIN_SPAN_FRACTION, 0.0
        )
        inner = expit(np.clip(position, self.low, self.high))
        return np.where(
            position < self.low, below, np.where(position > self.high, above, inner)
        )

    @property
    def proba_limits_with_margins(self) -> tuple[float, float]:
        """Return the ends of the axis as "probabilities".

        They are below 0 and above 1 if there are margins.
        """
        low = -_OUTER_MARGIN_SPAN_FRACTION if self.zeros else float(expit(self.low))
        high = 1 + _OUTER_MARGIN_SPAN_FRACTION if self.ones else float(expit(self.high))
        return low, high

    @property
    def margin_border_proba(self) -> list[float]:
        """Return the probabilities behind which a margin begins."""
        return [float(expit(self.low))] * self.zeros + [
            float(expit(self.high))
        ] * self.ones

    def locate_fraction(self, p):
        """Return how far along the axis it lies, from 0 to 1."""
        left, right = self(np.array(self.proba_limits_with_margins))
        return (self(p) - left) / (right - left)

    def get_tick_probabilities_and_labels(
        self, axis_characters: float
    ) -> list[tuple[float, str]]:
        """Return probabilities whose labels fit, and these.

        0 and 1 are in their margins.

        Parameters ---------- room : float
            The length of the axis in characters.
        """
        ends = [0.0] * self.zeros + [1.0] * self.ones
        # All powers of ten if there is space, otherwise every second, third, ... one.
        for step in range(1, 17):
            ticks, is_complete = self._get_fitting_ticks_and_is_complete(
                [*ends, *self._list_decades(step)], axis_characters, []
            )
            if is_complete:
                break
        inner = [0.5, *self._iter_one_digit_proba()] if step == 1 else [0.5]
        ticks, _ = self._get_fitting_ticks_and_is_complete(
            self._drop_proba_outside_axis(inner), axis_characters, ticks
        )
        return [(p, text) for p, text, _ in sorted(ticks, key=lambda tick: tick[2])]

    def _get_fitting_ticks_and_is_complete(self, numbers, axis_characters, taken):
        """Return `taken` with the numbers that fit, and whether all of them do."""
        taken = list(taken)
        is_complete = True
        for p in numbers:
            text = format_probability(p)
            position = float(self.locate_fraction(p)) * axis_characters
            if all(
                abs(position - other)
                >= (len(text) + len(label)) / 2 + _MIN_TICK_GAP_CHARACTERS
                for _, label, other in taken
            ):
                taken.append((p, text, position))
            else:
                is_complete = False
        return taken, is_complete

    def _list_decades(self, step):
        """Return every `step`-th power of ten, and 1 less these."""
        powers = [10.0**-power for power in range(step, 17, step)]
        return self._drop_proba_outside_axis(
            [*powers, *(1 - power for power in powers)]
        )

    @staticmethod
    def _iter_one_digit_proba():
        """Yield other probabilities of one digit, the easiest to read first."""
        for digits in ((2, 5), (3,), (4,)):
            for power in range(1, 17):
                for digit in digits:
                    p = float(f"{digit}e-{power}")
                    yield from (p, 1 - p)

    def _drop_proba_outside_axis(self, numbers):
        left = expit(self.low)
        right = expit(self.high)
        return [p for p in numbers if left <= p <= right]


def _mark_points_not_in_rare_ends(curve):
    """Return which points are not among the few rows at either end.

    Those of exactly 0 and 1 are kept.
    """
    inner = (curve.predicted > 0) & (curve.predicted < 1)
    weight = curve.weight * inner
    total = weight.sum() or 1.0
    cumulated = np.cumsum(weight) / total
    low = cumulated <= _MIN_AXIS_WIDENING_ROW_FRACTION
    high = cumulated - weight / total >= 1 - _MIN_AXIS_WIDENING_ROW_FRACTION
    is_rare = np.where(curve.predicted < 0.5, low, high)
    return ~inner | ((weight > 0) & ~is_rare)


def format_probability(p: float) -> str:
    """Format a probability of few digits: 0.02, 1e-5, 0.98, 1-1e-5."""
    if p in (0, 1) or 1e-4 <= p <= 1 - 9.9e-5:
        return f"{p:.5g}"
    short = f"{min(p, 1 - p):.0e}".replace("e-0", "e-")
    return short if p < 0.5 else f"1-{short}"


class LossPlane(NamedTuple):
    """The part of the plane that is shown.

    Attributes
    ----------
    x_limits, y_limits : tuple of float
        Of miscalibration and of discrimination.
    uncertainty : float
        The loss of the class frequencies; a model's is that plus miscalibration, less
        discrimination.
    """

    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    uncertainty: float

    @classmethod
    def from_points(cls, x, y, uncertainty):
        """Return the plane with space for the points, their labels, and x = 0."""
        x = np.append(x, 0.0)
        min_range = _MIN_PLANE_SPAN_FRACTION * abs(uncertainty) or 1e-3
        across = max(np.ptp(x), min_range)
        # The plane must not be flatter than one to four, or lines of equal loss cannot
        # be distinguished.
        up = max(np.ptp(y), across / 4, min_range)
        if 0 < min(y) < 0.5 * up:
            y = np.append(y, 0.0)
            up = max(np.ptp(y), up)
        middle = (min(y) + max(y)) / 2
        left = min(x)
        right = max(max(x), min(x) + across)
        return cls(
            (
                float(left - _PLANE_PAD_FRACTION * across / 2),
                float(right + 2 * _PLANE_PAD_FRACTION * across),
            ),
            (
                float(middle - up * (0.5 + _PLANE_PAD_FRACTION)),
                float(middle + up * (0.5 + _PLANE_PAD_FRACTION)),
            ),
            float(uncertainty),
        )

    def iter_loss_lines(self):
        """Yield the loss of each line of equal loss, and its ends within the limits."""
        left, right = self.x_limits
        low, high = self.y_limits
        min_loss = self.uncertainty + left - high
        max_loss = self.uncertainty + right - low
        for value in choose_round_numbers(min_loss, max_loss):
            # The distance of y above x on the line of this loss.
            above = self.uncertainty - value
            start = max(left, low - above)
            end = min(right, high - above)
            if end - start > 0.1 * (right - left):
                ends = (
                    (float(start), float(end)),
                    (float(start + above), float(end + above)),
                )
                yield value, ends

    def locate_fraction(self, x, y):
        """Return how far along the axes a point lies, from 0 to 1."""
        left, right = self.x_limits
        low, high = self.y_limits
        return (x - left) / (right - left), (y - low) / (high - low)


def choose_round_numbers(low, high):
    """Return about five round numbers between two ends."""
    rough = (high - low) / _N_LOSS_LINES
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * next(k for k in (1, 2, 5, 10) if k * unit >= 0.999 * rough)
    steps = range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)
    return [float(f"{number * step:.12g}") for number in steps]


def place_lower_left_label_corners(
    points, sizes, gap, taken=()
) -> list[tuple[float, float]]:
    """Return lower left corners of labels beside their points.

    The labels do not overlap if there is space.

    Parameters
    ----------
    points : list of tuple of float
        Within the picture, whose sides are 1.
    sizes : list of tuple of float
        Width and height of each label.
    gap : tuple of float
        Between a point and its label, across and up.
    taken : sequence of tuple of float
        Boxes of other texts: left, bottom, right, top.
    """
    across, up = gap
    taken = [*taken, *((x - across, y - up, x + across, y + up) for x, y in points)]
    corners = []
    for (x, y), (width, height) in zip(points, sizes, strict=True):
        half = height / 2
        middle = width / 2
        # Positions beside, above and below the point, in this order of preference, then
        # further away.
        offered = [
            (x + 1.5 * across, y - half),
            (x - 1.5 * across - width, y - half),
            (x - middle, y + 1.5 * up),
            (x - middle, y - 1.5 * up - height),
            *((x + across, y + k * height) for k in (0.6, -1.6, 1.7, -2.7, 2.8, -3.8)),
            *((x - across - width, y + k * height) for k in (0.6, -1.6, 1.7, -2.7)),
        ]
        boxes = [(a, b, a + width, b + height) for a, b in offered]
        free = [k for k, box in enumerate(boxes) if _is_box_inside_and_free(box, taken)]
        chosen = free[0] if free else 0
        taken.append(boxes[chosen])
        corners.append(offered[chosen])
    return corners


def _is_box_inside_and_free(box, taken):
    """Return whether a box lies inside and does not overlap another one."""
    left, bottom, right, top = box
    if min(left, bottom) < 0 or max(right, top) > 1:
        return False
    return not any(
        left < x1 and x0 < right and bottom < y1 and y0 < top
        for x0, y0, x1, y1 in taken
    )
