"""Soft labels: a fit to shares of classes is one to each class of each row, with weights."""

from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import indexable

from .._sklearn_compat import check_method_params, routing_enabled, safe_indexing
from .._typing import ArrayLike, Features
from ..canonical import check_indexes, soft_rows
from ..exceptions import refuse
from ._brought import frozen_with_classes
from ._pairs import Job
from ._scores import count_rows


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
    where, estimator = f"{type(model).__name__}.fit", model.estimator
    check_indexes(where, X, y, sample_weight)
    (X,) = indexable(X)
    n_rows = count_rows(X)
    classes = None
    if isinstance(estimator, FrozenEstimator):
        k = np.shape(y)[1] if np.ndim(y) == 2 and np.shape(y)[1] > 1 else 2
        classes = frozen_with_classes(estimator, lambda: np.arange(k), where).classes_
    elif not routing_enabled() and "sample_weight" not in signature(estimator.fit).parameters:
        _refuse_without_weights(estimator, where)
    soft = soft_rows(y, sample_weight, classes, n_rows=n_rows, where=where)
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
            _refuse_without_weights(part, job.where)


def _refuse_without_weights(part, where):
    refuse(
        where,
        "a fit that takes sample_weight, the shares of soft labels",
        f"{type(part).__name__}",
        "Take another method, or a fitted model in a FrozenEstimator; for a pipeline enable "
        "metadata routing, and call set_fit_request(sample_weight=True) on its steps",
    )
