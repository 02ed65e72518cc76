"""What a fitted recalibrator keeps of the rows it was fitted to."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from .._kernels._logistic import fit_line
from .._typing import FloatArray, IntArray

#: Numbers in the rows whose mean after the fit is taken: a fit must not wait for predictions.
_ENTRIES = 2**13
_LARGEST = 2.0**53  # of whole numbers that every reader of JSON keeps
_SLOPES = 1e6  # of a line that is no estimate any more
_kept: ContextVar[bool] = ContextVar("_kept", default=True)


@contextmanager
def without_records() -> Iterator[None]:
    """Fits within the block keep no record, such as those of folds, which nobody sees."""
    before = _kept.set(False)
    try:
        yield
    finally:
        _kept.reset(before)


def records_are_kept() -> bool:
    """Whether this is outside of any block `without_records`."""
    return _kept.get()


class _Rows(NamedTuple):
    """Rows of a fit, as `fit_record` takes them."""

    given: FloatArray
    proba: FloatArray
    codes: IntArray | None
    weight: FloatArray


class RecordOnceAsked:
    """`record_`, which is made when somebody asks for it; then it is an attribute like the others.

    Few fits are ever asked. Until then there are copies of at most 8192 numbers of the rows, as
    given and as predicted from; what takes all rows, if they are more, was summed by the fit.
    """

    def __get__(self, model: Any, owner: type | None = None) -> dict[str, Any]:
        settle_record(model)
        if model is None or "record_" not in vars(model):
            raise AttributeError(f"{owner.__name__ if owner else 'object'!r} has no record_")
        return vars(model)["record_"]


def keep_record(model: Any, *rows: Any) -> None:
    """Let `record_` be the one of these rows, arguments of `_recorded`; they are not held."""
    vars(model).pop("record_", None)
    found = _Rows(*rows)
    if found.proba.size > _ENTRIES:
        model._record_later = model._recorded(*found)
        return
    proba = found.proba.copy()
    given = proba if found.given is found.proba else found.given.copy()
    codes = None if found.codes is None else found.codes.copy()
    model._record_later = _Rows(given, proba, codes, found.weight.copy())


def settle_record(model: Any) -> None:
    """Make `record_` of what was kept of the rows: before the map changes, or is written."""
    kept = {} if model is None else vars(model)
    if (later := kept.get("_record_later")) is None:
        return
    record = model._recorded(*later) if isinstance(later, _Rows) else later
    if isinstance(some := record["mean_after"], _Rows):
        moved = model._predict_lifted(some.proba) - np.asarray(some.given)
        after = np.asarray(record["mean_before"]) + _mean(moved, some.weight)
        record["mean_after"] = np.clip(after, 0.0, 1.0).tolist()
    kept["record_"] = record
    kept.pop("_record_later", None)


def fit_record(
    model: Any,
    given: FloatArray,
    proba: FloatArray,
    codes: IntArray | None,
    weight: FloatArray,
    *,
    whole: bool = False,
    moves: bool = True,
) -> dict[str, Any]:
    """The entries of `Recalibrator.record_`; `settle_record` makes the mean of some rows a number.

    Parameters
    ----------
    model : Recalibrator
        Fitted.
    given, proba : ndarray of shape (n, k)
        The rows as the user gave them, and as the method predicts from them.
    codes : ndarray of shape (n,) or None
        None for rows without labels.
    weight : ndarray of shape (n,)
    whole : bool
        Whether the mean afterwards is that of all rows, however many they are. Otherwise, of
        many, what the map adds to the mean is that of some rows, evenly spaced.
    moves : bool
        Whether predictions differ from `given`: otherwise nothing is predicted.
    """
    n, k = proba.shape
    found: dict[str, Any] = {"rows": n}
    if codes is not None:
        found["events"] = [_number(x) for x in _masses(codes, weight, k)]
    before, after = _mean(np.asarray(given), weight).tolist(), None
    most = n if whole else max(_ENTRIES // k, 1)
    if not moves:
        after = before
    elif n <= most:
        after = _mean(model._predict_lifted(proba), weight).tolist()
    else:
        some = np.arange(most) * n // most  # the same for the same rows
        after = _Rows(np.asarray(given)[some], proba[some], None, weight[some])
        found["rows_of_mean_after"] = most
    return found | {"mean_before": before, "mean_after": after}


def with_whole_mean(fitted: Any, proba: FloatArray, weight: FloatArray | None) -> Any:
    """The same object, whose record has the mean afterwards of all rows."""
    if "rows_of_mean_after" in getattr(fitted, "record_", {}):
        after = np.asarray(fitted.predict_proba(proba))
        mean = after.mean(axis=0) if weight is None else _mean(after, weight)
        record = {k: v for k, v in fitted.record_.items() if k != "rows_of_mean_after"}
        fitted.record_ = record | {"mean_after": mean.tolist()}
    return fitted


def line_of(proba: FloatArray, codes: IntArray, weight: FloatArray) -> dict[str, float]:
    """Intercept and slope of log-odds in a logistic regression of the labels; {} without one."""
    with np.errstate(divide="ignore"):
        z = np.log(np.asarray(proba[:, 1])) - np.log(np.asarray(proba[:, 0]))
    inside = np.isfinite(z)
    z, hit, weight = z[inside], codes[inside].astype(float), weight[inside]
    if len(np.unique(z)) < 2 or len(np.unique(hit)) < 2:
        return {}
    (intercept, slope), _ = fit_line(z, hit, weight)
    if not (np.isfinite([intercept, slope]).all() and abs(slope) < _SLOPES):
        return {}
    return {"intercept": float(intercept), "slope": float(slope)}


def _masses(codes, weight, k):
    """The weight of each class; of equal weights without the rounding of a sum."""
    if (weight == weight[0]).all():
        return weight[0] * np.bincount(codes, minlength=k)
    return np.bincount(codes, weights=weight, minlength=k)


def _mean(rows, weight):
    return weight @ rows / weight.sum()


def _number(value):
    return int(value) if value.is_integer() and value <= _LARGEST else float(value)
