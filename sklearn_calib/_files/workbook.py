"""Workbooks of Excel: the one sheet that has rows."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._show import plain, quoted
from ..exceptions import Refusal, refuse, require
from .csv_text import check_columns

_ERRORS = ("#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!")


_kept: dict[tuple[str, int, int], Any] | None = None  # rows by file, inside of `read_once`


@contextmanager
def read_once() -> Iterator[None]:
    """The last workbook is kept, so that who reads it several times has it opened once."""
    global _kept
    _kept = {}
    try:
        yield
    finally:
        _kept = None


def read_workbook(stream: Any, file: str, pick: Callable[[Sequence[str]], Any] | None) -> Any:
    """Some columns of the sheet as a pandas DataFrame; without `pick` all of them.

    The first row that is not empty holds the names. Empty cells and errors are missing values, and
    formulas are what they gave when the file was saved.
    """
    import pandas as pd

    header, *rows = _kept_sheet(stream, file)
    names = ["" if cell is None else str(cell).strip() for cell in header]
    while names and not names[-1]:
        names.pop()
    needed = names if pick is None else list(dict.fromkeys(pick(names)))
    check_columns(needed, names, file)
    columns = {}
    for name in needed:
        place = names.index(name)
        cells = [row[place] if place < len(row) else None for row in rows]
        columns[name] = pd.Series([None if cell in _ERRORS else cell for cell in cells])
    return pd.DataFrame(columns)


def _kept_sheet(stream, file):
    """The rows of the sheet, as they were read before where the file is the same."""
    try:
        now = os.stat(file)
    except (OSError, ValueError):  # the standard input
        return _sheet(stream, file)
    key = os.path.abspath(file), now.st_mtime_ns, now.st_size
    if _kept is None:
        return _sheet(stream, file)
    if key not in _kept:
        _kept.clear()
        _kept[key] = _sheet(stream, file)
    return _kept[key]


def _sheet(stream, file):
    try:
        openpyxl = require("openpyxl", "excel", "")
    except Refusal as error:
        error.place(cure=f"{error.cure}, or save the sheet of {plain(file)} as csv")
        raise
    book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
    try:
        sheets = {sheet.title: _rows(sheet) for sheet in book.worksheets}
    finally:
        book.close()
    filled = [title for title, rows in sheets.items() if rows]
    if len(filled) != 1:
        known = ", ".join(quoted(title, 40) for title in filled[:5]) or "none"
        refuse(
            "",
            f"one sheet with rows in {plain(file)}",
            f"{len(filled)} ({known})",
            "Save the one that is meant as a file of its own, or as csv",
        )
    return sheets[filled[0]]


def _rows(sheet):
    if not hasattr(sheet, "iter_rows"):  # a sheet that is a chart
        return []
    sheet.reset_dimensions()  # a file may state fewer rows and columns than it has
    rows = sheet.iter_rows(values_only=True)
    return [row for row in rows if any(cell is not None for cell in row)]


def workbook_table(stream: Any, file: str) -> Any:
    """All columns of the sheet as an Arrow table; those of several kinds become text."""
    import pyarrow as pa

    frame = read_workbook(stream, file, None)
    columns = []
    for name in frame:
        try:
            columns.append(pa.array(frame[name], from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns.append(pa.array(frame[name].map(str, na_action="ignore"), from_pandas=True))
    return pa.Table.from_arrays(columns, names=list(frame))
