"""The two proper losses."""

import numpy as np

from ._measure import metric

SMALLEST_IN_LOSS = float(np.finfo(np.float64).eps)  # scikit-learn's clip of float64 probabilities


@metric(range=(0.0, np.inf), proper=True)
def log_loss(case):
    """Mean negative log-probability of the true class: `sklearn.metrics.log_loss`.

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
    return case.mean(log_loss_of_rows(case.proba, case.codes))


def log_loss_of_rows(proba, codes):
    """The log loss of each row, in nats; probabilities below 2.2e-16 count as that."""
    true = np.asarray(proba)[np.arange(len(codes)), codes]
    return -np.log(np.maximum(true, SMALLEST_IN_LOSS))


@metric(range=(0.0, 2.0), proper=True)
def brier_loss(case):
    """Mean squared distance between probabilities and outcomes.

    Equals `sklearn.metrics.brier_score_loss`, whose multiclass form came with version 1.7.

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
    if len(case.classes) == 2:
        residual = case.codes - case.second
        return case.mean(np.square(residual, out=residual))
    return case.mean(brier_of_rows(case.proba, case.codes))


def brier_of_rows(proba, codes):
    """The Brier loss of each row; one of the two equal squares where there are two classes."""
    plain = np.asarray(proba)
    true = plain[np.arange(len(plain)), codes]
    if plain.shape[1] == 2:
        return (1 - true) ** 2
    return np.einsum("ij,ij->i", plain, plain) - 2 * true + 1
