"""group_calibration: one exact test of all groups of rows, with intervals that hold together."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .._kernels._two_class_problems import iter_two_class_splits_and_proba, name_problem
from .._random import cumulate_proba
from .._typing import ArrayLike, IntArray, RandomStateLike
from .._validation import (
    check_and_get_common_index,
    get_proba_with_single_column_at_class,
    read_proba,
    reorder_columns_if_names_match,
)
from ..exceptions import invalid_input
from ..metrics import Predictions, validate_predictions
from ._cells import pool_and_coarsen_cells, pool_rows, pool_samples_by_combination
from ._events import (
    GroupedEventTest,
    build_event_rows,
    draw_event_statistics,
    find_upper_quantile_or_inf,
)
from ._grades import Grades
from ._grouping import (
    AuditOptions,
    Partition,
    encode_combinations,
    make_groups,
    make_partition_by_column_or_mask,
)
from ._result import GroupCalibration, GroupRow


def group_calibration(
    y_true: ArrayLike | Mapping[Any, Any],
    y_proba: ArrayLike | None = None,
    groups: Any = None,
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
    y_true : array-like of shape (n_samples,), or dict of CalibrationSummary
        Labels; or, alone, what `summarize` returns with ``by``: a summary for each
        combination of values, whose groups are those of the rows.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels.
    groups : table of shape (n_samples, n_columns), dict of columns, or list of masks
        What to group the rows by, which need not be what the model has seen: a table of
        pandas, polars or pyarrow, a dict of arrays or a numpy array, whose columns are
        cut into groups as `find_groups` describes; or a list of boolean arrays of shape
        (n_samples,), each of them a group; or `Grades`, of the probabilities
        themselves. Groups may overlap. All rows together are always the first group. Of
        summaries the names of the columns, ``by`` of `summarize`.
    depth : {1, 2}, default=1
        2: also what any two groups of different columns have in common.
    n_bins : int, default=3
        Quantile bins of a column of numbers.
    min_rows : int, default=50
        Smaller groups are left out, and counted.
    level : float in (0, 1), default=0.95
        Of the intervals, and of `GroupCalibration.critical_sigma`.
    n_resamples : int, default=999
        Sets of labels drawn from the predictions. The smallest p-value is 1 / (1 +
        n_resamples). Fewer than level / (1 - level), 19 for 95 %, are too few for an
        interval: its ends are then infinite.
    random_state : int, Generator, RandomState or None, default=0
    sample_weight : array-like of shape (n_samples,), default=None
        Each row is one draw, regardless of its weight; rows of weight 0 are left out.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The positive class of two, which owns a single column; the second by default.
        Required with a single column for labels other than 0 and 1, False and True, or
        -1 and 1, unless `labels` is given.
    multiclass : {"auto", "confidence", "classwise"}, default="auto"
        With more than two classes: the largest probability, and whether that class is
        true, or each class against the others, which makes as many times more groups.
        "auto" is the former; of two classes the positive one.

    Returns
    -------
    result : GroupCalibration

    Raises
    ------
    ValueError, TypeError
        Groups without a column, columns or masks of another length, parameters out of
        range, or invalid scores, labels or weights; see `canonical_proba`. Summaries of
        different classes, or of several classes one by one.

    Warns
    -----
    CalibrationWarning
        No group has `min_rows` rows, or more than 5000 groups have.

    Notes
    -----
    Of each group the path of cumulative differences between labels and predictions is
    taken, in order of the predictions, equal ones as one step; its range divided by the
    standard deviation that calibrated predictions give its end is the statistic
    (Kuiper), in sigma. If all predictions are 0 or 1 it is 0, or infinite if one of
    them is wrong.

    If the predictions are calibrated, the labels are draws from them, so `n_resamples`
    sets of labels are drawn for all rows at once, and the largest statistic of all
    groups is taken of each: the single-step method of Westfall and Young. The p-values
    are exact at any number of rows and for any overlap of the groups. If some groups
    are calibrated and others are not, an adjusted p-value of at most alpha is given to
    any of the former with a probability near alpha at most.

    The intervals hold for all groups at once, one measure at a time: their half-widths
    are, instead of 1.96 standard errors, the `level` quantile of the largest
    standardised error of all groups over the same draws. For O/E and calibration in the
    large these ends are found by inverting the score test, so that they hold in small
    groups and for groups without an event; for the slope they are estimate plus and
    minus, from one Newton step.

    Rows of one score, one weight and the same groups are one cell, whose number of
    events is drawn at once; a summary has them, so that its answer is that of its rows.
    More than 65,536 cells are pooled into some 16,384 by neighbouring scores, as a
    summary does it, at their means: the test is then exact for the paths over these.
    If weights differ inside a cell of a summary, their sum is drawn with its mean
    and variance. Of several classes a summary has the confidence; "classwise" needs the
    rows.

    Cost: O(n_resamples (c + sum of the cells of the groups)) for c cells; 418 groups of
    16,000 rows with 999 draws take about a second on one core, a million rows in few
    groups three. The draws are spread over the threads of numba, which does not change
    them.

    References
    ----------
    Westfall, Young (1993), "Resampling-based multiple testing", section 2.3;
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), "Metrics of calibration for
    probabilistic predictions", for the statistic; Guy et al. (2025), "Measuring
    multi-calibration", for its largest over groups. Kleinberg, Mullainathan, Raghavan
    (2017), "Inherent trade-offs in the fair determination of risk scores", for what
    calibration in every group excludes.

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
    >>> from sklearn_calib.summary import summarize
    >>> by_site = summarize({"y": y, "p": proba, "site": site}, label="y", prob="p", by="site")
    >>> group_calibration(by_site, groups="site").sigma == found.sigma
    True
    """
    options: dict[str, Any] = {
        "depth": depth,
        "n_bins": n_bins,
        "min_rows": min_rows,
        "level": level,
        "n_resamples": n_resamples,
        "random_state": random_state,
        "multiclass": multiclass,
    }
    row_options = sample_weight, labels, pos_label
    if y_proba is None and isinstance(y_true, Mapping):
        if any(option is not None for option in row_options):
            raise invalid_input(
                expected="summaries alone",
                got="other arguments",
                sentence="Summaries cannot be combined with sample_weight, labels or pos_label",
                hint="Give weights and labels to summarize",
            )
        return audit_summaries(y_true, groups, **options)
    predictions = validate_predictions(y_true, y_proba, *row_options)  # type: ignore[arg-type]
    if isinstance(groups, Grades):
        proba = read_proba(y_proba, n_classes=2)  # type: ignore[arg-type]
        proba = reorder_columns_if_names_match(proba, y_proba, predictions.classes)
        proba = get_proba_with_single_column_at_class(
            proba, y_proba, predictions.positive
        )
        groups = {"grade": groups.assign(proba[:, predictions.positive])}
    return audit_predictions(predictions, groups, **options)


