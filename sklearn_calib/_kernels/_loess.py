"""Local quadratic regression of event frequencies on scores, and quantiles of repeated numbers.

The smoother of Cleveland and Devlin (1988) with the settings of R's ``loess(y ~ x)``: span 3/4,
degree 2, tricube weights, one pass, evaluated exactly at the support points.

Masses say how often a score occurs. If all are whole numbers they are counts; other masses are
read as frequencies, the limit of ever more rows in these proportions.
"""

import numpy as np

from .._count_weights import are_counts
from ._binning import BIN_EDGE_TOLERANCE, find_mass_midpoints

SPAN = 0.75
MOST_CELLS = 4096
MOST_SUPPORT = 512
_BLOCK = 64  # support points at a time
_SCALE = 2.0**600  # of scores: exact, and no distance of two of them is below the smallest normal
_NOTHING = 1e-20  # squared norm, per unit of weight, of a column that only rounding has left


class Loess:
    """The smoother of increasing distinct scores.

    More than `MOST_SUPPORT` scores are fitted at as many of them, and interpolated linearly; more
    than `MOST_CELLS` are pooled for the fits, whose windows are those of the scores. The linear
    operator of the last masses is kept: labels that are drawn again cost one product with it.
    """

    def __init__(self, score):
        self._score = score * _SCALE
        self._last = None

    def __call__(self, mass, hits):
        """The fitted frequency at each score, in [0, 1]."""
        starts, support, operator = self._fitted(mass)
        value = operator @ _totals(hits, starts)
        return np.interp(self._score, support, np.clip(value, 0.0, 1.0))

    def effective_rows(self, mass, squares):
        """The rows whose plain mean varies as much as the fit at each score.

        `squares` are sums of squared weights of independent rows.
        """
        starts, support, operator = self._fitted(mass)
        return np.interp(self._score, support, 1 / (operator**2 @ _totals(squares, starts)))

    def _fitted(self, mass):
        if self._last is None or not np.array_equal(self._last[0], mass):
            self._last = mass, *_supported(self._score, mass)
        return self._last[1:]


def _totals(values, starts):
    return values if starts is None else np.add.reduceat(values, starts)


