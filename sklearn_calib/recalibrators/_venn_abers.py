"""Inductive Venn-Abers prediction."""

import numpy as np

from .. import maps
from .._kernels._binning import find_distinct_scores_and_index
from .._kernels._log_odds import (
    compute_rounded_unclipped_log_odds,
    find_smallest_log_odds_rounding_beyond,
)
from .._kernels._two_class_problems import iter_one_vs_rest
from .._typing import ArrayLike, FloatArray
from ._base import Capabilities, Recalibrator


class VennAbers(Recalibrator):
    """An interval for each probability, from two isotonic fits, and one probability inside it.

    Each row to be predicted is added to the calibration rows twice: once with label 0
    and once with label 1. Isotonic regression is fitted to both sets, and the two
    values for the new row are the ends of its interval. One of the two ends is
    perfectly calibrated, without any assumption except that the calibration rows and
    the new row are drawn in the same way. A wide interval means that the calibration
    rows leave the probability open. With more than two classes, each class is treated
    against all others, and the rows are divided by their sums.

    Attributes
    ----------
    scores_ : ndarray of shape (n_scores,)
        Log-odds of the distinct calibration scores, increasing.
    table_ : ndarray of shape (2 * n_scores + 1, 2)
        Ends of the interval for a query below the first score, on it, between it and
        the next ...
    one_vs_rest_ : list of VennAbers
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    `predict_proba` merges the interval [p0, p1] to p1 / (1 - p0 + p1), the minimax
    choice for the log loss; it is never exactly 0 or 1. The query added to the
    calibration set has weight 1 on the scale of the sample weights. Scores equal to 11
    digits are ties. All intervals that can occur are tabulated at fit in O(n log n),
    compiled; a query then costs O(log n), however the scores are distributed.

    References
    ----------
    Vovk, Petej, Fedorova (2015), "Large-scale probabilistic predictors with and without
    guarantees of validity", sections 2 and 4.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import VennAbers
    >>> va = VennAbers().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> va.predict_interval([0.5]).round(3).tolist()
    [[0.333, 0.667]]
    >>> va.predict_proba([0.5])
    array([[0.5, 0.5]])
    """

    scores_: FloatArray
    table_: FloatArray

    capabilities = Capabilities(
        monotone=True,
        increasing=True,
        nonparametric_shape=True,
        nonparametric=True,
        weights="counts",
        cost="O(k n log n)",
    )

    def predict_interval(self, X: ArrayLike) -> FloatArray:
        """Lower and upper probability of the second class, or of each class if there are more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Scores of the same kind as at fit.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_classes, 2)
            ``interval[..., 0] <= interval[..., 1]``, in [0, 1]; not normalised over
            classes.
        """
        proba = self._read_predict_input(X)
        if not hasattr(self, "one_vs_rest_"):
            return self._compute_interval(proba)
        class_pairs = zip(self.one_vs_rest_, iter_one_vs_rest(proba), strict=True)
        return np.stack(
            [fitted._compute_interval(pair) for fitted, pair in class_pairs], axis=1
        )

    def _fit(self, proba, codes, weight):
        from .._kernels._venn_abers import compute_venn_abers_at_gaps_and_scores

        self.scores_, row_score = find_distinct_scores_and_index(
            compute_rounded_unclipped_log_odds(proba)
        )
        row_score += 1  # the sums begin with 0
        mass = np.cumsum(np.bincount(row_score, weights=weight))
        positive = np.cumsum(np.bincount(row_score, weights=weight * codes))
        del row_score  # as large as the tables that are made next
        table = compute_venn_abers_at_gaps_and_scores(mass, positive)
        self.table_ = np.clip(table, 0.0, 1.0, out=table)

    def _make_map(self):
        lower, upper = self.table_.T
        on, after = (
            find_smallest_log_odds_rounding_beyond(self.scores_, inclusive=inclusive)
            for inclusive in (True, False)
        )
        edges = np.column_stack([on, after]).ravel()
        return maps.make_steps("rank", edges, upper / (1.0 - lower + upper))

    def _compute_interval(self, proba):
        score = compute_rounded_unclipped_log_odds(proba)
        below = np.searchsorted(self.scores_, score, side="left")
        is_fitted_score = (
            self.scores_[np.minimum(below, len(self.scores_) - 1)] == score
        )
        return self.table_[2 * below + is_fitted_score]
