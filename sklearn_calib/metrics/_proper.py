"""The two proper losses, behind the same door as every other measure."""

import numpy as np
from sklearn.metrics import log_loss as _sklearn_log_loss

from ._base import canonical_case, metric


@metric(range=(0.0, np.inf), proper=True)
def log_loss(y_true, y_proba, *, sample_weight=None, labels=None, pos_label=None):
    """Mean negative log-probability of the true class: `sklearn.metrics.log_loss`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : ignored
        Present because every measure takes it.

    Returns
    -------
    loss : float
        At least 0, in nats. As in scikit-learn, a true class of probability 0 counts as 2.2e-16,
        a loss of 36.04. Unbiased for the expected loss. Cost: O(n k).

    References
    ----------
    Good (1952), "Rational decisions".

    Examples
    --------
    >>> from sklearn_calib.metrics import log_loss
    >>> round(log_loss(["no", "yes"], [0.2, 0.9]), 4)
    0.1643
    """
    case = canonical_case("log_loss", y_true, y_proba, sample_weight, labels, pos_label)
    return float(
        _sklearn_log_loss(
            case.codes,
            np.asarray(case.proba),
            sample_weight=case.weight,
            labels=np.arange(len(case.classes)),
        )
    )


@metric(range=(0.0, 2.0), proper=True)
def brier_loss(y_true, y_proba, *, sample_weight=None, labels=None, pos_label=None):
    """Mean squared distance between probabilities and outcomes.

    Equals `sklearn.metrics.brier_score_loss`, whose multiclass form came with version 1.7.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.
    pos_label : ignored
        Present because every measure takes it.

    Returns
    -------
    loss : float
        Two classes: the mean of (p - y)^2, in [0, 1]. More: the mean of sum_c (p_c - y_c)^2, in
        [0, 2]; this is twice the former for two classes. Unbiased for the expected loss. Cost:
        O(n k).

    References
    ----------
    Brier (1950), "Verification of forecasts expressed in terms of probability", eq. 2.

    Examples
    --------
    >>> from sklearn_calib.metrics import brier_loss
    >>> round(brier_loss(["no", "yes"], [0.2, 0.9]), 4)
    0.025
    """
    case = canonical_case("brier_loss", y_true, y_proba, sample_weight, labels, pos_label)
    return float(np.average(brier_of_rows(case.proba, case.codes), weights=case.weight))


def brier_of_rows(proba, codes):
    """The Brier loss of each row; one of the two equal squares where there are two classes."""
    plain = np.asarray(proba)
    true = plain[np.arange(len(plain)), codes]
    if plain.shape[1] == 2:
        return (1 - true) ** 2
    return np.einsum("ij,ij->i", plain, plain) - 2 * true + 1
