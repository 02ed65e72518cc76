"""What a verdict rests on: bins with intervals, slope and intercept, the power of the test."""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtri, stdtrit

from .._argument_checks import check_level
from .._kernels._binning import assign_values_to_bins, sum_bins
from .._kernels._cluster_sums import compute_jackknife_standard_errors_and_df
from .._kernels._detectable_error import (
    KERNEL_BANDWIDTH,
    SIGNIFICANCE_LEVEL,
    DetectableErrors,
)
from .._kernels._logistic import (
    compute_coefficient_covariance,
    fit_logistic_line_and_likelihood,
    threshold_separates,
)
from .._kernels._proportion import compute_exact_interval
from .._simplex_array import LARGEST_LOG_LOSS, compute_log_odds
from ..groups import ALL_ROWS_NAME, GroupCalibration, GroupRow
from ..inference import ClusterSample, MonteCarloResult
from ._models import PredictionsModel, ReportedModel

if TYPE_CHECKING:
    from .._typing import IntArray
    from ..summary import CellSample

    Cells: TypeAlias = CellSample | ClusterSample

MAX_BINS = 10
N_TEST_DRAWS = 999
N_TEST_CELLS = 1024
# Expected rows of the rarer outcome, in a bin on average.
_MIN_RARER_ROWS_PER_BIN = 20
# Rows of either outcome that a slope needs.
_MIN_SLOPE_ROWS_PER_OUTCOME = 10
# The wrong groups have at most this fraction of the rows.
_MAX_WRONG_GROUP_ROW_SHARE = 0.5
# The evidence, as a logarithm of a likelihood ratio, that single groups are wrong
# rather than all rows.
_MIN_WRONG_GROUPS_LOG_LIKELIHOOD_GAIN = 3.0


class Bin(NamedTuple):
    """One bin of a report: rows with neighbouring scores.

    Parameters
    ----------
    low, high : float
        Smallest and largest score.
    rows : int
    weight : float
        The sum of their weights.
    predicted, observed : float
        Weighted means of scores and of events.
    observed_low, observed_high : float
        Clopper and Pearson's interval for the true frequency.
    observed_over_expected : float or None
        observed / predicted; None if nothing is predicted.
    """

    low: float
    high: float
    rows: int
    weight: float
    predicted: float
    observed: float
    observed_low: float
    observed_high: float
    observed_over_expected: float | None

    @property
    def gap(self) -> float:
        return abs(self.observed - self.predicted)


class Line(NamedTuple):
    """Slope and intercept of the events on the predicted log-odds; 1 and 0 if calibrated.

    Parameters
    ----------
    slope, intercept : float
    slope_error, intercept_error : float
        Standard errors of the two: by the sandwich formula; of clusters by leaving out
        each.
    n_clusters : int or None
        The number of clusters, if the standard errors allow for rows that belong
        together. None if rows are taken as independent.
    freedom : float or None
        Degrees of freedom of Student's law for the slope of clusters; few where events
        are rare.
    """

    slope: float
    intercept: float
    slope_error: float
    intercept_error: float
    n_clusters: int | None = None
    freedom: float | None = None

    def slope_interval(self, level: float) -> tuple[float, float]:
        """Return the normal interval of the slope; of clusters by Student's law."""
        check_level(level)
        tail = (1 + level) / 2
        wide = ndtri(tail) if self.freedom is None else stdtrit(self.freedom, tail)
        half = float(wide) * self.slope_error
        return self.slope - half, self.slope + half


class Evidence(NamedTuple):
    """The numbers behind the sentences of a verdict, other than those of the test.

    Parameters
    ----------
    predicted, observed : float
        Means of scores and of events.
    observed_low, observed_high : float
        Clopper and Pearson's interval for the true frequency.
    line : Line or None
    bins : list of Bin
        With intervals that hold all at once.
    runs : list of Run
        Where these exclude the mean prediction.
    worst : Bin or None
        Of those the one of the largest gap.
    minimum_detectable : float or None
        The smallest mean error that the test finds with probability 0.8.
    blind : bool
        Whether it would miss scores without any information whose mean is right.
    unseen : float
        0, unless a threshold of the score separates the outcomes. Then resamples of the
        rows hardly differ, and this is the rate up to which outcomes on the wrong side
        of it may be missing by chance: the end of Clopper and Pearson's interval, about
        3 / n_rows.
    """

    predicted: float
    observed: float
    observed_low: float
    observed_high: float
    line: Line | None
    bins: list[Bin]
    runs: "list[Run]"
    worst: Bin | None
    minimum_detectable: float | None
    blind: bool
    unseen: float


