"""The text of csv files: its encoding, its separator, and blocks of whole rows."""

import codecs
import csv
import io
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from .._show import make_printable, quote_text
from .._spelling import find_nearest_name
from ..exceptions import InvalidInputError, invalid_input

#: Given the names of all columns, those to read.
ColumnSelector: TypeAlias = Callable[[Sequence[str]], list[str]]
# characters; what is longer is hardly a row, and would fill the memory
MAX_ROW_CHARACTERS = 2**25
# The names of the columns are looked for in this many first lines of a file.
_MAX_TITLE_LINES = 30
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def get_exact_number_options() -> dict[str, Any]:
    """Return what `pandas.read_csv` needs to read every number as it was written.

    Version 3 needs none.
    """
    import pandas as pd

    if int(pd.__version__.split(".")[0]) >= 3:
        return {}
    return {"float_precision": "round_trip"}


def detect_encoding(head: bytes, file: str, encoding: str | None) -> str:
    """Return the encoding of a csv file that begins with `head`; reject what is not text."""
    if not head.strip():
        raise invalid_input(
            expected=f"a header and rows in {make_printable(file)}", got="an empty file"
        )
    if encoding is None:
        wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if wide else "utf-8-sig"
    try:
        codecs.lookup(encoding)
    except (LookupError, ValueError):
        raise invalid_input(
            expected="a known encoding",
            got=quote_text(encoding),
            hint="Use utf-8, cp1252 or utf-16",
        ) from None
    if b"\0" in head and not encoding.lower().startswith(
        ("utf-16", "utf-32", "utf_16", "utf_32")
    ):
        hint = "Export it as text."
        if head.count(0) * 3 > len(head.strip(b"\0")) > 0:  # every other byte
            hint += " If it is UTF-16 without its mark, name utf-16-le or utf-16-be as "
            hint += "csv={'encoding': ...}"
        raise invalid_input(
            expected="a table as text, or a parquet or Arrow file",
            got=f"binary content in {quote_text(file)}",
            hint=hint,
        )
    return encoding


def detect_separator(
    text: str,
    pick: ColumnSelector,
    sep: str | None,
    header: Sequence[str] | None = None,
) -> tuple[str, list[str]]:
    """Return the separator and the names of the columns of a csv file that begins with `text`.

    Of the separators in question the one whose header holds all names in `pick`;
    if `header` gives the names, the one that makes as many cells of the first line.
    """
    if sep is not None:
        sep = {"\\t": "\t", "tab": "\t"}.get(sep, sep)
        if len(sep) != 1 or sep in '"\r\n':
            raise invalid_input(
                expected="one character as separator",
                got=quote_text(sep),
                hint="Use , ; | or tab",
            )
        return sep, _read_first_line(text, sep) if header is None else [*header]
    cells_by_separator = [
        (sep, _read_first_line(text, sep)) for sep in _SEPARATOR_NAMES
    ]
    if header is not None:
        for candidate, cells in reversed(
            cells_by_separator
        ):  # a comma may be the decimal mark
            if len(cells) == len(header):
                return candidate, [*header]
        longest = max(cells_by_separator, key=lambda candidate: len(candidate[1]))
        raise invalid_input(
            expected=(
                f"{len(header)} cells in the first line, as many as the names that were given"
            ),
            got=f"{len(longest[1])}",
            hint="Name every column",
        )
    for candidate in cells_by_separator:
        if set(pick(candidate[1])) <= set(candidate[1]):
            return candidate
    return max(cells_by_separator, key=lambda candidate: len(candidate[1]))


def separate_title(text: str, n_lines: int, file: str) -> tuple[str, str]:
    """Return the first lines of a text, which are above its table, and the rest."""
    mark = "\n" if "\n" in text else "\r"
    *above, rest = text.split(mark, n_lines)
    if len(above) < n_lines or not rest:
        raise skipped_too_many_error(n_lines, file)
    return text[: len(text) - len(rest)], rest


def skipped_too_many_error(n_rows: int, file: str) -> InvalidInputError:
    """Return the error to raise if no rows are left below those that are skipped."""
    return invalid_input(
        expected=f"more than {n_rows} rows in {make_printable(file)}",
        got=f"at most {n_rows}",
        hint="Skip fewer rows",
    )


