"""Curves of the log-odds.

The polynomials have a degree that the data choose, with the distribution of the
statistic and the belt. A natural spline of five knots has an interval at each point.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from ._logistic import fit_logistic, split_rows_by_label
from ._spline import SplineCurve, choose_knots, make_natural_basis

MAX_DEGREE = 4
_N_KNOTS = 5
# The level of the test that raises the degree by one.
_DEGREE_TEST_LEVEL = 0.95
_DEGREE_STEP_THRESHOLD = float(stats.chi2.ppf(_DEGREE_TEST_LEVEL, 1))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class LogisticPolynomial(NamedTuple):
    """logit P(event) = coef @ (1, z, z^2, ...), its degree chosen forward.

    `n_degree_steps` steps up were taken from the first degree, where `freedom` coefficients
    are free; `root` is triangular with root' root = information.
    """

    coef: np.ndarray
    root: np.ndarray
    statistic: float
    freedom: int
    n_degree_steps: int

    @property
    def pvalue(self):
        """Return the p-value of calibration, given the degree."""
        return float(
            compute_degree_test_survival(
                self.statistic, self.freedom, self.n_degree_steps
            )
        )

    @property
    def coef_covariance(self):
        """Return the covariance of the coefficients.

        It is infinite if the information has no inverse.
        """
        size = len(self.coef)
        if not _is_invertible(self.root):
            return np.full((size, size), np.inf)
        inverse = np.linalg.solve(self.root, np.eye(size))
        return inverse @ inverse.T

    def compute_curve_probabilities(self, log_odds):
        """Return the fitted probability at these log-odds."""
        return expit(np.vander(log_odds, len(self.coef), increasing=True) @ self.coef)

    def compute_belt(self, log_odds, level):
        """Return low and high ends of the probability, for all log-odds at once.

        The Wald ellipsoid whose radius is the quantile of the statistic. [0, 1] if
        the information has no inverse: separated outcomes.
        """
        rows = np.vander(
            np.asarray(log_odds, dtype=float), len(self.coef), increasing=True
        )
        return _compute_wald_probability_ends(
            rows,
            self.coef,
            self.root,
            find_degree_test_quantile(level, self.freedom, self.n_degree_steps),
        )


class LogisticSpline(NamedTuple):
    """The log-odds as coef @ the natural splines of `basis`.

    `root` is as in a polynomial.
    """

    basis: SplineCurve
    coef: np.ndarray
    root: np.ndarray

    def compute_curve_probabilities(self, log_odds):
        """Return the fitted probability at these log-odds."""
        return expit(self.basis(log_odds) @ self.coef)

    def compute_belt(self, log_odds, level):
        """Return Wald's interval of the probability at each of the log-odds by itself.

        It is [0, 1] if the information has no inverse.
        """
        return _compute_wald_probability_ends(
            self.basis(log_odds),
            self.coef,
            self.root,
            stats.chi2.ppf(level, 1),
        )


def _compute_wald_probability_ends(rows, coef, root, square):
    """Return Wald's ends of the probabilities at rows of the design.

    `square` is the squared distance.
    """
    if not _is_invertible(root):
        return np.zeros(len(rows)), np.ones(len(rows))
    half = np.sqrt(square) * np.linalg.norm(np.linalg.solve(root.T, rows.T), axis=0)
    middle = rows @ coef
    return expit(middle - half), expit(middle + half)


def fit_logistic_spline(log_odds, rows, events):
    """Fit a natural spline with knots at quantiles.

    The arguments are those of `fit_logistic_polynomial_if_possible`.
    """
    log_odds, index = np.unique(log_odds, return_inverse=True)
    rows = np.bincount(index, rows)
    events = np.bincount(index, events)
    knots = choose_knots(log_odds, rows, min(_N_KNOTS, max(len(log_odds), 2)))
    basis = make_natural_basis(knots)
    design, outcome, weight = split_rows_by_label(basis(log_odds), rows, events)
    coef = fit_logistic(design, outcome, weight, (), np.eye(len(knots))[1]).coef
    mean = expit(design @ coef)
    columns = np.sqrt(weight * mean * (1 - mean))[:, None] * design
    # The zero rows keep the factor square if there are fewer rows than knots.
    zero_rows = np.zeros((len(knots), len(knots)))
    root = np.linalg.qr(np.vstack([columns, zero_rows]), mode="r")
    return LogisticSpline(basis, coef, root)


def fit_logistic_polynomial_if_possible(log_odds, rows, events, internal=False):
    """Raise the degree while the next one fits significantly better.

    Its likelihood ratio has to exceed the 0.95 quantile of chi2_1.

    z are log-odds, `rows` the numbers of rows there and `events` of those with the
    event. Begins at degree 1, or at 2 if the predictions were fitted to these rows.
    Never more coefficients than distinct z. None if these are too few for the first
    degree of the internal test.
    """
    distinct = len(np.unique(log_odds))
    if internal and distinct < 3:
        return None
    label_log_odds, outcome, weight = split_rows_by_label(log_odds, rows, events)
    # GiViTI's forward selection starts with a line for external predictions. For the
    # rows of the fit itself a line is already the identity, so it starts with a
    # parabola.
    first = 2 if internal else min(1, distinct - 1)
    degree = first
    now = _fit_polynomial_in_log_odds(label_log_odds, outcome, weight, degree)
    while degree < min(MAX_DEGREE, distinct - 1):
        further = _fit_polynomial_in_log_odds(
            label_log_odds, outcome, weight, degree + 1, now.coef
        )
        # The selection stops at the first degree that does not improve the fit at the 5
        # % level; the distribution of the statistic below allows for this.
        if not 2 * weight.sum() * (now.loss - further.loss) > _DEGREE_STEP_THRESHOLD:
            break
        degree += 1
        now = further
    initial = np.logaddexp(0.0, np.where(outcome == 1, -label_log_odds, label_log_odds))
    statistic = 2 * (weight @ initial - weight.sum() * now.loss)
    mean = expit(np.vander(label_log_odds, degree + 1, increasing=True) @ now.coef)
    root = _compute_information_root(label_log_odds, weight * mean * (1 - mean), degree)
    freedom = 1 if internal else first + 1
    return LogisticPolynomial(
        now.coef,
        root,
        max(float(statistic), 0.0),
        freedom,
        degree - first,
    )


def _fit_polynomial_in_log_odds(log_odds, outcome, weight, degree, start=(0.0, 1.0)):
    start = np.append(start, np.zeros(MAX_DEGREE))[: degree + 1]
    return fit_logistic(
        np.vander(log_odds, degree + 1, increasing=True),
        outcome,
        weight,
        (),
        start,
    )


def _compute_information_root(log_odds, curvature, degree):
    columns = np.sqrt(curvature)[:, None] * np.vander(
        log_odds, degree + 1, increasing=True
    )
    return (
        np.linalg.qr(columns, mode="r")
        if len(log_odds) > degree
        else np.zeros((degree + 1,) * 2)
    )


def _is_invertible(root):
    scale = np.linalg.norm(root, axis=0)
    # The squared norm of a column is its information, which must exceed 1e-12.
    if not scale.min() > 1e-6:
        return False
    return np.linalg.cond(root / scale) < 1e12


def compute_degree_test_survival(statistic, freedom, n_degree_steps):
    """Return P(T > t), T = chi2 of `freedom` plus `n_degree_steps` truncated chi2_1.

    These are chi2_1 given that they exceed their 0.95 quantile k. With z = u^2 the
    density of chi2_1 is twice the normal one in u, and u = sqrt(t) sin(angle) makes
    what is integrated smooth: Gauss and Legendre's rule is exact to rounding, and for
    two steps from one degree of freedom to 2e-9 of the probability.
    """
    statistic = np.asarray(statistic, dtype=float)
    if n_degree_steps == 0:
        return stats.chi2.sf(statistic, freedom)
    # The tests that raised the degree before were significant, so each of their
    # statistics is at least the threshold. Below the sum of all thresholds the
    # probability is 1.
    truncated_sum = (n_degree_steps - 1) * _DEGREE_STEP_THRESHOLD
    inside = np.maximum(statistic, truncated_sum + _DEGREE_STEP_THRESHOLD)
    low, high = np.arcsin(
        np.sqrt([_DEGREE_STEP_THRESHOLD / inside, 1 - truncated_sum / inside])
    )
    middle = (low + high) / 2
    half = (high - low) / 2
    # Substituting the angle removes the square root singularity of the chi-square
    # density with one degree of freedom.
    angle = middle[..., None] + half[..., None] * _NODES
    size = np.sqrt(inside)[..., None]
    remaining = (size * np.cos(angle)) ** 2
    density = 2 * stats.norm.pdf(size * np.sin(angle)) * size * np.cos(angle)
    within = (
        (density * compute_degree_test_survival(remaining, freedom, n_degree_steps - 1))
        @ _WEIGHTS
        * half
    )
    beyond = stats.chi2.sf(inside - truncated_sum, 1)
    return np.minimum((within + beyond) / (1 - _DEGREE_TEST_LEVEL), 1.0)


def find_degree_test_quantile(level, freedom, n_degree_steps):
    """Return the t at which `compute_degree_test_survival` is 1 - level."""
    low = n_degree_steps * _DEGREE_STEP_THRESHOLD
    high = low + 10.0
    while compute_degree_test_survival(high, freedom, n_degree_steps) > 1 - level:
        high *= 2
    return brentq(
        lambda t: (
            float(compute_degree_test_survival(t, freedom, n_degree_steps))
            - (1 - level)
        ),
        low,
        high,
        xtol=1e-13,
    )
