"""Offsets of the log-probabilities that give every class its frequency."""

import numpy as np
from scipy.special import softmax

_LARGEST = 30.0  # nats: classes that are never predicted stay finite
_ENOUGH = 0.01  # of a frequency, relative; what follows refines the offsets


def base_rate_offsets(log, codes, weight, prior_weight, max_iter=100):
    """The offsets b with mean softmax(log + b) = the frequency of each class, and mean 0.

    The maximum likelihood of a regression with intercepts alone, by generalised iterative scaling:
    Darroch, Ratcliff (1972), "Generalized iterative scaling for log-linear models". The
    frequencies are those of the rows and of `prior_weight` more rows that follow the model.
    """
    w = weight / weight.sum()
    mean = w @ softmax(log, axis=1)
    share = prior_weight / (weight.sum() + prior_weight)
    observed = np.bincount(codes, weights=w, minlength=log.shape[1])
    wanted = np.log(np.maximum((1.0 - share) * observed + share * mean, 1e-300))
    offsets = np.zeros(log.shape[1])
    for _ in range(max_iter):
        step = wanted - np.log(np.maximum(mean, 1e-300))
        if np.abs(step).max() <= _ENOUGH:
            break
        offsets = np.clip(offsets + step, -_LARGEST, _LARGEST)
        mean = w @ softmax(log + offsets, axis=1)
    return offsets - offsets.mean()