def enumerate_first_rows_below_header(
    rows: Sequence[Any], n_skipped_rows: int
) -> Iterator[tuple[int, Any]]:
    """Return the number of rows above each of some, and the row; the first is left out."""
    return islice(enumerate(rows, n_skipped_rows), 1, _MAX_TITLE_LINES)


def check_columns(
    needed: Iterable[str],
    present: Sequence[str],
    file: str,
    sep: str | None = None,
    below: Iterable[tuple[int, Iterable[Any]]] = (),
) -> None:
    """Reject unless each name stands exactly once among those of a file.

    Mention it if the names stand in one of the rows `below` those that are present.
    """
    needed = list(needed)
    for name in needed:
        count = present.count(name)
        if count == 1:
            continue
        if count > 1:
            raise invalid_input(
                expected=f"one column {quote_text(name)} in {make_printable(file)}",
                got=f"{count} columns of that name",
                hint="Rename them",
            )
        present_names = ", ".join(make_printable(other, 40) for other in present[:30])
        present_names += f", ... ({len(present)} columns)" if len(present) > 30 else ""
        inside = next(
            (other for other in present if str(other).startswith(f"{name}.")), None
        )
        near = inside or find_nearest_name(name, present)
        hint = (
            "Check the spelling."
            if near is None
            else f"Do you mean {quote_text(near)}?"
        )
        if sep is not None and len(present) == 1:
            hint = "Name the separator with csv={'sep': ...}"
            hint += ", or leave out lines above the names with "
            hint += "csv={'skip_rows': ...}"
        elif sep is not None and _looks_like_data(present):
            hint = "Where the first line is no line of names, give all names with "
            hint += "csv={'header': [...]}"
        for n_above, cells in below:
            if {*needed} <= {str(cell).strip('" ') for cell in cells}:
                hint = (
                    "The names stand further below: leave out the rows above them with "
                )
                hint += f"csv={{'skip_rows': {n_above}}}"
                break
        raise invalid_input(
            expected=f"a column {quote_text(name)} in {make_printable(file)}",
            got=present_names,
            hint=hint,
        )


def _looks_like_data(cells):
    """Return whether a line of cells holds numbers, as a line of names does not."""
    return any(
        re.fullmatch(r"[+-]?\d*[.,]?\d+([eE][+-]?\d+)?%?", cell) for cell in cells
    )


def _read_first_line(text, sep):
    lines = csv.reader(
        io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=True
    )
    filled = (line for line in lines if len(line) > 1 or (line and line[0].strip()))
    try:
        with allow_long_cells():  # with another separator the whole line is one cell
            return [name.strip() for name in next(filled, [])]
    except csv.Error as error:
        raise invalid_input(
            expected="lines of cells in the csv file",
            got=str(error),
            sentence=f"The first line of the csv file cannot be split into cells ({error})",
            hint="Check the quotes",
        ) from error


@contextmanager
def allow_long_cells() -> Iterator[None]:
    """Let Python's csv module read cells of more than 131,072 characters, as pandas does."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def iter_text_blocks(
    stream: Any, encoding: str, sep: str | None, size: int, file: str, title: str = ""
) -> Iterator[str]:
    """Yield the text of a binary stream in parts that end where a row ends, of some `size` bytes.

    If `sep` is None, every line is a row. Leaves out the `title` with which the stream
    begins, and does not close it. Rejects a row of more than `MAX_ROW_CHARACTERS` characters;
    `file` is its name.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    rest = ""
    above = title.count("\n")
    data = b" "
    left = len(title)
    while data:
        data = stream.read(size)
        text = decoder.decode(data, final=not data)
        rest += text[left:]
        left = max(0, left - len(text))
        if end := _find_last_row_end(rest, sep) if data else len(rest):
            block = rest[:end]
            rest = rest[end:]
            yield block
            above += block.count("\n")
        line = len(rest) - 1 - max(rest.rfind("\n"), rest.rfind("\r"))
        if (line if end else len(rest)) > MAX_ROW_CHARACTERS:
            raise invalid_input(
                expected=f"rows of at most {MAX_ROW_CHARACTERS:,} characters in "
                f"{make_printable(file)}",
                got=f"a longer row that begins in line {above + 1}",
                hint=(
                    "Look there for a quote that is not closed, or leave out the column of "
                    "long texts"
                ),
            )


