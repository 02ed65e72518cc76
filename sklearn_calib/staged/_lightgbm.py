"""LightGBM's scikit-learn classifier."""

from sklearn.base import clone

from .._typing import ArrayLike, Estimator, Features
from ..exceptions import invalid_input
from ._base import StagedScores, Staging, copy_with_attributes, register_staging
from ._xgboost import make_dart_caveat

#: Objectives without logits whose predictions are probabilities that sum to 1;
#: "multiclassova" for two classes only.
OBJECTIVES_WITHOUT_LOGITS = {"cross_entropy", "multiclassova"}


class LightGBMStaging(Staging):
    """What was trained is read off the booster: parameters have aliases."""

    unit = "boosting rounds"

    def n_stages(self, estimator: Estimator) -> int:
        if hasattr(estimator, "booster_"):
            return estimator.booster_.current_iteration()
        return estimator.n_estimators

    def with_recording(self, estimator: Estimator) -> Estimator:
        if callable(estimator.objective):
            raise _unknown_objective_error(estimator, "a function of your own")
        return estimator

    def caveat(self, estimator: Estimator) -> tuple[str, str, str] | None:
        if _is_dart(estimator):
            return make_dart_caveat("boosting_type='dart'", "gbdt")
        return None

    def staged_scores(self, fitted: Estimator, X: Features) -> StagedScores:
        """Iterate over (kind, scores) after each round, adding the trees of one round at a time."""
        factor, averaged = _get_logit_factor_or_none_and_averaging(fitted)
        total = 0.0
        for stage in range(1, self.n_stages(fitted) + 1):
            if factor is None:
                yield "proba", fitted.predict_proba(X, num_iteration=stage)
                continue
            added = fitted.predict_proba(
                X,
                raw_score=True,
                start_iteration=stage - 1,
                # One iteration costs one round of trees.
                num_iteration=1,
            )
            total = total + factor * added
            yield "logits", (total / stage if averaged else total)

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        from lightgbm import Booster

        text = fitted.booster_.model_to_string(num_iteration=int(stage))
        return copy_with_attributes(
            fitted,
            _Booster=Booster(model_str=text),
            _best_iteration=0,
            n_estimators=int(stage),
        )

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        # The weights of DART's trees depend on later rounds.
        if _is_dart(estimator):
            return estimator
        return clone(estimator).set_params(n_estimators=int(stage))

    def logits(self, fitted: Estimator, X: Features) -> ArrayLike | None:
        factor, averaged = _get_logit_factor_or_none_and_averaging(fitted)
        if factor is None:
            return None
        rounds = (fitted.best_iteration_ or self.n_stages(fitted)) if averaged else 1
        return factor / rounds * fitted.predict_proba(X, raw_score=True)


def _get_logit_factor_or_none_and_averaging(fitted):
    """Return (factor from raw scores to logits or None, whether rounds are averaged)."""
    model = fitted.booster_.dump_model(num_iteration=1)
    name, *options = model.get("objective", "custom").split()
    options = dict(option.split(":") for option in options if ":" in option)
    factor = {"binary": float(options.get("sigmoid", 1)), "multiclass": 1.0}.get(name)
    one_vs_rest = name == "multiclassova" and fitted.n_classes_ > 2
    if factor is None and (name not in OBJECTIVES_WITHOUT_LOGITS or one_vs_rest):
        raise _unknown_objective_error(
            fitted, "a function of your own" if name == "custom" else repr(name)
        )
    return factor, bool(model.get("average_output"))


def _is_dart(estimator):
    params = estimator.get_params()
    return "dart" in (
        params.get(name) for name in ("boosting_type", "boosting", "boost")
    )


def _unknown_objective_error(estimator, got):
    return invalid_input(
        expected="an objective whose predictions are probabilities that sum to 1",
        got=got,
        hint=(
            "Use objective='binary' or 'multiclass', or one classifier for each "
            "class, sklearn.multiclass.OneVsRestClassifier(LGBMClassifier())"
        ),
    )


register_staging("lightgbm.LGBMClassifier", LightGBMStaging())
