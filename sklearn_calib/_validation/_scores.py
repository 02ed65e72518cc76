"""Scores become rows on the simplex; of logits, rows of differences that are finite."""

from collections.abc import Sized
from typing import Literal

import numpy as np

from .._argument_checks import validate_count
from .._simplex_array import (
    SimplexArray,
    apply_softmax_or_sigmoid,
    attach_log_proba,
    get_absent_option_mask,
    get_exact_log,
    iter_row_blocks,
)
from .._typing import AnyArray, ArrayLike, FloatArray
from ..exceptions import add_error_context, invalid_combination, invalid_input
from ._arrays import read_numeric_array
from ._device import MAX_ABS_LOGIT, read_device_scores
from ._rounded import (
    LOGITS_HINT,
    get_sum_tolerance,
    make_row_sum_hint,
    warn_rounded_rows,
)

# Arrays up to this size are checked in one pass first.
_MAX_QUICK_CHECK_ENTRIES = 1 << 16
# Up to so many columns the order of addition hardly matters.
_MAX_QUICK_SUM_COLUMNS = 32
# Rows whose sum differs from 1 by more are normalised.
MAX_KEPT_ROW_SUM_ERROR = 1e-15


def canonical_proba(
    scores: ArrayLike,
    *,
    kind: Literal["proba", "logits"] = "proba",
    n_classes: int | None = None,
    tolerance: float | None = None,
    absent: Literal["nan"] | None = None,
) -> FloatArray:
    """Turn scores (probabilities or logits) into a checked array whose rows sum to 1.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
        One column per class, in the order of the sorted labels. A single column, or one
        dimension, is the score of the *second* class: its probability with
        ``kind="proba"``, its log-odds (a ``decision_function``) with ``kind="logits"``.
        Lists, numpy arrays, pandas, polars and pyarrow tables of any real numeric type
        are accepted (also ``Decimal`` and ``Fraction``) and never modified.
    kind : {"proba", "logits"}, default="proba"
        What the scores are. With ``"logits"`` the softmax is taken (the sigmoid for one
        column).
    n_classes : int, default=None
        The number of classes expected, if known.
    tolerance : float in [0, 1), default=None
        How far the sum of a row of probabilities may be from 1; each row is then
        divided by its sum. By default what rounding explains, in everything that takes
        probabilities: 1e-6, which is rounding in float32; for float16 arrays of k
        columns 4e-3, or ``1e-3 * sqrt(k)`` if that is more; and, with a
        `CalibrationWarning`, ``k / 2 * 10**-d`` (below 1) if all entries have at
        most d = 2, ..., 6 decimals, as for float16 if all are such numbers, and 1e-2
        if they are bfloat16 numbers (for a tensor of that type without the warning).
    absent : {"nan"}, default=None
        "nan": rows have different options, as questions of three to five choices do,
        and NaN stands for an option that a row does not have. Its probability is 0 and
        stays 0; no floor raises it. By default NaN is rejected.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes), float64
        Finite, in [0, 1], rows summing to 1 within 1e-15. For logits, a `SimplexArray`,
        which also carries the logarithms without underflow; with NaN and `absent`, one
        that marks the options a row does not have, for "temperature", "identity",
        "auto" (a mixture of these two), `log_loss`, `brier_loss`, accuracy, the
        calibration errors of the largest probability, and `calibration_report`. Methods
        that need the logarithms of all classes reject it. For a tensor, while
        scikit-learn dispatches (``sklearn.set_config(array_api_dispatch=True)``), an
        object that holds it, on its device and without a copy: give it to a
        recalibrator. It is checked when it is used.

    Raises
    ------
    TypeError
        Sparse, text, complex or date input, and what is not an array: a set, a generator.
    ValueError
        Empty, more than two dimensions, masked, missing or infinite, negative, above 1,
        rows of different lengths, or rows whose sum is farther than `tolerance` from 1.
        With `absent` a row without any option, and fewer than two columns.

    Warns
    -----
    CalibrationWarning
        Rows were rounded to decimals, half precision or bfloat16, and divided by their
        sums.

    Notes
    -----
    Cost: O(n_samples * n_classes), in blocks of rows: nothing of the size of the table
    is made beside the result (two such arrays for logits). float32 and float16 are
    raised to float64 exactly, so measures are those of the numbers that came, computed
    in float64: a score stored in float32 is up to 6e-8 of itself (float16: 5e-4) from
    the one before, which moves a measure by about as much, and across the edge of a bin
    or a threshold that it stood at. The result is accepted wherever probabilities are,
    so scores that need a tolerance are repaired once:
    ``recalibrator.fit(canonical_proba(scores, tolerance=0.01), y)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib import canonical_proba
    >>> canonical_proba([0.25, 0.5])
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> canonical_proba([[0.0, 0.0, 0.0]], kind="logits").round(3).tolist()
    [[0.333, 0.333, 0.333]]
    >>> canonical_proba([[0.33, 0.33, 0.33]], tolerance=0.015).round(3).tolist()  # no warning
    [[0.333, 0.333, 0.333]]
    >>> canonical_proba([[0.5, 0.5, np.nan], [0.25, 0.25, 0.5]], absent="nan").tolist()
    [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]
    """
    held = None
    if absent is None and isinstance(kind, str) and kind in ("proba", "logits"):
        with add_error_context("scores"):
            held = read_device_scores(scores, kind, read_proba, tolerance)
            if held is not None:
                return _check_columns(held, n_classes)
    return read_proba(
        scores,
        kind=kind,
        n_classes=n_classes,
        tolerance=tolerance,
        absent=absent,
        input_name="scores",
    )


