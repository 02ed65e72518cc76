"""Parquet and Arrow files: batches of rows with their types."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from .._show import plain, quoted
from ..exceptions import refusal, refuse
from .csv_text import check_columns

_PAGES = 2**20  # bytes of a column of a parquet file that are read at a time


def parquet_file(source: Any) -> Any:
    """A path or stream as pyarrow's ParquetFile, which reads pages and not whole columns."""
    try:
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise _without_pyarrow("parquet") from error
    return ParquetFile(source, buffer_size=_PAGES, pre_buffer=False)  # would keep all that it read


class ArrowFile:
    """A file or a stream of Arrow (IPC, Feather), as pyarrow's ParquetFile shows parquet.

    Attributes
    ----------
    schema_arrow : pyarrow.Schema
    """

    metadata = None  # which parquet has

    def __init__(self, source: BinaryIO) -> None:
        try:
            from pyarrow import ipc
        except ModuleNotFoundError as error:
            raise _without_pyarrow("Arrow files") from error
        self._ipc, self._source = ipc, source
        self._is_stream = self._source.read(4) == b"\xff\xff\xff\xff"
        self.schema_arrow = self._opened(None).schema

    def _opened(self, names):
        options = self._ipc.IpcReadOptions(
            included_fields=None
            if names is None
            else [self.schema_arrow.get_field_index(name) for name in names]
        )
        self._source.seek(0)
        reader = self._ipc.open_stream if self._is_stream else self._ipc.open_file
        return reader(self._source, options=options)

    def shares(
        self, batch_size: int, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[Any, float]]:
        """Batches of at most so many rows of some columns; how much has been read after each."""
        found = self._opened(columns)
        number = None if self._is_stream else found.num_record_batches
        batches = found if number is None else map(found.get_batch, range(number))
        for place, batch in enumerate(batches, 1):
            for start in range(0, batch.num_rows, batch_size):
                yield batch.slice(start, batch_size), place / (number or place)


class ArrowTable:
    """A table in memory, as `ArrowFile` shows a file."""

    metadata = None

    def __init__(self, table: Any) -> None:
        self.schema_arrow, self._table = table.schema, table

    def shares(
        self, batch_size: int, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[Any, float]]:
        """As those of `ArrowFile`."""
        done = 0
        table = self._table if columns is None else self._table.select(columns)
        for batch in table.to_batches(batch_size):
            done += batch.num_rows
            yield batch, done / self._table.num_rows


def batches_of(
    source: Any, batch_size: int, columns: Sequence[str] | None = None
) -> Iterator[tuple[Any, float]]:
    """Batches of a ParquetFile, ArrowFile or ArrowTable, and how much has been read."""
    if source.metadata is None:
        yield from source.shares(batch_size, columns)
        return
    done, total = 0, source.metadata.num_rows
    for batch in source.iter_batches(batch_size=batch_size, columns=columns):
        done += batch.num_rows
        yield batch, done / total


def read_parquet(stream: Any, file: str, needed: Sequence[str]) -> Any:
    """Some columns of a parquet file as a pandas DataFrame."""
    source = parquet_file(stream)
    check_columns(needed, source.schema_arrow.names, file)
    check_types(needed, source.schema_arrow, file)
    return arrow_frame(source.read(columns=needed).select(needed))


def arrow_frame(table: Any) -> Any:
    """An Arrow table as a pandas DataFrame, categories as what they stand for."""
    import pyarrow as pa

    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.Table.from_arrays(columns, names=table.column_names).to_pandas()


def check_types(needed: Iterable[str], schema: Any, file: str) -> None:
    """Refuse where a column of an Arrow schema holds lists or records."""
    from pyarrow import types

    for name in needed:
        kind = schema.field(name).type
        if types.is_nested(kind):
            refuse(
                "",
                f"one value in each row of column {quoted(name)} of {plain(file)}",
                f"{plain(kind)}",
                "Write one column per class",
            )


def _without_pyarrow(what):
    cure = "Run: pip install 'sklearn-calib[cli]'"
    return refusal("", f"pyarrow, which reads {what}", "no such package", cure)
