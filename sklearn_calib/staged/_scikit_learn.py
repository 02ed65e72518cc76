"""scikit-learn's boosting and forests: AdaBoost, gradient boosting, histograms, random trees."""

from collections.abc import Iterable

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array

from .._typing import ArrayLike, Estimator, Features
from ._base import StagedScores, Staging, copy_with_attributes, register_staging


class ScikitLearnBoosting(Staging):
    """Its staged decision function has the scores of each round."""

    unit = "boosting rounds"

    def staged_scores(self, fitted: Estimator, X: Features) -> StagedScores:
        for scores in fitted.staged_decision_function(X):
            yield "logits", scores


class AdaBoostStaging(ScikitLearnBoosting):
    def n_stages(self, estimator: Estimator) -> int:
        return len(getattr(estimator, "estimators_", range(estimator.n_estimators)))

    def staged_proba(
        self, fitted: Estimator, X: Features
    ) -> Iterable[ArrayLike] | None:
        # Its probabilities divide the scores by the number of other classes.
        return fitted.staged_predict_proba(X) if len(fitted.classes_) > 2 else None

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        names = ("estimators_", "estimator_weights_", "estimator_errors_")
        return copy_with_attributes(
            fitted, **{name: getattr(fitted, name)[:stage] for name in names}
        )

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(n_estimators=int(stage))


class GradientBoostingStaging(ScikitLearnBoosting):
    def n_stages(self, estimator: Estimator) -> int:
        return getattr(estimator, "n_estimators_", estimator.n_estimators)

    def staged_proba(
        self, fitted: Estimator, X: Features
    ) -> Iterable[ArrayLike] | None:
        # The decision function of the exponential loss is half the log-odds.
        return fitted.staged_predict_proba(X) if fitted.loss == "exponential" else None

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        trees = fitted.estimators_[:stage]
        return copy_with_attributes(fitted, estimators_=trees, n_estimators_=int(stage))

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(
            n_estimators=int(stage), n_iter_no_change=None
        )


class HistGradientBoostingStaging(ScikitLearnBoosting):
    """``early_stopping="auto"`` is switched off: it would keep rows from the training."""

    def n_stages(self, estimator: Estimator) -> int:
        return getattr(estimator, "n_iter_", estimator.max_iter)

    def with_recording(self, estimator: Estimator) -> Estimator:
        if estimator.early_stopping != "auto":
            return estimator
        return clone(estimator).set_params(early_stopping=False)

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        return copy_with_attributes(fitted, _predictors=fitted._predictors[:stage])

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(max_iter=int(stage), early_stopping=False)


register_staging("sklearn.AdaBoostClassifier", AdaBoostStaging())
register_staging("sklearn.GradientBoostingClassifier", GradientBoostingStaging())
register_staging(
    "sklearn.HistGradientBoostingClassifier", HistGradientBoostingStaging()
)


class ForestStaging(Staging):
    unit = "trees"

    def n_stages(self, estimator: Estimator) -> int:
        return len(getattr(estimator, "estimators_", range(estimator.n_estimators)))

    def staged_scores(self, fitted: Estimator, X: Features) -> StagedScores:
        X = check_array(
            X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=False
        )
        total = 0.0
        for number, tree in enumerate(fitted.estimators_, start=1):
            total += tree.predict_proba(X)
            yield "proba", total / number

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        return copy_with_attributes(
            fitted, estimators_=fitted.estimators_[:stage], n_estimators=int(stage)
        )

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(n_estimators=int(stage))


for _name in ("RandomForestClassifier", "ExtraTreesClassifier"):
    register_staging(f"sklearn.{_name}", ForestStaging())
