"""Tables in files, as the command line reads them: every mistake is one sentence."""

import codecs
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from typing import Any, NamedTuple

from .._show import make_printable, quote_text
from ..exceptions import InvalidInputError, invalid_input
from .arrow import (
    ArrowFile,
    convert_arrow_to_pandas,
    flatten_records,
    flatten_schema,
    iter_batches,
    load_workbook_as_arrow,
    load_workbook_as_frame,
    open_parquet_file,
    reject_list_columns,
)
from .columns import EMPTY_TABLE_HINT, TableBlock, join_frames
from .csv_text import (
    ColumnSelector,
    CsvParser,
    check_columns,
    compute_read_fraction,
    convert_if_unclosed_quote_error,
    detect_encoding,
    detect_separator,
    enumerate_first_rows_below_header,
    infer_column_series,
    iter_text_blocks,
    peek_head_with_first_line,
    separate_title,
)
from .input_files import detect_format, open_decompressed
from .json_lines import iter_json_frames

# The separator is looked for in this many first bytes.
_SEPARATOR_SEARCH_BYTES = 2**20
# Bytes of a text file that are read at a time.
_BLOCK_BYTES = 2**23
#: Options that describe how a csv file is written; the last applies to workbooks, too.
CSV_OPTION_NAMES = ("sep", "decimal", "encoding", "header", "skip_rows")
# Bytes that are read of a csv file if only the names of its columns are needed.
_COLUMN_NAMES_HEAD_BYTES = 2**16
# Rows of a parquet or Arrow file that are read at a time.
_BATCH_ROWS = 2**17


class CsvText(NamedTuple):
    """A block of a csv file as it is written."""

    text: str
    sep: str
    encoding: str
    header: list[str]  # the names of all columns
    named: bool  # whether the block begins with the line of names


def load_table(
    file: str,
    pick: ColumnSelector,
    *,
    as_text: Collection[str] = (),
    **form: Any,
) -> TableBlock:
    """Return some columns of a file: csv, JSON lines, parquet, Arrow or a workbook.

    Parameters
    ----------
    file : str
        Path.
    pick : callable
        Given the names of all columns, the list of those to read. Of the separators in
        question the one is taken whose header holds all of them.
    as_text : collection of str, default=()
        Columns of a csv file that stay text.
    sep, decimal, encoding : str, default=None
        Of a csv file; found out, ".", and UTF-8 by default. JSON lines have the last.
    header : list of str, default=None
        The names of all columns of a csv file that has no line of names.
    skip_rows : int, default=None
        How many lines of a csv file, or rows of a sheet, stand above the table.
    """
    blocks = [
        block._replace(original=None)
        for block in iter_table_blocks(file, pick, as_text=as_text, **form)
    ]
    frames = [block.columns for block in blocks]
    whole = blocks[0]._replace(columns=None, read_fraction=1.0)
    mixed = []
    if whole.is_csv:
        mixed = [
            name
            for name in frames[0]
            if not _can_join_pieces_without_type_change(
                [frame[name] for frame in frames]
            )
        ]
    if not mixed:
        return whole._replace(columns=join_frames(frames))
    # columns that mean different things in blocks are read again
    whole = load_table(file, pick, as_text=[*as_text, *mixed], **form)
    for name in mixed:
        whole.columns[name] = infer_column_series(
            whole.columns[name], form.get("decimal") or "."
        )
    return whole


def iter_table_blocks(
    file: str,
    pick: ColumnSelector,
    *,
    size: int | None = None,
    as_text: Collection[str] = (),
    stream: Any = None,
    row_groups: Collection[int] | None = (),
    nullable: bool = False,
    keep_columns: bool = False,
    **form: Any,
) -> Iterator[TableBlock]:
    """Yield what `load_table` reads in blocks of rows: memory does not grow with the file.

    Parameters
    ----------
    file, pick
        As in `load_table`.
    size : int, default=None
        Bytes of a file of text that are read at a time, by default 2^23.
    as_text : collection of str, default=()
        Columns that stay text, so that all blocks have the same kind; see
        `map_texts_to_values`.
    stream : file object, default=None
        The content of the file, if it is open.
    row_groups : collection of int, or None
        Which ones of a parquet file are read, one after the other; None for each of
        them.
    nullable : bool, default=False
        As in `convert_arrow_to_pandas`.
    keep_columns : bool, default=False
        Whether each block has all columns of a file whose columns have types, as they
        are. A parquet file without rows gives no block then.
    **form
        How the file is written, as in `load_table`.
    """
    rows = 0
    forms = dict[tuple[str, str], Any]()

    def pick_columns_or_first(names):
        # without a column no row is counted: folders may hold all that is needed
        return pick(names) or names[:1]

    with translate_read_errors(file), stream or open_decompressed(file) as stream:
        kind = detect_format(stream, file)
        for table in _iter_kind_blocks(
            kind,
            stream,
            file,
            pick_columns_or_first,
            form,
            size or _BLOCK_BYTES,
            as_text,
            row_groups,
            nullable,
            keep_columns,
        ):
            if table.n_rows:
                yield table._replace(number_formats=forms)
            rows += table.n_rows
    # a row group may be empty, or a file among several
    may_be_empty = kind == "parquet" and (row_groups != () or keep_columns)
    if not rows and not may_be_empty:
        raise invalid_input(
            expected=f"rows in {make_printable(file)}",
            got="none",
            hint=EMPTY_TABLE_HINT,
        )


