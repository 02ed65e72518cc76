"""What the estimators of this sub-package share: pairs of a classifier and a recalibrator."""

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._base_meta_classifier import BaseMetaClassifier
from .._callbacks import CallbackSupportMixin
from .._clone import clone_from_copied_params
from .._typing import AnyArray, Features, FloatArray, IntArray, Self
from .._validation import align_columns
from ..recalibrators import resolve_recalibrator
from ._classifier_scores import compute_aligned_canonical_scores
from ._fit_context import FitContext

#: The ``_parameter_constraints`` of an estimator that gives scores.
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


def every_recalibrator_has(method: str) -> Callable[[Any], bool]:
    """Return a condition for `available_if`."""

    def has_method_in_all_pairs(model):
        pairs = getattr(model, "calibrated_pairs_", ())
        return bool(pairs) and all(hasattr(pair.recalibrator, method) for pair in pairs)

    return has_method_in_all_pairs


def threshold_labels(proba: FloatArray | list[FloatArray]) -> IntArray:
    """Return 1 if a label's probability is above 1/2, else 0."""
    if isinstance(proba, list):
        proba = np.column_stack([pair[:, 1] for pair in proba])
    return (proba > 0.5).astype(np.intp)


class BaseCalibratedClassifier(CallbackSupportMixin, BaseMetaClassifier):
    """A classifier made of ``calibrated_pairs_``; subclasses fit them.

    Subclasses have the constructor arguments ``estimator``, ``recalibrator`` and
    ``cv``.
    """

    calibrated_pairs_: list[CalibratedPair]
    # Defined if `classes_` is a list.
    _predict_label_proba: Callable[..., Any]

    response_method = "auto"

    def predict_proba(self, X: Features) -> Any:
        """Predict calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``; the mean over the pairs. For many
            labels, which `CalibratedModel` takes, what the classifier itself returns:
            an array of shape (n_samples, n_labels), or a list of n_labels arrays of
            shape (n_samples, 2).
        """
        # `check_is_fitted` takes half a millisecond.
        if "calibrated_pairs_" not in vars(self):
            check_is_fitted(self)
        if isinstance(self.classes_, list):
            return self._predict_label_proba(X)
        # Broadcasting replaces the shape of an empty sum, so there is no need to count
        # the rows first.
        total = np.zeros((1, len(self.classes_)))
        for recalibrator, scores in self._iter_recalibrators_and_scores(X):
            proba = np.asarray(recalibrator.predict_proba(scores))
            # The recalibrator may have fewer classes, or have sorted them.
            if recalibrator.classes_ is not self.classes_:
                proba = align_columns(proba, recalibrator.classes_, self.classes_)
            total = total + proba
        return total / len(self.calibrated_pairs_)

    def _iter_recalibrators_and_scores(self, X):
        """Yield each recalibrator with the scores that it takes."""
        n_classes = len(self.classes_)
        for estimator, recalibrator, columns in self.calibrated_pairs_:
            scores = compute_aligned_canonical_scores(
                estimator,
                columns,
                n_classes,
                X,
                self.response_method,
            )
            yield recalibrator, scores

    @available_if(every_recalibrator_has("predict_interval"))
    def predict_interval(self, X: Features) -> FloatArray:
        """Lower and upper probability, if every recalibrator gives them (``"venn_abers"``).

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_classes, 2)
            For the second class, or for each class if there are more. With several
            pairs the mean of their lower and the mean of their upper ends, between
            which their mean probability lies; a guarantee of the single intervals does
            not carry over to the mean.
        """
        intervals = [
            recalibrator.predict_interval(scores)
            for recalibrator, scores in self._iter_recalibrators_and_scores(X)
        ]
        return sum(intervals) / len(intervals)

    def predict(self, X: Features) -> AnyArray:
        """Predict the class with the largest calibrated probability.

        The first of equals.

        For many labels, which `CalibratedModel` takes, an array of shape (n_samples,
        n_labels): 1 if the probability is above 1/2, else 0.
        """
        proba = self.predict_proba(X)
        if isinstance(self.classes_, list):
            return threshold_labels(proba)
        return self.classes_[proba.argmax(axis=1)]

    @property
    def estimator_(self) -> Any:
        """The fitted classifier, if there is one pair."""
        return self._get_only_calibrated_pair("estimator_").estimator

    def get_metadata_routing(self) -> Any:
        """Return the metadata of `fit`.

        They are for the estimator, the recalibrator and the splitter.
        """
        fit = MethodMapping().add(caller="fit", callee="fit")
        recalibrator = resolve_recalibrator(self.recalibrator)
        # A name is not an instance on which the user could request metadata.
        if isinstance(self.recalibrator, str):
            recalibrator.set_fit_request(sample_weight=True)
            # A recalibrator with folds of its own must not split a group either.
            if "groups" in signature(recalibrator.fit).parameters:
                recalibrator.set_fit_request(groups=True)
        split = MethodMapping().add(caller="fit", callee="split")
        router = (
            super()
            .get_metadata_routing()
            .add(recalibrator=recalibrator, method_mapping=fit)
        )
        return router.add(splitter=self.cv, method_mapping=split)

    def __sklearn_clone__(self) -> Self:
        try:
            return super().__sklearn_clone__()
        # scikit-learn's clone compares parameters by identity, which fails if the
        # estimator's constructor copies them.
        except RuntimeError:
            return clone_from_copied_params(self)

    def _get_only_calibrated_pair(self, attribute_name):
        if len(getattr(self, "calibrated_pairs_", ())) != 1:
            raise AttributeError(
                f"{type(self).__name__}.{attribute_name} exists after a fit with one pair; see "
                "calibrated_pairs_, or fit with ensemble=False."
            )
        return self.calibrated_pairs_[0]

    def _make_context_and_set_classes(self, X, y, sample_weight, fit_params):
        """Validate the arguments of a fit to one label per row."""
        return FitContext.from_fit_and_set_classes(
            self, X, y, sample_weight, fit_params
        )
