"""Vector scaling, and the base of the recalibrators that are a softmax regression."""

from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import Interval

from .._kernels._softmax_regression import fit_softmax_regression
from .._simplex import log_proba
from ._base import Capabilities, Recalibrator
from ._temperature import TemperatureScaling


class SoftmaxRegression(Recalibrator):
    """Base of vector, matrix and structured scaling: softmax(beta (I + A) log p + b).

    Temperature scaling comes first and gives beta; A and b are then found near 0 by Newton's
    method. A subclass says with `_ridges` what is penalised and whether A is diagonal or full.
    """

    _laplace = False  # mix the temperature-scaled probabilities with the uniform ones first

    def _ridges(self, n, k):
        """Penalties of A, of shape (k,) or (k, k), and of b; factors of the squares."""
        raise NotImplementedError

    def _fit(self, proba, codes, weight):
        self.temperature_scaling_ = TemperatureScaling(laplace=self._laplace)
        self.temperature_scaling_._fit(proba, codes, weight)
        ridge_a, ridge_b = self._ridges(float(weight.sum()), proba.shape[1])
        z = self._inputs(proba)
        fit = fit_softmax_regression(z.T, codes, weight, ridge_a, ridge_b)
        self.coef_ = fit.A + (1.0 if fit.A.ndim == 1 else np.eye(len(fit.A)))
        self.intercept_ = fit.b - fit.b.mean()
        self.objective_, self.gradient_norm_ = fit.objective, fit.gradient_norm
        self.newton_decrement_, self.n_iter_ = fit.decrement, fit.n_iter

    def _inputs(self, proba):
        if self._laplace:
            return log_proba(self.temperature_scaling_._predict_proba(proba))
        log = log_proba(proba)
        scaled = self.temperature_scaling_.inverse_temperature_ * (
            log - log.max(axis=1, keepdims=True)
        )
        return np.maximum(scaled, -1e4)  # beyond, a class is impossible at any sensible coefficient

    def _predict_proba(self, proba):
        z = self._inputs(proba)
        moved = z * self.coef_ if self.coef_.ndim == 1 else z @ self.coef_.T
        return softmax(moved + self.intercept_, axis=1)


class VectorScaling(SoftmaxRegression):
    """A factor and an intercept for each class on the log-probabilities.

    2 k parameters; corrects class-wise shifts that a temperature cannot. Wants some dozens of rows
    per class.

    Parameters
    ----------
    l2 : float, default=1e-4
        Penalty l2 (sum (coef - 1)^2 + sum intercept^2) beside the mean log loss, towards
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
    >>> from sklearn_calib.testing import make_scores
    >>> proba, y = make_scores(3, 500)
    >>> vector = VectorScaling().fit(proba, y)
    >>> vector.coef_.shape, vector.newton_decrement_ < 1e-10
    ((3,), True)
    """

    capabilities = Capabilities(
        multiclass="native", continuous=True, takes_logarithm=True, cost="O(n k^2)"
    )
    _parameter_constraints: dict = {  # noqa: RUF012
        "l2": [Interval(Real, 0, None, closed="left")]
    }

    def __init__(self, l2=1e-4):
        self.l2 = l2

    def _ridges(self, n, k):
        return np.full(k, float(self.l2)), float(self.l2)
