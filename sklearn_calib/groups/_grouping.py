"""From a table or from masks to groups of rows, which may overlap."""

import itertools
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._argument_checks import check_choice, check_level, is_real_number, validate_count
from .._kernels._float_order import keep_largest_value_per_cell
from .._random import check_seed
from .._show import make_printable
from .._typing import AnyArray, IntArray, Multiclass, RandomStateLike
from .._validation import (
    convert_dates_to_numpy_if_any,
    convert_list_to_object_array,
    iter_named_columns,
    read_array,
)
from .._warnings import warn_calibration
from ..exceptions import add_error_context, invalid_input
from ..recalibrators import is_missing_value

ALL_ROWS_NAME = "all rows"
# The remaining values of a column make one group.
MAX_GROUPS_PER_COLUMN = 20
_MAX_COMBINATIONS = 2**62
# Of more groups the largest statistic is large by chance alone.
MAX_GROUPS_BEFORE_WARNING = 5000


class Grouping(NamedTuple):
    """Groups of rows that may overlap; the first holds all rows.

    Parameters
    ----------
    names : list of str
        The condition that the rows of each group fulfil.
    rows : list of ndarray of int32
        The rows of each group, increasing.
    n_left_out : int
        How many groups had fewer rows than requested.
    """

    names: list[str]
    rows: list[AnyArray]
    n_left_out: int


class Partition(NamedTuple):
    """Groups without a row in common: one column of a table, or one mask.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        The group of each row, or -1.
    names : sequence of str
    """

    codes: IntArray
    names: Sequence[str]


def find_groups(
    groups: Any,
    n_samples: int,
    *,
    depth: int = 1,
    n_bins: int = 3,
    min_rows: int = 50,
    kept: AnyArray | None = None,
) -> Grouping:
    """Find the groups of rows that the columns of a table describe, or take them as masks.

    Parameters
    ----------
    groups : table of shape (n_samples, n_columns), dict of columns, or sequence of masks
        A table of pandas, polars or pyarrow, a dict of arrays, or a numpy array with
        one or two dimensions; or a list of boolean arrays of shape (n_samples,), each
        of which is one group.
    n_samples : int
    depth : {1, 2}, default=1
        2: also what any two groups of different columns have in common.
    n_bins : int, default=3
        Quantile bins of a column of numbers.
    min_rows : int, default=50
        Groups with fewer rows are left out, except that of all rows.
    kept : ndarray, default=None
        The rows that count, as positions; by default all. The rows of groups are places
        in it.

    Returns
    -------
    grouping : Grouping

    Raises
    ------
    ValueError, TypeError
        No column, columns or masks of another length, masks that are not boolean, or
        parameters out of range.

    Warns
    -----
    CalibrationWarning
        No group has enough rows, or more than 5000 groups have.

    Notes
    -----
    Text, booleans, dates and integers (also those that missing values turned into
    floats) with at most 20 values have one group for each; of text with more values the
    20 most frequent have one each and the others one together. Other numbers and dates
    are cut at quantiles that are values of the column; of more than 65,536 different
    ones, neighbours are counted together under the largest. Times with a zone are given
    in UTC. Missing values are a group by themselves. Groups that hold all rows, or of
    two columns the rows of one of its parts, add nothing and are left out without being
    counted. Cost: O(n log n) for each column or pair.

    Examples
    --------
    >>> from sklearn_calib.groups import find_groups
    >>> table = {"site": ["a", "b", "a", None], "age": [20.5, 31.0, 47.5, 60.0]}
    >>> found = find_groups(table, 4, n_bins=2, min_rows=1)
    >>> found.names
    ['all rows', 'site = a', 'site = b', 'site missing', 'age <= 31', 'age > 31']
    >>> found.rows[1].tolist()
    [0, 2]
    """
    options = AuditOptions(depth, n_bins, min_rows)
    partitions = make_partition_by_column_or_mask(groups, n_samples, options, kept)
    n_kept = n_samples if kept is None else len(kept)
    return make_groups(partitions, n_kept, options)


