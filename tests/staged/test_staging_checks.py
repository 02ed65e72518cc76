"""The public checks pass for every adapter of the package, and catch planted mistakes by name."""

import numpy as np
import pytest
from boosters import DEPRECATED, skipped, why_not
from cases import run_every_case
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from sklearn_calib.staged import Staging, register_staging
from sklearn_calib.staged._scikit_learn import GradientBoostingStaging
from sklearn_calib.testing import check_contract, contract_checks

STAGES = 5
BOTH = (2, 3)


OF_BOOSTED = {"n_estimators": STAGES, "n_jobs": 1}
SEED = {"random_state": 0}


def learners():
    """One for each adapter of the package."""
    yield GradientBoostingClassifier(n_estimators=STAGES, subsample=0.7, **SEED), BOTH
    yield HistGradientBoostingClassifier(max_iter=STAGES, **SEED), BOTH
    yield AdaBoostClassifier(n_estimators=STAGES, **SEED), BOTH
    yield RandomForestClassifier(n_estimators=STAGES, **SEED), BOTH
    yield MLPClassifier((8,), max_iter=STAGES, **SEED), BOTH
    yield SGDClassifier(max_iter=STAGES, **SEED), BOTH
    if not why_not("xgboost"):
        from xgboost import XGBClassifier

        yield XGBClassifier(**OF_BOOSTED), BOTH
    if not why_not("lightgbm"):
        from lightgbm import LGBMClassifier

        yield LGBMClassifier(verbose=-1, **OF_BOOSTED, **SEED), BOTH
    if not why_not("catboost"):
        from catboost import CatBoostClassifier

        options = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
        yield CatBoostClassifier(iterations=STAGES, **options), BOTH


def variants():
    """Others that the same adapters serve."""
    yield (
        GradientBoostingClassifier(n_estimators=STAGES, loss="exponential", **SEED),
        (2,),
    )
    yield ExtraTreesClassifier(n_estimators=STAGES, **SEED), BOTH
    yield SGDClassifier(loss="log_loss", max_iter=STAGES, **SEED), BOTH
    if not why_not("xgboost"):
        from xgboost import XGBClassifier

        yield XGBClassifier(booster="dart", rate_drop=0.3, **OF_BOOSTED), BOTH
    if not why_not("lightgbm"):
        from lightgbm import LGBMClassifier

        options = {"verbose": -1, **OF_BOOSTED, **SEED}
        yield LGBMClassifier(boosting_type="dart", **options), BOTH
        yield (
            LGBMClassifier(
                boosting_type="rf", subsample=0.6, subsample_freq=1, **options
            ),
            BOTH,
        )
        yield LGBMClassifier(sigmoid=2.0, **options), BOTH


@pytest.mark.filterwarnings(*DEPRECATED)
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{type(learner).__name__}{number}-{name}", marks=marks)
        for cases, marks in ((learners(), ()), (variants(), pytest.mark.slow))
        for number, (learner, n_classes) in enumerate(cases)
        for name, check in contract_checks(learner, n_classes=n_classes)
    ]
    + [*skipped()],
)
def test_adapters_of_the_package(check):
    check()


class OneTooFew(GradientBoostingStaging):
    def staged_scores(self, fitted, X):
        yield from list(super().staged_scores(fitted, X))[:-1]


class OneTooLate(GradientBoostingStaging):
    """Stage s is what the model said after s - 1 rounds."""

    def staged_scores(self, fitted, X):
        scores = list(super().staged_scores(fitted, X))
        yield from [scores[0], *scores[:-1]]


class TruncatesOneTooMany(GradientBoostingStaging):
    def truncate_to_stage(self, fitted, stage):
        return super().truncate_to_stage(fitted, max(stage - 1, 1))


class BothOff(GradientBoostingStaging):
    """Stages and truncations agree with each other, and are both a round ahead."""

    def staged_scores(self, fitted, X):
        scores = list(super().staged_scores(fitted, X))
        yield from [*scores[1:], scores[-1]]

    def truncate_to_stage(self, fitted, stage):
        return super().truncate_to_stage(fitted, min(stage + 1, self.n_stages(fitted)))

    def n_stages(self, estimator):
        return super().n_stages(estimator)


class AlwaysTheEnd(GradientBoostingStaging):
    def staged_scores(self, fitted, X):
        for _ in range(self.n_stages(fitted)):
            yield "logits", fitted.decision_function(X)


class CutsInPlace(GradientBoostingStaging):
    def truncate_to_stage(self, fitted, stage):
        fitted.estimators_ = fitted.estimators_[:stage]
        fitted.n_estimators_ = stage
        return fitted


