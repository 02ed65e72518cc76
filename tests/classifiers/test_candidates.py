"""The candidates of a random search."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ParameterSampler

from sklearn_calib import RefineThenCalibrateCV


@pytest.mark.filterwarnings(
    "ignore::sklearn_calib.exceptions.CalibrationWarning"
)  # of few rows
def test_the_draws_of_a_random_search_are_those_of_its_seed():
    X, y = make_classification(60, random_state=0)
    space = {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}
    options = {"n_iter": 2, "cv": [(np.arange(40), np.arange(40, 60))], "refit": False}
    for seed in (0, 7):
        model = RefineThenCalibrateCV(
            LogisticRegression(),
            space,
            recalibrator="identity",
            random_state=seed,
            **options,
        ).fit(X, y)
        drawn = ParameterSampler(space, 2, random_state=np.random.RandomState(seed))
        assert [*model.cv_results_["params"]] == [*drawn]
