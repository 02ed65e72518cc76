"""Rows by their groups: the values of columns first, then cells by combinations of groups."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._typing import AnyArray, IntArray, Progress
from ..exceptions import add_error_context, invalid_input
from ._parts import SummaryPart, parts_of
from ._pattern_cells import PairSums
from ._sources import Plan, tally_of_parts
from ._summary import CalibrationSummary
from ._values import Coder, ColumnValues, combinations_of

_MOST = 2**62


class _ValuesPlan(NamedTuple):
    """As `Plan`, for the values of columns."""

    names: tuple[str, ...]

    def empty(self):
        return _Values({name: ColumnValues(name) for name in self.names})

    def tally_of(self, part, report=None):
        values = self.empty()
        if isinstance(part, SummaryPart):
            cure = "Save one summary for each group, in folders such as day=2026-01-31"
            raise invalid_input(
                expected="rows to group", got=f"the summary {part.name!r}", hint=cure
            )
        with add_error_context():
            for block in part.blocks(self.names):
                for one in values.columns.values():
                    one.add(block)
                if report is not None:
                    report(block.share)
        return values


class _Values(NamedTuple):
    columns: dict[str, ColumnValues]

    def merge(self, other):
        for name, mine in self.columns.items():
            mine.merge(other.columns[name])
        return self


def count_values(
    data: object,
    names: Sequence[str],
    *,
    n_jobs: int | None = None,
    csv: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, ColumnValues]:
    """The different values of columns of rows that need not fit into memory.

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
    texts: list[str] = []
    names = tuple(names)
    parts = parts_of(data, texts, csv or {})
    found = tally_of_parts(parts, _ValuesPlan(names), n_jobs, progress).columns
    texts = [name for name, column in found.items() if column.mixed]
    if texts:  # blocks of a csv file: read again as they are written
        parts = parts_of(data, texts, csv or {})
        again = tally_of_parts(parts, _ValuesPlan(names), n_jobs, progress).columns
        for name in texts:
            found[name] = again[name]
            found[name].as_text = True
    return found


class Grouped(NamedTuple):
    """All rows, and their cells by combinations of groups.

    Parameters
    ----------
    summary : CalibrationSummary
        Of all rows.
    groups : list of ndarray of shape (n_combinations,)
        The group that each combination is in, one array for each column.
    n_rows : ndarray of shape (n_combinations,), int64
    pairs : PairSums
        With places of combinations.
    """

    summary: CalibrationSummary
    groups: list[IntArray]
    n_rows: AnyArray
    pairs: PairSums


def summarize_groups(
    data: object,
    coders: Sequence[Coder],
    *,
    n_jobs: int | None = None,
    csv: dict[str, Any] | None = None,
    progress: Progress | None = None,
    label: str,
    **plan: Any,
) -> Grouped:
    """Summarise rows, and count them by score and combination of groups.

    Parameters
    ----------
    data, n_jobs, csv, progress
        As in `summarize`.
    coders : sequence of Coder
        What `ColumnValues.coder` returned.
    label : str
    **plan
        prob, weight, classes, pos_label, drop_missing of `summarize`; draw.
    """
    import numpy as np

    size = 1
    for coder in coders:
        size *= coder.width
    if size > _MOST:
        raise invalid_input(
            expected="fewer columns of groups", got=f"{len(coders)}", hint="Name at most a dozen"
        )
    given: dict[str, Any] = {
        "labels": (label,),
        "counts": None,
        "by": (),
        "one_key": False,
        "max_cells": 65_536,
    }
    how = Plan(**given | {"multiclass": "auto"} | plan, coders=tuple(coders))
    total = tally_of_parts(parts_of(data, how.texts, csv or {}), how, n_jobs, progress)
    total.warn()
    pairs = total.patterns.sums()
    numbers, place = np.unique(pairs.pattern, return_inverse=True)
    counts = np.bincount(place, pairs.counts.sum(axis=1), len(numbers)).astype(np.int64)
    groups = combinations_of(coders, numbers)
    return Grouped(total.result(), groups, counts, pairs._replace(pattern=place))
