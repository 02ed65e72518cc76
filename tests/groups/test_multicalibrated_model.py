import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from error_fields import raises_invalid_input
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import (
    MulticalibratedModel,
    MulticalibratedScores,
    group_calibration,
)
from sklearn_calib.metrics import log_loss

QUICK = {"n_trees": 20, "n_rounds": 2, "cv": 2}


def draw(n=2000, seed=0):
    """A table whose category turns the effect of its number, which a linear model cannot know."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    X["kind"] = rng.choice(["a", "b", "c"], n, p=[0.6, 0.2, 0.2])
    effect = X["kind"].map({"a": 1.0, "b": -1.0, "c": 0.0}).to_numpy()
    return X, (rng.random(n) < expit(2 * effect * X["x"].to_numpy())).astype(int)


def linear():
    return make_pipeline(
        make_column_transformer((StandardScaler(), ["x", "z"])), LogisticRegression()
    )


@pytest.fixture(scope="module")
def data():
    return draw(3000, seed=2)


@pytest.fixture(scope="module")
def frozen(data):
    X, y = data
    model = MulticalibratedModel(
        FrozenEstimator(linear().fit(X[:500], y[:500])), ["kind"], **QUICK
    )
    return model.set_params(n_trees=50).fit(X[500:], y[500:])


@pytest.mark.parametrize("kind", ["frozen", "cross-fitted"])
def test_groups_that_the_model_does_not_know(data, frozen, kind):
    X, y = data
    model = (
        frozen
        if kind == "frozen"
        else MulticalibratedModel(linear(), "kind", **QUICK).fit(X, y)
    )
    X, y = draw(4000, seed=1)
    before, after = model.estimator_.predict_proba(X), model.predict_proba(X)
    assert log_loss(y, after) < log_loss(y, before) - 0.05
    worst = [
        group_calibration(y, p, X[["kind"]], n_resamples=19).sigma
        for p in (before, after)
    ]
    assert worst[1] < 6 < 10 < worst[0]
    assert model.n_rounds_ > 0 and model.n_trees_ > 0
    assert set(model.feature_gains_) == {"kind", "(score)"}
    assert model.cv_losses_[0] > model.cv_losses_.min()
    assert np.array_equal(model.predict(X), after.argmax(axis=1))


def test_it_is_the_correction_of_the_scores(data, frozen):
    X, y = data
    proba = frozen.estimator_.predict_proba(X)
    scores = MulticalibratedScores(**{**QUICK, "n_trees": 50}).fit(
        proba[500:], y[500:], groups=X[["kind"]][500:]
    )
    expected = scores.predict_proba(proba, groups=X[["kind"]])
    np.testing.assert_allclose(frozen.predict_proba(X), expected, rtol=1e-9)


def test_a_frozen_estimator_is_not_fitted(data):
    X, y = data
    inner = linear().fit(X[:500], y[:500])
    model = MulticalibratedModel(FrozenEstimator(inner), "kind", **QUICK).fit(
        X[500:], y[500:]
    )
    assert np.array_equal(model.estimator_.predict_proba(X), inner.predict_proba(X))
    with pytest.warns(CalibrationWarning, match="a fitted Pipeline"):
        MulticalibratedModel(inner, "kind", **QUICK).fit(X, y)


@pytest.mark.slow
def test_groups_by_name_place_and_function(data, frozen):
    X, y = data
    expected = frozen.predict_proba(X)
    for groups in (
        "kind",
        2,
        [2],
        [-1],
        lambda X: X[["kind"]],
        lambda X: X["kind"].to_numpy(),
    ):
        model = clone(frozen).set_params(groups=groups).fit(X[500:], y[500:])
        assert np.array_equal(model.predict_proba(X), expected)


@pytest.mark.parametrize(
    "container",
    [np.asarray, sparse.csr_array, sparse.coo_array, pd.DataFrame, "polars"],
)
def test_kinds_of_features(container):
    X, y = draw(600)
    X = np.column_stack([X["x"], X["kind"] == "b"]).astype(float)
    array = (
        MulticalibratedModel(LogisticRegression(), [1], **QUICK)
        .fit(X, y)
        .predict_proba(X)
    )
    if container == "polars":
        container = pytest.importorskip("polars").DataFrame
    model = MulticalibratedModel(LogisticRegression(), [1], **QUICK).fit(
        container(X), y
    )
    np.testing.assert_allclose(model.predict_proba(container(X)), array, rtol=1e-9)


def test_all_columns(data):
    X, y = data
    model = MulticalibratedModel(linear(), **QUICK).fit(X, y)
    assert set(model.feature_gains_) == {"x", "z", "kind", "(score)"}
    assert (
        model.feature_names_in_.tolist() == ["x", "z", "kind"]
        and model.n_features_in_ == 3
    )


def test_labels_weights_and_decision_functions(data):
    X, y = data
    words = np.where(y == 1, "yes", "no")
    model = MulticalibratedModel(
        make_pipeline(
            make_column_transformer((StandardScaler(), ["x", "z"])), LinearSVC()
        ),
        "kind",
        **QUICK,
    )
    with pytest.warns(UserWarning, match="fitted without weights"):
        model.fit(X, words, sample_weight=np.where(X["kind"] == "c", 0.0, 2.0))
    assert model.classes_.tolist() == ["no", "yes"] and set(model.predict(X)) == {
        "no",
        "yes",
    }
    new, missing = X.assign(kind="c"), X.assign(kind=None)
    # weight 0
    assert np.array_equal(model.predict_proba(new), model.predict_proba(missing))


@pytest.mark.slow
def test_it_goes_into_searches_and_pipelines(data, frozen):
    X, y = data
    assert cross_val_score(frozen, X, y, cv=2, scoring="neg_log_loss").mean() > -0.6
    search = GridSearchCV(
        frozen, {"max_leaves": [2, 4], "groups": ["kind", [0, 2]]}, cv=2
    )
    assert search.fit(X, y).best_params_["max_leaves"] in (2, 4)
    again = pickle.loads(pickle.dumps(frozen))
    assert np.array_equal(again.predict_proba(X), frozen.predict_proba(X))
    assert clone(frozen).get_params()["groups"] == ["kind"]


def test_the_splitter_gets_its_groups(data):
    X, y = data
    model = MulticalibratedModel(linear(), "kind", **{**QUICK, "cv": GroupKFold(2)})
    model.fit(X, y, groups=np.arange(len(y)) // 20)
    assert np.isfinite(model.predict_proba(X)).all()


def test_metadata_routing(data):
    X, y = data
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        model = MulticalibratedModel(inner, 1, **QUICK)
        model.fit(X[["x", "z"]], y, sample_weight=np.ones(len(y)))
    plain = MulticalibratedModel(LogisticRegression(), 1, **QUICK).fit(X[["x", "z"]], y)
    expected = plain.predict_proba(X[["x", "z"]])
    np.testing.assert_allclose(model.predict_proba(X[["x", "z"]]), expected, rtol=1e-6)


def test_a_class_that_a_fold_misses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = rng.integers(0, 2, 90)
    y[:3] = 2
    folds = [(np.arange(45, 90), np.arange(45)), (np.arange(45), np.arange(45, 90))]
    with pytest.warns(
        CalibrationWarning, match="two classes for a correction by groups, got 3"
    ):
        model = MulticalibratedModel(
            LogisticRegression(), **{**QUICK, "cv": folds}
        ).fit(X, y)
    assert model.predict_proba(X).shape == (90, 3)


def test_mistakes(data):
    X, y = data
    model = MulticalibratedModel(linear(), "sort", **QUICK)
    with raises_invalid_input(
        ValueError, expected="a column 'sort' of X ", value="x, z, kind"
    ):
        model.fit(X, y)
    assert not hasattr(model, "classes_")
    numbers = X[["x", "z"]].to_numpy()
    with raises_invalid_input(ValueError, value="an array without names"):
        MulticalibratedModel(LogisticRegression(), "x", **QUICK).fit(numbers, y)
    with raises_invalid_input(
        ValueError,
        expected=".*positions below 2 as groups, the columns of X",
        value="2",
    ):
        MulticalibratedModel(LogisticRegression(), 2, **QUICK).fit(numbers, y)
    with raises_invalid_input(
        ValueError,
        expected=".*names or positions of columns as groups",
        value="booleans",
    ):
        MulticalibratedModel(LogisticRegression(), [True, False], **QUICK).fit(
            numbers, y
        )
    with raises_invalid_input(
        TypeError, expected=".*a dense X with groups='all'", value="a sparse matrix"
    ):
        MulticalibratedModel(LogisticRegression(), **QUICK).fit(
            sparse.csr_array(numbers), y
        )
    with raises_invalid_input(ValueError, expected=".*each of the 3000 rows"):
        MulticalibratedModel(LogisticRegression(), lambda X: X[:5], **QUICK).fit(
            numbers, y
        )
    with raises_invalid_input(TypeError, expected="a table of groups", value="none"):
        MulticalibratedModel(LogisticRegression(), lambda X: None, **QUICK).fit(
            numbers, y
        )


def test_lists_of_unequal_lengths_as_groups():
    X, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    with raises_invalid_input(
        ValueError, expected=r"a column '\[1\]' of X for the groups"
    ):
        MulticalibratedModel(LogisticRegression(), groups=[[1], [0, 1]]).fit(X, y)
