"""The averaged two-bin error: a calibration error that the true probabilities minimise."""

from typing import TYPE_CHECKING

import numpy as np

from .._argument_checks import read_bool_with_none_as_false
from .._typing import FloatArray
from ._measure import BinaryOptions, binary_measure

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import BinaryProblem


def integrate_squared_two_bin_errors(
    score: FloatArray, residual_sums: FloatArray
) -> float:
    """Integrate the squared sums below q and from q on over thresholds q in [0, 1].

    `score` are the distinct scores, increasing, and `residual_sums` the sums of the
    residuals up to each.
    """
    total = residual_sums[-1]
    below = residual_sums[:-1]
    # The sums change at scores only, so the integral over thresholds is a sum over the
    # gaps.
    steps = np.diff(score) * below
    # With b the sum below a threshold and t the total, the two squares are
    # b^2 + (t - b)^2 = 2 b^2 - 2 t b + t^2; the last term holds for all thresholds.
    area = 2 * (steps @ below) - 2 * total * steps.sum() + total**2
    return float(min(max(area, 0.0), 1.0))


def compute_expected_two_bin_error(problem: "BinaryProblem") -> float:
    """Compute the mean of the error over labels drawn from the scores."""
    weight = problem.weight
    score = problem.score
    return float(weight**2 @ (score * (1 - score)) / weight.sum() ** 2)


@binary_measure(range=(-0.25, 1.0), in_report=False, poolable=True)
def averaged_two_bin_error(
    problem: "BinaryProblem", *, debias: bool = False, **shared: "Unpack[BinaryOptions]"
) -> float:
    """Compute the error of two bins, below and above a threshold, averaged over thresholds.

    On a finite sample it is truthful: for all true probabilities, other predictions do
    not have a smaller expected value than these. Binned errors, the smooth error and
    the distance to calibration can all be lowered by rounding, shrinking or merging the
    true probabilities; see the table in the user guide.

    Parameters
    ----------
    {shared_parameters}
    debias : bool, default=False
        Subtract the expected value for calibrated predictions, sum w^2 p (1 - p) / (sum
        w)^2, which depends on the predictions. The excess is 0 on average if they are
        calibrated, and then below 0 in more than every second sample. It is not
        truthful, since more is subtracted from predictions nearer to 0.5: choose between
        models without it. Weights are then of independent rows, not counts of repeated
        ones.

    Returns
    -------
    error : float
        In [0, 1], perfect 0: a squared error, so that 0.0025 is about a bias of 0.05 of
        all rows. With `debias` at least -0.25.

    Notes
    -----
    With q uniform on [0, 1] it is the mean of a(q)^2 + b(q)^2; a(q) is the weighted
    mean over all rows of (y - p) if p < q, else 0, and b(q) of the rest. With
    distinct scores v_1 < ... < v_m and C_j the mean over all rows of (y - p) if p <=
    v_j, else 0, the integral is the sum over j from 0 to m of (v_{j+1} - v_j) (C_j^2 +
    (C_m - C_j)^2), with C_0 = v_0 = 0 and v_{m+1} = 1.

    Why it is truthful: the variances of the two sums add up to that of the sum of all
    rows, for each q. With true probabilities c the expected value is therefore sum w^2
    c (1 - c) / (sum w)^2, for all predictions, plus the error with c in the place of y,
    which is 0 where p is c.

    The path C_j is `cumulative_differences`, whose `sigma` squared is what `debias`
    subtracts; `CumulativeDifferenceDisplay` with ``axis="score"`` draws what is
    averaged. ``calibration_test(y, p, statistic="averaged_two_bin_error")`` has an
    exact p-value. Cost: O(n log n), one sort.

    References
    ----------
    Hartline, Hu, Wu (2026), "A perfectly truthful calibration measure", definition of
    ATB.

    Examples
    --------
    >>> from sklearn_calib.metrics import averaged_two_bin_error
    >>> y, p = [0, 1, 1, 0], [0.1, 0.4, 0.4, 0.8]
    >>> round(averaged_two_bin_error(y, p), 6)
    0.051125
    >>> round(averaged_two_bin_error(y, p, debias=True), 6)
    0.0055
    """
    cells = problem.cells
    error = integrate_squared_two_bin_errors(cells.score, np.cumsum(cells.residual))
    debias = read_bool_with_none_as_false(debias, "debias")
    return error - compute_expected_two_bin_error(problem) if debias else error
