"""Recalibrate the confidence of the predicted class."""

from typing import Any

import numpy as np

from .._renamed import renamed_arguments
from .._simplex import top_against_rest
from .._typing import RecalibratorLike
from ._anybody import aligned_proba, fit_recalibrator, resolve_recalibrator
from ._base import Capabilities, Recalibrator


class TopLabel(Recalibrator):
    """Recalibrate the probability of the predicted class and spread the rest in proportion.

    With many classes this is one two-class problem with all the rows: "is the prediction right?".

    Parameters
    ----------
    recalibrator : str or recalibrator, default="platt"
        The method for two classes: a registered name, or anything with fit and predict_proba.
    per_class : bool, default=False
        Fit one recalibrator for each predicted class (top-label calibration) instead of one for
        all (confidence calibration). Classes that are never predicted keep their scores.

    Attributes
    ----------
    recalibrators_ : dict of int to recalibrator
        By position of the predicted class in ``classes_``; key -1 for all of them.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Where the recalibrated confidence falls below another class's share, the predicted class
    changes. For two classes the positive class is the second one, and this is the method itself.
    Cost: the fits.
    Sample weights mean to the fits what they mean to the method: with the default, their sum
    matters.

    References
    ----------
    Gupta, Ramdas (2022), "Top-label calibration and multiclass-to-binary reductions", algorithms 2
    and 3.

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

    capabilities = Capabilities(
        multiclass="native",
        continuous=True,
        takes_logarithm=True,
        weights="counts",
        cost="1 or k fits",
    )
    _parameter_constraints: dict = {  # noqa: RUF012
        "recalibrator": "no_validation",
        "per_class": ["boolean"],
    }

    @renamed_arguments()
    def __init__(
        self, recalibrator: RecalibratorLike = "platt", *, per_class: bool = False
    ) -> None:
        self.recalibrator = recalibrator
        self.per_class = per_class

    def _fit(self, proba, codes, weight):
        top, groups = self._groups(proba)
        self.recalibrators_ = {}
        for key, rows in groups.items():
            self.recalibrators_[key] = fit_recalibrator(
                resolve_recalibrator(self.recalibrator, "TopLabel.fit"),
                top_against_rest(proba[rows], top[rows]),
                (codes[rows] == top[rows]).astype(np.intp),
                classes=[0, 1],
                sample_weight=weight[rows],
            )

    def _predict_proba(self, proba):
        top, groups = self._groups(proba)
        out = np.array(proba)
        everything = np.arange(proba.shape[1])
        for key, rows in groups.items():
            part = self.recalibrators_.get(key)
            if part is None:
                continue
            pair = aligned_proba(part, top_against_rest(proba[rows], top[rows]), [0, 1])
            block = out[rows]
            is_top = everything == top[rows, None]
            rest = np.where(is_top, 0.0, block)
            mass = rest.sum(axis=1, keepdims=True)
            even = np.where(is_top, 0.0, 1.0 / (len(everything) - 1))
            rest = np.where(mass > 0, rest / np.where(mass > 0, mass, 1.0), even)
            out[rows] = np.where(is_top, pair[:, [1]], pair[:, [0]] * rest)
        return out

    def _groups(self, proba):
        plain = np.asarray(proba)
        if plain.shape[1] == 2:
            top = np.ones(len(plain), dtype=np.intp)
        else:
            top = plain.argmax(axis=1)
        if not self.per_class or plain.shape[1] == 2:
            return top, {-1: np.arange(len(plain))}
        return top, {int(c): np.flatnonzero(top == c) for c in np.unique(top)}
