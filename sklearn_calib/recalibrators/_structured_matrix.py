"""Structured matrix scaling (SMS)."""

import numpy as np

from ._softmax_family import BaseStructuredScaling


class StructuredMatrixScaling(BaseStructuredScaling):
    """Matrix scaling with penalties, strongest off the diagonal, weaker the more rows there are.

    Between temperature scaling (few rows) and matrix scaling (many).

    Parameters
    ----------
    penalty : float, default=1.0
        Factor of all penalties.

    Attributes
    ----------
    temperature_scaling_ : TemperatureScaling
        The first step, with Laplace smoothing.
    coef_ : ndarray of shape (n_classes, n_classes)
        Of the logarithms of its result; a row makes one class.
    intercept_ : ndarray of shape (n_classes,)
        With mean 0.
    objective_, gradient_norm_, newton_decrement_ : float
        The penalised loss, in nats, and the certificate of its optimality.
    n_iter_ : int
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Minimises the mean log loss + penalty k / n (sum (diagonal - 1)^2 + sum intercept^2)
    + penalty k (k - 1) / n (sum of the squares off the diagonal), n the sum of the
    weights. Cost: O(n k^2) a product.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), "Structured matrix scaling for multi-class
    calibration", and its implementation in probmetrics.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import StructuredMatrixScaling
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> StructuredMatrixScaling().fit(proba, y).newton_decrement_ < 1e-10
    True
    """

    def _compute_coef_and_intercept_ridges(self, n, k):
        ridge = np.full((k, k), self.penalty * k * (k - 1) / n)
        np.fill_diagonal(ridge, self.penalty * k / n)
        return ridge, self.penalty * k / n
