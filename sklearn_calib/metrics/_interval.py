"""Calibration errors over randomly shifted intervals."""

import numpy as np

from ..exceptions import refuse
from ._base import binary_problems, canonical_case, metric


@metric(range=(0.0, 1.0), multiclass=("confidence", "top_label", "classwise"), in_report=False)
def random_interval_calibration_error(
    y_true,
    y_proba,
    *,
    width=0.1,
    multiclass="auto",
    sample_weight=None,
    labels=None,
    pos_label=None,
):
    """Binned calibration error with equal widths, averaged over all shifts of the bins.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels; one dimension is the probability
        of the second class.
    width : float, default=0.1
        Of the intervals, from 1e-6 to 1.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        As in `calibration_error`.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Biased upwards for finite n like every binned error. Falls with the
        width.

    Raises
    ------
    ValueError
        A width out of range, or input that the door refuses.

    Notes
    -----
    The mean over the shift is exact: between two scores' offsets nothing changes. Cost: O(n log n).

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran (2023), definition 6.3. Hu, Jambulapati, Tian, Yang (2024),
    definition 10.

    Examples
    --------
    >>> from sklearn_calib.metrics import random_interval_calibration_error
    >>> round(random_interval_calibration_error([0, 1], [0.45, 0.55], width=0.2), 3)
    0.225
    """
    where = "random_interval_calibration_error"
    if isinstance(width, bool) or not 1e-6 <= width <= 1:
        refuse(where, "a width from 1e-6 to 1", repr(width), "Leave the default")
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    error = sum(
        problem.share * _over_shifts(problem, width)
        for problem in binary_problems(case, multiclass, where)
    )
    return float(min(max(error, 0.0), 1.0))


@metric(range=(0.0, 2.0), multiclass=("confidence", "top_label", "classwise"), in_report=False)
def interval_calibration_error(
    y_true,
    y_proba,
    *,
    multiclass="auto",
    sample_weight=None,
    labels=None,
    pos_label=None,
):
    """Surrogate interval calibration error: the best width, with the width as its price.

    The smallest of `random_interval_calibration_error` + width over the widths 1, 1/2, 1/4, ...

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, columns in the order of the sorted labels; one dimension is the probability
        of the second class.
    multiclass : {"auto", "confidence", "top_label", "classwise"}, default="auto"
        As in `calibration_error`.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The positive class of two; the second by default.

    Returns
    -------
    error : float
        In [0, 2]; 0 in the limit for calibrated predictions, of the order n^-1/3 at finite n.
        An upper bound of the distance to calibration, and up to a constant below its square root.

    Raises
    ------
    ValueError
        Unknown option, or input that the door refuses.

    Notes
    -----
    Narrower intervals have a larger error, so the search ends at the first that is above the best.
    Cost: O(n log n) a width.

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran (2023), section 6. Hu, Jambulapati, Tian, Yang (2024),
    definition 10.

    Examples
    --------
    >>> from sklearn_calib.metrics import interval_calibration_error
    >>> from sklearn_calib.testing import make_scores
    >>> proba, y = make_scores(2, 2000)
    >>> 0.05 < interval_calibration_error(y, proba) < 0.3
    True
    """
    where = "interval_calibration_error"
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    error = 0.0
    for problem in binary_problems(case, multiclass, where):
        best, width = _of_distinct(problem), 1.0  # the limit of narrow intervals
        while width > 1e-9:
            mean = _over_shifts(problem, width)
            best = min(best, mean + width)
            if mean >= best:
                break
            width /= 2
        error += problem.share * best
    return float(error)


def _residual(problem):
    return (problem.hit - problem.score) * (problem.weight / problem.weight.sum())


def _of_distinct(problem):
    _, code = np.unique(problem.score, return_inverse=True)
    return float(np.abs(np.bincount(code.ravel(), _residual(problem))).sum())


def _over_shifts(problem, width):
    from .._kernels._intervals import shifted_intervals

    residual = _residual(problem)
    cell = np.floor(problem.score / width).astype(np.int64)
    offset = np.clip(problem.score - cell * width, 0.0, width)
    order = np.argsort(offset)
    return shifted_intervals(
        offset[order], cell[order], residual[order], int(cell.max()) + 1, float(width)
    )
