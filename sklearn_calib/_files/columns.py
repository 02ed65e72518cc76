"""Columns of blocks of rows: numbers, labels and groups, of files and of tables in memory."""

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import count, takewhile
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from .._show import format_row_numbers, make_printable, quote_text
from .._typing import AnyArray
from ..exceptions import invalid_input
from .csv_text import MAX_EXACT_INTEGER, infer_cell_series

#: The hint for a table without rows.
EMPTY_TABLE_HINT = "Check the export"
#: The hint for missing values.
MISSING_VALUE_HINT = "Fill them, or leave out such rows"
MISSING_LABEL_HINT = f"{MISSING_VALUE_HINT}; an empty cell is a missing label"
#: The hint for a column of lists.
LIST_COLUMN_HINT = (
    "Write one column per class, in pandas for example "
    "frame[['p0', 'p1']] = frame['p'].tolist()"
)
_MIXED_PERCENT_HINT = "Write all of them in percent, or none."
_MIXED_DECIMAL_HINT = "Write all of them with a decimal comma, or all with a point."
_NUMBER_PATTERN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# for pyarrow, to which digits are those of ASCII
_ARROW_NUMBER_PATTERN = f"^{_NUMBER_PATTERN.pattern}$"


class TableBlock(NamedTuple):
    """Some columns of some rows of a table, and where they come from.

    Attributes
    ----------
    columns : DataFrame
    file : str
        Empty for data in memory.
    decimal : str or None
        "." or ","; None if both are possible.
    first_row : int
        The row of the file that the block begins with.
    number_formats : dict or None
        How numbers of each column are written; blocks of a file share it.
    read_fraction : float
        How much of the file has been read, this block included.
    row_offsets : ndarray or None
        Which rows these are, counted from `first_row`; None for all.
    original : CsvText, str, RecordBatch or None
        How a block of a csv file, or of JSON lines, is written; all columns of other
        files, if they are kept.
    is_csv : bool
        Whether columns that stay text are such as stand in the file.
    row_group : int or None
        The row group of a parquet file.
    """

    columns: Any
    file: str = ""
    decimal: str | None = None
    first_row: int = 0
    number_formats: Any = None
    read_fraction: float = 1.0
    row_offsets: Any = None
    original: Any = None
    is_csv: bool = False
    row_group: int | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.columns)

    @property
    def source_name(self) -> str:
        """What messages call the place of the rows; empty for data in memory."""
        group = "" if self.row_group is None else f", row group {self.row_group}"
        return f"{make_printable(self.file)}{group}" if self.file else ""

    def get_file_row(self, place: Any) -> int:
        """Return the row of the file that stands at a place of the block."""
        return self.first_row + int(
            place if self.row_offsets is None else self.row_offsets[place]
        )

    def select_rows(self, chosen: Any) -> "TableBlock":
        """Return some rows, by their places or a mask, which keep their rows of the file."""
        rows = (
            np.arange(self.n_rows) if self.row_offsets is None else self.row_offsets
        )[chosen]
        columns = self.columns.iloc[chosen].reset_index(drop=True)
        return self._replace(columns=columns, row_offsets=rows)

    def find_filled_rows(self, names: Collection[str]) -> AnyArray:
        """Return which rows miss no value of some columns."""
        keep = np.ones(self.n_rows, dtype=bool)
        for name in names:
            keep &= self.columns[name].notna().to_numpy()
        return keep

    def describe_rows(self, row_indices: Any) -> str:
        """Return the rows of the file at some places, in words."""
        return format_row_numbers([self.get_file_row(place) for place in row_indices])


def join_frames(frames: Sequence[Any]) -> Any:
    """Return blocks of one file below each other; whole numbers stay as exact as they were."""
    import pandas as pd

    if len(frames) == 1:
        return frames[0]
    kinds = [frame.dtypes for frame in frames]
    for name in frames[0]:
        if len({str(kind[name]) for kind in kinds}) > 1:
            large = any(
                f[name].dtype.kind == "i" and f[name].abs().max() > MAX_EXACT_INTEGER
                for f in frames
            )
            if large:
                frames = [frame.astype({name: object}) for frame in frames]
    return pd.concat(frames, ignore_index=True)


