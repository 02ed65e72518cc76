"""The context of a fit: its arguments, validated once, and what its folds do with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import process_routing

from .._group_folds import FastStratifiedGroupKFold
from .._simplex_array import stack_proba_rows
from .._sklearn_compat import (
    check_method_params,
    convert_to_namespace,
    get_array_namespace_if_dispatched,
    routing_enabled,
    safe_indexing,
    safe_split,
)
from .._typing import CV, AnyArray, Estimator, Features, FloatArray, IntArray, Self
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    check_two_or_more_classes,
    get_present_ordered_categories,
    order_scale_columns,
    read_labels,
    validate_soft_labels,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ..linear import LinearFit, read_linear
from ..recalibrators import (
    check_cv_pairs,
    check_folds_fit_largest_class,
    encode_groups,
    fit_validated,
    resolve_recalibrator,
    validate_params,
    warn_if_harmful,
)
from ._classifier_scores import (
    check_not_prefit,
    compute_aligned_canonical_scores,
    count_rows,
    is_xgboost_or_lightgbm,
)
from ._eval_sets import FitLabelEncoding, encode_eval_labels_and_drop_rows
from ._user_estimators import (
    add_classes_to_frozen,
    check_early_stopping_has_eval_set,
    check_refittable_classifier,
    clone_or_raise,
    loses_fit_when_cloned,
)


class HeldOutScores(NamedTuple):
    """Hold what a fitted classifier gives for some rows, and their labels.

    ``scores`` has a column for each class; with many labels it is a list of an array
    per label.
    """

    scores: Any
    # The positions of the rows in X.
    rows: IntArray
    y_encoded: AnyArray


@dataclass(frozen=True, kw_only=True)
class FitContext:
    """Hold the arguments of one fit, validated once, for its folds and its recalibrators.

    This class is for one label per row; other kinds of labels override what differs.
    ``columns`` are the positions, among all classes, of those that a fitted classifier
    has learned.
    """

    label_kind = "plain"

    X: Any
    y_encoded: AnyArray
    # The weights of the rows, for the recalibrator.
    weight: FloatArray
    classes: Any
    estimator: Any
    recalibrator: Any
    estimator_params: dict[str, Any]
    recalibrator_params: dict[str, Any]
    split_params: dict[str, Any]
    response_method: str
    # The labels as they were passed, if they are an ordered Categorical.
    ordered_labels: Any = None
    # For soft labels, the index of the given row that each row comes from.
    items: Any = None

    @classmethod
    def from_fit_and_set_classes(
        cls,
        model: Any,
        X: Features,
        y: Any,
        sample_weight: Any,
        fit_params: dict[str, Any],
    ) -> Self:
        """Validate the arguments of ``model.fit``, and set ``model.classes_``."""
        check_meta_classifier_params(model)
        estimator = get_estimator_and_add_classes_if_frozen(
            model, lambda: read_labels(y, input_name="y")[0]
        )
        is_frozen = isinstance(estimator, FrozenEstimator)
        # Rows of a frozen estimator may lack some of its classes.
        model_classes = estimator.classes_ if is_frozen else None
        classes, y_encoded = read_labels(y, classes=model_classes, input_name="y")
        check_and_get_common_index(X, y, sample_weight, fit_params.get("groups"))
        check_two_or_more_classes(
            classes, "There is nothing to classify; check the selection of the rows"
        )
        (X,) = indexable(X)
        n_rows = count_rows(X)
        if n_rows != len(y_encoded):
            raise invalid_input(
                expected="as many labels as rows of X",
                got=(
                    f"{len(y_encoded)} labels and {n_rows} rows (inconsistent numbers of samples)"
                ),
                hint="Check that both come from the same selection",
            )
        params = route_metadata_to_context_fields(
            model, sample_weight, fit_params, n_rows
        )
        # The groups among the splitter's parameters are also for a recalibrator that
        # takes them.
        if not routing_enabled():
            params["recalibrator_params"] |= params["split_params"]
        model.classes_ = classes
        recalibrator = resolve_recalibrator(model.recalibrator)
        is_ordered = get_present_ordered_categories(y, classes) is not None
        # An ordinal method without an order: text labels sorted by the alphabet raise
        # an error here, before the fits.
        if not is_ordered and getattr(recalibrator, "order", ...) is None:
            # The order of a classifier's own classes_ is that of its columns, not that
            # of a scale.
            order_scale_columns(None, np.sort(classes))
        return cls(
            X=X,
            y_encoded=y_encoded,
            classes=classes,
            estimator=estimator,
            recalibrator=recalibrator,
            response_method=model.response_method,
            ordered_labels=getattr(y, "array", y) if is_ordered else None,
            **params,
        )

    @property
    def all_rows(self) -> IntArray:
        """The positions of all rows."""
        return np.arange(len(self.y_encoded))

    @property
    def all_columns(self) -> AnyArray:
        """The columns of a model that has learned all classes."""
        return np.arange(len(self.classes))

    @property
    def groups(self) -> Any:
        """The groups of the rows, or None."""
        return self.split_params.get("groups", self.recalibrator_params.get("groups"))

    def prepare_splitter_params(self) -> dict[str, Any]:
        """Return the arguments of the splitter beside the rows: groups, which are checked."""
        groups = {} if self.groups is None else {"groups": self.groups}
        params = groups | self.split_params
        values = params.get("groups")
        if values is not None and np.ndim(values) == 1:
            # Raises for missing groups, which a splitter cannot sort or takes as one.
            encode_groups(values, len(self.y_encoded))
        return params

    def with_groups_for_all_splits(self, groups: IntArray) -> Self:
        """Return a copy with groups that neither its folds nor the recalibrator's split."""
        params = self.recalibrator_params
        if not routing_enabled() and self.label_kind != "many":
            params = params | {"groups": groups}
        split_params = self.split_params | {"groups": groups}
        return replace(self, split_params=split_params, recalibrator_params=params)

    # -- folds --------------------------------------------------------------------------------

    def make_folds(self, cv: CV) -> list[Any]:
        """Return the pairs (train, test) of rows that `cv` means."""
        splitter = self._make_splitter(cv)
        return list(
            splitter.split(self.X, self.y_encoded, **self.prepare_splitter_params())
        )

    def _make_splitter(self, cv):
        """Return a splitter; if groups are given, an int means folds that split none of them."""
        if isinstance(cv, Integral):
            check_folds_fit_largest_class(cv, self.y_encoded)
        elif cv is not None:
            # An iterator would be exhausted by the check of its pairs.
            cv = list(cv) if isinstance(cv, Iterator) else cv
            check_cv_pairs(cv)
            return check_cv(cv, self.y_encoded, classifier=True)
        # Stratified folds of whole groups, fast also for many groups.
        if self.groups is not None:
            return FastStratifiedGroupKFold(5 if cv is None else int(cv))
        return check_cv(cv, self.y_encoded, classifier=True)

    def get_test_rows_and_learned_labels(
        self, columns: AnyArray, test: IntArray
    ) -> tuple[IntArray, AnyArray]:
        """Return the test rows of classes that were learned, and their labels."""
        rows = self.all_rows[test]
        # A model without a class has score 0 for it, which would count as an infinite
        # error of the recalibrator.
        rows = rows[np.isin(self.y_encoded[rows], columns)]
        return rows, self.y_encoded[rows]

    def get_features_at_rows(
        self, estimator: Estimator, train: IntArray, rows: IntArray
    ) -> Features:
        """Return the features of test rows; a kernel matrix has a column for each row of train."""
        return safe_split(estimator, self.X, self.y_encoded, rows, train)[0]

    def concatenate_folds(self, folds: Sequence[HeldOutScores]) -> HeldOutScores:
        """Return what several folds give, one below the other."""
        scores = self._concatenate_score_rows([fold.scores for fold in folds])
        rows = np.concatenate([fold.rows for fold in folds])
        return HeldOutScores(
            scores, rows, np.concatenate([fold.y_encoded for fold in folds])
        )

    def _concatenate_score_rows(self, blocks):
        return stack_proba_rows(blocks)

    # -- the classifier -----------------------------------------------------------------------

    def fit_estimator_and_get_columns(
        self,
        rows: IntArray,
        estimator: Estimator | None = None,
        fit: Callable[..., Estimator] | None = None,
    ) -> tuple[Estimator, AnyArray]:
        """Fit a clone, or `estimator`, on some rows; return it and its columns."""
        estimator = clone_or_raise(self.estimator) if estimator is None else estimator
        fit = estimator.fit if fit is None else partial(fit, estimator)
        X, y = safe_split(estimator, self.X, self.y_encoded, rows)
        params = check_method_params(self.X, params=self.estimator_params, indices=rows)
        # Early stopping without an evaluation set is an error of the learner that only
        # appears after minutes.
        check_early_stopping_has_eval_set(estimator, params)
        return estimator, self._fit_and_get_learned_columns(
            fit, estimator, X, y, params
        )

    def _fit_and_get_learned_columns(self, fit, estimator, X, y, params):
        """Fit an estimator to encoded labels; return its columns."""
        # XGBoost needs 0 .. K-1 without gaps, scikit-learn's own classifiers reject
        # bytes, and tensors only hold numbers.
        kinds_to_encode = "S" if get_array_namespace_if_dispatched(X) is None else "SUO"
        is_encoded = not isinstance(estimator, FrozenEstimator) and (
            is_xgboost_or_lightgbm(estimator, "xgboost")
            or self.classes.dtype.kind in kinds_to_encode
        )
        present, local = np.unique(y, return_inverse=True)
        if params:
            labelling = FitLabelEncoding(self.classes, present, is_encoded)
            params = encode_eval_labels_and_drop_rows(estimator, params, labelling)
        fit(
            X,
            convert_to_namespace(local if is_encoded else self.classes[y], X),
            **params,
        )
        if is_encoded or np.array_equal(estimator.classes_, self.classes[present]):
            return present
        return read_labels(estimator.classes_, classes=self.classes)[1]

    def read_model_and_linear_fits(
        self, estimator: Estimator, columns: IntArray
    ) -> tuple[Estimator, list[LinearFit], bool]:
        """Return a linear classifier without FrozenEstimator, its fits, and whether it is ours."""
        is_frozen = isinstance(estimator, FrozenEstimator)
        model = estimator.estimator if is_frozen else estimator
        step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        weight = self.estimator_params.get(f"{step}sample_weight")
        # The model's own labels, which may be encoded ones.
        own_labels = model.classes_[np.argsort(columns)[self.y_encoded]]
        return model, read_linear(model, self.X, own_labels, weight), not is_frozen

    def compute_scores(
        self, estimator: Estimator, columns: AnyArray, X: Features
    ) -> Any:
        """Return canonical scores of a fitted estimator, a column for each of all classes."""
        n_classes = len(self.classes)
        if count_rows(X) == 0:
            return np.empty((0, n_classes))
        return compute_aligned_canonical_scores(
            estimator,
            columns,
            n_classes,
            X,
            self.response_method,
        )

    def score_test_rows(
        self,
        fitted_estimator: Estimator,
        columns: AnyArray,
        train: IntArray,
        test: IntArray,
    ) -> HeldOutScores:
        """Return the scores of the test rows of a fold."""
        rows, y = self.get_test_rows_and_learned_labels(columns, test)
        X = self.get_features_at_rows(fitted_estimator, train, rows)
        return HeldOutScores(self.compute_scores(fitted_estimator, columns, X), rows, y)

    # -- the recalibrator ---------------------------------------------------------------------

    def select_recalibrator_params(self, rows: IntArray) -> dict[str, Any]:
        """Return the parameters of the recalibrator's fit for some rows."""
        return check_method_params(
            self.X, params=self.recalibrator_params, indices=rows
        )

    def fit_recalibrator(self, held_out: HeldOutScores) -> Estimator:
        """Fit a clone of the recalibrator."""
        scores, rows, y_encoded = held_out
        if not len(scores):
            raise invalid_input(
                expected="calibration rows in every fold",
                got="a fold without such rows",
                sentence=(
                    "One fold has no calibration rows of the classes that its model "
                    "was trained on"
                ),
                hint="Use fewer folds, or stratified ones",
            )
        return fit_validated(
            clone(self.recalibrator),
            scores,
            y_encoded,
            self.classes,
            ordered_labels=None
            if self.ordered_labels is None
            else self.ordered_labels[rows],
            **self.select_recalibrator_params(rows),
        )

    def warn_if_harmful(self, recalibrator: Estimator, held_out: HeldOutScores) -> None:
        """Warn if a fitted recalibrator harms the rows it was fitted to."""
        scores, rows, y_encoded = held_out

        def fit_recalibrator_on_held_out_part(part):
            return self.fit_recalibrator(
                HeldOutScores(scores[part], rows[part], y_encoded[part])
            )

        weight = self.weight[rows]
        warn_if_harmful(
            recalibrator,
            fit_recalibrator_on_held_out_part,
            scores,
            y_encoded,
            weight,
            self.classes,
        )