def peek_head_with_first_line(stream: Any, size: int) -> bytes:
    """Return the first bytes of a stream: some `size`, and more if the first line is longer."""
    head = stream.read(size)
    while len(head) <= MAX_ROW_CHARACTERS and not (b"\n" in head or b"\r" in head):
        more = stream.read(len(head))
        if not more:
            break
        head += more
    stream.seek(0)
    return head


def _find_last_row_end(text, sep):
    """Return where the last whole row of a text ends; a line break inside quotes ends none."""
    if sep is None:
        return text.rfind("\n") + 1
    mark = "\n" if "\n" in text else "\r"
    if '"' not in text:
        return text.rfind(mark) + 1
    if text.isascii():
        letters = np.frombuffer(text.encode(), np.uint8)
        if (quotes := _find_quotes_if_around_cells(letters, sep)) is not None:
            ends = np.flatnonzero(letters == ord(mark))
            ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
            return int(ends[-1]) + 1 if len(ends) else 0
    quoted_cell = re.compile(
        rf'(?:(?<=[{re.escape(sep)}\r\n])|^)[ ]*"[^"]*(?:""[^"]*)*("|$)'
    )
    above = len(text)
    for cell in reversed([*quoted_cell.finditer(text)]):
        end = text.rfind(mark, cell.end(), above) + 1
        if end:
            return end
        above = cell.start()
    return text.rfind(mark, 0, above) + 1


def _find_quotes_if_around_cells(letters, sep):
    """Return the places of quotes among the bytes of a text.

    None if one stands inside of a cell.

    Those with an even number of quotes before them open a cell, or are the second of
    two that stand for one; the others close it. The last may have no partner yet.
    """
    quotes = np.flatnonzero(letters == ord('"'))
    line = np.array([ord("\n")], np.uint8)
    edged = np.concatenate([line, letters, line])
    beside = np.append(edged[quotes[::2]], edged[quotes[1::2] + 2])
    return quotes if np.isin(beside, [*f'{sep}"\r\n'.encode()]).all() else None


def convert_if_unclosed_quote_error(
    error: ValueError, file: str, above: int
) -> Exception:
    """Return the message of pandas on a quote without an end, with the rows of the file.

    Else the error.
    """
    match = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if match is None:
        return error
    return invalid_input(
        expected=f"quotes in pairs in {make_printable(file)}",
        got="a quote that is not closed",
        hint="Close it, or write it twice if it belongs to the text",
        row=above + int(match[1]),
    )


def compute_read_fraction(stream: Any) -> float:
    """Return how much of a file has been read, compressed or not."""
    try:
        number = stream.fileno()
        return os.lseek(number, 0, os.SEEK_CUR) / max(1, os.fstat(number).st_size)
    except OSError:  # in memory
        return 1.0


#: Texts of cells that are read as missing values.
MISSING_CELL_TEXTS = [
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
]
MISSING_CELL_TEXTS += [
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
]
MAX_EXACT_INTEGER = 2**53  # whole numbers below are floats without a loss
# characters of numbers, and below of booleans
_NUMBER_CHARACTERS = r"0-9+\-.,\s\vEeIiNnFfTtYy"
# A column is first checked for fractions in this many rows.
_N_FRACTIONAL_PART_CHECK_ROWS = 1000
_TEXT_PATTERN = rf"[^{_NUMBER_CHARACTERS}AaRrUuLlSs]"
_SPACE_BYTE, _NEWLINE_BYTE = np.frombuffer(b" \n", np.uint8)


