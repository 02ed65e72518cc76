import pickle
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import sklearn
from boosters import imported
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV, canonical_proba
from sklearn_calib.classifiers._search import iter_stage_scores_and_own_proba
from sklearn_calib.decomposition import decompose_loss, refinement_error
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import BetaFamilyLoss
from sklearn_calib.recalibrators import TemperatureScaling

pytestmark = pytest.mark.filterwarnings(
    "ignore:RefineThenCalibrateCV. expected at least 1000:"
    "sklearn_calib.exceptions.CalibrationWarning"
)


def boosting(**options):
    options = {"n_estimators": 12, "max_depth": 3, "random_state": 0} | options
    return GradientBoostingClassifier(**options)


@pytest.fixture(params=[2, 3])
def data(request):
    X, y = make_classification(
        300, n_informative=6, n_classes=request.param, random_state=0, flip_y=0.1
    )
    return X, np.array(["blue", "green", "red"])[y]


# for what does not depend on the number of classes
two_classes = pytest.mark.parametrize(
    "data", [2, pytest.param(3, marks=pytest.mark.slow)], indirect=True
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "weighted"),
    [
        (3, True),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((3, False), (2, True), (2, False))
        ),
    ],
    indirect=["data"],
)
def test_against_a_loop_by_hand(data, weighted):
    """Candidates, stages, pooling, the recalibrator and the refit, written out."""
    X, y = data
    weight = np.random.default_rng(0).uniform(0.2, 2, len(y)) if weighted else None
    learner, cv, grid = boosting(n_estimators=8), StratifiedKFold(3), [0.05, 0.9]
    table, scores = [], {}
    for rate in grid:
        parts, rows = [], []
        for train, test in cv.split(X, y):
            fold = clone(learner).set_params(learning_rate=rate)
            fold.fit(
                X[train],
                y[train],
                sample_weight=None if weight is None else weight[train],
            )
            parts.append(list(fold.staged_decision_function(X[test])))
            rows.append(test)
        rows = np.concatenate(rows)
        for stage in range(8):
            pooled = np.concatenate([part[stage] for part in parts])
            pooled = canonical_proba(pooled, kind="logits")
            w = None if weight is None else weight[rows]
            scores[rate, stage + 1] = pooled
            options = {"sample_weight": w, "labels": np.unique(y)}
            parts_of_loss = decompose_loss(y[rows], pooled, **options)
            smooth = refinement_error(y[rows], pooled, label_smoothing=True, **options)
            loss = (parts_of_loss.risk, parts_of_loss.refinement, smooth)
            table.append((rate, stage + 1, *loss))
    model = RefineThenCalibrateCV(
        learner, {"learning_rate": grid}, recalibrator="temperature", cv=cv
    )
    model.fit(X, y, sample_weight=weight)
    results = model.cv_results_
    assert results["param_learning_rate"].tolist() == [row[0] for row in table]
    assert results["stage"].tolist() == [row[1] for row in table]
    for column, name in enumerate(["risk", "refinement", "criterion"], start=2):
        np.testing.assert_allclose(
            results[name], [row[column] for row in table], atol=1e-8
        )
    best = min(table, key=lambda row: row[4])
    assert (model.best_params_, model.best_stage_) == (
        {"learning_rate": best[0]},
        best[1],
    )
    assert model.best_score_ == pytest.approx(-best[4], abs=1e-8)
    assert results["rank"][model.best_index_] == 1
    expected = TemperatureScaling().fit(scores[best[:2]], y[rows], sample_weight=w)
    assert model.recalibrator_.temperature_ == pytest.approx(expected.temperature_)
    final = clone(learner).set_params(learning_rate=best[0], n_estimators=best[1])
    final.fit(X, y, sample_weight=weight)
    expected = expected.predict_proba(
        canonical_proba(final.decision_function(X), kind="logits")
    )
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-10)
    assert model.classes_.tolist() == np.unique(y).tolist()
    assert np.array_equal(model.predict(X), model.classes_[expected.argmax(axis=1)])
    assert model.best_estimator_.n_estimators_ == model.best_stage_
    curve = model.refinement_curve_
    of_best = results["candidate"] == grid.index(best[0])
    np.testing.assert_array_equal(curve.criterion, results["criterion"][of_best])
    assert curve.unit == "boosting rounds"
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_ensemble_of_truncated_fold_models(data):
    X, y = data
    cv = StratifiedKFold(3)
    model = RefineThenCalibrateCV(
        boosting(learning_rate=0.5), cv=cv, ensemble=True
    ).fit(X, y)
    assert len(model.calibrated_pairs_) == 3
    total = 0
    for pair, (train, _) in zip(model.calibrated_pairs_, cv.split(X, y), strict=True):
        by_hand = boosting(learning_rate=0.5, n_estimators=model.best_stage_)
        by_hand.fit(X[train], y[train])
        assert pair.recalibrator is model.recalibrator_
        scores = canonical_proba(by_hand.decision_function(X), kind="logits")
        total = total + model.recalibrator_.predict_proba(scores) / 3
    np.testing.assert_allclose(model.predict_proba(X), total, atol=1e-10)
    with pytest.raises(
        AttributeError, match="best_estimator_ exists after a fit with one pair"
    ):
        model.best_estimator_  # noqa: B018


