"""DecidingClassifier: what the classifiers of this sub-package share."""

from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_is_fitted

from .._sklearn_compat import ClassifierAround, clone_by_value, routing_enabled
from .._typing import Estimator, Features, FloatArray
from ..canonical import canonical_labels, canonical_proba, check_several
from ..exceptions import refuse


class DecidingClassifier(ClassifierAround):
    """A classifier that acts on the probabilities of another one, ``estimator``."""

    estimator_: Estimator

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
        check_several(classes, where, "There is nothing to decide; check the selection of the rows")
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
        self._remember_features(estimator)
