"""Local quadratic regression of event frequencies, and quantiles with repetitions.

The smoother of Cleveland and Devlin (1988) with the settings of R's ``loess(y ~ x)``:
span 3/4, degree 2, tricube weights, one pass, evaluated exactly at the support points.

Masses are the numbers of times that scores occur. If all are whole numbers they are
counts; other masses are read as frequencies, the limit of ever more rows in these
proportions.
"""

import numpy as np

from .._count_weights import are_counts
from ._binning import BIN_EDGE_TOLERANCE, find_mass_midpoints

LOESS_SPAN = 0.75
MAX_CELLS = 4096
MAX_SUPPORT_POINTS = 512
_SUPPORT_BLOCK_POINTS = 64  # support points at a time
# of scores: exact, and no distance of two of them is below the smallest normal
_SCORE_SCALE = 2.0**600
# squared norm, per unit of weight, of a column that only rounding has left
_NORM_TOLERANCE = 1e-20


class Loess:
    """The smoother of increasing distinct scores.

    More than `MAX_SUPPORT_POINTS` scores are fitted at as many of them, and
    interpolated linearly; more than `MAX_CELLS` are pooled for the fits, whose windows
    are those of the scores. The linear operator of the last masses is kept: labels that
    are drawn again cost one product with it.
    """

    def __init__(self, score):
        self._score = score * _SCORE_SCALE
        self._last = None

    def __call__(self, mass, event_weight):
        """Return the fitted frequency at each score, in [0, 1]."""
        starts, support, operator = self._get_operator(mass)
        value = operator @ _sum_cells(event_weight, starts)
        return np.interp(self._score, support, np.clip(value, 0.0, 1.0))

    def count_effective_rows(self, mass, squares):
        """Return the rows whose plain mean varies as much as the fit at each score.

        `squares` are sums of squared weights of independent rows.
        """
        starts, support, operator = self._get_operator(mass)
        return np.interp(
            self._score, support, 1 / (operator**2 @ _sum_cells(squares, starts))
        )

    def _get_operator(self, mass):
        if self._last is None or not np.array_equal(self._last[0], mass):
            self._last = mass, *_fit_operator(self._score, mass)
        return self._last[1:]


def _sum_cells(values, starts):
    return values if starts is None else np.add.reduceat(values, starts)


