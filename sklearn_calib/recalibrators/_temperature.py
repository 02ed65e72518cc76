"""Temperature scaling."""

import warnings

import numpy as np
from scipy.special import softmax

from .._kernels._temperature import fit_temperature
from .._renamed import renamed_arguments
from .._simplex import log_proba
from ..exceptions import CalibrationWarning
from ._base import Capabilities, Recalibrator


class TemperatureScaling(Recalibrator):
    """Divide the logits by one number, the temperature.

    The predicted class never changes. The best first choice for neural networks and boosted trees,
    for any number of classes, also with few calibration rows.

    Parameters
    ----------
    laplace : bool, default=False
        Mix the result with the uniform distribution, N/(N+1) softmax + 1/(N+1) uniform for N
        calibration rows (the sum of their weights): the log loss stays finite on rows that the
        calibration set would call impossible.

    warm_start : bool, default=False
        Start from the temperature of the previous fit: from epoch to epoch of a training this
        saves passes. The result is the same.

    Attributes
    ----------
    temperature_ : float
        Above 1 the scores were overconfident, below 1 underconfident.
    inverse_temperature_ : float
        The coefficient beta = 1 / temperature that the fit finds.
    loss_ : float
        Mean log loss on the calibration set, in nats, before `laplace` (of the smoothed labels,
        where the warning below says that they were used).
    n_samples_ : float
        Sum of the calibration weights.
    n_iter_ : int
        Passes over the data.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        The scores carry no information about the labels: the result is then uniform up to 1e-6.
        Or every calibration label has the largest score, and the best temperature is 0: with
        ``laplace=True`` it is used; otherwise, so that no probability becomes 0, the fit is
        repeated with labels smoothed by 1 / (N + 1).

    Notes
    -----
    Minimises the log loss, which is convex in the inverse temperature, by Halley's method with
    exact treatment of the two infinite cases. Cost: O(n k) per pass, 2 to 6 passes. From
    probabilities, exact zeros count as ``floor_``; from logits nothing is lost.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), "On calibration of modern neural networks", eq. 9.
    Berta, Holzmueller, Jordan, Bach (2025), "Rethinking early stopping: refine, then calibrate",
    for the smoothing.

    Examples
    --------
    >>> from sklearn_calib import canonical_proba
    >>> from sklearn_calib.recalibrators import TemperatureScaling
    >>> logits = [[2, 0], [0, 2], [0, 2], [2, 0], [0, 2]]
    >>> ts = TemperatureScaling().fit(canonical_proba(logits, kind="logits"), [0, 1, 1, 0, 0])
    >>> round(ts.temperature_, 3)
    1.443
    >>> ts.predict_proba(canonical_proba([[0, 2]], kind="logits")).round(3)
    array([[0.2, 0.8]])
    >>> ts.predict_proba([0.5])
    array([[0.5, 0.5]])
    """

    temperature_: float
    inverse_temperature_: float
    loss_: float
    n_samples_: float
    n_iter_: int

    capabilities = Capabilities(
        multiclass="native", monotone=True, continuous=True, takes_logarithm=True
    )
    _parameter_constraints: dict = {"laplace": ["boolean"], "warm_start": ["boolean"]}  # noqa: RUF012

    @renamed_arguments()
    def __init__(self, laplace: bool = False, *, warm_start: bool = False) -> None:
        self.laplace = laplace
        self.warm_start = warm_start

    def _fit(self, proba, codes, weight):
        start = getattr(self, "_last", None) if self.warm_start else None
        fit = fit_temperature(log_proba(proba), codes, weight, start=start)
        if fit.status == "uninformative":
            warnings.warn(
                "TemperatureScaling.fit: expected scores that are higher for the true class, got "
                "scores that are no better than a uniform guess. The result is uniform.",
                CalibrationWarning,
                stacklevel=3,
            )
        elif fit.status == "separable":
            warnings.warn(
                "TemperatureScaling.fit: expected some calibration label without the largest "
                "score, got a calibration set that is all correct, whose best temperature is 0. "
                + (
                    "It is used, since laplace=True keeps the result inside (0, 1)."
                    if self.laplace
                    else "The fit uses labels smoothed by 1 / (N + 1); pass more rows to do "
                    "without."
                ),
                CalibrationWarning,
                stacklevel=3,
            )
            if not self.laplace:
                smoothing = 1.0 / (weight.sum() + 1.0)
                fit = fit_temperature(log_proba(proba), codes, weight, smoothing)
        self.inverse_temperature_ = self._last = fit.beta
        self.temperature_ = 1.0 / fit.beta
        self.loss_ = fit.loss
        self.n_samples_ = float(weight.sum())
        self.n_iter_ = fit.n_passes

    def _predict_proba(self, proba):
        log = log_proba(proba)
        # relative to the maximum first: a product of 1e150 and beta may overflow otherwise
        scaled = softmax(self.inverse_temperature_ * (log - log.max(axis=1, keepdims=True)), axis=1)
        if not self.laplace:
            return scaled
        share = 1.0 / (self.n_samples_ + 1.0)
        return (1.0 - share) * scaled + share / np.shape(scaled)[1]
