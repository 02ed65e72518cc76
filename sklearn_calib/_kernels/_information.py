"""Errors of the scores of a logistic regression, from its information matrix."""

import numpy as np
from scipy.special import expit


def logistic_covariance(train, weight, z, ridge):
    """Of the coefficients, by the information of the training scores z."""
    information = (train * (weight * expit(z) * expit(-z))[:, None]).T @ train
    information[np.diag_indices_from(information)] += ridge
    return np.linalg.pinv(information)


def standard_error(rows, covariance):
    """Of the scores of these rows."""
    return np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))
