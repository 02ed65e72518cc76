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
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any, BinaryIO

from .._files.arrow import flatten_schema
from .._files.atomic import open_atomically
from .._files.columns import EMPTY_TABLE_HINT, TableBlock, set_or_check_number_format
from .._files.csv_text import allow_long_cells
from .._files.input_files import detect_format, open_decompressed
from .._files.tables import CsvText, iter_table_blocks, translate_read_errors
from .._show import make_printable, quote_text
from .._typing import FloatArray, Progress
from ._console import open_writable_standard_output
from ._messages import invalid_option
from ._outputs import is_device_or_pipe, unwritable_output

_WHITESPACE = " \t\r\n"
_PARQUET_SUFFIXES = (".parquet", ".parq", ".pq")
_CSV_SUFFIXES = (".csv", ".tsv", ".txt")
_JSON_SUFFIXES = (".jsonl", ".ndjson")
# The same rows give the same bytes, so the file of gzip has no time.
_COMPRESSOR_BY_SUFFIX: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
}
_SEPARATE_INPUTS_HINT = "Apply the map to them one after the other"

#: From the columns that are named to numbers of shape (n_rows, n_new), NaN for none.
NewColumnsFunction = Callable[[TableBlock], FloatArray]


def get_format(out: str) -> str:
    """Return the format that a name ends with, "parquet", "csv" or "jsonl".

    "text" is the one read.
    """
    if out.lower().endswith(_PARQUET_SUFFIXES):
        return "parquet"
    if out == "-" or is_device_or_pipe(out):
        return "text"
    bare = _strip_compression_and_lower(out)
    if bare.endswith((*_CSV_SUFFIXES, *_JSON_SUFFIXES)):
        return "csv" if bare.endswith(_CSV_SUFFIXES) else "jsonl"
    raise invalid_option(
        expected=(
            "a table to write that ends in "
            f"{', '.join((*_PARQUET_SUFFIXES[:1], *_CSV_SUFFIXES, *_JSON_SUFFIXES[:1]))}"
            ", or in one of the last "
            f"four with {', '.join(_COMPRESSOR_BY_SUFFIX)} behind it"
        ),
        got=quote_text(out, 200),
        hint="Choose such a name with --out",
    )


def _strip_compression_and_lower(out):
    """Return a name in small letters without the ending of a compression."""
    name, ending = os.path.splitext(out.lower())
    return name if ending in _COMPRESSOR_BY_SUFFIX else out.lower()


class CopiedTable:
    """The rows of some files of one format, and the columns that they get.

    Parameters
    ----------
    files : sequence of str
        With the same columns; fields of JSON lines may differ.
    names, new : sequences of str
        Columns that `fill` is given, and names of those that it gives.
    fill : callable
    options : Namespace
        How csv files are to be read, and ``out``, where the table goes; "-" is the
        standard output.

    Attributes
    ----------
    kind : str
        What `detect_format` calls the files.
    """

    def __init__(
        self,
        files: Sequence[str],
        names: Sequence[str],
        new: Sequence[str],
        fill: NewColumnsFunction,
        options: Any,
    ) -> None:
        self.files = files
        self.names = list(names)
        self.new = new
        self.fill = fill
        self.options = options
        kinds = [_detect_kind(file) for file in files]
        self.kind = kinds[0]
        for kind, file in zip(kinds, files, strict=True):
            if kind != self.kind:
                first = _describe_format_and_file(self.kind, files[0])
                second = _describe_format_and_file(kind, file)
                raise invalid_option(
                    expected="files of one format",
                    got=f"{first} and {second}",
                    hint=_SEPARATE_INPUTS_HINT,
                )

    def iter_tables(self) -> Iterator[tuple[TableBlock, float]]:
        """Yield blocks, and how much has been read; reject files of other columns."""
        first = None
        for number, file in enumerate(self.files):
            for table in iter_table_blocks(
                file,
                lambda present: self.names,
                keep_columns=True,
                **self.options.csv_options,
            ):
                form = table.original
                same = "the columns and types"
                if isinstance(form, str):  # fields of JSON lines may differ
                    form = first
                elif isinstance(form, CsvText):
                    form = (form.header, form.sep, form.encoding)
                    same = "the columns, separator and encoding"
                else:
                    form = form.schema
                if first is None:
                    first = form
                if form != first:
                    raise invalid_option(
                        expected=f"{same} of {make_printable(self.files[0])} in "
                        f"{make_printable(file)}",
                        got="others",
                        hint=_SEPARATE_INPUTS_HINT,
                    )
                yield table, (number + table.read_fraction) / len(self.files)


