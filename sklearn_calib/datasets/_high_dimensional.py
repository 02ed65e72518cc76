"""Linear truth behind about as many features as rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, ndtr

from .._argument_checks import (
    check_choice,
    is_real_number,
    unknown_name_error,
    validate_count,
)
from .._random import make_random_state
from .._typing import ArrayLike, FloatArray, IntArray, Link, RandomStateLike
from .._validation import read_numeric_array
from ..exceptions import invalid_input


def _clip_proba(t):
    return np.clip(t, 0, 1)


_LINK_FUNCTIONS = {"logit": expit, "probit": ndtr, "clipped_relu": _clip_proba}
_DESIGN_NAMES = ("gaussian", "rademacher", "uniform", "elliptical")


@dataclass(frozen=True)
class LinearTruth:
    """The true model behind simulated rows: P(y = 1 | x) = link(slope * coef'x + intercept).

    Parameters
    ----------
    coef : ndarray of shape (n_features,)
        The direction of the true scores, scaled so that coef'x has variance 1.
    covariance : ndarray of shape (n_features, n_features)
        The covariance matrix of the features x, whose mean is 0.
    link : callable
        Turns slope * coef'x + intercept into a probability.
    slope, intercept : float
    design : str
        The distribution of the features, as given to `make_high_dimensional`.
    degrees_of_freedom : float
        Used by the design "elliptical" only.
    """

    coef: FloatArray
    covariance: FloatArray
    link: Callable[[FloatArray], FloatArray]
    slope: float
    intercept: float
    design: str
    degrees_of_freedom: float
    # The correlation of neighbours, or the Cholesky factor of another covariance.
    _root: object

    def proba(self, X: FloatArray) -> FloatArray:
        """Compute the true probabilities of the second class, of shape (n_samples,)."""
        return self.link(self.slope * (X @ self.coef) + self.intercept)

    def draw(
        self, n_samples: int, random_state: RandomStateLike = 0
    ) -> tuple[FloatArray, IntArray]:
        """Draw more rows and labels: X of shape (n_samples, n_features), y of 0 and 1."""
        rng = make_random_state(random_state)
        shape = (n_samples, len(self.coef))
        entries = _draw_entries(self.design, self.degrees_of_freedom, shape, rng)
        X = _correlate_entries(entries, self._root)
        is_event = rng.uniform(size=n_samples) < self.proba(X)
        return X, is_event.astype(int)

    def norm(self, coef: FloatArray) -> float:
        """Compute the standard deviation of the score of some coefficients."""
        coef = np.ravel(coef)
        return float(np.sqrt(coef @ self.covariance @ coef))

    def cos_theta(self, coef: FloatArray) -> float:
        """Compute the cosine of the angle between some coefficients and the true ones."""
        coef = np.ravel(coef)
        return float(self.coef @ self.covariance @ coef / self.norm(coef))


def make_high_dimensional(
    n_samples: int = 1000,
    n_features: int = 2000,
    *,
    design: Literal["gaussian", "rademacher", "uniform", "elliptical"] = "gaussian",
    covariance: Literal["ar", "identity"] | ArrayLike = "ar",
    correlation: float = 0.5,
    link: Link = "logit",
    link_slope: float = 3.0,
    link_intercept: float = 1.0,
    degrees_of_freedom: float = 6,
    random_state: RandomStateLike = 0,
) -> tuple[FloatArray, IntArray, LinearTruth]:
    """Simulate a linear model with about as many features as rows; the truth is returned, too.

    Parameters
    ----------
    n_samples, n_features : int
    design : {"gaussian", "rademacher", "uniform", "elliptical"}, default="gaussian"
        The law of the independent entries before they are correlated; "elliptical" rows
        are Gaussian ones of random size, a t law.
    covariance : {"ar", "identity"} or array-like of shape (n_features, n_features), default="ar"
        "ar": correlation ** abs(j - k) / n_features; "identity": 1 / n_features times
        it. Entries that are not Gaussian are correlated by the Cholesky factor.
    correlation : float, default=0.5
        Between -1 and 1, of neighbours for "ar".
    link : {"logit", "probit", "clipped_relu"} or callable, default="logit"
    link_slope, link_intercept : float, default=3 and 1
        P(y = 1 | x) = link(link_slope * w*'x + link_intercept) with w*'x of variance 1.
    degrees_of_freedom : float, default=6
        Above 2, of "elliptical".
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), int
        Labels 0 and 1.
    truth : LinearTruth

    Raises
    ------
    ValueError
        Parameters out of range; a covariance that is not positive definite.

    References
    ----------
    Li, Sur (2025), section 7.

    Examples
    --------
    >>> from sklearn_calib.datasets import make_high_dimensional
    >>> X, y, truth = make_high_dimensional(100, 200, random_state=0)
    >>> X.shape, round(truth.cos_theta(truth.coef), 6)
    ((100, 200), 1.0)
    """
    check_choice("a design", design, _DESIGN_NAMES, "Choose one of them")
    if not callable(link) and not (isinstance(link, str) and link in _LINK_FUNCTIONS):
        raise unknown_name_error(
            "a callable, or a link", link, _LINK_FUNCTIONS, "Choose one"
        )
    n_samples = validate_count(n_samples, "n_samples")
    n_features = validate_count(n_features, "n_features")
    for value, lowest, highest, expected in (
        (link_slope, 0, np.inf, "link_slope > 0"),
        (link_intercept, -np.inf, np.inf, "a finite link_intercept"),
        (correlation, -1, 1, "a correlation between -1 and 1"),
        (degrees_of_freedom, 2, np.inf, "degrees_of_freedom > 2"),
    ):
        if not is_real_number(value) or not lowest < value < highest:
            raise invalid_input(
                expected=expected, got=repr(value), hint="Choose a value in the range"
            )
    rng = make_random_state(random_state)
    matrix, root = _make_covariance_and_root_or_correlation(
        covariance, correlation, n_features
    )
    w = rng.standard_normal(n_features)
    # The scores w'x of the truth have variance 1.
    w /= np.sqrt(w @ matrix @ w)
    function = link if callable(link) else _LINK_FUNCTIONS[link]
    truth = LinearTruth(
        w,
        matrix,
        function,
        link_slope,
        link_intercept,
        design,
        degrees_of_freedom,
        root,
    )
    return *truth.draw(n_samples, rng), truth


def _make_covariance_and_root_or_correlation(covariance, correlation, d):
    """Return the covariance, and the root that `_correlate_entries` multiplies entries with."""
    if isinstance(covariance, str) and covariance in ("ar", "identity"):
        root = correlation if covariance == "ar" else 0.0
        distance = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
        return root**distance / d, root
    matrix = None
    if not isinstance(covariance, str):
        matrix = read_numeric_array(covariance, "covariance")
    if matrix is None or matrix.shape != (d, d):
        raise invalid_input(
            expected=f"'ar', 'identity' or a covariance of shape ({d}, {d})",
            got=repr(covariance) if matrix is None else f"shape {matrix.shape}",
            hint="Change covariance or n_features",
        )
    try:
        return matrix, np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise invalid_input(
            expected="a positive definite covariance",
            got="one that has no Cholesky factor",
            hint="Check its eigenvalues",
        ) from None


def _correlate_entries(Z, root):
    """Return rows of correlated entries, from independent ones of variance 1."""
    if np.ndim(root):
        return Z @ root.T
    # This import takes a quarter of a second and is rarely needed.
    from scipy.signal import lfilter

    Z = Z / np.sqrt(Z.shape[1])
    # An autoregression of order 1 gives the covariance root^|j - k| in O(n d), without
    # a matrix.
    Z[:, 1:] *= np.sqrt(1 - root**2)
    return lfilter([1.0], [1.0, -root], Z, axis=1)


def _draw_entries(design, freedom, shape, rng):
    """Draw entries of mean 0 and variance 1."""
    if design == "rademacher":
        return rng.choice([-1.0, 1.0], shape)
    if design == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)
    entries = rng.standard_normal(shape)
    if design == "elliptical":
        # A common factor for each row makes the rows t-distributed; freedom - 2 keeps
        # the variance at 1.
        entries *= np.sqrt((freedom - 2) / rng.chisquare(freedom, shape[0]))[:, None]
    return entries
