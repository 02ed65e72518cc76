"""Posteriors moved to other class frequencies."""

import numpy as np
from scipy.special import softmax

from .._simplex import carries_log, log_proba
from .._typing import FloatArray

LOG_OF_NOTHING = -1e30  # for exports, which hold finite numbers; its exponential is 0


def log_ratio(prior: FloatArray, source: FloatArray, strength: float) -> FloatArray:
    """What is added to the logarithms: strength log(prior / source), -inf where prior is 0."""
    with np.errstate(divide="ignore"):
        return strength * (np.log(prior) - np.log(source))


def moved_posterior(proba: FloatArray, added: FloatArray) -> FloatArray:
    """Rows proportional to p exp(added).

    A probability of 0 stays 0. Where nothing would be left of a row, because all that it has is on
    classes whose factor is 0, the classes that it calls impossible are equally so.
    """
    if carries_log(proba):
        z = log_proba(proba) + added
    else:
        with np.errstate(divide="ignore"):
            z = np.log(np.asarray(proba)) + added
        lost = np.isneginf(z.max(axis=1))
        if lost.any():
            z[lost] = log_proba(proba[lost]) + added
    return softmax(z, axis=1)