def _supported(score, mass):
    """Where pooled scores begin, the support, and the matrix from events to fitted values there.

    The support is halved further where labels could make the most of the difference between the
    fit and the line between its neighbours: half the sum of the absolute differences of the rows.
    """
    starts = _cells(score, mass)
    cumulated = np.append(0.0, np.cumsum(mass))
    x, pooled = _pooled(score, mass, starts)

    def fitted(at):
        width = _widths(score, cumulated, at, are_counts(mass))
        blocks = range(_BLOCK, len(at), _BLOCK)
        parts = zip(np.split(score[at], blocks), np.split(width, blocks), strict=True)
        return np.vstack([_rows(x, pooled, x0[:, None], h[:, None]) for x0, h in parts])

    n = len(score)
    if n <= MOST_SUPPORT:
        return starts, score, fitted(np.arange(n))
    ranks = np.linspace(0, n - 1, MOST_SUPPORT // 8).round().astype(np.intp)
    spaced = np.searchsorted(score, np.linspace(score[0], score[-1], MOST_SUPPORT // 8))
    at = np.union1d(ranks, np.minimum(spaced, n - 1))
    rows, worth = fitted(at), np.full(len(at) - 1, np.inf)
    while (left := min(MOST_SUPPORT - len(at), len(at))) > 0:
        low, high = at[:-1], at[1:]
        chosen = np.argsort(np.where(high - low > 1, -worth, 0.0), kind="stable")[:left]
        chosen = np.sort(chosen[(high - low)[chosen] > 1])
        if not len(chosen):  # the fit is linear between all neighbours
            break
        low, high = low[chosen], high[chosen]
        middle = np.searchsorted(score, (score[low] + score[high]) / 2)
        middle = np.clip(middle, low + 1, high - 1)
        new = fitted(middle)
        part = ((score[middle] - score[low]) / (score[high] - score[low]))[:, None]
        between = (1 - part) * rows[chosen] + part * rows[chosen + 1]
        worth[chosen] = np.abs((new - between) * pooled).sum(axis=1) / 4
        worth = np.insert(worth, chosen + 1, worth[chosen])
        at, rows = np.insert(at, chosen + 1, middle), np.insert(rows, chosen + 1, new, axis=0)
    return starts, score[at], rows


def _cells(score, mass):
    """Where the cells of pooled scores begin, or None for no pooling.

    A cell is narrow in mass as well as in range; a score of much mass is alone in its cell.
    """
    if len(score) <= MOST_CELLS:
        return None
    half = MOST_CELLS // 2
    place = (score - score[0]) / (score[-1] - score[0])
    number = np.vstack(
        [find_mass_midpoints(mass) * half + BIN_EDGE_TOLERANCE, place * half]
    ).astype(np.intp)
    number = np.minimum(number, half - 1)
    return np.flatnonzero(np.append(True, (np.diff(number) > 0).any(axis=0)))


def _pooled(score, mass, starts):
    if starts is None:
        return score, mass
    total = np.add.reduceat(mass, starts)
    return np.add.reduceat(mass * score, starts) / total, total


def _widths(score, cumulated, at, whole):
    """Half the widths of the windows around the scores `at`: to the farthest of the nearest rows.

    Bisection over the scores to the right and to the left. Where one score fills the window, the
    distance of the next.
    """
    x0, last = score[at], len(score) - 1
    near = SPAN * cumulated[-1]
    near = max(np.floor(near + BIN_EDGE_TOLERANCE), 1.0) if whole else near

    def is_enough(distance):
        reach = distance * (1 + 1e-12)
        end = np.searchsorted(score, x0 + reach, side="right")
        start = np.searchsorted(score, x0 - reach)
        return cumulated[end] - cumulated[start] >= near * (1 - BIN_EDGE_TOLERANCE)

    width = np.full(len(at), np.inf)
    for side, most in ((1, last - at), (-1, at)):
        few, many = np.zeros_like(at), most.copy()
        while (few < many).any():
            middle = (few + many) // 2
            enough = is_enough(np.abs(score[at + side * middle] - x0))
            few, many = (
                np.where(enough, few, np.minimum(middle + 1, many)),
                np.where(enough, middle, many),
            )
        distance = np.abs(score[at + side * many] - x0)
        width = np.where(is_enough(distance), np.minimum(width, distance), width)
    right = np.where(at < last, score[np.minimum(at + 1, last)] - x0, np.inf)
    left = np.where(at > 0, x0 - score[np.maximum(at - 1, 0)], np.inf)
    return np.where(width > 0, width, np.minimum(right, left))


def _rows(x, mass, x0, width):
    """The matrix from the events at each `x` to the fitted values at each `x0`."""
    ahead = x - x0
    least = np.min(np.abs(ahead[:, mass > 0]), axis=1, keepdims=True)
    width = np.maximum(width, least * (1 + 1e-6))
    t = np.clip(ahead, -width, width) / width  # what is outside weighs 0 and must not overflow
    tricube = (1 - np.abs(t) ** 3) ** 3
    weight = mass * tricube

    def total(values):
        return (weight * values).sum(axis=1, keepdims=True)

    # orthogonal polynomials of t, whose values at t = 0 weigh the rows
    size = total(1.0)
    mean = total(t) / size
    first = t - mean
    spread = total(first**2)
    level, slope = total(t**2) / size, _ratio(total(t**2 * first), spread, size)
    second = t**2 - level - slope * first
    bend = total(second**2)
    row = 1 / size - _ratio(mean, spread, size) * first
    row += _ratio(slope * mean - level, bend, size) * second
    return tricube * row


def _ratio(value, norm, size):
    """value / norm, or 0 for a column that lies in the span of those before it."""
    there = norm > _NOTHING * size
    return np.divide(value, norm, out=np.zeros_like(norm), where=there)


def repeated_quantile(values, mass, q):
    """The quantile of values that occur `mass` times each, between two linear in the rank.

    R's type 7 and numpy's default; of masses that are not whole, the smallest value that at least
    the share `q` does not exceed.
    """
    order = np.argsort(values)
    values, cumulated = values[order], np.cumsum(mass[order])
    if not are_counts(mass):
        place = np.searchsorted(cumulated, q * cumulated[-1] * (1 - BIN_EDGE_TOLERANCE))
        return float(values[min(place, len(values) - 1)])
    rank = q * (cumulated[-1] - 1)
    below = np.floor(rank + BIN_EDGE_TOLERANCE)
    places = np.searchsorted(cumulated, [below, min(below + 1, cumulated[-1] - 1)], side="right")
    low, high = values[places]
    return float(low + max(rank - below, 0.0) * (high - low))
