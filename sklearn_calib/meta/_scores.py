"""What a fitted classifier says of its rows, validated: logits where it has them."""

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from .._simplex import take_columns
from ..canonical import canonical_proba
from ..exceptions import expectation
from ..staging import LIGHTGBM_LOGIT_OBJECTIVES, XGBOOST_LOGIT_OBJECTIVES

RESPONSE_METHODS = ("auto", "decision_function", "predict_proba")


def classifier_scores(estimator, X, response_method, where):
    """Canonical scores of a fitted classifier, one column for each of its own classes.

    "auto" takes ``decision_function`` as logits, else the raw margins of XGBoost and LightGBM as
    logits (their probabilities are rounded: a float32 1 - 1e-9 is 1), else ``predict_proba``.
    """
    n_classes = len(estimator.classes_)
    if n_classes == 1:
        return np.ones((_n_rows(X), 1))
    if response_method in ("auto", "decision_function") and hasattr(estimator, "decision_function"):
        return _logits(estimator.decision_function(X), n_classes, where)
    if response_method == "decision_function":
        raise TypeError(_no_method(estimator, "decision_function", where))
    if response_method == "auto":
        margin = _boosted_margin(estimator, X)
        if margin is not None:
            return _logits(margin, n_classes, where)
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(_no_method(estimator, "predict_proba", where))
    return canonical_proba(estimator.predict_proba(X), n_classes=n_classes, where=where)


def aligned_scores(estimator, columns, n_classes, X, response_method, where):
    """`classifier_scores` widened to `n_classes` columns; its own ones go to `columns`.

    A class that the estimator has not seen gets probability 0.
    """
    scores = classifier_scores(estimator, X, response_method, where)
    if len(columns) == n_classes:
        return scores
    source = np.full(n_classes, -1)
    source[columns] = np.arange(len(columns))
    return take_columns(scores, source)


def _logits(values, n_classes, where):
    return canonical_proba(values, kind="logits", n_classes=n_classes, where=where)


def _boosted_margin(estimator, X):
    """Raw margins of an XGBoost or LightGBM classifier, also as the end of a pipeline."""
    if isinstance(estimator, FrozenEstimator):
        return _boosted_margin(estimator.estimator, X)
    if isinstance(estimator, Pipeline):
        if not is_boosted(estimator):
            return None
        return _boosted_margin(estimator[-1], estimator[:-1].transform(X))
    if is_boosted(estimator, "xgboost") and estimator.objective in XGBOOST_LOGIT_OBJECTIVES:
        return estimator.predict(X, output_margin=True)
    if is_boosted(estimator, "lightgbm") and estimator.objective_ in LIGHTGBM_LOGIT_OBJECTIVES:
        return estimator.predict_proba(X, raw_score=True)
    return None


def is_boosted(estimator, package=None):
    """Whether an estimator, or the end of a pipeline, comes from XGBoost or LightGBM."""
    if isinstance(estimator, FrozenEstimator):
        return is_boosted(estimator.estimator, package)
    if isinstance(estimator, Pipeline):
        return is_boosted(estimator[-1], package)
    roots = {cls.__module__.partition(".")[0] for cls in type(estimator).__mro__}
    return bool(roots & ({package} if package else {"xgboost", "lightgbm"}))


def _n_rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _no_method(estimator, method, where):
    return expectation(
        where,
        f"an estimator with {method}",
        repr(estimator),
        "Choose response_method='auto', or a classifier that gives scores",
    )
