"""What miscalibration costs at each threshold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._kernels._regret import integral, regret_pieces
from .._typing import CV, ArrayLike, FloatArray, RecalibratorLike
from ..exceptions import called, require
from ..metrics import LossLike, brier_loss, canonical_case, get_loss, log_loss
from ..recalibrators import (
    aligned_proba,
    cross_fitted_proba,
    fit_recalibrator,
    resolve_recalibrator,
)
from ._two_classes import canonical_thresholds, two_class_case

if TYPE_CHECKING:
    import pandas as pd

    from ..metrics import Case


@dataclass(frozen=True)
class RegretCurve:
    """The regret of acting on a prediction instead of on its recalibration, at each threshold.

    Attributes
    ----------
    breaks : ndarray of shape (n_pieces + 1,)
        0, all values of both predictions, and 1. The regret is linear between two of them.
    intercept, slope : ndarray of shape (n_pieces,)
        The regret at t is ``intercept + slope * t`` from a break up to the next one, which belongs
        to the next piece.
    brier_part : float
        By how much recalibration lowers the Brier loss: twice `integral`.
    log_loss_part : float
        By how much it lowers the log loss: the integral of the regret over t (1 - t).
    """

    breaks: FloatArray
    intercept: FloatArray
    slope: FloatArray
    brier_part: float
    log_loss_part: float

    @property
    def integral(self) -> float:
        """Of the regret over all thresholds, exactly; half of `brier_part`."""
        return integral(self.breaks, self.intercept, self.slope)

    def part(self, loss: LossLike = "log") -> float:
        """By how much recalibration lowers a loss: the regret, weighted by the loss's thresholds.

        Parameters
        ----------
        loss : {"log", "brier", "spherical"} or ProperLoss, default="log"
            As in `decompose_loss`, of two classes; ``BetaFamilyLoss(2, 18)`` for thresholds around
            10 %.

        Returns
        -------
        part : float
            Exact, in the unit of the loss.
        """
        rule = get_loss(loss, "RegretCurve.part", 2)
        without, event = rule.of_labels(np.column_stack([1 - self.breaks, self.breaks])).T
        # the weights w of the thresholds c: the loss of an event falls at the rate (1 - c) w
        pieces = -self.intercept * np.diff(event)
        return float(pieces.sum() + (self.intercept + self.slope) @ np.diff(without))

    @property
    def threshold(self) -> FloatArray:
        """Both ends of each piece, shape (2 n_pieces,), for a drawing."""
        return np.column_stack([self.breaks[:-1], self.breaks[1:]]).ravel()

    @property
    def regret(self) -> FloatArray:
        """The regret at `threshold`; at the upper end of a piece, its limit from below."""
        return np.repeat(self.intercept, 2) + np.repeat(self.slope, 2) * self.threshold

    @property
    def maximum(self) -> float:
        """The largest regret over all thresholds, the calibration decision loss of the V shape."""
        return float(self.regret.max())

    @property
    def worst_threshold(self) -> float:
        """The threshold of the largest regret."""
        return float(self.threshold[self.regret.argmax()])

    def at(self, thresholds: ArrayLike) -> FloatArray:
        """The regret at some thresholds.

        Parameters
        ----------
        thresholds : array-like of shape (n_thresholds,)
            Increasing, strictly between 0 and 1.

        Returns
        -------
        regret : ndarray of shape (n_thresholds,)
        """
        table = canonical_thresholds(thresholds, "RegretCurve.at")
        piece = np.searchsorted(self.breaks, table, side="right") - 1
        return self.intercept[piece] + self.slope[piece] * table

    def to_frame(self) -> "pd.DataFrame":
        """The curve as a pandas DataFrame: columns threshold and regret, two rows per piece."""
        pd = require("pandas", "cli", "RegretCurve.to_frame")
        return pd.DataFrame({"threshold": self.threshold, "regret": self.regret})


def regret_curve(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    recalibrated: ArrayLike | RecalibratorLike = "isotonic",
    *,
    cv: CV = 5,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> RegretCurve:
    """What miscalibration costs a decision maker, for every threshold of action.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two classes.
    y_proba : array-like of shape (n_samples, 2) or (n_samples,)
    recalibrated : array-like, str or recalibrator, default="isotonic"
        The prediction c that one could have acted on: recalibrated probabilities of the same rows,
        or the method that makes them (see `recalibrator_names`).
    cv : int, splitter, iterable or None, default=5
        The folds, out of which the method predicts. None fits and predicts the same rows: then the
        regret of isotonic calibration is never below 0, and above 0 also where the predictions
        are calibrated. Not used with probabilities.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (2,), default=None
        Both classes in the order of the columns, where `y_true` misses one.
    pos_label : label, default=None
        The class of the event; the second by default.

    Returns
    -------
    curve : RegretCurve

    Raises
    ------
    ValueError
        More than two classes, or invalid scores, labels or weights; see `canonical_proba`.
    TypeError
        A `recalibrated` that is neither probabilities nor a recalibrator.

    Notes
    -----
    R(t) = mean of (y - t) (1{c > t} - 1{p > t}). Someone for whom a false alarm costs t and a miss
    1 - t acts where the probability is above t; R(t) is what this costs more per row with p than
    with c. In units of net benefit (`decision_curve`) it is R(t) / (1 - t), for which
    `decision_difference` of p and c gives intervals. Negative where c is the worse one.

    The integral over t is half the difference of the Brier losses, and with the weight
    1 / (t (1 - t)) it is the difference of the log losses: the curve splits
    `proper_calibration_error` over all decision problems. Cost: the fits, and O(n log n).

    References
    ----------
    Ehm et al. (2016), "Of quantiles and expectiles", section 3, for the mixture over thresholds.
    Hu, Wu (2024), "Predict to minimize swap regret for all payoff-bounded tasks", for its maximum.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_overconfident
    >>> from sklearn_calib.decisions import regret_curve
    >>> proba, y = make_overconfident(2, 2000)
    >>> curve = regret_curve(y, proba, "platt")
    >>> curve.maximum > 0.005, abs(2 * curve.integral - curve.brier_part) < 1e-12
    (True, True)
    """
    where = called("regret_curve")
    case, problem = two_class_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    if _is_method(recalibrated):
        other = case.with_proba(_recalibrated(case, recalibrated, cv))
    else:
        given = sample_weight, case.classes, pos_label
        other = canonical_case(where, y_true, recalibrated, *given)
    better = other.problems()[0]
    pieces = regret_pieces(problem.score, better.score, problem.hit, problem.weight)
    parts = [loss.of_case(case) - loss.of_case(other) for loss in (brier_loss, log_loss)]
    return RegretCurve(*pieces, *parts)


def _is_method(recalibrated):
    return isinstance(recalibrated, str | type) or hasattr(recalibrated, "fit")


def _recalibrated(case: "Case", recalibrator: RecalibratorLike, cv: CV) -> FloatArray:
    classes = np.arange(2)
    given: dict[str, Any] = {"sample_weight": case.weight, "classes": classes}
    if cv is not None:
        return cross_fitted_proba(
            recalibrator, case.proba, case.codes, cv=cv, where=case.where, **given
        )
    method = resolve_recalibrator(recalibrator, case.where)
    fit_recalibrator(method, case.proba, case.codes, **given)
    return aligned_proba(method, case.proba, classes)
