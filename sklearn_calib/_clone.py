"""Clones of estimators whose constructors copy what they are given."""

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone


def clone_comparing_by_value(estimator: Any) -> Any:
    """Clone an estimator, also if its constructor copies what it is given.

    scikit-learn requires a parameter to be the same object afterwards; CatBoost copies
    ``cat_features``. Here equal parameters are enough, at any depth. Raises RuntimeError
    if they differ.
    """
    try:
        return clone(estimator)
    except RuntimeError:
        return clone_from_copied_params(estimator)


def clone_from_copied_params(estimator: Any) -> Any:
    """Build the same estimator from copies of its parameters."""
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        params[name] = _copy_param(value)
    cloned = type(estimator)(**params)
    stored = cloned.get_params(deep=False)
    for name in params:
        if name not in stored or not _is_equal(stored[name], params[name]):
            raise RuntimeError(
                f"the constructor of {type(estimator).__name__} changes {name}"
            )
    # Private attributes that scikit-learn's own `clone` copies too.
    for name in ("_metadata_request", "_skl_callbacks", "_sklearn_output_config"):
        if hasattr(estimator, name):
            setattr(cloned, name, copy.copy(getattr(estimator, name)))
    return cloned


def _copy_param(value):
    if type(value) in (list, tuple):
        return type(value)(map(_copy_param, value))
    if not hasattr(value, "get_params") or isinstance(value, type):
        return copy.deepcopy(value)
    own_clone = getattr(type(value), "__sklearn_clone__", None)
    if own_clone in (None, BaseEstimator.__sklearn_clone__):
        return clone_from_copied_params(value)
    # A clone of a FrozenEstimator is itself.
    return clone(value)


def _is_equal(first, second):
    if first is second:
        return True
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return type(first) is type(second) and bool(first == second)
