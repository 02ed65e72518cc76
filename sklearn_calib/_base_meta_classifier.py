"""The base of the classifiers that wrap another one."""

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from ._typing import AnyArray, Estimator


class BaseMetaClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with the tags, the routing and the features of another one, ``estimator``."""

    estimator: Estimator
    classes_: AnyArray
    n_features_in_: int
    feature_names_in_: AnyArray

    def get_metadata_routing(self) -> Any:
        """Return the metadata that fit takes: its own, and those of the wrapped classifier."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=fit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        model = getattr(self.estimator, "estimator", self.estimator)
        # A FrozenEstimator may hold a model of another library, which has no tags.
        if not hasattr(model, "__sklearn_tags__"):
            return tags
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.pairwise = inner.input_tags.pairwise
        return tags

    def _copy_feature_names(self, estimator):
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
