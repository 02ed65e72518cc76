"""Vector scaling."""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from .._renamed import renamed_arguments
from ._base import Capabilities
from ._softmax_family import SoftmaxRegression


class VectorScaling(SoftmaxRegression):
    """A factor and an intercept for each class on the log-probabilities.

    2 k parameters; corrects class-wise shifts that a temperature cannot. Needs some dozens of rows
    per class.

    Parameters
    ----------
    penalty : float, default=1e-4
        Penalty penalty (sum (coef - 1)^2 + sum intercept^2) beside the mean log loss, towards
        temperature scaling. It keeps the coefficients finite on separable data.

    Attributes
    ----------
    temperature_scaling_ : TemperatureScaling
        The first step.
    coef_ : ndarray of shape (n_classes,)
        Factors of the temperature-scaled log-probabilities.
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
    Newton's method with the full Hessian; cost O(n k^2) an iteration, 3 to 8 iterations.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", section 4.2.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import VectorScaling
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> vector = VectorScaling().fit(proba, y)
    >>> vector.coef_.shape, vector.newton_decrement_ < 1e-10
    ((3,), True)
    """

    capabilities = Capabilities(
        multiclass="native", continuous=True, takes_logarithm=True, cost="O(n k^2)"
    )
    _parameter_constraints: dict = {  # noqa: RUF012
        "penalty": [Interval(Real, 0, None, closed="left")]
    }

    @renamed_arguments(l2="penalty")
    def __init__(self, penalty: float = 1e-4) -> None:
        self.penalty = penalty

    def _ridges(self, n, k):
        return np.full(k, float(self.penalty)), float(self.penalty)
