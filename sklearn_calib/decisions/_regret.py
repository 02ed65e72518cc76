"""What miscalibration costs at each threshold."""

from dataclasses import dataclass, replace

import numpy as np

from .._argument_checks import check_level, import_optional, validate_count
from .._kernels._net_benefit import (
    NetBenefit,
    compute_piecewise_linear_regret,
    draw_max_abs_z_quantile,
    find_max_proper_regret_and_thresholds,
    integrate_linear_pieces,
)
from .._random import make_generator
from .._typing import (
    CV,
    ArrayLike,
    DataFrame,
    FloatArray,
    RandomStateLike,
    RecalibratorLike,
)
from ..metrics import LossLike, brier_loss, get_loss, log_loss, validate_predictions
from ..recalibrators import recalibrate_in_sample_or_by_cv
from ._costs import canonical_thresholds, validate_binary_predictions

# The band is computed on both sides of this many predictions.
_N_BAND_POINTS = 50


@dataclass(frozen=True)
class RegretCurve:
    """The loss by acting on predictions that are not recalibrated, at each threshold (regret).

    Attributes
    ----------
    breaks : ndarray of shape (n_pieces + 1,)
        0, all values of both predictions, and 1. The regret is linear between two of
        them.
    intercept, slope : ndarray of shape (n_pieces,)
        The regret at t is ``intercept + slope * t`` above a break, up to and with the
        next one.
    brier_part : float
        By how much recalibration lowers the Brier loss: twice `integrate_linear_pieces`.
    log_loss_part : float
        By how much it lowers the log loss: the integral of the regret over t (1 - t).
    maximum_interval, decision_loss_interval : tuple of float
        (low, high), from one band for the regret at all thresholds.
    level : float
        Of both intervals.
    """

    breaks: FloatArray
    intercept: FloatArray
    slope: FloatArray
    brier_part: float
    log_loss_part: float
    maximum_interval: tuple[float, float]
    decision_loss_interval: tuple[float, float]
    level: float

    @property
    def integral(self) -> float:
        """Integrate the regret over all thresholds, exactly.

        The result is half of `brier_part`.
        """
        return integrate_linear_pieces(self.breaks, self.intercept, self.slope)

    def part(self, loss: LossLike = "log") -> float:
        """Compute how much recalibration lowers a loss: the regret weighted by its thresholds.

        Parameters
        ----------
        loss : {"log", "brier", "spherical"} or ProperLoss, default="log"
            As in `decompose_loss`, of two classes; ``BetaFamilyLoss(2, 18)`` for
            thresholds around 10 %.

        Returns
        -------
        part : float
            Exact, in the unit of the loss.
        """
        rule = get_loss(loss, 2)
        proba = np.column_stack([1 - self.breaks, self.breaks])
        loss_of_zero, loss_of_one = rule.compute_label_losses(proba).T
        # A proper loss has a weight w(c) for each threshold c: the loss of an event falls
        # at the rate (1 - c) w, and that of a non-event rises at the rate c w. So the
        # losses are antiderivatives, and the integral of each linear piece is exact.
        pieces = -self.intercept * np.diff(loss_of_one)
        return float(
            pieces.sum() + (self.intercept + self.slope) @ np.diff(loss_of_zero)
        )

    @property
    def threshold(self) -> FloatArray:
        """Return both ends of each piece, of shape (2 n_pieces,), for plots."""
        return np.column_stack([self.breaks[:-1], self.breaks[1:]]).ravel()

    @property
    def regret(self) -> FloatArray:
        """Return the regret at `threshold`.

        At the lower end of a piece it is the limit from above.
        """
        return np.repeat(self.intercept, 2) + np.repeat(self.slope, 2) * self.threshold

    @property
    def maximum(self) -> float:
        """Return the largest regret over all thresholds t, if a false alarm costs t, a miss 1 - t.

        In units of the larger of these two costs (V-shaped losses bounded by 1) it is
        larger, at most twice as large. `maximum_interval` is its interval; as the
        largest of many numbers that vary by chance it is biased upwards, which the
        lower end allows for.
        """
        return float(self.regret.max())

    @property
    def decision_loss(self) -> float:
        """Return the largest gain of any decision whose costs for either label span at most 1.

        The calibration decision loss, for the recalibration that was given: between
        `maximum` and twice that, at least `brier_part`, at most twice the mean distance
        of the two predictions. As `maximum` it is biased upwards; see
        `decision_loss_interval`. As a measure of the predictions alone it is
        `calibration_decision_loss`, which has the definition.
        """
        return find_max_proper_regret_and_thresholds(self.threshold, self.regret)[0]

    @property
    def worst_threshold(self) -> float:
        """Return the threshold with the largest regret."""
        return float(self.threshold[self.regret.argmax()])

    def at(self, thresholds: ArrayLike) -> FloatArray:
        """Evaluate the regret at some thresholds.

        Parameters
        ----------
        thresholds : array-like of shape (n_thresholds,)
            Increasing, strictly between 0 and 1.

        Returns
        -------
        regret : ndarray of shape (n_thresholds,)
        """
        table = canonical_thresholds(thresholds)
        piece = np.searchsorted(self.breaks, table) - 1
        return self.intercept[piece] + self.slope[piece] * table

    def to_frame(self) -> DataFrame:
        """Return the curve as a pandas DataFrame: threshold and regret, two rows per piece."""
        pd = import_optional("pandas", "cli")
        return pd.DataFrame({"threshold": self.threshold, "regret": self.regret})