@dataclass(frozen=True, kw_only=True)
class SoftLabelContext(FitContext):
    """Hold the arguments of a fit to shares of classes: of a row for each class of an item.

    Rows of one item follow each other and stay together, and their weights are the
    shares.
    """

    label_kind = "soft"

    @classmethod
    def from_fit_and_set_classes(
        cls,
        model: Any,
        X: Features,
        y: Any,
        sample_weight: Any,
        fit_params: dict[str, Any],
    ) -> Self:
        """Read soft labels: each row is repeated once for each class with a share."""
        estimator = model.estimator
        check_and_get_common_index(X, y, sample_weight)
        (X,) = indexable(X)
        classes = None
        if isinstance(estimator, FrozenEstimator):
            k = np.shape(y)[1] if np.ndim(y) == 2 and np.shape(y)[1] > 1 else 2
            classes = add_classes_to_frozen(estimator, lambda: np.arange(k)).classes_
        elif (
            not routing_enabled()
            and "sample_weight" not in signature(estimator.fit).parameters
        ):
            raise _missing_weight_error(estimator)
        # Each item becomes one row per class with a positive share, weighted by the
        # share: the loss of these rows is that of the shares.
        soft = validate_soft_labels(
            y,
            sample_weight,
            classes,
            n_rows=count_rows(X),
            input_name="y",
        )
        params = check_method_params(X, params=fit_params, indices=soft.items)
        X = safe_indexing(X, soft.items)
        context = super().from_fit_and_set_classes(
            model,
            X,
            soft.labels,
            soft.weight,
            params,
        )
        # Metadata routing may not pass the shares on.
        is_frozen = isinstance(estimator, FrozenEstimator)
        if not is_frozen and "sample_weight" not in context.estimator_params:
            raise _missing_weight_error(context.estimator)
        if "sample_weight" not in context.recalibrator_params:
            raise _missing_weight_error(context.recalibrator)
        return replace(context, items=soft.items)

    def make_folds(self, cv: CV) -> list[Any]:
        """Return folds of (train, test) positions; the rows of an item stay together."""
        # Folds divide the items: copies of one item stay together.
        starts = np.append(True, self.items[1:] != self.items[:-1])
        first = np.flatnonzero(starts)
        item_number = np.cumsum(starts) - 1
        # The first row of each item in this order is its most probable class, ties by
        # the order of the classes; folds are stratified by it.
        order = np.lexsort((self.y_encoded, -self.weight, item_number))
        likeliest = self.y_encoded[order[first]]
        params = check_method_params(
            self.X, params=self.prepare_splitter_params(), indices=first
        )
        item_X = safe_indexing(self.X, first)
        numbers = np.arange(len(first))
        folds = []
        for parts in self._make_splitter(cv).split(item_X, likeliest, **params):
            rows = (
                np.flatnonzero(np.isin(item_number, numbers[fold_items]))
                for fold_items in parts
            )
            folds.append(tuple(rows))
        return folds

    def select_recalibrator_params(self, rows: IntArray) -> dict[str, Any]:
        params = super().select_recalibrator_params(rows)
        # A recalibrator that makes folds must not divide an item.
        return {"groups": self.items[rows]} | params