def test_hold_out_keeps_the_model_of_the_split(data):
    X, y = data
    cv = StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    options = {"recalibrator": "temperature", "cv": cv, "refit": False}
    model = RefineThenCalibrateCV(boosting(), **options).fit(X, y)
    ((train, test),) = cv.split(X, y)
    by_hand = boosting(n_estimators=model.best_stage_).fit(X[train], y[train])
    np.testing.assert_array_equal(
        model.best_estimator_.decision_function(X), by_hand.decision_function(X)
    )
    assert model.recalibrator_.temperature_ == pytest.approx(
        TemperatureScaling()
        .fit(
            canonical_proba(by_hand.decision_function(X[test]), kind="logits"), y[test]
        )
        .temperature_
    )


@two_classes
def test_search_only(data):
    X, y = data
    model = RefineThenCalibrateCV(boosting(), refit=False).fit(X, y)
    assert model.best_stage_ >= 1
    with raises_invalid_input(
        AttributeError, expected=".*a model that was kept", value="refit=False"
    ):
        model.predict_proba(X)


@pytest.mark.slow
@two_classes
def test_frozen_model_is_truncated_and_left_alone(data):
    X, y = data
    fitted = boosting(n_estimators=60, learning_rate=0.9).fit(X[:250], y[:250])
    before = fitted.decision_function(X)
    model = RefineThenCalibrateCV(FrozenEstimator(fitted)).fit(X[250:], y[250:])
    assert 1 <= model.best_stage_ < 60
    assert isinstance(model.best_estimator_, FrozenEstimator)
    np.testing.assert_array_equal(fitted.decision_function(X), before)
    staged = list(fitted.staged_decision_function(X))[model.best_stage_ - 1]
    decision = model.best_estimator_.decision_function(X)
    np.testing.assert_allclose(decision, staged.reshape(decision.shape), atol=1e-12)
    piped = make_pipeline(StandardScaler(), clone(fitted)).fit(X[:250], y[:250])
    again = RefineThenCalibrateCV(FrozenEstimator(piped)).fit(X[250:], y[250:])
    assert again.best_stage_ == model.best_stage_
    with raises_invalid_input(
        ValueError, expected="a param_grid of an estimator that can be"
    ):
        RefineThenCalibrateCV(FrozenEstimator(fitted), {"max_depth": [1]}).fit(X, y)


