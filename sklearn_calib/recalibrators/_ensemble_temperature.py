"""Ensemble temperature scaling."""

import numpy as np
from scipy.optimize import minimize

from .._typing import FloatArray
from ._base import Capabilities, Recalibrator
from ._describe import IDENTITY, UNIFORM, mixture
from ._temperature import TemperatureScaling


class EnsembleTemperatureScaling(Recalibrator):
    """A mixture of the temperature-scaled, the given and the uniform probabilities.

    Like temperature scaling it never changes which class is predicted. It has two more parameters.

    Attributes
    ----------
    temperature_scaling_ : TemperatureScaling
    weights_ : ndarray of shape (3,)
        The weights of the temperature-scaled, the given and the uniform probabilities. None is
        negative, and their sum is 1.
    loss_ : float
        Mean log loss on the calibration set, in nats.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The temperature is fitted first, then the mixture weights minimise the log loss, a convex
    problem in three numbers. Cost: O(n k), and O(n) for each of some 20 iterations.

    References
    ----------
    Zhang, Kailkhura, Han (2020), "Mix-n-match: ensemble and compositional methods for uncertainty
    calibration in deep learning", section 3.1.

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
        array_api=True, multiclass="native", monotone=True, continuous=True, takes_logarithm=True
    )

    def _fit(self, proba, codes, weight):
        self.temperature_scaling_ = TemperatureScaling()
        self.temperature_scaling_._fit(proba, codes, weight)
        rows = np.arange(len(codes))
        parts = np.stack([p[rows, codes] for p in self._parts(proba)])
        w = weight / weight.sum()

        def objective(mix):
            mixed = np.maximum(mix @ parts, 1e-300)
            return -(w @ np.log(mixed)), -(parts @ (w / mixed))

        start = np.array([0.9, 0.05, 0.05])
        simplex = {"type": "eq", "fun": lambda m: m.sum() - 1, "jac": lambda m: np.ones(3)}
        found = minimize(
            objective,
            start,
            jac=True,
            bounds=[(0, 1)] * 3,
            constraints=[simplex],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 200},
        )
        mix = np.clip(found.x, 0, 1)
        mix /= mix.sum()
        for _ in range(20):  # each of these steps lowers the loss and keeps the simplex
            gain = parts @ (w / np.maximum(mix @ parts, 1e-300))
            mix = mix * gain
            mix /= mix.sum()
        self.weights_, self.loss_ = mix, float(objective(mix)[0])

    def _parts(self, proba):
        scaled = self.temperature_scaling_._predict_proba(proba)
        return scaled, np.asarray(proba), np.full(proba.shape, 1.0 / proba.shape[1])

    def _predict_proba(self, proba):
        return sum(m * p for m, p in zip(self.weights_, self._parts(proba), strict=True))

    def _nodes(self):
        return mixture(self.weights_, [self.temperature_scaling_._nodes(), IDENTITY, UNIFORM])