def audit_predictions(
    predictions: Predictions, groups: Any, **options: Any
) -> GroupCalibration:
    """Compute `group_calibration` from validated predictions.

    Parameters
    ----------
    predictions : Predictions
    groups : table, dict of columns, or list of masks
        One entry for each row that the caller passed, also if its weight is 0.
    **options
        depth, n_bins, min_rows, level, n_resamples, random_state, multiclass of
        `group_calibration`.
    """
    audit = AuditOptions(**options)
    check_and_get_common_index(groups, first=predictions.index)
    partitions = make_partition_by_column_or_mask(
        groups, predictions.n_given, audit, predictions.kept
    )
    grouping = make_groups(partitions, len(predictions.codes), audit)
    problems = [
        *iter_two_class_splits_and_proba(
            audit.multiclass, predictions.proba, predictions.positive
        )
    ]
    # Classes of one row exclude each other, so one uniform number per row decides the
    # label of all problems.
    shares_draws = len(problems) > 1
    pattern = encode_combinations(partitions)
    cumulated = []
    if shares_draws:
        pattern = np.arange(len(pattern))
        # Class c is drawn if the uniform number lies between the sums of the
        # probabilities before and up to c.
        zero = np.zeros(len(pattern))
        cumulated = [zero, *cumulate_proba(predictions.proba).T]
    groups = _list_combination_indices_by_group(grouping, pattern)
    # Weights of all problems are scaled alike, by a power of two.
    weight_unit = np.exp2(np.frexp(predictions.weight.max())[1])
    events = []
    for problem, pair in problems:
        c = problem.number
        bounds = (cumulated[c], cumulated[c + 1]) if shares_draws else None
        title = name_problem(audit.multiclass, predictions.classes, c)
        has_event = predictions.codes == problem.target
        cells = pool_rows(
            pattern,
            pair,
            has_event,
            predictions.weight / weight_unit,
            not shares_draws,
        )
        unit = predictions.unit * weight_unit
        events.append(GroupedEventTest(title, cells, groups, unit, bounds))
    members = grouping.rows
    if predictions.kept is not None:
        # The result numbers the rows as they were given, including those of weight 0.
        members = [predictions.kept[rows].astype(np.int32) for rows in members]
    return _draw_labels_and_build_calibration(events, grouping, audit, members)


