"""The record of a map: the rows it was fitted to, what it does to their mean, and its checksum."""

import datetime
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from sklearn.pipeline import Pipeline

from .._files.checksum import checksum
from ..exceptions import called, refuse
from ._fields import shown, wrong

#: A date, or its text as ISO 8601 writes it.
Date: TypeAlias = str | datetime.date
#: Names of columns, or roles, such as "label", with a name or several.
Columns: TypeAlias = list[str] | Mapping[str, str | list[str]]

ENTRY = "record"
MAP = "map_sha256"
_WHOLE = ("rows", "rows_of_mean_after")
_PER_CLASS = ("events", "mean_before", "mean_after")
_NUMBERS = ("intercept", "slope")
NAMES = (MAP, *_WHOLE, *_PER_CLASS, *_NUMBERS, "date", "columns", "scale")


def checksum_of_map(classes: list[Any], kind: str, tree: dict[str, Any]) -> str:
    """The SHA-256 of what determines predictions: labels and nodes, nothing else."""
    return checksum({"classes": classes, "classes_type": kind, "map": tree})


def record_of(fitted: Any) -> dict[str, Any]:
    """What a fitted recalibrator, or a pipeline of them, kept of its rows."""
    if not isinstance(fitted, Pipeline):
        return dict(getattr(fitted, "record_", {}))
    steps = [part for _, part in fitted.steps if part not in (None, "passthrough")]
    records = [getattr(part, "record_", {}) for part in steps]
    if not records or not (records[0] and records[-1]):
        return {}
    first, last = records[0], records[-1]
    after = ("mean_after", "rows_of_mean_after", *_NUMBERS)  # of an offset: what it was given
    kept = {name: value for name, value in first.items() if name not in after}
    return kept | {name: last[name] for name in after if name in last}


def named(
    record: dict[str, Any], date: Date | None, columns: Columns | None, scale: Any
) -> dict[str, Any]:
    """A record with what its user says of the rows."""
    if scale is not None:
        ends = list(scale) if isinstance(scale, list | tuple) else scale
        if rule := _rule_broken("scale", ends, 0):
            refuse(
                "to_dict", f"scale as {rule}", repr(scale)[:60], "Write (0, 100) for percentages"
            )
        record = record | {"scale": ends}
    if date is not None:
        record = record | {"date": _written_date(date)}
    return record if columns is None else record | {"columns": _written_columns(columns)}


def _written_date(date):
    text = date.isoformat() if isinstance(date, datetime.date) else date
    try:
        datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        cure = "Write year, month, day"
        refuse(called("to_dict"), "a date such as '2026-11-23'", repr(date)[:60], cure)
    return text


def _written_columns(columns):
    given = columns if isinstance(columns, Mapping) else {"scores": columns}
    found = {}
    for role, names in given.items():
        names = [names] if isinstance(names, str) else names
        are_texts = isinstance(names, list | tuple) and all(isinstance(x, str) for x in names)
        if not isinstance(role, str) or not are_texts:
            rule = "names of columns as texts, or a dict of roles with them"
            refuse("to_dict", rule, repr(columns)[:60], "Write {'label': 'y', 'scores': ['p']}")
        found[role] = list(names)
    return found


def read_record(record: Any, k: int) -> dict[str, Any]:
    """The record of a document but for the checksum of its map."""
    if not isinstance(record, dict):
        wrong(ENTRY, "a dict", type(record).__name__)
    if MAP not in record:
        wrong(f"{ENTRY}.{MAP}", "a value", "nothing")
    for name, value in record.items():
        rule = _rule_broken(name, value, k)
        if rule:
            wrong(f"{ENTRY}.{str(name)[:40]}", rule, shown(value))
    return {name: value for name, value in record.items() if name != MAP}


def _rule_broken(name, value, k):
    """What a value of a record should be and is not; empty where it is."""
    if name in (MAP, "date"):
        return "" if isinstance(value, str) else "a text"
    if name in _WHOLE:
        right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "" if right else "a whole number"
    if name == "scale":
        right = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
        return "" if right and value[0] < value[1] else "two numbers, the lower one first"
    if name in _NUMBERS:
        return "" if _is_number(value) else "a finite number"
    if name in _PER_CLASS:
        right = isinstance(value, list) and len(value) == k and all(map(_is_number, value))
        return "" if right and min(value) >= 0 else f"{k} numbers >= 0"
    if name == "columns":
        right = isinstance(value, dict) and all(
            isinstance(names, list) and all(isinstance(one, str) for one in names)
            for names in value.values()
        )
        return "" if right else "lists of names"
    return f"one of {', '.join(NAMES)}"


def _is_number(value):
    return type(value) in (int, float) and abs(value) <= sys.float_info.max
