"""Widths of the intervals of a logistic regression, from its information matrix."""

import numpy as np
from scipy.special import expit
from scipy.stats import norm


def logistic_half_width(train, weight, z, ridge, rows, level):
    """Of the intervals of the scores of `rows`, by the information of the training scores z."""
    information = (train * (weight * expit(z) * expit(-z))[:, None]).T @ train
    information[np.diag_indices_from(information)] += ridge
    variance = np.einsum("ij,jk,ik->i", rows, np.linalg.pinv(information), rows)
    return norm.ppf((1 + level) / 2) * np.sqrt(variance)
