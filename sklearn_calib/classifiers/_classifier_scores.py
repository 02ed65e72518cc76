"""Validated scores of fitted classifiers: logits if they have them."""

from functools import wraps
from inspect import signature
from typing import TypeVar

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from .._typing import Estimator, Features, FloatArray, IntArray
from .._validation import place_columns, read_proba
from ..exceptions import invalid_input
from ..recalibrators import all_recalibrators, make_method_name_hint
from ..staged import classifier_logits

Class = TypeVar("Class", bound=type)
# Rounded probabilities of a classifier may change the sum of a row by this much.
MAX_ROUNDED_ROW_SUM_ERROR = 0.02


def count_rows(X: Features) -> int:
    """Return how many rows a table, or a list of rows, has."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def compute_canonical_classifier_scores(
    estimator: Estimator, X: Features, response_method: str
) -> FloatArray:
    """Return canonical scores of a fitted classifier, a column for each of its own classes.

    "auto" takes the logits that a `Staging` adapter returns (XGBoost's probabilities
    are rounded: a float32 1 - 1e-9 is 1), else ``decision_function`` as logits, else
    ``predict_proba``.
    """
    n_classes = np.shape(estimator.classes_)[0]
    # A fold without the other classes: its model is certain, and `place_columns` adds
    # the rest.
    if n_classes == 1:
        return np.ones((count_rows(X), 1))
    # Logits distinguish rows whose float32 probabilities are rounded to 1.
    logits = classifier_logits(estimator, X) if response_method == "auto" else None
    if logits is None and response_method != "predict_proba":
        logits = (
            estimator.decision_function(X)
            if hasattr(estimator, "decision_function")
            else None
        )
    if logits is not None:
        _check_not_one_vs_one_scores(estimator, logits, n_classes)
        return read_proba(logits, kind="logits", n_classes=n_classes)
    check_gives_scores_without_logits(estimator, response_method)
    proba = _normalise_rounded_rows(estimator.predict_proba(X))
    return read_proba(proba, n_classes=n_classes)


def _check_not_one_vs_one_scores(estimator, logits, n_classes):
    """Raise if the scores are those of pairs of classes, which three classes have as many of."""
    while hasattr(estimator, "estimator") or isinstance(estimator, Pipeline):
        is_pipeline = isinstance(estimator, Pipeline)
        estimator = estimator[-1] if is_pipeline else estimator.estimator
    is_ovo = getattr(estimator, "decision_function_shape", None) == "ovo"
    n_pairs = n_classes * (n_classes - 1) // 2
    # Three classes have three pairs, so only the setting of the estimator reveals them.
    are_pairs = is_ovo or n_pairs != n_classes
    if n_classes > 2 and np.shape(logits)[1:] == (n_pairs,) and are_pairs:
        raise invalid_input(
            expected=f"{n_classes} columns of scores, one per class",
            got=f"{n_pairs}, one per pair of classes, of {type(estimator).__name__}",
            hint="Set its decision_function_shape='ovr'",
        )


def _normalise_rounded_rows(proba):
    """Divide rows by their sums if these are off by rounding to two digits or float16."""
    if np.ndim(proba) != 2 or np.shape(proba)[1] < 2:
        return proba
    table = np.asarray(proba)
    if table.dtype.kind != "f":
        return proba
    # A float16 sum would add its own rounding.
    total = table.sum(axis=1, keepdims=True, dtype=float)
    if np.abs(total - 1).max(initial=0) <= MAX_ROUNDED_ROW_SUM_ERROR:
        return table / total
    return proba


def compute_aligned_canonical_scores(
    estimator: Estimator,
    columns: IntArray,
    n_classes: int,
    X: Features,
    response_method: str,
) -> FloatArray:
    """Return canonical scores in `n_classes` columns, the estimator's at `columns`.

    A class that the estimator has not seen gets probability 0.
    """
    scores = compute_canonical_classifier_scores(estimator, X, response_method)
    # The usual case keeps the array with its exact logarithms.
    if columns.tolist() == list(range(n_classes)):
        return scores
    return place_columns(scores, columns, n_classes)


def is_xgboost_or_lightgbm(estimator: Estimator, package: str | None = None) -> bool:
    """Return whether an estimator, or the end of a pipeline, is of XGBoost or LightGBM."""
    if isinstance(estimator, FrozenEstimator):
        return is_xgboost_or_lightgbm(estimator.estimator, package)
    if isinstance(estimator, Pipeline):
        return is_xgboost_or_lightgbm(estimator[-1], package)
    roots = {cls.__module__.partition(".")[0] for cls in type(estimator).__mro__}
    return bool(roots & ({package} if package else {"xgboost", "lightgbm"}))


def check_gives_scores_without_logits(
    estimator: Estimator, response_method: str
) -> None:
    """Raise TypeError if an estimator gives neither logits nor the wanted probabilities."""
    if response_method == "decision_function" or not hasattr(
        estimator, "predict_proba"
    ):
        method = "predict_proba" if response_method == "auto" else response_method
        raise invalid_input(
            expected=f"an estimator with {method}",
            got=repr(estimator),
            hint="Choose response_method='auto', or a classifier that gives scores",
            error=TypeError,
        )


_REPLACEMENT_BY_WRONG_PARAMETER = {
    "base_estimator": "estimator=",
    "model": "estimator=",
    "classifier": "estimator=",
    "calibrator": "recalibrator=",
    "calibration_method": "recalibrator=",
    "param_distributions": "param_grid= with n_iter=",
    "bins": "recalibrator=HistogramBinning(n_bins)",
    "n_bins": "recalibrator=HistogramBinning(n_bins)",
    "prefit": "estimator=FrozenEstimator(model)",
    "random_state": "cv=StratifiedKFold(shuffle=True, random_state=...)",
    "scoring": "loss=",
}


def suggest_argument_names(cls: Class) -> Class:
    """Make the error for an unknown argument of a class name the one that is meant."""
    init = vars(cls)["__init__"]
    names = [*signature(cls).parameters]

    @wraps(init)
    def init_with_suggestions(self, *args, **kwargs):
        for name, value in kwargs.items():
            if name not in names:
                raise invalid_input(
                    expected=f"arguments among {', '.join(names)}",
                    got=f"{name}={value!r}",
                    hint=_suggest_argument(name, value, names),
                    error=TypeError,
                )
        init(self, *args, **kwargs)

    cls.__init__ = init_with_suggestions  # type: ignore[misc]
    return cls


def _suggest_argument(name, value, accepted):
    """Return a hint for an argument that the constructor does not have."""
    if name == "method":
        if value in all_recalibrators():
            return f"Write recalibrator={value!r}"
        return (
            make_method_name_hint(value, all_recalibrators(), "recalibrator=")
            or "Write recalibrator="
        )
    if name in _REPLACEMENT_BY_WRONG_PARAMETER:
        return f"Write {_REPLACEMENT_BY_WRONG_PARAMETER[name]}"
    return make_method_name_hint(name, accepted, "") or "Leave it out"


def check_not_prefit(cv: object) -> None:
    """Raise ValueError for cv="prefit", which scikit-learn had once."""
    if isinstance(cv, str) and cv == "prefit":
        raise invalid_input(
            expected="a fitted model in a FrozenEstimator",
            got="cv='prefit'",
            hint=(
                "Write CalibratedModel(FrozenEstimator(model)) and fit it on rows that "
                "the model has not seen; from sklearn.frozen import FrozenEstimator"
            ),
        )
