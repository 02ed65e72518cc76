"""Adaptive calibration of predictions."""

from numbers import Real

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from .._kernels._binning import pool
from .._kernels._information import logistic_half_width
from .._simplex import log_odds, second_score
from ..canonical import canonical_weight
from ..exceptions import refuse
from ._base import Capabilities, Recalibrator, two_columns
from ._platt import PlattScaling


class AdaptiveCalibration(Recalibrator):
    """The share of positives among the calibration rows around each score (ACP).

    These are either the nearest rows, or the rows inside the score's own confidence interval: few
    rows where the classifier is sure, many where it is not. The map is piecewise constant and may
    fall. More than two classes are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    neighborhood : {"nearest", "interval"}, default="nearest"
        "nearest": the smallest symmetric window that holds `share` of the calibration rows.
        "interval": the rows inside the score's confidence interval. It comes from
        ``fit(..., intervals=)``, interpolated between the calibration scores, or from
        ``predict_proba(..., intervals=)`` for each row itself; without either it is the interval of
        a logistic regression on the log-odds of the score. An interval without any row takes the
        nearest calibration score.
    share : float, default=0.05
        Share of the calibration rows in a window, above 0, at most 1.
    level : float, default=0.95
        Confidence level, between 0 and 1, of the intervals that come from logistic regression.

    Attributes
    ----------
    knots_ : ndarray of shape (n_scores,)
        The distinct calibration scores, increasing.
    intervals_ : ndarray of shape (n_scores, 2)
        "interval" only: lower and upper end at each of them.
    one_vs_rest_ : list of AdaptiveCalibration
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    logistic_intervals : Intervals of a fitted logistic regression for the rows of a table.

    Notes
    -----
    All rows at the border of a window belong to it, so that neither ties nor the order of the rows
    matter; the published rules do not say. Cost: O(n log n), O(log n) a prediction.

    References
    ----------
    Jiang, Osl, Kim, Ohno-Machado (2012), "Calibrating predictive model estimates to support
    personalized medicine", for the intervals. Wang, Li, Dang (2019), section 2, for the nearest
    rows.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import AdaptiveCalibration
    >>> p, y = [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], [0, 0, 1, 0, 1, 1]
    >>> acp = AdaptiveCalibration(share=0.5).fit(p, y)
    >>> acp.predict_proba([0.2, 0.7])[:, 1].round(3).tolist()
    [0.333, 0.667]
    """

    capabilities = Capabilities(flexible=True, nonparametric=True, cost="O(k n log n)")
    _parameter_constraints: dict = {  # noqa: RUF012
        "neighborhood": [StrOptions({"nearest", "interval"})],
        "share": [Interval(Real, 0, 1, closed="right")],
        "level": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(self, neighborhood="nearest", share=0.05, level=0.95):
        self.neighborhood = neighborhood
        self.share = share
        self.level = level

    def fit(self, X, y, sample_weight=None, classes=None, intervals=None):
        """Keep the scores and labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities, as every recalibrator takes them.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0.
        classes : array-like of shape (n_classes,), default=None
            All classes in the order of the columns, for a calibration set that misses one.
        intervals : array-like of shape (n_samples, 2), default=None
            Lower and upper end, in [0, 1], of each row's probability of the second class; two
            classes and ``neighborhood="interval"`` only.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            What every recalibrator refuses; intervals that do not contain their score, or that the
            settings have no use for.
        """
        where = "AdaptiveCalibration.fit"
        if intervals is not None:
            if self.neighborhood != "interval":
                refuse(
                    where,
                    'no intervals with neighborhood="nearest"',
                    "intervals",
                    'Set neighborhood="interval"',
                )
            if np.ndim(X) == 2 and np.shape(X)[1] > 2:
                refuse(
                    where,
                    "intervals for two classes only",
                    f"{np.shape(X)[1]} columns of scores",
                    "Leave intervals out",
                )
            intervals = _checked(intervals, np.shape(X)[0], where)
            weight = canonical_weight(sample_weight, len(intervals), where=where)
            intervals = intervals[weight > 0]
        self._given = intervals
        try:
            return super().fit(X, y, sample_weight=sample_weight, classes=classes)
        finally:
            del self._given

    def predict_proba(self, X, intervals=None):
        """Calibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Scores of the same kind as at fit.
        intervals : array-like of shape (n_samples, 2), default=None
            Each row's own interval, instead of the one interpolated at its score.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        if intervals is None:
            return super().predict_proba(X)
        where = "AdaptiveCalibration.predict_proba"
        proba = self._check_predict(X, "predict_proba")
        if self.neighborhood != "interval" or hasattr(self, "one_vs_rest_"):
            refuse(
                where,
                'intervals for two classes and neighborhood="interval" only',
                f"intervals for {len(self.classes_)} classes and {self.neighborhood!r}",
                "Leave intervals out",
            )
        low, high = _checked(intervals, len(proba), where).T
        return two_columns(self._mean(second_score(proba), low, high))

    def _fit(self, proba, codes, weight):
        given = getattr(self, "_given", None)
        self.knots_, row_knot, mass, share = pool(second_score(proba), codes, weight)
        self._mass = np.append(0.0, np.cumsum(mass))
        self._ones = np.append(0.0, np.cumsum(mass * share))
        if self.neighborhood == "nearest":
            self._windows()
        elif given is not None:
            self.intervals_ = np.column_stack(
                [np.bincount(row_knot, weights=weight * end) / mass for end in given.T]
            )
        else:
            self.intervals_ = self._wald(proba, codes, weight)

    def _windows(self):
        """For each first score of a window its last one, and the middles of these windows."""
        wanted = min(self.share * self._mass[-1], self._mass[-1]) * (1 - 1e-12)
        last = np.searchsorted(self._mass, self._mass[:-1] + wanted, side="left") - 1
        first = np.flatnonzero(last < len(self.knots_))
        self._first, self._last = self.knots_[first], self.knots_[last[first]]
        self._middle = (self._first + self._last) / 2

    def _wald(self, proba, codes, weight):
        """The intervals of a logistic regression on the log-odds, carried back to the scores."""
        platt = PlattScaling()
        platt._fit(proba, codes, weight)
        z = platt.slope_ * log_odds(proba) + platt.intercept_
        design = np.column_stack([log_odds(proba), np.ones(len(z))])
        at = log_odds(two_columns(self.knots_))
        rows = np.column_stack([at, np.ones_like(at)])
        half = logistic_half_width(design, weight, z, 0.0, rows, self.level) / max(
            abs(platt.slope_), 1e-300
        )
        return expit(np.column_stack([at - half, at + half]))

    def _predict_proba(self, proba):
        score = second_score(proba)
        if self.neighborhood == "nearest":
            right = np.searchsorted(self._middle, score)
            radius = np.minimum(
                *(
                    np.maximum(score - self._first[i], self._last[i] - score)
                    for i in (np.minimum(right, len(self._middle) - 1), np.maximum(right - 1, 0))
                )
            )
            radius = radius + 1e-10 * (score + radius)  # equally far to 10 digits: both belong
            return two_columns(self._mean(score, score - radius, score + radius))
        low, high = (np.interp(score, self.knots_, end) for end in self.intervals_.T)
        return two_columns(self._mean(score, low, high))

    def _mean(self, score, low, high):
        """Share of positives among the scores from low to high, or at the nearest score."""
        start = np.searchsorted(self.knots_, low, side="left")
        end = np.searchsorted(self.knots_, high, side="right")
        empty = end <= start
        if empty.any():
            right = np.clip(np.searchsorted(self.knots_, score[empty]), 0, len(self.knots_) - 1)
            left = np.maximum(right - 1, 0)
            nearer = score[empty] - self.knots_[left] < self.knots_[right] - score[empty]
            start[empty] = np.where(nearer, left, right)
            end[empty] = start[empty] + 1
        share = (self._ones[end] - self._ones[start]) / (self._mass[end] - self._mass[start])
        return np.clip(share, 0.0, 1.0)


def _checked(intervals, n, where):
    intervals = np.asarray(intervals, dtype=np.float64)
    if intervals.shape != (n, 2):
        refuse(
            where,
            f"intervals of shape ({n}, 2), a lower and an upper end for each row",
            f"shape {intervals.shape}",
            "Pass the ends as two columns",
        )
    low, high = intervals.T
    bad = ~((low >= 0) & (low <= high) & (high <= 1))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        refuse(
            where,
            "intervals with 0 <= lower <= upper <= 1",
            f"{intervals[row].tolist()} in row {row}",
            "Pass probabilities, the lower end first",
        )
    return intervals
