"""Array-likes of every library become numpy arrays, and no missing value is lost on the way."""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from .._sklearn_compat import array_namespace, host_array
from .._typing import AnyArray
from ..exceptions import refuse

_NUMBERS = (Real, Decimal, np.bool_)
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")


def collected(values: Any) -> Any:
    """A polars LazyFrame as the table that it stands for; anything else as it is."""
    lazy = type(values).__name__ == "LazyFrame" and type(values).__module__.startswith("polars")
    return values.collect() if lazy else values


def read_array(values: object, what: str, where: str) -> AnyArray:
    """Anything that numpy can read, as a plain array; tensors are copied from their device.

    Raises TypeError for what is no array (a set, a generator, a sparse matrix) and ValueError for
    masked entries and rows of different lengths; `what` names the values in the message.
    """
    values = collected(values)
    if sparse.issparse(values):
        rule, cure = f"a dense array of {what}", "Call .toarray() on it first"
        refuse(where, rule, "a sparse matrix", cure, error=TypeError)
    if isinstance(values, np.ma.MaskedArray):
        masked = np.argwhere(np.ma.getmaskarray(values))
        if len(masked):
            row = masked[0][0] if values.ndim else None
            cure = "Drop those rows, or fill them with .filled(value)"
            refuse(where, f"{what} without masked entries", "a masked entry", cure, row=row)
    try:
        xp = array_namespace(values)
        raw = np.asarray(values) if xp is None else host_array(values, xp)
    except Exception as error:  # each library of arrays raises its own kinds
        said = str(error).partition("\n")[0].rstrip(".")[:120]
        cure = "Turn it into a numpy array first"
        if hasattr(values, "device"):  # of a GPU, or part of a gradient, or of half precision
            cure = (
                "Copy it to the host, for a tensor with .detach().float().cpu(); or call "
                "sklearn.set_config(array_api_dispatch=True): maps that are arithmetic then stay "
                "on the device, and everything else copies by itself"
            )
        refuse(
            where,
            f"an array of {what} with rows of one length",
            f"{_a(values)} that numpy cannot read ({said})",
            cure,
        )
    if raw.dtype.kind == "V" and "float" in raw.dtype.name:  # of JAX: bfloat16, float8
        raw = raw.astype(np.float32)
    if raw.ndim == 0 and raw.dtype.kind in "OUSTV":
        got = "None" if values is None else _a(values)
        refuse(where, f"an array of {what}", got, "Pass a list or an array", error=TypeError)
    return raw


def read_numbers(values: object, what: str, where: str) -> AnyArray:
    """Real numbers as an array of a numeric dtype; a missing entry becomes NaN.

    Booleans, ``Decimal``, ``Fraction`` and the nullable types of pandas are numbers too. Raises
    TypeError for text, complex numbers, dates and records, as `read_array` for the rest.
    """
    raw = read_array(values, what, where)
    if raw.dtype.kind == "O" and raw.size:
        return _numbers_of_objects(raw, what, where)
    if raw.dtype.kind not in "biuf" and raw.size:
        _refuse_numbers(where, what, f"dtype {raw.dtype}")
    return raw


def _numbers_of_objects(raw, what, where):
    kinds = set(map(type, raw.flat))
    wrong = {t for t in kinds if not issubclass(t, _NUMBERS) and t.__name__ not in _MISSING}
    if wrong:
        place = next(index for index, value in np.ndenumerate(raw) if type(value) in wrong)
        _refuse_numbers(where, what, repr(raw[place])[:60], *place[:2])
    if any(kind.__name__ in _MISSING for kind in kinds):
        missing = np.reshape([is_missing(value) for value in raw.flat], raw.shape)
        raw = np.where(missing, np.nan, raw)
    try:
        return raw.astype(np.float64)
    except (ValueError, OverflowError) as error:
        _refuse_numbers(where, what, f"a number that float64 cannot hold ({error})")


def _refuse_numbers(where, what, got, row=None, column=None):
    cure = "Convert the columns first, for instance with .astype(float)"
    if what == "labels":
        cure = "Pass 1 where a row has the label, else 0, for instance (y == 'yes').astype(int)"
    refuse(where, f"numbers as {what}", got, cure, error=TypeError, row=row, column=column)


def is_missing(value: object) -> bool:
    """Whether an entry of an object array says "nothing here": None, NA, NaT, NaN or infinity."""
    if isinstance(value, str | bytes | int):
        return False
    if type(value).__name__ in _MISSING:
        return True
    if isinstance(value, Decimal):
        return not value.is_finite()
    if isinstance(value, float | np.floating):
        return not np.isfinite(value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _a(value):
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"
