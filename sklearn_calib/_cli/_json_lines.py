"""JSON lines written by ``apply``: the fields of each object as they were, new ones behind them."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._files.columns import Block
from .._show import plain, quoted
from ._wording import refuse

_BLANK = " \t\r\n"


def longer_lines(table: Block, new: Sequence[str], values: Any, missing: Any) -> str:
    """The text of a block whose objects have new fields, at their ends; lines stay as they are."""
    assert table.text is not None
    lines = [line for line in table.text.text.split("\n") if line.strip(_BLANK)]
    fields = _fields(new, values, missing)
    if len(lines) != len(fields):
        refuse(
            f"one object in each line of {plain(table.file)}",
            f"{len(lines)} lines for {len(fields)} objects",
            "Write each object into a line of its own",
        )
    _check_new(lines, new, table)
    return "".join(map(_with_fields, lines, fields))


def _check_new(lines, new, table):
    """Refuse a new field that an object has: which are there is known of the first lines."""
    for name in new:
        said = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
        for place, line in enumerate(lines):
            if any(each in line for each in said) and name in json.loads(line):
                refuse(
                    "a new name",
                    f"{quoted(name)}, which row {table.first + place} of {plain(table.file)} has",
                    "Choose another with --name",
                )


def _fields(names, values, missing):
    """The new fields of each row as text."""
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    columns = [
        [f"{key}: {'null' if value != value else repr(value)}" for value in column.tolist()]
        for key, column in zip(keys, np.asarray(values).T, strict=True)
    ]
    rows = [", ".join(row) for row in zip(*columns, strict=True)]
    if missing is not None:
        empty = ", ".join(f"{key}: null" for key in keys)
        rows = [empty if hole else row for row, hole in zip(rows, missing, strict=True)]
    return rows


def _with_fields(line, fields):
    bare = line.rstrip(_BLANK)
    inside = bare[:-1].rstrip(_BLANK)  # without the last brace
    comma = "" if inside.lstrip(_BLANK + "\ufeff") == "{" else ", "
    end = "\r\n" if line.endswith("\r") else "\n"
    return f"{inside}{comma}{fields}}}{end}"


def objects_of(table: Any) -> bytes:
    """The rows of an Arrow table as JSON lines; what is no number is null."""
    lines = []
    for row in table.to_pylist():
        try:
            lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False, default=_as_text))
        except ValueError:
            row = _without_nan(row)
            lines.append(json.dumps(row, ensure_ascii=False, default=_as_text))
    return "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")


def _without_nan(value):
    if isinstance(value, dict):
        return {name: _without_nan(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_without_nan(below) for below in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_text(value):
    """Dates, decimals and bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