class AuditOptions(NamedTuple):
    """The options of `group_calibration`, which describes them."""

    depth: int = 1
    n_bins: int = 3
    min_rows: float = 50
    level: float = 0.95
    n_resamples: int = 999
    random_state: RandomStateLike = 0
    multiclass: Multiclass = "auto"

    def check(self) -> None:
        """Reject options that are out of range."""
        check_seed(self.random_state)
        check_level(self.level)
        validate_count(
            self.n_resamples, "n_resamples", hint="Pass 999 for p-values down to 0.001"
        )
        check_choice(
            "multiclass",
            self.multiclass,
            ("auto", "confidence", "classwise"),
            "See the user guide, Groups and fairness",
        )
        validate_count(self.n_bins, "n_bins", 2)
        if validate_count(self.depth, "depth") > 2:
            raise invalid_input(
                expected="depth as 1 or 2",
                got=repr(self.depth),
                hint="Leave it out for the default",
            )
        if not is_real_number(self.min_rows) or not self.min_rows >= 1:
            raise invalid_input(
                expected="min_rows >= 1",
                got=repr(self.min_rows),
                hint="Pass 1 to keep every group",
            )


def make_partition_by_column_or_mask(
    groups: Any,
    n_samples: int,
    options: AuditOptions,
    kept: AnyArray | None = None,
    counts: IntArray | None = None,
) -> list[Partition]:
    """Return one partition for each column or mask.

    Parameters
    ----------
    groups, n_samples, kept
        As in `find_groups`.
    options : AuditOptions
    counts : ndarray of shape (n_samples,), default=None
        The number of rows that each entry stands for; by default one.
    """
    options.check()
    selected = slice(None) if kept is None else kept
    with add_error_context("groups"):
        partitions = [
            *_iter_column_or_mask_partitions(
                groups, n_samples, options, selected, counts
            )
        ]
    if not partitions:
        raise invalid_input(
            expected="groups with at least one column",
            got="none",
            hint="Name a column, or pass a list of boolean masks",
        )
    return partitions


def make_groups(
    partitions: Sequence[Partition],
    n: int,
    options: AuditOptions,
    counts: IntArray | None = None,
) -> Grouping:
    """Collect the groups of partitions of `n` rows, or of values that stand for `counts` rows."""
    names = [ALL_ROWS_NAME]
    rows = [np.arange(n, dtype=np.int32)]
    n_small = 0
    n = n if counts is None else int(counts.sum())
    sizes = [_count_group_sizes(partition, counts) for partition in partitions]
    for partition, group_sizes in zip(partitions, sizes, strict=True):
        n_small += _append_groups_and_count_small(
            partition,
            group_sizes,
            n,
            options.min_rows,
            names,
            rows,
        )
    if options.depth == 2:
        for partition, limit in _iter_intersections_and_limits(partitions, sizes):
            n_small += _append_groups_and_count_small(
                partition,
                _count_group_sizes(partition, counts),
                limit,
                options.min_rows,
                names,
                rows,
            )
    _warn_if_groups_too_small_or_many(names, n_small, options)
    return Grouping(names, rows, n_small)


def encode_combinations(partitions: Sequence[Partition]) -> IntArray:
    """Return the number of each row's combination of groups, in the order of the groups."""
    pattern = np.zeros(len(partitions[0].codes), dtype=np.int64)
    n_codes = 1
    for partition in partitions:
        n_groups = len(partition.names) + 1
        # Combinations that occur are numbered again before the numbers overflow.
        if n_codes * n_groups > _MAX_COMBINATIONS:
            pattern = np.unique(pattern, return_inverse=True)[1]
            n_codes = int(pattern.max(initial=0)) + 1
        pattern = pattern * n_groups + partition.codes + 1
        n_codes *= n_groups
    return np.unique(pattern, return_inverse=True)[1]


def _count_group_sizes(partition, counts=None):
    n = len(partition.names) + 1
    sizes = np.bincount(partition.codes + 1, counts, minlength=n)[1:]
    return sizes if counts is None else sizes.astype(np.int64)


def _append_groups_and_count_small(
    partition, group_sizes, limit, min_rows, names, rows
):
    """Append groups to `names` and `rows`, and return the number of those that are too small.

    A group whose size is at the limit is left out: it has the same rows as a group that
    is there already.
    """
    codes = partition.codes
    is_proper_subset = (group_sizes > 0) & (group_sizes < limit)
    if len(partition.names) < 2**15:
        # numpy sorts such numbers in linear time.
        codes = codes.astype(np.int16)
    order = np.argsort(codes, kind="stable").astype(np.int32)
    ends = np.searchsorted(codes[order], np.arange(len(partition.names) + 1))
    for code in np.flatnonzero(is_proper_subset & (group_sizes >= min_rows)):
        names.append(partition.names[code])
        rows.append(order[ends[code] : ends[code + 1]])
    return int(np.count_nonzero(is_proper_subset & (group_sizes < min_rows)))