def collect_evidence(
    sample: "Cells", coarse: "Cells", level: float, critical: float, inflation: float
) -> Evidence:
    """Return the evidence of all cells; `coarse` ones are enough for the power of the test.

    `inflation` is the factor by which clusters enlarge the variance.
    """
    weight = sample.weight.sum()
    observed = sample.weight[:, 1].sum() / weight
    one_bin = np.zeros(len(sample.proba), dtype=np.intp)
    low, high = (
        float(end[0]) for end in sample.compute_frequency_intervals(one_bin, 1, level)
    )
    # Intervals of the bins hold together: independent bins at level^(1/n) have the
    # joint level.
    n_bins = choose_bin_count(sample)
    bins = make_bins(sample, n_bins, level ** (1 / n_bins))
    # If a threshold separates the outcomes, an interval of an error rate of 0 takes the
    # place of a slope.
    cell, outcome = np.nonzero(sample.weight)
    separated = threshold_separates(sample.proba[cell, 1], outcome)
    unseen = 0.0
    if separated:
        unseen = float(
            compute_exact_interval(0, sample.count_effective_rows(), level)[1]
        )
    return Evidence(
        float(sample.weight.sum(axis=1) @ sample.proba[:, 1] / weight),
        float(observed),
        low,
        high,
        fit_event_line(sample),
        bins,
        *find_wrong_ranges(bins),
        *find_minimum_detectable_error_and_blindness(
            coarse, KERNEL_BANDWIDTH, critical, inflation
        ),
        unseen,
    )


def make_bins(sample: "Cells", n_bins: int, level: float) -> list[Bin]:
    """Return bins of equal weight with intervals that hold one by one; ties share a bin."""
    score = sample.proba[:, 1]
    mass = sample.weight.sum(axis=1)
    place = assign_values_to_bins(score, mass, n_bins, "quantile")
    rows = np.bincount(place, sample.counts.sum(axis=1), n_bins)
    sums = sum_bins(place, n_bins, mass, mass * score, sample.weight[:, 1])
    # Ties may leave bins empty.
    filled = np.flatnonzero((sums[0] > 0) & (rows > 0))
    columns = *sums, rows, *sample.compute_frequency_intervals(place, n_bins, level)
    mass, expected, events, rows, low, high = (column[filled] for column in columns)
    # Cells are in the order of their scores, so the cells of a bin are neighbours.
    first = np.searchsorted(place, filled)
    last = np.searchsorted(place, filled, side="right") - 1
    columns = (
        score[first],
        score[last],
        rows.astype(int),
        mass,
        expected / mass,
        events / mass,
    )
    ratio = [
        observed / predicted if predicted > 0 else None
        for observed, predicted in zip(events, expected, strict=True)
    ]
    lists = [column.tolist() for column in (*columns, low, high)]
    return [Bin(*values) for values in zip(*lists, ratio, strict=True)]


