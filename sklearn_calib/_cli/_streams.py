"""Tables copied block by block, with new columns behind those that they have."""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial
from typing import Any, BinaryIO

import numpy as np

from .._argument_checks import require
from .._files.arrow import (
    ArrowFile,
    arrow_frame,
    check_types,
    flatten_records,
    flatten_schema,
    iter_batches,
    parquet_file,
    workbook_in_arrow,
)
from .._files.columns import Block
from .._files.csv_text import allow_long_cells
from .._files.opened import detect_format, open_decompressed
from .._files.tables import CsvText, check_columns, table_blocks, translate_read_errors
from .._files.whole import whole_file
from .._show import plain, quoted
from .._typing import FloatArray, Progress
from ._console import standard_output
from ._messages import invalid_option
from ._outputs import unwritable_output

_BLANK = " \t\r\n"


def longer_lines(table: Block, new: Sequence[str], values: Any, missing: Any) -> str:
    """Return the text of a block whose objects have new fields, at their ends.

    Lines stay as they are.
    """
    lines = [line for line in table.text.split("\n") if line.strip(_BLANK)]
    fields = _format_fields(new, values, missing)
    if len(lines) != len(fields):
        raise invalid_option(
            expected=f"one object in each line of {plain(table.file)}",
            got=f"{len(lines)} lines for {len(fields)} objects",
            hint="Write each object into a line of its own",
        )
    _check_new(lines, new, table)
    return "".join(map(_with_fields, lines, fields))


def _check_new(lines, new, table):
    """Refuse a new field that an object has: which are there is known of the first lines."""
    for name in new:
        said = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
        for place, line in enumerate(lines):
            if any(each in line for each in said) and name in json.loads(line):
                raise invalid_option(
                    expected="a new name",
                    got=(
                        f"{quoted(name)}, which row {table.first + place} of {plain(table.file)} "
                        "has"
                    ),
                    hint="Choose another with --name",
                )


def _format_fields(names, values, missing):
    """Return the new fields of each row as text."""
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    columns = [
        [
            f"{key}: {'null' if value != value else repr(value)}"
            for value in column.tolist()
        ]
        for key, column in zip(keys, np.asarray(values).T, strict=True)
    ]
    return _join_row_texts(columns, ", ", missing, [f"{key}: null" for key in keys])


def _join_row_texts(columns, sep, missing, empty):
    """Return texts of columns as one text for each row.

    Rows that have none get the `empty` ones.
    """
    rows = (
        columns[0] if len(columns) == 1 else map(sep.join, zip(*columns, strict=True))
    )
    if missing is None:
        return [*rows]
    return [
        sep.join(empty) if hole else row
        for row, hole in zip(rows, missing, strict=True)
    ]


def _with_fields(line, fields):
    bare = line.rstrip(_BLANK)
    inside = bare[:-1].rstrip(_BLANK)  # without the last brace
    comma = "" if inside.lstrip(_BLANK + "\ufeff") == "{" else ", "
    end = "\r\n" if line.endswith("\r") else "\n"
    return f"{inside}{comma}{fields}}}{end}"


