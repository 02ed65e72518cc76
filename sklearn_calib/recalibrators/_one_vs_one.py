"""Recalibrate each pair of classes and couple the pairs."""

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._kernels._coupling import couple_pairs
from .._simplex import one_against_one
from .._sklearn_compat import field, with_options
from .._typing import FloatArray, RecalibratorLike
from ._anybody import aligned_proba, fit_copy
from ._base import Capabilities, Recalibrator
from ._describe import map_nodes


@with_options
class OneVsOne(Recalibrator):
    """Recalibrate each pair of classes by itself, and combine the pairs (pairwise coupling).

    It can correct each pair of classes that are confused with each other, at the price of
    n_classes (n_classes - 1) / 2 fits.

    Parameters
    ----------
    recalibrator : str or recalibrator, default="default"
        The method for two classes: a registered name, or anything with fit and predict_proba. By
        default `DefaultCalibration`, which invents few rows: the smoothed labels of
        "platt" draw the few rows of a pair of classes towards 1/2.

    Attributes
    ----------
    recalibrators_ : dict of (int, int) to recalibrator
        The method fitted on the rows of each pair (i, j), i < j, of positions in ``classes_``;
        pairs that the calibration set does not hold keep their ratio of probabilities.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    The coupled vector p minimises the sum over pairs of (r_ji p_i - r_ij p_j)^2, where r_ij is the
    recalibrated probability of i given i or j: a linear system for each row. Cost: the fits, and
    O(n_classes^3) a prediction.
    Sample weights mean to the fits what they mean to the method: with the default, their sum
    matters.

    References
    ----------
    Wu, Lin, Weng (2004), "Probability estimates for multi-class classification by pairwise
    coupling", second method, eq. 14 to 17.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import OneVsOne
    >>> P = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.5, 0.3, 0.2]] * 5
    >>> y = [0, 1, 2, 1, 0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 1, 2, 0, 1, 2, 1]
    >>> OneVsOne("platt").fit(P, y).predict_proba(P[:4]).shape
    (4, 3)
    """

    recalibrator: RecalibratorLike = "default"

    recalibrators_: dict[tuple[int, int], Any] = field(init=False)

    capabilities = Capabilities(
        multiclass="native",
        continuous=True,
        takes_logarithm=True,
        weights="counts",
        cost="k^2/2 fits",
        max_classes=200,
    )

    def _fit(self, proba, codes, weight):
        self.recalibrators_ = {}
        for first, second in itertools.combinations(range(proba.shape[1]), 2):
            rows = (codes == first) | (codes == second)
            if rows.any():
                pair = one_against_one(proba[rows], first, second)
                hit = (codes[rows] == second).astype(np.intp)
                self.recalibrators_[first, second] = fit_copy(
                    self.recalibrator, "OneVsOne.fit", pair, hit, [0, 1], weight[rows]
                )

    def _predict_proba(self, proba):
        return coupled(self._parts(), proba, lambda part, pair: aligned_proba(part, pair, [0, 1]))

    def _parts(self):
        return map(self.recalibrators_.get, itertools.combinations(range(len(self.classes_)), 2))

    def __getstate__(self) -> dict[str, Any]:
        """With text as the keys of the parts: formats other than pickle know no others."""
        state = super().__getstate__()
        if "recalibrators_" not in state:
            return state
        parts = {f"{i} {j}": part for (i, j), part in self.recalibrators_.items()}
        return state | {"recalibrators_": parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = state.get("recalibrators_", {})
        if any(isinstance(key, str) for key in parts):
            pairs = {tuple(map(int, key.split())): part for key, part in parts.items()}
            state = state | {"recalibrators_": pairs}
        super().__setstate__(state)

    def _nodes(self):
        where = "OneVsOne._nodes"
        parts = [None if part is None else map_nodes(part, where) for part in self._parts()]
        return {"node": "one_vs_one", "parts": parts}


def coupled(
    parts: Iterable[Any], proba: FloatArray, of_pair: Callable[[Any, FloatArray], FloatArray]
) -> FloatArray:
    """What the parts of all pairs of classes i < j say together; None keeps the ratio of a pair.

    ``of_pair(part, pair)`` gives two columns for two columns.
    """
    n, k = proba.shape
    pairwise = np.zeros((n, k, k))
    for part, (first, second) in zip(parts, itertools.combinations(range(k), 2), strict=True):
        pair = one_against_one(proba, first, second)
        value = np.asarray(pair) if part is None else of_pair(part, pair)
        pairwise[:, first, second], pairwise[:, second, first] = value.T
    if k == 2:
        return np.column_stack([pairwise[:, 0, 1], pairwise[:, 1, 0]])
    return couple_pairs(pairwise)
