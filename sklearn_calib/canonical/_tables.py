"""The columns of whatever table a user has: of pandas, polars, Arrow, a dict or an array."""

from collections.abc import Iterator
from datetime import date, datetime, timezone
from typing import Any

import numpy as np

from .._show import quoted
from .._typing import AnyArray
from ..exceptions import called, refuse
from ._arrays import is_missing, read_array


def named_columns(groups: Any, where: str) -> Iterator[tuple[object, Any]]:
    """(name, values) of each column of whatever table it is."""
    if isinstance(groups, dict):
        yield from groups.items()
    elif hasattr(groups, "iloc"):  # pandas, where names may repeat
        if groups.ndim == 1:
            yield ("group" if groups.name is None else groups.name), groups
        else:
            if not groups.columns.is_unique:
                twice = groups.columns[groups.columns.duplicated()][0]
                got = f"{quoted(twice)} twice"
                refuse(where, "different names of columns", got, "Rename them")
            yield from ((name, groups.iloc[:, i]) for i, name in enumerate(groups.columns))
    elif hasattr(groups, "column_names"):  # pyarrow
        yield from ((name, groups[name].to_numpy()) for name in groups.column_names)
    elif hasattr(groups, "columns"):  # polars
        yield from ((name, groups[name].to_numpy()) for name in groups.columns)
    else:
        values = read_array(entries(groups), "group values", where)
        if values.ndim not in (1, 2):
            refuse(where, "groups as a table", f"shape {values.shape}", "Pass one column per group")
        named = getattr(groups, "name", None) or "group"
        table = {named: values} if values.ndim == 1 else dict(enumerate(values.T))
        for name, column in table.items():
            yield (f"column {name}" if values.ndim == 2 else name), column


def entries(values: object) -> object:
    """A list as an array of its own entries: numpy would make text of NaN beside text."""
    return np.array(values, dtype=object) if isinstance(values, list | tuple) else values


def plain_dates(values: AnyArray) -> AnyArray:
    """Dates, times and durations as those of numpy, in microseconds; other values as they are.

    Times with a zone, and dates of Python, come as objects; the former are told in UTC.
    """
    if values.dtype.kind in "mM":
        return values.astype(f"{values.dtype.kind}8[us]")
    if values.dtype.kind != "O" or values.ndim != 1:
        return values
    known = np.array([not is_missing(value) for value in values], dtype=bool)
    if not known.any() or not all(isinstance(value, date) for value in values[known]):
        return values
    found = np.full(len(values), np.datetime64("NaT", "us"), "M8[us]")
    found[known] = [_without_zone(value) for value in values[known]]
    return found


def _without_zone(value):
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return np.datetime64(value, "us")


def check_names_differ(table: object) -> None:
    """Refuse a table of which two columns have one name."""
    names = [*map(str, getattr(table, "columns", ()))]
    if len(set(names)) < len(names):
        cure = "Rename the columns, or pass X.to_numpy()"
        refuse(called("fit"), "columns of different names", str(names[:10]), cure)
