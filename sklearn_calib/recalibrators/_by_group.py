"""What the estimators share that correct probabilities with a table of groups beside them."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._argument_checks import read_bool_with_none_as_false
from .._atomic import replace_state_after_fitting_copy
from .._kernels._two_class_problems import iter_one_vs_rest
from .._sklearn_compat import check_feature_names
from .._typing import AnyArray, ArrayLike, FloatArray, Self
from .._validation import (
    check_and_get_common_index,
    get_rows_per_weight,
    read_proba,
    reorder_columns_if_names_match,
)
from .._warnings import warn_calibration
from ._base import (
    FitInput,
    combine_one_vs_rest,
    make_fit_input,
    validate_fit_input,
    validate_params,
)
from ._group_columns import read_group_columns


class BaseGroupRecalibrator(ClassifierMixin, BaseEstimator):
    """Base of the estimators whose features are probabilities, and a table of groups beside them.

    Subclasses write `_fit(rows)` and `_predict_two_class_proba(proba, columns)` for two classes.
    More classes are handled one-vs-rest.
    """

    classes_: AnyArray
    n_features_in_: int
    group_names_: list[Any]
    one_vs_rest_: list[Any]

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: object = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        soft_labels: bool = False,
    ) -> Self:
        """Learn the correction of the probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities as `canonical_proba` takes them: one column per class in the
            order of the sorted labels, or the last of `classes` alone. They come from
            rows that the model was not trained on. For logits pass
            ``canonical_proba(scores, kind="logits")``.
        y : array-like of shape (n_samples,)
            Labels.
        groups : table of shape (n_samples, n_columns), or one column
            What the groups are made of: a table of pandas, polars or Arrow, a dict of
            columns, an array, or a list of boolean masks. Text, categories and other
            objects are categories, numbers and dates are ordered. None, NaN and the
            like are missing, which is allowed.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0. A weight of 2 equals the row given twice, 0 equals the row
            left out; if rows are cross-validated, in the same folds.
        classes : array-like of shape (n_classes,), default=None
            All classes in the order of the columns; needed if the calibration rows lack
            a class.
        soft_labels : bool, default=False
            Whether `y` holds shares of classes, as `Recalibrator.fit` takes them. The
            rows that such a label stands for are never in different folds.

        Returns
        -------
        self : object
        """
        with replace_state_after_fitting_copy(self) as new:
            validate_params(new)
            soft_labels = read_bool_with_none_as_false(soft_labels, "soft_labels")
            rows = validate_fit_input(
                X,
                y,
                sample_weight,
                classes,
                soft_labels=soft_labels,
            )
            check_and_get_common_index(y, X, groups)
            columns = read_group_columns(groups, np.shape(y)[0])
            check_feature_names(new, X, reset=True)
            is_single = np.ndim(X) == 1 or np.shape(X)[1] == 1
            new.n_features_in_ = 1 if is_single else len(rows.classes)
            new._fit_two_classes_or_one_vs_rest(rows, columns)
        return self

    def _fit_validated_groups(self, proba, y_encoded, classes, sample_weight, columns):
        """Fit an unfitted copy to canonical scores, encoded labels and the columns of groups."""
        validate_params(self)
        self.n_features_in_ = len(classes)
        self._fit_two_classes_or_one_vs_rest(
            make_fit_input(proba, y_encoded, sample_weight, classes), columns
        )
        return self

    def _fit_two_classes_or_one_vs_rest(self, rows, columns):
        """Fit to validated rows and the columns of groups, one class against the rest if needed."""
        self.classes_ = rows.classes
        self.group_names_ = list(columns)
        item_rows = np.arange(len(columns[self.group_names_[0]]))
        rows = rows._replace(
            # Penalties and leaf sizes are counted in rows, so weights are scaled to
            # that unit.
            weight=rows.weight * get_rows_per_weight(rows.weight),
            items=item_rows[rows.items],
            group_columns={
                name: column[rows.items] for name, column in columns.items()
            },
        )
        if len(self.classes_) == 2:
            self._fit(rows)
            return
        warn_calibration(
            expected="two classes for a correction by groups",
            got=f"{len(self.classes_)}",
            hint=(
                "Each class is corrected against the rest and the rows are divided by "
                "their sums, which keeps the calibration of the groups only roughly; "
                "look at group_calibration afterwards"
            ),
            estimator=self,
        )
        self.one_vs_rest_ = []
        for number, pair in enumerate(iter_one_vs_rest(rows.proba)):
            fitted_copy = clone(self)
            # The parts are fitted by `_fit` alone, so the attributes that `fit` would
            # set are set here.
            fitted_copy.classes_ = np.arange(2)
            fitted_copy.n_features_in_ = 2
            fitted_copy.group_names_ = self.group_names_
            is_class = (rows.y_encoded == number).astype(np.intp)
            fitted_copy._fit(rows._replace(proba=pair, y_encoded=is_class))
            self.one_vs_rest_.append(fitted_copy)

    def predict_proba(self, X: ArrayLike, groups: object = None) -> FloatArray:
        """Predict corrected probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_classes), (n_samples, 1) or (n_samples,)
            Probabilities, as at fit.
        groups : table of shape (n_samples, n_columns), or one column
            The columns of the fit, by their names if they had names.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``. A row's result does not depend on the
            other rows, up to rounding in the last digit.
        """
        check_is_fitted(self)
        check_and_get_common_index(X, groups)
        proba = read_proba(X, n_classes=len(self.classes_), input_name="X")
        proba = reorder_columns_if_names_match(
            proba,
            X,
            self.classes_,
            getattr(self, "feature_names_in_", None),
        )
        columns = read_group_columns(groups, len(proba))
        if len(self.classes_) == 2:
            return self._predict_two_class_proba(proba, columns)
        return combine_one_vs_rest(
            self.one_vs_rest_,
            proba,
            lambda fitted, pair: fitted._predict_two_class_proba(pair, columns),
        )

    def predict(self, X: ArrayLike, groups: object = None) -> AnyArray:
        """Predict the class with the largest corrected probability.

        The first of equals.
        """
        proba = self.predict_proba(X, groups)
        return self.classes_[proba.argmax(axis=1)]

    def _fit(self, rows: FitInput) -> None:
        raise NotImplementedError

    def _predict_two_class_proba(
        self, proba: FloatArray, columns: dict[Any, AnyArray]
    ) -> FloatArray:
        raise NotImplementedError
