"""Rows by their groups: the values of columns first, then cells by combinations of groups."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._typing import AnyArray, IntArray, Progress
from ..exceptions import invalid_input
from ._draw_options import EMPTY_DRAW, DrawAndScoreOptions
from ._parts import SavedSummaryPart, make_parts, validate_csv_options
from ._pattern_cells import ScoreGroupSums, ScoreGroupTable
from ._sources import invalid_grouping, summarize, tally_parts
from ._summary import CalibrationSummary
from ._values import ColumnValues, decode_groups

_MAX_COMBINATIONS = 2**62


class _ValuesTally:
    """The values of columns, in place of a `GroupSummaryTally`."""

    number_columns = ()

    def __init__(self, names: Sequence[str]) -> None:
        self.needed = names
        self.columns = {name: ColumnValues(name) for name in names}

    def add(self, block):
        for column in self.columns.values():
            column.add(block)

    def add_stored_summary_or_raise(self, part: SavedSummaryPart):
        raise invalid_grouping(part)

    def merge(self, other):
        for name, column in self.columns.items():
            column.merge(other.columns[name])


def count_values(
    data: object,
    names: Sequence[str],
    *,
    n_jobs: int | None = None,
    csv: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, ColumnValues]:
    """Return the different values of columns of rows that need not fit into memory.

    Parameters
    ----------
    data, n_jobs, csv, progress
        As in `summarize`.
    names : sequence of str
        The columns.

    Returns
    -------
    values : dict of str to ColumnValues
    """

    def tally_column_values(text_columns):
        parts = make_parts(data, text_columns, validate_csv_options(csv))
        return tally_parts(
            parts, partial(_ValuesTally, [*names]), n_jobs, progress
        ).columns

    columns = tally_column_values([])
    texts = [name for name, column in columns.items() if column.has_mixed_kinds]
    if texts:  # blocks of a csv file: read again as they are written
        again = tally_column_values(texts)
        for name in texts:
            columns[name] = again[name]
            columns[name].as_text = True
    return columns


class SummaryByGroupCombination(NamedTuple):
    """All rows, and their cells by combinations of groups.

    Parameters
    ----------
    summary : CalibrationSummary
        Of all rows.
    groups : list of ndarray of shape (n_combinations,)
        The group that each combination is in, one array for each column.
    row_counts : ndarray of shape (n_combinations,), int64
    pairs : ScoreGroupSums
        With places of combinations.
    """

    summary: CalibrationSummary
    groups: list[IntArray]
    row_counts: AnyArray
    pairs: ScoreGroupSums


def summarize_groups(
    data: object,
    columns: Sequence[ColumnValues],
    *,
    draw: DrawAndScoreOptions = EMPTY_DRAW,
    **options: Any,
) -> SummaryByGroupCombination:
    """Summarise rows, and count them by score and combination of groups.

    Parameters
    ----------
    data : object
        As in `summarize`.
    columns : sequence of ColumnValues
        Whose values are in groups.
    draw : DrawAndScoreOptions, optional
    **options
        Further arguments of `summarize`.
    """
    size = 1
    for column in columns:
        size *= column.n_groups
    # The number of a combination must fit into 64 bits.
    if size > _MAX_COMBINATIONS:
        raise invalid_input(
            expected="fewer columns of groups",
            got=f"{len(columns)}",
            hint="Name at most a dozen",
        )
    draw = draw._replace(grouped_columns=tuple(columns))
    summary = summarize(data, **options, _draw=draw)
    pairs = (summary.patterns or ScoreGroupTable()).compute_sums()
    numbers, place = np.unique(pairs.pattern, return_inverse=True)
    counts = np.bincount(place, pairs.counts.sum(axis=1), len(numbers)).astype(np.int64)
    groups = decode_groups(columns, numbers)
    return SummaryByGroupCombination(
        summary, groups, counts, pairs._replace(pattern=place)
    )
