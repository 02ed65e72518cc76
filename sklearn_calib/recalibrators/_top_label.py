"""Recalibrate the confidence of the predicted class."""

from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._temperature import fit_temperature
from .._kernels._two_class_problems import pair_top_with_rest
from .._typing import RecalibratorLike
from ._any_recalibrator import fit_clone, predict_proba_aligned
from ._base import Capabilities
from ._fitted_maps import BaseCombinedRecalibrator, get_map


class TopLabel(BaseCombinedRecalibrator):
    """Recalibrate the probability of the predicted class, and share out the rest.

    With many classes this is one two-class problem with all the rows: "is the
    prediction right?".

    Parameters
    ----------
    recalibrator : str or recalibrator, default="default"
        The method for two classes: a registered name, or anything with fit and
        predict_proba. By default `DefaultCalibration`.
    per_class : bool, default=False
        Fit one recalibrator for each predicted class (top-label calibration) instead of
        one for all (confidence calibration). Classes that are never predicted keep
        their scores.
    rest : {"temperature", "proportional"}, default="temperature"
        How the other classes share what the predicted class leaves: by their scores
        after a temperature that is fitted to the calibration rows where the prediction
        is wrong, or in proportion to their scores, as published. A network that is too
        sure of the first class is too sure of the second as well.

    Attributes
    ----------
    recalibrators_ : dict of int to recalibrator
        By position of the predicted class in ``classes_``; key -1 for all of them.
    rest_inverse_temperature_ : float
        Exponent of the scores of the other classes; 1 if they share in proportion,
        if no calibration row is wrong, and for two classes.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    If the recalibrated confidence falls below another class's share, the predicted
    class changes. The temperature of the rest is fitted with labels smoothed by 1 / (m
    + 1), m the weight of the wrong rows. For two classes the positive class is the
    second one, and this is the method itself. Cost: the fits. Sample weights mean to
    the fits what they mean to the method: with the default, their sum matters.

    References
    ----------
    Gupta, Ramdas (2022), "Top-label calibration and multiclass-to-binary reductions",
    algorithms 2 and 3.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import TopLabel
    >>> P = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.5, 0.3, 0.2]] * 5
    >>> y = [0, 1, 2, 1, 0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2, 0, 1, 2, 1]
    >>> top = TopLabel("platt").fit(P, y)
    >>> bool(top.predict_proba(P)[3, 0] < 0.5)
    True
    """

    recalibrators_: dict[int, Any]
    rest_inverse_temperature_: float

    capabilities = Capabilities(
        multiclass="native",
        continuous=True,
        needs_positive_proba=True,
        weights="counts",
        cost="1 or k fits",
    )
    _parameter_constraints: ClassVar = {
        "recalibrator": "no_validation",
        "per_class": ["boolean"],
        "rest": [StrOptions({"temperature", "proportional"})],
    }

    def __init__(
        self,
        recalibrator: RecalibratorLike = "default",
        *,
        per_class: bool = False,
        rest: Literal["temperature", "proportional"] = "temperature",
    ) -> None:
        self.recalibrator = recalibrator
        self.per_class = per_class
        self.rest = rest

    def _fit(self, proba, codes, weight):
        """Fit the probability of being right, and a temperature for the other classes."""
        top, groups = self._group_rows(proba)
        self.recalibrators_ = {}
        for key, rows in groups.items():
            pair = pair_top_with_rest(proba[rows], top[rows])
            is_correct = (codes[rows] == top[rows]).astype(np.intp)
            self.recalibrators_[key] = fit_clone(
                self.recalibrator,
                pair,
                is_correct,
                np.arange(2),
                weight[rows],
            )
        self.rest_inverse_temperature_ = 1.0
        # The other classes compete only in rows whose label is not the predicted class.
        wrong = codes != top
        if self.rest == "temperature" and proba.shape[1] > 2 and wrong.any():
            top = top[wrong]
            codes = codes[wrong]
            weight = weight[wrong]
            log, _ = maps.select_other_log_proba_and_mask(proba[wrong], top)
            fit = fit_temperature(
                # The column of the predicted class is left out, so later classes move
                # up by one. The smoothing of Berta et al. (2025) keeps the temperature
                # finite.
                log,
                codes - (codes > top),
                weight,
                1.0 / (weight.sum() + 1.0),
            )
            self.rest_inverse_temperature_ = fit.beta

    def _list_fitted_parts(self):
        return [*self.recalibrators_.values()]

    def _predict_proba_with_parts(self, proba):
        """Return probabilities by the part of each row's predicted class."""
        top, groups = self._group_rows(proba)
        out = np.array(proba)
        for key, rows in groups.items():
            recalibrator = self.recalibrators_.get(key)
            if recalibrator is None:
                continue
            pair = predict_proba_aligned(
                recalibrator, pair_top_with_rest(proba[rows], top[rows]), [0, 1]
            )
            out[rows] = maps.distribute_rest(
                pair,
                proba[rows],
                top[rows],
                self.rest_inverse_temperature_,
            )
        return out

    def _make_map(self):
        """Make the map of the parts; with two classes the part is the map."""
        k = len(self.classes_)
        keys = range(k) if self.per_class and k > 2 else [-1]
        recalibrators = map(self.recalibrators_.get, keys)
        class_maps = [
            None if recalibrator is None else get_map(recalibrator)
            for recalibrator in recalibrators
        ]
        if k == 2:
            return class_maps[0]
        return maps.TopLabel(parts=class_maps, rest=self.rest_inverse_temperature_)

    def _group_rows(self, proba):
        """Return the predicted class of each row, and the rows of each part by its key."""
        table = np.asarray(proba)
        if table.shape[1] == 2:
            # With two classes the second one takes the place of the predicted class, so
            # the part is a map of the usual pairs.
            top = np.ones(len(table), dtype=np.intp)
        else:
            top = table.argmax(axis=1)
        if not self.per_class or table.shape[1] == 2:
            return top, {-1: np.arange(len(table))}
        return top, {int(c): np.flatnonzero(top == c) for c in np.unique(top)}
