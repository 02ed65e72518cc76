"""Soft labels: a fit to shares of classes is one to each class of each row, with weights."""

from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import indexable

from .._sklearn_compat import check_method_params, routing_enabled, safe_indexing
from .._typing import ArrayLike, Features
from .._validation import check_indexes, soft_rows
from ..exceptions import invalid_input
from ._base import Job
from ._classifier_scores import count_rows
from ._user_estimators import frozen_with_classes


def start_shares(
    model: Any,
    X: Features,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    fit_params: dict[str, Any],
) -> Job:
    """What the fits share, of the rows that soft labels stand for; rows of one item stay together.

    Raises
    ------
    ValueError
        A fit that does not take the shares as weights.
    """
    estimator = model.estimator
    check_indexes(X, y, sample_weight)
    (X,) = indexable(X)
    n_rows = count_rows(X)
    classes = None
    if isinstance(estimator, FrozenEstimator):
        k = np.shape(y)[1] if np.ndim(y) == 2 and np.shape(y)[1] > 1 else 2
        classes = frozen_with_classes(estimator, lambda: np.arange(k)).classes_
    elif not routing_enabled() and "sample_weight" not in signature(estimator.fit).parameters:
        raise _missing_weight_support(estimator)
    soft = soft_rows(y, sample_weight, classes, n_rows=n_rows, input_name="y")
    params = check_method_params(X, params=fit_params, indices=soft.items)
    X = safe_indexing(X, soft.items)
    job = replace(model._start(X, soft.labels, soft.weight, params), items=soft.items)
    _check_weighted(job)
    return job


def _check_weighted(job):
    """Raise ValueError where metadata routing keeps the shares from whom they are for."""
    takers = {"estimator": job.estimator_params, "recalibrator": job.recalibrator_params}
    for name, params in takers.items():
        part = getattr(job, name)
        if "sample_weight" not in params and not isinstance(part, FrozenEstimator):
            raise _missing_weight_support(part)


def _missing_weight_support(part):
    return invalid_input(
        expected="a fit that takes sample_weight, the shares of soft labels",
        got=f"{type(part).__name__}",
        hint=(
            "Take another method, or a fitted model in a FrozenEstimator; for a "
            "pipeline enable metadata routing, and call "
            "set_fit_request(sample_weight=True) on its steps"
        ),
    )
