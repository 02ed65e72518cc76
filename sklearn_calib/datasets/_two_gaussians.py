"""Two Gaussian classes."""

import numpy as np
from scipy.special import expit

from .._argument_checks import validate_count
from .._random import make_random_state
from .._typing import ArrayLike, FloatArray, IntArray, RandomStateLike
from .._validation import read_numeric_array
from ..exceptions import invalid_input


def make_two_gaussians(
    n_samples: int = 1000,
    mean: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
    *,
    random_state: RandomStateLike = 0,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Draw from two balanced Gaussian classes; the true probabilities are returned, too.

    The label y is 0 or 1 with probability 1/2 and x given y is normal with mean -m or
    +m.

    Parameters
    ----------
    n_samples : int, default=1000
    mean : array-like of shape (n_features,), default=None
        The mean m of class 1. Default: 20 features, 15.9 % of errors at best.
    covariance : array-like of shape (n_features,) or (n_features, n_features), default=None
        Of both classes; one-dimensional for a diagonal matrix. The identity by default.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), int
    proba : ndarray of shape (n_samples,)
        The true P(y = 1 | x) = expit(x' w) with w = 2 covariance^-1 m.

    Raises
    ------
    ValueError
        A covariance that does not fit the mean, or is not positive definite.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 6.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_two_gaussians
    >>> from sklearn_calib.metrics import expected_calibration_error
    >>> X, y, proba = make_two_gaussians(20_000, random_state=0)
    >>> expected_calibration_error(y, proba) < 0.01
    True
    """
    n_samples = validate_count(n_samples, "n_samples")
    rng = make_random_state(random_state)
    mean = np.full(20, 20**-0.5) if mean is None else read_numeric_array(mean, "mean")
    if covariance is None:
        covariance = np.ones(mean.shape)
    covariance = read_numeric_array(covariance, "covariance").astype(np.float64)
    if mean.ndim != 1 or covariance.shape not in (mean.shape, mean.shape * 2):
        raise invalid_input(
            expected="a mean of shape (p,) and a covariance of shape (p,) or (p, p)",
            got=f"shapes {mean.shape} and {covariance.shape}",
            hint="Give both the same number of features",
        )
    eigenvalues = covariance if covariance.ndim == 1 else np.linalg.eigvalsh(covariance)
    if eigenvalues.min() <= 0:
        raise invalid_input(
            expected="a positive definite covariance",
            got=f"an eigenvalue of {eigenvalues.min():.3g}",
            hint="Add a small multiple of the identity",
        )
    y = rng.randint(0, 2, n_samples)
    noise = rng.normal(size=(n_samples, len(mean)))
    if covariance.ndim == 1:
        noise *= np.sqrt(covariance)
        coef = 2 * mean / covariance
    else:
        noise = noise @ np.linalg.cholesky(covariance).T
        coef = 2 * np.linalg.solve(covariance, mean)
    X = noise + np.outer(2 * y - 1, mean)
    return X, y, expit(X @ coef)