def read_proba(
    scores: ArrayLike,
    *,
    kind: Literal["proba", "logits"] = "proba",
    n_classes: int | None = None,
    tolerance: float | None = None,
    absent: Literal["nan"] | None = None,
    input_name: str = "y_proba",
    first: int = 0,
) -> FloatArray:
    """Return the result of `canonical_proba` as an array of numpy, for all kinds of scores.

    Errors name the argument `input_name`; the first row has the number `first`.
    """
    if not isinstance(kind, str) or kind not in ("proba", "logits"):
        raise invalid_input(
            "kind",
            expected="kind 'proba' or 'logits'",
            got=repr(kind),
            hint="Choose what the scores are",
        )
    if n_classes is not None and type(n_classes) is not int:
        n_classes = validate_count(n_classes, "n_classes")
    if tolerance is not None:
        _check_tolerance(tolerance, kind)
    sound = (
        _read_proba_if_few_valid_rows(scores, kind)
        if tolerance is absent is None
        else None
    )
    if sound is not None and n_classes in (None, sound.shape[1]):
        return sound
    if absent is not None:
        if not isinstance(absent, str) or absent != "nan":
            raise invalid_input(
                "absent",
                expected="absent 'nan' or None",
                got=repr(absent),
                hint="Mark such options with NaN",
            )
        return _read_scores_with_nan_as_absent(
            scores,
            kind,
            n_classes,
            tolerance,
            input_name,
            first,
        )
    with add_error_context(input_name):
        held = read_device_scores(scores, kind, read_proba, tolerance)
        if held is not None:
            return _check_columns(held.to_numpy_proba(first), n_classes)
        if kind == "proba":
            table = read_proba_keeping_single_column(
                scores, tolerance=tolerance, input_name=input_name, first=first
            )
            return _check_columns(add_first_class_column_if_single(table), n_classes)
        return _check_columns(
            apply_softmax_or_sigmoid(_read_logit_table(scores, first)), n_classes
        )


def _read_proba_if_few_valid_rows(scores, kind):
    """Return the result for a few valid rows of floats at once.

    None for all other input.
    """
    if type(scores) is SimplexArray and kind == "proba":
        return None if scores._log is scores._absent is None else scores
    # Single rows are common in production, where the full checks would take most of the
    # time.
    few = type(scores) is np.ndarray and 0 < scores.size <= _MAX_QUICK_CHECK_ENTRIES
    if not few or scores.dtype != np.float64 or scores.ndim not in (1, 2):
        return None
    if kind == "logits":
        # The comparison is false for NaN.
        sound = np.abs(scores).max() <= MAX_ABS_LOGIT
        return (
            apply_softmax_or_sigmoid(scores.reshape(len(scores), -1)) if sound else None
        )
    # Both comparisons are false for NaN.
    if not (scores.min() >= 0 and scores.max() <= 1):
        return None
    if scores.ndim == 1 or scores.shape[1] == 1:
        return add_first_class_column_if_single(scores.reshape(-1, 1))
    errors = np.abs(np.einsum("ij->i", scores) - 1.0)
    return scores if errors.max() <= MAX_KEPT_ROW_SUM_ERROR else None