def _missing_weight_error(estimator):
    return invalid_input(
        expected="a fit that takes sample_weight, the shares of soft labels",
        got=f"{type(estimator).__name__}",
        hint=(
            "Take another method, or a fitted model in a FrozenEstimator; for a "
            "pipeline enable metadata routing, and call "
            "set_fit_request(sample_weight=True) on its steps"
        ),
    )


# -- steps of the validation ----------------------------------------------------------------------


def check_meta_classifier_params(model: Any) -> None:
    """Raise ValueError or TypeError if the parameters of a model are not valid."""
    check_not_prefit(model.cv)
    check_refittable_classifier(model.estimator)
    validate_params(model)


def get_estimator_and_add_classes_if_frozen(
    model: Any, get_classes: Callable[[], AnyArray]
) -> Estimator:
    """Return the estimator to be cloned, or the frozen one with its classes."""
    estimator = model.estimator
    if isinstance(estimator, FrozenEstimator):
        return add_classes_to_frozen(estimator, get_classes)
    if loses_fit_when_cloned(estimator):
        warn_calibration(
            expected="an estimator that is not fitted yet, or a fitted one in a FrozenEstimator",
            got=f"a fitted {type(estimator).__name__}",
            hint=(
                "It is fitted again on these rows; to keep the fitted one, write "
                f"{type(model).__name__}(FrozenEstimator(model)), with rows that it has "
                "not seen"
            ),
            estimator=model,
        )
    return estimator


