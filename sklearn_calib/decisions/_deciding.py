"""DecidingClassifier: what the classifiers of this sub-package share."""

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from .._sklearn_compat import clone_by_value, routing_enabled
from .._typing import AnyArray, Estimator, Features, FloatArray
from ..canonical import canonical_labels, canonical_proba
from ..exceptions import refuse


class DecidingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that acts on the probabilities of another one, ``estimator``."""

    estimator: Estimator
    estimator_: Estimator
    classes_: AnyArray
    n_features_in_: int
    feature_names_in_: AnyArray

    def predict_proba(self, X: Features) -> FloatArray:
        """The probabilities of the classifier inside.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        where = f"{type(self).__name__}.predict_proba"
        proba = self.estimator_.predict_proba(X)
        return canonical_proba(proba, n_classes=len(self.classes_), _where=where)

    def get_metadata_routing(self) -> Any:
        """The metadata that fit takes: its own, and those of the classifier inside."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not hasattr(getattr(self.estimator, "estimator", self.estimator), "__sklearn_tags__"):
            return tags  # a model of another library in a FrozenEstimator
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags

    @property
    def _is_frozen(self):
        return isinstance(self.estimator, FrozenEstimator)

    def _check_estimator(self, y, where):
        """The classes, and the codes of the labels; nothing is fitted yet."""
        if not hasattr(self.estimator, "predict_proba"):
            inner = type(getattr(self.estimator, "estimator", self.estimator)).__name__
            refuse(
                where,
                "a classifier with predict_proba",
                inner,
                f"Write CalibratedModel({inner}(...)), which has calibrated probabilities",
                error=TypeError,
            )
        known = getattr(self.estimator, "classes_", None) if self._is_frozen else None
        if self._is_frozen and known is None:
            refuse(
                where,
                "a fitted classifier with classes_ in the FrozenEstimator",
                type(self.estimator.estimator).__name__,
                "Fit it first; give a model of another library to CalibratedModel",
            )
        classes, codes = canonical_labels(y, classes=known, _where=where)
        if len(classes) < 2:
            refuse(
                where,
                "labels of at least two classes",
                f"one class, {classes[0]!r}",
                "There is nothing to decide; check the selection of the rows",
            )
        return classes, codes

    def _route(self, **params):
        """What the fit of the classifier inside gets."""
        if routing_enabled():
            return dict(process_routing(self, "fit", **params).estimator.fit)
        return {name: value for name, value in params.items() if value is not None}

    def _fitted_estimator(self, X, y, params):
        """A fitted clone; a FrozenEstimator stays as it is."""
        estimator = clone_by_value(self.estimator)
        if not self._is_frozen:
            estimator.fit(X, y, **params)
        return estimator

    def _remember(self, estimator):
        """Set what the fitted classifier tells."""
        self.estimator_, self.classes_ = estimator, estimator.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