def _read_scores_with_nan_as_absent(
    scores, kind, n_classes, tolerance, input_name, first
):
    """Read rows of different options: missing entries get the probability 0 and a mark."""
    if isinstance(scores, SimplexArray):
        return _check_columns(scores, n_classes)
    with add_error_context(input_name):
        table = _read_numeric_table(scores)
        nothing = np.isnan(table.astype(float, copy=False))
        if table.shape[1] == 1:
            raise invalid_input(
                expected="several columns of scores with absent",
                got="one",
                hint="Pass one column for each option",
            )
        empty = np.flatnonzero(nothing.all(axis=1))
        if len(empty):
            raise invalid_input(
                expected="an option in every row",
                got="none",
                hint="Drop or repair those rows first",
                row=first + empty[0],
            )
        # The filler is so far below the other logits that the softmax does not change
        # their logarithms.
        if kind == "logits":
            lowest = np.nanmin(table)
            highest = np.nanmax(table)
            if not (np.isfinite(lowest) and np.isfinite(highest)):
                # Infinite logits are rejected below with their position.
                lowest = 0.0
                highest = 0.0
            filler = float(lowest) - 800.0 - (float(highest) - float(lowest))
        else:
            filler = 0.0
        table = np.where(nothing, filler, table.astype(float, copy=False))
    proba = read_proba(
        table,
        kind=kind,
        n_classes=n_classes,
        tolerance=tolerance,
        first=first,
    )
    if not nothing.any():
        return proba
    return attach_log_proba(proba, get_exact_log(proba), nothing)


def read_proba_keeping_single_column(
    scores: ArrayLike,
    *,
    tolerance: float | None = None,
    input_name: str = "y_proba",
    first: int = 0,
) -> FloatArray:
    """Return what `read_proba` does, but keep a single column single."""
    if isinstance(scores, SimplexArray) and (
        scores._log is not None or scores._absent is not None
    ):
        return scores
    with add_error_context(input_name):
        held = read_device_scores(scores, "proba", read_proba, tolerance)
        if held is not None:
            rows = held.to_numpy_proba(first)
            return rows[:, 1:] if held.shape[1] == 1 and held.kind == "proba" else rows
        return _check_and_normalise_proba(_read_numeric_table(scores), tolerance, first)


def add_first_class_column_if_single(proba: FloatArray) -> FloatArray:
    """Return the probabilities of both classes if only those of the second are given."""
    if proba.shape[1] > 1:
        return proba
    pair = np.empty((len(proba), 2))
    np.subtract(1.0, proba[:, 0], out=pair[:, 0])
    pair[:, 1] = proba[:, 0]
    return pair


def read_logits_by_class(
    scores: ArrayLike, *, input_name: str = "y_proba", first: int = 0
) -> FloatArray:
    """Read logits as an array with one column per class, without taking the softmax.

    For computations that need only differences of logits; the rules are those of
    `canonical_proba` with ``kind="logits"``. An array of float32 or float64 is not
    copied.
    """
    with add_error_context(input_name):
        table = _read_logit_table(scores, first)
    return table if table.shape[1] > 1 else np.hstack([np.zeros_like(table), table])


def _read_logit_table(scores, first=0):
    """Read logits as a table of float32 or float64, and raise an error for huge ones."""
    table = _read_numeric_table(scores)
    if table.dtype != np.float32:
        table = table.astype(float, copy=False)
    hint = "For log-probabilities with -inf pass their exponentials with kind='proba'"
    lowest, highest = _get_finite_range(table, hint, first)
    largest = max(highest, -lowest)
    if largest > MAX_ABS_LOGIT:
        raise invalid_input(
            expected=f"logits of size at most {MAX_ABS_LOGIT:g}",
            got=f"{largest:g}",
            hint="Divide all logits by one constant",
        )
    return table