def read_all_column_names(
    file: str, pick_for_reading: ColumnSelector, **form: Any
) -> list[str]:
    """Return the names of all columns of a file; parameters as in `load_table`."""
    column_names: list[str] = []

    def store_and_pick_names(present):
        column_names[:] = present
        return pick_for_reading(present)

    with translate_read_errors(file), open_decompressed(file) as stream:
        kind = detect_format(stream, file)
        if kind in ("parquet", "arrow"):
            source = _open_file_as_arrow_source(kind, stream, file)
            return list(flatten_schema(source.schema_arrow).names)
        next(
            _iter_kind_blocks(
                kind,
                stream,
                file,
                store_and_pick_names,
                form,
                _COLUMN_NAMES_HEAD_BYTES,
            ),
            None,
        )
    return column_names


def is_unpacked_size_above(files: Sequence[str], max_bytes: int) -> bool:
    """Return whether the rows of files take more than so many bytes: 8 for a typed cell.

    What is packed may be a thousand times as much.
    """
    total = 0
    for file in files:
        with translate_read_errors(file):
            total += max(
                os.path.getsize(file), _count_unpacked_bytes(file, max_bytes - total)
            )
        if total > max_bytes:
            return True
    return False


def _count_unpacked_bytes(file, max_bytes):
    """Count bytes of the rows of a file; of text, none are counted beyond the first too many."""
    with open_decompressed(file) as stream:
        kind = detect_format(stream, file)
        if kind == "parquet":
            metadata = open_parquet_file(stream).metadata
            return 8 * metadata.num_rows * metadata.num_columns
        if kind == "arrow":
            source = ArrowFile(stream)
            names = source.schema_arrow.names
            rows = sum(
                batch.num_rows
                for batch, _ in iter_batches(source, _BATCH_ROWS, names[:1])
            )
            return 8 * rows * len(names)
        n_bytes = 0
        while n_bytes <= max_bytes and (piece := stream.read(_SEPARATOR_SEARCH_BYTES)):
            n_bytes += len(piece)
        return n_bytes


@contextmanager
def translate_read_errors(
    file: str, kinds: type[Exception] | tuple[type[Exception], ...] = Exception
) -> Iterator[None]:
    """Turn errors that are raised inside into one sentence about the file.

    By default errors of all `kinds`: pandas, pyarrow, the compressions and the system
    have a dozen.
    """
    try:
        yield
    except InvalidInputError:
        raise
    except kinds as error:
        raise _invalid_file(error, file) from error


