"""Isotonic calibration."""

from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._sklearn_compat import fit_isotonic_shares
from .._typing import FloatArray
from ._base import Capabilities, Recalibrator
from ._penalty_paths import pool_log_odds_mass_and_event_rates


class IsotonicCalibration(Recalibrator):
    """The best non-decreasing map from scores to probabilities.

    Makes no assumption beyond monotonicity, and minimises every proper loss on the
    calibration set at once. Needs about a thousand rows or more. It can return exactly
    0 and 1: not for the log loss, in which one such row on the wrong side costs more
    than all others gain; there `VennAbers`, the same fit without certainties, is
    better. More than two classes are handled one-vs-rest and the rows divided by their
    sums.

    Parameters
    ----------
    prediction : {"linear", "step"}, default="linear"
        Between two calibration scores: interpolate linearly in the probability, or keep
        the value of the lower one.
    centred : bool, default=False
        Shrink each pooled block to one point at its mean score and interpolate between
        them, which makes the map strictly increasing except where it is 0 or 1. Takes
        precedence over `prediction`.

    Attributes
    ----------
    knots_ : ndarray of shape (n_knots,)
        Log-odds of the scores at which the fitted map turns, increasing.
    values_ : ndarray of shape (n_knots,)
        Its values there, non-decreasing.
    one_vs_rest_ : list of IsotonicCalibration
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Scores are ordered by their log-odds, which orders like the probability and
    separates scores next to 0 and 1: all logits, and all float64 numbers. Scores equal
    to 11 digits are ties, and pooled first. Swapping the classes swaps the result.
    Outside the range of the calibration scores the map is constant. Cost: O(n log n).

    References
    ----------
    Zadrozny, Elkan (2002), "Transforming classifier scores into accurate multiclass
    probability estimates". Dimitriadis, Gneiting, Jordan (2021), "Stable reliability
    diagrams for probabilistic classifiers". Oron, Flournoy (2017), "Centered isotonic
    regression".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import IsotonicCalibration
    >>> iso = IsotonicCalibration().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> iso.predict_proba([0.1, 0.25, 0.5])[:, 1].round(3).tolist()
    [0.0, 0.25, 0.5]
    """

    knots_: FloatArray
    values_: FloatArray

    capabilities = Capabilities(
        monotone=True,
        increasing=True,
        continuous=True,
        nonparametric_shape=True,
        nonparametric=True,
        cost="O(k n log n)",
    )
    _parameter_constraints: ClassVar = {
        "prediction": [StrOptions({"linear", "step"})],
        "centred": ["boolean"],
    }

    def __init__(
        self,
        prediction: Literal["linear", "step"] = "linear",
        *,
        centred: bool = False,
    ) -> None:
        self.prediction = prediction
        self.centred = centred

    def _fit(self, proba, codes, weight):
        """Fit increasing values to the pooled rows, and keep the knots that matter."""
        knots, mass, share = pool_log_odds_mass_and_event_rates(proba, codes, weight)
        # The least squares problem of eq. (9) in Wang, Li, Dang (2019), solved by
        # pooling adjacent violators.
        values = fit_isotonic_shares(share, mass)
        if self.centred:
            knots, values = _move_knots_to_block_means(knots, values, mass)
        else:
            # The two ends of each flat piece are sufficient.
            inside = np.zeros(len(values), dtype=bool)
            inside[1:-1] = (values[1:-1] == values[:-2]) & (values[1:-1] == values[2:])
            knots = knots[~inside]
            values = values[~inside]
        self.knots_ = knots
        self.values_ = values

    def _make_map(self):
        if self.prediction == "step" and not self.centred:
            return maps.make_steps_on_rounded_log_odds(
                self.knots_[1:], self.values_, right_closed=False
            )
        return maps.make_linear_in_proba(self.knots_, self.values_)


def _move_knots_to_block_means(knots, values, mass):
    """Return one knot per block at its mean probability.

    Blocks at 0 and 1 keep their ends.
    """
    block = np.r_[0, np.cumsum(np.diff(values) > 0)]
    starts = np.r_[0, np.flatnonzero(np.diff(block)) + 1]
    value = values[starts]
    low = np.minimum.reduceat(knots, starts)
    high = np.maximum.reduceat(knots, starts)
    ones = np.bincount(block, weights=mass * expit(knots))
    zeros = np.bincount(block, weights=mass * expit(-knots))
    # The mean probability of a block as log-odds. Both sums keep their digits, whereas
    # 1 - mean would lose them near 1.
    with np.errstate(divide="ignore"):
        centre = np.clip(np.log(ones) - np.log(zeros), low, high)
    # A block at the limits of the probabilities cannot shrink to a point, because the
    # line to its neighbour would leave [0, 1] outside of it.
    flat = (value <= 0) | (value >= 1)
    knots = np.concatenate([np.where(flat, low, centre), high[flat]])
    values = np.concatenate([value, value[flat]])
    order = np.lexsort((values, knots))
    knots = knots[order]
    values = values[order]
    first = np.r_[True, np.diff(knots) > 0]
    return knots[first], values[first]
