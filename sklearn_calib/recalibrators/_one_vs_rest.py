"""Recalibrate each class against the others."""

from typing import Any, ClassVar

import numpy as np

from .. import maps
from .._kernels._two_class_problems import iter_one_vs_rest, pair_with_rest
from .._simplex_array import stack_proba_rows
from .._typing import RecalibratorLike
from ._any_recalibrator import fit_clone, predict_proba_aligned
from ._base import Capabilities, combine_one_vs_rest
from ._fitted_maps import BaseCombinedRecalibrator, get_map


class OneVsRest(BaseCombinedRecalibrator):
    """Recalibrate each class against all others, and divide each row by its sum.

    Methods for two classes do this by themselves; the combinator makes it explicit, and
    applies it to methods that handle several classes in another way.

    Parameters
    ----------
    recalibrator : str or recalibrator, default="default"
        The method for two classes: a registered name, or anything with fit and
        predict_proba. By default `DefaultCalibration`.
    shared : bool, default=False
        Fit one map to the rows of all classes together, n_samples times n_classes rows,
        instead of one for each class. What it learns holds for all classes; for many
        classes of few rows each.

    Attributes
    ----------
    recalibrators_ : list of length n_classes, or of length 1 if shared or for two
    classes
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    A row for which every method returns 0 keeps its uncalibrated probabilities. Cost:
    n_classes fits of the method. For two classes this is the method itself. Sample
    weights mean to the fits what they mean to the method: with the default, their sum
    matters.

    References
    ----------
    Zadrozny, Elkan (2002), "Transforming classifier scores into accurate multiclass
    probability estimates", section 4.

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
        multiclass="native",
        continuous=True,
        needs_positive_proba=True,
        weights="counts",
        cost="k fits",
    )
    _parameter_constraints: ClassVar = {
        "recalibrator": "no_validation",
        "shared": ["boolean"],
    }

    def __init__(
        self,
        recalibrator: RecalibratorLike = "default",
        *,
        shared: bool = False,
    ) -> None:
        self.recalibrator = recalibrator
        self.shared = shared

    def _fit(self, proba, codes, weight):
        """Fit a method to each class against the rest, or one to all of them."""
        k = proba.shape[1]
        pairs = [pair_with_rest(proba, 1)] if k == 2 else list(iter_one_vs_rest(proba))
        labels = [
            (codes == column).astype(np.intp)
            for column in ([1] if k == 2 else range(k))
        ]
        if self.shared:
            # A shared map learns from k times as many rows, which are dependent; its
            # curve is unbiased all the same.
            weight = np.tile(weight, len(pairs))
            pairs = [stack_proba_rows(pairs)]
            labels = [np.concatenate(labels)]
        self.recalibrators_ = [
            fit_clone(self.recalibrator, pair, label, np.arange(2), weight)
            for pair, label in zip(pairs, labels, strict=True)
        ]

    def _list_fitted_parts(self):
        return self.recalibrators_

    def _predict_proba_with_parts(self, proba):
        k = proba.shape[1]
        if k == 2:
            return predict_proba_aligned(
                self.recalibrators_[0], pair_with_rest(proba, 1), [0, 1]
            )
        recalibrators = self.recalibrators_ * (k if self.shared else 1)
        return combine_one_vs_rest(
            recalibrators,
            proba,
            lambda recalibrator, pair: predict_proba_aligned(
                recalibrator, pair, [0, 1]
            ),
        )

    def _make_map(self):
        class_maps = [get_map(recalibrator) for recalibrator in self.recalibrators_]
        return (
            class_maps[0]
            if len(self.classes_) == 2
            else maps.OneVsRest(parts=class_maps)
        )