def route_metadata_to_context_fields(
    model: Any, sample_weight: Any, fit_params: dict[str, Any], n_rows: int
) -> dict[str, Any]:
    """Return the parameters of the fits and of the splitter, and the recalibrator's weights."""
    weight = np.ones(n_rows)
    if sample_weight is not None:
        weight = canonical_weight(sample_weight, n_rows)
    if routing_enabled():
        routed = process_routing(
            model, "fit", sample_weight=sample_weight, **fit_params
        )
        recalibrator_params = dict(routed.recalibrator.fit)
        # With routing, weights that were not requested do not reach the recalibrator.
        if "sample_weight" not in recalibrator_params:
            weight = np.ones(n_rows)
        return {
            "estimator_params": dict(routed.estimator.fit),
            "recalibrator_params": recalibrator_params,
            "split_params": routed.splitter.split,
            "weight": weight,
        }
    estimator_params = dict(fit_params)
    groups = (
        {"groups": estimator_params.pop("groups")} if "groups" in fit_params else {}
    )
    if "pos_label" in fit_params:
        raise invalid_input(
            "pos_label",
            expected="a fit without pos_label",
            got=repr(fit_params["pos_label"]),
            hint="There is a column for each class of classes_; pass pos_label to measures",
            error=TypeError,
        )
    weights = {}
    if sample_weight is not None:
        weights["sample_weight"] = sample_weight
        if "sample_weight" in signature(model.estimator.fit).parameters:
            estimator_params |= weights
        elif not isinstance(model.estimator, FrozenEstimator):
            warn_calibration(
                expected="an estimator whose fit takes sample_weight",
                got=f"{type(model.estimator).__name__}, fitted without weights",
                hint=(
                    "The recalibrator uses them; for a pipeline pass "
                    "STEP__sample_weight=... or enable metadata routing"
                ),
                estimator=model,
                category=UserWarning,
            )
    return {
        "estimator_params": estimator_params,
        "recalibrator_params": weights,
        "split_params": groups,
        "weight": weight,
    }
