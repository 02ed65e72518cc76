import pickle
import warnings

import numpy as np
import pytest
import sklearn
from boosters import imported
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
)


@pytest.fixture(params=[2, 3])
def data(request):
    X, y = make_classification(
        400, n_informative=6, n_classes=request.param, random_state=0, flip_y=0.1
    )
    return X, np.array(["blue", "green", "red"])[y]


def assert_probabilities(model, X, n_classes):
    proba = model.predict_proba(X)
    assert proba.shape == (len(X) if not sparse.issparse(X) else X.shape[0], n_classes)
    assert np.abs(proba.sum(axis=1) - 1).max() <= 1e-12
    assert np.array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        LinearSVC(),
        SVC(),
        KNeighborsClassifier(),
        GaussianNB(),
        HistGradientBoostingClassifier(max_iter=10),
        make_pipeline(StandardScaler(), SGDClassifier(random_state=0)),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("ensemble", [True, False])
def test_any_classifier(data, estimator, ensemble):
    X, y = data
    model = CalibratedModel(estimator, ensemble=ensemble).fit(X, y)
    assert_probabilities(model, X, len(set(y)))
    assert model.classes_.tolist() == sorted(set(y))
    assert len(model.calibrated_pairs_) == (5 if ensemble else 1)


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("piped", [False, True])
def test_boosted_trees(data, package, piped):
    module = imported(package)
    options = {"n_estimators": 8, "n_jobs": 1}
    if package == "lightgbm":
        options["verbose"] = -1
    X, y = data
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.1, y[::-1], y)
    booster = (module.XGBClassifier if package == "xgboost" else module.LGBMClassifier)(
        **options
    )
    booster = make_pipeline(StandardScaler(), booster) if piped else booster
    model = CalibratedModel(booster, ensemble=False).fit(X, y)
    assert_probabilities(model, X, len(set(y)))
    # a model that is fitted already, on whole-number labels
    codes = np.unique(y, return_inverse=True)[1]
    fitted = clone(booster).fit(X[:200], codes[:200])
    frozen = CalibratedModel(FrozenEstimator(fitted)).fit(X, codes)
    assert_probabilities(frozen, X, len(set(y)))
    by_probability = CalibratedModel(
        FrozenEstimator(fitted), response_method="predict_proba"
    )
    np.testing.assert_allclose(
        by_probability.fit(X, codes).predict_proba(X),
        frozen.predict_proba(X),
        atol=2e-3,
    )


def test_boosted_margins_keep_what_float32_probabilities_lose():
    xgboost = imported("xgboost")
    X = np.linspace(-1, 1, 200)[:, None]
    y = (X[:, 0] > 0).astype(int)
    fitted = xgboost.XGBClassifier(n_estimators=400, learning_rate=1, reg_lambda=0).fit(
        X, y
    )
    noisy = np.where(np.arange(200) % 10 == 0, 1 - y, y)
    model = CalibratedModel(FrozenEstimator(fitted), "temperature").fit(X, noisy)
    expected = TemperatureScaling().fit(
        canonical_proba(fitted.predict(X, output_margin=True), kind="logits"), noisy
    )
    assert model.recalibrator_.temperature_ == expected.temperature_


def test_frozen_is_the_recalibrator_on_its_scores(data):
    X, y = data
    base = LogisticRegression().fit(X[:200], y[:200])
    model = CalibratedModel(FrozenEstimator(base), "beta").fit(X[200:], y[200:])
    scores = canonical_proba(base.decision_function(X), kind="logits")
    from sklearn_calib.recalibrators import BetaCalibration

    by_hand = BetaCalibration().fit(scores[200:], y[200:])
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(scores))
    assert model.estimator_.estimator is base
    ensemble = CalibratedModel(FrozenEstimator(base), ensemble=True, cv=3).fit(
        X[200:], y[200:]
    )
    assert len(ensemble.calibrated_pairs_) == 3


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
def test_frozen_knows_classes_that_the_calibration_set_misses():
    X, y = make_classification(300, n_informative=6, n_classes=3, random_state=0)
    base = LogisticRegression().fit(X, y)
    kept = y != 2
    model = CalibratedModel(FrozenEstimator(base)).fit(X[kept], y[kept])
    assert model.classes_.tolist() == [0, 1, 2]
    with raises_invalid_input(
        ValueError, expected=r"labels among \[0, 1, 2\]", value=".*7"
    ):
        model.fit(X, np.where(y == 0, 7, y))


