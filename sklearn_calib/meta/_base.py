"""What the estimators of this sub-package share: pairs of a classifier and a recalibrator."""

from collections.abc import Callable, Iterator
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
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._argument_checks import check_sizes
from .._base_meta_classifier import BaseMetaClassifier
from .._callbacks import CallbackSupportMixin
from .._clone import clone_from_copied_params
from .._group_folds import FastStratifiedGroupKFold
from .._simplex_array import stack_rows
from .._sklearn_compat import (
    check_method_params,
    get_array_namespace,
    routing_enabled,
    safe_indexing,
    safe_split,
    to_namespace_of,
)
from .._typing import CV, AnyArray, Estimator, Features, FloatArray, IntArray, Self
from .._validation import (
    align_columns,
    canonical_weight,
    check_indexes,
    check_several,
    get_category_order,
    order_scale_columns,
    read_labels,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ..linear import LinearFit, read_linear
from ..recalibrators import (
    check_cv_pairs,
    check_fold_count,
    fit_validated,
    resolve_recalibrator,
    warn_if_harmful,
)
from ._classifier_scores import check_not_prefit, compute_aligned_scores, count_rows, is_boosted
from ._eval_sets import Labelling, with_own_labels
from ._user_estimators import (
    check_clonable,
    check_early_stopping,
    clone_or_raise,
    frozen_with_classes,
    loses_fit_when_cloned,
)

#: What ``_parameter_constraints`` ask of an estimator that gives scores.
ESTIMATOR_CONSTRAINTS = [
    HasMethods(["fit", "predict_proba"]),
    HasMethods(["fit", "decision_function"]),
    FrozenEstimator,
]


class CalibratedPair(NamedTuple):
    """A fitted classifier together with the recalibrator fitted to its scores.

    ``columns`` are the positions of the classifier's classes among all classes.
    """

    estimator: Any
    recalibrator: Any
    columns: IntArray


@dataclass(frozen=True, kw_only=True)
class AnyJob:
    """What the fits of one call share, whatever labels the rows have."""

    X: Any
    codes: Any
    classes: Any
    estimator: Any
    recalibrator: Any
    estimator_params: dict[str, Any]
    recalibrator_params: dict[str, Any]
    split_params: dict[str, Any]
    response_method: str
    items: IntArray | None = None  # of soft labels: rows of one item are never split

    @property
    def groups(self) -> Any:
        """The groups of the rows, or None."""
        return self.split_params.get("groups", self.recalibrator_params.get("groups"))

    @property
    def splitter_params(self) -> dict[str, Any]:
        """What the splitter is given beside the rows: groups, wherever they are known from."""
        groups = {} if self.groups is None else {"groups": self.groups}
        return groups | self.split_params

    def split_by(self, groups: IntArray) -> Self:
        """The same with folds that keep groups together."""
        return replace(self, split_params=self.split_params | {"groups": groups})


@dataclass(frozen=True, kw_only=True)
class Job(AnyJob):
    """That of rows with one label each."""

    codes: IntArray
    classes: AnyArray
    weight: FloatArray  # what the recalibrator weighs the rows with
    scale: Any = None  # the labels as they were given, if they have an order of their own

    def split_by(self, groups: IntArray) -> Self:
        """The same with folds that keep groups together, those of the recalibrator too."""
        job = super().split_by(groups)
        if routing_enabled():
            return job
        return replace(job, recalibrator_params=job.recalibrator_params | {"groups": groups})

    def splits(self, cv: CV) -> list[Any]:
        """The pairs (train, test) of rows that `cv` means; no item of soft labels is split."""
        splitter, params, items = self._splitter(cv), self.splitter_params, self.items
        if items is None:
            return list(splitter.split(self.X, self.codes, **params))
        starts = np.append(True, items[1:] != items[:-1])  # rows of an item follow each other
        first, number = np.flatnonzero(starts), np.cumsum(starts) - 1
        order = np.lexsort((self.codes, -self.weight, number))
        likeliest = self.codes[order[first]]  # the class of the largest share of each item
        params = check_method_params(self.X, params=params, indices=first)
        places = np.arange(len(first))
        return [
            tuple(np.flatnonzero(np.isin(number, places[part])) for part in parts)
            for parts in splitter.split(safe_indexing(self.X, first), likeliest, **params)
        ]

    def _splitter(self, cv):
        """Where groups are given, an int means folds that split none of them."""
        cv = list(cv) if isinstance(cv, Iterator) else cv
        check_cv_pairs(cv)
        if isinstance(cv, Integral):
            check_fold_count(int(cv), self.codes)
        if (cv is None or isinstance(cv, Integral)) and self.groups is not None:
            return FastStratifiedGroupKFold(5 if cv is None else int(cv))
        return check_cv(cv, self.codes, classifier=True)

    @property
    def all_columns(self) -> IntArray:
        """The columns of a model that knows all classes."""
        return np.arange(len(self.classes))

    def fit_estimator(
        self,
        rows: IntArray,
        estimator: Estimator | None = None,
        fit: Callable[..., Estimator] | None = None,
    ) -> tuple[Estimator, IntArray]:
        """Fit a clone on some rows; also the positions of its classes among all classes."""
        estimator = clone_or_raise(self.estimator) if estimator is None else estimator
        fit = estimator.fit if fit is None else partial(fit, estimator)
        part, codes = safe_split(estimator, self.X, self.codes, rows)
        params = check_method_params(self.X, params=self.estimator_params, indices=rows)
        check_early_stopping(estimator, params)
        # 0 .. K-1 without gaps for XGBoost; bytes are refused by scikit-learn's own classifiers;
        # libraries of tensors have numbers alone
        kinds_to_code = "S" if get_array_namespace(part) is None else "SUO"
        coded = not isinstance(estimator, FrozenEstimator) and (
            is_boosted(estimator, "xgboost") or self.classes.dtype.kind in kinds_to_code
        )
        present, local = np.unique(codes, return_inverse=True)
        if params:
            labelling = Labelling(self.classes, present, coded)
            params = with_own_labels(estimator, params, labelling)
        fit(part, to_namespace_of(local if coded else self.classes[codes], part), **params)
        if coded:
            return estimator, present
        if np.array_equal(estimator.classes_, self.classes[present]):
            return estimator, present
        _, columns = read_labels(estimator.classes_, classes=self.classes)
        return estimator, columns

    def linear_fits(
        self, estimator: Estimator, columns: IntArray
    ) -> tuple[Estimator, list[LinearFit], bool]:
        """A fitted linear classifier without its FrozenEstimator, its fits, whether it is ours."""
        frozen = isinstance(estimator, FrozenEstimator)
        model = estimator.estimator if frozen else estimator
        step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        weight = self.estimator_params.get(f"{step}sample_weight")
        labels = model.classes_[np.argsort(columns)[self.codes]]  # its own, which may be codes
        return model, read_linear(model, self.X, labels, weight), not frozen

    def test_part(
        self, estimator: Estimator, columns: IntArray, train: IntArray, test: IntArray
    ) -> tuple[IntArray, Features]:
        """The test rows of classes that the estimator has seen, and their features."""
        rows = np.arange(len(self.codes))[test]
        rows = rows[np.isin(self.codes[rows], columns)]
        part, _ = safe_split(estimator, self.X, self.codes, rows, train)
        return rows, part

    def scores(self, estimator: Estimator, columns: IntArray, X: Features) -> FloatArray:
        """Canonical scores of a fitted estimator, a column for each of all classes."""
        n_rows, n_classes = count_rows(X), len(self.classes)
        if n_rows == 0:
            return np.empty((0, n_classes))
        return compute_aligned_scores(estimator, columns, n_classes, X, self.response_method)

    stacked = staticmethod(stack_rows)  # the scores of several folds one below the other

    def fit_recalibrator(
        self, scores: FloatArray, rows: IntArray, *, watch: bool = True
    ) -> Estimator:
        """A recalibrator fitted on scores of these rows; `watch` warns where it harms."""
        if not len(scores):
            raise invalid_input(
                expected="calibration rows in every fold",
                got="a fold without any row of a class that its model has seen",
                hint="Use fewer folds, or stratified ones",
            )
        params = check_method_params(self.X, params=self.recalibrator_params, indices=rows)
        if self.items is not None:
            params.setdefault("groups", self.items[rows])
        fitted = fit_validated(
            clone(self.recalibrator),
            scores,
            self.codes[rows],
            self.classes,
            ordered_labels=None if self.scale is None else self.scale[rows],
            **params,
        )
        if watch:
            warn_if_harmful(
                fitted,
                lambda part: self.fit_recalibrator(scores[part], rows[part], watch=False),
                scores,
                self.codes[rows],
                self.weight[rows],
                self.classes,
            )
        return fitted


def every_recalibrator_has(method: str) -> Callable[[Any], bool]:
    """A condition for `available_if`."""

    def holds(model):
        pairs = getattr(model, "calibrated_pairs_", ())
        return bool(pairs) and all(hasattr(pair.recalibrator, method) for pair in pairs)

    return holds


def labels_predicted(proba: FloatArray | list[FloatArray]) -> IntArray:
    """1 where a label's probability is above 1/2, else 0."""
    if isinstance(proba, list):
        proba = np.column_stack([pair[:, 1] for pair in proba])
    return (proba > 0.5).astype(np.intp)


class CalibratedClassifier(CallbackSupportMixin, BaseMetaClassifier):
    """A classifier made of ``calibrated_pairs_``; subclasses fit them.

    Subclasses have the constructor arguments ``estimator``, ``recalibrator`` and ``cv``.
    """

    calibrated_pairs_: list[CalibratedPair]
    _proba_of_labels: Callable[..., Any]  # where `classes_` is a list

    response_method = "auto"

    def predict_proba(self, X: Features) -> Any:
        """Predict calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``; the mean over the pairs. For many labels, which
            `CalibratedModel` takes, what the classifier itself returns: an array of shape
            (n_samples, n_labels), or a list of n_labels arrays of shape (n_samples, 2).
        """
        if "calibrated_pairs_" not in vars(self):  # the question costs half a millisecond
            check_is_fitted(self)
        if isinstance(self.classes_, list):
            return self._proba_of_labels(X)
        total = np.zeros((1, len(self.classes_)))
        for recalibrator, scores in self._scored(X, "predict_proba"):
            proba = np.asarray(recalibrator.predict_proba(scores))
            known = recalibrator.classes_  # perhaps fewer, or sorted ones
            total = total + align_columns(proba, known, self.classes_)
        return total / len(self.calibrated_pairs_)

    def _scored(self, X, method):
        """Each recalibrator with the scores that it takes."""
        n_classes = len(self.classes_)
        for estimator, recalibrator, columns in self.calibrated_pairs_:
            scores = compute_aligned_scores(estimator, columns, n_classes, X, self.response_method)
            yield recalibrator, scores

    @available_if(every_recalibrator_has("predict_interval"))
    def predict_interval(self, X: Features) -> FloatArray:
        """Lower and upper probability, where every recalibrator gives them (``"venn_abers"``).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_classes, 2)
            For the second class, or for each class if there are more. With several pairs the mean
            of their lower and the mean of their upper ends, between which their mean probability
            lies; a guarantee of the single intervals does not carry over to the mean.
        """
        scored = self._scored(X, "predict_interval")
        intervals = (part.predict_interval(scores) for part, scores in scored)
        return sum(intervals) / len(self.calibrated_pairs_)

    def predict(self, X: Features) -> AnyArray:
        """Predict the class with the largest calibrated probability.

        The first of equals.

        For many labels, which `CalibratedModel` takes, an array of shape (n_samples, n_labels): 1
        where the probability is above 1/2, else 0.
        """
        proba = self.predict_proba(X)
        if isinstance(self.classes_, list):
            return labels_predicted(proba)
        return self.classes_[proba.argmax(axis=1)]

    @property
    def estimator_(self) -> Any:
        """The fitted classifier, where there is one pair."""
        return self._only_pair("estimator_").estimator

    def get_metadata_routing(self) -> Any:
        """The metadata that fit takes: for the estimator, the recalibrator and the splitter."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        recalibrator = resolve_recalibrator(self.recalibrator)
        if isinstance(self.recalibrator, str):  # no instance on which the user could request it
            recalibrator.set_fit_request(sample_weight=True)
            if "groups" in signature(recalibrator.fit).parameters:
                recalibrator.set_fit_request(groups=True)
        split = MethodMapping().add(caller="fit", callee="split")
        router = super().get_metadata_routing().add(recalibrator=recalibrator, method_mapping=fit)
        return router.add(splitter=self.cv, method_mapping=split)

    def __sklearn_clone__(self) -> Self:
        try:
            return super().__sklearn_clone__()
        except RuntimeError:  # the estimator's constructor copies what it is given
            return clone_from_copied_params(self)

    def _only_pair(self, name):
        if len(getattr(self, "calibrated_pairs_", ())) != 1:
            raise AttributeError(
                f"{type(self).__name__}.{name} exists after a fit with one pair; see "
                "calibrated_pairs_, or fit with ensemble=False."
            )
        return self.calibrated_pairs_[0]

    def _start(self, X, y, sample_weight, fit_params):
        """Check the arguments of fit; what its parts need."""
        check_not_prefit(self.cv)
        check_clonable(self.estimator)
        check_sizes(self)
        self._validate_params()
        estimator, frozen = self._given_estimator(lambda: read_labels(y, input_name="y")[0])
        known = estimator.classes_ if frozen else None
        classes, codes = read_labels(y, classes=known, input_name="y")
        check_indexes(X, y, sample_weight, fit_params.get("groups"))
        check_indexes(X, y, sample_weight, fit_params.get("groups"))
        cure = "There is nothing to classify; check the selection of the rows"
        check_several(classes, cure)
        (X,) = indexable(X)
        n_rows = count_rows(X)
        if n_rows != len(codes):
            got = f"{len(codes)} labels and {n_rows} rows (inconsistent numbers of samples)"
            cure = "Check that both come from the same selection"
            raise invalid_input(expected="as many labels as rows of X", got=got, hint=cure)
        weight = canonical_weight(sample_weight, len(codes))  # refuses bad ones
        params = self._route(sample_weight, fit_params, frozen)
        if "sample_weight" not in params["recalibrator_params"]:
            weight = np.ones(len(codes))
        if not routing_enabled():  # groups, for a recalibrator that takes them
            params["recalibrator_params"] |= params["split_params"]
        self.classes_ = classes
        recalibrator = resolve_recalibrator(self.recalibrator)
        scale = None if get_category_order(y, classes) is None else getattr(y, "array", y)
        if scale is None and getattr(recalibrator, "order", ...) is None:
            # the order of a classifier's own classes_ is that of its columns, not a scale
            order_scale_columns(None, np.sort(classes))
        return Job(
            X=X,
            codes=codes,
            weight=weight,
            classes=classes,
            estimator=estimator,
            recalibrator=recalibrator,
            response_method=self.response_method,
            scale=scale,
            **params,
        )

    def _given_estimator(self, classes_of_labels):
        """The estimator to be cloned, or the frozen one with its classes; and which it is."""
        estimator = self.estimator
        if isinstance(estimator, FrozenEstimator):
            return frozen_with_classes(estimator, classes_of_labels), True
        if loses_fit_when_cloned(estimator):
            warn_calibration(
                expected=(
                    "an estimator that is not fitted yet, or a fitted one in a FrozenEstimator"
                ),
                got=f"a fitted {type(estimator).__name__}",
                hint=(
                    "It is fitted again on these rows; to keep the fitted one, write "
                    f"{type(self).__name__}(FrozenEstimator(model)), with rows that it has "
                    "not seen"
                ),
                estimator=self,
            )
        return estimator, False

    def _route(self, sample_weight, fit_params, frozen):
        """Parameters for the estimator's fit, the recalibrator's fit and the splitter."""
        if routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return {
                "estimator_params": dict(routed.estimator.fit),
                "recalibrator_params": dict(routed.recalibrator.fit),
                "split_params": routed.splitter.split,
            }
        params, weights = dict(fit_params), {}
        groups = {"groups": params.pop("groups")} if "groups" in params else {}
        if sample_weight is not None:
            weights["sample_weight"] = sample_weight
            if "sample_weight" in signature(self.estimator.fit).parameters:
                params["sample_weight"] = sample_weight
            elif not frozen:
                name = type(self.estimator).__name__
                warn_calibration(
                    expected="an estimator whose fit takes sample_weight",
                    got=f"{name}, fitted without weights",
                    hint=(
                        "The recalibrator uses them; for a pipeline pass "
                        "STEP__sample_weight=... or enable metadata routing"
                    ),
                    estimator=self,
                    category=UserWarning,
                )
        return {"estimator_params": params, "recalibrator_params": weights, "split_params": groups}
