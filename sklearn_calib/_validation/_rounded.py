"""Rows of probabilities whose sums are not 1: which of them rounding explains."""

import numpy as np

from .._typing import AnyArray, FloatArray
from .._warnings import warn_calibration

# Rounding to float32 changes the sum of a row by less than this.
FLOAT32_SUM_TOLERANCE = 1e-6
# The same for float16: four times its machine epsilon.
_FLOAT16_SUM_TOLERANCE = 4e-3
# The same for bfloat16: its softmax is off by 6e-3, for any number of classes.
BFLOAT16_SUM_TOLERANCE = 1e-2
# The tolerance of float16 suffices up to so many columns; beyond, the error grows with
# the square root of their number.
MAX_FLOAT16_TOLERANCE_COLUMNS = 16
# Rows rounded to so many decimals are normalised with a warning.
ROUNDED_DECIMALS = (2, 3, 4, 5, 6)
# In units of the last decimal; float16 cannot distinguish decimals.
_MAX_LAST_DECIMAL_ERROR = 0.05
# Numbers of decimals that a message mentions.
_REPORTED_DECIMALS = (1, *ROUNDED_DECIMALS)


def get_sum_tolerance(dtype: np.dtype, n_columns: int) -> float:
    """Return the tolerance for the sum of a row that the type of its numbers needs.

    Softmax of a thousand classes in float16 is off by 1e-2: its normaliser has been
    rounded too.
    """
    if dtype == np.float16:
        return get_float16_sum_tolerance(n_columns)
    return FLOAT32_SUM_TOLERANCE


def get_float16_sum_tolerance(n_columns: int) -> float:
    """Return `get_sum_tolerance` for numbers of half precision."""
    return _FLOAT16_SUM_TOLERANCE * max(
        1.0, (n_columns / MAX_FLOAT16_TOLERANCE_COLUMNS) ** 0.5
    )


def warn_rounded_rows(table: FloatArray, worst: float, eps: float) -> bool:
    """Warn and return True if rounding explains sums as far from 1 as `worst`.

    All entries have 2 to 6 decimals and no sum is off by more than half a unit of the
    last of them for each column; or all entries are numbers of half precision, and
    `get_float16_sum_tolerance` holds; or they are bfloat16 numbers, and no sum is off by more
    than 1e-2.
    """
    explanation = _find_rounding_and_sum_bound_if_any(table, worst, eps)
    if explanation is None:
        return False
    how, bound = explanation
    warn_calibration(
        expected="rows that sum to 1",
        got=f"sums up to {bound:.2g} away from it, as {how} make them",
        hint="Each row is divided by its sum, and this not said with "
        + _format_tolerance_call(bound),
    )
    return True


def _find_rounding_and_sum_bound_if_any(table, worst, eps):
    """Return what rounded the rows, and the error of a sum that it allows; or None."""
    for decimals in ROUNDED_DECIMALS:
        bound = table.shape[1] / 2 * 10.0**-decimals
        if worst <= bound + 1e-9 < 1 and _has_decimals(table, decimals, eps):
            return f"{decimals} decimals", bound
    bound = get_float16_sum_tolerance(table.shape[1])
    if worst <= bound and np.array_equal(table.astype(np.float16), table):
        return "numbers of half precision", bound
    if worst <= BFLOAT16_SUM_TOLERANCE and has_bfloat16_rounding(table):
        return "bfloat16 numbers", BFLOAT16_SUM_TOLERANCE
    return None


def has_bfloat16_rounding(table: FloatArray) -> bool:
    """Return whether each number is one of bfloat16: the upper half of a float32."""
    short = table.astype(np.float32)
    return bool((short == table).all()) and not (short.view(np.uint32) & 0xFFFF).any()


def _has_decimals(table: AnyArray, decimals: int, eps: float) -> bool:
    near = max(1e-8, eps) * 10**decimals
    scaled = table * 10**decimals
    return near < _MAX_LAST_DECIMAL_ERROR and bool(
        np.abs(scaled - np.rint(scaled)).max() <= near
    )


def make_row_sum_hint(table: FloatArray, worst: float, eps: float) -> str:
    """Return the hint for rows that do not sum to 1; their entries show the rounding."""
    divide = "divide rows by their sums first, with "
    for decimals in _REPORTED_DECIMALS:
        bound = table.shape[1] / 2 * 10.0**-decimals
        if worst > bound + 1e-9:
            break
        if bound < 1 and _has_decimals(table, decimals, eps):
            unit = "decimal" if decimals == 1 else "decimals"
            rounded = f"If the probabilities were rounded to {decimals} {unit}, "
            return rounded + divide + _format_tolerance_call(bound)
    half = get_float16_sum_tolerance(table.shape[1])
    if worst <= half and np.array_equal(table.astype(np.float16), table):
        return (
            "These are numbers of half precision: "
            + divide
            + _format_tolerance_call(half)
        )
    if worst <= 0.05:
        return (
            "If the probabilities were rounded, "
            + divide
            + _format_tolerance_call(1.05 * worst)
        )
    return LOGITS_HINT


def _format_tolerance_call(bound):
    text = f"{bound:.2g}"
    return f"canonical_proba(scores, tolerance={text})"


#: The hint for numbers that may be logits.
LOGITS_HINT = (
    "Turn logits into probabilities first, with canonical_proba(scores, kind='logits')"
)
