"""Binned calibration errors: one function, and the two names everybody uses."""

import numpy as np
from scipy.special import ndtr

from .._kernels._binning import bin_of_rows, bin_sums
from ..exceptions import refuse
from ._base import binary_problems, canonical_case, metric

_OPTIONS = {
    "norm": ("l1", "l2", "max"),
    "strategy": ("quantile", "uniform"),
    "bin_weight": ("mass", "equal"),
}


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"), in_report=False)
def calibration_error(
    y_true,
    y_proba,
    *,
    norm="l1",
    strategy="quantile",
    n_bins=15,
    multiclass="auto",
    debias=False,
    bin_weight="mass",
    sample_weight=None,
    labels=None,
    pos_label=None,
):
    """Distance between predicted probabilities and frequencies over bins of the prediction.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels; one dimension is the probability
        of the second class.
    norm : {"l1", "l2", "max"}, default="l1"
        Mean, root mean square or maximum of the bins' gaps.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass or of equal width. Equal scores share a bin; [0, 1] is covered and the
        bins are closed on the right; empty bins weigh nothing.
    n_bins : int, default=15
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        "auto": the positive class if there are two classes, else "confidence" (the largest
        probability against whether that class is true). "top_label": that for each predicted class
        by itself. "classwise": each class against the others, averaged equally.
    debias : bool, default=False
        Subtract the part that chance alone contributes: exactly for "l2", in the normal
        approximation for "l1". A debiased square below 0 counts as 0; bins of one row count 0.
    bin_weight : {"mass", "equal"}, default="mass"
        Weigh bins by their share of the rows, or equally (as in Wang et al. 2019, eq. 70).
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0.
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Estimates E|E[y | bin] - E[p | bin]|, a lower bound of the true
        calibration error as n grows; for finite n it is biased upwards, by about
        sqrt(n_bins / n) / 2 for calibrated predictions, unless debiased.

    Raises
    ------
    ValueError
        Unknown option, or input that the door refuses.

    Notes
    -----
    Cost: O(n log n). For several binary problems of shares s and errors e the result is
    (sum s e^p)^(1/p).

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
    binning". Kumar, Liang, Ma (2019), "Verified uncertainty calibration", definition 2.2 and
    section 5 (debiasing). Gupta, Ramdas (2022) for top-label. Wang, Li, Yang (2019), eq. 70.

    Examples
    --------
    >>> from sklearn_calib.metrics import calibration_error
    >>> y, p = [0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6]
    >>> round(calibration_error(y, p, n_bins=2), 3)
    0.35
    >>> round(calibration_error(y, p, n_bins=2, norm="l2"), 3)
    0.354
    """
    where = "calibration_error"
    for name, value in (("norm", norm), ("strategy", strategy), ("bin_weight", bin_weight)):
        if value not in _OPTIONS[name]:
            refuse(
                where,
                f"{name} among {', '.join(_OPTIONS[name])}",
                repr(value),
                "Check the spelling",
            )
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        refuse(where, "n_bins >= 1", repr(n_bins), "Pass a whole number")
    if debias and norm == "max":
        refuse(where, "debias with norm 'l1' or 'l2'", "'max'", "Set debias=False")
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    power = 2 if norm == "l2" else 1
    errors, shares = [], []
    for problem in binary_problems(case, multiclass, where):
        gap, variance, mass = _bin_gaps(problem, n_bins, strategy)
        if norm == "max":
            errors.append(np.abs(gap).max())
        else:
            term = _debiased(gap, variance, power) if debias else np.abs(gap) ** power
            weight = mass if bin_weight == "mass" else np.ones_like(mass)
            errors.append(weight @ term / weight.sum())
        shares.append(problem.share)
    if norm == "max":
        return float(max(errors))
    return float(min(max(np.dot(shares, errors), 0.0) ** (1 / power), 1.0))


def _bin_gaps(problem, n_bins, strategy):
    """Mean residual, the variance of that mean (NaN for one row) and mass of the non-empty bins."""
    _, score, hit, weight, _ = problem
    row_bin = bin_of_rows(score, weight, n_bins, strategy)
    residual = hit - score
    mass, total = bin_sums(row_bin, n_bins, weight, weight * residual)
    filled = mass > 0
    gap = np.divide(total, mass, out=np.zeros(n_bins), where=filled)
    spread, squares = bin_sums(
        row_bin, n_bins, (weight * (residual - gap[row_bin])) ** 2, weight**2
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = mass**2 / squares  # Kish's number of rows
        variance = spread / mass**2 * np.where(effective > 1, effective / (effective - 1), np.nan)
    return gap[filled], variance[filled], mass[filled]


def _debiased(gap, variance, power):
    """The gap to a power, less what noise of that variance adds to it in expectation."""
    if power == 2:
        return np.where(np.isnan(variance), 0.0, gap**2 - variance)
    sd = np.sqrt(np.where(variance > 0, variance, 1.0))
    mean = np.abs(gap)
    ratio = mean / sd
    folded = sd * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + mean * (1 - 2 * ndtr(-ratio))
    excess = np.where(variance > 0, folded - mean, 0.0)
    return np.where(np.isnan(variance), 0.0, mean - excess)


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"))
def expected_calibration_error(
    y_true, y_proba, *, sample_weight=None, labels=None, pos_label=None, **options
):
    """The mean gap between prediction and frequency over bins: `calibration_error` with "l1".

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label
        As in `calibration_error`.
    **options
        Any other option of `calibration_error` except `norm`. With ``strategy="uniform"`` this
        is the ECE of Guo et al. (2017).

    Returns
    -------
    error : float
        In [0, 1], perfect 0; biased upwards at finite n (see `calibration_error`). Cost:
        O(n log n), O(n) for bins of equal width.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015); Guo, Pleiss, Sun, Weinberger (2017), eq. 3.

    Examples
    --------
    >>> from sklearn_calib.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6], n_bins=2), 3)
    0.35
    """
    return calibration_error(
        y_true,
        y_proba,
        norm="l1",
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
        **options,
    )


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"))
def maximum_calibration_error(
    y_true, y_proba, *, sample_weight=None, labels=None, pos_label=None, **options
):
    """The largest gap between prediction and frequency: `calibration_error` with "max".

    Parameters
    ----------
    y_true, y_proba, sample_weight, labels, pos_label
        As in `calibration_error`.
    **options
        Any other option of `calibration_error` except `norm`.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Never below the mean over the same bins; strongly biased upwards for
        small bins. Cost: O(n log n), O(n) for bins of equal width.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015).

    Examples
    --------
    >>> from sklearn_calib.metrics import maximum_calibration_error
    >>> round(maximum_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.6], n_bins=2), 3)
    0.4
    """
    return calibration_error(
        y_true,
        y_proba,
        norm="max",
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
        **options,
    )
