"""Columns that may name what belongs together, and that nobody named as clusters."""

import re
from collections.abc import Sequence
from typing import Any

from .._files.tables import column_names, table_blocks
from .._show import in_shell, plain
from ..exceptions import InvalidInputError
from ._printing import note
from ._request import Request

_NAME = re.compile(
    r"(?i:(?:^|.*[_\W])(?:id|ids|uuid|guid))|.*[a-z](?:Id|ID)"
    r"|(?i:(?:account|case|client|conversation|customer|doc|document|household|patient|person"
    r"|prompt|query|question|session|subject|user)s?(?:[_\W]?(?:name|no|nr|number|key))?)"
)
_ROWS = 200_000  # that are looked at
_FEWEST = 30  # different values: with fewer, intervals by clusters say little
_REPEATS = 1.5  # rows of a value, on average


def remark_on_identifiers(files: Sequence[str], options: Request) -> None:
    """Say which column may name clusters; what cannot be read is left to the reading itself."""
    if options.group is not None or options.label is None or options.dask:
        return
    try:
        found = _repeating(files[0], options)
    except (InvalidInputError, ValueError, TypeError, OSError):
        return
    for name, values, rows in found[:1]:
        note(
            f"{plain(name, 60)} has {values:,} different values in {rows:,} rows. If rows with the "
            "same value belong together, such as answers to one question, intervals and p-values "
            f"are too certain: add --cluster {in_shell(name)}."
        )


def _of_identifiers(names, options):
    """Names that look like those of clusters, and have no other role."""
    said = [options.weight, options.prediction, options.time]
    for words in (*(options.prob or ()), *(options.by or ()), *(options.features or ())):
        said += [word.strip() for word in words.split(",")]
    return [name for name in names if name not in said and _NAME.fullmatch(name)]


def _repeating(file, options):
    """Columns with their numbers of values and rows, the most values first."""
    present = column_names(file, options.label_columns, **options.csv)
    label = options.label_columns(present)
    names = _of_identifiers([name for name in present if name not in label], options)
    values: dict[str, set[Any]] = {name: set() for name in names}
    rows = dict.fromkeys(names, 0)
    for table in table_blocks(file, lambda _: [*label, *names], **options.csv) if names else ():
        for name in names:
            column = table.columns[name].dropna()
            values[name].update(column.unique())
            rows[name] += len(column)
        if max(rows.values()) >= _ROWS:
            break
    found = [(name, len(values[name]), rows[name]) for name in names]
    return sorted(
        (one for one in found if one[1] >= _FEWEST and one[2] >= _REPEATS * one[1]),
        key=lambda one: -one[1],
    )