def _invalid_file(error, file):
    """Return the message about a file that cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        encoding = "csv={'encoding': ...}"
        return invalid_input(
            expected=f"{error.encoding} text in {quote_text(file)}",
            got=f"the byte 0x{byte:02x}",
            hint=(
                "Name the encoding, such as cp1252 of Windows in Western Europe, with "
                + encoding
            ),
        )
    reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    return invalid_input(
        expected="a readable table",
        got=f"{quote_text(file)} ({make_printable(reason, 200).rstrip('.')})",
        hint="Check the path and the format",
    )


# -- files whose values have types ----------------------------------------------------------------


def _open_file_as_arrow_source(kind, stream, file, skip_rows=0):
    if kind == "workbook":
        return load_workbook_as_arrow(stream, file, skip_rows)
    return ArrowFile(stream) if kind == "arrow" else open_parquet_file(stream)


def _iter_kind_blocks(
    kind,
    stream,
    file,
    pick,
    form,
    size,
    as_text=(),
    row_groups=(),
    nullable=False,
    keep=False,
):
    """Yield the blocks of a file of a kind; the arguments are those of `iter_table_blocks`."""
    if kind == "csv":
        yield from _iter_csv_blocks(stream, file, pick, form, size, as_text)
        return
    skip_rows = form.get("skip_rows") or 0
    if kind == "workbook" and not keep:
        yield TableBlock(
            load_workbook_as_frame(stream, file, pick, skip_rows), file, "."
        )
        return
    if kind != "json":
        # numbers that are text may be written in any form
        decimal = "." if kind == "workbook" else form.get("decimal")
        source = _open_file_as_arrow_source(kind, stream, file, skip_rows)
        for block in _iter_arrow_blocks(source, file, pick, row_groups, nullable, keep):
            yield block._replace(decimal=decimal)
        return
    if skip_rows:
        raise invalid_input(
            "skip_rows",
            expected="a csv file or a workbook for skip_rows=",
            got=make_printable(file),
            hint="Leave such lines out of the file",
        )
    first = 0
    for frame, share, text in iter_json_frames(
        stream,
        file,
        pick,
        form.get("encoding"),
        size,
    ):
        yield TableBlock(frame, file, ".", first, read_fraction=share, original=text)
        first += len(frame)


def _iter_arrow_blocks(source, file, pick, row_groups, nullable, keep):
    import pyarrow as pa

    schema = flatten_schema(source.schema_arrow)
    needed = list(dict.fromkeys(pick(schema.names)))
    check_columns(needed, schema.names, file)
    reject_list_columns(needed, schema, file)
    for group, first in _list_row_groups_with_first_rows(source, row_groups):
        read = None if keep else needed
        for batch, share in iter_batches(source, _BATCH_ROWS, read, group, first):
            table = flatten_records(pa.Table.from_batches([batch])).select(needed)
            frame = convert_arrow_to_pandas(table, nullable=nullable)
            yield TableBlock(
                frame,
                file,
                first_row=first,
                read_fraction=share,
                row_group=group,
                original=batch if keep else None,
            )
            first += len(frame)


def _list_row_groups_with_first_rows(source, row_groups):
    """Return the numbers of the row groups to read and their first rows; None means all at once."""
    if source.metadata is None or row_groups == ():
        return [(None, 0)]
    numbers = range(source.num_row_groups)
    ends = accumulate(source.metadata.row_group(number).num_rows for number in numbers)
    starts = zip(numbers, chain([0], ends), strict=False)
    return [start for start in starts if row_groups is None or start[0] in row_groups]


# -- csv ------------------------------------------------------------------------------------------


def _iter_csv_blocks(stream, file, pick, form, size, as_text):
    decimal = form.get("decimal")
    given_header = form.get("header")
    skip_rows = form.get("skip_rows") or 0
    head = peek_head_with_first_line(stream, _SEPARATOR_SEARCH_BYTES)
    encoding = detect_encoding(head, file, form.get("encoding"))
    if encoding == "utf-8-sig" and not head.startswith(codecs.BOM_UTF8):
        encoding = "utf-8"
    text = codecs.getincrementaldecoder(encoding)().decode(head)
    title, text = separate_title(text, skip_rows, file)
    sep, header = detect_separator(text, pick, form.get("sep"), given_header)
    needed = pick(header)
    cells = [
        re.split(r"[,;\t|]", line)
        for line in text[:_COLUMN_NAMES_HEAD_BYTES].splitlines()
    ]
    check_columns(
        needed, header, file, sep, enumerate_first_rows_below_header(cells, skip_rows)
    )
    places = sorted({header.index(name) for name in needed})
    texts = {header.index(name) for name in as_text if name in header}
    cells = CsvParser(len(header), places, sep, decimal or ".", texts)
    decimal = "." if decimal is None and sep == "," else decimal
    first = 0
    for number, text in enumerate(
        iter_text_blocks(stream, encoding, sep, size, file, title)
    ):
        # The first line holds the names, unless they were given.
        named = number == 0 and given_header is None
        try:
            frame, extra = cells.read_frame(text, named)
        except ValueError as error:
            raise convert_if_unclosed_quote_error(error, file, first - 1) from error
        _check_no_extra_cells(extra, len(header), file, first)
        _check_last_row(
            text.rpartition("\n")[2], sep, len(header), file, first + len(frame) - 1
        )
        frame.columns = [header[place] for place in places]
        written = CsvText(text, sep, encoding, header, named)
        rest = {
            "read_fraction": compute_read_fraction(stream),
            "original": written,
            "is_csv": True,
        }
        yield TableBlock(frame, file, decimal, first, **rest)
        first += len(frame)


def _check_no_extra_cells(extra, n_names, file, first):
    """Reject rows with more cells than names; `extra` holds the first of these cells."""
    if extra is None or not extra.notna().any():
        return
    row = first + extra.notna().to_numpy().argmax()
    source = make_printable(file)
    raise invalid_input(
        expected=f"{n_names} cells in each row of {source}, as many as names",
        got=f"more in row {row}",
        sentence=f"Row {row} of {source} has more cells than the {n_names} names",
        hint="Put cells that hold the separator into quotes",
    )


def _check_last_row(line, sep, n_names, file, row):
    """Reject a last line with too few cells: it is empty or a whole row, or the file is cut off."""
    n_cells = line.count(sep) + 1
    if '"' in line or not 1 < n_cells < n_names:
        return
    source = make_printable(file)
    raise invalid_input(
        expected=f"{n_names} cells in each row of {source}, as many as names",
        got=f"{n_cells}",
        sentence=f"The last row of {source}, {row}, has {n_cells} of {n_names} cells",
        hint=(
            "The file is cut off: export it again; or add a line break if its "
            "last line is complete"
        ),
    )


def _can_join_pieces_without_type_change(column_pieces):
    """Return whether pieces of a column are what they are in the whole."""
    from pandas.api.types import infer_dtype

    filled = [column for column in column_pieces if column.notna().any()]
    kinds = {
        infer_dtype(column, skipna=True)
        if column.dtype == object
        else str(column.dtype)
        for column in filled
    }
    if kinds == {"bool"} and len(filled) < len(column_pieces):
        return False  # beside pieces without a value they would become numbers
    return len(kinds) <= 1 or kinds <= {"int64", "float64"}
