"""scikit-learn's AdaBoostClassifier."""

from collections.abc import Iterable

from sklearn.base import clone

from .._typing import ArrayLike, Estimator, Features
from ._base import ScikitLearnBoosting, register_staging, with_attributes


class AdaBoostStaging(ScikitLearnBoosting):
    def n_stages(self, estimator: Estimator) -> int:
        return len(getattr(estimator, "estimators_", range(estimator.n_estimators)))

    def staged_proba(self, fitted: Estimator, X: Features) -> Iterable[ArrayLike] | None:
        # its probabilities divide the scores by the number of other classes
        return fitted.staged_predict_proba(X) if len(fitted.classes_) > 2 else None

    def truncated(self, fitted: Estimator, stage: int) -> Estimator:
        return with_attributes(
            fitted,
            estimators_=fitted.estimators_[:stage],
            estimator_weights_=fitted.estimator_weights_[:stage],
            estimator_errors_=fitted.estimator_errors_[:stage],
        )

    def limited(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(n_estimators=int(stage))


register_staging("sklearn.AdaBoostClassifier", AdaBoostStaging())
