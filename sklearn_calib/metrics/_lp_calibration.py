"""The probability-weighted l_p calibration error over level sets of all classes."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from .._argument_checks import check_choice, is_real_number, validate_count
from .._kernels._level_sets import MAX_LEVELS, sort_rows_into_level_runs
from .._random import make_generator
from .._typing import ArrayLike, RandomStateLike
from .._validation import FLOAT32_SUM_TOLERANCE, read_proba
from ..exceptions import invalid_input
from ._measure import SharedOptions, measure
from ._predictions import validate_predictions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import Predictions

# Entries of a table that are checked at a time.
_BLOCK_ENTRIES = 2**20


class LpCalibrationResult(NamedTuple):
    """The result of `lp_calibration_test`.

    Parameters
    ----------
    value : float
    null_mean, null_quantile : float
        Mean and 95 % quantile of the same error for labels drawn from the predictions
        themselves.
    pvalue : float
        Share of such draws with an error at least as large, counting the observed one.
    p : float
    n_levels : int
        Values are comparable at equal p and n_levels only.
    n_cells : int
        Level sets that hold a row.
    """

    value: float
    null_mean: float
    null_quantile: float
    pvalue: float
    p: float
    n_levels: int
    n_cells: int


def _read_proba_without_copy(y_proba, input_name="y_proba"):
    """Check rows block by block; floating-point tables are not copied."""
    table = np.asarray(y_proba) if isinstance(y_proba, np.ndarray) else np.empty(0)
    is_float_table = table.ndim == 2 and table.dtype in (np.float32, np.float64)
    if not is_float_table or table.shape[1] < 2 or not len(table):
        return np.asarray(read_proba(y_proba, input_name=input_name))
    n_block_rows = max(1, _BLOCK_ENTRIES // table.shape[1])
    for start in range(0, len(table), n_block_rows):
        block = table[start : start + n_block_rows]
        # Checking a table of 1000 classes in float64 would copy it; a product in its
        # own type is enough to see whether the rows need to be divided.
        total = block @ np.ones(table.shape[1], dtype=block.dtype)
        deviation = max(-block.min(), np.abs(total - 1).max())
        # NaN fails the comparison.
        if not deviation <= FLOAT32_SUM_TOLERANCE:
            # The general check divides rows by their sum, or rejects them.
            return np.asarray(read_proba(table, input_name=input_name))
    return table


@measure(
    range=(-1.5, 2.0),
    multiclass=("canonical",),
    in_report=False,
    poolable=True,
    validate=_read_proba_without_copy,
)
def lp_calibration_error(
    predictions: "Predictions",
    *,
    p: float = 2.0,
    n_levels: int = 20,
    estimator: Literal["plugin", "unbiased"] = "plugin",
    **shared: "Unpack[SharedOptions]",
) -> float:
    """Calibration error of all classes at once, over cells of rows whose rounded vectors are equal.

    Each prediction is rounded down to multiples of 1 / n_levels in every class; rows
    that agree form a cell. The error is the l_p norm over cells and classes of the
    probability-weighted gap between mean prediction and frequency. It is a weak
    measure: for p > 1 it tends to 0 when the cells get small, however wrong the
    predictions; compare it at equal p and n_levels only, and report both.

    Parameters
    ----------
    {shared_parameters}
    p : float, default=2
        From 1 to infinity. 1 is the expected calibration error of cells, which nearly
        all hold one row when there are many classes: never show it without
        `lp_calibration_test`.
    n_levels : int, default=20
        From 1 to 5000.
    estimator : {"plugin", "unbiased"}, default="plugin"
        "unbiased", for p = 2: the mean over pairs of rows of one cell of the product of
        their residuals, a U-statistic; its square root with its sign, so it may be
        negative. Weights are then of independent rows, not counts of repeated ones.

    Returns
    -------
    error : float
        Perfect 0. The plug-in is biased upwards, for p = 2 by about sqrt(Brier / n) for
        calibrated predictions.

    Raises
    ------
    ValueError
        "unbiased" for another p.

    Notes
    -----
    For p >= 2 and predictions that were not fitted on these rows the plug-in is within
    (sqrt(2) + 2 sqrt(log(1 / delta))) / sqrt(n) of the population's value with
    probability 1 - delta, for any number of classes and levels. `confidence_interval`
    is about another value, that of the cells of these rows with all labels that they
    may have. Rows are grouped by 64-bit hashes of their integer levels, which are then
    compared, so the grouping is exact. Cost: O(n k), and 50 bytes per row beside the
    input; float32 arrays are not copied.

    References
    ----------
    "Sample-efficient multiclass calibration under probability-weighted l_p error"
    (2025, submitted without names), definition 6; Widmann, Lindsten, Zachariah (2019),
    "Calibration tests in multi-class classification", for the unbiased estimator, here
    with the kernel "same cell".

    Examples
    --------
    >>> from sklearn_calib.metrics import lp_calibration_error
    >>> p = [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.1, 0.1, 0.8]]
    >>> round(lp_calibration_error([0, 1, 2, 2], p, n_levels=4), 3)
    0.177
    """
    error, _ = _make_code_error_function_and_count_cells(
        predictions, p, n_levels, estimator
    )
    return error(predictions.codes)


def lp_calibration_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    p: float = 2.0,
    n_levels: int = 20,
    estimator: Literal["plugin", "unbiased"] = "plugin",
    n_resamples: int = 200,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> LpCalibrationResult:
    """Compare `lp_calibration_error` with the values that calibrated predictions would give.

    Parameters
    ----------
    y_true, y_proba, p, n_levels, estimator, sample_weight, labels, pos_label
        As in `lp_calibration_error`.
    n_resamples : int, default=200
        Draws of labels from the predictions.
    random_state : int, RandomState, Generator or None, default=0
        For these draws.

    Returns
    -------
    result : LpCalibrationResult

    Raises
    ------
    ValueError, TypeError
        An unknown option, or invalid scores, labels or weights; see `canonical_proba`.

    Notes
    -----
    The p-value is exact: under calibration it is at most alpha with probability at most
    alpha. Cost: O(n k) for the error, and for each draw.

    References
    ----------
    Vaicenavicius et al. (2019), "Evaluating model calibration in classification",
    section 4, for resampling under consistency.

    Examples
    --------
    >>> from sklearn_calib.metrics import lp_calibration_test
    >>> p = [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.1, 0.1, 0.8]]
    >>> lp_calibration_test([0, 1, 2, 2], p, n_levels=4).pvalue > 0.05
    True
    """
    from .._kernels._level_sets_compiled import draw_labels

    n_resamples = validate_count(n_resamples, "n_resamples")
    predictions = validate_predictions(
        y_true,
        y_proba,
        sample_weight,
        labels,
        pos_label,
        validate=_read_proba_without_copy,
    )
    error, n_cells = _make_code_error_function_and_count_cells(
        predictions, p, n_levels, estimator
    )
    value = error(predictions.codes)
    rng = make_generator(random_state)
    table = predictions.proba
    null_values = np.empty(n_resamples)
    for i in range(n_resamples):
        null_values[i] = error(draw_labels(table, rng.random(len(table))))
    n_as_large = np.sum(null_values >= value)
    return LpCalibrationResult(
        value,
        float(null_values.mean()),
        float(np.quantile(null_values, 0.95)),
        float((1 + n_as_large) / (1 + n_resamples)),
        float(p),
        n_levels,
        n_cells,
    )


def _make_code_error_function_and_count_cells(predictions, p, n_levels, estimator):
    """Return the error as a function of the labels' codes, and the number of cells.

    Rows are grouped only once, for all labels that are drawn.
    """
    from .._kernels._level_sets_compiled import (
        sum_gap_powers_over_cells_and_row_squares,
    )

    p = _check_options_and_convert_p(p, n_levels, estimator)
    if estimator == "unbiased":
        predictions.check_single_labels(
            "pairs of different rows", "Take estimator='plugin'"
        )
    table = predictions.proba
    weight = predictions.weight / predictions.weight.sum()
    order, starts = predictions.derive_from_proba(
        sort_rows_into_level_runs, int(n_levels)
    )

    def compute_error(codes):
        total, single_row_total = sum_gap_powers_over_cells_and_row_squares(
            table, codes, weight, order, starts, p
        )
        if estimator == "plugin":
            # Definition 6 of the paper; for p = infinity it is the largest error of a
            # cell and class.
            return float(total ** (1 / p)) if np.isfinite(p) else float(total)
        # Subtracting the squares of single rows leaves pairs of different rows, whose
        # products have mean 0 under calibration. Rows alone in their cell add equally
        # to both sums.
        pair_weight = max(1 - np.vdot(weight, weight), np.finfo(float).tiny)
        square = (total - single_row_total) / pair_weight
        return float(np.sign(square) * np.sqrt(abs(square)))

    return compute_error, len(starts)


def _check_options_and_convert_p(p, n_levels, estimator):
    """Check the options, and return `p` as a float."""
    if not is_real_number(p) or not p >= 1:
        raise invalid_input(
            expected="p from 1 to infinity",
            got=repr(p),
            hint="Take 2, which has an unbiased estimator",
        )
    is_in_range = is_real_number(n_levels) and 1 <= n_levels <= MAX_LEVELS
    if not is_in_range or int(n_levels) != n_levels:
        raise invalid_input(
            expected=f"a whole number of n_levels from 1 to {MAX_LEVELS}",
            got=repr(n_levels),
            hint="Leave the default, 20",
        )
    check_choice("estimator", estimator, ("plugin", "unbiased"), "Choose one of them")
    if estimator == "unbiased" and p != 2:
        raise invalid_input(
            "p",
            expected="p = 2 for the unbiased estimator",
            got=repr(p),
            hint="Use the plug-in",
        )
    return float(p)
