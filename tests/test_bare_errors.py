"""Options of the wrong kind are rejected in words, whatever Python or a library below would say."""

import numpy as np
import pandas as pd
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.linear_model import LogisticRegression

from sklearn_calib.classifiers import CalibratedModel
from sklearn_calib.decisions import regret_curve
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.inference import confidence_interval
from sklearn_calib.metrics import (
    expected_calibration_error,
    get_scorer,
    lower_distance_to_calibration,
    validate_multilabel,
)
from sklearn_calib.recalibrators import PlattScaling, cross_fitted_proba
from sklearn_calib.theory import GaussianLogisticModel

RNG = np.random.default_rng(0)
P = RNG.random(80)
Y = (RNG.random(80) < P).astype(int)
X = RNG.normal(size=(80, 2))
TABLE = pd.DataFrame(np.column_stack([1 - P, P]), columns=["a", "a"])
NO_TEXTS = [np.array([1, 2]), pd.NA]


@pytest.mark.parametrize("odd", NO_TEXTS, ids=["array", "NA"])
@pytest.mark.parametrize(
    "option", ["strategy", "multiclass", "multilabel", "soft_labels"]
)
def test_an_option_of_a_measure(option, odd):
    with raises_invalid_input(ValueError):
        expected_calibration_error(Y, P, **{option: odd})


@pytest.mark.parametrize("odd", NO_TEXTS, ids=["array", "NA"])
def test_names_and_methods(odd):
    for call in (
        lambda: lower_distance_to_calibration(Y, P, method=odd),
        lambda: expected_calibration_error(Y, P, pos_label=odd),
        lambda: validate_multilabel(X > 0, abs(X) % 1, odd),
        lambda: get_scorer(odd),
    ):
        with raises_invalid_input(ValueError):
            call()


@run_every_case("cv", [0, 1, -1, 200, 2**70, True])
def test_numbers_of_folds(cv):
    with raises_invalid_input(ValueError, expected="2 to .* folds as cv"):
        cross_fitted_proba("platt", P, Y, cv=cv)
    if cv == 200:
        with raises_invalid_input(
            ValueError, expected="2 to .* folds as cv", value="200"
        ):
            CalibratedModel(LogisticRegression(), cv=cv).fit(X, Y)


@pytest.mark.parametrize("n_jobs", [float("nan"), 10**30, 0])
def test_numbers_of_jobs(n_jobs):
    with raises_invalid_input(ValueError, expected="n_jobs as a whole number or None"):
        confidence_interval(Y, P, "brier_loss", n_resamples=30, n_jobs=n_jobs)


def test_columns_of_one_name():
    with raises_invalid_input(ValueError, expected="columns of different names"):
        PlattScaling().fit(TABLE, Y)


def test_numbers_beyond_float64():
    document = to_dict(PlattScaling().fit(P, Y))
    document["scale"] = [0, 10**400]
    with raises_invalid_input(ValueError, expected="two numbers, the lower one first"):
        from_dict(document)
    for norm in (5e-324, 1e308):
        with pytest.raises(ValueError, match=r"a finite inner and a norm above 0, got"):
            GaussianLogisticModel.compute_weight_loss(0.5, norm)
    with raises_invalid_input(ValueError, expected="n_bins <= 1000000"):
        expected_calibration_error(Y, P, n_bins=2**70)


def test_rows_that_are_none():
    with raises_invalid_input(ValueError, expected=".*folds as cv", value="5"):
        regret_curve(Y, P, "platt", sample_weight=np.eye(80)[0])
