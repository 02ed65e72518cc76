"""Dirichlet calibration."""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._softmax_regression import fit_softmax_regression
from .._kernels._softmax_tuning import fit_tuned_softmax_regression
from .._kernels._temperature import fit_temperature
from .._simplex_array import log_proba
from .._sklearn_compat import NONNEGATIVE_REAL
from .._validation import get_rows_per_weight
from ..exceptions import invalid_input
from ._softmax_family import FittedSoftmax


class DirichletCalibration(FittedSoftmax):
    """Softmax regression on log-probabilities, with off-diagonal and intercept regularisation.

    The multiclass form of beta calibration. It is the right form if the scores of each
    class follow a Dirichlet distribution.

    Parameters
    ----------
    penalty : "auto" or float >= 0, default="auto"
        "auto": two penalties towards temperature scaling, chosen by approximate
        leave-one-out; see the notes. A number is the weight of the mean square of the
        off-diagonal coefficients, as in the paper; without a search of it, many classes
        are overfitted.
    intercept_penalty : float >= 0, default=None
        Weight of the mean square of the intercepts; None for the same as `penalty`.
        Only beside a number.

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

    off_diagonal_penalty_, own_penalty_ : float
        With "auto": the factors a, d of the notes, times k (k - 1) / n and k / n.
    leave_one_out_loss_ : float
        With "auto": the log loss, in nats, by which they were chosen.

    Notes
    -----
    The coefficients are those of log-probabilities, also if logits are given;
    probabilities count as at least 1.18e-38.

    "auto": coef = beta (I + A), where beta is the inverse temperature. Minimises the
    mean log loss + a k (k - 1) / n sum_{i != j} A_ij^2 + d k / n (sum A_ii^2 + sum
    intercept^2), the form of `StructuredMatrixScaling`, for n rows; a and d, between
    1e-3 and 1e3, are those of the least approximate leave-one-out log loss, found axis
    by axis from 1. If there are more than 5000 rows, 5000 of them choose (always the
    same). For large a and d the result is temperature scaling.

    A number: minimises the mean log loss + penalty / (k (k - 1)) sum_{i != j} coef_ij^2
    + intercept_penalty / k sum intercept^2 (ODIR). The diagonal is free but for
    1e-8 (coef_ii - 1)^2, which keeps it finite on separable data.

    Newton's method with conjugate gradients; cost O(n k^2) a product, and for "auto"
    some five fits and, beside each, O(n k^2) for every class that many rows may belong
    to.

    References
    ----------
    Kull, Perello-Nieto, Kaengsepp, Silva Filho, Song, Flach (2019), "Beyond temperature
    scaling: obtaining well-calibrated multiclass probabilities with Dirichlet
    calibration", section 3. Rad and Maleki (2020), "A scalable estimate of the
    out-of-sample prediction error via approximate leave-one-out cross-validation", for
    "auto".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import DirichletCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> DirichletCalibration().fit(proba, y).newton_decrement_ < 1e-10
    True
    """

    off_diagonal_penalty_: float
    own_penalty_: float
    leave_one_out_loss_: float

    capabilities = replace(FittedSoftmax.capabilities, weights="rows", max_classes=100)
    _parameter_constraints: ClassVar = {
        "penalty": [StrOptions({"auto"}), NONNEGATIVE_REAL],
        "intercept_penalty": [NONNEGATIVE_REAL, None],
    }

    def __init__(
        self,
        penalty: Literal["auto"] | float = "auto",
        *,
        intercept_penalty: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.intercept_penalty = intercept_penalty

    def _fit(self, proba, codes, weight):
        """Fit a full matrix and intercepts, with given or tuned penalties."""
        k = proba.shape[1]
        z = log_proba(np.asarray(proba))
        if self.penalty == "auto":
            fit, scale = self._find_tuned_fit_and_inverse_temperature(z, codes, weight)
        else:
            mu = (
                self.penalty
                if self.intercept_penalty is None
                else self.intercept_penalty
            )
            # Kull et al. (2019) penalise the off-diagonal entries by their mean square,
            # and the intercepts likewise.
            ridge = np.full((k, k), self.penalty / (k * (k - 1)))
            # A minimal ridge on the diagonal makes the optimum unique.
            np.fill_diagonal(ridge, 1e-8)
            fit = fit_softmax_regression(z.T, codes, weight, ridge, mu / k)
            scale = 1.0
        self._store_fit(fit, scale)

    def _find_tuned_fit_and_inverse_temperature(self, z, codes, weight):
        """Return the fit to temperature-scaled rows, and the inverse temperature."""
        if self.intercept_penalty is not None:
            raise invalid_input(
                expected="intercept_penalty=None beside penalty='auto', which chooses both",
                got=repr(self.intercept_penalty),
                hint="Pass penalty as a number, for instance 0.01",
            )
        # The penalties are relative to the identity, so overconfident scores are
        # rescaled first.
        temperature = fit_temperature(z, codes, weight)
        beta = temperature.beta if temperature.status == "inside" else 1.0
        n_rows = float(weight.sum()) * get_rows_per_weight(weight)
        tuned = fit_tuned_softmax_regression(beta * z.T, codes, weight, n_rows)
        self.off_diagonal_penalty_ = tuned.off_diagonal
        self.own_penalty_ = tuned.diagonal
        self.leave_one_out_loss_ = tuned.leave_one_out_loss
        return tuned.fit, beta

    def _make_map(self):
        # The fit uses the logarithms of the probabilities, also if the scores are
        # logits.
        affine = maps.SoftmaxAffine(coef=self.coef_, intercept=self.intercept_)
        return maps.make_chain(maps.Identity(), affine)
