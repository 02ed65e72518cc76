"""CatBoost's classifier."""

import copy

from ._base import Staging, register_staging


class CatBoostStaging(Staging):
    """Refits train all rounds and are cut: the default learning rate depends on their number."""

    unit = "boosting rounds"

    def n_stages(self, estimator):
        if estimator.is_fitted():
            return estimator.tree_count_
        params = estimator.get_params()
        names = ("iterations", "n_estimators", "num_boost_round", "num_trees")
        return next((params[name] for name in names if params.get(name)), 1000)

    def staged_scores(self, fitted, X):
        for proba in fitted.staged_predict_proba(X):
            yield "proba", proba

    def truncated(self, fitted, stage):
        shorter = copy.deepcopy(fitted)
        shorter.shrink(ntree_end=int(stage))
        return shorter


register_staging("catboost.CatBoostClassifier", CatBoostStaging())
