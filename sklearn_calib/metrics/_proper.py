"""The two proper losses."""

from typing import TYPE_CHECKING

import numpy as np

from .._simplex import log_loss_of_rows as log_loss_of_rows
from .._typing import FloatArray, IntArray
from ._measure import metric

if TYPE_CHECKING:
    from . import Case


@metric(range=(0.0, np.inf), proper=True, cells=True)
def log_loss(case: "Case") -> float:
    """Mean negative log-probability of the true class: `sklearn.metrics.log_loss`.

    Returns
    -------
    loss : float
        In nats. A row's loss is -log(max(p, 2.2e-16)) with p the probability of its true class, so
        a true class of probability 0 costs 36.04 and no row costs more. Unbiased for the expected
        loss. Cost: O(n).

    Notes
    -----
    Equal to scikit-learn's number for float64 probabilities. The floor is the float64 machine
    epsilon whatever the dtype: float32 probabilities are raised to float64 first, where
    scikit-learn would floor them at 1.2e-7. Every log loss of this package (risk, refinement,
    uncertainty, reports) counts a row in this way.

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


@metric(range=(0.0, 2.0), proper=True, cells=True)
def brier_loss(case: "Case") -> float:
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


def brier_of_rows(proba: FloatArray, codes: IntArray) -> FloatArray:
    """The Brier loss of each row; one of the two equal squares where there are two classes."""
    plain = np.asarray(proba)
    true = plain[np.arange(len(plain)), codes]
    if plain.shape[1] == 2:
        return (1 - true) ** 2
    return np.einsum("ij,ij->i", plain, plain) - 2 * true + 1
