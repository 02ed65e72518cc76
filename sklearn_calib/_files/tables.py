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
    arrow_frame,
    flatten_records,
    flatten_schema,
    iter_batches,
    load_workbook,
    parquet_file,
    reject_list_columns,
    workbook_in_arrow,
)
from .columns import EMPTY_TABLE_HINT, Block, join_frames
from .csv_text import (
    ColumnSelector,
    CsvParser,
    check_columns,
    compute_read_fraction,
    detect_encoding,
    detect_separator,
    infer_column_values,
    quote_without_end,
    read_head,
    row_blocks,
    rows_below,
    separate_title,
)
from .json_lines import json_frames
from .opened import detect_format, open_decompressed

# The separator is looked for in this many first bytes.
_HEAD_BYTES = 2**20
# Bytes of a text file that are read at a time.
_BLOCK_BYTES = 2**23
#: Options that describe how a csv file is written; the last applies to workbooks, too.
CSV_OPTION_NAMES = ("sep", "decimal", "encoding", "header", "skip_rows")
# Bytes that are read of a csv file if only the names of its columns are needed.
_PROBED_BYTES = 2**16
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
) -> Block:
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
        block._replace(written=None)
        for block in table_blocks(file, pick, as_text=as_text, **form)
    ]
    frames = [block.columns for block in blocks]
    whole = blocks[0]._replace(columns=None, share=1.0)
    mixed = []
    if whole.of_csv:
        mixed = [
            name
            for name in frames[0]
            if not _is_alike([frame[name] for frame in frames])
        ]
    if not mixed:
        return whole._replace(columns=join_frames(frames))
    # columns that mean different things in blocks are read again
    whole = load_table(file, pick, as_text=[*as_text, *mixed], **form)
    for name in mixed:
        whole.columns[name] = infer_column_values(
            whole.columns[name], form.get("decimal") or "."
        )
    return whole


def table_blocks(
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
) -> Iterator[Block]:
    """Yield what `load_table` reads in blocks of rows: memory does not grow with the file.

    Parameters
    ----------
    file, pick
        As in `load_table`.
    size : int, default=None
        Bytes of a file of text that are read at a time, by default 2^23.
    as_text : collection of str, default=()
        Columns that stay text, so that all blocks have the same kind; see
        `parse_texts`.
    stream : file object, default=None
        The content of the file, if it is open.
    row_groups : collection of int, or None
        Which ones of a parquet file are read, one after the other; None for each of
        them.
    nullable : bool, default=False
        As in `arrow_frame`.
    keep_columns : bool, default=False
        Whether each block has all columns of a file whose columns have types, as they
        are. A parquet file without rows gives no block then.
    **form
        How the file is written, as in `load_table`.
    """
    rows = 0
    forms = dict[tuple[str, str], Any]()

    def pick_some(names):
        # without a column no row is counted: folders may hold all that is needed
        return pick(names) or names[:1]

    with translate_read_errors(file), stream or open_decompressed(file) as stream:
        kind = detect_format(stream, file)
        for table in _iter_kind_blocks(
            kind,
            stream,
            file,
            pick_some,
            form,
            size or _BLOCK_BYTES,
            as_text,
            row_groups,
            nullable,
            keep_columns,
        ):
            if table.n_rows:
                yield table._replace(forms=forms)
            rows += table.n_rows
    # a row group may be empty, or a file among several
    may_be_empty = kind == "parquet" and (row_groups != () or keep_columns)
    if not rows and not may_be_empty:
        raise invalid_input(
            expected=f"rows in {make_printable(file)}",
            got="none",
            hint=EMPTY_TABLE_HINT,
        )


def column_names(file: str, pick: ColumnSelector, **form: Any) -> list[str]:
    """Return the names of all columns of a file; parameters as in `load_table`."""
    found: list[str] = []

    def note_names(present):
        found[:] = present
        return pick(present)

    with translate_read_errors(file), open_decompressed(file) as stream:
        kind = detect_format(stream, file)
        if kind in ("parquet", "arrow"):
            source = _open_typed_source(kind, stream, file)
            return list(flatten_schema(source.schema_arrow).names)
        next(
            _iter_kind_blocks(kind, stream, file, note_names, form, _PROBED_BYTES), None
        )
    return found


def is_unpacked_size_above(files: Sequence[str], most: int) -> bool:
    """Return whether the rows of files take more than so many bytes: 8 for a typed cell.

    What is packed may be a thousand times as much.
    """
    total = 0
    for file in files:
        with translate_read_errors(file):
            total += max(
                os.path.getsize(file), _count_unpacked_bytes(file, most - total)
            )
        if total > most:
            return True
    return False


def _count_unpacked_bytes(file, most):
    """Count bytes of the rows of a file; of text, none are counted beyond the first too many."""
    with open_decompressed(file) as stream:
        kind = detect_format(stream, file)
        if kind == "parquet":
            metadata = parquet_file(stream).metadata
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
        while n_bytes <= most and (piece := stream.read(_HEAD_BYTES)):
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


