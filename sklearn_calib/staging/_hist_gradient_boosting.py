"""scikit-learn's HistGradientBoostingClassifier."""

from sklearn.base import clone

from ._base import Staging, register_staging, with_attributes


class HistGradientBoostingStaging(Staging):
    """``early_stopping="auto"`` is switched off: it would keep rows from the training."""

    unit = "boosting rounds"

    def n_stages(self, estimator):
        return getattr(estimator, "n_iter_", estimator.max_iter)

    def prepared(self, estimator):
        if estimator.early_stopping != "auto":
            return estimator
        return clone(estimator).set_params(early_stopping=False)

    def staged_scores(self, fitted, X):
        for scores in fitted.staged_decision_function(X):
            yield "logits", scores

    def truncated(self, fitted, stage):
        return with_attributes(fitted, _predictors=fitted._predictors[:stage])

    def limited(self, estimator, stage):
        return clone(estimator).set_params(max_iter=int(stage), early_stopping=False)


register_staging("sklearn.HistGradientBoostingClassifier", HistGradientBoostingStaging())
