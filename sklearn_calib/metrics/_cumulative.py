"""Cumulative differences between events and predictions: the calibration error without bins."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._argument_checks import check_choice
from .._typing import ArrayLike, FloatArray, Multiclass
from ._measure import BinaryOptions, binary_measure
from ._predictions import validate_predictions
from ._two_bin import compute_expected_two_bin_error, integrate_squared_two_bin_errors

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import BinaryProblem

_STATISTIC_NAMES = ("range", "mad")


@dataclass(frozen=True)
class CumulativeDifferences:
    """The path of cumulative differences of one binary problem.

    Attributes
    ----------
    score : ndarray of shape (n_scores,)
        Distinct predictions, increasing.
    weight : ndarray of shape (n_scores,)
        Share of the weight of the rows that have this score or a smaller one; the last
        is 1.
    difference : ndarray of shape (n_scores,)
        Weighted sum over these rows of event less score, divided by the weight of all
        rows.
    sigma : float
        Standard deviation of the last difference if the predictions are calibrated.
    title : str
        The binary problem: "class x", "confidence" or "predicted x".
    """

    score: FloatArray
    weight: FloatArray
    difference: FloatArray
    sigma: float
    title: str = ""

    @property
    def range(self) -> float:
        """Return the largest less the smallest difference, including the start at 0: ECCE-R."""
        return _compute_path_statistic(self.difference, "range")

    @property
    def mad(self) -> float:
        """Return the largest absolute difference: ECCE-MAD."""
        return _compute_path_statistic(self.difference, "mad")

    @property
    def averaged_two_bin(self) -> float:
        """Return `averaged_two_bin_error`, which averages `sigma` squared if calibrated."""
        return integrate_squared_two_bin_errors(self.score, self.difference)


def _compute_path_statistic(path, statistic):
    high = max(path.max(), 0.0)
    low = min(path.min(), 0.0)
    value = high - low if statistic == "range" else max(high, -low)
    return float(min(value, 1.0))


def _make_cumulative_differences(problem):
    cells = problem.cells
    return CumulativeDifferences(
        cells.score,
        np.cumsum(cells.mass) / cells.mass.sum(),
        np.cumsum(cells.residual),
        compute_expected_two_bin_error(problem) ** 0.5,
        problem.title,
    )


def cumulative_differences(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    multiclass: Multiclass = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> CumulativeDifferences | list[CumulativeDifferences]:
    """Compute the cumulative sums of event minus prediction.

    Over any interval of scores the slope of the path, from its first to its last row,
    is the mean of event less prediction there. No bins, and no smoothing.

    Parameters
    ----------
    y_true, y_proba, multiclass, sample_weight, labels, pos_label
        As in `cumulative_calibration_error`.

    Returns
    -------
    differences : CumulativeDifferences or list of CumulativeDifferences
        A list if `multiclass` means several two-class problems.

    Raises
    ------
    ValueError, TypeError
        Invalid scores, labels or weights; see `canonical_proba`.

    Notes
    -----
    Cost: O(n log n).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), section 2.

    Examples
    --------
    >>> from sklearn_calib.metrics import cumulative_differences
    >>> path = cumulative_differences([0, 1, 1, 0], [0.2, 0.4, 0.4, 0.8])
    >>> path.weight.tolist(), path.difference.round(2).tolist()
    ([0.25, 0.75, 1.0], [-0.05, 0.25, 0.05])
    """
    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    paths = [
        _make_cumulative_differences(problem)
        for problem in predictions.problems(multiclass)
    ]
    return paths[0] if len(paths) == 1 else paths


@binary_measure(range=(0.0, 1.0), in_report=False, poolable=True)
def cumulative_calibration_error(
    problem: "BinaryProblem",
    *,
    statistic: Literal["range", "mad"] = "range",
    **shared: "Unpack[BinaryOptions]",
) -> float:
    """Range or maximum of the cumulative sums of event minus score (ECCE): no bins, no bandwidth.

    Rows are taken in the order of their scores. The range is the largest absolute sum
    of event less score over any interval of scores, divided by the number of rows: what
    the worst interval contributes to the mean. No bins, no smoothing, and no other
    parameter.

    Parameters
    ----------
    {shared_parameters}
    statistic : {"range", "mad"}, default="range"
        ECCE-R, or ECCE-MAD, the same over the intervals that start at the smallest
        score.

    Returns
    -------
    error : float
        In [0, 1], perfect 0; "mad" is between half of "range" and "range". For
        calibrated predictions it is of the order n^-1/2, so it tends to 0 as n grows,
        for all scores.

    Raises
    ------
    ValueError
        An unknown statistic.

    Notes
    -----
    Equal scores are one step, so the value does not depend on the order of the rows.
    Published programs differ in this: they add tied rows one by one, in the order in
    which they come. `cumulative_test` gives the asymptotic p-value, `calibration_test`
    an exact one (for "mad" pass ``functools.partial(cumulative_calibration_error,
    statistic="mad")`` as its statistic), and `CumulativeDifferenceDisplay` the picture.
    Cost: O(n log n).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu (2022), "Metrics of calibration for
    probabilistic predictions", section 2. Tygert (2023), "Calibration of P-values for
    calibration and for deviation of a subpopulation from the full population".

    Examples
    --------
    >>> from sklearn_calib.metrics import cumulative_calibration_error
    >>> y, p = [0, 1, 1, 0], [0.2, 0.4, 0.4, 0.8]
    >>> round(cumulative_calibration_error(y, p), 3)
    0.3
    >>> round(cumulative_calibration_error(y, p, statistic="mad"), 3)
    0.25
    """
    check_choice("statistic", statistic, _STATISTIC_NAMES)
    return _compute_path_statistic(np.cumsum(problem.cells.residual), statistic)
