"""The order of an ordered Categorical reaches the recalibrator inside a model."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from error_fields import raises_invalid_input
from own_order import OwnOrder
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel
from sklearn_calib.recalibrators import OrdinalCalibration

SCALE = ["low", "mid", "high"]


@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@pytest.mark.parametrize("kind", ["categorical", "series", "shuffled index", "polars"])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_model_keeps_the_order_of_an_ordered_categorical(kind, frozen):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    text = np.array(SCALE)[np.digitize(X[:, 0] + rng.normal(size=120), [-0.5, 0.5])]
    y = pd.Categorical(text, categories=SCALE, ordered=True)
    if kind == "polars":
        y = pl.Series(text.tolist(), dtype=pl.Enum(SCALE))
    elif kind != "categorical":
        y = pd.Series(
            y, index=rng.permutation(120) if kind == "shuffled index" else None
        )
    estimator = LogisticRegression()
    estimator = FrozenEstimator(estimator.fit(X, text)) if frozen else estimator
    model = CalibratedModel(estimator, OrdinalCalibration(), ensemble=False, cv=3).fit(
        X, y
    )
    named = CalibratedModel(
        estimator, OrdinalCalibration(order=SCALE), ensemble=False, cv=3
    )
    expected = named.fit(X, text).predict_proba(X)
    assert model.recalibrator_.order_.tolist() == SCALE
    assert np.array_equal(model.predict_proba(X), expected)


def test_the_order_of_a_classifiers_columns_is_no_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.array(SCALE)[np.digitize(X[:, 0] + rng.normal(size=120), [-0.5, 0.5])]
    estimator = FrozenEstimator(OwnOrder(LogisticRegression(), [2, 0, 1]).fit(X, y))
    with raises_invalid_input(
        ValueError, expected="the order of a scale", hint="Pass order="
    ):
        CalibratedModel(estimator, OrdinalCalibration()).fit(X, y)
    model = CalibratedModel(estimator, OrdinalCalibration(order=SCALE)).fit(X, y)
    assert model.recalibrator_.order_.tolist() == SCALE
    numbers = np.array([SCALE.index(label) for label in y])
    estimator = FrozenEstimator(
        OwnOrder(LogisticRegression(), [2, 0, 1]).fit(X, numbers)
    )
    plain = CalibratedModel(estimator, OrdinalCalibration()).fit(X, numbers)
    assert plain.recalibrator_.order_.tolist() == [0, 1, 2]
    columns = [
        plain.classes_.tolist().index(SCALE.index(label)) for label in model.classes_
    ]
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(X)[:, columns], rtol=0, atol=1e-9
    )