def _detect_kind(file):
    """Return the kind of a table, which `detect_format` names."""
    with translate_read_errors(file), open_decompressed(file) as stream:
        return detect_format(stream, file)


def _describe_format_and_file(kind, file):
    """Return the name of a format, and of a file in it."""
    format_name = "JSON lines" if kind == "json" else kind
    return f"{format_name} {make_printable(file)}"


def write_with_new_columns(copied: CopiedTable, into: str, progress: Progress) -> int:
    """Write all rows with new columns, whole or not at all; returns their number.

    Parameters
    ----------
    copied : CopiedTable
    into : {"csv", "parquet", "jsonl", "text"}
    progress : callable
        Called as ``progress(done, total)``, in thousandths.
    """
    out = copied.options.out
    is_json = copied.kind == "json"
    if into == "text":
        into = "jsonl" if is_json else "csv"
    if is_json and into != "jsonl":
        raise invalid_option(
            expected=(
                "a name that ends in .jsonl for the fields of JSON lines, which may hold others"
            ),
            got=quote_text(out, 200),
            hint="Choose such a name with --out",
        )
    write = {
        "parquet": _write_parquet_and_iter_progress,
        "csv": _write_csv_and_iter_progress,
        "jsonl": _write_json_and_iter_progress,
    }[into]
    if is_json:
        write = _append_json_and_iter_progress
    elif copied.kind == into == "csv":
        write = _append_csv_and_iter_progress
    total = 0
    with _open_output(out) as file, allow_long_cells():
        for n_rows, share in write(copied, file):
            total += n_rows
            progress(int(1000 * share), 1000)
        if not total:
            raise invalid_option(
                expected=f"rows in {make_printable(copied.files[0])}",
                got="none",
                hint=EMPTY_TABLE_HINT,
            )
    return total


@contextmanager
def _open_output(out: str) -> Iterator[BinaryIO]:
    if out == "-":
        with open_writable_standard_output("table", "Name a file with --out") as stream:
            yield stream
        return
    pack = _COMPRESSOR_BY_SUFFIX.get(os.path.splitext(out.lower())[1], nullcontext)
    try:
        with open_atomically(out) as file, pack(file) as packed:
            yield packed
    except BrokenPipeError:
        raise
    except OSError as error:  # readers word their own
        raise unwritable_output(out, error.strerror or error) from error


# -- columns that have types ----------------------------------------------------------------------


def _write_parquet_and_iter_progress(copied, file) -> Iterator[tuple[int, float]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as stack:
        writer = None
        for batch, share in _iter_extended_batches_and_shares(copied):
            if writer is None:
                # Dictionaries pay for values that are repeated, unlike fractions.
                repeated = [
                    field.name
                    for field in flatten_schema(batch.schema)
                    if not pa.types.is_floating(field.type)
                ]
                writer = stack.enter_context(
                    pq.ParquetWriter(file, batch.schema, use_dictionary=repeated)
                )
            # Written at once, so that memory stays small.
            writer.write_table(pa.Table.from_batches([batch]))
            yield batch.num_rows, share


def _write_csv_and_iter_progress(copied, file):
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    sep = (
        "\t"
        if _strip_compression_and_lower(copied.options.out).endswith(".tsv")
        else ","
    )
    form = arrow_csv.WriteOptions(delimiter=sep)
    try:
        with ExitStack() as stack:
            writer = None
            for batch, share in _iter_extended_batches_and_shares(
                copied, allows_duplicate_names=True
            ):
                if writer is None:
                    writer = stack.enter_context(
                        arrow_csv.CSVWriter(file, batch.schema, write_options=form)
                    )
                writer.write_batch(batch)
                yield batch.num_rows, share
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise invalid_option(
            expected="columns of numbers, text and dates for csv",
            got=f"a column of another type ({make_printable(error, 200)})",
            hint="Write parquet",
        ) from error


def _write_json_and_iter_progress(copied, file):
    for batch, share in _iter_extended_batches_and_shares(copied):
        file.write(_encode_json_lines(batch))
        yield batch.num_rows, share


def _iter_extended_batches_and_shares(copied, allows_duplicate_names=False):
    """Yield Arrow batches with the new columns, and how much has been read.

    Columns of one name are rejected without `allows_duplicate_names`.
    """
    import pyarrow as pa

    schema = _infer_schema(copied) if copied.kind == "csv" else None
    extended = None
    for table, share in copied.iter_tables():
        if copied.kind == "csv":
            cells = zip(_read_text_columns(table), schema.types, strict=True)
            columns = [column.cast(kind) for column, kind in cells]
        else:
            columns = table.original.columns
            schema = schema or table.original.schema
        if extended is None:
            extended = _extend_schema(copied, schema, allows_duplicate_names)
        new = [pa.array(column, from_pandas=True) for column in copied.fill(table).T]
        batch = pa.RecordBatch.from_arrays([*columns, *new], schema=extended)
        yield batch, share


def _extend_schema(copied, schema, allows_duplicate_names):
    """Return the types of all columns, the new ones behind.

    Readers of parquet cannot distinguish the two.
    """
    import pyarrow as pa

    [(name, count)] = Counter(schema.names).most_common(1)
    if count > 1 and not allows_duplicate_names:
        raise invalid_option(
            expected="columns of different names to write parquet",
            got=f"{count} columns {quote_text(name)} in {make_printable(copied.files[0])}",
            hint="Rename them, or write csv with --out",
        )
    new = (pa.field(name, pa.float64()) for name in copied.new)
    return pa.schema([*schema, *new], metadata=schema.metadata)


def _encode_json_lines(table):
    """Return the rows of an Arrow table as JSON lines; what is not a number is null."""
    lines = []
    for row in table.to_pylist():
        form = partial(json.dumps, ensure_ascii=False, default=_as_text)
        try:
            lines.append(form(row, allow_nan=False))
        except ValueError:
            lines.append(form(_replace_nonfinite_by_none(row)))
    return "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")


