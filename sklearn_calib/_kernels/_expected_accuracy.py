"""The temperature whose mean confidence is the accuracy (Clarte et al., 2023)."""

import numpy as np
from scipy.optimize import brentq

from .._simplex import row_blocks
from ._temperature import TemperatureFit, box_of, choose_pass

_EQUAL = 1e-12


def fit_expected_accuracy(z, codes, weight, label_smoothing=0.0):
    """The beta >= 0 where the mean of max softmax(beta * z) is the share of right predictions.

    The mean confidence rises with beta, from 1 / k to 1: one root, by Brent's method in log beta.
    The accuracy counts as (1 - eps) accuracy + eps / k for a `label_smoothing` eps. Statuses as in
    `fit_temperature`; the loss is that at beta, of labels as they are.
    """
    z = np.asarray(z, dtype=np.float64)
    z = z - z.max(axis=1, keepdims=True)
    share, k = weight / weight.sum(), z.shape[1]
    accuracy = float(share[z.argmax(axis=1) == codes].sum())
    accuracy = (1 - label_smoothing) * accuracy + label_smoothing / k
    n_passes = 0

    def excess(log_beta):
        nonlocal n_passes
        n_passes += 1
        confidence = 0.0
        for block in row_blocks(z):
            confidence += share[block] @ (1 / np.exp(np.exp(log_beta) * z[block]).sum(axis=1))
        return confidence - accuracy

    low, high = np.log(box_of(float(-z.min()) or 1.0))
    least, most = excess(low), excess(high)
    if least >= -_EQUAL or most - least < _EQUAL:
        status, beta = "uninformative", np.exp(low)
    elif most <= _EQUAL:
        status, beta = "separable", np.exp(high)
    else:
        status, beta = "inside", np.exp(brentq(excess, low, high, xtol=1e-10, rtol=1e-12))
    loss = choose_pass(z.size)(z, codes, weight, beta)[0] / weight.sum()
    return TemperatureFit(float(beta), max(float(loss), 0.0), status, n_passes + 1)
