"""Recalibration of classes that have an order."""

from typing import ClassVar

import numpy as np

from .. import maps
from .._kernels._ordinal import (
    compute_cumulative_log_odds,
    fit_ordinal_slope_shifts_and_loss,
)
from .._simplex_array import log_proba, take_columns_or_zeros
from .._sklearn_compat import POSITIVE_REAL
from .._typing import AnyArray, ArrayLike, FloatArray
from .._validation import (
    find_likely_class_by_column,
    has_unsorted_classes,
    order_scale_columns,
)
from .._warnings import warn_calibration
from ._base import (
    Capabilities,
    Recalibrator,
    find_negative_rank_correlation,
    warn_if_not_converged,
)


class OrdinalCalibration(Recalibrator):
    """For ordered classes, such as grades: one slope, and one shift for each boundary of classes.

    With G_k the probability of a class above the k-th, the new one has log-odds slope *
    logit G_k + shift_k. The slope is not negative and the shifts fall, so G'_k falls
    with k as it must: no probability is negative, and the new distribution moves up
    where the old one did. K parameters for K classes, which know that a class next to
    the true one is a smaller mistake.

    The order of the scale is `order`, or that of an ordered Categorical as labels. By
    default it is that of numbers, and of text the order in which ``fit(..., classes=)``
    names the columns. Text with columns in the order of the alphabet, or in that of a
    classifier inside a model, is an error: "fair" < "good" < "poor" is not a scale.

    Parameters
    ----------
    prior_weight : float > 0, default=1.0
        Weight, on the scale of the sample weights, of the belief that nothing need
        change: as if so many further rows had been seen, like the calibration rows,
        whose labels come as often as predicted. It keeps slope and shifts finite if
        classes are missing or separated.
    order : array-like of shape (n_classes,), default=None
        All classes from the lowest to the highest, such as ``["poor", "fair",
        "good"]``, in any order of the columns. What ``fit(..., classes=)`` names
        are the columns.

    Attributes
    ----------
    slope_ : float
        At least 0. Below 1 if the scores are overconfident.
    shifts_ : ndarray of shape (n_classes - 1,)
        Not increasing.
    floor_ : float
        What smaller probabilities count as, learned at fit; see `Recalibrator`.
    order_ : ndarray of shape (n_classes,)
        The classes from the lowest to the highest; the shifts stand between them.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Raises
    ------
    ValueError
        Three or more classes of text without an order; an `order` that is not one of
        the classes; more than 500 classes.

    Warns
    -----
    CalibrationWarning
        The fit could not reach the optimum within 1e-9 nats; columns in the order of
        `order`, unless ``classes=`` of `fit` named them.

    Notes
    -----
    The likelihood is concave in slope, first shift and differences of the shifts;
    Newton steps keep these differences at least 0. For two classes it is Platt scaling
    without smoothed targets whose slope is not negative. Where higher scores go with
    lower classes the slope is 0, up to rounding, and all rows get one distribution.
    Cost: O(n k) an iteration, about 10 iterations.

    References
    ----------
    McCullagh (1980), "Regression models for ordinal data", section 2, for the model.
    Pratt (1981), "Concavity of the log likelihood", for the concavity.

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

    Text, with columns in the order of the sorted labels, as scikit-learn's classifiers
    give them:

    >>> words = np.array(["poor", "fair", "good"])[np.array(stars) - 1]
    >>> ordinal = OrdinalCalibration(order=["poor", "fair", "good"])
    >>> ordinal.fit(P[:, [1, 2, 0]], words).classes_.tolist()
    ['fair', 'good', 'poor']
    >>> ordinal.order_.tolist(), bool(np.isclose(ordinal.slope_, model.slope_))
    (['poor', 'fair', 'good'], True)
    """

    slope_: float
    order_: AnyArray
    shifts_: FloatArray

    capabilities = Capabilities(
        multiclass="native",
        monotone=True,
        increasing=True,
        continuous=True,
        needs_positive_proba=True,
        weights="counts",
        cost="O(n k)",
        max_classes=500,
    )
    _parameter_constraints: ClassVar = {
        "prior_weight": [POSITIVE_REAL],
        "order": ["array-like", None],
    }

    def __init__(
        self, prior_weight: float = 1.0, *, order: ArrayLike | None = None
    ) -> None:
        self.prior_weight = prior_weight
        self.order = order

    def _find_negative_rank_correlation_if_any(self, proba, codes, weight):
        if self._has_columns_likely_in_scale_order(proba, codes):
            # `_fit` checks the scale and reports its details.
            return None
        rank = np.argsort(self._find_column_order())
        return find_negative_rank_correlation(
            take_columns_or_zeros(proba, np.argsort(rank)), rank[codes], weight
        )

    def _check_and_prepare_for_fit_rows(self, rows):
        super()._check_and_prepare_for_fit_rows(rows)
        self._categories = rows.category_order

    def _find_column_order(self):
        """Return the column of each class, from the lowest to the highest."""
        order = self._categories if self.order is None else self.order
        return order_scale_columns(order, self.classes_)

    def _has_columns_likely_in_scale_order(self, proba, codes):
        """Return whether columns follow the scale although the order of labels is expected."""
        if self.order is None or has_unsorted_classes(self.classes_):
            return False
        places = find_likely_class_by_column(np.asarray(proba), codes)
        return places is not None and (places == self._find_column_order()).all()

    def _warn_if_likely_in_scale_order(self, proba, codes):
        if self._has_columns_likely_in_scale_order(proba, codes):
            names = self.order_.tolist()
            warn_calibration(
                expected=f"columns in the order of the classes {self.classes_.tolist()}",
                got=f"columns that fit {names}, the order of the scale",
                hint=f"Name the columns too: fit(..., classes={names})",
                estimator=self,
            )

    def _fit(self, proba, codes, weight):
        """Fit a slope and a shift for each threshold of the ordered classes."""
        columns = self._find_column_order()
        self.order_ = self.classes_[columns]
        self._columns = columns
        self._warn_if_likely_in_scale_order(proba, codes)
        proba = take_columns_or_zeros(proba, columns)
        codes = np.argsort(columns)[codes]
        share = weight / weight.sum()
        target = (
            # Each row also counts a little as every class in proportion to its
            # prediction, so the slope has a finite optimum.
            np.asarray(proba) * (share * (self.prior_weight / weight.sum()))[:, None]
        )
        target[np.arange(len(codes)), codes] += share
        fit = fit_ordinal_slope_shifts_and_loss(
            compute_cumulative_log_odds(log_proba(proba)), target
        )
        warn_if_not_converged("OrdinalCalibration", fit)
        self.slope_ = fit.slope
        self.shifts_ = fit.shifts

    def _get_fitted_column_order(self):
        # Pickles of older versions do not have the attribute.
        return getattr(self, "_columns", np.arange(len(self.classes_)))

    def _make_ordered_map(self):
        """Return the map of columns in the order of the scale."""
        return maps.CumulativeAffine(slope=self.slope_, shifts=self.shifts_)

    def _predict_proba(self, proba):
        columns = self._get_fitted_column_order()
        mapped = self._make_ordered_map()(take_columns_or_zeros(proba, columns))
        return mapped[:, np.argsort(columns)]

    def _make_map(self):
        """Make the map, with its columns moved to the order of the scale and back."""
        columns = self._get_fitted_column_order()
        if (np.diff(columns) == 1).all():
            return self._make_ordered_map()
        # Exported maps are sequences of nodes; permutation matrices move the columns to
        # the order of the scale and back.
        indicators = np.eye(len(columns))[columns]
        zeros = np.zeros(len(indicators))
        moved = maps.SoftmaxAffine(coef=indicators, intercept=zeros)
        back = maps.SoftmaxAffine(coef=indicators.T, intercept=zeros)
        return maps.make_chain(moved, self._make_ordered_map(), back)
