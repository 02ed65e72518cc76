"""Columns of blocks as arrays: numbers, labels, groups; a missing value is told by its row."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._files.tables import FILL, FILL_LABELS, FileTable, check_form, number_column, values_of_text
from .._show import quoted, rows_in_words
from .._typing import AnyArray
from ..canonical import is_missing
from ..exceptions import refuse
from ._input import Coded
from ._parts import Block

_SMALL = 2**16  # numbers below are sorted by their digits
_NO_TIME = np.iinfo(np.int64).min  # of Arrow's ticks: NaT


def number_values(block: Block, name: str) -> AnyArray:
    """A column of numbers; infinity is left to whoever reads them.

    Refuses missing values and text that is no number.
    """
    values = _numbers(block, name)
    if values.dtype.kind == "f":
        _refuse_missing(block, name, np.isnan(values))
    return values


def _numbers(block, name):
    column = block.columns[name]
    if _is_arrow(column):
        from pyarrow import float64, string, types

        kind = column.type
        if types.is_dictionary(kind):
            column = column.dictionary_decode()
            kind = column.type
        _refuse_missing(block, name, column.null_count and column.is_null())
        if types.is_decimal(kind):
            column, kind = column.cast(string()).cast(float64()), float64()  # correctly rounded
        if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
            return column.to_numpy(zero_copy_only=False)
        column = column.to_pandas()
    if isinstance(column, np.ndarray):
        return column
    frame = column.to_frame(name).reset_index(drop=True)
    file = block.where or "the table"
    table = FileTable(frame, file, block.decimal, block.first, block.forms, rows=block.rows)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        if block.of_csv:
            check_form(table, name)
        return column.to_numpy()
    if getattr(column.dtype, "kind", "O") in "fiub":  # nullable
        _refuse_missing(block, name, column.isna().to_numpy())
        return column.to_numpy(dtype=column.dtype.numpy_dtype)
    return number_column(table, name)


def label_values(block: Block, name: str, names: bool) -> AnyArray | Coded:
    """A column of labels; anything but numbers and booleans by its different values.

    The text of a csv file becomes numbers or booleans unless the classes are `names`. Raises
    Refuses missing labels.
    """
    column = block.columns[name]
    if _is_arrow(column):
        from pyarrow import types

        kind = column.type
        if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
            missing = column.null_count and column.is_null()
            _refuse_missing(block, name, missing, "label")
            return column.to_numpy(zero_copy_only=False)
    elif isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        return np.asarray(column)
    labels = coded(block, name, "label")
    if block.of_csv and not names:
        typed = values_of_text(labels.values.tolist(), block.decimal)
        labels = Coded(array_of([*typed.values()]), labels.codes)
    return labels


def raw_column(column: Any) -> AnyArray | tuple[list[Any], AnyArray]:
    """A column of numbers or dates as an array, any other as (its values, the place of each row).

    Missing values are NaN or NaT, or at place -1.
    """
    if _is_arrow(column):
        import pyarrow as pa

        kind = column.type
        if pa.types.is_floating(kind) or pa.types.is_integer(kind):
            return column.to_numpy(zero_copy_only=False)
        if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
            ticks = column.cast("int64").fill_null(_NO_TIME).to_numpy(zero_copy_only=False)
            return ticks.view(f"{'M' if pa.types.is_timestamp(kind) else 'm'}8[{kind.unit}]")
        pieces = column.dictionary_encode()
        values = pieces.dictionary.to_pylist()
        codes = pieces.indices.cast("int64").fill_null(-1).to_numpy()
    elif isinstance(column, np.ndarray):
        if column.dtype.kind in "fiumM":
            return column
        values, codes = _coded_objects(column)
    else:
        if getattr(column.dtype, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        if column.dtype.kind in "fiumM":
            plain = isinstance(column.dtype, np.dtype)
            return column.to_numpy() if plain else column.to_numpy(float, na_value=np.nan)
        values, codes = _coded_objects(column)
    absent = np.array([*(is_missing(value) for value in values), True])
    if not absent[:-1].any():
        return values, codes
    place = np.append(np.where(absent[:-1], 0, np.cumsum(~absent[:-1])), 0) - 1
    return [value for value, hole in zip(values, absent, strict=False) if not hole], place[codes]


def coded(block: Block, name: str, what: str | None = "value") -> Coded:
    """A column by its different values.

    Refuses missing ones, as a missing `what`; where that is None, they are None.
    """
    column = block.columns[name]
    if _is_arrow(column):
        pieces = column.dictionary_encode()
        values, codes = pieces.dictionary.to_pylist(), pieces.indices
        codes = codes.cast("int64").fill_null(-1).to_numpy()
    elif isinstance(column, np.ndarray) and column.dtype.kind != "O":
        found, codes = np.unique(column, return_inverse=True)
        values = found.tolist()
    else:
        values, codes = _coded_objects(column)
    absent = np.array([*(is_missing(value) for value in values), True])
    missing = absent[codes]
    if what is None and missing.any():
        holed = np.empty(len(values) + 1, dtype=object)
        holed[:-1] = values
        holed[-1] = None
        return Coded(holed, np.where(missing, len(values), codes))
    _refuse_missing(block, name, missing.any() and missing, what)
    return Coded(array_of(values), codes)


def _coded_objects(column):
    if hasattr(column, "iloc"):
        import pandas as pd

        codes, found = pd.factorize(column)
        return found.tolist(), codes
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(value, len(places)) for value in column], dtype=np.intp)
    return [*places], codes


def array_of(values: list[Any]) -> AnyArray:
    """Values as numpy reads them, or as they are where it would make text of all of them."""
    if len({type(value) for value in values}) == 1 and isinstance(values[0], str | int | float):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def complete(block: Block, names: Sequence[str]) -> tuple[Block, AnyArray]:
    """The rows of a block that miss no value of these columns; the places of the others."""
    keep = np.ones(block.n_rows, dtype=bool)
    for name in names:
        keep &= ~_missing(block.columns[name])
    if keep.all():
        return block, np.empty(0, dtype=np.intp)
    columns = {name: _filtered(column, keep) for name, column in block.columns.items()}
    rows = np.flatnonzero(keep)
    return block._replace(columns=columns, n_rows=len(rows), rows=rows), np.flatnonzero(~keep)


def _missing(column):
    if _is_arrow(column):
        import pyarrow.compute as pc

        return pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    if hasattr(column, "isna"):
        return column.isna().to_numpy()
    if column.dtype.kind in "fc":
        return np.isnan(column)
    if column.dtype.kind == "O":
        return np.array([is_missing(value) for value in column], dtype=bool)
    return np.zeros(len(column), dtype=bool)


def _filtered(column, keep):
    if _is_arrow(column):
        import pyarrow as pa

        return column.filter(pa.array(keep))
    return column[keep]


def grouped(block: Block, by: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], AnyArray | None]]:
    """(key, rows of the block) of each group that the block has; rows None are all."""
    if not by:
        yield (), None
        return
    columns = [coded(block, name, None) for name in by]
    code, size = columns[0].codes, len(columns[0].values)
    for column in columns[1:]:
        code, size = code * len(column.values) + column.codes, size * len(column.values)
        if size > _SMALL:
            code = np.unique(code, return_inverse=True)[1]
            size = int(code.max(initial=0)) + 1
    order = np.argsort(code.astype(np.uint16) if size <= _SMALL else code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=1))
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        if start == end:
            continue
        rows = order[start:end]
        key = tuple(_plain_value(column.values[column.codes[rows[0]]]) for column in columns)
        yield key, rows


def _plain_value(value):
    return value.item() if isinstance(value, np.generic) else value


def whole_frame(block: Block, names: Sequence[str], whole: str | None) -> Any:
    """Columns as a pandas DataFrame; the one that is `whole` has no missing value."""
    import pandas as pd

    if whole is not None:
        _refuse_missing(block, whole, _missing(block.columns[whole]), "group")
    columns = {name: block.columns[name] for name in names}
    arrays = {
        name: column.to_pandas() if _is_arrow(column) else column
        for name, column in columns.items()
    }
    return pd.DataFrame(
        {
            name: array.reset_index(drop=True) if hasattr(array, "iloc") else array
            for name, array in arrays.items()
        }
    )


def digests(frame: Any) -> list[AnyArray]:
    """A number for each value of each column of a frame: equal where the values are.

    Numbers in text are numbers, as if the column had been read at once.
    """
    return [_digest(frame[name]) for name in frame]


def _digest(column):
    import pandas as pd

    if column.dtype.kind in "iuf" and isinstance(column.dtype, np.dtype):
        numbers = column.to_numpy(dtype=np.float64) + 0.0
        return np.where(np.isnan(numbers), np.uint64(0), numbers.view(np.uint64))
    codes, values = pd.factorize(column)
    texts = pd.Series([str(value) for value in values], dtype=object)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    found = pd.util.hash_array(texts.to_numpy())
    found = np.where(np.isnan(numbers), found, (numbers + 0.0).view(np.uint64))
    return np.append(found, np.uint64(0))[codes]  # the last is that of a missing value


def _refuse_missing(block, name, missing, what="value"):
    if not np.any(missing):
        return
    places = rows_in_words([block.row(place) for place in np.flatnonzero(np.asarray(missing))])
    where = f" of {block.where}" if block.where else ""
    got = f"nan in {places} of column {quoted(name)}{where}"
    cure = FILL_LABELS if what == "label" else FILL
    refuse("", f"a {what} in every row", got, cure)


def _is_arrow(column):
    return type(column).__module__.startswith("pyarrow")
