"""group_calibration: one exact test of all groups of rows, with intervals that hold together."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np

from .._random import check_seed, generator, label_bounds
from .._simplex import log_proba, title_of_problem, two_class_pairs
from .._typing import ArrayLike, FloatArray, Multiclass, RandomStateLike
from ..canonical import canonical_weight
from ..exceptions import check_count, check_level, refuse_unknown
from ..metrics import Case, canonical_case
from ._grades import Grades
from ._grouping import find_groups
from ._result import GroupCalibration, GroupRow


def group_calibration(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    groups: Any,
    *,
    depth: Literal[1, 2] = 1,
    n_bins: int = 3,
    min_rows: int = 50,
    level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    multiclass: Literal["auto", "confidence", "classwise"] = "auto",
) -> GroupCalibration:
    """Test the calibration of many groups of rows at once, with one exact p-value.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels.
    groups : table of shape (n_samples, n_columns), dict of columns, or list of masks
        What to group the rows by, which need not be what the model has seen: a table of pandas,
        polars or pyarrow, a dict of arrays or a numpy array, whose columns are cut into groups as
        `find_groups` says; or a list of boolean arrays of shape (n_samples,), each of them a group;
        or `Grades`, of the probabilities themselves. Groups may overlap. All rows together are
        always the first group.
    depth : {1, 2}, default=1
        2: also what any two groups of different columns have in common.
    n_bins : int, default=3
        Quantile bins of a column of numbers.
    min_rows : int, default=50
        Smaller groups are left out, and counted.
    level : float in (0, 1), default=0.95
        Of the intervals, and of `GroupCalibration.critical_sigma`.
    n_resamples : int, default=999
        Sets of labels drawn from the predictions. The smallest p-value is 1 / (1 + n_resamples).
        Fewer than level / (1 - level), 19 for 95 %, are too few for an interval: its ends are then
        infinite.
    random_state : int, Generator, RandomState or None, default=0
    sample_weight : array-like of shape (n_samples,), default=None
        Each row is one draw, whatever its weight; rows of weight 0 are left out.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.
    multiclass : {"auto", "confidence", "classwise"}, default="auto"
        Of more than two classes: the largest probability against whether that class is true, or
        each class against the others, which makes as many times more groups. "auto" is the former;
        of two classes the positive one.

    Returns
    -------
    result : GroupCalibration

    Raises
    ------
    ValueError, TypeError
        Groups without a column, columns or masks of another length, parameters out of range, or
        invalid scores, labels or weights; see `canonical_proba`.

    Warns
    -----
    CalibrationWarning
        No group has `min_rows` rows, or more than 5000 groups have.

    Notes
    -----
    Of each group the path of cumulative differences between labels and predictions is taken, in
    order of the predictions, equal ones as one step; its range divided by the standard deviation
    that calibrated predictions give its end is the statistic (Kuiper), in sigma. Where all
    predictions are 0 or 1 it is 0, or infinite if one of them is wrong.

    If the predictions are calibrated, the labels are draws from them, so `n_resamples` sets of
    labels are drawn for all rows at once, and the largest statistic of all groups is taken of each:
    the single-step method of Westfall and Young. The p-values are exact at any number of rows and
    for any overlap of the groups. Where some groups are calibrated and others are not, an adjusted
    p-value of at most alpha is given to any of the former with a probability near alpha at most.

    The intervals hold for all groups at once, one measure at a time: their half-widths are, instead
    of 1.96 standard errors, the `level` quantile of the largest standardised error of all groups
    over the same draws. For O/E and calibration in the large these ends are found by inverting the
    score test, so that they hold in small groups and where a group has no event; for the slope they
    are estimate plus and minus, from one Newton step. Cost: O(n_resamples (n + sum of the sizes of
    the groups)); 418 groups of 16,000 rows with 999 draws take about a second on one core. The
    draws are spread over the threads of numba, which does not change them.

    References
    ----------
    Westfall, Young (1993), "Resampling-based multiple testing", section 2.3; Arrieta-Ibarra,
    Gujral, Tannen, Tygert, Xu (2022), "Metrics of calibration for probabilistic predictions",
    for the statistic; Guy et al. (2025), "Measuring multi-calibration", for its largest over
    groups. Kleinberg, Mullainathan, Raghavan (2017), "Inherent trade-offs in the fair determination
    of risk scores", for what calibration in every group excludes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.groups import group_calibration
    >>> rng = np.random.default_rng(0)
    >>> proba, site = rng.uniform(0.1, 0.9, 2000), rng.choice(["north", "south"], 2000)
    >>> y = rng.random(2000) < np.where(site == "south", proba**2, proba)
    >>> found = group_calibration(y, proba, {"site": site})
    >>> [(row.group, row.adjusted_p_value) for row in found.rejected]
    [('site = south', 0.001), ('all rows', 0.001)]
    """
    where = "group_calibration"
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    if isinstance(groups, Grades):
        groups = {"grade": groups.assign(y_proba)}
    return audit_case(
        case,
        groups,
        sample_weight,
        depth=depth,
        n_bins=n_bins,
        min_rows=min_rows,
        level=level,
        n_resamples=n_resamples,
        random_state=random_state,
        multiclass=multiclass,
    )


def audit_case(
    case: Case,
    groups: Any,
    sample_weight: ArrayLike | None = None,
    *,
    depth: int = 1,
    n_bins: int = 3,
    min_rows: int = 50,
    level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
    multiclass: Multiclass = "auto",
) -> GroupCalibration:
    """`group_calibration` of validated predictions.

    Parameters
    ----------
    case : Case
    groups : table, dict of columns, or list of masks
        One row for each that was given, also where the weight is 0.
    sample_weight : array-like, default=None
        The weights as they were given.
    depth, n_bins, min_rows, level, n_resamples, random_state, multiclass
        As in `group_calibration`.
    """
    where = case.where
    check_seed(random_state)
    _check_arguments(level, n_resamples, multiclass, where)
    kept, n_given = None, len(case.codes)
    if sample_weight is not None:
        n_given = len(np.asarray(sample_weight))
        kept = np.flatnonzero(canonical_weight(sample_weight, n_given))
    options: Any = {"depth": depth, "n_bins": n_bins, "min_rows": min_rows}
    grouping = find_groups(groups, n_given, kept=kept, where=where, **options)
    events = _events_of(case, multiclass, grouping.rows)
    draws = _draw(events, int(n_resamples), random_state)
    rows: list[GroupRow] = []
    place = 0
    for event in events:
        here = slice(place, place := place + len(grouping.names))
        found = draws._replace(sigma=draws.sigma[here], larger=draws.larger[here])
        rows += _rows_of(event, grouping.names, found, level)
    members = [one if kept is None else kept[one].astype(np.int32) for one in grouping.rows]
    return GroupCalibration(
        rows,
        min(row.adjusted_p_value for row in rows),
        max(row.sigma for row in rows),
        _quantile(draws.largest[0], level),
        level,
        len(case.codes),
        grouping.n_left_out,
        min_rows,
        n_resamples,
        draws.largest[0],
        members * len(events),
    )


def _check_arguments(level, n_resamples, multiclass, where):
    check_level(level, where)
    cure = "Pass 999 for p-values down to 0.001"
    check_count(n_resamples, "n_resamples", where, cure=cure)
    known = ("auto", "confidence", "classwise")
    if multiclass not in known:
        cure = "See the user guide, Groups and fairness"
        refuse_unknown(where, "multiclass", multiclass, known, cure)


class _Event:
    """A two-class problem with its rows in order of the score, and the groups in that order."""

    def __init__(self, title, pair, hit, weight, unit, bounds, groups):
        from .._kernels._group_paths import moments_of_groups

        score = np.asarray(pair)[:, 1]
        self.order = np.argsort(score, kind="stable")
        position = np.empty(len(score), dtype=np.int32)
        position[self.order] = np.arange(len(score), dtype=np.int32)
        log = log_proba(pair)[self.order]
        self.title = title
        self.score = np.ascontiguousarray(score[self.order])
        self.z = log[:, 1] - log[:, 0]
        self.hit = hit[self.order].astype(np.float64)
        power = np.exp2(np.frexp(weight.max())[1])  # one scale for all that follows
        self.unit = unit * power  # of the weights that were given
        self.weight = np.ascontiguousarray(weight[self.order] / power)
        self.low, self.high = (np.ascontiguousarray(one[self.order]) for one in bounds)
        self.rows = np.concatenate([np.sort(position[group]) for group in groups])
        self.starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
        self.moments = np.empty((7, len(groups)))
        given = self.score, self.z, self.hit, self.weight, self.rows, self.starts
        moments_of_groups(*given, self.moments)
        variance, tilt = self.moments[3], self.moments[5]
        self.scales = np.zeros((3, len(groups)))
        np.divide(1.0, np.sqrt(variance), out=self.scales[0], where=variance > 0)
        self.scales[1] = self.moments[4]
        np.divide(1.0, np.sqrt(tilt), out=self.scales[2], where=tilt > 0)

    def standardised(self, residual, work):
        """Range, end and tilt of each path, of shape (3, n_groups, DRAWS)."""
        from .._kernels._group_paths import DRAWS, standardised_paths

        out = np.empty((3, len(self.starts) - 1, DRAWS))
        given = self.rows, self.starts, self.scales, work, out
        standardised_paths(residual, self.score, self.z, *given)
        return out

    def observed(self, work):
        """The range of the path of each group."""
        residual = np.zeros((len(self.score), work.shape[1]))
        residual[:, 0] = self.weight * (self.hit - self.score)
        sigma = self.standardised(residual, work)[0, :, 0]
        certain = self.moments[3] <= 0
        return np.where(certain, np.where(self.moments[6] > 0, np.inf, 0.0), sigma)

    def drawn(self, uniform, work):
        """The same as `standardised`, of labels made from uniform numbers, one for each row."""
        from .._kernels._group_paths import residuals_of_draws

        uniform = uniform[self.order]
        residuals_of_draws(uniform, self.low, self.high, self.score, self.weight, uniform)
        return self.standardised(uniform, work)


def _events_of(case: Case, multiclass: Multiclass, groups: Any) -> list[_Event]:
    zero, events = np.zeros(len(case.codes)), []
    classwise = multiclass == "classwise"
    cumulated = [zero, *label_bounds(case.proba).T] if classwise else []
    for problem, pair in two_class_pairs(multiclass, case.proba, case.positive):
        c = problem.number
        bounds = cumulated[c : c + 2] if classwise else [zero, np.asarray(pair)[:, 1]]
        title, hit = title_of_problem(multiclass, case.classes, c), case.codes == problem.target
        events.append(_Event(title, pair, hit, case.weight, case.unit, bounds, groups))
    return events


class _Draws(NamedTuple):
    """Groups of all events one after the other; n_resamples sets of labels."""

    sigma: FloatArray  # of the true labels, of shape (n_groups,)
    larger: FloatArray  # how many draws of the same group are as large
    largest: FloatArray  # of shape (3, n_resamples): the range, the end and the tilt


def _draw(events, n_resamples, random_state):
    from .._kernels._group_paths import DRAWS

    work = np.empty((4, DRAWS))
    sigma = np.concatenate([event.observed(work) for event in events])
    least = _guarded(sigma)
    starts = range(0, n_resamples, DRAWS)
    seeds = generator(random_state).integers(0, 2**63, size=(len(starts), 2))
    n = len(events[0].score)

    def batch(start, seed):
        wanted = min(DRAWS, n_resamples - start)
        uniform = np.random.default_rng(seed).random((n, DRAWS))
        work = np.empty((4, DRAWS))
        parts = [event.drawn(uniform, work)[:, :, :wanted] for event in events]
        found = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        np.abs(found[1:], out=found[1:])
        return found.max(axis=1), np.count_nonzero(found[0] >= least[:, None], axis=1)

    maxima, counts = zip(*_in_threads(batch, starts, seeds), strict=True)
    return _Draws(sigma, np.sum(counts, axis=0), np.concatenate(maxima, axis=1))


def _guarded(sigma):
    """A little less, so that rounding does not make an equal replicate smaller."""
    infinite = np.isinf(sigma)
    return np.where(infinite, np.inf, sigma - 1e-12 * np.maximum(1.0, np.where(infinite, 0, sigma)))


def _in_threads(function, *arguments):
    """The results in their order; the kernels release the lock, so plain threads use the cores."""
    from numba import get_num_threads

    threads = get_num_threads()
    if threads == 1:
        return list(itertools.starmap(function, zip(*arguments, strict=True)))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, *arguments))


def _quantile(drawn: FloatArray, level: float) -> float:
    """What a further draw exceeds with probability 1 - level at most."""
    place = math.ceil(level * (len(drawn) + 1) - 1e-9) - 1
    return float(np.sort(drawn)[place]) if place < len(drawn) else np.inf


def _rows_of(event, names, found, level):
    """The rows of one event."""
    from .._kernels._group_paths import fit_groups

    n_resamples = found.largest.shape[1]
    shift, tilt = (_quantile(drawn, level) for drawn in found.largest[1:])
    fits = np.empty((8, len(names)))
    given = event.z, event.hit, event.weight, event.rows, event.starts, event.moments
    fit_groups(*given, shift, np.empty(8), fits)
    weight, events, expected = event.moments[:3]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.array([events, fits[4], fits[5]]) / expected
    slope, tilt = fits[6], max(tilt, 1e-300)  # 0 where all scores are equal, and no slope exists
    half = tilt * np.where(np.isfinite(slope), fits[7], np.inf)
    middle = np.where(np.isfinite(slope), slope, 0.0)  # the whole line where there is no slope
    largest = np.sort(found.largest[0])
    above = n_resamples - np.searchsorted(largest, _guarded(found.sigma))
    columns = [
        np.diff(event.starts),
        *(event.unit * total for total in (weight, events, expected)),
        *ratios,
        *fits[:4],
        slope,
        fits[7],
        middle - half,
        middle + half,
        found.sigma,
        (1 + found.larger) / (1 + n_resamples),
        (1 + above) / (1 + n_resamples),
    ]
    listed = zip(names, *(column.tolist() for column in columns), strict=True)
    return [GroupRow(name, event.title, *numbers) for name, *numbers in listed]
