"""Ensemble temperature scaling."""

import numpy as np

from .. import maps
from .._kernels._mixture_proportions import fit_proportions
from .._kernels._temperature import scale_proba
from .._simplex_array import log_proba
from .._typing import FloatArray
from ._base import Capabilities, Recalibrator
from ._temperature import TemperatureScaling


class EnsembleTemperatureScaling(Recalibrator):
    """A mixture of the temperature-scaled, the given and the uniform probabilities.

    Like temperature scaling it never changes which class is predicted. It has two more
    parameters.

    Attributes
    ----------
    temperature_scaling_ : TemperatureScaling
    weights_ : ndarray of shape (3,)
        The weights of the temperature-scaled, the given and the uniform probabilities.
        None is negative, and their sum is 1.
    loss_ : float
        Mean log loss on the calibration set, in nats.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The temperature is fitted first, then the mixture weights minimise the log loss, a
    convex problem in three numbers. Cost: O(n k), and O(n) for each of some 30
    iterations.

    References
    ----------
    Zhang, Kailkhura, Han (2020), "Mix-n-match: ensemble and compositional methods for
    uncertainty calibration in deep learning", section 3.1.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import EnsembleTemperatureScaling
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> float(EnsembleTemperatureScaling().fit(proba, y).weights_.sum().round(9))
    1.0
    """

    temperature_scaling_: TemperatureScaling
    weights_: FloatArray
    loss_: float

    capabilities = Capabilities(
        array_api=True,
        multiclass="native",
        monotone=True,
        continuous=True,
        needs_positive_proba=True,
    )

    def _fit(self, proba, codes, weight):
        """Fit the temperature first, then the weights of the three parts."""
        self.temperature_scaling_ = self._fit_and_return_same_step(
            TemperatureScaling(),
            proba,
            codes,
            weight,
        )
        rows = np.arange(len(codes))
        parts = np.stack([p[rows, codes] for p in self._compute_parts(proba)]).T
        # With the temperature fixed the likelihood is concave in the three weights, so
        # their optimum is global.
        self.weights_ = fit_proportions(
            parts, weight, np.array([0.9, 0.05, 0.05])
        ).prior
        mixed = np.maximum(parts @ self.weights_, 1e-300)
        self.loss_ = -float(weight @ np.log(mixed) / weight.sum())

    def _compute_parts(self, proba):
        beta = self.temperature_scaling_.inverse_temperature_
        scaled = scale_proba(log_proba(proba), beta)
        return scaled, np.asarray(proba), np.full(proba.shape, 1.0 / proba.shape[1])

    def _make_map(self):
        parts = [self.temperature_scaling_._make_map(), maps.Identity(), maps.Uniform()]
        return maps.make_mixture(self.weights_, parts)
