"""Risk and coverage: the error rate among the most confident rows."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._argument_checks import check_level, import_optional
from .._count_weights import are_counts
from .._kernels._proportion import compute_exact_interval
from .._kernels._risk_coverage import (
    average_risk_over_coverages,
    make_descending_confidence_levels,
)
from .._typing import ArrayLike, DataFrame, FloatArray
from ..metrics import BinaryProblem, Predictions, validate_predictions


@dataclass(frozen=True)
class RiskCoverageCurve:
    """The error rate among the most confident rows, for every share of rows that is answered.

    Attributes
    ----------
    threshold : ndarray of shape (n_levels,)
        Decreasing; a row is answered if its largest probability is at least that.
    coverage : ndarray of shape (n_levels,)
        The share of rows that are answered, up to 1.
    risk : ndarray of shape (n_levels,)
        The error rate among them.
    rows : ndarray of shape (n_levels,)
        How many they are; of weighted rows, how many equally weighted ones are as good.
    low, high : ndarray of shape (n_levels,)
        Clopper and Pearson's interval of the risk at each threshold by itself, computed
        when it is first read.
    level : float
    area : float
        `area_under_risk_coverage`.
    perfect_area : float
        The smallest area that is possible with the same number of errors: the area if
        the model were less confident in each of its errors than in any correct answer.
    """

    threshold: FloatArray
    coverage: FloatArray
    risk: FloatArray
    rows: FloatArray
    level: float
    area: float
    perfect_area: float

    @cached_property
    def _interval_ends(self):
        return compute_exact_interval(self.risk * self.rows, self.rows, self.level)

    @property
    def low(self) -> FloatArray:
        return self._interval_ends[0]

    @property
    def high(self) -> FloatArray:
        return self._interval_ends[1]

    @property
    def excess(self) -> float:
        """Return how far the area is above that of the perfect order."""
        return self.area - self.perfect_area

    @property
    def perfect_risk(self) -> FloatArray:
        """Return the risk at each coverage if all errors were the least confident rows."""
        return self.perfect_risk_at(self.coverage)

    def perfect_risk_at(self, coverage: ArrayLike) -> FloatArray:
        """Compute `perfect_risk` at other coverages.

        Parameters
        ----------
        coverage : array-like of shape (n_points,)
            In (0, 1].

        Returns
        -------
        risk : ndarray of shape (n_points,)
        """
        # Errors are answered only after all right answers, a share of 1 - risk.
        array = np.asarray(coverage, dtype=np.float64)
        return np.maximum(0.0, 1 - (1 - self.risk[-1]) / array)

    def to_frame(self) -> DataFrame:
        """Return the curve as a pandas DataFrame with one row per threshold."""
        pd = import_optional("pandas", "cli")
        names = ("threshold", "coverage", "risk", "low", "high", "perfect_risk")
        return pd.DataFrame({name: getattr(self, name) for name in names})


def risk_coverage_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> RiskCoverageCurve:
    """Compute a risk-coverage curve: the error rate if only the most confident rows are answered.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities; the largest of a row is its confidence.
    level : float in (0, 1), default=0.95
        The level of the intervals.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.

    Returns
    -------
    curve : RiskCoverageCurve

    Raises
    ------
    ValueError
        A level outside (0, 1), or invalid scores, labels or weights; see
        `canonical_proba`.

    Notes
    -----
    The intervals are for thresholds that were chosen beforehand; `SelectiveClassifier`
    chooses one with a guarantee. With weights the number of rows is (sum w)^2 / sum
    w^2, and the intervals are no longer exact. Of more than 50,000 levels their ends
    are exact to 1e-11 of their size. Cost: O(n log n), and 2 µs for each end of an
    interval.

    References
    ----------
    Geifman, El-Yaniv (2017), "Selective classification for deep neural networks",
    section 2.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.decisions import risk_coverage_curve
    >>> proba, y = make_overconfident(3, 1000)
    >>> curve = risk_coverage_curve(y, proba)
    >>> bool(curve.risk[500] < curve.risk[-1])  # the more confident half
    True
    """
    check_level(level)
    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    # Rows of equal confidence are answered together, so there is one point per level.
    threshold, mass, errors = pool_confidence_mass_and_top_class_errors(predictions)
    cumulated_mass = np.cumsum(mass)
    cumulated_errors = np.cumsum(errors)
    # Kish's number of rows: the interval is that of so many rows of equal weight.
    squares = mass
    if not (predictions.weight == 1).all():
        _, squares, _ = pool_confidence_mass_and_top_class_errors(
            predictions, predictions.weight**2
        )
    rows = cumulated_mass**2 / np.cumsum(squares)
    # Rounding of cumulative sums may exceed 1.
    risk = np.minimum(cumulated_errors / cumulated_mass, 1.0)
    has_counts = are_counts(predictions.weight)
    # The perfect order has two levels: all right answers first, then all errors.
    perfect_mass = np.array([mass.sum() - cumulated_errors[-1], cumulated_errors[-1]])
    return RiskCoverageCurve(
        threshold=threshold,
        coverage=cumulated_mass / cumulated_mass[-1],
        risk=risk,
        rows=rows,
        level=level,
        area=average_risk_over_coverages(mass, errors, has_counts),
        perfect_area=average_risk_over_coverages(
            perfect_mass, perfect_mass * [0, 1], has_counts
        ),
    )


def pool_confidence_mass_and_top_class_errors(
    predictions: Predictions, weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pool rows by the largest probability, with other weights if they are passed."""
    problem = predictions.problems("confidence")[0]
    weight = problem.weight if weight is None else weight
    return pool_confidence_mass_and_errors(
        replace(problem, hit=1 - problem.hit, weight=weight)
    )


def pool_confidence_mass_and_errors(
    problem: BinaryProblem,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pool rows, whose event is an error, by confidence.

    Return the confidence of each level, the highest first, its mass and its errors.
    """
    cells = problem.cells
    return make_descending_confidence_levels(cells.score, cells.mass, cells.hits)
