"""``audit --by`` of rows that are summarised: the groups of all rows, with one exact p-value."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files.tables import FileTable, values_of_text
from .._kernels._seen_errors import SIGNIFICANCE
from .._show import plain
from ..groups import audit_pairs, group_calibration, partition_of_values
from ..summary import count_values, summarize, summarize_groups
from ._columns import with_order
from ._printing import progress

if TYPE_CHECKING:
    from ..groups import GroupCalibration
    from ..summary import CalibrationSummary, Draw

_AS_REPORTS: dict[str, Any] = {"depth": 2, "level": 1 - SIGNIFICANCE}


class GroupAudit(NamedTuple):
    """The summary of all rows, and the audit of their groups."""

    summary: "CalibrationSummary"
    groups: "GroupCalibration | None"  # None of no rows


def audit_groups(
    files: list[str],
    by: Sequence[str],
    n_jobs: int | None,
    plan: dict[str, Any],
    draw: "Draw | None" = None,
) -> GroupAudit:
    """Read the rows twice: what values the columns have, then how often they come with each score.

    Parameters
    ----------
    files : list of str
    by : sequence of str
        The columns.
    n_jobs : int or None
    plan : dict
        Further arguments of `summarize`.
    draw : Draw, optional
        What to draw beside the summary.
    """
    reading: dict[str, Any] = {"n_jobs": n_jobs, "csv": plan["csv"]}
    with progress("reading groups") as advance:
        values = count_values(files, by, progress=advance, **reading)
    partitions, coders = [], []
    for name, column in values.items():
        listed, counts = column.table()
        listed = _typed(listed, name, column.as_text, column.decimal)
        partitions.append(partition_of_values(plain(name), listed, counts, **_AS_REPORTS))
        coders.append(column.coder(partitions[-1].codes, len(partitions[-1].names)))
    with progress("reading") as advance:
        found = summarize_groups(files, coders, progress=advance, draw=draw, **plan | reading)
    partitions = [
        one._replace(codes=codes) for one, codes in zip(partitions, found.groups, strict=True)
    ]
    audited = None
    if found.summary.n_samples:
        given = found.pairs, partitions, found.n_rows, found.summary
        audited = audit_pairs(*given, **_AS_REPORTS)
    return GroupAudit(found.summary, audited)


def audit_saved(files: list[str], by: Sequence[str]) -> GroupAudit:
    """The groups that the folders of saved summaries name."""
    with progress("reading") as advance:
        found = summarize(files, by=[*by], progress=advance)
    groups = group_calibration(found, groups=[plain(name) for name in by], **_AS_REPORTS)
    return GroupAudit(sum(found.values()), groups)


def _typed(values, name, as_text, decimal):
    """Values as the column would be read at once: numbers and dates that are written as text."""
    import pandas as pd

    if values.dtype.kind != "O":
        return values
    if as_text:
        known = values_of_text([one for one in values if one is not None], decimal)
        values = pd.Series([known.get(one) for one in values], dtype=object).to_numpy()
    if not any(isinstance(one, str) for one in values):
        return values
    frame = pd.DataFrame({name: pd.Series(values, dtype=object)})
    return with_order(FileTable(frame, "", decimal), name).to_numpy()
