"""The bases of the recalibrators that are a softmax regression."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from .. import maps
from .._kernels._block_passes import MIN_SCALED_LOGIT, scale_logits_to_nonpositive
from .._kernels._softmax_regression import fit_softmax_regression
from .._kernels._temperature import mix_with_uniform, scale_proba
from .._simplex_array import log_proba
from .._sklearn_compat import NONNEGATIVE_REAL
from .._typing import FloatArray
from ._base import Capabilities, Recalibrator
from ._temperature import TemperatureScaling


class FittedSoftmax(Recalibrator):
    """Attributes of a fitted softmax regression."""

    coef_: FloatArray
    intercept_: FloatArray
    objective_: float
    gradient_norm_: float
    newton_decrement_: float
    n_iter_: int

    capabilities = Capabilities(
        array_api=True,
        multiclass="native",
        continuous=True,
        needs_positive_proba=True,
        cost="O(n k^2)",
    )

    def _store_fit(self, fit, scale=1.0):
        self.coef_ = scale * (fit.A + (1.0 if fit.A.ndim == 1 else np.eye(len(fit.A))))
        self.intercept_ = fit.b - fit.b.mean()
        self.objective_ = fit.objective
        self.gradient_norm_ = fit.gradient_norm
        self.newton_decrement_ = fit.decrement
        self.n_iter_ = fit.n_iter


class BaseSoftmaxScaling(FittedSoftmax):
    """Base of vector, matrix and structured scaling: softmax(beta (I + A) log p + b).

    Temperature scaling comes first and gives beta; A and b are then found near 0 by
    Newton's method. `_compute_coef_and_intercept_ridges` of a subclass returns what is
    penalised; its shape makes A diagonal or full.
    """

    temperature_scaling_: TemperatureScaling

    # If true, the temperature-scaled probabilities are first mixed with the uniform
    # ones.
    _laplace = False
    _parameter_constraints: ClassVar = {"penalty": [NONNEGATIVE_REAL]}

    def __init__(self, penalty: float = 1e-4) -> None:
        self.penalty = penalty

    def _compute_coef_and_intercept_ridges(self, n, k):
        """Return penalties of A, of shape (k,) or (k, k), and of b, for the squares."""
        raise NotImplementedError

    def _fit(self, proba, codes, weight):
        step = TemperatureScaling(laplace=self._laplace)
        self.temperature_scaling_ = self._fit_and_return_same_step(
            step, proba, codes, weight
        )
        ridge_a, ridge_b = self._compute_coef_and_intercept_ridges(
            float(weight.sum()), proba.shape[1]
        )
        z = self._compute_scaled_log_proba(proba)
        self._store_fit(fit_softmax_regression(z.T, codes, weight, ridge_a, ridge_b))

    def _compute_scaled_log_proba(self, proba):
        """Return the logarithms that the second step is fitted to, shape (n, k)."""
        if self._laplace:
            step = self.temperature_scaling_
            beta = step.inverse_temperature_
            # The same share as `TemperatureScaling(laplace=True)` mixes in.
            share = 1.0 / (step.n_samples_ + 1.0)
            scaled = scale_proba(log_proba(proba), beta)
            return log_proba(mix_with_uniform(scaled, share))
        return scale_logits_to_nonpositive(
            log_proba(proba), self.temperature_scaling_.inverse_temperature_
        )

    def _make_map(self):
        affine = maps.SoftmaxAffine(coef=self.coef_, intercept=self.intercept_)
        if self._laplace:
            return maps.make_chain(self.temperature_scaling_._make_map(), affine)
        beta = self.temperature_scaling_.inverse_temperature_
        return replace(
            affine,
            coef=beta * self.coef_,
            centred=True,
            least=MIN_SCALED_LOGIT / beta,
        )


class BaseStructuredScaling(BaseSoftmaxScaling):
    """Base of structured matrix and vector scaling: penalties that fade as rows come."""

    capabilities = replace(FittedSoftmax.capabilities, weights="counts")
    _laplace = True

    def __init__(self, penalty: float = 1.0) -> None:
        self.penalty = penalty
