"""Errors advise what the caller has not done already."""

import numpy as np
import pytest
from boosters import imported
from error_fields import raises_invalid_input
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel
from sklearn_calib.classifiers import RefineThenCalibrateCV

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.arange(40) % 2


def test_early_stopping_inside_a_refined_model_is_to_be_left_out():
    model = RefineThenCalibrateCV(
        imported("xgboost").XGBClassifier(early_stopping_rounds=5)
    )
    with pytest.raises(ValueError, match="or leave the early stopping out"):
        model.fit(X, Y)


def test_an_empty_list_of_folds_is_refused():
    with raises_invalid_input(ValueError, expected="at least one fold", value=r"\[\]"):
        CalibratedModel(LogisticRegression(), cv=[]).fit(X, Y)
