"""A remark where a column of identifiers repeats, and no cluster was named."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._files.tables import UserError, column_names, table_blocks
from .._show import in_shell, plain
from ._options import form_of
from ._printing import note

if TYPE_CHECKING:
    import argparse

_NAME = re.compile(
    r"(?i:(?:^|.*[_\W])(?:id|ids|uuid|guid))|.*[a-z](?:Id|ID)"
    r"|(?i:(?:account|case|client|conversation|customer|doc|document|household|patient|person"
    r"|prompt|query|question|session|subject|user)s?(?:[_\W]?(?:name|no|nr|number|key))?)"
)
_ROWS = 200_000  # that are looked at
_FEWEST = 30  # different values: with fewer, intervals by clusters say little
_REPEATS = 1.5  # rows of a value, on average


def remark_on_identifiers(files: Sequence[str], options: "argparse.Namespace") -> None:
    """Say which column may name clusters; what cannot be read is left to the reading itself."""
    if options.group is not None or options.label is None or getattr(options, "dask", None):
        return
    try:
        found = _repeating(files[0], options)
    except (UserError, ValueError, TypeError, OSError):
        return
    for name, values, rows in found[:1]:
        note(
            f"{plain(name, 60)} has {values:,} different values in {rows:,} rows. If rows with the "
            "same value belong together, such as answers to one question, intervals and p-values "
            f"are too certain: add --cluster {in_shell(name)}."
        )


def _repeating(file, options):
    """Columns with their numbers of values and rows, the most values first."""
    label = [options.label]
    said = [options.label, options.weight, getattr(options, "prediction", None)]
    for option in ("prob", "by", "features"):
        given = getattr(options, option, None) or []
        for words in [given] if isinstance(given, str) else given:
            said += [word.strip() for word in words.split(",")]
    names = column_names(file, lambda present: label, **form_of(options))
    names = [name for name in names if name not in said and _NAME.fullmatch(name)]
    if not names or options.label in names:
        return []
    values = {name: set() for name in names}
    rows = dict.fromkeys(names, 0)
    for table in table_blocks(file, lambda present: [*label, *names], **form_of(options)):
        for name in names:
            column = table.frame[name].dropna()
            values[name].update(column.unique())
            rows[name] += len(column)
        if max(rows.values()) >= _ROWS:
            break
    found = [(name, len(values[name]), rows[name]) for name in names]
    return sorted(
        (one for one in found if one[1] >= _FEWEST and one[2] >= _REPEATS * one[1]),
        key=lambda one: -one[1],
    )
