"""XGBoost's scikit-learn classifiers."""

from sklearn.base import clone

from ._base import Staging, register_staging, with_attributes

#: Objectives whose margins are the logits of the probabilities.
LOGIT_OBJECTIVES = {"binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax"}


class XGBoostStaging(Staging):
    unit = "boosting rounds"

    def applies(self, estimator):
        return estimator.booster != "gblinear"

    def n_stages(self, estimator):
        if hasattr(estimator, "classes_"):
            return estimator.get_booster().num_boosted_rounds()
        return estimator.n_estimators or 100  # None: XGBoost's default

    def staged_scores(self, fitted, X):
        import xgboost

        logits = fitted.objective in LOGIT_OBJECTIVES
        data = xgboost.DMatrix(
            X,
            missing=fitted.missing,
            nthread=fitted.n_jobs,
            feature_types=fitted.feature_types,
            enable_categorical=fitted.enable_categorical,
        )
        booster = fitted.get_booster()
        for stage in range(1, self.n_stages(fitted) + 1):
            # the DMatrix caches its margins: a stage costs one round of trees
            margins = booster.predict(data, output_margin=logits, iteration_range=(0, stage))
            yield ("logits" if logits else "proba"), margins

    def truncated(self, fitted, stage):
        return with_attributes(
            fitted, _Booster=fitted.get_booster()[:stage], n_estimators=int(stage)
        )

    def limited(self, estimator, stage):
        return clone(estimator).set_params(n_estimators=int(stage))


for _name in ("XGBClassifier", "XGBRFClassifier"):
    register_staging(f"xgboost.{_name}", XGBoostStaging())
