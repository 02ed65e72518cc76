"""Parquet and Arrow files: batches of rows with their types."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from .._argument_checks import import_optional
from .._show import make_printable, quote_text
from ..exceptions import InvalidInputError, invalid_input
from .columns import LIST_COLUMN_HINT
from .csv_text import (
    MAX_EXACT_INTEGER,
    ColumnSelector,
    check_columns,
    enumerate_first_rows_below_header,
    skipped_too_many_error,
)
from .input_files import import_pyarrow_module

# Bytes of a column of a parquet file that are read at a time.
_READ_BUFFER_BYTES = 2**20


def open_parquet_file(source: Any) -> Any:
    """Return a stream as pyarrow's ParquetFile, which reads pages and not whole columns."""
    parquet = import_pyarrow_module("reads parquet", "pyarrow.parquet")
    # what is read ahead is kept until the file is closed: a price to pay for slow
    # streams alone
    ahead = type(source).__module__.startswith("pyarrow")
    return parquet.ParquetFile(source, buffer_size=_READ_BUFFER_BYTES, pre_buffer=ahead)


class ArrowFile:
    """A file or a stream of Arrow (IPC, Feather), as pyarrow's ParquetFile shows parquet.

    Attributes
    ----------
    schema_arrow : pyarrow.Schema
    """

    metadata = None  # which parquet has

    def __init__(self, source: BinaryIO) -> None:
        self._ipc = import_pyarrow_module("reads Arrow files", "pyarrow.ipc")
        self._source = source
        self._is_stream = self._source.read(4) == b"\xff\xff\xff\xff"
        self.schema_arrow = self._open_reader(None).schema

    def _open_reader(self, names):
        options = self._ipc.IpcReadOptions(
            included_fields=None
            if names is None
            else [
                place
                for place, field in enumerate(self.schema_arrow.names)
                if any(f"{name}.".startswith(f"{field}.") for name in names)
            ]
        )
        self._source.seek(0)
        reader = self._ipc.open_stream if self._is_stream else self._ipc.open_file
        return reader(self._source, options=options)

    def iter_row_slices(
        self, batch_size: int, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[Any, float]]:
        """Yield batches of at most so many rows of some columns, and how much has been read."""
        reader = self._open_reader(columns)
        number = None if self._is_stream else reader.num_record_batches
        batches = reader if number is None else map(reader.get_batch, range(number))
        for place, batch in enumerate(batches, 1):
            for start in range(0, batch.num_rows, batch_size):
                yield batch.slice(start, batch_size), place / (number or place)


def iter_batches(
    source: Any,
    batch_size: int,
    columns: Sequence[str] | None = None,
    row_group: int | None = None,
    first_row: int = 0,
) -> Iterator[tuple[Any, float]]:
    """Yield batches of a ParquetFile or ArrowFile, and how much has been read.

    Of parquet a single `row_group` may be read, which begins with row `first_row`.
    """
    if source.metadata is None:
        yield from source.iter_row_slices(batch_size, columns)
        return
    groups = None if row_group is None else [row_group]
    done = first_row
    total = source.metadata.num_rows
    for batch in source.iter_batches(batch_size, row_groups=groups, columns=columns):
        done += batch.num_rows
        yield batch, done / total


def _convert_to_signed_indices(column):
    """Return a column of categories whose indices are signed integers.

    Categories of polars have unsigned ones, which pyarrow 17 cannot convert to pandas.
    """
    import pyarrow as pa

    if not pa.types.is_unsigned_integer(column.type.index_type):
        return column
    kind = pa.dictionary(pa.int64(), column.type.value_type, column.type.ordered)
    chunks = []
    for chunk in getattr(column, "chunks", [column]):
        indices = chunk.indices.cast(pa.int64())
        chunks.append(
            pa.DictionaryArray.from_arrays(
                indices, chunk.dictionary, ordered=column.type.ordered
            )
        )
    return pa.chunked_array(chunks, type=kind)


def convert_arrow_to_pandas(table: Any, *, nullable: bool = False) -> Any:
    """Return an Arrow table as a pandas DataFrame.

    If columns may be `nullable`, whole numbers and booleans keep their type beside
    missing values, and categories are kept; else these become what they stand for.
    """
    import pandas as pd
    from pyarrow import types

    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if types.is_dictionary(column.type):
            if nullable:
                column = _convert_to_signed_indices(column)
            else:
                column = column.cast(column.type.value_type)
        columns[name] = column.to_pandas()
        is_whole = types.is_integer(column.type)
        if (
            column.null_count
            and nullable
            and (is_whole or types.is_boolean(column.type))
        ):
            dtype = pd.Int64Dtype() if is_whole else pd.BooleanDtype()
            columns[name] = dtype.__from_arrow__(column)
        elif (
            column.null_count and is_whole and columns[name].max() >= MAX_EXACT_INTEGER
        ):
            columns[name] = column.to_pandas(integer_object_nulls=True)
    return pd.DataFrame(columns, copy=False)


