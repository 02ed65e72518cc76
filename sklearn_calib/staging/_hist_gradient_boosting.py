"""scikit-learn's HistGradientBoostingClassifier."""

from sklearn.base import clone

from .._typing import Estimator
from ._base import ScikitLearnBoosting, register_staging, with_attributes


class HistGradientBoostingStaging(ScikitLearnBoosting):
    """``early_stopping="auto"`` is switched off: it would keep rows from the training."""

    def n_stages(self, estimator: Estimator) -> int:
        return getattr(estimator, "n_iter_", estimator.max_iter)

    def prepared(self, estimator: Estimator) -> Estimator:
        if estimator.early_stopping != "auto":
            return estimator
        return clone(estimator).set_params(early_stopping=False)

    def truncated(self, fitted: Estimator, stage: int) -> Estimator:
        return with_attributes(fitted, _predictors=fitted._predictors[:stage])

    def limited(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(max_iter=int(stage), early_stopping=False)


register_staging("sklearn.HistGradientBoostingClassifier", HistGradientBoostingStaging())