def audit_summaries(
    summaries: Mapping[Any, Any],
    names: str | Sequence[str] | None,
    max_cells: int | None = None,
    **options: Any,
) -> GroupCalibration:
    """Compute `group_calibration` from one summary for each combination of values.

    Parameters
    ----------
    summaries : dict of CalibrationSummary
    names : str, sequence of str or None
        The columns whose values are the keys.
    max_cells : int, default=None
        Make the cells of each summary as coarse as that needs, for draws that cost
        less.
    **options
        As for `audit_predictions`.
    """
    audit = AuditOptions(**options)
    audit.check()
    filled = {key: summary for key, summary in summaries.items() if summary.n_samples}
    _check_same_problem(filled, audit)
    columns = _make_key_columns(filled, names)
    counts = np.array([summary.n_samples for summary in filled.values()])
    partitions = make_partition_by_column_or_mask(
        columns, len(filled), audit, counts=counts
    )
    samples = []
    for summary in filled.values():
        samples += summary.samples(max_cells)
    cells = pool_samples_by_combination(samples, encode_combinations(partitions))
    summary = next(iter(filled.values()))
    return _audit_cells(cells, partitions, counts, _get_problem_title(summary), audit)


def partition_values(
    name: str, values: Any, counts: IntArray, **options: Any
) -> Partition:
    """Return the groups of a column in which each value stands for `counts` rows.

    Parameters
    ----------
    name : str
    values : ndarray of shape (n_values,)
    counts : ndarray of shape (n_values,)
    **options
        Of `group_calibration`.
    """
    audit = AuditOptions(**options)
    return make_partition_by_column_or_mask(
        {name: values}, len(values), audit, counts=counts
    )[0]


def audit_pair_sums(
    pairs: Any,
    partitions: Sequence[Partition],
    counts: IntArray,
    summary: Any,
    **options: Any,
) -> GroupCalibration:
    """Compute `group_calibration` from rows counted by score and combination of groups.

    Parameters
    ----------
    pairs : ScoreGroupSums
    partitions : list of Partition
        The groups of the combinations.
    counts : ndarray
        The rows of the combinations.
    summary : CalibrationSummary
        Of all rows.
    **options
        Of `group_calibration`.
    """
    audit = AuditOptions(**options)
    audit.check()
    cells = pool_and_coarsen_cells(*pairs)
    return _audit_cells(cells, partitions, counts, _get_problem_title(summary), audit)


def _get_problem_title(summary):
    if _has_several_classes(summary):
        return "confidence"
    return f"class {summary.positive_label}"