def test_cross_fitting_semantics(data):
    """Out-of-fold scores are those of cross_val_predict; pairs are fitted on complementary rows."""
    X, y = data
    cv = StratifiedKFold(3)
    model = CalibratedModel(
        LogisticRegression(), "temperature", cv=cv, ensemble=False
    ).fit(X, y)
    parts = []
    rows = []
    for train, test in cv.split(X, y):
        base = LogisticRegression().fit(X[train], y[train])
        parts.append(base.decision_function(X[test]))
        rows.append(test)
    scores = canonical_proba(np.concatenate(parts), kind="logits")
    by_hand = TemperatureScaling().fit(scores, y[np.concatenate(rows)])
    assert model.recalibrator_.temperature_ == pytest.approx(by_hand.temperature_)
    full = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.estimator_.coef_, full.coef_)
    ensemble = CalibratedModel(LogisticRegression(), "temperature", cv=cv).fit(X, y)
    mean = np.mean(
        [
            pair.recalibrator.predict_proba(
                canonical_proba(pair.estimator.decision_function(X), kind="logits")
            )
            for pair in ensemble.calibrated_pairs_
        ],
        axis=0,
    )
    np.testing.assert_allclose(ensemble.predict_proba(X), mean)
    with pytest.raises(AttributeError, match="fit with ensemble=False"):
        _ = ensemble.recalibrator_


@pytest.mark.parametrize(
    "recalibrator",
    [
        "isotonic",
        IsotonicCalibration(prediction="step"),
        make_pipeline(TemperatureScaling(), HistogramBinning()),
        LogisticRegression(),
        RandomForestClassifier(5, random_state=0),
    ],
    ids=lambda r: r if isinstance(r, str) else type(r).__name__,
)
def test_any_recalibrator(data, recalibrator):
    X, y = data
    weight = np.random.default_rng(0).random(len(y))
    model = CalibratedModel(GaussianNB(), recalibrator).fit(X, y, sample_weight=weight)
    assert_probabilities(model, X, len(set(y)))


def test_extreme_decision_values():
    """Unscaled features give SGD margins of 1e4: their sigmoid is 0 or 1, their order is not."""
    X, y = load_breast_cancer(return_X_y=True)
    base = SGDClassifier(random_state=0).fit(X, y)
    margin = np.abs(base.decision_function(X))
    assert np.median(margin) > 1000
    for recalibrator in ("temperature", "platt", "isotonic", "venn_abers"):
        model = CalibratedModel(FrozenEstimator(base), recalibrator)
        with warnings.catch_warnings():
            if recalibrator == "temperature":  # it cannot move the base rate
                warnings.filterwarnings("ignore", ".*standard errors")
            model.fit(X, y)
        assert log_loss(y, model.predict_proba(X)) < 0.35


@pytest.mark.parametrize(
    "labels",
    [
        [1, 2, 3],
        [10, 20, 30],
        ["x", "y", "z"],
        [b"x", b"y", b"z"],
        [-1, 0, 1],
        [0.0, 1.0, 2.0],
    ],
    ids=str,
)
def test_labels(labels):
    X, codes = make_classification(300, n_informative=6, n_classes=3, random_state=0)
    y = np.array(labels)[codes]
    reference = (
        CalibratedModel(LogisticRegression(), cv=2).fit(X, codes).predict_proba(X)
    )
    model = CalibratedModel(LogisticRegression(), cv=2).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), reference, atol=1e-12)
    assert set(model.predict(X)) <= set(y)


@pytest.mark.parametrize("labels", [[-1, 1], [False, True]], ids=str)
def test_two_labels(labels):
    X, codes = make_classification(200, random_state=0)
    model = CalibratedModel(LogisticRegression(), "platt").fit(
        X, np.array(labels)[codes]
    )
    assert model.classes_.tolist() == labels
    assert np.mean(model.predict(X) == np.array(labels)[codes]) > 0.8


@pytest.mark.filterwarnings("ignore:.*calibration rows of each class")
@pytest.mark.parametrize("ensemble", [True, False])
def test_class_missing_in_a_fold(ensemble):
    X, y = make_classification(300, n_informative=6, n_classes=3, random_state=0)
    rare = np.flatnonzero(y == 2)
    # one row: absent from most train or test parts
    kept = np.r_[np.flatnonzero(y != 2), rare[:1]]
    X, y = X[kept], y[kept]
    options = {"cv": KFold(4), "ensemble": ensemble}
    model = CalibratedModel(LogisticRegression(), "temperature", **options).fit(X, y)
    assert_probabilities(model, X, 3)
    t = [p.recalibrator.temperature_ for p in model.calibrated_pairs_]
    assert max(t) < 5  # the unseen class does not spoil the temperature


