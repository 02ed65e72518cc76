"""Models in the plane of miscalibration and discrimination: its limits, lines and labels."""

from typing import NamedTuple

import numpy as np

_PAD = 0.14  # of the range of the points, on each side
_LINES = 5  # about so many
_LEAST = 0.02  # of the uncertainty, from end to end


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
        x, least = np.append(x, 0.0), _LEAST * abs(uncertainty) or 1e-3
        across = max(np.ptp(x), least)
        up = max(np.ptp(y), across / 4, least)
        if 0 < min(y) < 0.5 * up:
            y = np.append(y, 0.0)
            up = max(np.ptp(y), up)
        middle = (min(y) + max(y)) / 2
        left, right = min(x), max(max(x), min(x) + across)
        return cls(
            (float(left - _PAD * across / 2), float(right + 2 * _PAD * across)),
            (float(middle - up * (0.5 + _PAD)), float(middle + up * (0.5 + _PAD))),
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
    rough = (high - low) / _LINES
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
