"""The cells of csv text: pyarrow splits and converts whole columns, pandas what it could misread.

What counts is what pandas makes of a block at once. pyarrow vouches for most blocks; where a rule
of the two differs (ragged rows, blanks before quotes, hexadecimal numbers, infinities, dates,
numbers beyond 2^53, booleans), pandas reads the block, or the texts of the column.
"""

import csv
import io
import re
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from .csv_text import exact_numbers, paired_quotes

#: Cells that are missing values.
MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"]
MISSING += ["1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
_EXACT = 2.0**53  # whole numbers below are floats without a loss
_IN_NUMBERS = r"0-9+\-.,\s\vEeIiNnFfTtYy"  # characters of numbers, and below of booleans
_FEW = 1000  # rows that mostly tell
_SURELY_TEXT = rf"[^{_IN_NUMBERS}AaRrUuLlSs]"
_BLANK, _LINE = np.frombuffer(b" \n", np.uint8)


class CsvCells:
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
        self, width: int, places: Sequence[int], sep: str, decimal: str, as_text: Collection[int]
    ) -> None:
        self.width, self.places, self.sep, self.decimal = width, places, sep, decimal
        self.as_text = {*as_text}
        self._unclear = set(as_text)  # columns that pyarrow would give a type that pandas has not

    def frame(self, text: str, named: bool) -> tuple[Any, Any]:
        """A DataFrame of the columns, by their places, and what stands behind the last name.

        `named` says whether the line of names comes first. Raises what pandas raises.
        """
        import pandas as pd

        columns = self._by_arrow(text, named)
        if columns is None:
            return self._by_pandas(text, named)
        return pd.DataFrame(columns), None

    # -- by pyarrow -------------------------------------------------------------------------------

    def _by_arrow(self, text, named):
        """Columns by place; None where pyarrow is not there or may split otherwise than pandas."""
        data = self._plain(text.lstrip("\r\n") if named else text)
        if data is None:
            return None
        if b"0x" in data or b"0X" in data:  # which pyarrow takes for whole numbers
            self._unclear |= {*self.places}
        try:
            table = self._split(data, named)
            unclear = {place for place in self.places if not _is_sure(table[str(place)])}
            if unclear:
                self._unclear |= unclear
                table = self._split(data, named)
        except (ImportError, ValueError):  # pyarrow's own errors are kinds of these
            return None
        return {place: self._column(table[str(place)], place) for place in self.places}

    def _split(self, data, named):
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
            null_values=MISSING,
            strings_can_be_null=True,
            decimal_point=self.decimal,
        )
        parsing = arrow_csv.ParseOptions(delimiter=self.sep, newlines_in_values=True)
        return arrow_csv.read_csv(pa.BufferReader(data), reading, parsing, converting)

    def _plain(self, text):
        """The text as bytes, without blanks before cells; None where only pandas can tell."""
        foreign = "\0" in text or text.startswith("\ufeff") or ("\t" in text and self.sep != "\t")
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
        quotes = paired_quotes(letters, self.sep)
        if quotes is None or len(quotes) % 2:
            return None
        before = np.append(_LINE, letters)
        blanks = np.flatnonzero((letters == _BLANK) & (before[:-1] != _BLANK))
        first = before[blanks]  # what stands before blanks
        outside = np.searchsorted(quotes, blanks) % 2 == 0
        if (outside & np.isin(first, (10, 13))).any():
            return None
        if not (outside & (first == ord(self.sep))).any():
            return data
        return None if len(quotes) else re.sub(rb"(?<=[%b]) +" % self.sep.encode(), b"", data)

    def _column(self, column, place):
        import pandas as pd
        import pyarrow.compute as pc
        from pyarrow import types

        kind = column.type
        if place in self.as_text:
            return column.to_pandas()
        if types.is_string(kind):
            texts = column.to_pandas()
            surely = pc.any(pc.match_substring_regex(column, _SURELY_TEXT)).as_py()
            return texts if surely else meaning_of(texts, self.decimal)
        if types.is_null(kind):
            return pd.Series(np.full(len(column), np.nan))
        return pd.Series(column.to_numpy())  # whole numbers with holes become float

    # -- by pandas --------------------------------------------------------------------------------

    def _by_pandas(self, text, named):
        import pandas as pd

        options = {
            "sep": self.sep,
            "decimal": self.decimal,
            "header": 0,
            "dtype": dict.fromkeys(self.as_text, str),
            **_AS_ARROW,
            **exact_numbers(),
        }
        beyond = self.width
        if not named:
            longest = self.sep.join(['""'] * beyond)  # so that shorter rows are filled up
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
            # Blank lines at the end of a file; or no row but the names, where pandas 2 and 3 seek
            # the types of columns by their places among those that are read.
            except (pd.errors.EmptyDataError, IndexError):
                return pd.DataFrame(columns=self.places), None
            except pd.errors.ParserError:  # so no row has more cells than there are names
                text = io.StringIO(text, newline="")
                return pd.read_csv(text, names=range(beyond), usecols=self.places, **options), None


_AS_ARROW: dict[str, Any] = {
    "index_col": False,
    "skipinitialspace": True,
    "low_memory": False,
    "keep_default_na": False,
    "na_values": MISSING,
}


def _is_sure(column):
    """Whether a column that pyarrow gave a type has it, and these values, for pandas too."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = column.type
    if types.is_floating(kind):
        ends = pc.min_max(column).as_py()
        largest = max(abs(ends["min"] or 0.0), abs(ends["max"] or 0.0))
        if not (largest < _EXACT and np.isfinite(pc.sum(column).as_py() or 0.0)):  # NaN
            return False
        return _has_fraction(column[:_FEW]) or column.null_count > 0 or _has_fraction(column)
    return types.is_integer(kind) or types.is_string(kind) or types.is_null(kind)


def _has_fraction(column):
    """Whether some number is none of those, such as +1, that pandas may call whole."""
    values = column.to_numpy()
    return bool((values % 1 != 0).any())


def meaning_of(column: Any, decimal: str) -> Any:
    """What a Series of texts means: numbers or booleans if all of them are, else text."""
    import pandas as pd

    codes, texts = pd.factorize(column)
    values = typed_texts(texts.tolist(), decimal, hole=bool((codes < 0).any()))
    return values.take(codes).reset_index(drop=True)  # the last is the missing one


def typed_texts(texts: Collection[str], decimal: str | None, hole: bool = False) -> Any:
    """What pandas makes of cells, as a Series; with a missing value at the end if `hole`."""
    import pandas as pd

    lines = io.StringIO()
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows([text] for text in [*texts, *[""] * hole])
    lines.seek(0)
    return pd.read_csv(
        lines,
        header=None,
        names=["value"],
        decimal=decimal or ".",
        keep_default_na=False,
        na_values=[""] if hole else [],
        skip_blank_lines=False,
        **exact_numbers(),
    )["value"]
