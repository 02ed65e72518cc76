"""Shape-restricted polynomial regression."""

import warnings
from numbers import Integral

import numpy as np
from numpy.polynomial import chebyshev
from sklearn.utils._param_validation import Interval, StrOptions

from .._kernels._binning import distinct
from .._kernels._monotone_polynomial import fit_monotone, moments
from .._simplex import log_odds, without_rounding_noise
from ..exceptions import CalibrationWarning, expectation
from ._base import Capabilities, Recalibrator, two_columns

_DEGREES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)  # the ones that cross-validation tries
_WORST_GAP = 1e-6


class RestrictedPolynomialRegression(Recalibrator):
    """The best polynomial that rises with the score and stays within 0 and 1 (RPR).

    Smooth and strictly between a parametric and an isotonic fit: the degree decides how many shapes
    it can take. Monotone and within [0, 1] by construction. More than two classes are handled
    one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    degree : int or "cv", default="cv"
        From 1 to 60; "cv" takes the degree up to 20 with the smallest cross-validated Brier loss.
        Never more than the number of distinct scores less one.
    scale : {"proba", "logit"}, default="proba"
        The variable of the polynomial: the probability, so that the identity has degree 1, or its
        log-odds.
    cv : int, default=5
        Folds; every `cv`-th distinct score belongs to the same one, so nothing is random.

    Attributes
    ----------
    degree_ : int
        0 where all scores are equal.
    coef_ : ndarray of shape (n_coefficients,)
        Chebyshev coefficients on the domain moved to [-1, 1].
    domain_ : ndarray of shape (2,)
        Smallest and largest calibration score; beyond them the map is constant.
    optimality_gap_ : float
        The mean squared error is above the best possible one by no more than this.
    one_vs_rest_ : list of RestrictedPolynomialRegression
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        The optimality gap is above 1e-6.

    Notes
    -----
    A semidefinite program in Chebyshev nodes, solved by a feasible interior-point method; the data
    enter by their Chebyshev moments, so its time does not depend on the number of rows. In monomial
    bases standard solvers report wrong solutions as optimal from about degree 8. The duality gap
    is computed for every fit. Cost: O(n degree) for the moments, some 5 ms at degree 16.

    References
    ----------
    Wang, Li, Yang (2019), "Calibrating classification probabilities with shape-restricted
    polynomial regression", eq. 18 (corrected: see the kernel).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.recalibrators import RestrictedPolynomialRegression
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> rpr = RestrictedPolynomialRegression(degree=2).fit(p, y)
    >>> bool(np.abs(rpr.predict_proba(p)[:, 1] - p**2).max() < 0.05)
    True
    >>> rpr.optimality_gap_ < 1e-8
    True
    """

    capabilities = Capabilities(monotone=True, cost="O(k n)")
    _parameter_constraints: dict = {  # noqa: RUF012
        "degree": [Interval(Integral, 1, 60, closed="both"), StrOptions({"cv"})],
        "scale": [StrOptions({"proba", "logit"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, degree="cv", scale="proba", cv=5):
        self.degree = degree
        self.scale = scale
        self.cv = cv

    def _fit(self, proba, codes, weight):
        score = self._score(proba)
        knots, row_knot = distinct(score)
        mass = np.bincount(row_knot, weights=weight)
        share = np.bincount(row_knot, weights=weight * codes) / mass
        self.domain_ = np.array([knots[0], knots[-1]])
        if len(knots) == 1 or not self.domain_[1] - self.domain_[0] > 0:
            self.degree_, self.optimality_gap_ = 0, 0.0
            self.coef_ = np.array([weight @ codes / weight.sum()])
            return
        x = self._to_unit(knots)
        most = len(knots) - 1
        self.degree_ = self._choose(x, share, mass) if self.degree == "cv" else self.degree
        self.degree_ = int(min(self.degree_, most))
        # y^2 of 0/1 labels is y: the pooled rows keep the spread within ties
        mean_t, mean_y, _ = moments(x, share, mass, self.degree_)
        fit = fit_monotone(mean_t, mean_y, float(mass @ share / mass.sum()), self.degree_)
        self.coef_, self.optimality_gap_ = fit.coef, float(fit.gap)
        if self.optimality_gap_ > _WORST_GAP:
            warnings.warn(
                expectation(
                    "RestrictedPolynomialRegression.fit",
                    f"an optimality gap of at most {_WORST_GAP}",
                    f"{self.optimality_gap_:.2g}",
                    "Use a smaller degree",
                ),
                CalibrationWarning,
                stacklevel=4,
            )

    def _predict_proba(self, proba):
        x = self._to_unit(np.clip(self._score(proba), *self.domain_))
        return two_columns(np.clip(chebyshev.chebval(x, self.coef_), 0.0, 1.0))

    def _score(self, proba):
        if self.scale == "logit":
            return without_rounding_noise(log_odds(proba))
        return without_rounding_noise(np.asarray(proba)[:, 1])

    def _to_unit(self, score):
        low, high = self.domain_
        if not high > low:
            return np.zeros_like(score)
        return np.clip(2 * (score - low) / (high - low) - 1, -1.0, 1.0)

    def _choose(self, x, share, mass):
        """The degree with the smallest held-out squared error."""
        fold = np.arange(len(x)) % self.cv
        smallest = min(np.count_nonzero(fold != f) for f in range(self.cv)) - 1
        degrees = [degree for degree in _DEGREES if degree <= smallest]
        if len(x) < 2 * self.cv or not degrees:
            return 1
        sums = []
        for f in range(self.cv):
            rows = fold == f
            mean_t, mean_y, _ = moments(x[rows], share[rows], mass[rows], degrees[-1])
            total = mass[rows].sum()
            sums.append((total * mean_t, total * mean_y, total))
        whole = [sum(parts) for parts in zip(*sums, strict=True)]
        losses = np.zeros(len(degrees))
        for held in sums:
            mean_t, mean_y, total = (w - h for w, h in zip(whole, held, strict=True))
            for i, degree in enumerate(degrees):
                fit = fit_monotone(mean_t / total, mean_y / total, 0.0, degree, tol=1e-8)
                losses[i] += _squared_error(fit.coef, held)
        return degrees[int(losses.argmin())]


def _squared_error(coef, held):
    """sum w f^2 - 2 sum w y f of held-out rows, from their moments."""
    sum_t, sum_y, _ = held
    i = np.arange(len(coef))
    gram = (sum_t[i[:, None] + i] + sum_t[np.abs(i[:, None] - i)]) / 2
    return coef @ gram @ coef - 2 * coef @ sum_y[: len(coef)]
