"""scikit-learn's AdaBoostClassifier."""

from sklearn.base import clone

from ._base import Staging, register_staging, with_attributes


class AdaBoostStaging(Staging):
    unit = "boosting rounds"

    def n_stages(self, estimator):
        return len(getattr(estimator, "estimators_", range(estimator.n_estimators)))

    def staged_scores(self, fitted, X):
        for scores in fitted.staged_decision_function(X):
            yield "logits", scores

    def staged_proba(self, fitted, X):
        # its probabilities divide the scores by the number of other classes
        return fitted.staged_predict_proba(X) if len(fitted.classes_) > 2 else None

    def truncated(self, fitted, stage):
        return with_attributes(
            fitted,
            estimators_=fitted.estimators_[:stage],
            estimator_weights_=fitted.estimator_weights_[:stage],
            estimator_errors_=fitted.estimator_errors_[:stage],
        )

    def limited(self, estimator, stage):
        return clone(estimator).set_params(n_estimators=int(stage))


register_staging("sklearn.AdaBoostClassifier", AdaBoostStaging())