@pytest.mark.slow
def test_pipeline_with_a_grid_over_both_steps(data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    X = pandas.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    pipe = make_pipeline(SelectKBest(), HistGradientBoostingClassifier(max_iter=10))
    grid = {
        "selectkbest__k": [3, 10],
        "histgradientboostingclassifier__learning_rate": [0.1, 0.5],
    }
    model = RefineThenCalibrateCV(pipe, grid, cv=3).fit(X, pandas.Series(y))
    assert len(model.cv_results_["stage"]) == 40
    assert model.best_estimator_[-1].n_iter_ == model.best_stage_
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    table = pandas.DataFrame(model.cv_results_)
    assert table.loc[model.best_index_, "rank"] == 1
    assert model.predict_proba(X).shape == (len(X), len(set(y)))


@pytest.mark.slow
@two_classes
def test_epochs_in_a_pipeline(data):
    X, y = data
    pipe = make_pipeline(
        StandardScaler(),
        MLPClassifier((8,), max_iter=15, learning_rate_init=0.03, random_state=0),
    )
    model = RefineThenCalibrateCV(pipe, cv=3).fit(X, y)
    assert model.refinement_curve_.unit == "epochs"
    assert len(model.refinement_curve_.stage) == 15
    assert model.best_estimator_[-1].max_iter == model.best_stage_
    assert not hasattr(model.best_estimator_[-1], "_staged_snapshots")
    kept = RefineThenCalibrateCV(pipe, cv=3, ensemble=True).fit(X, y)
    assert kept.best_stage_ == model.best_stage_


@two_classes
@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
def test_boosting_libraries(data, package):
    module = imported(package)
    X, y = data
    if package == "xgboost":
        learner = module.XGBClassifier(n_estimators=15, n_jobs=1)
    elif package == "lightgbm":
        learner = module.LGBMClassifier(n_estimators=15, n_jobs=1, verbose=-1)
    else:
        learner = module.CatBoostClassifier(
            iterations=15, verbose=0, thread_count=1, allow_writing_files=False
        )
    for ensemble in (False, True):
        model = RefineThenCalibrateCV(learner, cv=3, ensemble=ensemble).fit(X, y)
        assert len(model.refinement_curve_.stage) == 15
        proba = model.predict_proba(X)
        assert np.abs(proba.sum(axis=1) - 1).max() < 1e-12
        assert (model.predict(X) == y).mean() > 0.75


@pytest.mark.slow
@two_classes
def test_no_stages_and_chosen_stages(data):
    X, y = data
    plain = RefineThenCalibrateCV(LogisticRegression(), {"C": [0.01, 1]}).fit(X, y)
    assert plain.best_stage_ is None
    assert plain.cv_results_["stage"].tolist() == [1, 1]
    last = RefineThenCalibrateCV(boosting(), stages=None).fit(X, y)
    assert last.best_stage_ is None
    assert last.best_estimator_.n_estimators_ == 12
    some = RefineThenCalibrateCV(boosting(), stages=[12, 3, 6]).fit(X, y)
    every = RefineThenCalibrateCV(boosting()).fit(X, y)
    assert some.refinement_curve_.stage.tolist() == [3, 6, 12]
    np.testing.assert_allclose(
        some.refinement_curve_.criterion,
        every.refinement_curve_.criterion[[2, 5, 11]],
        atol=1e-7,
    )
    assert last.best_score_ == pytest.approx(
        -every.refinement_curve_.criterion[-1], abs=1e-7
    )


@pytest.mark.slow
def test_fits_of_different_length(data):
    """A fold whose learner stopped by itself keeps its last scores."""
    X, y = data
    learner = boosting(n_estimators=80, learning_rate=0.8, n_iter_no_change=3)
    model = RefineThenCalibrateCV(learner, cv=3, ensemble=True).fit(X, y)
    lengths = [pair.estimator.n_estimators_ for pair in model.calibrated_pairs_]
    assert max(lengths) <= model.best_stage_ or len(set(lengths)) == 1
    assert np.isfinite(model.cv_results_["criterion"]).all()


@two_classes
@pytest.mark.parametrize(
    ("refinement", "loss"),
    [
        ("temperature-in-sample", "log"),
        ("isotonic", "brier"),
        ("beta", "log"),
        (TemperatureScaling(laplace=True), "brier"),
    ],
)
def test_what_defines_refinement(data, refinement, loss):
    X, y = data
    options = {"stages": [4, 8, 12], "refinement": refinement, "loss": loss}
    model = RefineThenCalibrateCV(boosting(), recalibrator="platt", **options).fit(X, y)
    assert 0 < -model.best_score_ < 3
    assert type(model.recalibrator_).__name__ == "PlattScaling"


@pytest.mark.slow
def test_one_standard_error_is_earlier():
    X, y = make_classification(1000, n_informative=5, flip_y=0.2, random_state=1)
    learner = boosting(n_estimators=20, max_depth=2, learning_rate=0.5)
    least = RefineThenCalibrateCV(learner, cv=3).fit(X, y)
    early = RefineThenCalibrateCV(learner, cv=3, selection="one_standard_error").fit(
        X, y
    )
    assert early.best_stage_ < least.best_stage_
    curve = early.refinement_curve_
    position = early.best_stage_ - 1
    assert (
        curve.criterion[position] - curve.criterion.min()
        <= curve.standard_error[position]
    )


@two_classes
def test_random_search(data):
    X, y = data
    space = {"C": stats.loguniform(1e-3, 1e3)}
    options = {"n_iter": 4, "cv": 2, "random_state": 0}
    fits = [
        RefineThenCalibrateCV(LogisticRegression(), space, **options).fit(X, y)
        for _ in range(2)
    ]
    assert len(fits[0].cv_results_["params"]) == 4
    assert fits[0].best_params_ == fits[1].best_params_


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.slow
def test_rare_class_missing_in_a_fold():
    X, y = make_classification(300, n_informative=6, n_classes=3, random_state=0)
    fold = np.arange(300) % 3
    fold[y == 2] = 0  # fold 0's training part has no row of class 2
    model = RefineThenCalibrateCV(
        boosting(), cv=PredefinedSplit(fold), ensemble=True
    ).fit(X, y)
    assert [len(pair.columns) for pair in model.calibrated_pairs_] == [2, 3, 3]
    assert model.predict_proba(X).shape == (300, 3)


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_a_training_part_of_one_class_says_nothing():
    X, y = make_classification(200, random_state=0)
    fold = np.where(y == 1, 0, np.arange(200) % 2 + 1)
    model = RefineThenCalibrateCV(
        RandomForestClassifier(4, random_state=0), cv=PredefinedSplit(fold)
    )
    assert model.fit(X, y).predict_proba(X).shape == (200, 2)
    one_sided = [(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]
    with raises_invalid_input(
        ValueError, expected="test rows of classes that the training part"
    ):
        RefineThenCalibrateCV(GaussianNB(), cv=one_sided).fit(X, y)


@two_classes
def test_groups_and_cv_that_leaves_rows_out(data):
    X, y = data
    groups = np.arange(len(y)) % 7
    model = RefineThenCalibrateCV(boosting(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert model.n_splits_ == 3
    partly = RefineThenCalibrateCV(
        boosting(), cv=ShuffleSplit(2, test_size=0.1, random_state=0)
    )
    partly.fit(X, y)
    assert partly.best_stage_ >= 1


@pytest.mark.slow
@two_classes
def test_metadata_routing(data):
    X, y = data
    weight = np.random.default_rng(0).uniform(0.2, 2, len(y))
    legacy = RefineThenCalibrateCV(boosting(), cv=3).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        learner = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            boosting().set_fit_request(sample_weight=True),
        )
        routed = RefineThenCalibrateCV(learner, cv=3).fit(X, y, sample_weight=weight)
        mlp = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            MLPClassifier((4,), max_iter=9, learning_rate_init=0.05),
        )
        RefineThenCalibrateCV(mlp, cv=3).fit(X, y)
    assert routed.best_stage_ == legacy.best_stage_
    np.testing.assert_allclose(
        routed.predict_proba(X), legacy.predict_proba(X), atol=1e-6
    )
    piped = RefineThenCalibrateCV(make_pipeline(StandardScaler(), boosting()), cv=3)
    with pytest.warns(UserWarning, match="pass STEP__sample_weight"):
        piped.fit(X, y, sample_weight=weight)
    piped.fit(X, y, gradientboostingclassifier__sample_weight=weight)


class Fragile(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        if self.C < 0.5:
            raise RuntimeError("too cold")
        return super().fit(X, y)


def test_failing_fits(data):
    X, y = data
    search = RefineThenCalibrateCV(Fragile(), {"C": [0.1, 1, 10]})
    with pytest.warns(FitFailedWarning, match=r"5 of 15 fits failed.*\n.*too cold"):
        search.fit(X, y)
    assert search.best_params_["C"] >= 1
    assert np.isnan(search.cv_results_["criterion"]).tolist() == [True, False, False]
    assert search.cv_results_["rank"][0] == 3
    with raises_invalid_input(ValueError, expected="one candidate that can be fitted"):
        RefineThenCalibrateCV(Fragile(), {"C": [0.1]}).fit(X, y)
    with pytest.raises(RuntimeError, match="too cold"):
        RefineThenCalibrateCV(Fragile(), {"C": [0.1, 1]}, error_score="raise").fit(X, y)


class Clueless(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self


@run_every_case(
    "options, message",
    [
        (
            {"stages": [5, 13]},
            "expected stages up to the 12 boosting rounds of the fit, got 13",
        ),
        ({"stages": [0, 1]}, "expected stages as whole numbers from 1 on"),
        ({"stages": []}, "expected stages as whole numbers from 1 on"),
        ({"param_grid": []}, "expected at least one candidate"),
        ({"n_iter": 3}, "expected a param_grid"),
        ({"error_score": 0.0}, "expected error_score 'raise' or numpy.nan"),
        ({"estimator": Clueless()}, "The 'estimator' parameter"),
        (
            {"estimator": GaussianNB(), "stages": [1, 2]},
            "expected a learner with stages",
        ),
        ({"loss": "hinge"}, "expected a loss among brier, log, spherical, got 'hinge'"),
        ({"loss": 1.0}, "The 'loss' parameter"),
        ({"loss": BetaFamilyLoss(1, 4)}, "expected 2 classes for beta_family, got 3"),
        ({"recalibrator": "isotonik"}, "isotonik"),
    ],
)
def test_bad_input(options, message):
    X, y = load_iris(return_X_y=True)
    model = RefineThenCalibrateCV(**{"estimator": boosting()} | options)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)


def test_one_class():
    with raises_invalid_input(ValueError, expected="labels of at least two classes"):
        RefineThenCalibrateCV(boosting()).fit(np.zeros((5, 2)), np.zeros(5))


@pytest.mark.filterwarnings("default")
def test_few_rows_or_errors_are_told(data):
    X, y = data
    with pytest.warns(
        CalibrationWarning, match="1000 validation rows .* got 300 rows and"
    ):
        RefineThenCalibrateCV(GaussianNB()).fit(X, y)
    X, y = make_classification(2000, flip_y=0.2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RefineThenCalibrateCV(GaussianNB()).fit(X, y)


@pytest.mark.slow
@two_classes
def test_inside_cross_validation(data):
    X, y = data
    scores = cross_val_score(
        RefineThenCalibrateCV(boosting(n_estimators=5), cv=KFold(3)), X, y
    )
    assert scores.mean() > 0.6


def test_only_a_decision_function(data):
    X, y = data
    model = RefineThenCalibrateCV(RidgeClassifier(), {"alpha": [0.1, 10.0]}).fit(X, y)
    assert model.predict_proba(X).shape == (len(y), len(set(y)))


def test_progress():
    callback = pytest.importorskip("sklearn.callback")
    events = []

    class Count:
        max_propagation_depth = 1

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            events.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

    assert callback
    X, y = make_classification(200, random_state=0)
    model = RefineThenCalibrateCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=3)
    model.set_callbacks(Count()).fit(X, y)
    assert events.count("fit") >= 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "n_jobs"),
    [
        ("multiprocessing", 1),
        ("multiprocessing", 2),
        ("threading", 2),
        pytest.param(
            "loky", 2, marks=pytest.mark.slow
        ),  # its processes import everything again
    ],
)
def test_joblib_backends(backend, n_jobs):
    """joblib's multiprocessing cannot hand results out one by one: a ValueError before."""
    X, y = make_classification(200, random_state=0)
    search = RefineThenCalibrateCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, cv=3)
    expected = clone(search).fit(X, y)
    with warnings.catch_warnings():
        # joblib where shared memory is short
        warnings.simplefilter("ignore", UserWarning)
        with joblib.parallel_config(backend):
            fitted = search.set_params(n_jobs=n_jobs).fit(X, y)
            model = CalibratedModel(GaussianNB(), n_jobs=n_jobs).fit(X, y)
    serial = CalibratedModel(GaussianNB()).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), serial.predict_proba(X))
    assert fitted.best_params_ == expected.best_params_
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))


