"""Beta calibration."""

from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._logistic import fit_logistic, threshold_separates, zero_separates
from .._simplex_array import log_proba
from ._base import (
    Capabilities,
    Recalibrator,
    smooth_targets_if_separable,
    warn_if_not_converged,
)


class BetaCalibration(Recalibrator):
    """Beta calibration, three parameters: log-odds = a log p - b log(1 - p) + c.

    Contains the identity (a = b = 1, c = 0), sigmoids and inverse sigmoids. A good
    default for two classes with some hundred rows. More than two classes are handled
    one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        Which are free: all three; one slope a = b and the intercept (Platt scaling on
        the log-odds without smoothed targets); two slopes with the fixed point 1/2 (c =
        (a - b) log 2).

    Attributes
    ----------
    a_, b_, c_ : float
        Slopes (at least 0) and intercept. One-vs-rest fits keep theirs in
        ``one_vs_rest_[c]``.
    one_vs_rest_ : list of BetaCalibration
        More than two classes only.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        A threshold separates the classes or one is missing (for "ab": the threshold
        1/2): the maximum likelihood is infinite, and Platt's smoothed targets are used
        instead of the labels. Or the fit could not reach the optimum within 1e-9 nats.

    Notes
    -----
    The maximum likelihood under a, b >= 0, which keeps the map increasing, found with
    Newton steps. If a slope would turn negative this is the optimum with that slope
    0, as in the reference. Cost: O(n) an iteration, about 10 iterations. Exact zeros
    count as ``floor_``.

    References
    ----------
    Kull, Silva Filho, Flach (2017), "Beyond sigmoids: how to obtain well-calibrated
    probabilities from binary classifiers with beta calibration", eq. 2 and algorithm 1.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import BetaCalibration
    >>> p, y = [0.9, 0.8, 0.7, 0.9, 0.6, 0.8, 0.2, 0.1], [1, 1, 0, 1, 1, 0, 0, 0]
    >>> BetaCalibration("am").fit(p, y).predict_proba([0.8]).round(3)
    array([[0.32, 0.68]])
    """

    a_: float
    b_: float
    c_: float

    capabilities = Capabilities(
        array_api=True,
        monotone=True,
        increasing=True,
        continuous=True,
        needs_positive_proba=True,
    )
    _parameter_constraints: ClassVar = {
        "parameters": [StrOptions({"abm", "am", "ab"})],
    }

    def __init__(self, parameters: Literal["abm", "am", "ab"] = "abm") -> None:
        self.parameters = parameters

    def _fit(self, proba, codes, weight):
        """Fit a logistic regression on log p and -log(1 - p)."""
        log = log_proba(proba)
        # Both increase with the score.
        rising = log[:, 1]
        falling = -log[:, 0]
        score = rising + falling
        if self.parameters == "ab":
            separates = "the threshold 1/2" if zero_separates(score, codes) else ""
            # Without an intercept the map passes through (1/2, 1/2), so the columns are
            # centred there.
            centre = -np.log(2.0), np.log(2.0)
        else:
            separated = threshold_separates(score, codes, increasing=True)
            separates = "a threshold" if separated else ""
            # Scores in a narrow range keep their digits if this point is subtracted.
            centre = rising.max(), falling.min()
        target = smooth_targets_if_separable(
            "BetaCalibration", separates, codes, weight
        )
        features = [rising - centre[0], falling - centre[1]]
        if self.parameters == "am":
            # a = b: beta calibration becomes logistic regression on the log-odds.
            features = [sum(features)]
        nonnegative = range(len(features))
        identity = [1.0] * len(features)
        if self.parameters != "ab":
            features.append(np.ones_like(score))
            identity.append(sum(centre))
        features = np.stack(features).T
        fit = fit_logistic(features, target, weight, nonnegative, identity)
        warn_if_not_converged("BetaCalibration", fit)
        coef = fit.coef.tolist()
        intercept = 0.0 if self.parameters == "ab" else coef.pop()
        self.a_ = coef[0]
        self.b_ = coef[-1]
        self.c_ = float(intercept - self.a_ * centre[0] - self.b_ * centre[1])

    def _make_map(self):
        coef = [[0.0, 0.0], [-self.b_, self.a_]]
        return maps.SoftmaxAffine(coef=coef, intercept=[0.0, self.c_])
