"""Rows that are copies of others, oversampled ones for instance: folds share them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from sklearn_calib import CalibratedModel
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.meta._concerns import warn_of_copies

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
        CalibratedModel(LogisticRegression(), "platt", cv=cv).fit(given, y[at])


@pytest.mark.parametrize(
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
    elif case == "whole":  # numbers of things, of which equal rows are no wonder
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
        warn_of_copies("here", table)


def test_missing_numbers():
    X, y = rows()
    at = oversampled(X, y)
    X[::7, 2] = np.nan
    model = HistGradientBoostingClassifier(max_iter=3)
    with pytest.warns(CalibrationWarning, match=SAID.format(400, len(at))):
        CalibratedModel(model, "platt", cv=2).fit(X[at], y[at])
