"""Calibration errors over randomly shifted intervals."""

from typing import TYPE_CHECKING

import numpy as np

from .._argument_checks import is_real_number
from ..exceptions import invalid_input
from ._measure import BinaryOptions, binary_measure

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import BinaryProblem

# Up to here resamples share the orders of all widths, which take a few megabytes.
_MAX_SHARED_ORDER_CELLS = 1 << 14


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def random_interval_calibration_error(
    problem: "BinaryProblem", *, width: float = 0.1, **shared: "Unpack[BinaryOptions]"
) -> float:
    """Binned calibration error with equal widths, averaged over all shifts of the bins.

    Parameters
    ----------
    {shared_parameters}
    width : float, default=0.1
        Of the intervals, from 1e-6 to 1.

    Returns
    -------
    error : float
        In [0, 1], perfect 0. Biased upwards for finite n like every binned error. Falls
        with the width.

    Notes
    -----
    The mean over the shift is exact: between two scores' offsets nothing changes. Cost:
    O(n log n).

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran (2023), definition 6.3. Hu, Jambulapati, Tian, Yang
    (2024), definition 10.

    Examples
    --------
    >>> from sklearn_calib.metrics import random_interval_calibration_error
    >>> round(random_interval_calibration_error([0, 1], [0.45, 0.55], width=0.2), 3)
    0.225
    """
    if not is_real_number(width) or not 1e-6 <= width <= 1:
        raise invalid_input(
            expected="a width from 1e-6 to 1", got=repr(width), hint="Leave the default"
        )
    return min(max(_average_error_over_shifts(problem, float(width)), 0.0), 1.0)


@binary_measure(range=(0.0, 2.0), in_report=False, poolable=True)
def interval_calibration_error(
    problem: "BinaryProblem", **shared: "Unpack[BinaryOptions]"
) -> float:
    """Interval calibration error: binned error plus bin width, at the width where the sum is least.

    The smallest of `random_interval_calibration_error` + width over the widths 1, 1/2,
    1/4, ...

    Parameters
    ----------
    {shared_parameters}

    Returns
    -------
    error : float
        In [0, 2]; 0 in the limit for calibrated predictions, of the order n^-1/3 at
        finite n. It is at least the distance to calibration, and at most a constant
        times its square root.

    Notes
    -----
    Narrower intervals have a larger error, so the search ends at the first that is
    above the best. Cost: O(n log n) for each width.

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran (2023), section 6. Hu, Jambulapati, Tian, Yang
    (2024), definition 10.

    Examples
    --------
    >>> from sklearn_calib.metrics import interval_calibration_error
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 2000)
    >>> 0.05 < interval_calibration_error(y, proba) < 0.3
    True
    """
    # The binned error of infinitely narrow intervals.
    best = np.abs(problem.cells.residual).sum()
    width = 1.0
    # Widths 2^-k are enough: halving loses at most a factor of 2, and the surrogate
    # interval error is defined on them (definition 10 of Hu, Jambulapati, Tian, Yang
    # 2024).
    while width > 1e-9:
        # Narrower intervals have a larger binned error, so the search ends when that
        # alone exceeds the best sum.
        mean = _average_error_over_shifts(problem, width)
        best = min(best, mean + width)
        if mean >= best:
            break
        width /= 2
    return best


def _average_error_over_shifts(problem, width):
    """Return the binned error of intervals of a width, averaged over all their shifts.

    Equation 29 of Hu, Jambulapati, Tian, Yang (2024).
    """
    from .._kernels._score_sums import average_interval_error_over_shifts

    score = problem.cells.score
    residual = problem.cells.residual
    if len(score) <= _MAX_SHARED_ORDER_CELLS:
        order, offset, interval = problem.derive_from_scores(
            _sort_scores_by_interval_offset, width
        )
    else:
        order, offset, interval = _sort_scores_by_interval_offset(score, width)
    return average_interval_error_over_shifts(
        offset, interval, residual[order], int(interval.max()) + 1, width
    )


def _sort_scores_by_interval_offset(score, width):
    """Return the order of the offsets in intervals of a width, the offsets, and the intervals.

    The offsets and the interval of each score are in that order.
    """
    interval = np.floor(score / width).astype(np.int64)
    offset = np.clip(score - interval * width, 0.0, width)
    order = np.argsort(offset)
    return order, offset[order], interval[order]
