"""Matrix scaling."""

from dataclasses import replace

import numpy as np

from ._softmax_family import BaseSoftmaxScaling


class MatrixScaling(BaseSoftmaxScaling):
    """A full matrix that maps the log-probabilities linearly, and an intercept for each class.

    k^2 + k parameters: it can move probability between classes that are confused, and
    overfits unless there are many rows per class; the structured form and
    `DirichletCalibration` regularise.

    Parameters
    ----------
    penalty : float, default=1e-4
        Penalty penalty (sum (coef - I)^2 + sum intercept^2) beside the mean log loss,
        towards temperature scaling.

    Attributes
    ----------
    temperature_scaling_ : TemperatureScaling
        The first step.
    coef_ : ndarray of shape (n_classes, n_classes)
        Of the temperature-scaled log-probabilities, less the largest of their row; a
        row of the matrix makes one class.
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
    Newton's method with conjugate gradients; cost O(n k^2) a product.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks",
    section 4.2.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import MatrixScaling
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> MatrixScaling().fit(proba, y).coef_.shape
    (3, 3)
    """

    capabilities = replace(BaseSoftmaxScaling.capabilities, max_classes=200)

    def _compute_coef_and_intercept_ridges(self, n, k):
        return np.full((k, k), float(self.penalty)), float(self.penalty)