def _iter_intersections_and_limits(partitions, sizes):
    """Iterate over the intersections of any two partitions, with the smaller of the two sizes."""
    for j, second in enumerate(partitions):
        for i, first in enumerate(partitions[:j]):
            is_outside = (first.codes < 0) | (second.codes < 0)
            codes = first.codes * len(second.names) + second.codes
            codes = np.where(is_outside, -1, codes)
            # An intersection as large as one of its groups has the same rows.
            limit = np.minimum.outer(sizes[i], sizes[j]).ravel()
            pairs = itertools.product(first.names, second.names)
            names = [", ".join(pair) for pair in pairs]
            yield Partition(codes, names), limit


def _warn_if_groups_too_small_or_many(names, n_small, options):
    """Warn of groups that are all too small, and of too many groups."""
    if len(names) == 1 and n_small:
        warn_calibration(
            expected=f"a group of at least {options.min_rows} rows",
            got=f"{n_small} groups, all of them smaller",
            hint=(
                "Only all rows together are reported; lower min_rows, or pass coarser groups"
            ),
        )
    if len(names) > MAX_GROUPS_BEFORE_WARNING:
        remedy = "depth=1, " if options.depth == 2 else ""
        warn_calibration(
            expected=f"at most {MAX_GROUPS_BEFORE_WARNING} groups",
            got=f"{len(names)}",
            hint=(
                "All are tested, but the largest of so many is large by chance, so only "
                f"large errors show; use {remedy}a larger min_rows or fewer columns"
            ),
        )


def _iter_column_or_mask_partitions(groups, n_samples, options, selected_rows, counts):
    """Iterate over the partition of each mask or column, for `selected_rows`."""
    if _is_array_list(groups):
        for number, mask in enumerate(groups):
            yield _make_one_group_partition(mask, number, n_samples, selected_rows)
        return
    for name, column in iter_named_columns(groups):
        values = read_array(convert_list_to_object_array(column), "group values")
        if values.ndim != 1 or len(values) != n_samples:
            raise invalid_input(
                expected=f"groups with one value for each of the {n_samples} rows",
                got=f"shape {values.shape} in column {make_printable(name)}",
                hint="Take the groups of the same rows as the labels",
            )
        values = convert_dates_to_numpy_if_any(values[selected_rows])
        yield partition_column(make_printable(name), values, options, counts)


def _is_array_list(groups):
    """Return whether `groups` is a list of arrays; a list of single values is one column."""
    if not isinstance(groups, list | tuple) or not len(groups):
        return False
    return all(np.ndim(mask) == 1 for mask in groups)


def _make_one_group_partition(mask, number, n_samples, selected):
    """Return the rows of a boolean mask as a partition with one group."""
    name = getattr(mask, "name", None)
    name = f"mask {number}" if name is None else make_printable(name)
    values = read_array(mask, "booleans")
    if values.dtype.kind == "O" and _are_booleans(values):
        values = values.astype(bool)
    if values.dtype.kind != "b":
        raise invalid_input(
            expected="boolean masks in a list of groups",
            got=f"dtype {values.dtype} in {name}",
            hint="Pass a table or a dict for columns of values, a list for masks",
        )
    if len(values) != n_samples:
        raise invalid_input(
            expected=f"masks with one entry for each of the {n_samples} rows",
            got=f"{len(values)} in {name}",
            hint="Take the masks of the same rows",
        )
    return Partition(np.where(values[selected], 0, -1), [name])


def _are_booleans(values):
    return all(isinstance(value, bool | np.bool_) for value in values)


