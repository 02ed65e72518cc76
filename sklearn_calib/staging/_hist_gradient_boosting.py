"""scikit-learn's HistGradientBoostingClassifier."""

from collections.abc import Iterator

from sklearn.base import clone

from .._typing import ArrayLike, Estimator, Features
from ._base import Staging, register_staging, with_attributes


class HistGradientBoostingStaging(Staging):
    """``early_stopping="auto"`` is switched off: it would keep rows from the training."""

    unit = "boosting rounds"

    def n_stages(self, estimator: Estimator) -> int:
        return getattr(estimator, "n_iter_", estimator.max_iter)

    def prepared(self, estimator: Estimator) -> Estimator:
        if estimator.early_stopping != "auto":
            return estimator
        return clone(estimator).set_params(early_stopping=False)

    def staged_scores(self, fitted: Estimator, X: Features) -> Iterator[tuple[str, ArrayLike]]:
        for scores in fitted.staged_decision_function(X):
            yield "logits", scores

    def truncated(self, fitted: Estimator, stage: int) -> Estimator:
        return with_attributes(fitted, _predictors=fitted._predictors[:stage])

    def limited(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(max_iter=int(stage), early_stopping=False)


register_staging("sklearn.HistGradientBoostingClassifier", HistGradientBoostingStaging())
