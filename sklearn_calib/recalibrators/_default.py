"""The method that is taken when none is named."""

from typing import Any

from .._kernels._base_rate import base_rate_offsets
from .._simplex import log_proba
from .._typing import FloatArray
from ..canonical import canonical_proba
from ._base import Capabilities, Recalibrator
from ._platt import PlattScaling
from ._structured_matrix import StructuredMatrixScaling

_PRIOR_ROWS = 5  # for each class, with the frequencies that the model predicts


class DefaultCalibration(Recalibrator):
    """Platt scaling for two classes, base rates and structured matrix scaling for more.

    Both can move the base rate, which temperature scaling cannot: the safe choice for forests,
    nearest neighbours, trees, naive Bayes, and models trained with class weights or on resampled
    rows.

    Attributes
    ----------
    recalibrator_ : PlattScaling or StructuredMatrixScaling
        The fitted method: for two classes ``PlattScaling(prior_weight=1)``.
    offsets_ : ndarray of shape (n_classes,)
        More than two classes only: added to the log-probabilities first, with mean 0, so that the
        mean probability of each class is its frequency. Otherwise the temperature, the first step
        of structured matrix scaling, would become infinite where the base rates have moved far.
    floor_ : float
        What smaller probabilities count as; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        From the method.

    Notes
    -----
    Chosen by its log loss beside that of scikit-learn's ``CalibratedClassifierCV`` on real tables,
    see the folder ``benchmarks/defaults``. A neural network with many classes and few calibration
    rows may do as well with `TemperatureScaling`. Sample weights count rows: multiplied by a
    constant above 1 they let the fit depart further from no change. Cost: O(n) for two classes,
    O(n k^2) a product for more.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    Berta, Holzmueller, Jordan, Bach (2025), "Structured matrix scaling for multi-class
    calibration".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import DefaultCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> DefaultCalibration().fit(*make_overconfident(2, 500)).recalibrator_
    PlattScaling(prior_weight=1.0)
    >>> DefaultCalibration().fit(*make_overconfident(3, 500)).recalibrator_
    StructuredMatrixScaling()
    """

    recalibrator_: Any
    offsets_: FloatArray

    capabilities = Capabilities(
        multiclass="native",
        monotone=True,
        continuous=True,
        takes_logarithm=True,
        weights="counts",
        cost="O(n k^2)",
    )

    def _fit(self, proba, codes, weight):
        n_classes = proba.shape[1]
        if n_classes == 2:
            self.recalibrator_ = PlattScaling(prior_weight=1.0)
        else:
            log, prior = log_proba(proba), _PRIOR_ROWS * n_classes
            self.offsets_ = base_rate_offsets(log, codes, weight, prior)
            self.recalibrator_ = StructuredMatrixScaling()
        self.recalibrator_._fit(self._shifted(proba), codes, weight)

    def _predict_proba(self, proba):
        return self.recalibrator_._predict_proba(self._shifted(proba))

    def _nodes(self):
        offsets = getattr(self, "offsets_", None)
        return self.recalibrator_._nodes(*([] if offsets is None else [offsets]))

    def _shifted(self, proba):
        if proba.shape[1] == 2:
            return proba
        return canonical_proba(log_proba(proba) + self.offsets_, kind="logits")
