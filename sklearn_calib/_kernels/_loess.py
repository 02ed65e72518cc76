"""Local quadratic regression of event frequencies, and quantiles with repetitions.

The smoother of Cleveland and Devlin (1988) with the settings of R's ``loess(y ~ x)``:
span 3/4, degree 2, tricube weights, one pass, evaluated exactly at the support points.

Masses are the numbers of times that scores occur. If all are whole numbers they are
counts; other masses are read as frequencies, the limit of ever more rows in these
proportions.
"""

import numpy as np

from .._count_weights import are_counts
from ._binning import BIN_EDGE_TOLERANCE_IN_BINS, find_mass_midpoint_fractions

LOESS_SPAN = 0.75
MAX_LOESS_SCORE_CELLS = 4096
MAX_LOESS_SUPPORT_POINTS = 512
# Scores are multiplied by this power of two, which is exact, so that no distance of two
# of them is below the smallest normal number.
_SCORE_SCALE = 2.0**600
# A column with a smaller squared norm, per unit of weight, consists of rounding errors.
_NORM_TOLERANCE = 1e-20


class Loess:
    """The smoother of increasing distinct scores.

    More than `MAX_LOESS_SUPPORT_POINTS` scores are fitted at as many of them, and
    interpolated linearly; more than `MAX_SCORE_CELLS` are pooled for the fits, whose windows
    are those of the scores. The linear operator of the last masses is kept: labels that
    are drawn again cost one product with it.
    """

    def __init__(self, score):
        self._score = score * _SCORE_SCALE
        self._last = None

    def __call__(self, mass, event_weight):
        """Return the fitted frequency at each score, in [0, 1]."""
        starts, support, rows, order = self._get_cells_support_rows_and_order(mass)
        value = (rows @ _sum_by_cell(event_weight, starts))[order]
        return np.interp(self._score, support, np.clip(value, 0.0, 1.0))

    def count_effective_rows(self, mass, squares):
        """Return the rows whose plain mean varies as much as the fit at each score.

        `squares` are sums of squared weights of independent rows.
        """
        starts, support, rows, order = self._get_cells_support_rows_and_order(mass)
        variance = (rows**2 @ _sum_by_cell(squares, starts))[order]
        return np.interp(self._score, support, 1 / variance)

    def _get_cells_support_rows_and_order(self, mass):
        if self._last is None or not np.array_equal(self._last[0], mass):
            self._last = (
                mass,
                *_fit_and_get_starts_support_rows_and_order(self._score, mass),
            )
        return self._last[1:]


def _sum_by_cell(values, cell_starts):
    return values if cell_starts is None else np.add.reduceat(values, cell_starts)


