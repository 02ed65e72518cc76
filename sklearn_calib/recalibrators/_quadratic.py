"""Quadratic scaling of the log-odds."""

import numpy as np
from scipy.special import expit

from .._kernels._logistic import fit_logistic
from .._simplex import log_odds
from ._base import Capabilities, Recalibrator, likelihood_targets


class QuadraticScaling(Recalibrator):
    """Logistic regression on the log-odds and their square: log-odds = a z^2 + b z + c.

    What is right if the log-odds of both classes are Gaussian with different variances. The map
    need not be monotone. More than two classes are handled one-vs-rest and the rows divided by
    their sums.

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
        A threshold separates the classes or one is missing: the maximum likelihood is infinite,
        and Platt's smoothed targets are used instead of the labels.

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
    >>> from sklearn_calib.testing import make_scores
    >>> proba, y = make_scores(2, 500)
    >>> bool(QuadraticScaling().fit(proba, y).b_ > 0)
    True
    """

    capabilities = Capabilities(continuous=True, takes_logarithm=True)

    def _fit(self, proba, codes, weight):
        score = log_odds(proba)
        target = likelihood_targets("QuadraticScaling", score, codes, weight)
        spread = max(np.abs(score).max(), 1.0)
        unit = score / spread
        features = np.column_stack([unit * unit, unit, np.ones_like(unit)])
        coef, _ = fit_logistic(features, target, weight, [0.0] * 3, [-np.inf] * 3)
        self._unit_coef, self._spread = coef, float(spread)
        self.a_, self.b_ = float(coef[0] / spread**2), float(coef[1] / spread)
        self.c_ = float(coef[2])

    def _predict_proba(self, proba):
        unit = log_odds(proba) / self._spread
        z = (self._unit_coef[0] * unit + self._unit_coef[1]) * unit + self._unit_coef[2]
        return np.column_stack([expit(-z), expit(z)])