class Countdown:
    """A staging whose models are their numbers of stages; the stage is in the probability."""

    def n_stages(self, fitted):
        return fitted

    def staged_scores(self, fitted, X):
        for stage in range(1, fitted + 1):
            p = X * stage / 100
            yield "proba", np.column_stack([1 - p, p])

    def staged_proba(self, fitted, X):
        return None


@pytest.mark.parametrize("wanted", [{2, 5}, {1, 4}, {3, 4, 5}])
def test_a_fit_with_fewer_stages_keeps_its_last_one(wanted):
    """Also if its last stage is not among those that are wanted."""
    job = SimpleNamespace(where="test", classes=np.array([0, 1]))
    parts = [np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])]
    folds = [
        SimpleNamespace(
            estimator=n, X_test=part, rows=np.arange(len(part)), columns=np.arange(2)
        )
        for n, part in zip((3, 5), parts, strict=True)
    ]
    found = [
        scores[:, 1]
        for scores, _ in iter_stage_scores_and_own_proba(
            job, folds, Countdown(), wanted
        )
    ]
    stages = [np.repeat([min(stage, 3), stage], [2, 3]) for stage in sorted(wanted)]
    for one, stage in zip(found, stages, strict=True):
        expected = np.concatenate(parts) * stage / 100
        np.testing.assert_allclose(
            one, expected, err_msg=f"wanted={wanted}, stages {stage}"
        )
