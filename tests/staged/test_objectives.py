"""Objectives and boosting types whose raw scores are not the logits of the probabilities."""

import importlib
import sys

import numpy as np
import pytest
from boosters import DEPRECATED, imported
from error_fields import raises_invalid_input
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, canonical_proba
from sklearn_calib.decomposition import decompose_loss, refinement_error
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import brier_loss, log_loss
from sklearn_calib.recalibrators import IsotonicCalibration
from sklearn_calib.staged import classifier_logits, find_staging

ROUNDS = 8
pytestmark = pytest.mark.filterwarnings("ignore:.*1000 validation rows")


def logistic(y_true, margin):
    """Gradient and curvature of the log loss: an objective of the user's."""
    p = expit(margin)
    return p - y_true, p * (1 - p)


@pytest.fixture(params=[2, 3])
def data(request):
    return make_classification(
        300, n_informative=6, n_classes=request.param, random_state=0
    )


def own_probabilities(model, X):
    """After each stage, by the adapter."""
    staging = find_staging(model)
    own = staging.staged_proba(model, X)
    if own is not None:
        return [np.asarray(p) for p in own]
    k = len(model.classes_)
    return [
        canonical_proba(s, kind=kind, n_classes=k)
        for kind, s in staging.staged_scores(model, X)
    ]


def assert_own(model, X, atol):
    proba = own_probabilities(model, X)
    assert len(proba) == ROUNDS
    np.testing.assert_allclose(proba[-1], model.predict_proba(X), atol=atol)
    short = find_staging(model).truncate_to_stage(model, 3)
    np.testing.assert_allclose(proba[2], short.predict_proba(X), atol=atol)


def _named(options):
    """The same in every process, as parallel tests want it."""
    return ", ".join(f"{k}={getattr(v, '__name__', v)}" for k, v in options.items())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "multi:softmax"},
        {"objective": "multi:softprob"},
        {"objective": "binary:hinge"},
        {"objective": "reg:logistic"},
        {"objective": logistic},
        {"base_score": 0.9},
        {"base_score": [0.2, 0.5, 0.3]},
        {"multi_strategy": "multi_output_tree", "tree_method": "hist"},
        {"num_parallel_tree": 3, "subsample": 0.7},
    ],
    ids=_named,
)
def test_xgboost(data, options):
    xgboost = imported("xgboost")
    X, y = data
    k = len(set(y))
    only_several = "multi:" in str(options) or isinstance(
        options.get("base_score"), list
    )
    if (k == 2 and only_several) or (k == 3 and options.get("objective") is logistic):
        pytest.skip("not for so many classes")
    if isinstance(options.get("base_score"), list) and xgboost.__version__ < "3.1":
        pytest.skip("one base_score")
    model = xgboost.XGBClassifier(n_estimators=ROUNDS, n_jobs=1, **options).fit(
        X[:200], y[:200]
    )
    assert_own(model, X, 2e-7)


@pytest.mark.parametrize(
    "objective", ["binary:logitraw", "count:poisson", "rank:pairwise"]
)
def test_xgboost_objectives_without_probabilities_are_refused(objective):
    """binary:logitraw: the staged sigmoid was up to 2.8 away from predict_proba, [1 - m, m]."""
    xgboost = imported("xgboost")
    X, y = make_classification(300, random_state=0)
    learner = xgboost.XGBClassifier(objective=objective, n_estimators=ROUNDS, n_jobs=1)
    message = rf"expected an objective .* got '{objective}'. Use .*binary:logistic"
    with pytest.raises(ValueError, match=message):
        RefineThenCalibrateCV(learner).fit(X, y)
    with pytest.raises(ValueError, match=message):
        RefineThenCalibrateCV(FrozenEstimator(learner.fit(X, y))).fit(X, y)