def regret_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    recalibrated: ArrayLike | RecalibratorLike = "isotonic",
    *,
    cv: CV = 5,
    level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomStateLike = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> RegretCurve:
    """Compute the loss of decision makers by miscalibration, for every threshold of action.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_proba : array-like of shape (n_samples, 2) or (n_samples,)
    recalibrated : array-like, str or recalibrator, default="isotonic"
        The prediction c that one could have acted on: recalibrated probabilities of the
        same rows, or the method that makes them (see `all_recalibrators`).
    cv : int, splitter, iterable or None, default=5
        The folds, out of which the method predicts. None fits and predicts the same
        rows: then the regret of isotonic calibration is never below 0, and above 0 also
        if the predictions are calibrated. Not used with probabilities.
    level : float in (0, 1), default=0.95
        The level of the intervals.
    n_resamples : int, default=999
        Draws of the multiplier bootstrap behind them.
    random_state : int, Generator, RandomState or None, default=0
        Of these draws.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (2,), default=None
        Both classes in the order of the columns; needed if `y_true` lacks one.
    pos_label : label, default=None
        The class of the event, which owns a single column; the second by default.
        Required with a single column for labels other than 0 and 1, False and True, or
        -1 and 1, unless `labels` is given.

    Returns
    -------
    curve : RegretCurve

    Raises
    ------
    ValueError
        More than two classes, a level outside (0, 1), or invalid scores, labels or
        weights; see `canonical_proba`.
    TypeError
        A `recalibrated` that is neither probabilities nor a recalibrator.

    Notes
    -----
    R(t) = mean of (y - t) (1{c >= t} - 1{p >= t}). Someone for whom a false alarm costs
    t and a miss 1 - t acts if the probability is at least t; R(t) is what this costs
    more per row with p than with c. In units of net benefit (`decision_curve`) it is
    R(t) / (1 - t), for which `decision_difference` of p and c gives intervals. Negative
    if c is the worse one.

    The integral over t is half the difference of the Brier losses, and with the weight
    1 / (t (1 - t)) it is the difference of the log losses: the curve splits
    `proper_calibration_error` over all decision problems. Cost: the fits, O(n log n),
    and 30 ms for the intervals.

    Intervals are of the regret of acting on p instead of on this c, however c was made.
    A band for all thresholds (that of `decision_difference`, at up to 100 of them)
    holds with probability `level`; what rises with the regret lies between its values
    for the two edges of the band. So the bias of a maximum is allowed for, and the
    interval holds more often than `level` (``benchmarks/decisions``: those of 95 % in
    0.994 of 500 draws or more). With c fitted to the same rows (``cv=None``) the lower
    end is too high.

    References
    ----------
    Ehm et al. (2016), "Of quantiles and expectiles", section 3, for the mixture over
    thresholds. Hu, Wu (2024), "Predict to minimize swap regret for all payoff-bounded
    tasks", for its maximum.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.decisions import regret_curve
    >>> proba, y = make_overconfident(2, 2000)
    >>> curve = regret_curve(y, proba, "platt")
    >>> curve.maximum > 0.005, abs(2 * curve.integral - curve.brier_part) < 1e-12
    (True, True)
    """
    check_level(level)
    n_resamples = validate_count(n_resamples, "n_resamples")
    predictions, problem = validate_binary_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    # A recalibrator is fitted out of fold, so that its gain on these rows is not the
    # gain of fitting their noise.
    if isinstance(recalibrated, str | type) or hasattr(recalibrated, "fit"):
        better_proba = recalibrate_in_sample_or_by_cv(
            recalibrated,
            predictions.proba,
            predictions.codes,
            cv,
            sample_weight=predictions.weight,
            classes=np.arange(2),
        )
        better_predictions = predictions.with_proba(better_proba)
    else:
        better_predictions = validate_predictions(
            y_true,
            recalibrated,
            sample_weight,
            predictions.classes,
            pos_label,
            input_name="recalibrated",
        )
    better_problem = better_predictions.problems()[0]
    breaks, intercept, slope = compute_piecewise_linear_regret(
        problem.score, better_problem.score, problem.hit, problem.weight
    )
    brier_part = brier_loss.evaluate(predictions) - brier_loss.evaluate(
        better_predictions
    )
    log_loss_part = log_loss.evaluate(predictions) - log_loss.evaluate(
        better_predictions
    )
    # The interval of the maximum follows from the band: if the whole curve lies in the
    # band, its maximum lies between the maxima of the edges.
    edges = _simulate_low_and_high_curve_points(
        problem, better_problem, level, n_resamples, make_generator(random_state)
    )
    unknown_interval = 0.0, 0.0
    curve = RegretCurve(
        breaks,
        intercept,
        slope,
        brier_part,
        log_loss_part,
        unknown_interval,
        unknown_interval,
        level,
    )
    maxima = [max(edge.max(), 0.0) for _, edge in edges]
    maximum = _extend_interval(curve.maximum, *maxima)
    losses = [find_max_proper_regret_and_thresholds(*edge)[0] for edge in edges]
    decision_loss = _extend_interval(curve.decision_loss, *losses)
    return replace(
        curve, maximum_interval=maximum, decision_loss_interval=decision_loss
    )


