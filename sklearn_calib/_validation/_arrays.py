"""Array-likes and tables of every library as numpy arrays; no missing value is lost on the way."""

from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from .._show import quote_text
from .._sklearn_compat import get_array_namespace_if_dispatched, to_numpy
from .._typing import AnyArray
from ..exceptions import invalid_input

_NUMBER_TYPES = (Real, Decimal, np.bool_)
_MISSING_TYPE_NAMES = ("NoneType", "NAType", "NaTType", "MaskedConstant")
_CONVERSION_HINT = "Convert the columns first, for instance with .astype(float)"


def collect_lazy_frame(values: Any) -> Any:
    """Return a polars LazyFrame as a table; return anything else unchanged."""
    lazy = type(values).__name__ == "LazyFrame" and type(values).__module__.startswith(
        "polars"
    )
    return values.collect() if lazy else values


def read_array(values: object, what: str) -> AnyArray:
    """Convert anything that numpy can read to an array.

    Tensors are copied from their device.

    Raises TypeError for what is not an array (a set, a generator, a sparse matrix) and
    ValueError for masked entries and rows of different lengths; `what` names the values
    in the message.
    """
    values = collect_lazy_frame(values)
    if sparse.issparse(values):
        raise invalid_input(
            expected=f"a dense array of {what}",
            got="a sparse matrix",
            hint="Call .toarray() on it first",
            error=TypeError,
        )
    if isinstance(values, np.ma.MaskedArray):
        masked = np.argwhere(np.ma.getmaskarray(values))
        if len(masked):
            row = masked[0][0] if values.ndim else None
            raise invalid_input(
                expected=f"{what} without masked entries",
                got="a masked entry",
                hint="Drop those rows, or fill them with .filled(value)",
                row=row,
            )
    try:
        xp = get_array_namespace_if_dispatched(values)
        raw = np.asarray(values) if xp is None else to_numpy(values, xp)
    except Exception as error:
        # Each array library raises its own exceptions.
        reason = str(error).partition("\n")[0].rstrip(".")[:120]
        hint = "Turn it into a numpy array first"
        # A tensor on a GPU, with a gradient, or in half precision.
        if hasattr(values, "device"):
            hint = (
                "Copy it to the host, for a tensor with .detach().float().cpu(); or call "
                "sklearn.set_config(array_api_dispatch=True): maps that are arithmetic then stay "
                "on the device, and everything else copies by itself"
            )
        raise invalid_input(
            expected=f"an array of {what} with rows of one length",
            got=f"{_name_type_with_article(values)} that numpy cannot read ({reason})",
            hint=hint,
        ) from error
    # JAX passes bfloat16 and float8 as such arrays.
    if raw.dtype.kind == "V" and "float" in raw.dtype.name:
        raw = raw.astype(np.float32)
    if raw.ndim == 0 and raw.dtype.kind in "OUSTV":
        got = "None" if values is None else _name_type_with_article(values)
        raise invalid_input(
            expected=f"an array of {what}",
            got=got,
            hint="Pass a list or an array",
            error=TypeError,
        )
    return raw


def read_numeric_array(values: object, what: str) -> AnyArray:
    """Convert real numbers to an array of a numeric dtype; a missing entry becomes NaN.

    Booleans, ``Decimal``, ``Fraction`` and the nullable types of pandas are numbers
    too. Raises TypeError for text, complex numbers, dates and records, as `read_array`
    for the rest.
    """
    raw = read_array(values, what)
    if raw.dtype.kind == "O" and raw.size:
        return _convert_objects_to_floats_with_nan(raw, what)
    if raw.dtype.kind not in "biuf" and raw.size:
        raise _make_non_numeric_entry_error(what, f"dtype {raw.dtype}")
    return raw


def _convert_objects_to_floats_with_nan(raw, what):
    """Convert an array of Python objects to float64; missing values become NaN."""
    kinds = set(map(type, raw.flat))
    wrong = {
        cell_type
        for cell_type in kinds
        if not issubclass(cell_type, _NUMBER_TYPES)
        and cell_type.__name__ not in _MISSING_TYPE_NAMES
    }
    if wrong:
        place = next(
            index for index, value in np.ndenumerate(raw) if type(value) in wrong
        )
        hint = _CONVERSION_HINT
        if isinstance(raw[place], list | tuple | np.ndarray):
            hint = "Pass one column per class, for instance np.stack(p)"
        raise _make_non_numeric_entry_error(
            what, repr(raw[place])[:60], *place[:2], hint=hint
        )
    if any(kind.__name__ in _MISSING_TYPE_NAMES for kind in kinds):
        missing = np.reshape(
            [is_missing_or_infinite(value) for value in raw.flat], raw.shape
        )
        raw = np.where(missing, np.nan, raw)
    try:
        return raw.astype(float)
    except (ValueError, OverflowError) as error:
        raise _make_non_numeric_entry_error(
            what, f"a number that float64 cannot hold ({error})"
        ) from error


