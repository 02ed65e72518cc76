"""Quadratic scaling of the log-odds."""

import numpy as np

from .. import maps
from .._kernels._logistic import can_interval_separate_classes, fit_logistic
from .._simplex_array import compute_log_odds
from ._base import (
    Capabilities,
    Recalibrator,
    smooth_targets_if_separable,
    warn_if_not_converged,
)


class QuadraticScaling(Recalibrator):
    """Logistic regression on the log-odds z of the score and their square: a z^2 + b z + c.

    The right form if the log-odds of both classes are Gaussian with different
    variances. The map need not be monotone. More than two classes are handled
    one-vs-rest and the rows divided by their sums.

    Attributes
    ----------
    a_, b_, c_ : float
        One-vs-rest fits keep theirs in ``one_vs_rest_[c]``.
    one_vs_rest_ : list of QuadraticScaling
        More than two classes only.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        One class lies within an interval of scores and the other outside, a threshold
        separates the classes, or one is missing: the maximum likelihood is infinite,
        and Platt's smoothed targets are used instead of the labels. Or the fit could
        not reach the optimum within 1e-9 nats.

    Notes
    -----
    Maximum likelihood by Newton's method; cost O(n) an iteration, about 8 iterations.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), "Structured matrix scaling for multi-class
    calibration".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import QuadraticScaling
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> bool(QuadraticScaling().fit(proba, y).b_ > 0)
    True
    """

    a_: float
    b_: float
    c_: float

    capabilities = Capabilities(
        array_api=True, continuous=True, needs_positive_proba=True
    )

    def _fit(self, proba, codes, weight):
        """Fit a parabola in the log-odds by logistic regression."""
        score = compute_log_odds(proba)
        is_separated = can_interval_separate_classes(score, codes)
        separates = "a threshold or an interval" if is_separated else ""
        target = smooth_targets_if_separable(
            "QuadraticScaling", separates, codes, weight
        )
        # Scores are moved and scaled into [-1, 1], where 1, u and u^2 are well
        # conditioned.
        centre = np.clip(0.0, score.min(), score.max())
        spread = max(np.abs(score - centre).max(), 1e-150)
        unit = (score - centre) / spread
        features = np.stack([np.ones_like(unit), unit, unit * unit]).T
        fit = fit_logistic(features, target, weight)
        warn_if_not_converged("QuadraticScaling", fit)
        self._centred = fit.coef.tolist()
        self._centre = float(centre)
        self._spread = float(spread)
        constant, linear, square = self._centred
        # The coefficients of the log-odds themselves; the map keeps the scaled ones,
        # which lose no digits.
        self.a_ = square / self._spread**2
        slope = linear / self._spread
        self.b_ = slope - 2 * self.a_ * self._centre
        self.c_ = constant - (slope - self.a_ * self._centre) * self._centre

    def _make_map(self):
        return maps.SigmoidPoly(
            input="logit",
            coef=self._centred,
            centre=self._centre,
            spread=self._spread,
        )
