"""Recalibrate each class against the others."""

from typing import Any

import numpy as np

from .._simplex import each_against_rest, one_against_rest
from .._typing import RecalibratorLike
from ._anybody import aligned_proba, fit_recalibrator, resolve_recalibrator
from ._base import Capabilities, Recalibrator, normalised_rows


class OneVsRest(Recalibrator):
    """One two-class recalibrator for each class against all others, rows divided by their sums.

    Methods for two classes do this by themselves; the combinator makes it explicit, and applies it
    to methods that handle several classes in another way.

    Parameters
    ----------
    recalibrator : str or recalibrator, default="default"
        The method for two classes: a registered name, or anything with fit and predict_proba. By
        default Platt scaling with two prior rows, see `DefaultCalibration`.

    Attributes
    ----------
    recalibrators_ : list of length n_classes
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    A row for which every method returns 0 keeps its uncalibrated probabilities. Cost: n_classes
    fits of the method. For two classes this is the method itself.
    Sample weights mean to the fits what they mean to the method: with the default, their sum
    matters.

    References
    ----------
    Zadrozny, Elkan (2002), "Transforming classifier scores into accurate multiclass probability
    estimates", section 4.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import OneVsRest
    >>> P = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.5, 0.3, 0.2]] * 5
    >>> y = [0, 1, 2, 1, 0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2, 0, 1, 2, 1]
    >>> OneVsRest("platt").fit(P, y).predict_proba(P[:4]).argmax(axis=1).tolist()
    [0, 1, 2, 0]
    """

    recalibrators_: list[Any]

    capabilities = Capabilities(
        multiclass="native", continuous=True, takes_logarithm=True, weights="counts", cost="k fits"
    )
    _parameter_constraints: dict = {"recalibrator": "no_validation"}  # noqa: RUF012

    def __init__(self, recalibrator: RecalibratorLike = "default") -> None:
        self.recalibrator = recalibrator

    def _fit(self, proba, codes, weight):
        pairs = enumerate(each_against_rest(proba))
        self.recalibrators_ = [
            fit_recalibrator(
                resolve_recalibrator(self.recalibrator, "OneVsRest.fit"),
                pair,
                (codes == column).astype(np.intp),
                classes=[0, 1],
                sample_weight=weight,
            )
            for column, pair in pairs
            if proba.shape[1] > 2 or column == 1
        ]

    def _predict_proba(self, proba):
        if len(self.recalibrators_) == 1:
            return aligned_proba(self.recalibrators_[0], one_against_rest(proba, 1), [0, 1])
        values = [
            aligned_proba(part, pair, [0, 1])[:, 1]
            for part, pair in zip(self.recalibrators_, each_against_rest(proba), strict=True)
        ]
        return normalised_rows(np.column_stack(values), proba)