def _fit_and_get_starts_support_rows_and_order(score, mass):
    """Return where pooled scores begin, the support, the fit's operator, and its order.

    The operator maps events to fitted values at the support points. Its rows are in the
    order in which points were added; the order sorts them by point.

    The support is halved further where labels could make the most of the difference
    between the fit and the line between its neighbours: half the sum of the absolute
    differences of the rows.
    """
    from ._score_sums import fill_interpolation_errors

    starts = _find_cell_starts_if_many_scores(score, mass)
    windows = _find_window_first_and_last_scores(score, mass)
    x, pooled = _pool_scores(score, mass, starts)
    n = len(score)
    rows = np.zeros((min(n, MAX_LOESS_SUPPORT_POINTS), len(x)))

    def fill_smoother_rows(indices, first):
        width = _find_window_half_widths(score, windows, indices)
        _fill_smoother_rows(x, pooled, score[indices], width, rows[first:])

    # With so few scores the fit is computed at each of them.
    if n <= MAX_LOESS_SUPPORT_POINTS:
        fill_smoother_rows(np.arange(n), 0)
        return starts, score, rows, np.arange(n)
    ranks = np.linspace(0, n - 1, MAX_LOESS_SUPPORT_POINTS // 8).round().astype(np.intp)
    spaced = np.searchsorted(
        score, np.linspace(score[0], score[-1], MAX_LOESS_SUPPORT_POINTS // 8)
    )
    # The first points are an eighth by rank and an eighth by distance, so that neither
    # dense nor empty parts are missed.
    points = np.union1d(ranks, np.minimum(spaced, n - 1))
    fill_smoother_rows(points, 0)
    row_numbers = np.arange(len(points))
    gains = np.full(len(points) - 1, np.inf)
    while len(points) < MAX_LOESS_SUPPORT_POINTS:
        n_points = len(points)
        n_new = min(MAX_LOESS_SUPPORT_POINTS - n_points, n_points)
        low = points[:-1]
        high = points[1:]
        # Neighbours without a score between them cannot be halved.
        is_divisible = high - low > 1
        chosen = np.argsort(np.where(is_divisible, -gains, 0.0), kind="stable")
        chosen = chosen[:n_new]
        chosen = np.sort(chosen[is_divisible[chosen]])
        # The fit is linear between all neighbours.
        if not len(chosen):
            break
        low = low[chosen]
        high = high[chosen]
        middle = np.searchsorted(score, (score[low] + score[high]) / 2)
        middle = np.clip(middle, low + 1, high - 1)
        new = np.arange(n_points, n_points + len(middle))
        # Each chosen interval is halved at the score nearest to its middle.
        fill_smoother_rows(middle, n_points)
        fraction = (score[middle] - score[low]) / (score[high] - score[low])
        low_rows = row_numbers[chosen]
        high_rows = row_numbers[chosen + 1]
        bends = np.empty(len(middle))
        fill_interpolation_errors(
            rows, pooled, low_rows, high_rows, fraction, new, bends
        )
        # Halving an interval leaves about a quarter of the error of a smooth curve.
        gains[chosen] = bends / 4
        gains = np.insert(gains, chosen + 1, gains[chosen])
        points = np.insert(points, chosen + 1, middle)
        row_numbers = np.insert(row_numbers, chosen + 1, new)
    return starts, score[points], rows[: len(points)], row_numbers


def _find_cell_starts_if_many_scores(score, mass):
    """Return where the cells of pooled scores begin, or None without pooling.

    A cell is narrow in mass as well as in range; a score of much mass is alone in its
    cell.
    """
    if len(score) <= MAX_LOESS_SCORE_CELLS:
        return None
    half = MAX_LOESS_SCORE_CELLS // 2
    position = (score - score[0]) / (score[-1] - score[0])
    by_mass = find_mass_midpoint_fractions(mass) * half + BIN_EDGE_TOLERANCE_IN_BINS
    number = np.vstack([by_mass, position * half]).astype(np.intp)
    number = np.minimum(number, half - 1)
    is_new = (np.diff(number) > 0).any(axis=0)
    return np.flatnonzero(np.append(True, is_new))


def _pool_scores(score, mass, cell_starts):
    if cell_starts is None:
        return score, mass
    total = np.add.reduceat(mass, cell_starts)
    return np.add.reduceat(mass * score, cell_starts) / total, total


def _find_window_first_and_last_scores(score, mass):
    """Return the first and the last score of each window that is just full.

    A window holds the share `LOESS_SPAN` of the rows, and begins at one of the first
    scores.
    """
    cumulated = np.append(0.0, np.cumsum(mass))
    total = cumulated[-1]
    window_mass = LOESS_SPAN * total
    if are_counts(mass):
        window_mass = max(np.floor(window_mass + BIN_EDGE_TOLERANCE_IN_BINS), 1.0)
    window_mass *= 1 - BIN_EDGE_TOLERANCE_IN_BINS
    n_starts = np.searchsorted(cumulated, total - window_mass, side="right")
    ends = np.searchsorted(cumulated, cumulated[:n_starts] + window_mass)
    return score[:n_starts], score[np.minimum(ends, len(score)) - 1]


def _find_window_half_widths(score, windows, points):
    """Return half the widths of the windows around the scores `points`.

    The window of a point is the one, of those that are just full, whose farther end is
    nearest: its ends are at equal distances, or its neighbour's would be farther. If one
    score fills it, the distance of the next score counts.
    """
    first, last_inside = windows
    x0 = score[points]
    index = np.searchsorted(first + last_inside, 2 * x0)
    width = np.full(len(points), np.inf)
    for near in (np.maximum(index - 1, 0), np.minimum(index, len(first) - 1)):
        reach = np.maximum(x0 - first[near], last_inside[near] - x0)
        width = np.minimum(width, reach)
    last = len(score) - 1
    right = score[np.minimum(points + 1, last)] - x0
    right = np.where(points < last, right, np.inf)
    left = x0 - score[np.maximum(points - 1, 0)]
    left = np.where(points > 0, left, np.inf)
    return np.where(width > 0, width, np.minimum(right, left))


def _fill_smoother_rows(x, mass, centre, width, rows):
    """Fill in the map from the events at each `x` to the fitted value at each centre."""
    from ._score_sums import fill_local_parabola_weights

    width = np.maximum(width, _find_centre_to_nearest_x_distances(x[mass > 0], centre))
    begin = np.searchsorted(x, centre - width)
    end = np.searchsorted(x, centre + width, side="right")
    fill_local_parabola_weights(
        x, mass, centre, width, begin, end, _NORM_TOLERANCE, rows
    )


def _find_centre_to_nearest_x_distances(x, centre):
    """Return a little more than the distance of each centre to the nearest `x`."""
    after = np.searchsorted(x, centre).clip(1, max(len(x) - 1, 1))
    before = x[after - 1]
    after = x[np.minimum(after, len(x) - 1)]
    return np.minimum(abs(centre - before), abs(after - centre)) * (1 + 1e-6)


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
        index = np.searchsorted(
            cumulated, q * cumulated[-1] * (1 - BIN_EDGE_TOLERANCE_IN_BINS)
        )
        return float(values[min(index, len(values) - 1)])
    last = cumulated[-1] - 1
    rank = q * last
    below = np.floor(rank + BIN_EDGE_TOLERANCE_IN_BINS)
    above = min(below + 1, last)
    indices = np.searchsorted(cumulated, [below, above], side="right")
    low, high = values[indices]
    return float(low + max(rank - below, 0.0) * (high - low))
