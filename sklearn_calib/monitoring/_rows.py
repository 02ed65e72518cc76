"""Batches of a stream: everything is checked before anything is added."""

from datetime import datetime, timezone
from typing import Any, NamedTuple

import numpy as np

from .._kernels._two_class_problems import iter_two_class_splits_and_proba
from .._simplex_array import has_exact_log, log_proba
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray, Multiclass
from .._validation import (
    ALL_CLASSES_HINT,
    check_and_get_common_index,
    check_same_length,
    read_array,
    read_labels,
    read_proba,
    reorder_columns_if_names_match,
    validate_soft_labels,
    warn_column_order,
)
from ..exceptions import InvalidInputError, add_error_context, invalid_input

#: What to do about rows that come after later ones.
TIME_ORDER_HINT = (
    "Time runs backwards: leave out rows that were given before; where labels come late, take the "
    "time at which the label came"
)
_SECOND_CLASS_HINT = ", or the second class of two alone"


class BatchRows(NamedTuple):
    """A checked batch in the order of its times.

    A monitor keeps one stream per two-class problem and group, so rows are reduced to
    log-odds and events here, and carry their group and time, which `Predictions` do not
    have.
    """

    # Logarithms of both probabilities of each problem, of shape (n, n_parallel, 2).
    log_pair: FloatArray
    # Outcomes of shape (n, n_parallel): bool, or float64 shares of soft labels.
    hit: AnyArray
    # The class of each row, (n,); the shares of soft labels, (n, n_classes).
    label: AnyArray
    # The group of each row, of shape (n,).
    group: IntArray
    # Times of shape (n,), float64 or datetime64, and as the caller wrote them.
    time: AnyArray | None
    raw_time: AnyArray | None

    def take(self, rows: Any) -> "BatchRows":
        """Return some of the rows."""
        columns: list[Any] = [
            None if column is None else column[rows] for column in self
        ]
        return BatchRows(*columns)

    def get_time(self, row: int) -> tuple[Any, str | None]:
        """Return the time of a row, or None, and the text that was given for it."""
        time = None if self.time is None else self.time[row]
        return time, self.get_time_text_or_none(row)

    def get_time_text_or_none(self, row: int) -> str | None:
        """Return the text of a time as the caller wrote it; None for floats and dates."""
        value = None if self.raw_time is None else self.raw_time[row]
        if isinstance(value, str):
            return value.strip()
        has_time_zone = getattr(value, "tzinfo", None) is not None
        return (
            str(value) if has_time_zone or isinstance(value, int | np.integer) else None
        )


def read_rows_in_time_order(
    y: ArrayLike,
    y_proba: ArrayLike,
    groups: ArrayLike | None,
    time: ArrayLike | None,
    *,
    classes: AnyArray | None,
    known_groups: AnyArray | None,
    multiclass: Multiclass,
    soft: bool,
) -> tuple[BatchRows, AnyArray]:
    """Read a batch, or one row with a scalar label, as two-class problems with their classes."""
    # `np.ndim` fails for lists of unequal lengths, which get a message further on.
    is_scalar = not isinstance(y, list | tuple) and np.ndim(y) == 0
    is_single = is_scalar and np.ndim(y_proba) <= 1
    if is_single and not isinstance(y, set | dict) and y is not None:
        y = np.reshape(np.asarray(y), 1)
        y_proba = np.reshape(np.asarray(y_proba), (1, -1))
    proba = read_proba(y_proba)
    n_columns = proba.shape[1]
    if classes is None:
        classes = np.arange(n_columns)
    if n_columns != len(classes):
        raise invalid_input(
            expected=f"scores of {len(classes)} classes",
            got=f"{n_columns} columns",
            hint="Pass one column per class" + _SECOND_CLASS_HINT,
        )
    check_and_get_common_index(y, y_proba, groups, time)
    proba = reorder_columns_if_names_match(proba, y_proba, classes)
    if soft:
        label = _read_soft_label_shares(y, proba, classes, y_proba)
    else:
        label = _encode_labels_with_order_warning(y, proba, classes)
    row_indices = np.arange(len(proba))
    hits = []
    pairs = []
    for problem, pair in iter_two_class_splits_and_proba(multiclass, proba):
        pairs.append(compute_exact_log(pair))
        hits.append(
            label[row_indices, problem.target] if soft else label == problem.target
        )
    group = _encode_groups_or_zeros(groups, known_groups, len(proba))
    log_pair = np.stack(pairs, axis=1)
    hit = np.column_stack(hits)
    if time is None:
        return BatchRows(log_pair, hit, label, group, None, None), classes
    with add_error_context("time"):
        moment, raw_time = _read_times_and_given_values(time, len(proba))
    # Rows of the same time keep their order.
    order = np.argsort(moment, kind="stable")
    rows = BatchRows(log_pair, hit, label, group, moment, raw_time)
    return rows.take(order), classes


def _encode_labels_with_order_warning(y, proba, classes):
    """Return the class of each row, of shape (n,)."""
    try:
        _, codes = read_labels(y, classes=classes, input_name="y")
    except InvalidInputError as error:
        if ALL_CLASSES_HINT in error.hint:
            names = read_labels(y, input_name="y")[0].tolist()[:10]
            words = "Name all classes, the one that a single column belongs to as the last: "
            words += f"CalibrationMonitor(classes={names})"
            error.set_fields(hint=f"{words}, or drop those rows")
        raise
    check_same_length(codes, proba)
    warn_column_order(proba, codes, classes, "classes")
    return codes