def _extend_interval(value, low, high):
    """Return an interval that also contains the value.

    The band has only some thresholds, and between two of them the regret may be larger.
    """
    return float(min(value, low)), float(max(value, high))


def _simulate_low_and_high_curve_points(
    problem, better_problem, level, n_resamples, rng
):
    """Return the lower and the upper edge of the band for the regret.

    Each is a pair of arrays, thresholds and edge; the band holds for all thresholds
    together.
    """
    values = np.unique(np.concatenate([problem.score, better_problem.score]))
    # Evenly spaced ranks of the distinct predictions.
    ranks = np.linspace(0, len(values) - 1, min(len(values), _N_BAND_POINTS))
    values = values[ranks.round().astype(int)]
    # The regret jumps at each prediction, since rows at the threshold are acted on: the
    # next float is the other side.
    table = np.unique(np.concatenate([values, np.nextafter(values, 1)]))
    table = table[(table > 0) & (table < 1)]
    # If all predictions are 0 or 1, recalibration changes no decision.
    if not len(table):
        return [(np.zeros(1), np.zeros(1))] * 2
    kernel = NetBenefit(
        [problem.score, better_problem.score], problem.hit, problem.weight, table
    )
    difference = kernel.compare_models(1, 0)
    critical = draw_max_abs_z_quantile(difference.covariance, level, n_resamples, rng)
    # The net benefit is in units of true positives; the regret counts a miss as 1 - t.
    low, high = difference.find_interval(critical, exact=True)
    return (table, (1 - table) * low), (table, (1 - table) * high)