def _fit_operator(score, mass):
    """Return where pooled scores begin, the support points, and the fit's operator.

    The operator maps events to fitted values at the support points.

    The support is halved further where labels could make the most of the difference
    between the fit and the line between its neighbours: half the sum of the absolute
    differences of the rows.
    """
    starts = _find_cell_starts(score, mass)
    cumulated = np.append(0.0, np.cumsum(mass))
    x, pooled = _pool_scores(score, mass, starts)

    def fit_at(indices):
        width = _find_window_widths(score, cumulated, indices, are_counts(mass))
        blocks = range(_SUPPORT_BLOCK_POINTS, len(indices), _SUPPORT_BLOCK_POINTS)
        parts = zip(
            np.split(score[indices], blocks), np.split(width, blocks), strict=True
        )
        return np.vstack(
            [_compute_rows(x, pooled, x0[:, None], h[:, None]) for x0, h in parts]
        )

    n = len(score)
    if n <= MAX_SUPPORT_POINTS:
        return starts, score, fit_at(np.arange(n))
    ranks = np.linspace(0, n - 1, MAX_SUPPORT_POINTS // 8).round().astype(np.intp)
    spaced = np.searchsorted(
        score, np.linspace(score[0], score[-1], MAX_SUPPORT_POINTS // 8)
    )
    points = np.union1d(ranks, np.minimum(spaced, n - 1))
    rows = fit_at(points)
    gains = np.full(len(points) - 1, np.inf)
    while (n_new := min(MAX_SUPPORT_POINTS - len(points), len(points))) > 0:
        low = points[:-1]
        high = points[1:]
        chosen = np.argsort(np.where(high - low > 1, -gains, 0.0), kind="stable")[
            :n_new
        ]
        chosen = np.sort(chosen[(high - low)[chosen] > 1])
        if not len(chosen):  # the fit is linear between all neighbours
            break
        low = low[chosen]
        high = high[chosen]
        middle = np.searchsorted(score, (score[low] + score[high]) / 2)
        middle = np.clip(middle, low + 1, high - 1)
        new = fit_at(middle)
        fraction = ((score[middle] - score[low]) / (score[high] - score[low]))[:, None]
        interpolated = (1 - fraction) * rows[chosen] + fraction * rows[chosen + 1]
        gains[chosen] = np.abs((new - interpolated) * pooled).sum(axis=1) / 4
        gains = np.insert(gains, chosen + 1, gains[chosen])
        points = np.insert(points, chosen + 1, middle)
        rows = np.insert(rows, chosen + 1, new, axis=0)
    return starts, score[points], rows


def _find_cell_starts(score, mass):
    """Return where the cells of pooled scores begin, or None without pooling.

    A cell is narrow in mass as well as in range; a score of much mass is alone in its
    cell.
    """
    if len(score) <= MAX_CELLS:
        return None
    half = MAX_CELLS // 2
    position = (score - score[0]) / (score[-1] - score[0])
    number = np.vstack(
        [find_mass_midpoints(mass) * half + BIN_EDGE_TOLERANCE, position * half]
    ).astype(np.intp)
    number = np.minimum(number, half - 1)
    return np.flatnonzero(np.append(True, (np.diff(number) > 0).any(axis=0)))


def _pool_scores(score, mass, starts):
    if starts is None:
        return score, mass
    total = np.add.reduceat(mass, starts)
    return np.add.reduceat(mass * score, starts) / total, total


def _find_window_widths(score, cumulated, points, has_counts):
    """Return half the widths of the windows around the scores `points`.

    A window reaches to the farthest of the nearest rows.

    Bisection over the scores to the right and to the left. Where one score fills the
    window, the distance of the next.
    """
    x0 = score[points]
    last = len(score) - 1
    near = LOESS_SPAN * cumulated[-1]
    near = max(np.floor(near + BIN_EDGE_TOLERANCE), 1.0) if has_counts else near

    def is_enough(distance):
        reach = distance * (1 + 1e-12)
        end = np.searchsorted(score, x0 + reach, side="right")
        start = np.searchsorted(score, x0 - reach)
        return cumulated[end] - cumulated[start] >= near * (1 - BIN_EDGE_TOLERANCE)

    width = np.full(len(points), np.inf)
    for side, max_steps in ((1, last - points), (-1, points)):
        low_steps = np.zeros_like(points)
        high_steps = max_steps.copy()
        while (low_steps < high_steps).any():
            middle = (low_steps + high_steps) // 2
            enough = is_enough(np.abs(score[points + side * middle] - x0))
            low_steps = np.where(enough, low_steps, np.minimum(middle + 1, high_steps))
            high_steps = np.where(enough, middle, high_steps)
        distance = np.abs(score[points + side * high_steps] - x0)
        width = np.where(is_enough(distance), np.minimum(width, distance), width)
    right = np.where(points < last, score[np.minimum(points + 1, last)] - x0, np.inf)
    left = np.where(points > 0, x0 - score[np.maximum(points - 1, 0)], np.inf)
    return np.where(width > 0, width, np.minimum(right, left))


def _compute_rows(x, mass, x0, width):
    """Return the matrix from the events at each `x` to the fitted values at each `x0`."""
    ahead = x - x0
    nearest = np.min(np.abs(ahead[:, mass > 0]), axis=1, keepdims=True)
    width = np.maximum(width, nearest * (1 + 1e-6))
    # points outside weigh 0 and must not overflow
    t = np.clip(ahead, -width, width) / width
    tricube = (1 - np.abs(t) ** 3) ** 3
    weight = mass * tricube

    def sum_columns(values):
        return (weight * values).sum(axis=1, keepdims=True)

    # orthogonal polynomials of t, whose values at t = 0 weigh the rows
    size = sum_columns(1.0)
    mean = sum_columns(t) / size
    first = t - mean
    spread = sum_columns(first**2)
    level = sum_columns(t**2) / size
    slope = _divide_or_zero(sum_columns(t**2 * first), spread, size)
    second = t**2 - level - slope * first
    bend = sum_columns(second**2)
    row = 1 / size - _divide_or_zero(mean, spread, size) * first
    row += _divide_or_zero(slope * mean - level, bend, size) * second
    return tricube * row


def _divide_or_zero(value, norm, size):
    """Return value / norm, or 0 for a column in the span of those before it."""
    is_independent = norm > _NORM_TOLERANCE * size
    return np.divide(value, norm, out=np.zeros_like(norm), where=is_independent)


def compute_weighted_quantile(values, mass, q):
    """Return the quantile of values that occur `mass` times each.

    It is linear in the rank between two values.

    R's type 7 and numpy's default; of masses that are not whole, the smallest value
    that at least the share `q` does not exceed.
    """
    order = np.argsort(values)
    values = values[order]
    cumulated = np.cumsum(mass[order])
    if not are_counts(mass):
        index = np.searchsorted(cumulated, q * cumulated[-1] * (1 - BIN_EDGE_TOLERANCE))
        return float(values[min(index, len(values) - 1)])
    rank = q * (cumulated[-1] - 1)
    below = np.floor(rank + BIN_EDGE_TOLERANCE)
    indices = np.searchsorted(
        cumulated, [below, min(below + 1, cumulated[-1] - 1)], side="right"
    )
    low, high = values[indices]
    return float(low + max(rank - below, 0.0) * (high - low))
