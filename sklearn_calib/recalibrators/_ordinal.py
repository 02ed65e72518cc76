"""Recalibration of classes that have an order."""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from .._kernels._ordinal import fit_ordinal, probabilities, thresholds
from .._simplex import log_proba
from .._typing import FloatArray
from ._base import Capabilities, Recalibrator, check_converged


class OrdinalCalibration(Recalibrator):
    """For ordered classes, such as grades: one slope and ordered shifts of cumulative log-odds.

    With G_k the probability of a class above the k-th, the new one has log-odds slope * logit G_k
    + shift_k. The slope is not negative and the shifts fall, so G'_k falls with k as it must: no
    probability is negative, and the new distribution moves up where the old one did. K parameters
    for K classes, which know that a class next to the true one is a smaller mistake.

    The order of the classes is that of the columns: sorted labels, so "fair" < "good" < "poor".
    Give numbers as labels, or pass the order as ``fit(..., classes=)``.

    Parameters
    ----------
    prior_weight : float > 0, default=1.0
        Weight, on the scale of the sample weights, of the belief that nothing need change: as if
        so many further rows had been seen, like the calibration rows, whose labels come as often as
        predicted. It keeps slope and shifts finite where classes are missing or separated.

    Attributes
    ----------
    slope_ : float
        At least 0. Below 1 where the scores are overconfident.
    shifts_ : ndarray of shape (n_classes - 1,)
        Not increasing.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        The fit could not reach the optimum within 1e-9 nats.

    Notes
    -----
    The likelihood is concave in slope, first shift and differences of the shifts; Newton steps keep
    these differences at least 0. For two classes it is Platt scaling without smoothed targets whose
    slope is not negative. Where higher scores go with lower classes the slope is 0, up to rounding,
    and all rows get one distribution. Cost: O(n k) an iteration, about 10 iterations.

    References
    ----------
    McCullagh (1980), "Regression models for ordinal data", section 2, for the model. Pratt (1981),
    "Concavity of the log likelihood", for the concavity.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.recalibrators import OrdinalCalibration
    >>> P = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.5, 0.3, 0.2]] * 5)
    >>> stars = [1, 2, 3, 2, 1, 3, 3, 1, 2, 2, 3, 1, 1, 2, 2, 2, 1, 1, 3, 1]
    >>> model = OrdinalCalibration().fit(P, stars)
    >>> bool(model.slope_ > 0), bool((np.diff(model.shifts_) <= 0).all())
    (True, True)
    >>> above = model.predict_proba(P)[:, ::-1].cumsum(axis=1)  # falls to the left
    >>> bool((np.diff(above, axis=1) >= 0).all())
    True
    """

    slope_: float
    shifts_: FloatArray

    capabilities = Capabilities(
        multiclass="native",
        monotone=True,
        increasing=True,
        continuous=True,
        takes_logarithm=True,
        weights="counts",
        cost="O(n k)",
    )
    _parameter_constraints: dict = {  # noqa: RUF012
        "prior_weight": [Interval(Real, 0, None, closed="neither")]
    }

    def __init__(self, prior_weight: float = 1.0) -> None:
        self.prior_weight = prior_weight

    def _fit(self, proba, codes, weight):
        share = weight / weight.sum()
        target = np.asarray(proba) * (share * (self.prior_weight / weight.sum()))[:, None]
        target[np.arange(len(codes)), codes] += share
        fit = fit_ordinal(thresholds(log_proba(proba)), target)
        check_converged("OrdinalCalibration", fit.gap, fit.loss)
        self.slope_, self.shifts_ = fit.slope, fit.shifts

    def _predict_proba(self, proba):
        return probabilities(thresholds(log_proba(proba)), self.slope_, self.shifts_)

    def _nodes(self):
        return {"node": "cumulative_affine", "slope": self.slope_, "shifts": self.shifts_}
