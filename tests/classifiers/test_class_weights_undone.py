"""Class weights and resampling: each is shown to spoil the base rate, and each is undone."""

from functools import cache

import numpy as np
import pytest
from boosters import imported
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from sklearn_calib import CalibratedModel
from sklearn_calib.recalibrators import PriorShift

KEPT = 0.05  # of the negatives, where they are undersampled


@cache
def data(n, seed):
    """Rows with two features, labels with some 4 % positives, and their probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    truth = expit(-4.2 + 1.4 * X[:, 0] - 0.7 * X[:, 1])
    return X, (rng.random(n) < truth).astype(int), truth


def balanced(X, y):
    return LogisticRegression(class_weight="balanced").fit(X, y), "balanced"


def boosted(X, y):
    xgboost = imported("xgboost")
    options = {"n_estimators": 40, "max_depth": 2, "learning_rate": 0.2, "n_jobs": 1}
    return xgboost.XGBClassifier(scale_pos_weight=20, **options).fit(X, y), {
        0: 1,
        1: 20,
    }


def oversampled(X, y):
    """Positives made as SMOTE makes them: between a positive and one of its 5 nearest."""
    rng, positive = np.random.default_rng(0), X[y == 1]
    near = (
        NearestNeighbors(n_neighbors=6)
        .fit(positive)
        .kneighbors(return_distance=False)[:, 1:]
    )
    start = rng.integers(0, len(positive), (y == 0).sum() - len(positive))
    end = near[start, rng.integers(0, near.shape[1], len(start))]
    step = rng.random((len(start), 1))
    new = (1 - step) * positive[start] + step * positive[end]
    rows, labels = np.vstack([X, new]), np.r_[y, np.ones(len(new), int)]
    return LogisticRegression().fit(rows, labels), "balanced"


def undersampled(X, y):
    kept = (y == 1) | (np.random.default_rng(0).random(len(y)) < KEPT)
    return LogisticRegression().fit(X[kept], y[kept]), {0: KEPT, 1: 1}


@pytest.mark.parametrize("train", [balanced, boosted, oversampled, undersampled])
def test_undone(train):
    X, y, _ = data(20_000, 1)
    X_test, y_test, truth = data(20_000, 2)
    model, weights = train(X, y)
    given = model.predict_proba(X_test)
    rate = y_test.mean()
    error = np.sqrt(truth @ (1 - truth)) / len(truth)
    assert given[:, 1].mean() > 5 * rate  # a population that does not exist
    undone = PriorShift.from_class_weight(weights, y).predict_proba(given)[:, 1]
    X_spare, y_spare, _ = data(5_000, 3)
    calibrated = CalibratedModel(FrozenEstimator(model)).fit(X_spare, y_spare)
    learned = calibrated.predict_proba(X_test)[:, 1]
    for found, slack in ((undone, 0.06), (learned, 0.12)):
        assert abs(found.mean() - rate) < 4 * error + slack * rate
        excess = _log_loss(found, truth) - _log_loss(truth, truth)
        assert 0 <= excess < 0.004
    assert _log_loss(given[:, 1], truth) - _log_loss(truth, truth) > 0.2


def test_a_shift_inside_a_calibrated_model_is_not_called_harm():
    """Warnings are errors here: the base rate is lost on purpose."""
    X, y, _ = data(20_000, 1)
    few = (y == 1) | (np.arange(len(y)) % 20 == 0)  # the rows that there are
    model = CalibratedModel(
        LogisticRegression(), PriorShift({0: 1 - y.mean(), 1: y.mean()})
    )
    proba = model.fit(X[few], y[few]).predict_proba(X)[:, 1]
    assert abs(proba.mean() / y.mean() - 1) < 0.1


def _log_loss(p, truth):
    return -np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p))
