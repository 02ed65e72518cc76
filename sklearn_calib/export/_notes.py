"""What users note in a document about the rows: a date, names of columns, and a scale."""

import datetime
import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from ..exceptions import invalid_input
from ..maps import invalid_field, short_repr

#: A date, or its text as ISO 8601 writes it.
Date: TypeAlias = str | datetime.date
#: Names of columns, or roles, such as "label", with a name or several.
Columns: TypeAlias = list[str] | Mapping[str, str | list[str]]

NOTE_KEYS = ("date", "columns", "scale")


def write_notes(
    date: Date | None, columns: Columns | None, scale: Any
) -> dict[str, Any]:
    """Return the entries of a document for what its user notes."""
    notes = {}
    if scale is not None:
        notes["scale"] = _read_scale_ends(scale)
    if date is not None:
        notes["date"] = _format_iso_date(date)
    if columns is not None:
        notes["columns"] = _read_column_names_by_role(columns)
    return notes


def _read_scale_ends(scale):
    ends = list(scale) if isinstance(scale, list | tuple) else scale
    if not _is_increasing_pair(ends):
        raise invalid_input(
            expected="scale as two numbers, the lower one first",
            got=repr(scale)[:60],
            hint="Write (0, 100) for percentages",
        )
    return ends


def _format_iso_date(date):
    """Return a date as a text in ISO format."""
    text = date.isoformat() if isinstance(date, datetime.date) else date
    try:
        datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise invalid_input(
            expected="a date such as '2026-11-23'",
            got=repr(date)[:60],
            hint="Write year, month, day",
        ) from None
    return text


def _read_column_names_by_role(columns):
    """Return {role: names of columns}, and raise an error for other values."""
    names_by_role = columns if isinstance(columns, Mapping) else {"scores": columns}
    roles = {}
    for role, names in names_by_role.items():
        # A single name would otherwise be read letter by letter.
        names = [names] if isinstance(names, str) else names
        if not isinstance(role, str) or not _is_text_list_or_tuple(names):
            raise invalid_input(
                expected="names of columns as texts, or a dict of roles with them",
                got=repr(columns)[:60],
                hint="Write {'label': 'y', 'scores': ['p']}",
            )
        roles[role] = list(names)
    return roles


def parse_notes(document: dict[str, Any]) -> dict[str, Any]:
    """Return the notes of a document, each of them checked."""
    notes = {name: document[name] for name in NOTE_KEYS if name in document}
    if not isinstance(notes.get("date", ""), str):
        raise invalid_field("date", expected="a text", got=short_repr(notes["date"]))
    columns = notes.get("columns", {})
    if not isinstance(columns, dict) or not all(map(_is_text_list, columns.values())):
        raise invalid_field(
            "columns", expected="lists of names", got=short_repr(columns)
        )
    if "scale" in notes and not _is_increasing_pair(notes["scale"]):
        raise invalid_field(
            "scale",
            expected="two numbers, the lower one first",
            got=short_repr(notes["scale"]),
        )
    return notes


def _is_text_list(names):
    return isinstance(names, list) and _is_text_list_or_tuple(names)


def _is_text_list_or_tuple(names):
    return isinstance(names, list | tuple) and all(
        isinstance(name, str) for name in names
    )


def _is_increasing_pair(ends):
    if not isinstance(ends, list) or len(ends) != 2:
        return False
    return all(map(_is_number, ends)) and ends[0] < ends[1]


def _is_number(value):
    return type(value) in (int, float) and abs(value) <= sys.float_info.max
