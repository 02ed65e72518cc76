"""Measures as evaluation functions follow the weights, labels and forms of both libraries."""

import numpy as np
import pytest
from boosters import imported

from sklearn_calib.decomposition import as_eval_metric
from sklearn_calib.metrics import log_loss

X = np.random.default_rng(0).normal(size=(80, 2))
Y = (X[:, 0] > 0.3).astype(int)
WEIGHT = np.where(np.arange(80) % 3, 1.0, 9.0)


def fit_xgboost(weight):
    model = imported("xgboost").XGBClassifier(
        n_estimators=2, max_depth=1, eval_metric=as_eval_metric("xgboost", "log_loss")
    )
    model.fit(X, Y, eval_set=[(X, Y)], sample_weight_eval_set=[weight], verbose=False)
    return model.evals_result()["validation_0"]["log_loss"][-1], model.predict_proba(X)


def fit_lightgbm(weight):
    model = imported("lightgbm").LGBMClassifier(
        n_estimators=2, max_depth=1, metric="None", verbose=-1
    )
    metric = as_eval_metric("lightgbm", "log_loss")
    rows = [(X.copy(), Y.copy())]  # of the training rows themselves it takes no weights
    model.fit(X, Y, eval_set=rows, eval_sample_weight=[weight], eval_metric=metric)
    return model.evals_result_["valid_0"]["log_loss"][-1], model.predict_proba(X)


def train_xgboost(weight):
    xgboost, found = imported("xgboost"), {}
    data = xgboost.DMatrix(X, Y, weight=weight)
    params = {"objective": "binary:logistic", "disable_default_eval_metric": True}
    model = xgboost.train(
        params,
        xgboost.DMatrix(X, Y),
        2,
        evals=[(data, "rows")],
        custom_metric=as_eval_metric("xgboost", "log_loss"),
        evals_result=found,
        verbose_eval=False,
    )
    return found["rows"]["log_loss"][-1], model.predict(data)


def train_lightgbm(weight):
    lightgbm, found = imported("lightgbm"), {}
    rows = lightgbm.Dataset(X, Y)
    model = lightgbm.train(
        {"objective": "binary", "metric": "None", "verbose": -1},
        rows,
        2,
        valid_sets=[lightgbm.Dataset(X, Y, weight=weight, reference=rows)],
        feval=as_eval_metric("lightgbm", "log_loss"),
        callbacks=[lightgbm.record_evaluation(found)],
    )
    return found["valid_0"]["log_loss"][-1], model.predict(X)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'", "ignore::UserWarning")
@pytest.mark.parametrize(
    "fit", [fit_xgboost, fit_lightgbm, train_xgboost, train_lightgbm]
)
def test_the_metric_follows_the_weights_of_the_evaluation_rows(fit):
    value, proba = fit(WEIGHT)
    expected = log_loss(Y, proba, sample_weight=WEIGHT)
    assert abs(expected - log_loss(Y, proba)) > 1e-3
    assert value == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("weight", [None, [2.0, 1.0, 1.0]])
def test_shares_of_the_second_class_are_soft_labels(weight):
    y, p = [0.3, 0.8, 1.0], [0.4, 0.7, 0.9]
    expected = log_loss(y, p, soft_labels=True, sample_weight=weight)
    assert as_eval_metric("xgboost", "log_loss")(y, p, weight) == pytest.approx(
        expected
    )