def expand_list_column_name(name: str, present: Collection[str]) -> list[str]:
    """Return the columns that hold the values of a list by their places, else the name alone."""
    numbered = takewhile(present.__contains__, (f"{name}.{place}" for place in count()))
    return ([] if name in present else [*numbered]) or [name]


def check_filled(block: TableBlock, name: str, what: str, missing: Any = None) -> None:
    """Reject a column where a value is missing; `missing` is the row, if that is known."""
    if missing is None:
        missing = block.columns[name].isna().to_numpy()
    if missing.any():
        origin = f" of {block.source_name}" if block.source_name else ""
        rows = block.describe_rows(np.flatnonzero(missing))
        raise invalid_input(
            expected=f"a {what} in every row",
            got=f"nan in {rows} of column {quote_text(name)}{origin}",
            hint=MISSING_LABEL_HINT if what == "label" else MISSING_VALUE_HINT,
        )


def read_complete_column(block: TableBlock, name: str, what: str) -> Any:
    """Return a column without holes, of times or groups."""
    check_filled(block, name, what)
    return block.columns[name]


# -- numbers --------------------------------------------------------------------------------------


def read_number_values(
    block: TableBlock, name: str, *, allow_missing: bool = False
) -> AnyArray:
    """Return a column of numbers of the type that they have.

    Infinity is left to the caller.

    Text such as 37% and 0,37 is read if it is clear, other text rejected; so are
    missing values, unless `allow_missing`.
    """
    column = block.columns[name]
    if column.dtype.kind in "fiub":
        plain_type = isinstance(column.dtype, np.dtype)
        numbers = (
            column.to_numpy() if plain_type else column.to_numpy(float, na_value=np.nan)
        )
        if block.is_csv:
            set_or_check_number_format(block, name)
    else:
        numbers = _parse_numbers(column, block.decimal)
        wrong = np.isnan(numbers) & column.notna().to_numpy()
        if wrong.any():
            raise _invalid_text_error(block, name, int(wrong.argmax()))
        set_or_check_number_format(block, name)
    if numbers.dtype.kind == "f" and not allow_missing:
        check_filled(block, name, "number", np.isnan(numbers))
    return numbers


def read_finite_numbers(
    block: TableBlock, name: str, *, allow_missing: bool = False
) -> Any:
    """Return a column as finite float64 numbers; an empty cell is NaN if `allow_missing`."""
    numbers = np.asarray(
        read_number_values(block, name, allow_missing=allow_missing), dtype=float
    )
    endless = np.flatnonzero(np.isinf(numbers))
    if len(endless):
        places = block.describe_rows(endless)
        raise invalid_input(
            expected="a number in every row",
            got=(
                f"{numbers[endless[0]]} in {places} of column {quote_text(name)} of "
                f"{block.source_name}"
            ),
            hint="Repair those rows",
        )
    return numbers


def is_written_in_percent(block: TableBlock, name: str) -> bool:
    """Return whether the numbers of a column, once they are read, are written with %."""
    if block.number_formats is None:
        return _ends_with_percent(block.columns[name])
    return bool(block.number_formats.get((name, "%")))


def set_or_check_number_format(block: TableBlock, name: str) -> None:
    """Reject a block of a file whose numbers are written otherwise than those above."""
    column = block.columns[name]
    filled = column.dropna()
    if block.number_formats is None or not len(filled):
        return
    kind = filled.dtype.kind
    texts = None if kind in "fiub" else filled.astype(str).str
    has_mark_by_format = {"%": texts is not None and _ends_with_percent(filled)}
    if block.decimal is None:  # the numbers show it, but for whole ones
        comma = texts is not None and texts.contains(",").any()
        pointed = texts is not None and texts.contains(".", regex=False).any()
        if comma or pointed or (kind == "f" and (filled % 1 != 0).any()):
            has_mark_by_format[","] = bool(comma)
    for mark, has_mark in has_mark_by_format.items():
        if block.number_formats.setdefault((name, mark), has_mark) != has_mark:
            row = int(column.notna().to_numpy().argmax())
            raise _invalid_text_error(
                block,
                name,
                row,
                _MIXED_PERCENT_HINT if mark == "%" else _MIXED_DECIMAL_HINT,
            )


