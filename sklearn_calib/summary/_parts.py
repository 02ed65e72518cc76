"""Data of every kind as parts that can be read on their own, and parts as blocks of rows."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from .._argument_checks import import_optional, validate_count
from .._files.arrow import (
    convert_arrow_to_pandas,
    open_parquet_file,
    reject_list_columns,
)
from .._files.columns import TableBlock, expand_list_column_name
from .._files.csv_text import check_columns
from .._files.input_files import (
    detect_format,
    expand_to_names_paths_and_filesystems,
    open_decompressed,
)
from .._files.rows import PIECE_ROWS, iter_pieces
from .._files.tables import CSV_OPTION_NAMES, iter_table_blocks, translate_read_errors
from .._show import quote_text
from .._validation import collect_lazy_frame
from ..exceptions import add_error_context, invalid_input
from ._storage import is_summary_file

# Errors of files; pyarrow's are kinds of these.
_READ_ERRORS = OSError, ValueError


# -- files ----------------------------------------------------------------------------------------


class FilePart(NamedTuple):
    """A file of rows, or some row groups of a parquet file; can be sent to another process.

    Attributes
    ----------
    name : str
        What messages call the file.
    path : str
    filesystem : pyarrow FileSystem or None
        None for files of this machine.
    csv_options : dict
        ``sep``, ``decimal``, ``encoding``, ``header``, ``skip_rows`` of a csv file.
    text_columns : tuple of str
        The columns that stay text in a csv file.
    row_groups : tuple of int or None
        The row groups; None for all.
    """

    name: str
    path: str
    filesystem: Any
    csv_options: dict[str, Any]
    text_columns: tuple[str, ...]
    row_groups: tuple[int, ...] | None = None

    def open_whole_file(self) -> Any:
        """Open the file as a binary stream."""
        if self.filesystem is not None:
            return self.filesystem.open_input_file(self.path)
        return open_decompressed(self.path)

    def split_row_groups_if_possible(
        self, numeric_columns: Sequence[str]
    ) -> "list[FilePart]":
        """Return one part per row group; numbers that are text are written as in those above."""
        from pyarrow import types

        with translate_read_errors(self.name), self.open_whole_file() as stream:
            if detect_format(stream, self.path) != "parquet":
                return [self]
            file = open_parquet_file(stream)
            text_fields = (
                field for field in file.schema_arrow if field.name in numeric_columns
            )
            # Columns of text are parsed by the format of their first block, so all row
            # groups must be read together.
            if any(not types.is_primitive(field.type) for field in text_fields):
                return [self]
            return [
                self._replace(row_groups=(group,))
                for group in range(file.num_row_groups)
            ] or [self]

    def iter_blocks(self, needed: Sequence[str]) -> Iterator[TableBlock]:
        """Yield some columns, of which the names of folders may hold some."""
        import pandas as pd

        folders = parse_folder_values(self.path)

        def pick_columns(present):
            # A missing column is reported by the reader, unless the folder names its
            # value.
            inside = [name for name in needed if name in present or name not in folders]
            return inside or present[:1]  # some column, to count the rows

        texts = [
            name for name in self.text_columns if name in needed and name not in folders
        ]
        with translate_read_errors(self.name):
            stream = self.open_whole_file()
        how = {"stream": stream, "row_groups": self.row_groups, "nullable": True}
        for block in iter_table_blocks(
            self.path,
            pick_columns,
            as_text=texts,
            **how,
            **self.csv_options,
        ):
            columns = block.columns
            for name in needed:
                if name not in columns:
                    codes = np.zeros(block.n_rows, dtype=np.int8)
                    # One byte per row for a constant.
                    columns[name] = pd.Categorical.from_codes(codes, [folders[name]])
            if [*columns] != [*needed]:
                columns = columns[[*needed]]
            yield block._replace(columns=columns, file=self.name)


class SavedSummaryPart(NamedTuple):
    """A file that `CalibrationSummary.to_parquet` wrote."""

    name: str
    path: str


def parse_folder_values(path: str) -> dict[str, Any]:
    """Return values that the names of folders hold, such as ``day=2026-01-31``."""
    value_by_name = {}
    for folder in PurePosixPath(Path(path).as_posix()).parts[:-1]:
        name, equals, value = folder.partition("=")
        if name and equals:
            value = unquote(value)
            value_by_name[name] = (
                # Whole numbers without leading zeros that fit into 64 bits; "007" stays
                # text.
                int(value) if re.fullmatch(r"-?(0|[1-9]\d{0,17})", value) else value
            )
    return value_by_name


def validate_csv_options(csv: Any) -> dict[str, Any]:
    """Return how csv files are written, with `skip_rows`, or raise ValueError."""
    if csv is not None and not (
        isinstance(csv, dict) and set(csv) <= {*CSV_OPTION_NAMES}
    ):
        raise invalid_input(
            "csv",
            expected=f"csv with {sorted(CSV_OPTION_NAMES)}",
            got=repr(sorted(csv) if isinstance(csv, dict) else csv),
            hint="Leave out the others",
        )
    csv = {**(csv or {})}
    csv["skip_rows"] = validate_count(csv.get("skip_rows", 0), "skip_rows", 0)
    return csv


def make_parts(data: Any, texts: Sequence[str], csv: dict[str, Any]) -> list[Any]:
    """Return one part for each file, or one for data in memory; `texts` as in `FilePart`."""
    if not isinstance(data, str | list | tuple) and not hasattr(data, "__fspath__"):
        return [DataObjectPart(collect_lazy_frame(data))]
    parts: list[Any] = []
    for name, path, filesystem in expand_to_names_paths_and_filesystems(data):
        part = FilePart(name, path, filesystem, csv, tuple(texts))
        with (
            add_error_context(),
            translate_read_errors(name, _READ_ERRORS),
            part.open_whole_file() as stream,
        ):
            is_parquet = detect_format(stream, path) == "parquet"
        # Files of rows and saved summaries may stand in one folder.
        if is_parquet and filesystem is None and is_summary_file(path):
            parts.append(SavedSummaryPart(name, path))
        elif is_parquet or filesystem is None:
            parts.append(part)
        else:
            raise invalid_input(
                expected="parquet files at an address",
                got=quote_text(name),
                hint="Download it, or write parquet",
            )
    return parts


def make_path_absolute(part: Any) -> Any:
    """Return the part with the whole path of its file: another process may be in another folder."""
    if (
        getattr(part, "path", None) is None
        or getattr(part, "filesystem", None) is not None
    ):
        return part
    return part._replace(path=os.path.abspath(part.path))


def get_part_bytes_or_default(part: Any) -> int:
    """Return what a part weighs in a progress bar: the bytes of the file, if that is known."""
    try:
        return os.path.getsize(part.path)
    except (AttributeError, OSError):  # in memory; elsewhere
        return 1000


# -- data in memory and streams -------------------------------------------------------------------


class DataObjectPart(NamedTuple):
    """Rows that are already here, or that another library hands over."""

    data: Any
    name: str = ""

    def iter_blocks(self, needed: Sequence[str]) -> Iterator[TableBlock]:
        """Yield some columns."""
        forms: dict[str, dict[Any, bool]] = defaultdict(dict)
        first: dict[str, int] = Counter()
        for piece in iter_pieces(self.data, needed):
            for file, frame, share in _iter_sources_frames_and_read_shares(
                piece, [*needed], self.name
            ):
                yield TableBlock(frame, file, None, first[file], forms[file], share)
                first[file] += len(frame)


def _iter_sources_frames_and_read_shares(data, needed, source):
    """Yield (file, DataFrame, how much has been read) of the batches of a table."""
    name = source or "the table"
    if isinstance(data, Mapping) or hasattr(data, "iloc"):
        for frame, share in _iter_frames_and_read_shares(data, needed, name):
            yield source, frame, share
        return
    if hasattr(data, "scanner"):  # pyarrow.dataset
        schema = data.schema
        name = "the dataset"
    else:
        data = _open_reader(data)
        schema = data.schema
    check_columns(needed, schema.names, name)
    reject_list_columns(needed, schema, name)
    for file, batch in _iter_files_and_batches(data, needed, source):
        for start in range(0, batch.num_rows, PIECE_ROWS):
            piece = batch.slice(start, PIECE_ROWS)
            yield (
                file,
                convert_arrow_to_pandas(piece.select(needed), nullable=True),
                1.0,
            )


def _iter_files_and_batches(data, needed, source):
    """Yield (file, batch) of a dataset or a reader of pyarrow."""
    if not hasattr(data, "scanner"):
        yield from ((source, batch) for batch in data)
        return
    for tagged in data.scanner(columns=needed, batch_size=PIECE_ROWS).scan_batches():
        yield getattr(tagged.fragment, "path", ""), tagged.record_batch


def _iter_frames_and_read_shares(data, needed, source):
    """Yield DataFrames of some rows of a table, or of arrays by name; and how much that was."""
    import pandas as pd

    if isinstance(data, Mapping):
        data = _split_columns_by_name(data)
        needed = [
            column for name in needed for column in expand_list_column_name(name, data)
        ]
    check_columns(needed, [*data], source)
    columns = {name: data[name] for name in needed}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise invalid_input(
            expected="columns of one length",
            got=f"{lengths}",
            hint="Check where they are from",
        )
    n = next(iter(lengths.values()))
    for first in range(0, n, PIECE_ROWS):
        rows = slice(first, first + PIECE_ROWS)
        some = {name: _take_rows(column, rows) for name, column in columns.items()}
        yield pd.DataFrame(some, copy=False), min(1.0, (first + PIECE_ROWS) / n)


def _take_rows(column, rows):
    if not hasattr(column, "iloc"):
        return column[rows]
    return column.iloc[rows].reset_index(drop=True)


def _split_columns_by_name(data):
    """Return the columns of arrays by name; those of a table stand under their places."""
    columns = {}
    for name, values in data.items():
        values = values if hasattr(values, "iloc") else np.asarray(values)
        if values.ndim == 2:
            columns |= {
                f"{name}.{place}": column for place, column in enumerate(values.T)
            }
        else:
            columns[name] = values
    return columns


def _open_reader(data):
    pa = import_optional("pyarrow", "cli")
    if hasattr(data, "to_arrow") and not hasattr(data, "__arrow_c_stream__"):
        data = data.to_arrow()  # early versions of polars
    if isinstance(data, pa.Table):
        return data.to_reader()
    if not hasattr(data, "__arrow_c_stream__"):
        expected = (
            "paths, a table, a dataset, a dict of arrays, or an object with "
            "__arrow_c_stream__"
        )
        raise invalid_input(
            expected=f"data as {expected}",
            got=f"a {type(data).__name__}",
            hint="Turn it into an Arrow table first",
            error=TypeError,
        )
    return pa.RecordBatchReader._import_from_c_capsule(data.__arrow_c_stream__())
