"""Dirichlet calibration."""

from numbers import Real

import numpy as np
from scipy.special import softmax
from sklearn.utils._param_validation import Interval

from .._kernels._softmax_regression import fit_softmax_regression
from .._renamed import renamed_arguments
from .._simplex import log_proba
from .._typing import FloatArray
from ._base import Capabilities, Recalibrator


class DirichletCalibration(Recalibrator):
    """Softmax regression on log-probabilities, with off-diagonal and intercept regularisation.

    The multiclass form of beta calibration. It is the right form if the scores of each class follow
    a Dirichlet distribution.

    Parameters
    ----------
    penalty : float, default=1e-2
        Weight of the mean square of the off-diagonal coefficients.
    intercept_penalty : float, default=None
        Weight of the mean square of the intercepts; None for the same as `penalty`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_classes)
        One row per class.
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
    Minimises the mean log loss + penalty / (k (k - 1)) sum_{i != j} coef_ij^2
    + intercept_penalty / k sum intercept^2 (ODIR). The diagonal is free but for
    1e-8 (coef_ii - 1)^2, which keeps it finite on separable data. It works on probabilities, also
    of logits, which count as at least 1.18e-38. Newton's method with conjugate gradients; cost O(n
    k^2) a product.

    References
    ----------
    Kull, Perello-Nieto, Kaengsepp, Silva Filho, Song, Flach (2019), "Beyond temperature scaling:
    obtaining well-calibrated multiclass probabilities with Dirichlet calibration", section 3.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import DirichletCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> DirichletCalibration().fit(proba, y).newton_decrement_ < 1e-10
    True
    """

    coef_: FloatArray
    intercept_: FloatArray
    objective_: float
    gradient_norm_: float
    newton_decrement_: float
    n_iter_: int

    capabilities = Capabilities(
        multiclass="native", continuous=True, takes_logarithm=True, cost="O(n k^2)", max_classes=100
    )
    _parameter_constraints: dict = {  # noqa: RUF012
        "penalty": [Interval(Real, 0, None, closed="left")],
        "intercept_penalty": [Interval(Real, 0, None, closed="left"), None],
    }

    @renamed_arguments(reg_lambda="penalty", reg_mu="intercept_penalty")
    def __init__(self, penalty: float = 1e-2, *, intercept_penalty: float | None = None) -> None:
        self.penalty = penalty
        self.intercept_penalty = intercept_penalty

    def _fit(self, proba, codes, weight):
        k = proba.shape[1]
        mu = self.penalty if self.intercept_penalty is None else self.intercept_penalty
        ridge = np.full((k, k), self.penalty / (k * (k - 1)))
        np.fill_diagonal(ridge, 1e-8)
        z = log_proba(np.asarray(proba)).T
        fit = fit_softmax_regression(z, codes, weight, ridge, mu / k)
        self.coef_ = fit.A + np.eye(k)
        self.intercept_ = fit.b - fit.b.mean()
        self.objective_, self.gradient_norm_ = fit.objective, fit.gradient_norm
        self.newton_decrement_, self.n_iter_ = fit.decrement, fit.n_iter

    def _predict_proba(self, proba):
        return softmax(log_proba(np.asarray(proba)) @ self.coef_.T + self.intercept_, axis=1)
