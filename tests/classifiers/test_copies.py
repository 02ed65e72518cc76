"""Rows that are copies of others, oversampled ones for instance: the folds keep them together."""

import warnings

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from sklearn_calib import CalibratedModel
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.recalibrators import group_near_duplicates_and_warn

SAID = "rows that are independent.*got {} different rows of X among {}.*groups"


def rows(n=400):
    return make_classification(n, 5, weights=[0.9], random_state=0)


def oversampled(X, y):
    """The rare class as often as the other, as RandomOverSampler does."""
    rare = np.flatnonzero(y == 1)
    more = np.random.default_rng(0).choice(rare, (y == 0).sum() - len(rare))
    return np.append(np.arange(len(y)), more)


@pytest.mark.parametrize("cv", [None, 3])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, pd.DataFrame])
def test_oversampled_rows_are_told(kind, cv):
    X, y = rows()
    at = oversampled(X, y)
    given = kind(X[at])
    if kind is pd.DataFrame:  # only numbers that are not whole are compared
        given = given.add_prefix("x").assign(number=np.arange(len(at)))
    with pytest.warns(CalibrationWarning, match=SAID.format(400, len(at))):
        CalibratedModel(LogisticRegression(max_iter=5000), "platt", cv=cv).fit(
            given, y[at]
        )


@run_every_case(
    "case", ["groups", "splitter", "few", "whole", "rounded", "frozen", "shares", "one"]
)
def test_silence(case):
    X, y = rows()
    at, options, params = oversampled(X, y), {}, {}
    if case == "groups":
        params = {"groups": at}
    elif case == "splitter":
        options = {"cv": StratifiedKFold(3)}
    elif case == "few":  # one row in six
        at = np.append(np.arange(400), np.arange(80))
    elif case == "whole":  # numbers of things, of which equal rows are not wonder
        X = X.round().astype(int)
    elif case == "rounded":
        X = X.round()
    elif case == "one":  # a score in tenths
        X = X[:, :1].round(1)
    model = LogisticRegression()
    if case == "frozen":  # there are no folds
        model = FrozenEstimator(model.fit(X, y))
    labels = y[at]
    if case == "shares":  # whose rows stand for one each, in one fold
        at, params = np.arange(400), {"soft_labels": True}
        labels = np.clip(y, 0.2, 0.7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CalibratedModel(model, "platt", **options).fit(X[at], labels, **params)


def test_missing_values_of_pandas():
    X, y = rows()
    at = oversampled(X, y)
    table = pd.DataFrame(X[at]).add_prefix("x").astype("Float64")
    table.iloc[::7, 2] = pd.NA
    with pytest.warns(CalibrationWarning, match="different rows of X among"):
        group_near_duplicates_and_warn(table, 5)


def test_missing_numbers():
    X, y = rows()
    at = oversampled(X, y)
    X[::7, 2] = np.nan
    model = HistGradientBoostingClassifier(max_iter=3)
    with pytest.warns(CalibrationWarning, match=SAID.format(400, len(at))):
        CalibratedModel(model, "platt", cv=2).fit(X[at], y[at])


def groups(n_groups, n_rows, noise, seed=0, features=10):
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(n_groups), n_rows)
    X = rng.normal(size=(n_groups, features))[of]
    return X + noise * rng.normal(size=X.shape), of


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_folds_keep_copies_together(noise):
    X, of = groups(80, 5, noise)
    order = np.random.default_rng(1).permutation(len(X))
    X, of = X[order], of[order]
    y = (X[:, 0] + np.random.default_rng(2).normal(size=len(X)) > 0).astype(int)
    with pytest.warns(CalibrationWarning, match=SAID.format(80, 400)):
        found = group_near_duplicates_and_warn(X, 5)
    assert np.array_equal(found[:, None] == found, of[:, None] == of)
    with pytest.warns(CalibrationWarning, match="folds keep them together"):
        model = CalibratedModel(LogisticRegression()).fit(X, y)
    given = CalibratedModel(LogisticRegression()).fit(X, y, groups=found)
    assert np.array_equal(model.predict_proba(X), given.predict_proba(X))
    with pytest.warns(CalibrationWarning, match="folds keep them together"):
        # told the groups, too
        stack = CalibratedModel(LogisticRegression(), "auto").fit(X, y)
    given = CalibratedModel(LogisticRegression(), "auto").fit(X, y, groups=found)
    assert np.array_equal(stack.predict_proba(X), given.predict_proba(X))


def test_many_labels():
    X, _ = groups(80, 5, 0.0)
    Y = (X[:, :2] + np.random.default_rng(2).normal(size=(len(X), 2)) > 0).astype(int)
    naive = GaussianNB()
    with pytest.warns(CalibrationWarning, match="folds keep them together"):
        model = CalibratedModel(MultiOutputClassifier(naive)).fit(X, Y)
        of = group_near_duplicates_and_warn(X, 5)
    given = CalibratedModel(MultiOutputClassifier(naive)).fit(X, Y, groups=of)
    found, wanted = (np.array(m.predict_proba(X)) for m in (model, given))
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(("n_groups", "folds"), [(9, 5), (40, 21)])
def test_too_few_groups_for_the_folds_are_told(n_groups, folds):
    X, _ = groups(n_groups, 40, 0.0)
    with pytest.warns(CalibrationWarning, match="Name what belongs together"):
        assert group_near_duplicates_and_warn(X, folds) is None


@pytest.mark.parametrize("features", [2, 5, 10, 30])
@pytest.mark.parametrize("n_rows", [60, 100, 1000])
def test_independent_rows_are_no_copies(n_rows, features):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        mixed = rng.standard_t(3, (n_rows, features)) @ rng.normal(
            size=(features, features)
        )
        drift = rng.normal(size=(n_rows, features)).cumsum(axis=0)
        clusters = make_blobs(
            n_rows, features, centers=n_rows // 50 + 1, random_state=seed
        )[0]
        for X in (rng.normal(size=(n_rows, features)), mixed, drift, clusters):
            assert group_near_duplicates_and_warn(X, 5) is None