def _parse_numbers(column, decimal):
    """Return numbers of a column of text or of objects; NaN for other text."""
    if (numbers := _try_parse_ascii_numbers(column, decimal)) is not None:
        return numbers
    values = column.astype(object).to_numpy()
    in_percent = _ends_with_percent(column)
    if decimal is None:
        decimal = (
            "," if any("," in text for text in values if isinstance(text, str)) else "."
        )

    def parse_number_or_nan(value):
        if isinstance(value, str):
            text = value.strip()
            if in_percent:
                text = text[:-1].strip()
            if decimal == ",":
                # a point is not a decimal mark
                text = text.replace(".", "?").replace(",", ".", 1)
            if not _NUMBER_PATTERN.fullmatch(text):
                return np.nan
            return float(text) / 100 if in_percent else float(text)
        is_plain_number = isinstance(value, Real | Decimal) and not (
            isinstance(value, bool) or in_percent
        )
        return float(value) if is_plain_number else np.nan

    return np.array([parse_number_or_nan(value) for value in values])


def _try_parse_ascii_numbers(column, decimal):
    """Return the numbers of a column of text alone, if all of it is numbers in ASCII; else None."""
    from pandas.api.types import infer_dtype

    if column.dtype == object and infer_dtype(column, skipna=True) != "string":
        return None
    try:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pc.ascii_trim_whitespace(
            pa.array(column, pa.string(), from_pandas=True)
        )
    # pyarrow's own errors are kinds of these
    except (ImportError, TypeError, ValueError):
        return None
    in_percent = pc.all(pc.ends_with(texts, "%")).as_py()
    if in_percent:
        texts = pc.ascii_rtrim_whitespace(pc.utf8_slice_codeunits(texts, 0, -1))
    if decimal is None:
        decimal = "," if pc.any(pc.match_substring(texts, ",")).as_py() else "."
    if decimal == ",":
        texts = pc.replace_substring(texts, ".", "?")  # a point is not a decimal mark
        texts = pc.replace_substring(texts, ",", ".", max_replacements=1)
    if not pc.all(pc.match_substring_regex(texts, _ARROW_NUMBER_PATTERN)).as_py():
        return None
    numbers = (
        pc.ascii_ltrim(texts, "+").cast(pa.float64()).to_numpy(zero_copy_only=False)
    )
    return numbers / 100 if in_percent else numbers


def _ends_with_percent(column) -> bool:
    """Return whether what is text in a column ends with %."""
    import pandas as pd

    texts = column.dropna()
    if not isinstance(texts.dtype, pd.StringDtype):
        texts = pd.Series(
            [value for value in texts.astype(object) if isinstance(value, str)]
        )
    return len(texts) > 0 and bool(texts.str.strip().str.endswith("%").all())


def _invalid_text_error(block, name, row, hint=None):
    value = block.columns[name].iloc[row]
    if hint is None:
        hint = "Clean the column first."
        if isinstance(value, list | tuple | np.ndarray):
            hint = LIST_COLUMN_HINT
        elif isinstance(value, str) and value.strip().endswith("%"):
            hint = _MIXED_PERCENT_HINT
        elif isinstance(value, str) and _NUMBER_PATTERN.fullmatch(
            value.strip().replace(",", ".", 1)
        ):
            mark = "csv={'decimal': ','}"
            hint = "If the comma is the decimal mark, read it with " + mark
            if block.decimal == ",":
                hint = "Leave " + mark + " out where the point is the decimal mark"
    origin = f" of {block.source_name}" if block.source_name else ""
    return invalid_input(
        expected=f"numbers in column {quote_text(name)}{origin}",
        got=f"for instance {quote_text(value)} in row {block.get_file_row(row)}",
        hint=hint,
    )


# -- labels and groups ----------------------------------------------------------------------------


