"""scikit-learn's GradientBoostingClassifier."""

from sklearn.base import clone

from ._base import Staging, register_staging, with_attributes


class GradientBoostingStaging(Staging):
    unit = "boosting rounds"

    def n_stages(self, estimator):
        return getattr(estimator, "n_estimators_", estimator.n_estimators)

    def staged_scores(self, fitted, X):
        for scores in fitted.staged_decision_function(X):
            yield "logits", scores

    def staged_proba(self, fitted, X):
        # the decision function of the exponential loss is half the log-odds
        return fitted.staged_predict_proba(X) if fitted.loss == "exponential" else None

    def truncated(self, fitted, stage):
        return with_attributes(
            fitted, estimators_=fitted.estimators_[:stage], n_estimators_=int(stage)
        )

    def limited(self, estimator, stage):
        return clone(estimator).set_params(n_estimators=int(stage), n_iter_no_change=None)


register_staging("sklearn.GradientBoostingClassifier", GradientBoostingStaging())
