"""What a fitted recalibrator keeps of the rows it was fitted to."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .._kernels._calibration_line import fit_line
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


def fit_record(
    model: Any,
    given: FloatArray,
    proba: FloatArray,
    codes: IntArray | None,
    weight: FloatArray,
    whole: bool = False,
    moves: bool = True,
) -> dict[str, Any]:
    """The entries of `Recalibrator.record_`.

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
    before = _mean(np.asarray(given), weight)
    most = n if whole else max(_ENTRIES // k, 1)
    if not moves:
        after = before
    elif n <= most:
        after = _mean(model._predict_lifted(proba), weight)
    else:
        kept = np.arange(most) * n // most  # the same for the same rows
        moved = model._predict_lifted(proba[kept]) - np.asarray(given)[kept]
        after = np.clip(before + _mean(moved, weight[kept]), 0.0, 1.0)
        found["rows_of_mean_after"] = most
    return found | {"mean_before": before.tolist(), "mean_after": after.tolist()}


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
    """The weight of each class; several times as fast where all rows have one weight."""
    if not (weight == weight[0]).all():
        return np.bincount(codes, weights=weight, minlength=k)
    if k > 2:
        return weight[0] * np.bincount(codes, minlength=k)
    hits = np.count_nonzero(codes)
    return weight[0] * np.array([len(codes) - hits, hits])


def _mean(rows, weight):
    return weight @ rows / weight.sum()


def _number(value):
    return int(value) if value.is_integer() and value <= _LARGEST else float(value)
