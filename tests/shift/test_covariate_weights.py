"""Density ratios: close to the true ones, cross-fitted, cut, and usable as sample weights."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from refused import refuses
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import PlattScaling
from sklearn_calib.shift import covariate_weights


def samples(n=2000, m=1000, shift=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal([shift, 0.0], 1.0, size=(m, 2))


def test_close_to_the_true_ratio():
    X, target = samples()
    found = covariate_weights(X, target, quantile=1)
    true = np.exp(X[:, 0] - 0.5)
    assert np.abs(np.log(found.weights * true.mean() / true)).max() < 0.8
    assert np.abs(np.average(X, axis=0, weights=found.weights) - [1, 0]).max() < 0.15
    w = found.weights
    assert w.mean() == pytest.approx(1) and found.n_limited == 0
    assert found.effective_rows == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert found.covered == pytest.approx(1, abs=0.1)
    assert found.auc == pytest.approx(0.76, abs=0.03)  # of normal laws one deviation apart


def test_large_weights_are_cut():
    X, target = samples()
    free, cut = (covariate_weights(X, target, quantile=q) for q in (1, 0.9))
    assert cut.n_limited == 200 and cut.weights.max() == pytest.approx(cut.limit)
    assert cut.effective_rows > free.effective_rows
    kept = free.weights < np.quantile(free.weights, 0.9)
    ratio = cut.weights[kept] / free.weights[kept]
    assert np.ptp(ratio) < 1e-9


def test_a_row_is_weighted_by_fits_that_have_not_seen_it():
    """A tree knows the rows it was fitted on: without folds all weights would be tiny."""
    X, target = samples(400, 400, shift=0.0)
    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    assert abs(covariate_weights(X, target, tree).auc - 0.5) < 0.08
    assert tree.fit(np.r_[X, target], np.repeat([0, 1], 400)).score(X, np.zeros(400)) > 0.55


def test_a_recalibrator_fits_the_target():
    """The model is off in another way at the target's features than at most of the source's."""
    X, target = samples(6000, 6000, shift=1.5)

    def proba(rows):
        return expit(rows[:, 0])

    def labels(rows, seed):
        truth = expit(rows[:, 0] - 0.8 * np.maximum(rows[:, 0], 0) ** 2)
        return (np.random.default_rng(seed).random(len(rows)) < truth).astype(int)

    y, y_target = labels(X, 1), labels(target, 2)
    weights = covariate_weights(X, target).weights
    plain = PlattScaling().fit(proba(X), y).predict_proba(proba(target))
    weighted = PlattScaling().fit(proba(X), y, sample_weight=weights)
    best = PlattScaling().fit(proba(target), y_target).predict_proba(proba(target))
    losses = [
        log_loss(y_target, found) for found in (plain, weighted.predict_proba(proba(target)), best)
    ]
    assert losses[1] < losses[0] - 0.5 * (losses[0] - losses[2])


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.DataFrame, scipy.sparse.csr_array, np.ndarray.tolist]
)
def test_containers(kind):
    X, target = samples(300, 200)
    model = LogisticRegression()
    expected = covariate_weights(X, target, model).weights
    named = {pd.DataFrame: {"columns": ["a", "b"]}, pl.DataFrame: {"schema": ["a", "b"]}}
    given = [kind(table, **named.get(kind, {})) for table in (X, target)]
    assert np.allclose(covariate_weights(*given, model).weights, expected, atol=1e-6)
    assert covariate_weights(*given).effective_rows > 50


def test_samples_that_hardly_overlap():
    X, target = samples(300, 300, shift=6.0)
    with pytest.warns(CalibrationWarning, match="The samples hardly overlap"):
        found = covariate_weights(X, target)
    assert found.auc > 0.99 and found.covered < 0.2 and np.isfinite(found.weights).all()
    with pytest.warns(CalibrationWarning, match="weights worth [0-9.]+ of 20 rows"):
        covariate_weights(*samples(20, 20))


def test_fewer_target_rows_than_folds():
    X, target = samples(50, 50, shift=0.0)
    np.testing.assert_array_equal(
        covariate_weights(X, target[:3]).weights, covariate_weights(X, target[:3], cv=3).weights
    )


def test_whole_and_other_numbers_of_polars():
    whole, other = pl.DataFrame({"a": np.arange(60) % 5}), pl.DataFrame({"a": np.arange(60) % 7.0})
    found = covariate_weights(whole, other, cv=2)
    given = [frame.to_numpy().astype(float) for frame in (whole, other)]
    np.testing.assert_allclose(found.weights, covariate_weights(*given, cv=2).weights)


def test_refused():
    X, target = samples(50, 50)
    with refuses(ValueError, rule=".*columns in X_source"):
        covariate_weights(X, target[:, :1])
    with refuses(ValueError, rule=".*two dimensions"):
        covariate_weights(X[:, 0], target[:, 0])
    with refuses(ValueError, rule="rows in both"):
        covariate_weights(X, target[:0])
    with refuses(ValueError, rule=".*two rows in both samples", value="1 in one"):
        covariate_weights(X, target[:1])
    with refuses(ValueError, rule=".*two folds", value="cv=1"):
        covariate_weights(X, target, cv=1)
    with refuses(ValueError, rule=r".*quantile in \(0, 1\]"):
        covariate_weights(X, target, quantile=99)
    with refuses(ValueError, rule=".*every source row"):
        covariate_weights(X, target, cv=[(np.arange(20, 100), np.arange(20))])
    with refuses(TypeError, rule="predict_proba"):
        covariate_weights(X, target, LinearSVC())
    frames = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(target, columns=["b", "a"])
    with refuses(ValueError, value="the same in another order"):
        covariate_weights(*frames)
    with refuses(ValueError, value=r"\['a', 'c'\] in one of them only"):
        covariate_weights(frames[0], frames[1].rename(columns={"a": "c"}))


@pytest.mark.parametrize(
    ("cell", "said"), [("text", "could not convert string to float: 'text'"), (None, "NaN")]
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_only_numbers_without_an_estimator(kind, cell, said):
    table = kind({"a": [cell, cell, cell, cell], "b": [1.0, 2.0, 3.0, 4.0]})
    with refuses(ValueError, rule="finite numbers", value=f".*{said}", cure="Pass estimator="):
        covariate_weights(table, table)


def test_an_estimator_may_read_text():
    table = pd.DataFrame({"a": ["u", "v"] * 50, "b": [1.0, None] * 50})
    columns = make_column_transformer((OneHotEncoder(), ["a"]), (SimpleImputer(), ["b"]))
    found = covariate_weights(table, table, make_pipeline(columns, LogisticRegression()))
    assert found.effective_rows > 90


@pytest.mark.parametrize("seed", [0, 3])
def test_the_folds_are_those_of_the_seed(seed):
    X, target = samples(200, 100)
    found = covariate_weights(X, target, cv=3, random_state=seed).weights
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    np.testing.assert_array_equal(found, covariate_weights(X, target, cv=folds).weights)
    assert not np.array_equal(found, covariate_weights(X, target, cv=3, random_state=9).weights)
