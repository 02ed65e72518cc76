"""Shape-restricted polynomial regression."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.polynomial import chebyshev
from sklearn.utils._param_validation import Interval, StrOptions

from .._kernels._binning import bin_of_distinct, bin_sums, pool
from .._renamed import renamed_arguments
from .._simplex import log_odds, second_score, without_rounding_noise
from .._typing import FloatArray, Self
from ..exceptions import caution, refuse
from ._base import Capabilities, Recalibrator, two_columns
from ._describe import constant

_DEGREES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)  # the ones that cross-validation tries
_WORST_GAP = 1e-6


class RestrictedPolynomialRegression(Recalibrator):
    """The best polynomial that rises with the score and stays within 0 and 1 (RPR).

    Smooth and strictly between a parametric and an isotonic fit: the degree decides how many shapes
    it can take. Monotone and within [0, 1] by construction. More than two classes are handled
    one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    degree : int, "cv" or array-like of int, default="cv"
        From 1 to 60. Of several degrees, and "cv" means those up to 20, cross-validation takes one.
        Never more than the number of distinct scores less one.
    l1 : float or array-like of float, default=None
        Bound, above 0, on the sum of the absolute coefficients of the powers of the score moved to
        [-1, 1]: it smooths polynomials of a high degree. Below 1 it also bounds the map itself, and
        bounds above 10^4 are certified to some 1e-5 only. None is no bound; of several
        cross-validation takes one.
    scale : {"proba", "logit"}, default="proba"
        The variable of the polynomial: the probability, so that the identity has degree 1, or its
        log-odds, which is as good or better for scores of moderate size and much worse for
        saturated ones.
    selection : {"brier", "mce"}, default="brier"
        What cross-validation minimises: the held-out Brier loss, or the largest calibration error
        of 10 bins of equal mass, which with few rows chooses worse.
    cv : int, default=5
        Folds; every `cv`-th distinct score belongs to the same one, so nothing is random.
    solver : {"auto", "ipm", "clarabel", "cvxpy"}, default="auto"
        "ipm", which is what "auto" takes, is this library's own; the others state the program in
        cvxpy and hand it to Clarabel or to the solver that cvxpy chooses, for comparison.

    Attributes
    ----------
    degree_ : int
        0 where all scores are equal.
    l1_ : float
        The sum of the absolute coefficients of the powers.
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
    A semidefinite program in Chebyshev nodes, solved by an interior-point method; the data enter by
    their Chebyshev moments, so its time does not depend on the number of rows. In monomial bases
    standard solvers report wrong solutions as optimal from about degree 8. The duality gap is
    computed for every fit. The published bound is on the coefficients of the raw score, which
    depend on its unit: there the paper's 1000 never binds. Cost: O(n degree) for the moments, some
    4 ms at degree 16.

    References
    ----------
    Wang, Li, Dang (2019), "Calibrating classification probabilities with shape-restricted
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

    degree_: int
    l1_: float
    coef_: FloatArray
    domain_: FloatArray
    optimality_gap_: float

    capabilities = Capabilities(
        monotone=True,
        increasing=True,
        continuous=True,
        flexible=True,
        cost="O(k n)",
        max_classes=200,
    )
    _parameter_constraints: dict = {  # noqa: RUF012
        "degree": [Interval(Integral, 1, 60, closed="both"), StrOptions({"cv"}), "array-like"],
        "l1": [None, Interval(Real, 0, None, closed="neither"), "array-like"],
        "scale": [StrOptions({"proba", "logit"})],
        "selection": [StrOptions({"brier", "mce"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "solver": [StrOptions({"auto", "ipm", "clarabel", "cvxpy"})],
    }

    @renamed_arguments()
    def __init__(
        self,
        degree: int | Literal["cv"] | Sequence[int] = "cv",
        *,
        l1: float | Sequence[float] | None = None,
        scale: Literal["proba", "logit"] = "proba",
        selection: Literal["brier", "mce"] = "brier",
        cv: int = 5,
        solver: Literal["auto", "ipm", "clarabel", "cvxpy"] = "auto",
    ) -> None:
        self.degree = degree
        self.l1 = l1
        self.scale = scale
        self.selection = selection
        self.cv = cv
        self.solver = solver

    @classmethod
    def paper(cls) -> Self:
        """The settings of the published comparison: 17 degrees, 21 bounds, 2 folds.

        Returns
        -------
        rpr : RestrictedPolynomialRegression
            Degrees 4 to 20, bounds 5^-10 to 5^10, chosen by the largest error of 10 bins, on the
            log-odds in place of the score of a support vector machine. 714 programs a fit.
        """
        bounds = tuple(5.0**power for power in range(-10, 11))
        return cls(tuple(range(4, 21)), l1=bounds, scale="logit", selection="mce", cv=2)

    def _fit(self, proba, codes, weight):
        from .._kernels._monotone_polynomial import moments

        score = self._score(proba)
        knots, _, mass, share = pool(score, codes, weight)
        self.domain_ = np.array([knots[0], knots[-1]])
        degrees, bounds = self._candidates()
        if len(knots) == 1 or not self.domain_[1] - self.domain_[0] > 0:
            mean = weight @ codes / weight.sum()
            self.coef_ = np.array([min(mean, bounds[-1])])
            self.degree_, self.l1_, self.optimality_gap_ = 0, float(self.coef_[0]), 0.0
            return
        x = self._to_unit(knots)
        self.degree_, bound = degrees[0], bounds[0]
        if len(degrees) * len(bounds) > 1:
            self.degree_, bound = self._choose(x, share, mass, degrees, bounds)
        self.degree_ = int(min(self.degree_, len(knots) - 1))
        # y^2 of 0/1 labels is y: the pooled rows keep the spread within ties
        mean_t, mean_y, _ = moments(x, share, mass, self.degree_)
        data = [(mean_t, mean_y, float(mass @ share / mass.sum()))]
        [[fit]] = self._solve(data, self.degree_, [bound])
        self.coef_, self.l1_, self.optimality_gap_ = fit.coef, fit.l1, float(fit.gap)
        if self.optimality_gap_ > _WORST_GAP:
            caution(
                "RestrictedPolynomialRegression.fit",
                f"an optimality gap of at most {_WORST_GAP}",
                f"{self.optimality_gap_:.2g}",
                "Use a smaller degree, or another bound l1",
                stacklevel=5,
            )

    def _predict_proba(self, proba):
        x = self._to_unit(np.clip(self._score(proba), *self.domain_))
        return two_columns(np.clip(chebyshev.chebval(x, self.coef_), 0.0, 1.0))

    def _nodes(self):
        if len(self.coef_) == 1:
            return constant(np.clip(self.coef_[0], 0.0, 1.0))
        return {
            "node": "clipped_chebyshev",
            "input": self.scale,
            "ties": True,
            "domain": self.domain_,
            "coef": self.coef_,
        }

    def _score(self, proba):
        if self.scale == "logit":
            return without_rounding_noise(log_odds(proba), least_exponent=0)
        return second_score(proba)

    def _to_unit(self, score):
        low, high = self.domain_
        if not high > low:
            return np.zeros_like(score)
        return np.clip(2 * (score - low) / (high - low) - 1, -1.0, 1.0)

    def _candidates(self):
        """Degrees and bounds to try, increasing."""
        degrees = _DEGREES if isinstance(self.degree, str) else self.degree
        degrees = np.unique(np.asarray(degrees))
        bounds = np.unique(np.asarray(np.inf if self.l1 is None else self.l1, dtype=np.float64))
        where = "RestrictedPolynomialRegression.fit"
        if degrees.dtype.kind != "i" or not len(degrees) or degrees[0] < 1 or degrees[-1] > 60:
            cure = "Pass an int, a list of them or 'cv'"
            refuse(where, "degrees that are integers from 1 to 60", repr(self.degree), cure)
        if not len(bounds) or not bounds[0] > 0:
            refuse(where, "bounds l1 above 0", repr(self.l1), "Pass None for no bound")
        return degrees.tolist(), bounds.tolist()

    def _solve(self, data, degree, bounds, tol=1e-10):
        if self.solver in ("auto", "ipm"):
            from .._kernels._monotone_polynomial import fit_many

            return fit_many(data, degree, bounds, tol)
        from .._kernels._monotone_program import fit_program

        name = "CLARABEL" if self.solver == "clarabel" else None
        return [[fit_program(*part, degree, bound, name) for bound in bounds] for part in data]

    def _choose(self, x, share, mass, degrees, bounds):
        """The degree and the bound with the smallest held-out error."""
        from .._kernels._monotone_polynomial import moments

        fold = np.arange(len(x)) % self.cv
        smallest = min(np.count_nonzero(fold != f) for f in range(self.cv)) - 1
        degrees = [degree for degree in degrees if degree <= smallest]
        if len(x) < 2 * self.cv or not degrees:
            return 1, bounds[-1]
        sums = []
        for f in range(self.cv):
            rows = fold == f
            mean_t, mean_y, _ = moments(x[rows], share[rows], mass[rows], degrees[-1])
            total = mass[rows].sum()
            sums.append((total * mean_t, total * mean_y, total))
        whole = [sum(parts) for parts in zip(*sums, strict=True)]
        rests = []
        for held in sums:
            mean_t, mean_y, total = (w - h for w, h in zip(whole, held, strict=True))
            rests.append((mean_t / total, mean_y / total, 0.0))
        losses = np.zeros((len(degrees), len(bounds)))
        for i, degree in enumerate(degrees):
            for f, fits in enumerate(self._solve(rests, degree, bounds, tol=1e-8)):
                rows = fold == f
                held = x[rows], share[rows], mass[rows]
                for j, fit in enumerate(fits):
                    if self.selection == "brier":
                        losses[i, j] += _squared_error(fit.coef, sums[f])
                    else:
                        losses[i, j] += _largest_error(fit.coef, *held)
        i, j = np.unravel_index(losses.argmin(), losses.shape)
        return degrees[i], bounds[j]


def _squared_error(coef, held):
    """sum w f^2 - 2 sum w y f of held-out rows, from their moments."""
    from .._kernels._monotone_polynomial import gram

    sum_t, sum_y, _ = held
    return coef @ gram(sum_t, len(coef)) @ coef - 2 * coef @ sum_y[: len(coef)]


def _largest_error(coef, x, share, mass):
    """The largest gap of 10 bins of equal mass."""
    bins = bin_of_distinct(x, mass, 10, "quantile")
    gap = mass * (chebyshev.chebval(x, coef) - share)
    total, gaps = bin_sums(bins, 10, mass, gap)
    return float((np.abs(gaps) / np.maximum(total, 1e-300)).max())
