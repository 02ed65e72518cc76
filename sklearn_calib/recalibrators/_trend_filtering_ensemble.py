"""Ensemble of linear trend estimations."""

from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._typing import FloatArray
from ._base import Recalibrator
from ._penalty_paths import compute_model_weights
from ._trend_filtering import TrendFiltering, TrendLine, iter_trend_lines_by_penalty

_MIN_MEMBER_WEIGHT = 1e-10


class TrendFilteringEnsemble(Recalibrator):
    """Average of 50 piecewise linear fits, rough to smooth, weighted by an information criterion.

    The fits are those of `TrendFiltering`; the average is nearly smooth and may fall.
    More than two classes are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    criterion : {"aicc", "bic"}, default="aicc"
        The corrected Akaike criterion, or BIC = -2 log-likelihood + df (log n + log 2
        pi).

    Attributes
    ----------
    penalties_ : ndarray of shape (n_models,)
        The penalties of the models, decreasing.
    weights_ : ndarray of shape (n_models,)
        Their weights, with sum 1; models with less than 1e-10 are left out.
    lines_ : list of TrendLine
        The models: callables of a score, with their knots, values and degrees of
        freedom.
    one_vs_rest_ : list of TrendFilteringEnsemble
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The departures from the authors' R program are those of `TrendFiltering`; its solver
    stops early, which moves its own predictions by 0.002 to 0.06. Each model is clipped
    to [0, 1] before averaging. Cost: O(n log n) and some 1000 passes over the distinct
    scores.

    References
    ----------
    Naeini, Cooper (2016), "Binary classifier calibration using an ensemble of linear
    trend estimation".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import TrendFilteringEnsemble
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> elite = TrendFilteringEnsemble().fit(proba, y)
    >>> len(elite.penalties_) > 1
    True
    """

    penalties_: FloatArray
    weights_: FloatArray
    lines_: list[TrendLine]

    capabilities = TrendFiltering.capabilities
    _parameter_constraints: ClassVar = {
        "criterion": [StrOptions({"aicc", "bic"})],
    }

    def __init__(self, criterion: Literal["aicc", "bic"] = "aicc") -> None:
        self.criterion = criterion

    def _fit(self, proba, codes, weight):
        """Fit lines of all penalties, and weigh them by their criterion."""
        models = list(iter_trend_lines_by_penalty(proba, codes, weight, self.criterion))
        price = np.array([model.criterion for model in models])
        # No criterion is finite if there are fewer rows than a line has degrees of
        # freedom.
        if not np.isfinite(price).any():
            price = np.append(0.0, np.full(len(models) - 1, np.inf))
        weights = compute_model_weights(price)
        kept = weights >= _MIN_MEMBER_WEIGHT
        self.lines_ = [model for model, keep in zip(models, kept, strict=True) if keep]
        self.weights_ = weights[kept] / weights[kept].sum()
        self.penalties_ = np.array([model.lam for model in self.lines_])

    def _make_map(self):
        return maps.make_mixture(
            self.weights_, [line.make_map() for line in self.lines_]
        )