def partition_column(
    name: str, values: AnyArray, options: AuditOptions, counts: IntArray | None = None
) -> Partition:
    """Return the groups of one column; each value stands for one row, or for `counts` rows."""
    values, is_missing = _convert_numbers_and_mark_missing(values)
    if values.dtype.kind == "V":
        raise invalid_input(
            expected="one value for each row",
            got=f"records in column {name}",
            hint="Pass a dict of its fields, each an array",
        )
    if values.dtype.kind not in "biufmMO":
        values = values.astype(str)
    try:
        distinct, codes = np.unique(values[~is_missing], return_inverse=True)
    except (TypeError, ValueError):
        # Values of several types, or lists, cannot be sorted: their texts can.
        values = np.array([str(value) for value in values], dtype=object)
        distinct, codes = np.unique(values[~is_missing], return_inverse=True)
    is_ordered = values.dtype.kind in "iufmM"
    are_integers = values.dtype.kind != "f" or (distinct == np.round(distinct)).all()
    present_counts = None if counts is None else counts[~is_missing]
    n_rows = np.bincount(codes, present_counts, len(distinct))
    if len(distinct) <= MAX_GROUPS_PER_COLUMN and are_integers:
        group_by_value = slice(None)
        texts = [f"{name} = {_format_value(value)}" for value in distinct]
    elif is_ordered:
        group_by_value, texts = _bin_values_and_name_bins(
            name, distinct, n_rows, options.n_bins, are_integers
        )
    else:
        group_by_value, texts = _group_and_name_frequent_values(name, distinct, n_rows)
    # Rows without a value make a group of their own, the last one.
    groups = np.full(len(values), len(texts))
    groups[~is_missing] = np.arange(len(distinct))[group_by_value][codes]
    return Partition(groups, [*texts, f"{name} missing"])


def _convert_numbers_and_mark_missing(values):
    """Return the values in the simplest dtype that holds them, and a mask of missing ones."""
    if values.dtype.kind in "fmM":
        # NaN, or NaT of times.
        return values, np.isnan(values)
    if values.dtype.kind != "O":
        return values, np.zeros(len(values), dtype=bool)
    is_missing = np.array([is_missing_value(value) for value in values], dtype=bool)
    present = values[~is_missing]
    are_numbers = all(isinstance(value, Real | Decimal) for value in present)
    # Booleans are numbers for Python, and keep their names here.
    if _are_booleans(present) or not are_numbers:
        return values, is_missing
    numbers = np.zeros(len(values))
    numbers[~is_missing] = present.astype(np.float64)
    return numbers, is_missing


def _format_value(value):
    """Format one value as text; whole numbers have no decimal point."""
    is_float = isinstance(value, float | np.floating)
    # float64 holds whole numbers up to 9e15.
    if is_float and value == np.round(value) and abs(value) < 1e15:
        return str(int(value))
    text = _format_short(value)
    return text if text.strip() else repr(text)


def _bin_values_and_name_bins(name, distinct, n_rows, n_bins, are_integers):
    """Assign values to quantile bins that end at values; equal values share a bin."""
    values, n_rows, _ = keep_largest_value_per_cell(distinct, n_rows)
    cumulated_rows = np.cumsum(n_rows)
    quantiles = np.arange(1, n_bins) * cumulated_rows[-1] / n_bins
    ends = np.unique(np.searchsorted(cumulated_rows, quantiles))
    ends = values[ends[ends < len(values) - 1]]
    format_edge = _format_value if are_integers else _format_short
    edges = [format_edge(value) for value in ends]
    # Short texts of different edges may be equal.
    if len(set(edges)) < len(edges):
        edges = [str(value) for value in ends]
    if not edges:
        return np.zeros(len(distinct), dtype=int), [f"{name} given"]
    inner = [f"{low} < {name} <= {high}" for low, high in itertools.pairwise(edges)]
    texts = [f"{name} <= {edges[0]}", *inner, f"{name} > {edges[-1]}"]
    return np.searchsorted(ends, distinct), texts


def _format_short(value):
    if isinstance(value, np.datetime64):
        return str(np.datetime_as_string(value, unit="auto"))
    if isinstance(value, np.timedelta64):
        return str(value.item())
    if isinstance(value, np.floating):
        return f"{float(value):.6g}"
    return make_printable(value)


def _group_and_name_frequent_values(name, distinct, n_rows):
    """Make one group for each of the most frequent values, and one for all others."""
    frequent = np.sort(np.argsort(-n_rows, kind="stable")[:MAX_GROUPS_PER_COLUMN])
    group_by_value = np.full(len(distinct), MAX_GROUPS_PER_COLUMN)
    group_by_value[frequent] = np.arange(MAX_GROUPS_PER_COLUMN)
    texts = [f"{name} = {_format_value(value)}" for value in distinct[frequent]]
    n_others = len(distinct) - MAX_GROUPS_PER_COLUMN
    return group_by_value, [*texts, f"{name} other ({n_others} values)"]
