"""scikit-learn's GradientBoostingClassifier."""

from collections.abc import Iterable

from sklearn.base import clone

from .._typing import ArrayLike, Estimator, Features
from ._base import ScikitLearnBoosting, register_staging, with_attributes


class GradientBoostingStaging(ScikitLearnBoosting):
    def n_stages(self, estimator: Estimator) -> int:
        return getattr(estimator, "n_estimators_", estimator.n_estimators)

    def staged_proba(self, fitted: Estimator, X: Features) -> Iterable[ArrayLike] | None:
        # the decision function of the exponential loss is half the log-odds
        return fitted.staged_predict_proba(X) if fitted.loss == "exponential" else None

    def truncated(self, fitted: Estimator, stage: int) -> Estimator:
        return with_attributes(
            fitted, estimators_=fitted.estimators_[:stage], n_estimators_=int(stage)
        )

    def limited(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(n_estimators=int(stage), n_iter_no_change=None)


register_staging("sklearn.GradientBoostingClassifier", GradientBoostingStaging())
