"""The two-class problems of an audit of groups: paths of the true labels, and of drawn ones."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from .._random import (
    compute_weight_moments_and_equality,
    draw_partial_row_weight,
    make_generator,
)
from .._typing import FloatArray, IntArray, RandomStateLike
from ._cells import GroupCells, get_group_cells_and_starts
from ._result import GroupRow


class GroupedEventTest:
    """A two-class problem: its cells, and the groups as lists of them.

    Parameters
    ----------
    title : str
    cells : GroupCells
    groups : sequence of ndarray
        The combinations of groups that each group consists of.
    unit : float
        The factor that turns the weights into those that the caller passed.
    bounds : (ndarray, ndarray), default=None
        For problems that share their rows, each of which is a combination of its own: a
        row has the event if a uniform number lies between these. By default labels are
        drawn for this problem alone.
    """

    def __init__(
        self,
        title: str,
        cells: GroupCells,
        groups: Sequence[IntArray],
        unit: float = 1.0,
        bounds: tuple[FloatArray, FloatArray] | None = None,
    ) -> None:
        from .._kernels._group_paths import fill_group_moments

        weight = cells.weight.sum(axis=1)
        self.counts = cells.counts.sum(axis=1)
        # A power of two changes no digit, and keeps squares of weights in the range of
        # float64.
        unit_power = np.exp2(np.frexp(weight.max())[1])
        self.title = title
        self.pattern = cells.pattern
        self.score_index = cells.score_index
        self.score = np.ascontiguousarray(cells.proba[:, 1])
        self.z = cells.z
        self.unit = unit * unit_power
        self.hits = cells.weight[:, 1] / unit_power
        self.weight = weight / unit_power
        self.squares = cells.squares.sum(axis=1) / unit_power / unit_power
        self._weight_moments = compute_weight_moments_and_equality(
            self.counts, self.weight, self.squares
        )
        self.bounds = None
        if bounds is not None:
            self.bounds = [
                np.ascontiguousarray(bound[self.pattern]) for bound in bounds
            ]
        # Cells of one row draw their label from the shared uniform numbers; cells of
        # several rows draw binomial numbers.
        self.multi_row_cells = np.flatnonzero(self.counts > 1)
        self.cells, self.starts = get_group_cells_and_starts(cells, groups)
        self.n_rows = np.add.reduceat(self.counts[self.cells], self.starts[:-1])
        self.moments = np.empty((8, len(groups)))
        fill_group_moments(
            self.score,
            self.z,
            self.hits,
            self.weight,
            self.squares,
            self.cells,
            self.starts,
            self.moments,
        )
        variance = self.moments[3]
        tilt = self.moments[5]
        self.scales = np.zeros((3, len(groups)))
        # Groups of certain predictions have variance 0: their scale stays 0, and
        # `observed` handles them.
        np.divide(1.0, np.sqrt(variance), out=self.scales[0], where=variance > 0)
        self.scales[1] = self.moments[4]
        np.divide(1.0, np.sqrt(tilt), out=self.scales[2], where=tilt > 0)

    def compute_path_ranges_ends_and_tilts(
        self, residual: FloatArray, buffer: FloatArray
    ) -> FloatArray:
        """Compute the range, end and tilt of each path, of shape (3, n_groups, DRAWS)."""
        from .._kernels._group_paths import (
            DRAWS_PER_BLOCK,
            fill_group_path_range_end_and_tilt,
        )

        out = np.empty((3, len(self.starts) - 1, DRAWS_PER_BLOCK))
        fill_group_path_range_end_and_tilt(
            residual,
            self.score_index,
            self.z,
            self.cells,
            self.starts,
            self.scales,
            buffer,
            out,
        )
        return out

    def compute_observed_ranges_in_sigma(self, buffer: FloatArray) -> FloatArray:
        """Compute the range of the observed path of each group."""
        residual = np.zeros((len(self.score), buffer.shape[1]))
        residual[:, 0] = self.hits - self.weight * self.score
        sigma = self.compute_path_ranges_ends_and_tilts(residual, buffer)[0, :, 0]
        # Certain predictions are never wrong in a draw, so one wrong label is
        # infinitely rare.
        is_certain = self.moments[3] <= 0
        certain_sigma = np.where(self.moments[6] > 0, np.inf, 0.0)
        return np.where(is_certain, certain_sigma, sigma)

    def draw_path_ranges_ends_and_tilts(
        self, uniform: FloatArray, rng: np.random.Generator, buffer: FloatArray
    ) -> FloatArray:
        """Return `compute_path_ranges_ends_and_tilts` for drawn labels.

        Parameters
        ----------
        uniform : ndarray of shape (n_rows, DRAWS)
            Uniform numbers for the rows that problems share, or for the cells.
        rng : Generator
            For cells of several rows.
        buffer : ndarray of shape (4, DRAWS)
        """
        if self.bounds is None:
            has_event = uniform < self.score[:, None]
        else:
            low, high = self.bounds
            uniform = uniform[self.pattern]
            # One uniform number per row decides its class among all: it lies between
            # the cumulated probabilities of exactly one class.
            has_event = (uniform >= low[:, None]) & (uniform < high[:, None])
        residual = np.where(
            has_event,
            (self.weight * (1 - self.score))[:, None],
            (-self.weight * self.score)[:, None],
        )
        if len(self.multi_row_cells):
            residual[self.multi_row_cells] = self._draw_residuals_by_multi_row_cell(
                rng, uniform.shape[1]
            )
        return self.compute_path_ranges_ends_and_tilts(residual, buffer)

    def _draw_residuals_by_multi_row_cell(self, rng, n_draws):
        """Draw labels for the cells of several rows; return residuals (n_cells, n_draws)."""
        cells = self.multi_row_cells
        counts = self.counts[cells, None]
        weight = self.weight[cells, None]
        p = self.score[cells, None]
        expected = weight * p
        # Labels of rows of one cell are exchangeable, so their sum is all that matters
        # if the weights are equal.
        shape = (len(cells), n_draws)
        ones = rng.binomial(counts, p, shape)
        mean, variance, are_equal = self._weight_moments
        if are_equal:
            return ones * mean[cells, None] - expected
        # With unequal weights the weight of the events depends on which rows they are.
        moments = (
            np.broadcast_to(mean[cells, None], shape),
            np.broadcast_to(variance[cells, None], shape),
            False,
        )
        weight_of_ones = draw_partial_row_weight(
            ones,
            np.broadcast_to(counts, shape),
            np.broadcast_to(weight, shape),
            moments,
            rng,
        )
        return weight_of_ones - expected


class GroupDrawSummary(NamedTuple):
    """The statistics of n_resamples sets of labels, for the groups of all events.

    Parameters
    ----------
    observed_sigma : ndarray of shape (n_groups,)
        The range of the path of the true labels.
    n_as_large : ndarray of shape (n_groups,)
        The number of draws in which the same group has a range as large.
    maxima : ndarray of shape (3, n_resamples)
        The largest range, end and tilt of all groups in each draw.
    """

    observed_sigma: FloatArray
    n_as_large: FloatArray
    maxima: FloatArray


def draw_event_statistics(
    events: Sequence[GroupedEventTest],
    n_resamples: int,
    random_state: RandomStateLike,
) -> GroupDrawSummary:
    """Draw sets of labels for all events and groups at once."""
    from .._kernels._group_paths import DRAWS_PER_BLOCK

    buffer = np.empty((4, DRAWS_PER_BLOCK))
    sigma = np.concatenate(
        [event.compute_observed_ranges_in_sigma(buffer) for event in events]
    )
    limits = _lower_by_tie_tolerance(sigma)
    starts = range(0, n_resamples, DRAWS_PER_BLOCK)
    # Each block has its own seed, so the result does not depend on the number of
    # threads.
    seeds = make_generator(random_state).integers(0, 2**63, size=(len(starts), 2))
    n = len(events[0].score)

    def draw_maxima_and_exceedance_counts(start, seed):
        """Return the largest statistics of each draw, and how often each group is as large."""
        n_used = min(DRAWS_PER_BLOCK, n_resamples - start)
        rng = np.random.default_rng(seed)
        # A whole block is drawn even if fewer draws are wanted: the first draws of a
        # longer run are then the same.
        uniform = rng.random((n, DRAWS_PER_BLOCK))
        buffer = np.empty((4, DRAWS_PER_BLOCK))
        statistics_by_event = [
            event.draw_path_ranges_ends_and_tilts(uniform, rng, buffer)[:, :, :n_used]
            for event in events
        ]
        statistics = (
            statistics_by_event[0]
            if len(statistics_by_event) == 1
            else np.concatenate(statistics_by_event, axis=1)
        )
        # Intervals of O/E and slope are two-sided: they need the largest absolute
        # values.
        np.abs(statistics[1:], out=statistics[1:])
        is_as_large = statistics[0] >= limits[:, None]
        # The maximum over groups makes the p-values and intervals hold for all groups
        # together (Westfall and Young, 1993).
        return statistics.max(axis=1), np.count_nonzero(is_as_large, axis=1)

    maxima, counts = zip(
        *_map_in_threads(draw_maxima_and_exceedance_counts, starts, seeds), strict=True
    )
    return GroupDrawSummary(
        sigma, np.sum(counts, axis=0), np.concatenate(maxima, axis=1)
    )


def _lower_by_tie_tolerance(sigma):
    """Lower statistics slightly, so that rounding does not make an equal replicate smaller."""
    is_infinite = np.isinf(sigma)
    finite_sigma = np.where(is_infinite, 0, sigma)
    return np.where(is_infinite, np.inf, sigma - 1e-12 * np.maximum(1.0, finite_sigma))


def _map_in_threads(function, *arguments):
    """Map a function in threads, which use all cores: the kernels release the lock."""
    from .._kernels._compile import count_threads

    with ThreadPoolExecutor(count_threads()) as pool:
        return list(pool.map(function, *arguments))


def find_upper_quantile_or_inf(draws: FloatArray, level: float) -> float:
    """Return the value that a further draw exceeds with probability at most 1 - level."""
    # The observed value is one of n + 1 exchangeable ones, so this rank is exceeded
    # with probability at most 1 - level.
    rank = math.ceil(level * (len(draws) + 1) - 1e-9) - 1
    return float(np.sort(draws)[rank]) if rank < len(draws) else np.inf


def build_event_rows(
    event: GroupedEventTest,
    names: Sequence[str],
    draws: GroupDrawSummary,
    level: float,
) -> list[GroupRow]:
    """Build the result row of each group.

    Parameters
    ----------
    event : Event
    names : list of str
        The names of the groups.
    draws : Draws
        The draws of this event; `sorted_maxima` is that of all events.
    level : float
    """
    from .._kernels._group_paths import fill_group_logistic_fits

    n_resamples = draws.maxima.shape[1]
    # Critical values of the largest end and tilt, for intervals that hold together.
    shift = find_upper_quantile_or_inf(draws.maxima[1], level)
    tilt = find_upper_quantile_or_inf(draws.maxima[2], level)
    fits = np.empty((8, len(names)))
    fill_group_logistic_fits(
        event.z,
        event.hits,
        event.weight,
        event.squares,
        event.cells,
        event.starts,
        event.moments,
        shift,
        np.empty(8),
        fits,
    )
    weight, events, expected = event.moments[:3]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.array([events, fits[4], fits[5]]) / expected
    slope = fits[6]
    # All drawn tilts are 0 if no group has a spread of scores.
    tilt = max(tilt, 1e-300)
    half_width = tilt * np.where(np.isfinite(slope), fits[7], np.inf)
    # Without a slope the interval is the whole line.
    centre = np.where(np.isfinite(slope), slope, 0.0)
    sorted_maxima = np.sort(draws.maxima[0])
    limits = _lower_by_tie_tolerance(draws.observed_sigma)
    n_larger = n_resamples - np.searchsorted(sorted_maxima, limits)
    # The columns of `GroupRow` after the names of group and event.
    columns = [
        event.n_rows,
        *(event.unit * total for total in (weight, events, expected)),
        *ratios,
        *fits[:4],
        slope,
        fits[7],
        centre - half_width,
        centre + half_width,
        draws.observed_sigma,
        # The observed labels count as one of the draws, which makes the p-value valid
        # for any number of draws.
        (1 + draws.n_as_large) / (1 + n_resamples),
        (1 + n_larger) / (1 + n_resamples),
    ]
    column_lists = [column.tolist() for column in columns]
    return [
        GroupRow(name, event.title, *numbers)
        for name, *numbers in zip(names, *column_lists, strict=True)
    ]