def _audit_cells(cells, partitions, counts, title, audit):
    grouping = make_groups(partitions, len(counts), audit, counts)
    groups = _list_combination_indices_by_group(
        grouping, encode_combinations(partitions)
    )
    return _draw_labels_and_build_calibration(
        [GroupedEventTest(title, cells, groups)], grouping, audit, []
    )


def _list_combination_indices_by_group(grouping, pattern):
    """Return the combinations of values that each group consists of."""
    # Each row is a combination of its own, in order.
    if len(pattern) == int(pattern.max()) + 1 and (pattern[1:] > pattern[:-1]).all():
        return grouping.rows
    patterns = []
    for rows in grouping.rows:
        is_member = np.zeros(int(pattern.max()) + 1, dtype=bool)
        is_member[pattern[rows]] = True
        patterns.append(np.flatnonzero(is_member))
    return patterns


def _draw_labels_and_build_calibration(events, grouping, audit, members):
    """Draw labels for all events, and build the result; `members` are the rows of groups."""
    draws = draw_event_statistics(events, int(audit.n_resamples), audit.random_state)
    rows: list[GroupRow] = []
    start = 0
    for event in events:
        # Draws list the groups of all problems one after the other.
        group_slice = slice(start, start + len(grouping.names))
        start = group_slice.stop
        event_draws = draws._replace(
            observed_sigma=draws.observed_sigma[group_slice],
            n_as_large=draws.n_as_large[group_slice],
        )
        rows += build_event_rows(event, grouping.names, event_draws, audit.level)
    return GroupCalibration(
        rows,
        min(row.adjusted_p_value for row in rows),
        max(row.sigma for row in rows),
        find_upper_quantile_or_inf(draws.maxima[0], audit.level),
        audit.level,
        rows[0].n_rows,
        grouping.n_left_out,
        audit.min_rows,
        audit.n_resamples,
        draws.maxima[0],
        members * len(events),
    )


def _has_several_classes(summary):
    return summary.classes is not None and len(summary.classes) > 2


def _check_same_problem(summaries, audit):
    """Reject summaries without rows, of different classes, or of another kind of problem."""
    if not summaries:
        raise invalid_input(
            expected="summaries of at least one row",
            got="none",
            hint="Check what was summarised",
        )
    kinds = {
        (str(item.classes), str(item.positive_label), item.multiclass)
        for item in summaries.values()
    }
    if len(kinds) > 1:
        raise invalid_input(
            expected="summaries of the same classes",
            got="summaries of different classes",
            hint="Use one summarize(by=)",
        )
    summary = next(iter(summaries.values()))
    modes: tuple[str, ...] = ("auto",)
    if _has_several_classes(summary):
        # A summary of several classes has the confidence, or the cells of each class,
        # whose labels would have to be drawn together.
        has_confidence = summary.multiclass in ("auto", "confidence")
        modes = ("auto", "confidence") if has_confidence else ()
    if audit.multiclass not in modes:
        raise invalid_input(
            expected="the positive class, or the confidence, of summaries",
            got=f"multiclass={audit.multiclass!r} of {summary.multiclass!r}",
            hint="Labels of several classes that are drawn together need the rows: pass y_proba",
        )


def _make_key_columns(summaries, names) -> dict[str, list[Any]]:
    """Split the keys of summaries into columns of values."""
    keys = [key if isinstance(key, tuple) else (key,) for key in summaries]
    width = len(keys[0])
    if names is None:
        names = ["group"] if width == 1 else [f"column {j}" for j in range(width)]
    names = [names] if isinstance(names, str) else names
    are_names = isinstance(names, Sequence)
    are_names = are_names and all(isinstance(name, str) for name in names)
    if not are_names or len(names) != width:
        raise invalid_input(
            expected=f"{width} names of columns as groups",
            got=repr(names)[:80],
            hint="Pass what summarize had as by",
        )
    return {name: [key[j] for key in keys] for j, name in enumerate(names)}