class EncodedColumn:
    """Values of rows as the different ones and the place of each row's among them.

    Text is compared once for each value then, not once for each row.
    """

    def __init__(self, values: AnyArray, codes: AnyArray) -> None:
        self.values = values
        self.codes = codes
        self.shape = codes.shape

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> "EncodedColumn":
        return EncodedColumn(self.values, self.codes[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.asarray(self.values[self.codes], dtype=dtype)


def map_texts_to_values(
    texts: Collection[str], decimal: str | None = None
) -> dict[str, Any]:
    """Return what the cells of a column mean, given the different texts in it.

    Numbers if all of them are numbers, booleans if all are booleans, else the texts
    themselves: as if the column had been read at once.
    """
    if texts:
        return dict(zip(texts, infer_cell_series(texts, decimal).tolist(), strict=True))
    return {}


def read_label_column_with_missing(block: TableBlock, name: str) -> Any:
    """Return a column of labels as a Series: numbers, booleans or text.

    Dates and the like become text.
    """
    column = block.columns[name]
    if column.dtype.kind in "fiub":
        return column
    return column.astype(object).map(_as_text, na_action="ignore")


def _as_text(value):
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(value)


def read_label_values(
    block: TableBlock, name: str, keep_text: bool
) -> AnyArray | EncodedColumn:
    """Return a column of labels; anything but numbers and booleans by its different values.

    The text of a csv file becomes numbers or booleans unless `keep_text`.
    Missing labels are rejected.
    """
    column = block.columns[name]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        check_filled(block, name, "label")
        return column.to_numpy()
    labels = encode_column(block, name, "label")
    if block.is_csv and not keep_text:
        typed = map_texts_to_values(labels.values.tolist(), block.decimal)
        labels = EncodedColumn(make_array([*typed.values()]), labels.codes)
        _record_boolean_or_raise_if_mixed(block, name, labels)
    return labels


def _record_boolean_or_raise_if_mixed(block, name, labels):
    """Reject True below a block of numbers, which is equal to 1 and would count as that."""
    boolean = labels.values.dtype.kind == "b"
    if (
        block.number_formats is not None
        and block.number_formats.setdefault((name, "boolean"), boolean) != boolean
    ):
        raise invalid_input(
            expected=(
                f"only numbers or only booleans in column {quote_text(name)} of "
                f"{block.source_name}"
            ),
            got=f"{quote_text(labels.values[labels.codes[0]])} in row {block.get_file_row(0)}",
            hint="Write all labels alike",
        )


def encode_column(
    block: TableBlock, name: str, what: str | None = "value"
) -> EncodedColumn:
    """Return a column by its different values.

    Missing ones are rejected, as a missing `what`; if that is None, they are None.
    """
    values, codes = _find_values_and_codes(block.columns[name])
    holes = codes < 0
    if not holes.any():
        return EncodedColumn(make_array(values), codes)
    if what is not None:
        check_filled(block, name, what, holes)  # rejects
    holed = np.empty(len(values) + 1, dtype=object)
    holed[:-1] = values
    return EncodedColumn(holed, np.where(holes, len(values), codes))


def get_raw_values_or_codes(column: Any) -> AnyArray | tuple[list[Any], AnyArray]:
    """Return numbers or dates as an array, any other column as its values and their places.

    Missing values are NaN or NaT, or at place -1.
    """
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if column.dtype.kind not in "fiumM":
        return _find_values_and_codes(column)
    plain_type = isinstance(column.dtype, np.dtype)
    return column.to_numpy() if plain_type else column.to_numpy(float, na_value=np.nan)


def _find_values_and_codes(column):
    """Return the different values of a column, in any order, and the place of each row's."""
    import pandas as pd

    codes, values = pd.factorize(column)
    return _drop_missing_values(values.tolist(), codes)


def _drop_missing_values(values, codes):
    """Return values without missing ones, whose rows have the place -1."""
    from .._validation import is_missing_or_infinite

    absent = np.array([*(is_missing_or_infinite(value) for value in values), True])
    if not absent[:-1].any():
        return values, codes
    place = np.append(np.where(absent[:-1], 0, np.cumsum(~absent[:-1])), 0) - 1
    return [
        value for value, hole in zip(values, absent, strict=False) if not hole
    ], place[codes]


def make_array(values: list[Any]) -> AnyArray:
    """Return values as numpy reads them, or as they are where it would make text of all of them."""
    if len({type(value) for value in values}) == 1 and isinstance(
        values[0], str | int | float
    ):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
