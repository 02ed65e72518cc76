"""Data of every kind as parts that can be read on their own, and parts as blocks of rows."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from .._argument_checks import check_count, require
from .._files.arrow import split_records, split_schema
from .._files.columns import Block, taken
from .._files.opened import files_of
from .._files.rows import ROWS, pieces_of
from .._files.tables import FORM, check_columns, check_types, reading, table_blocks
from .._show import quoted
from .._validation import collected
from ..exceptions import add_error_context, invalid_input
from ._storage import is_summary_file

_ERRORS = OSError, ValueError  # of files; pyarrow's are kinds of these
_READ_AHEAD = 2**20  # bytes of a column of a parquet file that are fetched at a time


# -- files ----------------------------------------------------------------------------------------


class ParquetPart(NamedTuple):
    """A parquet file, or some of its row groups; can be sent to another process.

    Attributes
    ----------
    name : str
        What messages call the file.
    path : str
    filesystem : pyarrow FileSystem or None
        None for files of this machine.
    groups : tuple of int or None
        The row groups; None for all.
    """

    name: str
    path: str
    filesystem: Any = None
    groups: tuple[int, ...] | None = None

    def open(self) -> Any:
        parquet = require("pyarrow.parquet", "cli")
        source = (
            self.path if self.filesystem is None else self.filesystem.open_input_file(self.path)
        )
        ahead = self.filesystem is not None  # what is read ahead is kept until the file is closed
        return parquet.ParquetFile(source, buffer_size=_READ_AHEAD, pre_buffer=ahead)

    def split(self, numbers: Sequence[str]) -> "list[ParquetPart]":
        """One part for each row group; numbers that are text are written as in those above."""
        from pyarrow import types

        with self.open() as file:
            of_text = (f for f in file.schema_arrow if f.name in numbers)
            if any(not types.is_primitive(f.type) for f in of_text):
                return [self]
            return [self._replace(groups=(g,)) for g in range(file.num_row_groups)] or [self]

    def blocks(self, needed: Sequence[str]) -> Iterator[Block]:
        with reading(self.name, _ERRORS), self.open() as file:
            yield from self._blocks(file, needed)

    def _blocks(self, file, needed):
        schema = split_schema(file.schema_arrow)
        names = schema.names
        folders = {k: v for k, v in folder_values(self.path).items() if k not in names}
        inside = [name for name in needed if name not in folders]
        check_columns(inside, names, self.name)
        check_types(inside, schema, self.name)
        first = 0
        forms: dict[Any, bool] = {}
        for group in range(file.num_row_groups):
            n_rows = file.metadata.row_group(group).num_rows
            if self.groups is None or group in self.groups:
                read = file.iter_batches(ROWS, row_groups=[group], columns=inside)
                batches = (piece for batch in read for piece in _split_batches(batch))
                total = file.metadata.num_rows
                for block in _arrow_blocks(batches, self.name, forms, first, folders, total):
                    yield block._replace(group=group)
            first += n_rows


def _split_batches(batch):
    import pyarrow as pa

    return split_records(pa.Table.from_batches([batch])).to_batches()


class SummaryPart(NamedTuple):
    """A file that `CalibrationSummary.to_parquet` wrote."""

    name: str
    path: str


class TablePart(NamedTuple):
    """A file of any other kind: csv, JSON lines, Arrow, a workbook.

    Attributes
    ----------
    name : str
        What messages call the file.
    path : str
    options : dict
        ``sep``, ``decimal``, ``encoding``, ``header``, ``skip_rows`` of a csv file.
    texts : tuple of str
        The columns that stay text in a csv file.
    """

    name: str
    path: str
    options: dict[str, Any]
    texts: tuple[str, ...]

    def blocks(self, needed: Sequence[str]) -> Iterator[Block]:
        folders = folder_values(self.path)

        def pick(present):
            inside = [name for name in needed if name in present or name not in folders]
            return inside or present[:1]  # some column, to count the rows

        texts = [name for name in self.texts if name in needed and name not in folders]
        for table in table_blocks(self.path, pick, as_text=texts, **self.options):
            present, n = table.columns, table.n_rows
            columns = {
                name: present[name] if name in present else _repeated(folders[name], n)
                for name in needed
            }
            yield table._replace(columns=columns, file=self.name)


def folder_values(path: str) -> dict[str, Any]:
    """Values that the names of folders hold, such as ``day=2026-01-31``."""
    found = {}
    for folder in PurePosixPath(Path(path).as_posix()).parts[:-1]:
        name, equals, value = folder.partition("=")
        if name and equals:
            value = unquote(value)
            found[name] = int(value) if re.fullmatch(r"-?(0|[1-9]\d{0,17})", value) else value
    return found


def check_form(csv: Any) -> dict[str, Any]:
    """Return how csv files are written, with `skip_rows`, or raise ValueError."""
    if csv is not None and not (isinstance(csv, dict) and set(csv) <= {*FORM}):
        got = repr(sorted(csv) if isinstance(csv, dict) else csv)
        raise invalid_input(
            "csv", expected=f"csv with {sorted(FORM)}", got=got, hint="Leave out the others"
        )
    csv = {**(csv or {})}
    csv["skip_rows"] = check_count(csv.get("skip_rows", 0), "skip_rows", 0)
    return csv


def parts_of(data: Any, texts: Sequence[str], csv: dict[str, Any]) -> list[Any]:
    """One part for each file, or one for all that is no file; `texts` as in `TablePart`."""
    if not isinstance(data, str | list | tuple) and not hasattr(data, "__fspath__"):
        return [StreamPart(collected(data))]
    parts: list[Any] = []
    for name, path, filesystem in files_of(data):
        with add_error_context(), reading(name, _ERRORS):
            parquet = _is_parquet(path, filesystem)
        if parquet and filesystem is None and is_summary_file(path):
            parts.append(SummaryPart(name, path))
        elif parquet:
            parts.append(ParquetPart(name, path, filesystem))
        elif filesystem is None:
            parts.append(TablePart(name, path, csv, tuple(texts)))
        else:
            cure = "Download it, or write parquet"
            raise invalid_input(expected="parquet files at an address", got=quoted(name), hint=cure)
    return parts


def anywhere(part: Any) -> Any:
    """The part with the whole path of its file: another process may be in another folder."""
    if getattr(part, "path", None) is None or getattr(part, "filesystem", None) is not None:
        return part
    return part._replace(path=os.path.abspath(part.path))


def part_size(part: Any) -> int:
    """What a part weighs in a progress bar: the bytes of the file, where that is known."""
    try:
        return os.path.getsize(part.path)
    except (AttributeError, OSError):  # in memory; elsewhere
        return 1000


def _is_parquet(path, filesystem):
    with open(path, "rb") if filesystem is None else filesystem.open_input_file(path) as stream:
        return stream.read(4) == b"PAR1"


# -- data in memory and streams -------------------------------------------------------------------


class StreamPart(NamedTuple):
    """Rows that are already here, or that another library hands over."""

    data: Any
    name: str = ""

    def blocks(self, needed: Sequence[str]) -> Iterator[Block]:
        first = 0
        forms: dict[Any, bool] = {}
        for piece in pieces_of(self.data, needed):
            n_rows = 0
            for block in _blocks_of(piece, needed, self.name, forms):
                n_rows += block.n_rows
                yield block._replace(first=first + block.first) if first else block
            first += n_rows


def _blocks_of(data, needed, name, forms):
    if isinstance(data, Mapping):
        data = {k: v if _is_column(v) else np.asarray(v) for k, v in data.items()}
        yield from _array_blocks(data, [*data], needed, name, forms)
    elif hasattr(data, "iloc"):  # pandas
        yield from _array_blocks(data, [*data.columns], needed, name, forms)
    elif hasattr(data, "scanner"):  # pyarrow.dataset
        yield from _dataset_blocks(data, needed)
    else:
        reader = _reader(data)
        check_columns(needed, reader.schema.names, name or "the table")
        check_types(needed, reader.schema, name or "the table")
        selected = (batch.select([*needed]) for batch in reader)
        yield from _arrow_blocks(selected, name, forms)


def _is_column(values):
    return isinstance(values, np.ndarray) or hasattr(values, "iloc")


def _array_blocks(data, present, needed, source, forms):
    check_columns(needed, present, source or "the table")
    columns = {name: data[name] for name in needed}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise invalid_input(
            expected="columns of one length", got=f"{lengths}", hint="Check where they are from"
        )
    n = next(iter(lengths.values()))
    for first in range(0, n, ROWS):
        rows = slice(first, first + ROWS)
        block = {name: taken(column, rows) for name, column in columns.items()}
        share = min(1.0, (first + ROWS) / n)
        yield Block(block, source, None, first, forms, share)


def _arrow_blocks(batches, source, forms, first=0, folders=(), n_rows=0):
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            piece = batch.slice(start, ROWS)
            columns = dict(zip(piece.schema.names, piece.columns, strict=True))
            n = piece.num_rows
            columns |= {name: _repeated(value, n) for name, value in dict(folders).items()}
            share = (first + n) / n_rows if n_rows else 1.0
            yield Block(columns, source, None, first, forms, share)
            first += n


def _repeated(value, n):
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), pa.array([value]))


def _dataset_blocks(dataset, needed):
    check_columns(needed, dataset.schema.names, "the dataset")
    check_types(needed, dataset.schema, "the dataset")
    first: dict[str, int] = {}
    forms: dict[str, dict[Any, bool]] = {}
    for tagged in dataset.scanner(columns=[*needed], batch_size=ROWS).scan_batches():
        name = getattr(tagged.fragment, "path", "")
        batch = tagged.record_batch
        own = forms.setdefault(name, {})
        yield from _arrow_blocks([batch], name, own, first.get(name, 0))
        first[name] = first.get(name, 0) + batch.num_rows


def _reader(data):
    pa = require("pyarrow", "cli")
    if hasattr(data, "to_arrow") and not hasattr(data, "__arrow_c_stream__"):
        data = data.to_arrow()  # early versions of polars
    if isinstance(data, pa.Table):
        return data.to_reader()
    if not hasattr(data, "__arrow_c_stream__"):
        got, cure = f"a {type(data).__name__}", "Turn it into an Arrow table first"
        rule = "paths, a table, a dataset, a dict of arrays, or an object with __arrow_c_stream__"
        raise invalid_input(expected=f"data as {rule}", got=got, hint=cure, error=TypeError)
    return pa.RecordBatchReader._import_from_c_capsule(data.__arrow_c_stream__())