def _read_soft_label_shares(y, proba, classes, scores):
    """Return the fractions of the classes in each row, of shape (n, n_classes)."""
    shares = np.zeros((len(proba), len(classes)))
    if len(proba):
        rows = validate_soft_labels(
            y,
            None,
            classes,
            n_rows=len(proba),
            scores=scores,
            input_name="y",
        )
        shares[rows.items, rows.codes] = rows.weight
    return shares


def compute_exact_log(proba: FloatArray) -> FloatArray:
    """Compute logarithms of probabilities, -inf for 0."""
    if has_exact_log(proba):
        return log_proba(proba)
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(proba))


def _encode_groups_or_zeros(groups, known_groups, n):
    """Return the place of each row's group among the known ones; reject other groups."""
    if known_groups is None:
        if groups is not None:
            raise invalid_input(
                expected="rows without groups",
                got="groups",
                hint="Pass groups=, the names of all groups, when the monitor is made",
            )
        return np.zeros(n, dtype=np.intp)
    if groups is None:
        raise invalid_input(
            expected="groups=, the group of each row",
            got="None",
            hint="Pass one of them for each row",
        )
    column = read_array([groups] if np.ndim(groups) == 0 else groups, "groups")
    if column.shape != (n,):
        raise invalid_input(
            expected=f"one group per row, {n}",
            got=f"shape {column.shape}",
            hint="Check the rows",
        )
    names, codes = read_labels(column)
    number_by_name = {name: number for number, name in enumerate(known_groups.tolist())}
    for code, name in enumerate(names.tolist()):
        if name not in number_by_name:
            row = np.argmax(codes == code)
            raise invalid_input(
                expected=f"groups among {[*number_by_name]}",
                got=repr(name),
                hint="Name all groups when the monitor is made",
                row=row,
            )
    return np.array([number_by_name[name] for name in names.tolist()])[codes]


# -- times ----------------------------------------------------------------------------------------


def _read_times_and_given_values(time, n):
    """Return times as float64 or datetime64[us], and as they were given; shape (n,)."""
    given_times = np.asarray(time)
    given_times = np.full(n, given_times) if given_times.ndim == 0 else given_times
    if given_times.shape != (n,):
        raise invalid_input(
            expected=f"one time per row, {n}",
            got=f"shape {given_times.shape}",
            hint="Check the rows",
        )
    if given_times.dtype.kind in "iuf":
        times = given_times.astype(np.float64)
    elif given_times.dtype.kind == "M":
        times = given_times.astype("datetime64[us]")
    else:
        dates = [_parse_utc_date_or_nat(value) for value in given_times.tolist()]
        times = np.array(dates, dtype="datetime64[us]")
    # NaT is not finite either.
    is_invalid = ~np.isfinite(times)
    if is_invalid.any():
        row = int(is_invalid.argmax())
        raise invalid_input(
            expected="times that are numbers, dates, or text in ISO form such as 2026-03-01T12:00",
            got=repr(str(given_times[row])),
            hint="Convert them first",
            row=row,
        )
    return times, given_times


def _parse_utc_date_or_nat(value):
    """Convert a date or its text to datetime64 in UTC; NaT if it is not a date."""
    try:
        date = value
        if isinstance(value, str):
            date = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        if getattr(date, "tzinfo", None) is not None:
            date = date.astimezone(timezone.utc).replace(tzinfo=None)
        return np.datetime64(date, "us")
    except (ValueError, TypeError, AttributeError):
        return np.datetime64("NaT", "us")


def time_to_json(moment: Any) -> float | str | None:
    """Convert a time, or None, to a JSON value."""
    if moment is None:
        return None
    return str(moment) if isinstance(moment, np.datetime64) else float(moment)


def time_from_json(time: float | str | None) -> Any:
    """Convert the value of `time_to_json` back to a time."""
    if time is None:
        return None
    return np.datetime64(time, "us") if isinstance(time, str) else np.float64(time)


def format_time(moment: Any) -> float | str:
    """Return a time as it is shown: dates without a clock time, times without empty seconds."""
    if not isinstance(moment, np.datetime64):
        return float(moment)
    text = str(moment)
    for end in (".000000", ":00", "T00:00"):
        text = text.removesuffix(end)
    return text


def check_time_order(
    last_time: Any, last_time_text: str | None, rows: BatchRows, *, strict: bool
) -> None:
    """Reject rows before the last one (`strict`: or with it), and times of another kind.

    `last_time_text` is the text of the last time, if it had one.
    """
    if rows.time is None or last_time is None:
        return
    has_dates = isinstance(last_time, np.datetime64)
    if has_dates != (rows.time.dtype.kind == "M"):
        kinds = ("dates", "numbers") if has_dates else ("numbers", "dates")
        raise invalid_input(
            expected=f"{kinds[0]} as times, as before",
            got=kinds[1],
            hint="Convert them",
        )
    if rows.time[0] < last_time or (strict and rows.time[0] == last_time):
        time_text = last_time_text or format_time(last_time)
        expected = f"rows after {time_text}" if strict else f"rows from {time_text} on"
        raise invalid_input(
            expected=f"{expected}, the time of the last row",
            got=f"one of {rows.get_time_text_or_none(0) or format_time(rows.time[0])}",
            hint=TIME_ORDER_HINT,
        )
