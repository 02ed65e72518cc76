import pickle
import warnings

import numpy as np
import pytest
from boosters import DEPRECATED, skipped, why_not
from error_fields import raises_invalid_input
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import canonical_proba
from sklearn_calib.classifiers._classifier_scores import (
    compute_canonical_classifier_scores,
)
from sklearn_calib.staged import Staging, find_staging, register_staging

STAGES = 8
pytestmark = pytest.mark.filterwarnings(*DEPRECATED)


def learners():
    yield GradientBoostingClassifier(n_estimators=STAGES, random_state=0, subsample=0.7)
    yield HistGradientBoostingClassifier(
        max_iter=STAGES, random_state=0, max_features=0.7
    )
    yield AdaBoostClassifier(n_estimators=STAGES, random_state=0)
    yield RandomForestClassifier(n_estimators=STAGES, random_state=0)
    yield ExtraTreesClassifier(n_estimators=STAGES, random_state=0)
    yield MLPClassifier((8,), max_iter=STAGES, random_state=0)
    yield SGDClassifier(loss="log_loss", max_iter=STAGES, random_state=0)
    yield SGDClassifier(
        max_iter=STAGES, random_state=0, class_weight="balanced", average=True
    )
    if not why_not("xgboost"):
        from xgboost import XGBClassifier, XGBRFClassifier

        yield XGBClassifier(
            n_estimators=STAGES, subsample=0.7, random_state=0, n_jobs=1
        )
        yield XGBClassifier(
            n_estimators=STAGES, booster="dart", rate_drop=0.3, n_jobs=1
        )
        yield XGBClassifier(n_estimators=STAGES, objective="multi:softprob", n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # see DEPRECATED
            yield XGBRFClassifier(n_estimators=STAGES, n_jobs=1)
    if not why_not("lightgbm"):
        from lightgbm import LGBMClassifier

        options = {
            "n_estimators": STAGES,
            "n_jobs": 1,
            "verbose": -1,
            "random_state": 0,
        }
        yield LGBMClassifier(**options)
        yield LGBMClassifier(boosting_type="dart", **options)
        yield LGBMClassifier(
            boosting_type="rf", subsample=0.6, subsample_freq=1, **options
        )
    if not why_not("catboost"):
        from catboost import CatBoostClassifier

        yield CatBoostClassifier(
            iterations=STAGES, verbose=0, thread_count=1, allow_writing_files=False
        )


LEARNERS = list(learners())


def name(learner):
    return type(learner).__name__


@pytest.fixture(params=[2, 3])
def data(request):
    return make_classification(
        300, n_informative=6, n_classes=request.param, random_state=0
    )


def by_truncation(staging, fitted, X, n_classes, stage):
    shorter = staging.truncate_to_stage(fitted, stage)
    scores = compute_canonical_classifier_scores(shorter, X, "auto")
    assert scores.shape == (len(X), n_classes)
    return scores


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("learner", [*LEARNERS, *skipped()], ids=name)
def test_staged_scores_are_those_of_the_truncated_model(data, learner, piped):
    X, y = data
    n_classes = len(set(y))
    if n_classes == 2 and "multi" in str(learner.get_params().get("objective")):
        pytest.skip("an objective for more than two classes")
    learner = make_pipeline(StandardScaler(), learner) if piped else learner
    staging = find_staging(learner)
    assert staging.n_stages(learner) == STAGES or name(learner) == "XGBRFClassifier"
    fitted = staging.with_recording(clone(learner))
    staging.fit(fitted, X[:200], y[:200])
    before = compute_canonical_classifier_scores(fitted, X, "auto")
    n_stages = staging.n_stages(fitted)
    staged = [
        canonical_proba(scores, kind=kind, n_classes=n_classes)
        for kind, scores in staging.staged_scores(fitted, X)
    ]
    assert len(staged) == n_stages
    single = "XGB" in repr(learner)
    for stage in {1, n_stages // 2, n_stages} - {0}:
        short = by_truncation(staging, fitted, X, n_classes, stage)
        np.testing.assert_allclose(
            staged[stage - 1], short, atol=1e-7 if single else 1e-12
        )
    np.testing.assert_allclose(staged[-1], before, atol=1e-7 if single else 1e-12)
    # the fitted model is left alone, and the short one can be sent elsewhere
    np.testing.assert_array_equal(
        compute_canonical_classifier_scores(fitted, X, "auto"), before
    )
    short = staging.truncate_to_stage(fitted, 1)
    copy = pickle.loads(pickle.dumps(short))
    np.testing.assert_array_equal(copy.predict(X), short.predict(X))


@pytest.mark.parametrize("learner", [*LEARNERS, *skipped()], ids=name)
def test_a_refit_reaches_the_stage(data, learner):
    X, y = data
    if len(set(y)) == 2 and "multi" in str(learner.get_params().get("objective")):
        pytest.skip("an objective for more than two classes")
    staging = find_staging(learner)
    if name(learner) == "XGBRFClassifier":
        # all trees are one round
        assert staging.with_max_stages(learner, 1).n_estimators == STAGES
        return
    whole = staging.with_recording(clone(learner))
    staging.fit(whole, X, y)
    limited = clone(staging.with_max_stages(learner, 5))
    staging.fit(limited, X, y)
    refitted = staging.truncate_to_stage(limited, 5)
    if "dart" in str(learner.get_params()):
        assert staging.n_stages(limited) == STAGES  # later rounds rescale earlier trees
    atol = 1e-6 if name(learner).startswith("XGB") else 1e-10
    np.testing.assert_allclose(
        compute_canonical_classifier_scores(refitted, X, "auto"),
        compute_canonical_classifier_scores(
            staging.truncate_to_stage(whole, 5), X, "auto"
        ),
        atol=atol,
    )


@pytest.mark.slow
def test_tables_with_column_names(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    X = pandas.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    for learner in LEARNERS:
        if "multi" in str(learner.get_params().get("objective")):
            continue
        staging = find_staging(learner)
        fitted = staging.with_recording(clone(learner))
        staging.fit(fitted, X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(list(staging.staged_scores(fitted, X))) == staging.n_stages(
                fitted
            )


def test_missing_values_in_a_forest():
    X, y = make_classification(200, random_state=0)
    X[::7, 3] = np.nan
    fitted = RandomForestClassifier(5, random_state=0).fit(X, y)
    *_, (_, last) = find_staging(fitted).staged_scores(fitted, X)
    np.testing.assert_allclose(last, fitted.predict_proba(X))


def test_no_stages():
    assert find_staging(LogisticRegression()) is None
    assert find_staging(make_pipeline(StandardScaler(), LogisticRegression())) is None
    assert find_staging(MLPClassifier(solver="lbfgs")) is None
    X, y = make_classification(100, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MLPClassifier((3,), max_iter=2).fit(X, y)
    assert find_staging(fitted) is None  # its epochs were not recorded
    assert find_staging(FrozenEstimator(GradientBoostingClassifier().fit(X, y))).unit
    if not why_not("xgboost"):
        from xgboost import XGBClassifier

        assert find_staging(XGBClassifier(booster="gblinear")) is None


def test_epochs_differ_with_a_whole_number_as_seed(data):
    X, y = data
    learner = MLPClassifier((8,), max_iter=3, random_state=0, early_stopping=True)
    staging = find_staging(learner)
    staging.fit(learner, X, y)
    assert learner.random_state == 0
    assert learner.early_stopping
    by_hand = MLPClassifier((8,), random_state=np.random.RandomState(0))
    for _ in range(3):
        by_hand.partial_fit(X, y, classes=np.unique(y))
    np.testing.assert_array_equal(by_hand.coefs_[0], learner.coefs_[0])
    assert not hasattr(staging.truncate_to_stage(learner, 2), "_staged_snapshots")


def test_sgd_default_epochs_are_bounded():
    assert find_staging(SGDClassifier()).n_stages(SGDClassifier()) == 100


def test_registration():
    class Mine(GradientBoostingClassifier):
        pass

    assert find_staging(Mine()).unit == "boosting rounds"  # inherited

    class MyStaging(Staging):
        unit = "turns"

    register_staging(Mine, MyStaging())
    assert find_staging(Mine()).unit == "turns"
    with raises_invalid_input(
        TypeError, expected="an instance of Staging", hint="Derive"
    ):
        register_staging(Mine, MyStaging)