def _open_typed_source(kind, stream, file, skip_rows=0):
    if kind == "workbook":
        return workbook_in_arrow(stream, file, skip_rows)
    return ArrowFile(stream) if kind == "arrow" else parquet_file(stream)


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
    """Yield the blocks of a file of a kind; the arguments are those of `table_blocks`."""
    if kind == "csv":
        yield from _iter_csv_blocks(stream, file, pick, form, size, as_text)
        return
    skip_rows = form.get("skip_rows") or 0
    if kind == "workbook" and not keep:
        yield Block(load_workbook(stream, file, pick, skip_rows), file, ".")
        return
    if kind != "json":
        # numbers that are text may be written in any form
        decimal = "." if kind == "workbook" else form.get("decimal")
        source = _open_typed_source(kind, stream, file, skip_rows)
        for block in _arrow_blocks(source, file, pick, row_groups, nullable, keep):
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
    for frame, share, text in json_frames(
        stream, file, pick, form.get("encoding"), size
    ):
        yield Block(frame, file, ".", first, share=share, written=text)
        first += len(frame)


def _arrow_blocks(source, file, pick, row_groups, nullable, keep):
    import pyarrow as pa

    schema = flatten_schema(source.schema_arrow)
    needed = list(dict.fromkeys(pick(schema.names)))
    check_columns(needed, schema.names, file)
    reject_list_columns(needed, schema, file)
    for group, first in _find_row_groups(source, row_groups):
        read = None if keep else needed
        for batch, share in iter_batches(source, _BATCH_ROWS, read, group, first):
            table = flatten_records(pa.Table.from_batches([batch])).select(needed)
            frame = arrow_frame(table, nullable=nullable)
            rest = {"group": group, "written": batch if keep else None}
            yield Block(frame, file, first=first, share=share, **rest)
            first += len(frame)


def _find_row_groups(source, wanted):
    """Return the numbers of the row groups to read and their first rows; None means all at once."""
    if source.metadata is None or wanted == ():
        return [(None, 0)]
    numbers = range(source.num_row_groups)
    ends = accumulate(source.metadata.row_group(number).num_rows for number in numbers)
    starts = zip(numbers, chain([0], ends), strict=False)
    return [one for one in starts if wanted is None or one[0] in wanted]


# -- csv ------------------------------------------------------------------------------------------


def _iter_csv_blocks(stream, file, pick, form, size, as_text):
    decimal = form.get("decimal")
    given = form.get("header")
    skip_rows = form.get("skip_rows") or 0
    head = read_head(stream, _HEAD_BYTES)
    encoding = detect_encoding(head, file, form.get("encoding"))
    if encoding == "utf-8-sig" and not head.startswith(codecs.BOM_UTF8):
        encoding = "utf-8"
    text = codecs.getincrementaldecoder(encoding)().decode(head)
    title, text = separate_title(text, skip_rows, file)
    sep, header = detect_separator(text, pick, form.get("sep"), given)
    needed = pick(header)
    cells = [re.split(r"[,;\t|]", line) for line in text[:_PROBED_BYTES].splitlines()]
    check_columns(needed, header, file, sep, rows_below(cells, skip_rows))
    places = sorted({header.index(name) for name in needed})
    texts = {header.index(name) for name in as_text if name in header}
    cells = CsvParser(len(header), places, sep, decimal or ".", texts)
    decimal = "." if decimal is None and sep == "," else decimal
    first = 0
    for number, text in enumerate(row_blocks(stream, encoding, sep, size, file, title)):
        named = number == 0 and given is None  # the line of names, if there is one
        try:
            frame, extra = cells.read_frame(text, named)
        except ValueError as error:
            raise quote_without_end(error, file, first - 1) from error
        if extra is not None and extra.notna().any():
            row = first + extra.notna().to_numpy().argmax()
            raise invalid_input(
                expected=f"{len(header)} cells in each row of "
                f"{make_printable(file)}, as many as names",
                got=f"more in row {row}",
                sentence=f"Row {row} of {make_printable(file)} has more cells than "
                f"the {len(header)} names",
                hint="Put cells that hold the separator into quotes",
            )
        # The last line of a block is empty or a whole row, unless the file is cut off.
        last = text.rpartition("\n")[2]
        if '"' not in last and 0 < last.count(sep) < len(header) - 1:
            n_cells = last.count(sep) + 1
            raise invalid_input(
                expected=f"{len(header)} cells in each row of "
                f"{make_printable(file)}, as many as names",
                got=f"{n_cells}",
                sentence=(
                    f"The last row of {make_printable(file)}, "
                    f"{first + len(frame) - 1}, has {n_cells} of "
                    f"{len(header)} cells"
                ),
                hint=(
                    "The file is cut off: export it again; or add a line break if its "
                    "last line is complete"
                ),
            )
        frame.columns = [header[place] for place in places]
        written = CsvText(text, sep, encoding, header, named)
        rest = {
            "share": compute_read_fraction(stream),
            "written": written,
            "of_csv": True,
        }
        yield Block(frame, file, decimal, first, **rest)
        first += len(frame)


def _is_alike(columns):
    """Return whether pieces of a column are what they are in the whole."""
    from pandas.api.types import infer_dtype

    filled = [column for column in columns if column.notna().any()]
    kinds = {
        infer_dtype(column, skipna=True)
        if column.dtype == object
        else str(column.dtype)
        for column in filled
    }
    if kinds == {"bool"} and len(filled) < len(columns):
        return False  # beside pieces without a value they would become numbers
    return len(kinds) <= 1 or kinds <= {"int64", "float64"}