class CsvParser:
    """Some columns of the blocks of a csv file.

    Parameters
    ----------
    width : int
        How many columns the file has.
    places : sequence of int
        Which of them are read, in rising order.
    sep, decimal : str
    as_text : collection of int
        The places of columns that stay text.
    """

    def __init__(
        self,
        width: int,
        places: Sequence[int],
        sep: str,
        decimal: str,
        as_text: Collection[int],
    ) -> None:
        self.width = width
        self.places = places
        self.sep = sep
        self.decimal = decimal
        self.as_text = {*as_text}
        # columns that pyarrow would give a type that pandas has not
        self._unclear = set(as_text)

    def read_frame(self, text: str, named: bool) -> tuple[Any, Any]:
        """Return a DataFrame of the columns, by their places, and what stands behind the last name.

        `named` is whether the line of names comes first. Raises what pandas raises.
        """
        import pandas as pd

        columns = self._read_columns_with_arrow_if_safe(text, named)
        if columns is None:
            return self._read_frame_and_extra_with_pandas(text, named)
        return pd.DataFrame(columns), None

    # -- by pyarrow -------------------------------------------------------------------------------

    def _read_columns_with_arrow_if_safe(self, text, named):
        """Return columns by place.

        None if pyarrow is not there or may split otherwise than pandas.
        """
        data = self._encode_without_cell_blanks_if_simple(
            text.lstrip("\r\n") if named else text
        )
        if data is None:
            return None
        if b"0x" in data or b"0X" in data:  # which pyarrow takes for whole numbers
            self._unclear |= {*self.places}
        try:
            table = self._parse_with_arrow(data, named)
            unclear = {
                place
                for place in self.places
                if not _is_same_in_pandas(table[str(place)])
            }
            if unclear:
                self._unclear |= unclear
                table = self._parse_with_arrow(data, named)
        except (ImportError, ValueError):  # pyarrow's own errors are kinds of these
            return None
        return {
            place: self._convert_to_series(table[str(place)], place)
            for place in self.places
        }

    def _parse_with_arrow(self, data, named):
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(place) for place in range(self.width)]
        reading = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=len(data) + 1,
            column_names=names,
            skip_rows_after_names=int(named),
        )
        converting = arrow_csv.ConvertOptions(
            include_columns=[str(place) for place in self.places],
            column_types={str(place): pa.string() for place in self._unclear},
            null_values=MISSING_CELL_TEXTS,
            strings_can_be_null=True,
            decimal_point=self.decimal,
        )
        parsing = arrow_csv.ParseOptions(delimiter=self.sep, newlines_in_values=True)
        return arrow_csv.read_csv(pa.BufferReader(data), reading, parsing, converting)

    def _encode_without_cell_blanks_if_simple(self, text):
        """Return the text as bytes, without blanks before cells.

        None if pandas has to decide.
        """
        foreign = (
            "\0" in text
            or text.startswith("\ufeff")
            or ("\t" in text and self.sep != "\t")
        )
        lone = "\r" in text and text.count("\r") != text.count("\r\n")
        if foreign or lone or self.sep not in ",;\t|":
            return None
        try:
            data = text.encode()
        except UnicodeEncodeError:  # halves of characters
            return None
        if '"' not in text and " " not in text:
            return data
        letters = np.frombuffer(data, np.uint8)
        quotes = _find_quotes_if_around_cells(letters, self.sep)
        if quotes is None or len(quotes) % 2:
            return None
        before = np.append(_NEWLINE_BYTE, letters)
        blanks = np.flatnonzero((letters == _SPACE_BYTE) & (before[:-1] != _SPACE_BYTE))
        first = before[blanks]  # what stands before blanks
        outside = np.searchsorted(quotes, blanks) % 2 == 0
        if (outside & np.isin(first, (10, 13))).any():
            return None
        if not (outside & (first == ord(self.sep))).any():
            return data
        if len(quotes):
            return None
        return re.sub(rb"(?<=[%b]) +" % self.sep.encode(), b"", data)

    def _convert_to_series(self, column, column_index):
        import pandas as pd
        import pyarrow.compute as pc
        from pyarrow import types

        kind = column.type
        if column_index in self.as_text:
            return column.to_pandas()
        if types.is_string(kind):
            texts = column.to_pandas()
            surely = pc.any(pc.match_substring_regex(column, _TEXT_PATTERN)).as_py()
            return texts if surely else infer_column_series(texts, self.decimal)
        if types.is_null(kind):
            return pd.Series(np.full(len(column), np.nan))
        return pd.Series(column.to_numpy())  # whole numbers with holes become float

    # -- by pandas --------------------------------------------------------------------------------

    def _read_frame_and_extra_with_pandas(self, text, named):
        frame, extra = self._parse_frame_and_extra_if_any(text, named, self.as_text)
        lossy = {place for place in frame if _has_rounded_integers(frame[place])}
        if lossy:
            frame, extra = self._parse_frame_and_extra_if_any(
                text, named, self.as_text | lossy
            )
        return frame, extra

    def _parse_frame_and_extra_if_any(self, text, named, as_text):
        import pandas as pd

        options = {
            "sep": self.sep,
            "decimal": self.decimal,
            "header": 0,
            "dtype": dict.fromkeys(as_text, str),
            **_PANDAS_READ_OPTIONS,
            **get_exact_number_options(),
        }
        beyond = self.width
        if not named:
            # so that shorter rows are filled up
            longest = self.sep.join(['""'] * beyond)
            text = f"{longest}\n{text}"
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                frame = pd.read_csv(
                    io.StringIO(text, newline=""),
                    names=range(beyond + 1),
                    usecols=[*self.places, beyond],
                    **options,
                )
                return frame, frame.pop(beyond)
            # Blank lines at the end of a file; or no row but the names, if pandas 2
            # and 3 seek the types of columns by their places among those that are read.
            except (pd.errors.EmptyDataError, IndexError):
                return pd.DataFrame(columns=self.places), None
            # No row has more cells than there are names.
            except pd.errors.ParserError:
                text = io.StringIO(text, newline="")
                return pd.read_csv(
                    text, names=range(beyond), usecols=self.places, **options
                ), None


