"""LightGBM's scikit-learn classifier."""

from sklearn.base import clone

from ._base import Staging, register_staging, with_attributes

#: Objectives whose raw scores are the logits of the probabilities.
LOGIT_OBJECTIVES = {"binary", "multiclass"}


class LightGBMStaging(Staging):
    unit = "boosting rounds"

    def n_stages(self, estimator):
        if hasattr(estimator, "booster_"):
            return estimator.booster_.current_iteration()
        return estimator.n_estimators

    def staged_scores(self, fitted, X):
        logits = fitted.objective_ in LOGIT_OBJECTIVES
        additive = logits and fitted.get_params()["boosting_type"] != "rf"
        total = 0.0
        for stage in range(1, self.n_stages(fitted) + 1):
            if additive:  # a stage costs one round of trees
                one = {"start_iteration": stage - 1, "num_iteration": 1}
                total = total + fitted.predict_proba(X, raw_score=True, **one)
                yield "logits", total
            else:
                scores = fitted.predict_proba(X, raw_score=logits, num_iteration=stage)
                yield ("logits" if logits else "proba"), scores

    def truncated(self, fitted, stage):
        from lightgbm import Booster

        text = fitted.booster_.model_to_string(num_iteration=int(stage))
        return with_attributes(
            fitted, _Booster=Booster(model_str=text), _best_iteration=0, n_estimators=int(stage)
        )

    def limited(self, estimator, stage):
        return clone(estimator).set_params(n_estimators=int(stage))


register_staging("lightgbm.LGBMClassifier", LightGBMStaging())