@pytest.mark.filterwarnings(
    "ignore:.*expected one index for labels"
)  # rows are taken in order
def test_tables():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = make_classification(200, n_features=4, flip_y=0.2, random_state=0)
    reference = CalibratedModel(LogisticRegression()).fit(X, y).predict_proba(X)
    names = [f"f{i}" for i in range(4)]
    index = np.random.default_rng(0).permutation(200) + 50
    frame = pd.DataFrame(X, columns=names, index=index)
    for table, labels in (
        (frame, pd.Series(y, index=index[::-1])),
        (pl.DataFrame(X, schema=names), pl.Series(y)),
    ):
        model = CalibratedModel(LogisticRegression()).fit(table, labels)
        np.testing.assert_allclose(model.predict_proba(table), reference)
        assert model.feature_names_in_.tolist() == names
        assert model.n_features_in_ == 4


def test_sparse():
    X, y = make_classification(200, random_state=0)
    model = CalibratedModel(LogisticRegression()).fit(sparse.csr_matrix(X), y)
    assert_probabilities(model, sparse.csr_matrix(X), 2)


@pytest.mark.slow
def test_no_training_data_are_kept():
    X, y = make_classification(20_000, n_features=10, random_state=0)
    for ensemble in (True, False):
        model = CalibratedModel(LogisticRegression(), ensemble=ensemble).fit(X, y)
        assert len(pickle.dumps(model)) < 100_000


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what fit was given; takes no sample_weight."""

    def fit(self, X, y, colour=None):
        self.classes_ = np.unique(y)
        self.n_, self.colour_ = len(y), None if colour is None else len(colour)
        return self

    def predict_proba(self, X):
        X = np.asarray(X)
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def test_fit_params_and_weights():
    rng = np.random.default_rng(0)
    X = rng.random((100, 1))
    y = (rng.random(100) < X[:, 0]).astype(int)
    colour = np.arange(100)
    model = CalibratedModel(Recorder(), cv=4).fit(X, y, colour=colour)
    assert [p.estimator.colour_ for p in model.calibrated_pairs_] == [75] * 4
    with pytest.warns(
        UserWarning, match="expected an estimator whose fit takes sample_weight"
    ):
        CalibratedModel(Recorder()).fit(X, y, sample_weight=np.ones(100))


def test_groups_reach_the_splitter():
    X, y = make_classification(120, flip_y=0.2, random_state=0)
    groups = np.arange(120) % 4
    model = CalibratedModel(LogisticRegression(), cv=GroupKFold(4)).fit(
        X, y, groups=groups
    )
    by_hand = CalibratedModel(
        LogisticRegression(), cv=list(GroupKFold(4).split(X, y, groups))
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("cv", [None, 3, GroupKFold(3)], ids=str)
@pytest.mark.parametrize("several_labels", [False, True])
def test_missing_groups_are_refused(several_labels, cv, missing):
    X, y = make_classification(120, random_state=0)
    groups = np.tile(np.array(["a", "b", "c", "d"], object), 30)
    groups[5] = missing
    y = np.column_stack([y, 1 - y, y]) if several_labels else y
    model = CalibratedModel(LogisticRegression(), cv=cv)
    with raises_invalid_input(
        ValueError, expected="a group for every row", value="none", row=5
    ):
        model.fit(X, y, groups=groups)


def test_weights_reach_both_parts():
    X, y = make_classification(300, random_state=0, flip_y=0.2)
    weight = np.random.default_rng(0).integers(0, 3, 300)
    repeated = np.repeat(np.arange(300), weight)
    for estimator in (LogisticRegression(tol=1e-10, max_iter=1000), GaussianNB()):
        fitted = estimator.fit(X, y)
        weighted = CalibratedModel(FrozenEstimator(fitted), "platt").fit(
            X, y, sample_weight=weight
        )
        twice = CalibratedModel(FrozenEstimator(fitted), "platt").fit(
            X[repeated], y[repeated]
        )
        np.testing.assert_allclose(
            weighted.predict_proba(X), twice.predict_proba(X), atol=1e-7
        )
    plain = CalibratedModel(LogisticRegression(), "temperature").fit(X, y)
    other = CalibratedModel(LogisticRegression(), "temperature")
    other.fit(X, y, sample_weight=weight)
    first, second = plain.calibrated_pairs_[0], other.calibrated_pairs_[0]
    assert not np.allclose(first.estimator.coef_, second.estimator.coef_)
    assert first.recalibrator.n_samples_ != second.recalibrator.n_samples_


@pytest.mark.parametrize(
    "recalibrator", ["platt", make_pipeline(TemperatureScaling(), HistogramBinning())]
)
def test_metadata_routing(recalibrator):
    X, y = make_classification(300, random_state=0)
    weight, groups = np.random.default_rng(0).random(300), np.arange(300) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        if not isinstance(recalibrator, str):
            for _, step in recalibrator.steps:
                step.set_fit_request(sample_weight=True)
        model = CalibratedModel(
            LogisticRegression().set_fit_request(sample_weight=True),
            recalibrator,
            cv=GroupKFold(3),
        ).fit(X, y, sample_weight=weight, groups=groups)
        assert len(model.calibrated_pairs_) == 3
        assert_probabilities(model, X, 2)


@pytest.mark.slow  # other processes; test_joblib_backends has a sample
def test_parallel_and_reproducible(data):
    X, y = data
    one = CalibratedModel(LogisticRegression()).fit(X, y).predict_proba(X)
    with warnings.catch_warnings():
        # joblib where shared memory is short
        warnings.simplefilter("ignore", UserWarning)
        two = CalibratedModel(LogisticRegression(), n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_inside_scikit_learn(data):
    X, y = data
    scores = cross_val_score(
        CalibratedModel(LogisticRegression()), X, y, scoring="neg_log_loss"
    )
    assert np.isfinite(scores).all()
    pipe = make_pipeline(StandardScaler(), CalibratedModel(LinearSVC(), "platt")).fit(
        X, y
    )
    assert_probabilities(pipe, X, len(set(y)))
    assert "CalibratedModel" in CalibratedModel(LinearSVC())._repr_html_()


def test_callbacks():
    callback = pytest.importorskip("sklearn.callback")
    seen = []

    class Recording:
        def setup(self, estimator, context):
            seen.append("setup")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            seen.append((context.task_name, context.task_id))

        def teardown(self, estimator, context):
            seen.append("teardown")

    assert isinstance(Recording(), callback.FitCallback)
    X, y = make_classification(100, random_state=0)
    for options, folds in (({"cv": 3}, 3), ({"cv": 3, "ensemble": False}, 4)):
        seen.clear()
        CalibratedModel(LogisticRegression(), **options).set_callbacks(Recording()).fit(
            X, y
        )
        assert seen[0] == "setup" and seen[-1] == "teardown"
        assert [s for s in seen if s[0] == "fold"] == [
            ("fold", i) for i in range(folds)
        ]
    seen.clear()
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    CalibratedModel(frozen).set_callbacks(Recording()).fit(X, y)
    assert ("calibrate", 0) in seen


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback")
    X, y = make_classification(100, random_state=0)
    model = CalibratedModel(GaussianNB(), cv=3).set_callbacks(callback.ProgressBar())
    model.fit(X, y)
    assert "CalibratedModel" in capsys.readouterr().out


class OnlyPredict(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return X


@run_every_case(
    ("model", "error", "message"),
    [
        (CalibratedModel(OnlyPredict()), ValueError, "estimator"),
        (
            CalibratedModel(LogisticRegression(), "tempt"),
            ValueError,
            "expected one of .*, got 'tem",
        ),
        (
            CalibratedModel(LogisticRegression(), 3),
            TypeError,
            "expected a recalibrator.*got 3",
        ),
        (
            CalibratedModel(GaussianNB(), response_method="decision_function"),
            TypeError,
            r"expected an estimator with decision_function, got GaussianNB\(\)",
        ),
        (
            CalibratedModel(LinearSVC(), response_method="predict_proba"),
            TypeError,
            "expected an estimator with predict_proba",
        ),
        (CalibratedModel(LogisticRegression(), ensemble="yes"), ValueError, "ensemble"),
    ],
)
def test_refused_parameters(model, error, message):
    X, y = make_classification(60, random_state=0)
    with pytest.raises(error, match=message):
        model.fit(X, y)


def test_refused_data():
    X, y = make_classification(60, random_state=0)
    model = CalibratedModel(LogisticRegression())
    with raises_invalid_input(
        ValueError, expected="labels of at least two classes", value="one class"
    ):
        model.fit(X, np.zeros(60))
    with raises_invalid_input(ValueError, expected="sample_weight >= 0"):
        model.fit(X, y, sample_weight=-np.ones(60))
    with raises_invalid_input(ValueError, expected="class labels", value="fractions"):
        model.fit(X, X[:, 0])
    with raises_invalid_input(ValueError, expected="calibration rows in every fold"):
        CalibratedModel(
            GaussianNB(), cv=[(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]
        ).fit(X, y)


def test_warnings_of_the_recalibrator_reach_the_user():
    X, y = make_classification(100, class_sep=8, flip_y=0, random_state=0)
    with pytest.warns(CalibrationWarning, match="all correct"):
        CalibratedModel(FrozenEstimator(GaussianNB().fit(X, y)), "temperature").fit(
            X, y
        )


def test_platt_repairs_naive_bayes():
    X, y = make_classification(2000, n_informative=4, n_redundant=10, random_state=0)
    before = GaussianNB().fit(X[:1000], y[:1000]).predict_proba(X[1000:])
    model = CalibratedModel(GaussianNB(), PlattScaling()).fit(X[:1000], y[:1000])
    assert log_loss(y[1000:], model.predict_proba(X[1000:])) < 0.7 * log_loss(
        y[1000:], before
    )


def test_the_folds_of_a_recalibrator_part_no_item_of_soft_labels():
    class Folds(PlattScaling):
        def fit(self, X, y, sample_weight=None, *, classes=None, groups=None):
            given.append(groups)
            return super().fit(X, y, sample_weight, classes=classes)

    given, rng = [], np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = LogisticRegression().fit(X, rng.integers(0, 2, 60))
    shares = rng.choice([0.25, 0.5, 1.0], 60)
    CalibratedModel(FrozenEstimator(model), Folds()).fit(X, shares, soft_labels=True)
    items, rows = np.unique(given[0], return_counts=True)
    assert len(items) == 60 and {*rows} == {1, 2}


# -- folds that are too small for a recalibrator of their own --------------------------------------


TINY_FOLDS = {
    "leave one out": LeaveOneOut(),
    "five rows each": KFold(8, shuffle=True, random_state=0),
    "one class each": [
        (np.arange(40) % 2 != c, np.arange(40) % 2 == c) for c in (0, 1)
    ],
}


@pytest.mark.parametrize("name", TINY_FOLDS)
@pytest.mark.parametrize("frozen", [False, True])
def test_folds_of_a_few_rows_share_one_recalibrator(name, frozen):
    X, y = make_classification(40, flip_y=0, random_state=0)
    order = np.argsort(y, kind="stable").reshape(2, 20).T.ravel()
    X, y = X[order], np.tile([0, 1], 20)  # by turns
    cv = TINY_FOLDS[name]
    if not isinstance(cv, list):
        model = CalibratedModel(LogisticRegression(), "platt", cv=cv).fit(X, y)
        pooled = CalibratedModel(
            LogisticRegression(), "platt", cv=cv, ensemble=False
        ).fit(X, y)
        assert len(model.calibrated_pairs_) == 1
        np.testing.assert_array_equal(model.predict_proba(X), pooled.predict_proba(X))
    estimator = LogisticRegression()
    if frozen:
        estimator = FrozenEstimator(estimator.fit(X, y))
    with raises_invalid_input(
        ValueError,
        expected="at least 10 rows and two classes",
        hint=r"Pass ensemble=False",
    ):
        CalibratedModel(estimator, "platt", cv=cv, ensemble=True).fit(X, y)


@pytest.mark.parametrize(
    ("n_folds", "n_pairs"), [(5, 5), (6, 1)]
)  # of 10 rows, of 8 or 9
def test_ten_rows_of_two_classes_are_enough_for_a_member(n_folds, n_pairs):
    X, y = make_classification(50, random_state=0)
    model = CalibratedModel(
        LogisticRegression(), "platt", cv=StratifiedKFold(n_folds)
    ).fit(X, y)
    assert len(model.calibrated_pairs_) == n_pairs


def test_rows_of_soft_labels_are_counted_as_items():
    X, y = make_classification(45, random_state=0)
    share = np.clip(y + 0.0, 0.1, 0.9)
    model = CalibratedModel(LogisticRegression(), "platt", cv=5).fit(
        X, share, soft_labels=True
    )
    assert len(model.calibrated_pairs_) == 1