def test_logitraw_margins_are_log_odds_without_stages():
    xgboost = imported("xgboost")
    X, y = make_classification(300, flip_y=0.3, random_state=0)
    model = xgboost.XGBClassifier(
        objective="binary:logitraw", n_estimators=9, n_jobs=1
    ).fit(X, y)
    calibrated = CalibratedModel(FrozenEstimator(model), "temperature").fit(X, y)
    by_hand = expit(
        model.predict(X, output_margin=True) / calibrated.recalibrator_.temperature_
    )
    np.testing.assert_allclose(calibrated.predict_proba(X)[:, 1], by_hand, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1},
        {"boosting": "rf", "subsample": 0.6, "subsample_freq": 1},
        {"boosting_type": "dart"},
        {"boosting_type": "goss"},
        {"sigmoid": 2.0},
        {"objective": "cross_entropy"},
        {"objective": "ova", "num_class": 2},
        {"linear_tree": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("piped", [False, True])
def test_lightgbm(data, options, piped):
    lightgbm = imported("lightgbm")
    X, y = data
    if len(set(y)) == 3 and "objective" in options:
        pytest.skip("two classes only")
    learner = lightgbm.LGBMClassifier(
        n_estimators=ROUNDS, n_jobs=1, verbose=-1, **options
    )
    learner = make_pipeline(StandardScaler(), learner) if piped else learner
    model = learner.set_output(transform="pandas") if piped else learner
    model.fit(X[:200], y[:200])
    assert_own(model, X, 1e-12)
    logits = classifier_logits(model, X)
    if "objective" not in options:  # what CalibratedModel recalibrates
        np.testing.assert_allclose(
            canonical_proba(logits, kind="logits"), model.predict_proba(X), atol=1e-12
        )


def test_lightgbm_forest_of_the_best_iteration():
    """Early stopping keeps fewer rounds than were trained: logits, and stages, are theirs."""
    lightgbm = imported("lightgbm")
    X, y = make_classification(200, random_state=0)
    forest = lightgbm.LGBMClassifier(
        n_estimators=6,
        boosting_type="rf",
        subsample=0.5,
        subsample_freq=1,
        n_jobs=1,
        verbose=-1,
    ).fit(X, y)
    staging = find_staging(forest)
    forest.booster_.best_iteration = forest._best_iteration = 3
    logits = staging.logits(forest, X)
    expected = forest.predict_proba(X)
    np.testing.assert_allclose(
        canonical_proba(logits, kind="logits"), expected, atol=1e-12
    )
    assert np.abs(expected - forest.predict_proba(X, num_iteration=6)).max() > 1e-3
    cut = staging.truncate_to_stage(forest, 5)
    of_five = forest.predict_proba(X, num_iteration=5)
    np.testing.assert_allclose(cut.predict_proba(X), of_five, atol=1e-12)
    own = canonical_proba(staging.logits(cut, X), kind="logits")
    np.testing.assert_allclose(own, of_five, atol=1e-12)


def test_xgboost_with_a_number_that_means_missing():
    xgboost = imported("xgboost")
    X, y = make_classification(200, random_state=0)
    X[::3, :5] = -999.0
    model = xgboost.XGBClassifier(n_estimators=4, missing=-999.0, n_jobs=1).fit(X, y)
    *_, (kind, last) = find_staging(model).staged_scores(model, X)
    expected = model.predict_proba(X)
    np.testing.assert_allclose(canonical_proba(last, kind=kind), expected, atol=1e-6)


@pytest.mark.slow
def test_lightgbm_one_vs_rest_is_refused():
    lightgbm = imported("lightgbm")
    X, y = make_classification(300, n_informative=6, n_classes=3, random_state=0)
    options = {"n_estimators": 4, "n_jobs": 1, "verbose": -1}
    learner = lightgbm.LGBMClassifier(objective="ova", num_class=3, **options)
    message = "expected an objective .* sum to 1, got 'multiclassova'. Use "
    for model in (RefineThenCalibrateCV(learner), CalibratedModel(learner)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    # the hint that the message names
    each = OneVsRestClassifier(lightgbm.LGBMClassifier(**options))
    assert CalibratedModel(each).fit(X, y).predict_proba(X).shape == (300, 3)


def test_lightgbm_custom_objective_is_refused():
    lightgbm = imported("lightgbm")
    X, y = make_classification(300, random_state=0)
    learner = lightgbm.LGBMClassifier(
        objective=logistic, n_estimators=4, n_jobs=1, verbose=-1
    )
    for model in (RefineThenCalibrateCV(learner), CalibratedModel(learner)):
        with raises_invalid_input(ValueError, value="a function of your own"):
            model.fit(X, y)


def test_catboost_one_vs_all_is_refused():
    catboost = imported("catboost")
    X, y = make_classification(300, n_informative=6, n_classes=3, random_state=0)
    learner = catboost.CatBoostClassifier(
        iterations=4,
        loss_function="MultiClassOneVsAll",
        verbose=0,
        allow_writing_files=False,
    )
    message = (
        "CatBoostClassifier: expected a loss_function .* got 'MultiClassOneVsAll'. Use "
    )
    for model in (RefineThenCalibrateCV(learner), CalibratedModel(learner)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


@pytest.mark.parametrize(
    "learner, n_classes",
    [
        (
            GradientBoostingClassifier(
                loss="exponential", n_estimators=ROUNDS, random_state=0
            ),
            2,
        ),
        (AdaBoostClassifier(n_estimators=ROUNDS, random_state=0), 3),
        (SGDClassifier(loss="log_loss", max_iter=ROUNDS, random_state=0), 3),
        (SGDClassifier(loss="modified_huber", max_iter=ROUNDS, random_state=0), 2),
    ],
    ids=lambda v: type(v).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("loss", ["log", "brier"])
def test_risk_is_that_of_the_learners_own_probabilities(
    learner, n_classes, piped, loss
):
    """It was that of the softmax of the decision function, up to 0.2 away in a probability."""
    X, y = make_classification(
        600, n_informative=6, n_classes=n_classes, random_state=0
    )
    split = [(np.arange(300), np.arange(300, 600))]
    learner = make_pipeline(StandardScaler(), learner) if piped else learner
    search = RefineThenCalibrateCV(
        learner, cv=split, loss=loss, recalibrator="temperature"
    )
    results = search.fit(X, y).cv_results_
    staging = find_staging(learner)
    model = staging.with_recording(clone(learner))
    staging.fit(model, X[:300], y[:300])
    measure = log_loss if loss == "log" else brier_loss
    for stage in (1, 4, ROUNDS):
        proba = staging.truncate_to_stage(model, stage).predict_proba(X[300:])
        assert results["risk"][stage - 1] == pytest.approx(
            measure(y[300:], proba), rel=1e-9
        )
    np.testing.assert_allclose(
        results["calibration"], results["risk"] - results["refinement"], atol=1e-15
    )
    last = canonical_proba(model.decision_function(X[300:]), kind="logits")
    assert abs(measure(y[300:], last) - results["risk"][-1]) > 1e-4  # not the old one
    parts = decompose_loss(y[300:], last, loss=loss)
    assert results["refinement"][-1] == pytest.approx(parts.refinement, abs=1e-7)


def test_risk_without_stages_is_that_of_predict_proba():
    X, y = make_classification(400, n_informative=6, n_classes=3, random_state=0)
    learner = OneVsRestClassifier(LogisticRegression())
    split = [(np.arange(200), np.arange(200, 400))]
    search = RefineThenCalibrateCV(learner, cv=split, stages=None).fit(X, y)
    proba = learner.fit(X[:200], y[:200]).predict_proba(X[200:])
    assert search.cv_results_["risk"][0] == pytest.approx(
        log_loss(y[200:], proba), rel=1e-12
    )


@pytest.mark.slow
@pytest.mark.filterwarnings(*DEPRECATED)
@pytest.mark.parametrize("package", ["xgboost", "xgboost of any booster", "lightgbm"])
def test_dart_is_judged_refitted_and_told_as_it_is(package):
    """The refit trained fewer rounds, with other weights of its trees than those that were judged:
    predictions differed by 0.16.
    """
    package, *any_booster = package.split(" ", 1)
    module = imported(package)
    if any_booster and tuple(map(int, module.__version__.split(".")[:2])) < (3, 4):
        pytest.skip("dropout with booster='dart' alone")
    X, y = make_classification(600, flip_y=0.2, random_state=0)
    if package == "xgboost":
        booster = {} if any_booster else {"booster": "dart"}
        learner = module.XGBClassifier(
            n_estimators=20, **booster, rate_drop=0.3, n_jobs=1
        )
    else:
        learner = module.LGBMClassifier(
            n_estimators=20, boosting_type="dart", drop_rate=0.3, n_jobs=1, verbose=-1
        )
    search = RefineThenCalibrateCV(learner, stages=[6], recalibrator="temperature")
    told = "got rate_drop=0.3" if any_booster else "got boost.*='dart'"
    with pytest.warns(
        CalibrationWarning, match=f"trees that keep their weights.* {told}"
    ) as caught:
        search.fit(X, y)
    assert sum("keep their weights" in str(w.message) for w in caught) == 1
    whole = clone(learner).fit(X, y)
    short = find_staging(learner).truncate_to_stage(whole, 6)
    np.testing.assert_array_equal(
        search.best_estimator_.predict_proba(X), short.predict_proba(X)
    )
    fewer = clone(learner).set_params(n_estimators=6).fit(X, y)
    assert np.abs(fewer.predict_proba(X) - short.predict_proba(X)).max() > 0.05


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"booster": "dart"}, "booster='dart'"),
        ({"rate_drop": 0.1}, "rate_drop=0.1"),
        ({"booster": "gbtree", "one_drop": 1}, "one_drop=1"),
        ({"booster": "gbtree", "rate_drop": 0.0}, None),
        ({}, None),
    ],
)
def test_options_of_dropout_are_told_without_dart(options, told):
    """XGBoost 3.4 drops trees with any booster of trees that has these options."""
    learner = imported("xgboost").XGBClassifier(n_estimators=20, **options)
    staging = find_staging(learner)
    caveat = staging.caveat(learner)
    assert caveat is None if told is None else caveat[1] == told
    assert staging.with_max_stages(learner, 5).n_estimators == (
        5 if told is None else 20
    )