def format_json_rows(table: Any) -> bytes:
    """Return the rows of an Arrow table as JSON lines; what is no number is null."""
    lines = []
    for row in table.to_pylist():
        try:
            lines.append(
                json.dumps(row, ensure_ascii=False, allow_nan=False, default=_as_text)
            )
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
    """Return dates, decimals and bytes as text."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


_PARQUET_BATCH_ROWS = 2**18  # of a parquet file at a time
_PARQUET = (".parquet", ".parq", ".pq")
_CSV = (".csv", ".tsv", ".txt")
_JSON = (".jsonl", ".ndjson")
_PACKED: dict[str, Callable[[BinaryIO], Any]] = {  # the same rows make the same bytes
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
}

#: Of the columns that are named: numbers of shape (n_rows, n_new), and rows without
#: (None: none)
Fill = Callable[[Block], tuple[FloatArray, Any]]


def get_format(out: str) -> str:
    """Return the format that a name asks for, "parquet", "csv" or "jsonl".

    "text" is the one read.
    """
    name = out.lower()
    if name.endswith(_PARQUET):
        return "parquet"
    if out == "-" or (os.path.exists(out) and not os.path.isfile(out)):
        return "text"
    if _strip_compression(name).endswith((*_CSV, *_JSON)):
        return "csv" if _strip_compression(name).endswith(_CSV) else "jsonl"
    raise invalid_option(
        expected=(
            "a table to write that ends in "
            f"{', '.join((*_PARQUET[:1], *_CSV, *_JSON[:1]))}, or in one of the last "
            f"four with {', '.join(_PACKED)} behind it"
        ),
        got=quoted(out, 200),
        hint="Choose such a name with --out",
    )


def _strip_compression(out):
    """Return a name in small letters without the ending of a compression."""
    name, ending = os.path.splitext(out.lower())
    return name if ending in _PACKED else out.lower()


def append_columns(
    files: Sequence[str],
    names: Sequence[str],
    new: Sequence[str],
    fill: Fill,
    options: Any,
    into: str,
    progress: Progress,
) -> int:
    """Write the rows of all files with new columns, whole or not at all; returns their number.

    Parameters
    ----------
    files : sequence of str
        All of one format, with the same columns; fields of JSON lines may differ.
    names, new : sequences of str
        Columns that `fill` is given, and names of those that it gives.
    fill : callable
    options : Namespace
        How csv files are to be read, and ``out``, where the table goes; "-" is the
        standard output.
    into : {"csv", "parquet", "jsonl", "text"}
    progress : callable
        Called as ``progress(done, total)``, in thousandths.
    """
    kinds = [_get_kind(file) for file in files]
    if len(different := list(dict.fromkeys(kinds))) > 1:
        first, other = (
            f"{'JSON lines' if kind == 'json' else kind} {plain(files[kinds.index(kind)])}"
            for kind in different[:2]
        )
        raise invalid_option(
            expected="files of one format",
            got=f"{first} and {other}",
            hint="Apply the map to them one after the other",
        )
    source = (_Text if kinds[0] in ("csv", "json") else _Typed)(
        files, names, new, fill, options
    )
    if into == "text":
        into = "jsonl" if kinds[0] == "json" else "csv"
    if kinds[0] == "json" and into != "jsonl":
        raise invalid_option(
            expected=(
                "a name that ends in .jsonl for the fields of JSON lines, which may hold others"
            ),
            got=quoted(options.out, 200),
            hint="Choose such a name with --out",
        )
    write = {"parquet": _to_parquet, "csv": _to_csv, "jsonl": _to_jsonl}[into]
    if kinds[0] == "json" or kinds[0] == into == "csv":
        write = _Text.append_to_csv if into == "csv" else _Text.append_to_objects
    with _open_output(options.out) as file, allow_long_cells():
        total = 0
        for n_rows, share in write(source, file):
            total += n_rows
            progress(int(1000 * share), 1000)
        return total


def _get_kind(file):
    """Return the kind of a table, which `detect_format` names."""
    with translate_read_errors(file):
        with open(file, "rb") as stream:
            begun = detect_format(stream, file)
        with open_decompressed(file) as stream:
            kind = detect_format(stream, file)
    if kind in ("parquet", "arrow") and begun != kind:
        raise invalid_option(
            expected="text or plain parquet",
            got=f"a packed table in {plain(file)}",
            hint="Unpack it first",
        )
    return kind


@contextmanager
def _open_output(out: str) -> Iterator[BinaryIO]:
    if out == "-":
        with standard_output("table", "Name a file with --out") as stream:
            yield stream
        return
    try:
        pack = _PACKED.get(os.path.splitext(out.lower())[1], nullcontext)
        with whole_file(out) as file, pack(file) as packed:
            yield packed
    except OSError as error:  # readers word their own
        if isinstance(error, BrokenPipeError):
            raise
        raise unwritable_output(out, error.strerror or error) from error


# -- tables whose columns have types --------------------------------------------------------------


def _to_parquet(source, file):
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _extend_schema(source)
    with pq.ParquetWriter(
        file, schema, use_dictionary=source.find_repeating_columns()
    ) as writer:
        for batch, share in _iter_batches(source, schema):
            # at once, not in a buffer
            writer.write_table(pa.Table.from_batches([batch]))
            yield batch.num_rows, share


def _to_csv(source, file):
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    sep = "\t" if _strip_compression(source.options.out).endswith(".tsv") else ","
    schema = _extend_schema(source, twice=True)
    form = arrow_csv.WriteOptions(delimiter=sep)
    try:
        with arrow_csv.CSVWriter(file, schema, write_options=form) as writer:
            for batch, share in _iter_batches(source, schema):
                writer.write_batch(batch)
                yield batch.num_rows, share
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise invalid_option(
            expected="columns of numbers, text and dates for csv",
            got=f"one of another type ({plain(error, 200)})",
            hint="Write parquet",
        ) from error


def _to_jsonl(source, file):
    for batch, share in _iter_batches(source, _extend_schema(source)):
        file.write(format_json_rows(batch))
        yield batch.num_rows, share


def _extend_schema(source, twice=False):
    """Return the types of all columns, the new ones behind.

    No reader of parquet tells two apart.
    """
    import pyarrow as pa

    [(name, count)] = Counter(source.schema.names).most_common(1)
    if count > 1 and not twice:
        raise invalid_option(
            expected="columns of different names to write parquet",
            got=f"{count} columns {quoted(name)} in {plain(source.files[0])}",
            hint="Rename them, or write csv with --out",
        )
    new = (pa.field(name, pa.float64()) for name in source.new)
    return pa.schema([*source.schema, *new], metadata=source.schema.metadata)


def _iter_batches(source, schema):
    """Yield batches with the new columns, and how much has been read."""
    import pyarrow as pa

    for columns, table, share in source.iter_columns():
        values, missing = source.fill(table)
        new = [pa.array(column, mask=missing, from_pandas=True) for column in values.T]
        yield pa.RecordBatch.from_arrays([*columns, *new], schema=schema), share


class _Typed:
    """Parquet, Arrow, workbooks: columns keep their types, and the metadata of the first file."""

    def __init__(self, files, names, new, fill, options):
        self.files = files
        self.names = list(names)
        self.new = new
        self.fill = fill
        self.options = options
        self.sources = [
            _open_typed_source(file, options.skip_rows or 0) for file in files
        ]
        self.schema = self.sources[0].schema_arrow
        for file, source in zip(files, self.sources, strict=True):
            schema = flatten_schema(source.schema_arrow)
            check_columns(names, schema.names, file)
            check_types(names, schema, file)
            if not source.schema_arrow.equals(self.schema):
                raise invalid_option(
                    expected=f"the columns and types of {plain(files[0])} in {plain(file)}",
                    got="others",
                    hint="Apply the map to them one after the other",
                )
        if self.sources[0].metadata and not sum(
            s.metadata.num_rows for s in self.sources
        ):
            raise invalid_option(
                expected=f"rows in {plain(files[0])}",
                got="none",
                hint="Check the export",
            )

    def find_repeating_columns(self):
        """Return the columns whose values may come again: all but numbers with a fraction."""
        if (metadata := self.sources[0].metadata) is None:
            return _without_fractions(self.schema)
        leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
        return [
            leaf.path
            for leaf in leaves
            if leaf.physical_type not in ("DOUBLE", "FLOAT")
        ]

    def iter_columns(self):
        """Yield all columns of each batch, those of the map as a table, and the share read."""
        import pyarrow as pa

        for number, (file, source) in enumerate(
            zip(self.files, self.sources, strict=True)
        ):
            first = 0
            batches = iter_batches(source, _PARQUET_BATCH_ROWS)
            while True:
                with translate_read_errors(file):  # which may be cut off
                    batch, share = next(batches, (None, 1.0))
                if batch is None:
                    break
                frame = arrow_frame(
                    flatten_records(pa.Table.from_batches([batch])).select(self.names)
                )
                table = Block(frame, file, ".", first)
                yield batch.columns, table, (number + share) / len(self.files)
                first += batch.num_rows
            if not first and source.metadata is None:
                raise invalid_option(
                    expected=f"rows in {plain(file)}",
                    got="none",
                    hint="Check the export",
                )


def _open_typed_source(file, skip_rows):
    """Return a file of a kind that is no text, whose columns have types."""
    with translate_read_errors(file):
        kind = _get_kind(file)
        if kind == "parquet":
            return parquet_file(file)
        if kind == "arrow":
            return ArrowFile(require("pyarrow", "cli").OSFile(file))
        with open(file, "rb") as stream:
            return workbook_in_arrow(stream, file, skip_rows)


def _without_fractions(schema):
    import pyarrow as pa

    return [field.name for field in schema if not pa.types.is_floating(field.type)]


# -- text -----------------------------------------------------------------------------------------


class _Text:
    """Files of text: into their own format every row stays as it is, with new cells at its end."""

    def __init__(self, files, names, new, fill, options):
        self.files = files
        self.names = list(names)
        self.new = new
        self.fill = fill
        self.options = options
        self.first: CsvText | None = None

    def append_to_csv(self, file):
        """Copy csv into csv."""
        text = None
        found = (_decimal_comma(table, self.names) for table, _ in self._iter_tables())
        comma = next((one for one in found if one is not None), False)
        found.close()
        self.first = None  # the line of names is written yet
        try:
            for table, share in self._iter_tables():
                if text is None:
                    text = io.TextIOWrapper(file, table.text.encoding, newline="")
                text.write(self._longer_text(table, comma))
                yield table.n_rows, share
        finally:
            if text is not None:
                text.detach()  # who opened the file closes it

    def append_to_objects(self, file):
        """Copy JSON lines into JSON lines."""
        for table, share in self._iter_tables():
            file.write(longer_lines(table, self.new, *self.fill(table)).encode())
            yield table.n_rows, share

    def _longer_text(self, table, comma):
        written = table.text
        cells = _join_cells(*self.fill(table), comma, written.sep)
        lines = _iter_records(written)
        if written.named and written is not self.first:
            lines = lines[1:]  # one line of names for all files
        elif written.named:
            cells = [
                written.sep.join(_quote_cell(name, written.sep) for name in self.new),
                *cells,
            ]
        _check_count(lines, cells, table)
        longer = list(map(partial(_extend_row, written), lines, cells))
        if not longer[-1].endswith(("\n", "\r")):  # the last line of a file
            longer[-1] += "\n"
        return "".join(longer)

    @cached_property
    def schema(self):
        """The types of all columns of csv, for which all is read once."""
        import pyarrow as pa

        kinds: list[_Kind] = []
        for table, _ in self._iter_tables():
            kinds = kinds or [_Kind() for _ in table.text.header]
            for kind, column in zip(kinds, _read_text_columns(table), strict=True):
                kind.add_cells(column)
        return pa.schema(
            [
                *zip(
                    self.first.header,
                    (kind.arrow_type() for kind in kinds),
                    strict=True,
                )
            ]
        )

    def find_repeating_columns(self):
        """Return what `_Typed` does."""
        return _without_fractions(self.schema)

    def iter_columns(self):
        """Return what `_Typed` does."""
        for table, share in self._iter_tables():
            cells = zip(_read_text_columns(table), self.schema.types, strict=True)
            yield [column.cast(kind) for column, kind in cells], table, share

    def _iter_tables(self) -> Iterator[tuple[Block, float]]:
        for number, file in enumerate(self.files):
            for table in table_blocks(
                file, lambda present: self.names, **self.options.csv_options
            ):
                written = table.text
                if isinstance(written, CsvText):
                    self.first = self.first or written
                    same = (self.first.header, self.first.sep, self.first.encoding)
                    if (written.header, written.sep, written.encoding) != same:
                        raise invalid_option(
                            expected=(
                                f"the columns, separator and encoding of {plain(self.files[0])} in "
                                f"{plain(file)}"
                            ),
                            got="others",
                            hint="Apply the map to them one after the other",
                        )
                yield table, (number + table.share) / len(self.files)


# -- lines and cells ------------------------------------------------------------------------------


def _iter_records(written: CsvText) -> list[str]:
    """Return the rows of a text with their ends, without blank lines, which are no rows."""
    lines = io.StringIO(written.text, newline="").readlines()
    if '"' in written.text:
        rows = []
        begin = 0
        reader = csv.reader(lines, delimiter=written.sep, skipinitialspace=True)
        for _ in reader:
            rows.append("".join(lines[begin : reader.line_num]))
            begin = reader.line_num
        lines = rows
    blank = " \r\n" if written.sep == "\t" else " \t\r\n"
    return [line for line in lines if line.strip(blank)]


def _extend_row(written: CsvText, line: str, cells: str) -> str:
    """Return a row with new cells at its end.

    It gets the cells that it lacks, and empty ones go.
    """
    sep = written.sep
    width = len(written.header)
    bare = line.rstrip("\r\n")
    count = bare.count(sep) + 1
    # a separator inside quotes may stand in for a cell that the row lacks
    if '"' in bare:
        count = len(next(csv.reader([line], delimiter=sep, skipinitialspace=True)))
    end = line[len(bare) :]
    if count > width:  # empty, or table_blocks had refused them
        for _ in range(count - width):
            bare = bare[: bare.rindex(sep)]
    return f"{bare}{sep * (1 + max(0, width - count))}{cells}{end}"


def _join_cells(values, missing, comma, sep):
    """Return the new cells of each row, joined."""
    columns = []
    for column in values.T:
        texts = ["" if value != value else repr(value) for value in column.tolist()]
        if comma:
            texts = [_quote_cell(text.replace(".", ","), sep) for text in texts]
        columns.append(texts)
    return _join_row_texts(columns, sep, missing, [""] * len(columns))


def _quote_cell(text, sep):
    if any(character in text for character in (sep, '"', "\r", "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text


def _decimal_comma(table, names):
    """Return whether numbers of a block are written with a comma.

    None where it has whole ones alone.
    """
    if table.decimal is not None:
        return table.decimal == ","
    columns = [table.columns[name].dropna() for name in names]
    texts = [
        column.astype(str) for column in columns if column.dtype.kind not in "fiub"
    ]
    if any(column.str.contains(",").any() for column in texts):
        return True
    pointed = any(column.str.contains(".", regex=False).any() for column in texts)
    numbers = (column for column in columns if column.dtype.kind == "f")
    return (
        False if pointed or any((column % 1 != 0).any() for column in numbers) else None
    )


def _check_count(lines: Sequence[Any], cells: Sequence[str], table: Block) -> None:
    if len(lines) != len(cells):
        raise invalid_option(
            expected=f"one line for each row of {plain(table.file)}",
            got=f"{len(lines)} lines for {len(cells)} rows",
            hint="Look for a quote that is not closed, or write parquet",
        )


def _read_text_columns(table: Block) -> list[Any]:
    """Return all columns of a block of csv as text; empty cells are missing."""
    import pyarrow as pa

    written: Any = table.text
    lines = _iter_records(written)[written.named :]
    width = len(written.header)
    rows = list(csv.reader(lines, delimiter=written.sep, skipinitialspace=True))
    _check_count(rows, [""] * table.n_rows, table)
    even = all(len(row) == width for row in rows)
    if not even:
        rows = [[*row, *[""] * width][:width] for row in rows]
    columns = zip(*rows, strict=True)
    return [
        pa.array([cell or None for cell in column], pa.string()) for column in columns
    ]


_NUMBERS = {  # what is written back as it was, but for zeros at the end of a fraction
    "int64": r"^(0|-?[1-9][0-9]{0,17})$",
    "double": r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$",
}


class _Kind:
    """The type of a column of csv: whole numbers, other numbers, else text (so is 007)."""

    def __init__(self):
        self.fit = [*_NUMBERS]
        self.filled = False

    def add_cells(self, column):
        """Take the cells of one more block into account."""
        import pyarrow.compute as pc

        self.filled = self.filled or column.null_count < len(column)
        forms = {
            name: pc.match_substring_regex(column, _NUMBERS[name]) for name in self.fit
        }
        self.fit = [
            name for name, found in forms.items() if pc.all(found).as_py() is not False
        ]

    def arrow_type(self):
        import pyarrow as pa

        return pa.type_for_alias(self.fit[0] if self.fit and self.filled else "string")