def _replace_nonfinite_by_none(value):
    if isinstance(value, dict):
        return {
            name: _replace_nonfinite_by_none(below) for name, below in value.items()
        }
    if isinstance(value, list):
        return [_replace_nonfinite_by_none(below) for below in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_text(value):
    """Return dates, decimals and bytes as text."""
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


# What is written back as it was, but for zeros at the end of a fraction.
_NUMBER_PATTERN_BY_TYPE = {
    "int64": r"^(0|-?[1-9][0-9]{0,17})$",
    "double": r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$",
}


def _infer_schema(copied):
    """Return the types of all columns of csv, for which all is read once.

    Whole numbers, other numbers, else text (so is 007, and a column without a cell).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    header = []
    for table, _ in copied.iter_tables():
        if not header:
            header = table.original.header
            kinds = [[*_NUMBER_PATTERN_BY_TYPE] for _ in header]
            filled = [False] * len(header)
        for place, column in enumerate(_read_text_columns(table)):
            filled[place] |= column.null_count < len(column)
            kinds[place] = [
                name
                for name in kinds[place]
                if pc.all(
                    pc.match_substring_regex(column, _NUMBER_PATTERN_BY_TYPE[name])
                ).as_py()
                is not False
            ]
    types = [
        (*kind, "string")[0] if is_filled else "string"
        for kind, is_filled in zip(kinds, filled, strict=True)
    ]
    return pa.schema([*zip(header, map(pa.type_for_alias, types), strict=True)])


def _read_text_columns(table: TableBlock) -> list[Any]:
    """Return all columns of a block of csv as text; empty cells are missing."""
    import pyarrow as pa

    written = table.original
    lines = _split_nonblank_csv_records(written)[written.named :]
    width = len(written.header)
    rows = list(csv.reader(lines, delimiter=written.sep, skipinitialspace=True))
    _check_block_row_count(rows, table)
    if any(len(row) != width for row in rows):
        rows = [[*row, *[""] * width][:width] for row in rows]
    columns = zip(*rows, strict=True)
    return [
        pa.array([cell or None for cell in column], pa.string()) for column in columns
    ]


# -- text, whose rows stay as they are -------------------------------------------------------------


def _append_json_and_iter_progress(copied, file):
    """Copy JSON lines into JSON lines."""
    keys = [json.dumps(name, ensure_ascii=False) for name in copied.new]
    for table, share in copied.iter_tables():
        lines = [line for line in table.original.split("\n") if line.strip(_WHITESPACE)]
        columns = [
            [f"{key}: {'null' if value != value else repr(value)}" for value in column]
            for key, column in zip(keys, copied.fill(table).T.tolist(), strict=True)
        ]
        if len(lines) != table.n_rows:
            raise invalid_option(
                expected=f"one object in each line of {make_printable(table.file)}",
                got=f"{len(lines)} lines for {table.n_rows} objects",
                hint="Write each object into a line of its own",
            )
        _check_fields_are_new(lines, copied.new, table)
        fields = _join_cells(columns, ", ")
        file.write("".join(map(_append_json_fields, lines, fields)).encode())
        yield table.n_rows, share


def _check_fields_are_new(lines, new, table):
    """Reject a new field that an object has: which are there is known of the first lines."""
    for name in new:
        spellings = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
        for place, line in enumerate(lines):
            if any(spelling in line for spelling in spellings) and name in json.loads(
                line
            ):
                raise invalid_option(
                    expected="a new name",
                    got=(
                        f"{quote_text(name)}, which row {table.first_row + place} of "
                        f"{make_printable(table.file)} "
                        "has"
                    ),
                    hint="Choose another with --name",
                )


def _append_json_fields(line, fields):
    bare = line.rstrip(_WHITESPACE)
    inside = bare[:-1].rstrip(_WHITESPACE)  # without the last brace
    comma = "" if inside.lstrip(_WHITESPACE + "\ufeff") == "{" else ", "
    end = "\r\n" if line.endswith("\r") else "\n"
    return f"{inside}{comma}{fields}}}{end}"


def _append_csv_and_iter_progress(copied, file):
    """Copy csv into csv; yield the rows of each block, and the share read so far."""
    comma = _has_decimal_commas(copied)
    text = None
    try:
        for table, share in copied.iter_tables():
            written = table.original
            cells = _format_and_join_cells(copied.fill(table), comma, written.sep)
            lines = _split_nonblank_csv_records(written)
            _check_block_row_count(lines[written.named :], table)
            if written.named and text is not None:
                lines = lines[1:]  # one line of names for all files
            elif written.named:
                names = (_quote_cell(name, written.sep) for name in copied.new)
                cells = [written.sep.join(names), *cells]
            longer = list(map(partial(_extend_row, written), lines, cells))
            if not longer[-1].endswith(("\n", "\r")):  # the last line of a file
                longer[-1] += "\n"
            if text is None:
                text = io.TextIOWrapper(file, written.encoding, newline="")
            text.write("".join(longer))
            yield table.n_rows, share
    finally:
        if text is not None:
            text.detach()  # the file is closed where it was opened


def _split_nonblank_csv_records(written: CsvText) -> list[str]:
    """Return the rows of a text with their ends, without blank lines, which are not rows."""
    lines = io.StringIO(written.text, newline="").readlines()
    if '"' in written.text:
        rows = []
        begin = 0
        reader = csv.reader(lines, delimiter=written.sep, skipinitialspace=True)
        for _ in reader:
            rows.append("".join(lines[begin : reader.line_num]))
            begin = reader.line_num
        lines = rows
    blank = " \r\n" if written.sep == "\t" else _WHITESPACE
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
    for _ in range(count - width):  # empty ones, or iter_table_blocks had rejected them
        bare = bare[: bare.rindex(sep)]
    return f"{bare}{sep * (1 + max(0, width - count))}{cells}{end}"


def _format_and_join_cells(values, comma, sep):
    """Return the new cells of each row, joined."""
    columns = []
    for column in values.T.tolist():
        texts = ["" if value != value else repr(value) for value in column]
        if comma:
            texts = [_quote_cell(text.replace(".", ","), sep) for text in texts]
        columns.append(texts)
    return _join_cells(columns, sep)


def _join_cells(columns, sep):
    """Return texts of columns as one text for each row."""
    if len(columns) == 1:
        return columns[0]
    return [sep.join(row) for row in zip(*columns, strict=True)]


def _quote_cell(text, sep):
    if any(character in text for character in (sep, '"', "\r", "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text


def _has_decimal_commas(copied):
    """Return whether the first numbers that are not whole are written with a comma."""
    for table, _ in copied.iter_tables():
        if table.decimal is not None:
            return table.decimal == ","
        for name in copied.names:
            set_or_check_number_format(table, name)
        marks = [table.number_formats.get((name, ",")) for name in copied.names]
        if any(mark is not None for mark in marks):
            return any(marks)
    return False


def _check_block_row_count(rows: Sequence[Any], table: TableBlock) -> None:
    """Reject a block whose rows are not those that its text was divided into."""
    if len(rows) != table.n_rows:
        raise invalid_option(
            expected=f"one line for each row of {make_printable(table.file)}",
            got=f"{len(rows)} lines for {table.n_rows} rows",
            hint="Look for a quote that is not closed, or write parquet",
        )