class CutsACopyInPlace(GradientBoostingStaging):
    """Another object that shares, and changes, what the model has."""

    def truncate_to_stage(self, fitted, stage):
        short = super().truncate_to_stage(fitted, stage)
        fitted.n_estimators = stage
        return short


class WrongScale(GradientBoostingStaging):
    """Half the logits."""

    def staged_scores(self, fitted, X):
        for kind, scores in super().staged_scores(fitted, X):
            yield kind, scores / 2


class WrongKind(GradientBoostingStaging):
    def staged_scores(self, fitted, X):
        for scores in fitted.staged_predict_proba(X):
            yield "logits", scores


class SetsInPlace(GradientBoostingStaging):
    def with_recording(self, estimator):
        return estimator.set_params(n_iter_no_change=None, tol=0.5)


class StopsEarly(GradientBoostingStaging):
    def with_max_stages(self, estimator, stage):
        return clone(estimator).set_params(n_estimators=stage - 1)


class WrongNumber(GradientBoostingStaging):
    def n_stages(self, estimator):
        return super().n_stages(estimator) + hasattr(estimator, "estimators_")


class NoUnit(GradientBoostingStaging):
    unit = ""


class CopiesRows(GradientBoostingStaging):
    """A row's scores depend on the others."""

    def staged_scores(self, fitted, X):
        for kind, scores in super().staged_scores(fitted, X):
            yield kind, scores - scores.mean(axis=0) * (len(X) < 100)


class LosesNames(GradientBoostingStaging):
    def staged_scores(self, fitted, X):
        return super().staged_scores(fitted, np.asarray(X))


class Unpicklable(GradientBoostingStaging):
    def truncate_to_stage(self, fitted, stage):
        short = super().truncate_to_stage(fitted, stage)
        short.helper_ = lambda x: x
        return short


PLANTED = {
    OneTooFew: "check_unit_and_number",
    OneTooLate: "check_last_stage_is_the_model",
    TruncatesOneTooMany: "check_stages_are_truncations",
    BothOff: "check_fit_with_so_many_stages",
    AlwaysTheEnd: "check_stages_differ",
    CutsInPlace: "check_truncation_leaves_the_model_alone",
    CutsACopyInPlace: "check_truncation_leaves_the_model_alone",
    WrongScale: "check_last_stage_is_the_model",
    WrongKind: "check_last_stage_is_the_model",
    SetsInPlace: "check_preparation_leaves_the_estimator_alone",
    StopsEarly: "check_fit_with_so_many_stages",
    WrongNumber: "check_unit_and_number",
    NoUnit: "check_unit_and_number",
    CopiesRows: "check_rows_alone",
    LosesNames: "check_tables_and_pipelines",
    Unpicklable: "check_truncated_models_travel",
}


def fails(check):
    try:
        check()
    except Exception:
        return True
    return False


@pytest.mark.slow
@run_every_case("adapter", PLANTED, ids=lambda a: a.__name__)
def test_planted_mistakes_are_caught_by_name(adapter):
    class Learner(GradientBoostingClassifier):
        pass

    Learner.__qualname__ = "Learner"
    globals()["Learner"] = Learner
    register_staging(Learner, GradientBoostingStaging())
    checks = [
        check
        for name, check in contract_checks(Learner(n_estimators=STAGES, random_state=0))
        if name.partition("[")[0] == PLANTED[adapter]
    ]
    assert checks, f"there is no {PLANTED[adapter]}"
    for check in checks:
        check()  # the right one passes
    register_staging(Learner, adapter())
    assert any(fails(check) for check in checks)


def test_all_checks_in_one_call():
    class Learner(GradientBoostingClassifier):
        pass

    register_staging(Learner, OneTooFew())
    with pytest.raises(
        AssertionError, match=r"check_unit_and_number\[2\] failed: 4 arrays"
    ):
        check_contract(Learner(n_estimators=STAGES, random_state=0))


def test_a_learner_of_two_stages_is_too_short_to_be_checked():
    """Between its first and its last stage is none that a mistake could show in."""
    for stages in (1, 2, 3):
        learner = GradientBoostingClassifier(n_estimators=stages, **SEED)
        check = dict(contract_checks(learner))["check_unit_and_number[2]"]
        if stages < 3:
            with pytest.raises(
                AssertionError, match=f"{stages} stages are too few to check; pass"
            ):
                check()
        else:
            check()


def test_a_missing_registration_is_said():
    class Alone(RandomForestClassifier):
        pass

    class Never(Staging):
        def applies(self, estimator):
            return False

    register_staging(Alone, Never())
    with pytest.raises(
        AssertionError, match=r"Alone has no adapter; call register_staging"
    ):
        check_contract(Alone())
