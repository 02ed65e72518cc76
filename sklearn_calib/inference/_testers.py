"""Testers: a verdict, right with a stated probability, from a stated number of rows."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

from .._argument_checks import (
    check_between,
    check_choice,
    is_real_number,
    validate_count,
)
from .._random import make_generator
from .._typing import ArrayLike, FloatArray, RandomStateLike
from ..exceptions import invalid_input
from ..metrics import (
    Measure,
    lower_distance_to_calibration,
    smooth_calibration_error,
    validate_predictions,
)

#: The statistic of each method, the factor of the tolerance (which must stay below
#: epsilon), and the divisor that makes a threshold of epsilon plus that product.
_STATISTIC_FACTOR_AND_DIVISOR_BY_METHOD: dict[str, tuple[Measure[...], int, int]] = {
    "smooth": (smooth_calibration_error, 4, 4),
    "distance": (lower_distance_to_calibration, 1, 2),
}


@dataclass(frozen=True)
class TesterVerdict:
    """The verdict of a `CalibrationTester`, and the numbers behind it.

    Attributes
    ----------
    calibrated : bool
        False: the predictions are at least `epsilon` from calibrated.
    statistics : ndarray of shape (n_parts,)
        One for each part of the rows; the majority decides.
    threshold : float
        A part votes "not calibrated" from here on.
    n_samples, required : int
        Rows that were there, and rows that guarantee the verdict.
    """

    calibrated: bool
    statistics: FloatArray
    threshold: float
    n_samples: int
    required: int


class CalibrationTester(BaseEstimator):
    """Decide whether predictions are calibrated or at least `epsilon` away from it.

    Parameters
    ----------
    epsilon : float
        The distance to calibration that has to be detected, in (0, 1].
    tolerance : float, default=0.0
        The distance that is still accepted, at least 1e-9 below `epsilon`; below epsilon / 4 for
        "smooth". Between the two either answer is right.
    method : {"smooth", "distance"}, default="smooth"
        The statistic: the smooth calibration error, or the lower distance to
        calibration.
    n_parts : int, default=1
        Disjoint random parts of the rows that vote; odd.
    delta : float, default=1/3
        The probability of a wrong verdict that `TesterVerdict.required` is computed
        for.
    random_state : int, Generator, RandomState or None, default=0
        For the parts.

    References
    ----------
    Hu, Jambulapati, Tian, Yang (2024), definitions 2, 4 and 5, theorems 3 and 4.

    Examples
    --------
    >>> from sklearn_calib.inference import CalibrationTester
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 2000)
    >>> CalibrationTester(epsilon=0.3).test(y, proba).calibrated  # not that far
    True
    >>> CalibrationTester(epsilon=0.1).test(y, proba).calibrated
    False
    """

    _parameter_constraints: ClassVar = {
        "epsilon": [Real],
        "tolerance": [Real],
        "method": [StrOptions({"smooth", "distance"})],
        "n_parts": [Integral],
        "delta": [Real],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        epsilon: float,
        *,
        tolerance: float = 0.0,
        method: Literal["smooth", "distance"] = "smooth",
        n_parts: int = 1,
        delta: float = 1 / 3,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.epsilon = epsilon
        self.tolerance = tolerance
        self.method = method
        self.n_parts = n_parts
        self.delta = delta
        self.random_state = random_state

    def test(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        pos_label: object = None,
    ) -> TesterVerdict:
        """Give a verdict.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            For more than two classes the largest probability is tested against whether
            its class is true.
        labels : array-like of shape (n_classes,), default=None
        pos_label : label, default=None
            The class of two that a single column of `y_proba` is the probability of; by
            default the last of `labels`, or 1 or True. Required for other labels,
            unless `labels` is given.

        Returns
        -------
        verdict : TesterVerdict

        Raises
        ------
        ValueError
            Parameters out of range, fewer rows than parts, or invalid scores, labels or
            weights; see `canonical_proba`.
        """
        required, margin = self._compute_required_rows_and_margin()
        if not validate_count(self.n_parts, "n_parts") % 2:
            raise invalid_input(
                expected="an odd n_parts >= 1",
                got=repr(self.n_parts),
                hint="Take the next odd number",
            )
        predictions = validate_predictions(y_true, y_proba, None, labels, pos_label)
        n = len(predictions.codes)
        if n < self.n_parts:
            raise invalid_input(
                expected=f"at least {self.n_parts} rows",
                got=f"{n}",
                hint="Use fewer parts",
            )
        order = np.arange(n)
        if self.n_parts > 1:
            order = make_generator(self.random_state).permutation(n)
        measure, tolerance_factor, divisor = _STATISTIC_FACTOR_AND_DIVISOR_BY_METHOD[
            self.method
        ]
        threshold = (tolerance_factor * self.tolerance + self.epsilon) / divisor
        # The distance is computed finely enough not to change the verdict.
        options = {}
        if self.method == "distance":
            options["resolution"] = min(1e-3, margin / 4)
        parts = np.array_split(order, self.n_parts)
        statistics = np.array(
            [
                measure.evaluate(predictions.take(part_rows), **options)
                for part_rows in parts
            ]
        )
        return TesterVerdict(
            calibrated=bool(np.mean(statistics >= threshold) < 0.5),
            statistics=statistics,
            threshold=float(threshold),
            n_samples=n,
            required=required,
        )

    def sample_size(self) -> int:
        """Return how many rows make the verdict right with probability 1 - `delta`.

        Returns
        -------
        n_samples : int
            What `TesterVerdict.required` is.

        Raises
        ------
        ValueError
            Parameters out of range.

        Notes
        -----
        With g the distance from the threshold, n = ((2 + sqrt(2 log(1/delta))) / g)^2;
        g is (epsilon - 4 tolerance) / 4 for "smooth" and (epsilon - tolerance) / 2 for
        "distance". The constant is ours and sufficient for any distribution; the rate
        is that of Theorems 3 and 4. Integration by parts bounds the error of either
        statistic by the absolute difference of distribution functions, at 1 and
        integrated, with a mean of at most 2 / sqrt(n) in all; bounded differences give
        the rest. On calibrated data the errors are some 5 times smaller than the bound.

        References
        ----------
        Hu, Jambulapati, Tian, Yang (2024), corollaries 2 and 4.

        Examples
        --------
        >>> from sklearn_calib.inference import CalibrationTester
        >>> CalibrationTester(epsilon=0.1).sample_size()
        19403
        >>> CalibrationTester(epsilon=0.1, tolerance=0.05, method="distance").sample_size()
        19403
        """
        return self._compute_required_rows_and_margin()[0]

    def _compute_required_rows_and_margin(self):
        """Return the rows for the verdict, and how far both kinds are from the threshold."""
        check_choice("method", self.method, _STATISTIC_FACTOR_AND_DIVISOR_BY_METHOD)
        tolerance = self.tolerance
        epsilon = self.epsilon
        for name, value in (("tolerance", tolerance), ("epsilon", epsilon)):
            if not is_real_number(value):
                raise invalid_input(
                    expected=f"{name} as a number",
                    got=repr(value),
                    hint="Pass for instance 0.1",
                )
        _, tolerance_factor, divisor = _STATISTIC_FACTOR_AND_DIVISOR_BY_METHOD[
            self.method
        ]
        if not (tolerance >= 0 and tolerance_factor * tolerance + 1e-9 < epsilon <= 1):
            raise invalid_input(
                expected=f"0 <= {'4 ' if tolerance_factor == 4 else ''}tolerance + 1e-9 "
                "< epsilon <= 1",
                got=f"tolerance={tolerance}, epsilon={epsilon}",
                hint="Use method='distance' or another epsilon",
            )
        check_between(
            "delta",
            self.delta,
            0,
            1,
            expected="0 < delta < 1",
            hint="Pass for instance 0.05",
        )
        margin = (epsilon - tolerance_factor * tolerance) / divisor
        # The first term bounds the mean deviation of the statistic, the second its
        # fluctuation around that with probability 1 - delta.
        deviation = 2 + math.sqrt(-2 * math.log(self.delta))
        return math.ceil((deviation / margin) ** 2), margin
