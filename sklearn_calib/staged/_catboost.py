"""CatBoost's classifier."""

import copy

from .._typing import ArrayLike, Estimator, Features
from ..exceptions import invalid_input
from ._base import StagedScores, Staging, register_staging


class CatBoostStaging(Staging):
    """Refits train all rounds and are cut: the default learning rate depends on their number."""

    unit = "boosting rounds"

    def n_stages(self, estimator: Estimator) -> int:
        if estimator.is_fitted():
            return estimator.tree_count_
        params = estimator.get_params()
        names = ("iterations", "n_estimators", "num_boost_round", "num_trees")
        return next((params[name] for name in names if params.get(name)), 1000)

    def staged_scores(self, fitted: Estimator, X: Features) -> StagedScores:
        self.logits(fitted, X)
        for proba in fitted.staged_predict_proba(X):
            yield "proba", proba

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        shorter = copy.deepcopy(fitted)
        shorter.shrink(ntree_end=int(stage))
        return shorter

    def logits(self, fitted: Estimator, X: Features) -> ArrayLike | None:
        """Return None, since probabilities are not rounded.

        Reject those that do not sum to 1.
        """
        loss = fitted.get_all_params()["loss_function"]
        if loss == "MultiClassOneVsAll" and len(fitted.classes_) > 2:
            raise invalid_input(
                expected="a loss_function whose probabilities sum to 1",
                got=repr(loss),
                hint=(
                    "Use loss_function='MultiClass', or one classifier for each class, "
                    "sklearn.multiclass.OneVsRestClassifier(CatBoostClassifier())"
                ),
            )
        return None


register_staging("catboost.CatBoostClassifier", CatBoostStaging())
