"""Curves of the log-odds: polynomials whose degree the data choose, with the law of the statistic
and the belt, and a natural spline of five knots, with an interval at each point.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from ._logistic import fit_logistic, rows_of_both_labels
from ._spline import SplineCurve, natural_basis, spread_knots

LARGEST_DEGREE = 4
_KNOTS = 5
_STEP = 0.95  # level of the test that raises the degree by one
_THRESHOLD = float(stats.chi2.ppf(_STEP, 1))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class LogisticPolynomial(NamedTuple):
    """logit P(event) = coef @ (1, z, z^2, ...), its degree chosen forward.

    `raised` steps up were taken from the first degree, where `freedom` coefficients are free;
    `root` is triangular with root' root = information.
    """

    coef: np.ndarray
    root: np.ndarray
    statistic: float
    freedom: int
    raised: int

    @property
    def pvalue(self):
        """Of calibration: the law of the statistic given the degree."""
        return float(survival(self.statistic, self.freedom, self.raised))

    @property
    def covariance(self):
        """Of the coefficients; infinite where the information has no inverse."""
        size = len(self.coef)
        if not _invertible(self.root):
            return np.full((size, size), np.inf)
        inverse = np.linalg.solve(self.root, np.eye(size))
        return inverse @ inverse.T

    def curve(self, z):
        """The fitted probability at log-odds z."""
        return expit(np.vander(z, len(self.coef), increasing=True) @ self.coef)

    def belt(self, z, level):
        """Low and high ends of the probability at log-odds z, for all z at once.

        The Wald ellipsoid whose radius is the quantile of the law of the statistic. [0, 1] where
        the information has no inverse: separated outcomes.
        """
        rows = np.vander(np.asarray(z, dtype=float), len(self.coef), increasing=True)
        return _ends(rows, self.coef, self.root, quantile(level, self.freedom, self.raised))


class LogisticSpline(NamedTuple):
    """logit P(event) = coef @ the natural splines of `basis`; `root` as of a polynomial."""

    basis: SplineCurve
    coef: np.ndarray
    root: np.ndarray

    def curve(self, z):
        """The fitted probability at log-odds z."""
        return expit(self.basis(z) @ self.coef)

    def belt(self, z, level):
        """Wald's interval of the probability at each z by itself; [0, 1] as of a polynomial."""
        return _ends(self.basis(z), self.coef, self.root, stats.chi2.ppf(level, 1))


def _ends(rows, coef, root, square):
    """Wald's ends of the probabilities at these rows of the design, at a squared distance."""
    if not _invertible(root):
        return np.zeros(len(rows)), np.ones(len(rows))
    half = np.sqrt(square) * np.linalg.norm(np.linalg.solve(root.T, rows.T), axis=0)
    middle = rows @ coef
    return expit(middle - half), expit(middle + half)


def fit_natural_spline(z, rows, events):
    """The likeliest natural spline with knots at quantiles of z; arguments as `fit_polynomial`."""
    z, place = np.unique(z, return_inverse=True)
    rows, events = np.bincount(place, rows), np.bincount(place, events)
    knots = spread_knots(z, rows, min(_KNOTS, max(len(z), 2)))
    basis = natural_basis(knots)
    design, hit, weight = rows_of_both_labels(basis(z), rows, events)
    coef = fit_logistic(design, hit, weight, (), np.eye(len(knots))[1]).coef
    mean = expit(design @ coef)
    columns = np.sqrt(weight * mean * (1 - mean))[:, None] * design
    root = np.linalg.qr(np.vstack([columns, np.zeros((len(knots),) * 2)]), mode="r")
    return LogisticSpline(basis, coef, root)


def fit_polynomial(z, rows, events, internal=False):
    """Raise the degree while the likelihood ratio of the next exceeds the 0.95 quantile of chi2_1.

    z are log-odds, `rows` the numbers of rows there and `events` of those with the event. Begins
    at degree 1, or at 2 where the predictions were fitted to these rows. Never more coefficients
    than distinct z. None where these are too few for the first degree of the internal test.
    """
    distinct = len(np.unique(z))
    if internal and distinct < 3:
        return None
    both, hit, weight = rows_of_both_labels(z, rows, events)
    first = 2 if internal else min(1, distinct - 1)
    degree = first
    now = _fit(both, hit, weight, degree)
    while degree < min(LARGEST_DEGREE, distinct - 1):
        further = _fit(both, hit, weight, degree + 1, now.coef)
        if not 2 * weight.sum() * (now.loss - further.loss) > _THRESHOLD:
            break
        degree, now = degree + 1, further
    raised = np.logaddexp(0.0, np.where(hit == 1, -both, both))
    statistic = 2 * (weight @ raised - weight.sum() * now.loss)
    mean = expit(np.vander(both, degree + 1, increasing=True) @ now.coef)
    root = _root_of_information(both, weight * mean * (1 - mean), degree)
    freedom = 1 if internal else first + 1
    return LogisticPolynomial(now.coef, root, max(float(statistic), 0.0), freedom, degree - first)


def _fit(z, hit, weight, degree, start=(0.0, 1.0)):
    start = np.append(start, np.zeros(LARGEST_DEGREE))[: degree + 1]
    return fit_logistic(np.vander(z, degree + 1, increasing=True), hit, weight, (), start)


def _root_of_information(z, curvature, degree):
    columns = np.sqrt(curvature)[:, None] * np.vander(z, degree + 1, increasing=True)
    return np.linalg.qr(columns, mode="r") if len(z) > degree else np.zeros((degree + 1,) * 2)


def _invertible(root):
    scale = np.linalg.norm(root, axis=0)
    if not scale.min() > 1e-6:  # of the intercept: information 1e-12
        return False
    return np.linalg.cond(root / scale) < 1e12


def survival(t, freedom, raised):
    """P(T > t), T = chi2 of some degrees of freedom plus `raised` truncated chi2_1.

    These are chi2_1 given that they exceed their 0.95 quantile k. With z = u^2 the density of
    chi2_1 is twice the normal one in u, and u = sqrt(t) sin(angle) makes what is integrated
    smooth: Gauss and Legendre's rule is exact to rounding, and for two steps from one degree of
    freedom to 2e-9 of the probability.
    """
    t = np.asarray(t, dtype=float)
    if raised == 0:
        return stats.chi2.sf(t, freedom)
    least = (raised - 1) * _THRESHOLD  # the others are at least that
    inside = np.maximum(t, least + _THRESHOLD)  # below, the probability is 1
    low, high = np.arcsin(np.sqrt([_THRESHOLD / inside, 1 - least / inside]))
    middle, half = (low + high) / 2, (high - low) / 2
    angle = middle[..., None] + half[..., None] * _NODES
    size = np.sqrt(inside)[..., None]
    rest = (size * np.cos(angle)) ** 2
    density = 2 * stats.norm.pdf(size * np.sin(angle)) * size * np.cos(angle)
    within = (density * survival(rest, freedom, raised - 1)) @ _WEIGHTS * half
    beyond = stats.chi2.sf(inside - least, 1)
    return np.minimum((within + beyond) / (1 - _STEP), 1.0)


def quantile(level, freedom, raised):
    """The t at which `survival` is 1 - level."""
    low = raised * _THRESHOLD
    high = low + 10.0
    while survival(high, freedom, raised) > 1 - level:
        high *= 2
    return brentq(
        lambda t: float(survival(t, freedom, raised)) - (1 - level), low, high, xtol=1e-13
    )