def test_a_dart_candidate_of_a_grid_is_told():
    lightgbm = imported("lightgbm")
    X, y = make_classification(1200, flip_y=0.3, random_state=0)
    learner = lightgbm.LGBMClassifier(n_estimators=4, n_jobs=1, verbose=-1)
    with pytest.warns(CalibrationWarning, match="boosting_type='dart'"):
        RefineThenCalibrateCV(learner, {"boosting_type": ["dart"]}).fit(X, y)


@pytest.mark.slow
def test_refinement_is_that_of_the_scores_that_are_recalibrated():
    """With isotonic regression and three classes the scale of the scores matters; the criterion
    and the final recalibrator see the same ones, the softmax of the decision function.
    """
    X, y = make_classification(600, n_informative=6, n_classes=3, random_state=0)
    split = [(np.arange(300), np.arange(300, 600))]
    learner = AdaBoostClassifier(n_estimators=ROUNDS, random_state=0)
    search = RefineThenCalibrateCV(
        learner, cv=split, recalibrator="isotonic", refinement="isotonic", refit=True
    ).fit(X, y)
    model = find_staging(learner).truncate_to_stage(
        learner.fit(X[:300], y[:300]), search.best_stage_
    )
    scores = canonical_proba(model.decision_function(X[300:]), kind="logits")
    by_hand = refinement_error(y[300:], scores, recalibrator="isotonic", cv=5)
    row = search.cv_results_["stage"] == search.best_stage_
    assert search.cv_results_["refinement"][row] == pytest.approx(by_hand, rel=1e-9)
    expected = IsotonicCalibration().fit(scores, y[300:]).predict_proba(scores)
    np.testing.assert_allclose(
        search.recalibrator_.predict_proba(scores), expected, atol=1e-12
    )
    other = refinement_error(
        y[300:], model.predict_proba(X[300:]), recalibrator="isotonic", cv=5
    )
    assert abs(other - by_hand) > 1e-4  # so it is worth saying


@pytest.mark.slow
def test_a_package_that_cannot_be_loaded_disturbs_nobody(data, monkeypatch):
    """LightGBM is installed, the OpenMP library of the system is not: its import is an OSError."""

    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("lightgbm", "catboost"):
                raise OSError("libgomp.so.1: cannot open shared object file")

    for name in [
        name for name in sys.modules if name.startswith(("lightgbm", "catboost"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(OSError, match="libgomp"):
        importlib.import_module("lightgbm")
    X, y = data
    learner = GradientBoostingClassifier(n_estimators=ROUNDS, random_state=0)
    model = CalibratedModel(learner, "platt", cv=2).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert RefineThenCalibrateCV(learner, cv=2).fit(X, y).best_stage_ <= ROUNDS
