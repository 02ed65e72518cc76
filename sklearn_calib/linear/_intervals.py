"""Confidence intervals of the probabilities of a logistic regression."""

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from .._argument_checks import check_level
from .._kernels._logistic import compute_model_covariance, compute_standard_error
from .._typing import ArrayLike, Estimator, Features, FloatArray
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    read_numeric_array,
)
from ..exceptions import invalid_input
from ._fit import get_logistic_penalties


def logistic_intervals(
    model: Estimator,
    X_train: Features,
    X: Features,
    *,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
) -> FloatArray:
    """Compute confidence intervals for the probabilities of a fitted logistic regression.

    Parameters
    ----------
    model : LogisticRegression
        Fitted, two classes.
    X_train : array-like of shape (n_train, n_features)
        The rows it was fitted on.
    X : array-like of shape (n_samples, n_features)
        The rows that want an interval.
    sample_weight : array-like of shape (n_train,), default=None
        The weights of the training rows.
    level : float, default=0.95
        Confidence level, between 0 and 1.

    Returns
    -------
    intervals : ndarray of shape (n_samples, 2)
        Lower and upper end of the probability of the second class: the sigmoid of x'b
        and z standard errors of it. The covariance is that of maximum likelihood; an l2
        penalty is added to the information.

    Raises
    ------
    TypeError, ValueError
        A model that is not a logistic regression of two classes.

    References
    ----------
    Jiang, Osl, Kim, Ohno-Machado (2012), "Calibrating predictive model estimates to
    support personalized medicine".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_calib.linear import logistic_intervals
    >>> from sklearn_calib.recalibrators import AdaptiveCalibration
    >>> X, y = make_classification(600, random_state=0)
    >>> model = LogisticRegression().fit(X[:300], y[:300])
    >>> intervals = logistic_intervals(model, X[:300], X)
    >>> acp = AdaptiveCalibration("interval")
    >>> acp = acp.fit(model.predict_proba(X[300:]), y[300:], intervals=intervals[300:])
    >>> acp.predict_proba(model.predict_proba(X[:2]), intervals=intervals[:2]).shape
    (2, 2)
    """
    coef = getattr(model, "coef_", None)
    if coef is None or not hasattr(model, "C") or not hasattr(model, "predict_proba"):
        raise invalid_input(
            expected="model as a fitted LogisticRegression",
            got=repr(model),
            hint="Compute the intervals of other models yourself",
            error=TypeError,
        )
    if len(model.classes_) != 2:
        raise invalid_input(
            expected="two classes",
            got=f"{len(model.classes_)}",
            hint="Take one class against the rest",
        )
    check_level(level)
    check_and_get_common_index(X_train, sample_weight)
    X_train = _read_features_and_make_dense(X_train, "X_train")
    X = _read_features_and_make_dense(X, "X")
    n_train = np.shape(X_train)[0]
    weight = canonical_weight(sample_weight, n_train, keeps_unit=True)
    z = model.decision_function(X_train)
    train, rows = (
        _add_constant_column(table, model.fit_intercept) for table in (X_train, X)
    )
    # The intercept is the last column and is not penalised. An l1 penalty has no
    # curvature, so it is left out.
    ridge = np.zeros(train.shape[1])
    penalties = get_logistic_penalties(model)
    if penalties["l1"] == 0:
        ridge[: coef.shape[1]] = penalties["l2"]
    error = compute_standard_error(
        rows, compute_model_covariance(train, weight, z, ridge)
    )
    half = norm.ppf((1 + level) / 2) * error
    z = model.decision_function(X)
    return expit(np.column_stack([z - half, z + half]))


def _read_features_and_make_dense(X, name):
    table = read_numeric_array(X.toarray() if hasattr(X, "toarray") else X, name)
    if table.ndim != 2:
        raise invalid_input(
            expected=f"{name} of shape (n_samples, n_features)",
            got=f"shape {table.shape}",
            hint="Reshape",
        )
    return table.astype(np.float64, copy=False)


def _add_constant_column(X, intercept):
    return np.column_stack([X, np.ones(len(X))]) if intercept else X
