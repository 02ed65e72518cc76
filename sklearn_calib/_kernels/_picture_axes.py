"""Axes of pictures: probabilities on log-odds, and the plane of losses."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

EDGES = np.arange(-32, 33) / 2  # log-odds, of the histogram; the ends hold what lies beyond
_LEAST_SPAN = 3.0  # log-odds
_PAD = 0.04  # of the span, around the points
_MARGIN, _BEYOND = 0.09, 0.04  # of the span: where 0 and 1 lie, and what follows them
_RARE = 5e-3  # a smaller share of the rows next to 0 or 1 does not widen an axis
_GAP = 1.3  # characters between two numbers
_PLANE_PAD = 0.14  # of the range of the points, on each side
_PLANE_LINES = 5  # about so many
_MIN_PLANE_SPAN = 0.02  # of the uncertainty, from end to end
MEDIAN_OF_RARE = 0.02  # below it the picture on log-odds is the one to look at


def histogram(score, weight):
    """Shares of the weight at exactly 0, in each bin of `EDGES`, and at exactly 1; shape (66,)."""
    rough = score.astype(np.float32)  # bins need no more digits; zeros and ones are told exactly
    with np.errstate(divide="ignore"):
        rough = np.log(rough) - np.log1p(-rough)
    last = len(EDGES) - 1
    place = np.clip(2 * rough + last / 2, 0, last - 1).astype(np.intp) + 1
    place[score <= 0] = 0
    place[score >= 1] = last + 1
    return np.bincount(place, weight, last + 2) / weight.sum()


class LogitAxis:
    """Places of probabilities on log-odds; a callable that works on arrays.

    A probability between `low` and `high`, which are log-odds, lies at its log-odds, others at the
    nearer one of them; exactly 0 and 1 lie by themselves, a margin farther out. Values below 0 and
    above 1 go on from there, so that the limits of an axis may lie beyond its margins.

    Parameters
    ----------
    low, high : float
        Log-odds.
    zeros, ones : bool
        Whether the axis shows the margins.
    """

    def __init__(self, low, high, zeros=False, ones=False):
        self.low, self.high = float(low), float(high)
        self.zeros, self.ones = bool(zeros), bool(ones)
        self.span = self.high - self.low

    @classmethod
    def around(cls, values: Iterable, shares: Iterable = ()) -> "LogitAxis":
        """The axis on which probabilities and the bins of histograms have room."""
        values = np.concatenate([np.empty(0), *map(np.ravel, values)])
        inner = values[(values > 0) & (values < 1)]
        places = [logit(np.clip(inner, 1e-300, 1 - 1e-16))]
        zeros, ones = (values <= 0).any(), (values >= 1).any()
        for share in shares:
            zeros, ones = zeros or share[0] > 0, ones or share[-1] > 0
            inner = np.append(np.cumsum(share[1:33]), np.cumsum(share[-2:32:-1])[::-1])
            filled = np.flatnonzero((inner > _RARE) & (share[1:-1] > 0))
            places += [EDGES[filled], EDGES[filled + 1]]
        found = np.concatenate(places)
        low, high = (found.min(), found.max()) if len(found) else (0.0, 0.0)
        missing = max(_LEAST_SPAN - (high - low), 0.0) / 2
        pad = _PAD * (high - low + 2 * missing) + missing
        return cls(low - pad, high + pad, zeros, ones)

    @classmethod
    def of_curves(cls, curves: Iterable) -> "LogitAxis":
        """The axis for reliability curves and their histograms, without the few rows at the ends.

        Parameters
        ----------
        curves : iterable of ReliabilityCurve
        """
        shown: list = []
        shares: list = []
        for one in curves:
            some = _frequent(one)
            shown += [one.predicted[some], one.observed[some]]
            shares.append(one.log_odds_histogram)
        return cls.around(shown, shares)

    def shows(self, p):
        """Whether a probability lies where it belongs, and not at the end of the axis."""
        place = np.clip(self(p), self.low, self.high) == self(p)
        return (p <= 0) | (p >= 1) | (place & (p >= expit(self.low)) & (p <= expit(self.high)))

    def with_other(self, other: "LogitAxis") -> "LogitAxis":
        """The axis that has room for what either of two shows."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return LogitAxis(low, high, self.zeros or other.zeros, self.ones or other.ones)

    def __call__(self, p):
        p = np.asarray(p, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            place = np.clip(np.log(p) - np.log1p(-p), self.low, self.high)
        below = self.low - self.span * (_MARGIN - np.minimum(p, 0))
        above = self.high + self.span * (_MARGIN + np.maximum(p - 1, 0))
        return np.where(p <= 0, below, np.where(p >= 1, above, place))

    def inverse(self, place):
        """The probability that lies there; in the gap before a margin it is 0 or 1."""
        place = np.asarray(place, dtype=np.float64)
        below = np.minimum((place - self.low) / self.span + _MARGIN, 0.0)
        above = 1 + np.maximum((place - self.high) / self.span - _MARGIN, 0.0)
        inner = expit(np.clip(place, self.low, self.high))
        return np.where(place < self.low, below, np.where(place > self.high, above, inner))

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis as "probabilities", below 0 and above 1 where there are margins."""
        low = -_BEYOND if self.zeros else float(expit(self.low))
        return low, 1 + _BEYOND if self.ones else float(expit(self.high))

    @property
    def borders(self) -> list[float]:
        """The probabilities behind which a margin begins."""
        return [float(expit(self.low))] * self.zeros + [float(expit(self.high))] * self.ones

    def share(self, p):
        """How far along the axis it lies, from 0 to 1."""
        left, right = self(np.array(self.limits))
        return (self(p) - left) / (right - left)

    def ticks(self, room: float) -> list[tuple[float, str]]:
        """Probabilities with room for their numbers, and these; 0 and 1 in their margins.

        Parameters
        ----------
        room : float
            The length of the axis in characters.
        """
        ends = [0.0] * self.zeros + [1.0] * self.ones
        for step in range(1, 17):
            taken, whole = self._fitting([*ends, *self._decades(step)], room, [])
            if whole:
                break
        more = [0.5, *self._between()] if step == 1 else [0.5]
        taken, _ = self._fitting(self._inside(more), room, taken)
        return [(p, text) for p, text, _ in sorted(taken, key=lambda one: one[2])]

    def _fitting(self, numbers, room, taken):
        """What was taken and those of the numbers that have room; whether all of them have."""
        taken, whole = list(taken), True
        for p in numbers:
            text, place = number(p), float(self.share(p)) * room
            if all(
                abs(place - other) >= (len(text) + len(label)) / 2 + _GAP
                for _, label, other in taken
            ):
                taken.append((p, text, place))
            else:
                whole = False
        return taken, whole

    def _decades(self, step):
        """Every `step`-th power of ten, and 1 less these."""
        powers = [10.0**-power for power in range(step, 17, step)]
        return self._inside([*powers, *(1 - power for power in powers)])

    @staticmethod
    def _between():
        """Other probabilities of one digit, the easiest to read first."""
        for digits in ((2, 5), (3,), (4,)):
            found = [float(f"{digit}e-{power}") for power in range(1, 17) for digit in digits]
            yield from (side for p in found for side in (p, 1 - p))

    def _inside(self, numbers):
        left, right = expit(self.low), expit(self.high)
        return [p for p in numbers if left <= p <= right]


def _frequent(curve):
    """Points that are not among the few rows at either end; those of exactly 0 and 1 apart."""
    inner = (curve.predicted > 0) & (curve.predicted < 1)
    weight = curve.weight * inner
    total = weight.sum() or 1.0
    share = np.cumsum(weight) / total
    low, high = share <= _RARE, share - weight / total >= 1 - _RARE
    few = np.where(curve.predicted < 0.5, low, high)
    return ~inner | ((weight > 0) & ~few)


def number(p: float) -> str:
    """A probability of few digits as a short text: 0.02, 1e-5, 0.98, 1-1e-5."""
    if p in (0, 1) or 1e-4 <= p <= 1 - 9.9e-5:
        return f"{p:.5g}"
    rest = f"{min(p, 1 - p):.0e}".replace("e-0", "e-")
    return rest if p < 0.5 else f"1-{rest}"


class Plane(NamedTuple):
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
    def around(cls, x, y, uncertainty):
        """The plane with room for the points and their labels; it shows where x is 0."""
        x, least = np.append(x, 0.0), _MIN_PLANE_SPAN * abs(uncertainty) or 1e-3
        across = max(np.ptp(x), least)
        up = max(np.ptp(y), across / 4, least)
        if 0 < min(y) < 0.5 * up:
            y = np.append(y, 0.0)
            up = max(np.ptp(y), up)
        middle = (min(y) + max(y)) / 2
        left, right = min(x), max(max(x), min(x) + across)
        return cls(
            (float(left - _PLANE_PAD * across / 2), float(right + 2 * _PLANE_PAD * across)),
            (float(middle - up * (0.5 + _PLANE_PAD)), float(middle + up * (0.5 + _PLANE_PAD))),
            float(uncertainty),
        )

    def lines(self):
        """Of each line of equal loss the loss, and both ends within the limits."""
        (left, right), (low, high) = self.x_limits, self.y_limits
        least, most = self.uncertainty + left - high, self.uncertainty + right - low
        for value in round_numbers(least, most):
            above = self.uncertainty - value  # of y over x
            start, end = max(left, low - above), min(right, high - above)
            if end - start > 0.1 * (right - left):
                ends = (float(start), float(end)), (float(start + above), float(end + above))
                yield value, ends

    def share(self, x, y):
        """How far along the axes a point lies, from 0 to 1."""
        (left, right), (low, high) = self.x_limits, self.y_limits
        return (x - left) / (right - left), (y - low) / (high - low)


def round_numbers(low, high):
    """About five round numbers between two ends."""
    rough = (high - low) / _PLANE_LINES
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * next(k for k in (1, 2, 5, 10) if k * unit >= 0.999 * rough)
    steps = range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)
    return [float(f"{number * step:.12g}") for number in steps]


def label_places(points, sizes, gap, taken=()):
    """Lower left corners of labels beside their points, without overlaps where there is room.

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
    places = []
    for (x, y), (width, height) in zip(points, sizes, strict=True):
        half, middle = height / 2, width / 2
        offered = [
            (x + 1.5 * across, y - half),
            (x - 1.5 * across - width, y - half),
            (x - middle, y + 1.5 * up),
            (x - middle, y - 1.5 * up - height),
            *((x + across, y + k * height) for k in (0.6, -1.6, 1.7, -2.7, 2.8, -3.8)),
            *((x - across - width, y + k * height) for k in (0.6, -1.6, 1.7, -2.7)),
        ]
        boxes = [(a, b, a + width, b + height) for a, b in offered]
        free = [k for k, box in enumerate(boxes) if _is_free(box, taken)]
        chosen = free[0] if free else 0
        taken.append(boxes[chosen])
        places.append(offered[chosen])
    return places


def _is_free(box, taken):
    """Whether a box lies inside and meets no other."""
    left, bottom, right, top = box
    return (
        min(left, bottom) >= 0
        and max(right, top) <= 1
        and not any(
            left < x1 and x0 < right and bottom < y1 and y0 < top for x0, y0, x1, y1 in taken
        )
    )