def choose_bin_count(sample: "Cells") -> int:
    """Return how many bins the rows can distinguish, from the scores alone."""
    # Expected rows of each outcome: the choice of the number of bins must not depend on
    # the labels, or the intervals would not hold.
    share = sample.proba * sample.counts.sum(axis=1)[:, None]
    return int(np.clip(share.sum(axis=0).min() // _MIN_RARER_ROWS_PER_BIN, 1, MAX_BINS))


class Run(NamedTuple):
    """Neighbouring bins in which predictions are all too low, or all too high.

    Parameters
    ----------
    low, high : float
        Smallest and largest score.
    too_high : bool
        Whether the predictions are too high there; else too low.
    """

    low: float
    high: float
    too_high: bool


def find_wrong_ranges(bins: list[Bin]) -> tuple[list[Run], Bin | None]:
    """Find where intervals exclude the mean prediction, and the bin of the largest gap."""
    runs: list[Run] = []
    previous = worst = None
    for number, reliability_bin in enumerate(bins):
        predicted = reliability_bin.predicted
        if reliability_bin.observed_low <= predicted <= reliability_bin.observed_high:
            continue
        too_high = reliability_bin.observed < predicted
        run = Run(reliability_bin.low, reliability_bin.high, too_high)
        # Neighbouring bins with errors of the same direction become one range.
        if runs and previous == number - 1 and runs[-1].too_high == run.too_high:
            run = Run(runs.pop().low, *run[1:])
        runs.append(run)
        previous = number
        if worst is None or reliability_bin.gap > worst.gap:
            worst = reliability_bin
    return runs, worst


def fit_event_line(sample: "Cells") -> Line | None:
    """Fit slope and intercept; return None for few events, one score or separation.

    If a prediction of exactly 0 or 1 is wrong, its log-odds are infinite and would
    decide the slope alone: certain predictions are then left out.
    """
    used = np.ones(len(sample.proba), dtype=bool)
    _, n_wrong = count_certain(sample)
    if n_wrong:
        used = ~(sample.proba == 0).any(axis=1)
    cell_z = compute_log_odds(sample.proba)
    if not used.any() or np.ptp(cell_z[used]) == 0:
        return None
    # The normal interval of the slope is too short for fewer events.
    if min(sample.counts[used].sum(axis=0)) < _MIN_SLOPE_ROWS_PER_OUTCOME:
        return None
    # One entry per cell and outcome: all cells with label 0, then all with label 1.
    weight = sample.weight.T.ravel()
    is_counted = (weight > 0) & np.tile(used, 2)
    z = np.tile(cell_z, 2)[is_counted]
    outcome = np.repeat([0.0, 1.0], len(cell_z))[is_counted]
    weight = weight[is_counted]
    squares = sample.squares.T.ravel()[is_counted]
    if threshold_separates(z, outcome):
        return None
    (intercept, slope), _ = fit_logistic_line_and_likelihood(z, outcome, weight)
    n_clusters = freedom = None
    if isinstance(sample, ClusterSample):
        cell = sample.table_column // 2
        rows = used[cell]
        columns = np.column_stack([np.ones(rows.sum()), cell_z[cell[rows]]])
        groups = np.unique(sample.groups[rows], return_inverse=True)[1].ravel()
        # The jackknife over clusters needs two of them.
        if groups.max() == 0:
            return None
        # The number of degrees of freedom belongs to each coefficient, since it depends
        # on how unequal the clusters are.
        errors, degrees = compute_jackknife_standard_errors_and_df(
            columns,
            columns @ (intercept, slope),
            sample.table_column[rows] % 2,
            sample.row_weight[rows],
            groups,
        )
        n_clusters = sample.n_clusters
        freedom = float(degrees[1])
    else:
        columns = np.column_stack([np.ones_like(z), z])
        predicted = intercept + slope * z
        covariance = compute_coefficient_covariance(
            columns, predicted, outcome, weight, squares
        )
        errors = np.sqrt(covariance.diagonal())
    intercept_error, slope_error = map(float, errors)
    return Line(
        float(slope),
        float(intercept),
        slope_error,
        intercept_error,
        n_clusters,
        freedom,
    )


def count_certain(sample: "Cells", items: "IntArray | None" = None) -> tuple[int, int]:
    """Count the rows that are predicted as exactly 0 or 1, and the wrong ones among them.

    With soft labels, `items` holds the item of each row of a `ClusterSample`, and items
    are counted.
    """
    never = sample.proba == 0
    # Rows of soft labels are copies of an item, which counts once.
    if items is not None and isinstance(sample, ClusterSample):
        sure = never.any(axis=1)[sample.table_column // 2]
        wrong = never.ravel()[sample.table_column]
        return len(np.unique(items[sure])), len(np.unique(items[wrong]))
    return int(sample.counts[never.any(axis=1)].sum()), int(sample.counts[never].sum())


def find_minimum_detectable_error_and_blindness(
    sample: "Cells", bandwidth: float, critical: float, inflation: float = 1.0
) -> tuple[float | None, bool]:
    """Return the smallest mean error that the test finds with probability 0.8.

    Of two kinds of error the larger, as far as there are errors large enough: log-odds
    that are all too far from 0 by one amount, and log-odds that are too far from their
    mean by one factor (overconfidence).

    Parameters
    ----------
    sample : CellSample
    bandwidth, critical : float
        Of the kernel calibration error, and its value that calibrated predictions
        exceed with probability 0.05.
    inflation : float, default=1.0
        Of the variance, by clusters.

    Returns
    -------
    error : float or None
        Mean distance between the predictions and the truth; None if no error would
        be found.
    blind : bool
        Whether even scores without any information would be missed, if their mean is
        right.
    """
    # Certain predictions: their labels cannot vary, and no error can be found.
    if not critical > 0:
        return None, True
    score = sample.proba[:, 1]
    rows = sample.weight.sum(axis=1)
    errors = DetectableErrors(
        score, rows / rows.sum(), compute_log_odds(sample.proba), bandwidth
    )
    return errors.find_min_error_or_none_and_is_blind(
        inflation * sample.squares.sum(axis=1) / rows.sum() ** 2, critical
    )


def run_kernel_test(sample: "Cells", seed: int) -> MonteCarloResult:
    """Run `calibration_test` by the kernel calibration error, all draws at once."""
    score = sample.proba[:, 1]
    mass = sample.weight.sum(axis=1)
    kernel = np.exp(-np.abs(score[:, None] - score) / KERNEL_BANDWIDTH)
    drawn_events = sample.draw_event_weights(N_TEST_DRAWS, np.random.default_rng(seed))
    # The observed labels are the first row.
    residual = np.vstack([sample.weight[:, 1], drawn_events]) - mass * score
    squares = np.einsum("ij,ij->i", residual @ kernel, residual)
    observed, *null = np.minimum(np.sqrt(np.maximum(squares, 0.0)) / mass.sum(), 1.0)
    return MonteCarloResult.from_draws(
        observed, np.array(null), "kernel_calibration_error"
    )


class WrongGroups(NamedTuple):
    """Groups that are wrong while no error is found in the other rows.

    Parameters
    ----------
    groups : list of GroupRow
        The worst first.
    n_others : int
        The number of rows outside these groups.
    p_others : float
        Of the verdict's test on these.
    """

    groups: list[GroupRow]
    n_others: int
    p_others: float


def find_wrong_groups(
    model: ReportedModel, audit: GroupCalibration, line: Line | None, seed: int
) -> WrongGroups | None:
    """Find the groups without which the predictions pass the test.

    The worst groups are set aside one after the other, until the other rows pass the
    test or are fewer than half of all. A line on the log-odds of these groups alone
    must then be far more likely than one line for all rows, which has as many
    parameters: by a factor of e^3 for each group that was audited.

    Parameters
    ----------
    model : Model
    audit : GroupCalibration
    line : Line or None
        Of all rows.
    seed : int
        Of the draws of the test.

    Returns
    -------
    error : WrongGroups or None
        None also without rows, as of summaries.
    """
    predictions = model.predictions
    if predictions is None or not audit.members or line is None:
        return None
    inside = np.zeros(predictions.n_given, dtype=bool)
    wrong_rows = []
    # Greedy: the worst group first, until the rest passes the test.
    for place in np.argsort([-row.sigma for row in audit.rows], kind="stable"):
        row = audit.rows[place]
        # The next group is not significant, so the error is not in single groups.
        if row.adjusted_p_value > audit.alpha:
            return None
        members = audit.members[place]
        # Groups inside those already found add nothing.
        if row.group == ALL_ROWS_NAME or inside[members].all():
            continue
        inside[members] = True
        wrong_rows.append(row)
        is_wrong = inside if predictions.kept is None else inside[predictions.kept]
        # If most rows are wrong, recalibrating all of them is simpler than repairing
        # groups.
        if is_wrong.mean() > _MAX_WRONG_GROUP_ROW_SHARE:
            return None
        other_model = PredictionsModel(predictions.take(np.flatnonzero(~is_wrong)))
        p_others = run_kernel_test(
            other_model.get_cell_or_cluster_sample(N_TEST_CELLS), seed
        ).pvalue
        if p_others > SIGNIFICANCE_LEVEL:
            wrong_model = PredictionsModel(predictions.take(np.flatnonzero(is_wrong)))
            # A small rest passes any test; the likelihood must prefer wrong groups to
            # an error of all rows.
            gain = _compute_separate_line_log_likelihood_gain(
                wrong_model.get_cell_or_cluster_sample(),
                other_model.get_cell_or_cluster_sample(),
                line,
            )
            # The logarithm of the number of groups is the price of having searched
            # among them.
            if gain < _MIN_WRONG_GROUPS_LOG_LIKELIHOOD_GAIN + np.log(len(audit.rows)):
                return None
            return WrongGroups(wrong_rows, other_model.n_samples, p_others)
    return None


def _compute_separate_line_log_likelihood_gain(wrong, others, line):
    """Return the log-likelihood of a line for the wrong cells less that of one for all."""
    wrong_line = fit_event_line(wrong)
    if wrong_line is None:
        return -np.inf
    gain = _compute_log_likelihood(wrong, wrong_line.intercept, wrong_line.slope)
    gain += _compute_log_likelihood(others, 0.0, 1.0)
    for cells in (wrong, others):
        gain -= _compute_log_likelihood(cells, line.intercept, line.slope)
    squares = wrong.squares.sum() + others.squares.sum()
    # With weights the likelihood counts Kish's number of rows.
    return gain * (wrong.weight.sum() + others.weight.sum()) / squares


def _compute_log_likelihood(cells, intercept, slope):
    """Return the log-likelihood of a line on the log-odds."""
    z = np.clip(compute_log_odds(cells.proba), -LARGEST_LOG_LOSS, LARGEST_LOG_LOSS)
    predicted = intercept + slope * z
    losses = np.logaddexp(0.0, np.column_stack([predicted, -predicted]))
    return -float((cells.weight * losses).sum())