def flatten_records(table: Any) -> Any:
    """Return an Arrow table in which ``a.b`` is the field ``b`` of the records in column ``a``."""
    from pyarrow import types

    while any(map(types.is_struct, table.schema.types)):
        table = table.flatten()
    return table


def flatten_schema(schema: Any) -> Any:
    """Return the schema that `flatten_records` gives."""
    return flatten_records(schema.empty_table()).schema


def reject_list_columns(needed: Iterable[str], schema: Any, file: str) -> None:
    """Raise an error if a column of an Arrow schema holds lists."""
    from pyarrow import types

    for name in needed:
        kind = schema.field(name).type
        if types.is_nested(kind):
            raise invalid_input(
                expected=f"one value in each row of column {quote_text(name)} of "
                f"{make_printable(file)}",
                got=f"{make_printable(kind)}",
                hint=LIST_COLUMN_HINT,
            )


_EXCEL_ERRORS = ("#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!")


# rows by file, inside of `cache_workbook`
_rows_by_workbook: dict[tuple[str, int, int], Any] | None = None


@contextmanager
def cache_workbook() -> Iterator[None]:
    """Keep the last workbook, so that it is opened once if it is read several times."""
    global _rows_by_workbook
    _rows_by_workbook = {}
    try:
        yield
    finally:
        _rows_by_workbook = None


def load_workbook_as_frame(
    stream: Any, file: str, pick: ColumnSelector | None, skip_rows: int = 0
) -> Any:
    """Return some columns of the sheet as a pandas DataFrame; without `pick` all of them.

    The first row that is not empty, below those that are skipped, holds the names.
    Empty cells and errors are missing values, and formulas are what they gave when the
    file was saved.
    """
    import pandas as pd

    below = _get_cached_sheet_rows(stream, file)[skip_rows:]
    filled = list(filter(_is_filled, below))
    if not filled:
        raise skipped_too_many_error(skip_rows, file)
    header, *rows = filled
    names = ["" if cell is None else str(cell).strip() for cell in header]
    while names and not names[-1]:
        names.pop()
    needed = names if pick is None else list(dict.fromkeys(pick(names)))
    check_columns(
        needed, names, file, below=enumerate_first_rows_below_header(below, skip_rows)
    )
    columns = {}
    for name in needed:
        place = names.index(name)
        cells = [row[place] if place < len(row) else None for row in rows]
        columns[name] = pd.Series(
            [None if cell in _EXCEL_ERRORS else cell for cell in cells]
        )
    return pd.DataFrame(columns)


def _get_cached_sheet_rows(stream, file):
    """Return the rows of the sheet, as they were read before where the file is the same."""
    try:
        now = os.stat(file)
    except (OSError, ValueError):  # the standard input
        return _read_single_filled_sheet_rows(stream, file)
    key = os.path.abspath(file), now.st_mtime_ns, now.st_size
    if _rows_by_workbook is None:
        return _read_single_filled_sheet_rows(stream, file)
    if key not in _rows_by_workbook:
        _rows_by_workbook.clear()
        _rows_by_workbook[key] = _read_single_filled_sheet_rows(stream, file)
    return _rows_by_workbook[key]


def _read_single_filled_sheet_rows(stream, file):
    try:
        openpyxl = import_optional("openpyxl", "excel")
    except InvalidInputError as error:
        error.set_fields(
            hint=f"{error.hint}, or save the sheet of {make_printable(file)} as csv"
        )
        raise
    book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
    try:
        sheets = {sheet.title: _list_sheet_rows(sheet) for sheet in book.worksheets}
    finally:
        book.close()
    filled = [title for title, rows in sheets.items() if any(map(_is_filled, rows))]
    if len(filled) != 1:
        sheet_names = ", ".join(quote_text(title, 40) for title in filled[:5]) or "none"
        raise invalid_input(
            expected=f"one sheet with rows in {make_printable(file)}",
            got=f"{len(filled)} sheets ({sheet_names})",
            hint="Save the one that is meant as a file of its own, or as csv",
        )
    return sheets[filled[0]]


def _list_sheet_rows(sheet):
    if not hasattr(sheet, "iter_rows"):  # a sheet that is a chart
        return []
    sheet.reset_dimensions()  # a file may state fewer rows and columns than it has
    return [*sheet.iter_rows(values_only=True)]


def _is_filled(row):
    return any(cell is not None for cell in row)


def load_workbook_as_arrow(stream: Any, file: str, skip_rows: int = 0) -> ArrowFile:
    """Return all columns of the sheet; those of several kinds become text."""
    import pyarrow as pa

    frame = load_workbook_as_frame(stream, file, None, skip_rows)
    columns = []
    for name in frame:
        try:
            columns.append(pa.array(frame[name], from_pandas=True))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns.append(
                pa.array(frame[name].map(str, na_action="ignore"), from_pandas=True)
            )
    table = pa.Table.from_arrays(columns, names=list(frame))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return ArrowFile(pa.BufferReader(sink.getvalue()))
