"""The method that is taken when none is named."""

from ._base import Capabilities, Recalibrator
from ._platt import PlattScaling
from ._structured_matrix import StructuredMatrixScaling


class DefaultCalibration(Recalibrator):
    """Platt scaling for two classes, structured matrix scaling for more.

    Both can move the base rate, which temperature scaling cannot: the safe choice for forests,
    nearest neighbours, trees, naive Bayes, and models trained with class weights or on resampled
    rows.

    Attributes
    ----------
    recalibrator_ : PlattScaling or StructuredMatrixScaling
        The fitted method.
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
    rows may do as well with `TemperatureScaling`. Cost: O(n) for two classes, O(n k^2) a product
    for more.

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".
    Berta, Holzmueller, Jordan, Bach (2025), "Structured matrix scaling for multi-class
    calibration".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import DefaultCalibration
    >>> from sklearn_calib.testing import make_scores
    >>> DefaultCalibration().fit(*make_scores(2, 500)).recalibrator_
    PlattScaling()
    >>> DefaultCalibration().fit(*make_scores(3, 500)).recalibrator_
    StructuredMatrixScaling()
    """

    capabilities = Capabilities(
        multiclass="native", monotone=True, continuous=True, takes_logarithm=True, cost="O(n k^2)"
    )

    def _fit(self, proba, codes, weight):
        two = proba.shape[1] == 2
        self.recalibrator_ = PlattScaling() if two else StructuredMatrixScaling()
        self.recalibrator_._fit(proba, codes, weight)

    def _predict_proba(self, proba):
        return self.recalibrator_._predict_proba(proba)
