"""Binned calibration errors: one function, and the two names everybody uses."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import ndtr

from .._argument_checks import check_choice, read_bool_with_none_as_false
from .._kernels._binning import (
    assign_values_to_bins,
    assign_values_to_monotonic_bins,
    find_bin_starts_and_end,
    sum_bins,
    sum_runs,
)
from .._typing import Multiclass, NumberOfBins, Strategy
from ..exceptions import invalid_input
from ._measure import SharedOptions, measure
from ._predictions import MIN_COMPILED_ROWS, MULTICLASS_REDUCTIONS
from ._reliability import resolve_n_bins_unless_sweep

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import Predictions

# Names of the measures that use the largest error of a bin alone.
LARGEST_BIN_MEASURES = ("maximum_calibration_error",)
_CHOICES_BY_OPTION = {
    "norm": ("l1", "l2", "max"),
    "strategy": ("quantile", "uniform"),
    "bin_weight": ("mass", "equal"),
}


@measure(
    range=(0.0, 1.0), multiclass=MULTICLASS_REDUCTIONS, in_report=False, poolable=True
)
def calibration_error(
    predictions: "Predictions",
    *,
    norm: Literal["l1", "l2", "max"] = "l1",
    strategy: Strategy = "quantile",
    n_bins: NumberOfBins = 15,
    multiclass: Multiclass = "auto",
    debias: bool = False,
    bin_weight: Literal["mass", "equal"] = "mass",
    **shared: "Unpack[SharedOptions]",
) -> float:
    """Compute the distance between predicted probabilities and frequencies over bins.

    Parameters
    ----------
    {shared_parameters}
    norm : {"l1", "l2", "max"}, default="l1"
        Mean, root mean square or maximum of the bins' gaps.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass or of equal width. Equal scores share a bin; [0, 1] is
        covered and the bins are closed on the right; empty bins weigh nothing.
    n_bins : int, "cube_root" or "sweep", default=15
        "cube_root": the cube root of the number of rows, rounded up, as in
        scikit-learn. "sweep": of 1, 2, 3, ... bins the most before the frequencies of
        the bins first decrease, at most 1000; ties fill no more bins then, and such
        numbers are passed over.
    debias : bool, default=False
        Subtract the part that chance alone contributes: exactly for "l2", in the normal
        approximation for "l1". A debiased square below 0 counts as 0; bins of one row
        count 0.
    bin_weight : {"mass", "equal"}, default="mass"
        Weigh bins by their share of the rows, or equally (as in Wang et al. 2019, eq.
        70).

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Estimates E|E[y | bin] - E[p | bin]|, a lower bound of the
        true calibration error as n grows; for finite n it is biased upwards, by about
        sqrt(n_bins / n) / 2 for calibrated predictions, unless debiased.

    Notes
    -----
    Cost: O(n log n). For several binary problems of shares s and errors e the result is
    (sum s e^p)^(1/p).

    Of bins of equal width a score on an edge is in the bin below it. If classes are
    swapped, y to 1 - y and p to 1 - p, it is in the other one: "l1" then changes by at
    most twice the share of such rows, "max" by anything up to 1: a bin may lose all of
    its rows. Bins of equal mass change if equal scores reach over an edge, "l1" again
    by at most twice the share of these rows.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), "Obtaining well calibrated probabilities using
    Bayesian binning". Kumar, Liang, Ma (2019), "Verified uncertainty calibration",
    definition 2.2 and section 5 (debiasing). Gupta, Ramdas (2022) for top-label. Wang,
    Li, Dang (2019), eq. 70. Roelofs, Cain, Shlens, Mozer (2022), "Mitigating bias in
    calibration error estimation", algorithm 1 (sweep).

    Examples
    --------
    >>> from sklearn_calib.metrics import calibration_error
    >>> y, p = [0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6]
    >>> round(calibration_error(y, p, n_bins=2), 3)
    0.35
    >>> round(calibration_error(y, p, n_bins=2, norm="l2"), 3)
    0.354
    """
    return _compute_binned_error(
        predictions,
        norm,
        strategy,
        n_bins,
        multiclass,
        debias,
        bin_weight,
    )


def _compute_binned_error(
    predictions, norm, strategy, n_bins, multiclass, debias=False, bin_weight="mass"
):
    """Return the error that the three public measures compute."""
    n_bins = _check_and_resolve_n_bins_unless_sweep(
        predictions, norm, strategy, n_bins, debias, bin_weight
    )
    power = 2 if norm == "l2" else 1
    errors = []
    shares = []
    for problem in predictions.problems(multiclass):
        gap, variance, mass = _compute_filled_bin_gap_variance_and_mass(
            problem, n_bins, strategy, debias
        )
        if norm == "max":
            errors.append(np.abs(gap).max())
        else:
            term = np.abs(gap) ** power
            if debias:
                term = _subtract_bias(gap, variance, power)
            weight = mass if bin_weight == "mass" else np.ones_like(mass)
            errors.append(weight @ term / weight.sum())
        shares.append(problem.share)
    if norm == "max":
        return max(errors)
    return min(max(np.dot(shares, errors), 0.0) ** (1 / power), 1.0)


def _check_and_resolve_n_bins_unless_sweep(
    predictions, norm, strategy, n_bins, debias, bin_weight
):
    """Check the options, and return the number of bins, or "sweep"."""
    choices = {"norm": norm, "strategy": strategy, "bin_weight": bin_weight}
    for name, value in choices.items():
        check_choice(name, value, _CHOICES_BY_OPTION[name])
    debias = read_bool_with_none_as_false(debias, "debias")
    if debias and norm == "max":
        raise invalid_input(
            "debias",
            expected="debias with norm 'l1' or 'l2'",
            got="'max'",
            hint="Set debias=False",
        )
    if debias:
        predictions.check_single_labels(
            "the variance that debias takes off", "Set debias=False"
        )
    return resolve_n_bins_unless_sweep(n_bins, predictions)


def _compute_filled_bin_gap_variance_and_mass(problem, n_bins, strategy, debias):
    """Compute the mean residual, its variance (NaN for one row) and mass of non-empty bins."""
    bins = None
    if strategy == "uniform" and n_bins != "sweep":
        mass, total = _sum_mass_and_residuals_by_uniform_bin(problem, n_bins)
    else:
        cells = problem.cells
        if n_bins == "sweep":
            bins = assign_values_to_monotonic_bins(*cells, strategy)
            n_bins = bins[-1] + 1
        # The variance within a bin needs to know which rows are in it; without
        # debiasing, the sums at the bin starts suffice.
        elif debias:
            bins = assign_values_to_bins(cells.score, cells.mass, n_bins, strategy)
        residual = cells.hits - cells.mass * cells.score
        if bins is None:
            starts = find_bin_starts_and_end(cells.mass, n_bins)
            mass, total = sum_runs(starts, cells.mass, residual)
        else:
            mass, total = sum_bins(bins, n_bins, cells.mass, residual)
    is_filled = mass > 0
    gap = np.divide(total, mass, out=np.zeros(n_bins), where=is_filled)
    variance = None
    if debias:
        if bins is None:
            row_bin = assign_values_to_bins(problem.score, None, n_bins, strategy)
        else:
            row_bin = bins[problem.cell_indices]
        variance = _compute_gap_variance_by_bin(problem, row_bin, gap, mass)[is_filled]
    return gap[is_filled], variance, mass[is_filled]


def _sum_mass_and_residuals_by_uniform_bin(problem, n_bins):
    """Compute mass and summed residuals of equally wide bins, without sorting."""
    score = problem.score
    outcome = problem.hit
    weight = problem.weight
    if len(score) >= MIN_COMPILED_ROWS:
        from .._kernels._score_sums import sum_uniform_bin_weights_and_residuals

        return sum_uniform_bin_weights_and_residuals(score, outcome, weight, n_bins)
    bins = assign_values_to_bins(score, None, n_bins, "uniform")
    return sum_bins(bins, n_bins, weight, weight * (outcome - score))


def _compute_gap_variance_by_bin(problem, row_bin, gap, mass):
    """Return the variance of the mean residual of each bin; NaN for one row."""
    weight = problem.weight
    residual = problem.hit - problem.score
    deviation = weight * (residual - gap[row_bin])
    square_sum, squares = sum_bins(row_bin, len(gap), deviation**2, weight**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Kish's number of rows of each bin, for the divisor of an unbiased variance.
        n_rows = mass**2 / squares
        correction = np.where(n_rows > 1, n_rows / (n_rows - 1), np.nan)
        return square_sum / mass**2 * correction


def _subtract_bias(gap, variance, power):
    """Return the gap to a power, less the increase that noise causes in expectation."""
    # Kumar, Liang, Ma (2019): the squared gap exceeds the squared bias by its own
    # variance, so an unbiased estimate subtracts it.
    if power == 2:
        return np.where(np.isnan(variance), 0.0, gap**2 - variance)
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    mean = np.abs(gap)
    ratio = mean / deviation
    # The mean of |X| for a normal X with this mean and deviation (a folded normal
    # distribution); the excess over |mean| is the bias of norm "l1".
    folded_mean = deviation * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    folded_mean += mean * (1 - 2 * ndtr(-ratio))
    excess = np.where(variance > 0, folded_mean - mean, 0.0)
    return np.where(np.isnan(variance), 0.0, mean - excess)


@measure(range=(0.0, 1.0), multiclass=MULTICLASS_REDUCTIONS, poolable=True)
def expected_calibration_error(
    predictions: "Predictions",
    *,
    strategy: Strategy = "quantile",
    n_bins: NumberOfBins = 15,
    multiclass: Multiclass = "auto",
    debias: bool = False,
    bin_weight: Literal["mass", "equal"] = "mass",
    **shared: "Unpack[SharedOptions]",
) -> float:
    """Compute the mean gap of prediction and frequency over bins: the error of norm "l1".

    Parameters
    ----------
    {shared_parameters}
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass or of equal width. Equal scores share a bin; [0, 1] is
        covered and the bins are closed on the right; empty bins weigh nothing.
    n_bins : int, "cube_root" or "sweep", default=15
        As in `calibration_error`.
    debias : bool, default=False
        Subtract the part that chance alone contributes, in the normal approximation.
    bin_weight : {"mass", "equal"}, default="mass"
        Weigh bins by their share of the rows, or equally.

    Returns
    -------
    error : float
        In [0, 1], perfect 0; biased upwards at finite n (see `calibration_error`, also
        for scores on edges). With ``strategy="uniform"`` the ECE of Guo et al. (2017).
        Cost: O(n log n), O(n) for bins of equal width.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015); Guo, Pleiss, Sun, Weinberger (2017), eq. 3.

    Examples
    --------
    >>> from sklearn_calib.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6], n_bins=2), 3)
    0.35
    """
    return _compute_binned_error(
        predictions,
        "l1",
        strategy,
        n_bins,
        multiclass,
        debias,
        bin_weight,
    )


@measure(range=(0.0, 1.0), multiclass=MULTICLASS_REDUCTIONS, poolable=True)
def maximum_calibration_error(
    predictions: "Predictions",
    *,
    strategy: Strategy = "quantile",
    n_bins: NumberOfBins = 15,
    multiclass: Multiclass = "auto",
    **shared: "Unpack[SharedOptions]",
) -> float:
    """Compute the largest gap of prediction and frequency over bins: the error of norm "max".

    Parameters
    ----------
    {shared_parameters}
    strategy, n_bins
        As in `expected_calibration_error`.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Never below the mean over the same bins; strongly biased
        upwards for small bins. Scores on edges: see `calibration_error`. Cost: O(n log
        n), O(n) for bins of equal width.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015).

    Examples
    --------
    >>> from sklearn_calib.metrics import maximum_calibration_error
    >>> round(maximum_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6], n_bins=2), 3)
    0.4
    """
    return _compute_binned_error(predictions, "max", strategy, n_bins, multiclass)