def _get_finite_range(table, hint, first=0):
    """Return the smallest and largest entry.

    Reject NaN and infinity. Row 0 is called `first`.
    """
    lowest = np.inf
    highest = -np.inf
    for block in iter_row_blocks(table):
        block_values = table[block]
        low = float(block_values.min())
        high = float(block_values.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            row, column = np.argwhere(~np.isfinite(block_values))[0]
            raise invalid_input(
                expected="finite scores",
                got=f"{block_values[row, column]}",
                hint=hint,
                row=first + block.start + row,
                column=column,
            )
        lowest = min(lowest, low)
        highest = max(highest, high)
    return lowest, highest


def _check_tolerance(tolerance, kind):
    """Raise an error if a tolerance is not in [0, 1) or is not for probabilities."""
    if kind != "proba":
        raise invalid_combination(
            "tolerance", "kind='logits'", hint="Leave tolerance out"
        )
    number = isinstance(tolerance, int | float | np.number) and not isinstance(
        tolerance, bool
    )
    if not number or not 0 <= tolerance < 1:
        raise invalid_input(
            "tolerance",
            expected="a tolerance in [0, 1)",
            got=repr(tolerance),
            hint="Give the largest distance of a row's sum from 1, for instance 0.01",
        )


def _read_numeric_table(scores: ArrayLike) -> AnyArray:
    """Read any array-like as a two-dimensional array of numbers in its own dtype."""
    raw = read_numeric_array(scores, "scores")
    if raw.ndim not in (1, 2):
        raise invalid_input(
            expected="one or two dimensions of scores",
            got=f"{raw.ndim} dimensions {raw.shape}",
            hint="Reshape to (n_samples, n_classes)",
        )
    if raw.shape[0] == 0 or raw.size == 0:
        raise invalid_input(
            expected="at least one row and one column of scores",
            got=f"shape {raw.shape}, 0 sample(s)",
            hint="Check the selection that produced this table (a minimum of 1 is required)",
        )
    return raw[:, None] if raw.ndim == 1 else raw


def _check_and_normalise_proba(
    raw: AnyArray, tolerance: float | None, first: int = 0
) -> FloatArray:
    """Check rows of probabilities, and repair rounding of their sums."""
    slack = get_sum_tolerance(raw.dtype, raw.shape[1])
    eps = float(np.finfo(raw.dtype).eps) if raw.dtype.kind == "f" else 0.0
    table = raw.astype(float, copy=False)
    hint = "Drop or repair those rows first"
    if table.shape[1] > 2:
        hint += "; where NaN is an option that the row does not have, pass what "
        hint += "canonical_proba(scores, absent='nan') returns"
    lowest, highest = _get_finite_range(table, hint, first)
    if lowest < -slack or highest > 1 + slack:
        row, column = np.argwhere((table < -slack) | (table > 1 + slack))[0]
        raise invalid_input(
            expected="probabilities in [0, 1]",
            got=f"{table[row, column]:.6g}",
            hint=(LOGITS_HINT + "; divide percentages by 100"),
            row=first + row,
            column=column,
        )
    if lowest < 0 or highest > 1:
        table = np.clip(table, 0.0, 1.0)
    if table.shape[1] == 1:
        return table
    # For few columns einsum is five times as fast; for many columns `sum` has smaller
    # rounding errors.
    few = table.shape[1] <= _MAX_QUICK_SUM_COLUMNS
    total = np.einsum("ij->i", table) if few else table.sum(axis=1)
    error = np.abs(total - 1.0)
    worst = int(error.argmax())
    if error[worst] > (slack if tolerance is None else tolerance + 1e-9) and not (
        tolerance is None and warn_rounded_rows(table, error[worst], eps)
    ):
        raise invalid_input(
            expected="rows that sum to 1",
            got=f"a sum of {total[worst]:.6g}",
            hint=make_row_sum_hint(table, error[worst], eps),
            row=first + worst,
        )
    if error[worst] > MAX_KEPT_ROW_SUM_ERROR:
        if np.may_share_memory(table, raw):
            table = table.copy()
        table /= np.where(error > MAX_KEPT_ROW_SUM_ERROR, total, 1.0)[:, None]
    return table


def _check_columns(proba, n_classes) -> AnyArray:
    if n_classes is not None and max(2, proba.shape[1]) != n_classes:
        raise invalid_input(
            expected=f"{n_classes} columns of scores, one per class",
            got=f"{proba.shape[1]}",
            hint="Pass the columns in the order of classes_",
        )
    return proba


def check_same_length(codes: Sized, proba: Sized) -> None:
    """Raise ValueError if labels and scores have different numbers of rows.

    Also if the label of a row is an option that the row does not have.
    """
    if len(codes) != len(proba):
        raise invalid_input(
            expected="as many labels as rows of scores",
            got=f"{len(codes)} labels and {len(proba)} rows (inconsistent numbers of samples)",
            hint="Check that both come from the same selection",
        )
    absent = get_absent_option_mask(proba) if isinstance(proba, SimplexArray) else None
    if absent is not None:
        row_codes = np.asarray(codes)
        lost = np.flatnonzero(absent[np.arange(len(row_codes)), row_codes])
        if len(lost):
            raise invalid_input(
                expected="labels among the options of their rows",
                got=f"option {row_codes[lost[0]]}, whose probability is NaN,",
                hint="Repair the label or the probabilities of such rows",
                row=lost[0],
            )
