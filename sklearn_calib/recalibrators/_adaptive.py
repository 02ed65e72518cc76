"""Adaptive calibration of predictions."""

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from sklearn.utils._param_validation import Interval, StrOptions

from .. import maps
from .._kernels._binning import find_scores_index_mass_and_event_rates
from .._kernels._log_odds import (
    compute_rounded_unclipped_log_odds,
    interpolate_in_probability,
)
from .._kernels._logistic import compute_model_covariance, compute_standard_error
from .._simplex_array import compute_log_odds
from .._sklearn_compat import NONNEGATIVE_REAL, OPEN_UNIT_INTERVAL
from .._typing import ArrayLike, FloatArray, Self
from .._validation import check_and_get_common_index, get_rows_per_weight
from ..exceptions import invalid_input
from ._base import Capabilities, Recalibrator, make_two_columns
from ._platt import PlattScaling

_MACHINE_EPSILON = float(np.finfo(np.float64).eps)


class AdaptiveCalibration(Recalibrator):
    """Average the labels of the calibration rows around each score (ACP).

    The rows around a score are either the nearest ones, or those inside the score's own
    confidence interval: few rows if the classifier is sure, many if it is not. The map
    has jumps and may fall. More than two classes are handled one-vs-rest and the rows
    divided by their sums.

    Parameters
    ----------
    neighborhood : {"nearest", "interval"}, default="nearest"
        "nearest": the smallest symmetric window that holds `share` of the calibration
        rows. "interval": the rows inside the score's confidence interval. It comes from
        ``fit(..., intervals=)``, interpolated between the calibration scores, or from
        ``predict_proba(..., intervals=)`` for each row itself; without either it is the
        interval of a logistic regression on the log-odds, taken at the score itself. An
        interval without any row takes the nearest calibration score, or the two that
        are equally near.
    share : float, default=0.05
        Share of the calibration rows in a window, above 0, at most 1.
    level : float, default=0.95
        Confidence level, between 0 and 1, of the intervals that come from logistic
        regression.
    prior_weight : float, default=5.0
        Number, at least 0, of rows that are invented in each window: nine parts the
        score itself, one part the share of positives of all rows. They draw windows
        with few rows towards the score, and no prediction is 0 or 1. With 0 it is the
        plain share of positives, as published.

    Attributes
    ----------
    log_odds_ : ndarray of shape (n_scores,)
        Log-odds of the distinct calibration scores, increasing.
    weights_ : ndarray of shape (n_scores, 2)
        Weight of the rows of the first and of the second class at each of them.
    knots_ : ndarray of shape (n_scores,)
        Their probabilities; equal if float64 cannot tell them from 0 or 1.
    intervals_ : ndarray of shape (n_scores, 2)
        "interval" only: lower and upper end at each of them.
    one_vs_rest_ : list of AdaptiveCalibration
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    logistic_intervals : Intervals of a fitted logistic regression for the rows of a
    table.

    Notes
    -----
    All rows at the border of a window belong to it, so that neither ties nor the order
    of the rows matter; the published rules leave it open. Distances are those of
    probabilities, exact at both ends, and swapping the classes swaps the result. The
    distinct calibration scores are the map: a pickle of a fit has 24 bytes for each (24
    MB for a million; 40 with "interval"). Cost: O(n log n), O(log n) a prediction.

    References
    ----------
    Jiang, Osl, Kim, Ohno-Machado (2012), "Calibrating predictive model estimates to
    support personalized medicine", for the intervals. Wang, Li, Dang (2019), section 2,
    for the nearest rows.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import AdaptiveCalibration
    >>> p, y = [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], [0, 0, 1, 0, 1, 1]
    >>> acp = AdaptiveCalibration(share=0.5, prior_weight=0).fit(p, y)
    >>> acp.predict_proba([0.2, 0.7])[:, 1].round(3).tolist()
    [0.333, 0.667]
    """

    log_odds_: FloatArray
    weights_: FloatArray
    intervals_: FloatArray

    capabilities = Capabilities(
        nonparametric_shape=True,
        nonparametric=True,
        weights="rows",
        cost="O(k n log n)",
    )
    _parameter_constraints: ClassVar = {
        "neighborhood": [StrOptions({"nearest", "interval"})],
        "share": [Interval(Real, 0, 1, closed="right")],
        "level": [OPEN_UNIT_INTERVAL],
        "prior_weight": [NONNEGATIVE_REAL],
    }

    def __init__(
        self,
        neighborhood: Literal["nearest", "interval"] = "nearest",
        *,
        share: float = 0.05,
        level: float = 0.95,
        prior_weight: float = 5.0,
    ) -> None:
        self.neighborhood = neighborhood
        self.share = share
        self.level = level
        self.prior_weight = prior_weight

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        intervals: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
    ) -> Self:
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
            All classes in the order of the columns; needed if the calibration rows lack
            a class.
        intervals : array-like of shape (n_samples, 2), default=None
            Lower and upper end, in [0, 1], of each row's probability of the second
            class; two classes and ``neighborhood="interval"`` only.
        soft_labels : bool, default=False
            Whether `y` holds shares of classes, as every recalibrator takes them.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            What every recalibrator rejects; intervals that do not contain their score,
            or that the settings have no use for.
        """
        if intervals is not None:
            if self.neighborhood != "interval":
                raise invalid_input(
                    "intervals",
                    expected="""neighborhood='interval' with intervals""",
                    got="intervals",
                    sentence="intervals and neighborhood='nearest' cannot be combined",
                    hint='Set neighborhood="interval"',
                )
            if np.ndim(X) == 2 and np.shape(X)[1] > 2:
                raise invalid_input(
                    "intervals",
                    expected="intervals for two classes only",
                    got=f"{np.shape(X)[1]} columns of scores",
                    hint="Leave intervals out",
                )
            check_and_get_common_index(X, intervals)
            intervals = _read_intervals(intervals, np.shape(X)[0])
        # The base class validates and drops rows; `_check_and_prepare_for_fit_rows` selects
        # the intervals of those that remain.
        self._intervals = intervals
        try:
            return super().fit(X, y, sample_weight, classes, soft_labels=soft_labels)
        finally:
            del self._intervals

    # Only `fit` above adds the intervals.
    _fit_validated = Recalibrator._fit_validated
    _intervals: Any = None

    def _check_and_prepare_for_fit_rows(self, rows):
        super()._check_and_prepare_for_fit_rows(rows)
        if self._intervals is not None:
            self._intervals = self._intervals[rows.items]

    def predict_proba(
        self, X: ArrayLike, intervals: ArrayLike | None = None
    ) -> FloatArray:
        """Predict calibrated probabilities.

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
        proba = self._read_predict_input(X)
        if self.neighborhood != "interval" or hasattr(self, "one_vs_rest_"):
            raise invalid_input(
                "intervals",
                expected='intervals for two classes and neighborhood="interval" only',
                got=f"intervals for {len(self.classes_)} classes and {self.neighborhood!r}",
                hint="Leave intervals out",
            )
        check_and_get_common_index(X, intervals)
        ends = _compute_low_and_high_log_odds_moved_outward(
            _read_intervals(intervals, len(proba))
        )
        return make_two_columns(
            self._cells.estimate_rate_in_log_odds_window(
                compute_rounded_unclipped_log_odds(proba), *ends
            )
        )

    @property
    def knots_(self) -> FloatArray:
        return expit(self.log_odds_)

    def _fit(self, proba, codes, weight):
        """Pool the rows by score, and compute the interval of each distinct score."""
        intervals = getattr(self, "_intervals", None)
        self.log_odds_, row_knot, mass, share = find_scores_index_mass_and_event_rates(
            compute_rounded_unclipped_log_odds(proba), codes, weight
        )
        # Sums per distinct score answer every window, so the rows themselves are not
        # kept.
        self.weights_ = np.column_stack([mass * (1 - share), mass * share])
        if self.neighborhood == "interval" and intervals is None:
            rows = weight * get_rows_per_weight(weight)
            self._wald = _LogOddsWaldIntervalModel(proba, codes, rows, self.level)
            ends = self._wald.compute_ends(self.log_odds_)
            self.intervals_ = expit(np.column_stack(ends))
        elif self.neighborhood == "interval":
            self._wald = None
            means = [
                np.bincount(row_knot, weights=weight * end) / mass
                for end in intervals.T
            ]
            self.intervals_ = np.column_stack(means)
        # Pseudo rows are counted in rows; weights may be in another unit.
        self._invented = self.prior_weight / get_rows_per_weight(weight)
        self._set_cells_for_window_means()

    def _set_cells_for_window_means(self):
        from .._kernels._range_sums import WindowEstimator

        window_share = self.share if self.neighborhood == "nearest" else None
        self._cells = WindowEstimator(
            self.log_odds_, self.weights_, window_share, self._invented
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what follows from the cells."""
        state = dict(super().__getstate__())
        state.pop("_cells", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "weights_" in state:
            self._set_cells_for_window_means()

    def _predict_two_class_proba(self, proba):
        score = compute_rounded_unclipped_log_odds(proba)
        if self.neighborhood == "nearest":
            rate = self._cells.estimate_nearest(score)
        else:
            ends = self._compute_interval_ends_as_log_odds(score)
            rate = self._cells.estimate_rate_in_log_odds_window(score, *ends)
        return make_two_columns(rate)

    def _compute_interval_ends_as_log_odds(self, score):
        if self._wald is not None:
            return self._wald.compute_ends(score)
        ends = [
            interpolate_in_probability(score, self.log_odds_, end)
            for end in self.intervals_.T
        ]
        return _compute_low_and_high_log_odds_moved_outward(np.column_stack(ends))

    def _make_map(self):
        """Make a curve whose points are the scores at which a window gains or loses a cell."""
        if self.neighborhood == "nearest":
            return self._make_curve(
                self.log_odds_, self._cells.find_nearest_window_start_and_end
            )
        points = self.log_odds_
        # The ends of Wald's intervals need not increase with the score, so the map may
        # also change where an end meets a point.
        if self._wald is not None:
            points = np.append(
                points, self._wald.solve_log_odds_for_interval_ends(points)
            )

        def find_window(score):
            return self._cells.find_window(
                *self._compute_interval_ends_as_log_odds(score)
            )

        return self._make_curve(points, find_window)

    def _make_curve(self, points, find_window):
        """Make a curve from its points, and a function that returns the window of a score."""

        def compute_piece_ids(score):
            """Return a number that identifies the cells around a score.

            The map is smooth between scores of equal numbers.
            """
            start, end = find_window(score)
            # Scores with the same first and last cell get the same rows, hence the same
            # piece of the map.
            return start * (len(self.log_odds_) + 1) + end

        return maps.CallableMap(
            input="rank",
            name=type(self).__name__,
            predict=self._predict_two_class_proba,
            points=points,
            piece=compute_piece_ids,
        )


class _LogOddsWaldIntervalModel:
    """The intervals of a logistic regression on the log-odds, carried back to the scores."""

    def __init__(self, proba, codes, weight, level):
        platt = PlattScaling()
        platt._fit(proba, codes, weight)
        score = compute_log_odds(proba)
        z = platt.slope_ * score + platt.intercept_
        design = _append_constant_column(score)
        self.covariance = compute_model_covariance(design, weight, z, 0.0)
        self.factor = norm.ppf((1 + level) / 2) / max(abs(platt.slope_), 1e-300)

    def compute_ends(self, log_odds):
        """Compute log-odds of the lower and upper ends at these log-odds."""
        design = _append_constant_column(log_odds)
        half_width = self.factor * compute_standard_error(design, self.covariance)
        return log_odds - half_width, log_odds + half_width

    def solve_log_odds_for_interval_ends(self, ends):
        """Compute the log-odds whose intervals end at these."""
        (square, cross), (_, constant) = self.factor**2 * self.covariance
        # These are the coefficients of a x^2 - 2 b x + c = 0.
        a = 1 - square
        b = ends + cross
        c = ends * ends - constant
        with np.errstate(divide="ignore", invalid="ignore"):
            # The stable form of the two roots: b and the square root have the same
            # sign, so nothing cancels.
            stable_sum = b + np.copysign(np.sqrt(b * b - a * c), b)
            roots = np.concatenate([stable_sum / a, c / stable_sum])
        return roots[np.isfinite(roots)]


def _append_constant_column(column):
    return np.column_stack([column, np.ones_like(column)])


def _compute_low_and_high_log_odds_moved_outward(intervals):
    """Compute log-odds of the ends, moved outwards by the rounding of a probability."""
    low, high = intervals.T
    epsilon = _MACHINE_EPSILON
    # The probability and its complement are both moved.
    rest_of_high = np.maximum((1 - high) - epsilon, 0.0)
    with np.errstate(divide="ignore"):
        low_end = np.log(low * (1 - epsilon)) - np.log(1 - low + epsilon)
        high_end = np.log(high + epsilon * high) - np.log(rest_of_high)
    return low_end, high_end


def _read_intervals(intervals, n):
    """Return intervals of shape (n, 2) as float64, and raise an error if they are none."""
    intervals = np.asarray(intervals, dtype=np.float64)
    if intervals.shape != (n, 2):
        raise invalid_input(
            "intervals",
            expected=f"intervals of shape ({n}, 2), a lower and an upper end for each row",
            got=f"shape {intervals.shape}",
            hint="Pass the ends as two columns",
        )
    low, high = intervals.T
    bad = ~((low >= 0) & (low <= high) & (high <= 1))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise invalid_input(
            "intervals",
            expected="intervals with 0 <= lower <= upper <= 1",
            got=f"{intervals[row].tolist()}",
            hint="Pass probabilities, the lower end first",
            row=row,
        )
    return intervals
