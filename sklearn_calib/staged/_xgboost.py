"""XGBoost's scikit-learn classifiers."""

from sklearn.base import clone

from .._typing import ArrayLike, Estimator, Features
from ..exceptions import invalid_input
from ._base import StagedScores, Staging, copy_with_attributes, register_staging

#: Objectives whose margins are the logits of the probabilities.
LOGIT_OBJECTIVES = {"binary:logistic", "multi:softprob", "multi:softmax"}
#: Objectives without such margins whose predictions are probabilities.
OBJECTIVES_WITHOUT_LOGITS = {"reg:logistic", "binary:hinge"}


class XGBoostStaging(Staging):
    """With an objective that is a function, XGBoost predicts as for binary:logistic."""

    unit = "boosting rounds"

    def applies(self, estimator: Estimator) -> bool:
        return estimator.booster != "gblinear"

    def n_stages(self, estimator: Estimator) -> int:
        if hasattr(estimator, "classes_"):
            return estimator.get_booster().num_boosted_rounds()
        # XGBoost replaces None by this default.
        return estimator.n_estimators or 100

    def caveat(self, estimator: Estimator) -> tuple[str, str, str] | None:
        got = _find_dropout_option_text(estimator)
        return make_dart_caveat(got, "gbtree without dropout") if got else None

    def staged_scores(self, fitted: Estimator, X: Features) -> StagedScores:
        """Iterate over (kind, scores) after each round, by slices of the booster."""
        import xgboost

        _check_objective(fitted)
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
            # The DMatrix caches its margins, so that a stage costs one round of trees.
            margins = booster.predict(
                data, output_margin=logits, iteration_range=(0, stage)
            )
            yield ("logits" if logits else "proba"), margins

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        return copy_with_attributes(
            fitted, _Booster=fitted.get_booster()[:stage], n_estimators=int(stage)
        )

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        # With dropout, the weights of the trees depend on later rounds.
        if _find_dropout_option_text(estimator):
            return estimator
        return clone(estimator).set_params(n_estimators=int(stage))

    def logits(self, fitted: Estimator, X: Features) -> ArrayLike | None:
        # "binary:logitraw" is the logistic loss without the sigmoid: its margins are
        # log-odds too.
        if fitted.objective in LOGIT_OBJECTIVES | {"binary:logitraw"}:
            return fitted.predict(X, output_margin=True)
        return None


class XGBoostForestStaging(XGBoostStaging):
    """All trees of a forest are one round: a fit has one stage."""

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        return copy_with_attributes(fitted)

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        return estimator


def _find_dropout_option_text(estimator):
    """Return what turns dropout of trees on, as the user wrote it: a booster or an option.

    XGBoost 3.4 takes the options for any booster of trees; earlier ones for dart alone.
    """
    if estimator.booster == "dart":
        return "booster='dart'"
    parameters = estimator.get_params()
    set_ = (
        f"{name}={parameters[name]!r}"
        for name in ("rate_drop", "one_drop")
        if parameters.get(name)
    )
    return next(set_, None)


def _check_objective(fitted):
    """Raise an error if predictions of the objective are not probabilities."""
    objective = fitted.objective
    if (
        objective is None
        or callable(objective)
        or objective in LOGIT_OBJECTIVES | OBJECTIVES_WITHOUT_LOGITS
    ):
        return
    raise invalid_input(
        expected="an objective whose predictions are probabilities after each round: "
        + ", ".join(sorted(LOGIT_OBJECTIVES | OBJECTIVES_WITHOUT_LOGITS)),
        got=repr(objective),
        hint="Use objective='binary:logistic', or stages=None",
    )


def make_dart_caveat(got: str, other: str) -> tuple[str, str, str]:
    """Return the caveat about dart: later rounds change the weights of earlier trees."""
    return (
        "trees that keep their weights in later rounds",
        got,
        "A stage is judged as the first trees with their final weights, which is not a training "
        f"that ended there, and the refit trains all rounds and is cut; choose {other!r} to stop "
        "a training early",
    )


register_staging("xgboost.XGBClassifier", XGBoostStaging())
register_staging("xgboost.XGBRFClassifier", XGBoostForestStaging())