_PANDAS_READ_OPTIONS = {
    "index_col": False,
    "skipinitialspace": True,
    "low_memory": False,
    "keep_default_na": False,
    "na_values": MISSING_CELL_TEXTS,
}


def _is_same_in_pandas(column):
    """Return whether a column that pyarrow gave a type has it, and these values, for pandas too."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_floating(kind):
        ends = pc.min_max(column).as_py()
        largest = max(abs(ends["min"] or 0.0), abs(ends["max"] or 0.0))
        # The sum is NaN if one of the numbers is.
        is_finite = np.isfinite(pc.sum(column).as_py() or 0.0)
        if not (largest < MAX_EXACT_INTEGER and is_finite):
            return False
        return (
            _has_fraction(column[:_N_FRACTIONAL_PART_CHECK_ROWS])
            or column.null_count > 0
            or _has_fraction(column)
        )
    if types.is_integer(kind):  # which pandas reads as floats if one is missing
        return column.null_count == 0 or pc.max(column).as_py() < MAX_EXACT_INTEGER
    return types.is_string(kind) or types.is_null(kind)


def _has_fraction(column):
    """Return whether some number has a fraction; pandas may read others, such as +1, as whole."""
    values = column.to_numpy()
    return bool((values % 1 != 0).any())


def infer_column_series(column: Any, decimal: str | None) -> Any:
    """Return what a Series of texts means: numbers or booleans if all of them are, else text."""
    import pandas as pd

    codes, texts = pd.factorize(column)
    values = infer_cell_series(
        texts.tolist(), decimal, adds_missing=bool((codes < 0).any())
    )
    return values.take(codes).reset_index(drop=True)  # the last is the missing one


def infer_cell_series(
    texts: Collection[str], decimal: str | None, adds_missing: bool = False
) -> Any:
    """Return what pandas makes of cells, as a Series.

    With `adds_missing` it has a missing value at its end.
    """
    import pandas as pd

    lines = io.StringIO()
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(
        [text] for text in [*texts, *[""] * adds_missing]
    )
    lines.seek(0)
    inferred = pd.read_csv(
        lines,
        header=None,
        names=["value"],
        decimal=decimal or ".",
        keep_default_na=False,
        na_values=[""] if adds_missing else [],
        skip_blank_lines=False,
        **get_exact_number_options(),
    )["value"]
    if _has_rounded_integers(inferred):
        return pd.Series([*texts, None], dtype=object)
    return inferred


def _has_rounded_integers(column):
    """Return whether long whole numbers became floats, because a value is missing."""
    large = column.dtype.kind == "f" and MAX_EXACT_INTEGER <= column.max() < np.inf
    return large and bool(column.isna().any())