def _make_non_numeric_entry_error(
    what, got, row=None, column=None, *, hint=_CONVERSION_HINT
):
    """Return the error for an entry that is not a number."""
    if what == "labels":
        hint = "Pass 1 where a row has the label, else 0, for instance (y == 'yes').astype(int)"
    return invalid_input(
        expected=f"numbers as {what}",
        got=got,
        hint=hint,
        error=TypeError,
        row=row,
        column=column,
    )


def is_missing_or_infinite(value: object) -> bool:
    """Return whether an entry of an object array is missing: None, NA, NaT, NaN or infinity."""
    if isinstance(value, str | bytes | int):
        return False
    if type(value).__name__ in _MISSING_TYPE_NAMES:
        return True
    if isinstance(value, Decimal):
        return not value.is_finite()
    if isinstance(value, float | np.floating):
        return not np.isfinite(value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _name_type_with_article(value):
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


def iter_named_columns(groups: Any) -> Iterator[tuple[object, Any]]:
    """Iterate over (name, values) of the columns of any kind of table."""
    if isinstance(groups, dict):
        yield from groups.items()
    elif hasattr(groups, "iloc"):
        # Column names of pandas may repeat.
        if groups.ndim == 1:
            yield ("group" if groups.name is None else groups.name), groups
        else:
            if not groups.columns.is_unique:
                twice = groups.columns[groups.columns.duplicated()][0]
                raise invalid_input(
                    expected="different names of columns",
                    got=f"{quote_text(twice)} twice",
                    hint="Rename them",
                )
            yield from (
                (name, groups.iloc[:, i]) for i, name in enumerate(groups.columns)
            )
    elif hasattr(groups, "column_names"):
        # A pyarrow table.
        yield from ((name, groups[name].to_numpy()) for name in groups.column_names)
    elif hasattr(groups, "columns"):
        # A polars frame.
        yield from ((name, groups[name].to_numpy()) for name in groups.columns)
    else:
        values = read_array(convert_list_to_object_array(groups), "group values")
        if values.ndim not in (1, 2):
            raise invalid_input(
                expected="groups as a table",
                got=f"shape {values.shape}",
                hint="Pass one column per group",
            )
        named = getattr(groups, "name", None) or "group"
        table = {named: values} if values.ndim == 1 else dict(enumerate(values.T))
        for name, column in table.items():
            yield (f"column {name}" if values.ndim == 2 else name), column


def convert_list_to_object_array(values: object) -> object:
    """Convert a list to an array of its entries.

    Numpy would convert NaN beside text to text.
    """
    if isinstance(values, list | tuple):
        return np.array(values, dtype=object)
    return values


def convert_dates_to_numpy_if_any(values: AnyArray) -> AnyArray:
    """Convert dates, times and durations to those of numpy in microseconds.

    Keep other values.

    Times with a zone, and dates of Python, come as objects; the former are given in
    UTC.
    """
    if values.dtype.kind in "mM":
        return values.astype(f"{values.dtype.kind}8[us]")
    if values.dtype.kind != "O" or values.ndim != 1:
        return values
    is_known = np.array(
        [not is_missing_or_infinite(value) for value in values], dtype=bool
    )
    if not is_known.any() or not all(
        isinstance(value, date) for value in values[is_known]
    ):
        return values
    dates = np.full(len(values), np.datetime64("NaT", "us"), "M8[us]")
    dates[is_known] = [_convert_to_numpy_utc(value) for value in values[is_known]]
    return dates


def _convert_to_numpy_utc(value):
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return np.datetime64(value, "us")


def check_names_differ(table: object) -> None:
    """Raise ValueError if two columns of a table have one name."""
    names = [*map(str, getattr(table, "columns", ()))]
    if len(set(names)) < len(names):
        raise invalid_input(
            expected="columns of different names",
            got=str(names[:10]),
            hint="Rename the columns, or pass X.to_numpy()",
        )
