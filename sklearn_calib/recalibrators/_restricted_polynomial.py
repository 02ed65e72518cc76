"""Shape-restricted polynomial regression."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from sklearn.utils._param_validation import Interval, StrOptions

from .. import maps
from .._kernels._binning import (
    assign_values_to_bins,
    find_scores_index_mass_and_event_rates,
    sum_bins,
)
from .._kernels._log_odds import get_rounded_second_class_column, round_to_36_bits
from .._simplex_array import compute_log_odds
from .._sklearn_compat import POSITIVE_REAL
from .._typing import AnyArray, FloatArray, Self
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._base import Capabilities, Recalibrator

# Cross-validation tries these.
_DEFAULT_DEGREES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20)
_MAX_OPTIMALITY_GAP = 1e-6
_MAX_CONSTRAINTS = 200


class RestrictedPolynomialRegression(Recalibrator):
    """The best polynomial that rises with the score and stays within 0 and 1 (RPR).

    Smooth and strictly between a parametric and an isotonic fit: the degree decides how
    many shapes it can take. Monotone and within [0, 1] by construction. More than two
    classes are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    degree : int, "cv" or array-like of int, default="cv"
        From 1 to 60. Of several degrees, and "cv" means those up to 20,
        cross-validation takes one. Never more than the number of distinct scores, and
        points of constraints, less one.
    l1 : float or array-like of float, default=None
        Bound, above 0, on the sum of the absolute coefficients of the powers of the
        score moved to [-1, 1]: it smooths polynomials of a high degree. Below 1 it also
        bounds the map itself, and bounds above 10^4 are certified to some 1e-5 only.
        None is not a bound; of several cross-validation takes one.
    scale : {"proba", "logit"}, default="proba"
        The variable of the polynomial: the probability, so that the identity has degree
        1, or its log-odds, which is as good or better for scores of moderate size and
        much worse for saturated ones.
    selection : {"brier", "mce"}, default="brier"
        What cross-validation minimises: the held-out Brier loss, or the largest
        calibration error of 10 bins of equal mass, which with few rows chooses worse.
    cv : int, default=5
        Folds; every `cv`-th distinct score belongs to the same one, so nothing is
        random.
    solver : {"auto", "ipm", "clarabel", "cvxpy"}, default="auto"
        "ipm", which is what "auto" takes, is this library's own; the others state the
        program in cvxpy and hand it to Clarabel or to the solver that cvxpy chooses.
        With `constraints`, "auto" is "clarabel", and "ipm" is rejected.
    constraints : sequence of (quantity, at, relation, bound), default=None
        What you know of the map P, at most 200 entries. `quantity` is "value", for
        P(at), or "slope", for the derivative of P by the probability; `at` is a
        probability from 0 to 1, strictly between with ``scale="logit"``; `relation` is
        "<=", ">=" or "=="; `bound` is a number, for a value from 0 to 1 and for a slope
        at least 0. ``[("value", 0.0, "==", 0.0)]`` lets the map pass through the
        origin. The domain then reaches to the points `at`. Degrees that cannot fulfil
        the constraints are not candidates. Of more than two classes the constraints
        hold for the map of each class, before rows are divided by their sums.

    Attributes
    ----------
    degree_ : int
        0 if all scores are equal.
    l1_ : float
        The sum of the absolute coefficients of the powers.
    coef_ : ndarray of shape (n_coefficients,)
        Chebyshev coefficients on the domain moved to [-1, 1].
    domain_ : ndarray of shape (2,)
        Smallest and largest calibration score or point of a constraint; beyond them the
        map is constant.
    optimality_gap_ : float
        The mean squared error is above the best possible one, among the maps that
        fulfil the constraints, by no more than this.
    constraint_gap_ : float
        The map misses its constraints by no more than this; 0 without constraints.
    one_vs_rest_ : list of RestrictedPolynomialRegression
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        The optimality gap or the constraint gap is above 1e-6.

    Raises
    ------
    ValueError
        Constraints that are not understood, that contradict each other, or that no
        polynomial of the degrees and bounds allowed fulfils.

    Notes
    -----
    A semidefinite program in Chebyshev nodes, solved by an interior-point method; the
    data enter by their Chebyshev moments, so its time does not depend on the number of
    rows. In monomial bases standard solvers report wrong solutions as optimal from
    about degree 8. The duality gap is computed for every fit. The published bound is on
    the coefficients of the raw score, which depend on its unit: there the paper's 1000
    never binds. Cost: O(n degree) for the moments, some 4 ms at degree 16. With
    `constraints` cvxpy states the program and Clarabel solves it, in some 40 ms for
    each candidate and fold; the gap is then that of the program with the constraints.

    References
    ----------
    Wang, Li, Dang (2019), "Calibrating classification probabilities with
    shape-restricted polynomial regression", eq. 18 (corrected: see the kernel).

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

    A map through the origin that at no point of a grid rises faster than 1.5 to 1:

    >>> known = [("value", 0.0, "==", 0.0)]
    >>> known += [("slope", at, "<=", 1.5) for at in (0.0, 0.25, 0.5, 0.75, 1.0)]
    >>> rpr = RestrictedPolynomialRegression(degree=3, constraints=known).fit(p, y)
    >>> round(float(rpr.predict_proba([0.0])[0, 1]), 6)
    0.0
    >>> rpr.constraint_gap_ < 1e-8
    True
    """

    degree_: int
    l1_: float
    coef_: FloatArray
    domain_: FloatArray
    optimality_gap_: float
    constraint_gap_: float

    capabilities = Capabilities(
        monotone=True,
        increasing=True,
        continuous=True,
        nonparametric_shape=True,
        cost="O(k n)",
        max_classes=200,
    )
    _parameter_constraints: ClassVar = {
        "degree": [
            Interval(Integral, 1, 60, closed="both"),
            StrOptions({"cv"}),
            "array-like",
        ],
        "l1": [POSITIVE_REAL, "array-like", None],
        "scale": [StrOptions({"proba", "logit"})],
        "selection": [StrOptions({"brier", "mce"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "solver": [StrOptions({"auto", "ipm", "clarabel", "cvxpy"})],
        "constraints": ["array-like", None],
    }

    def __init__(
        self,
        degree: int | Literal["cv"] | Sequence[int] = "cv",
        *,
        l1: float | Sequence[float] | None = None,
        scale: Literal["proba", "logit"] = "proba",
        selection: Literal["brier", "mce"] = "brier",
        cv: int = 5,
        solver: Literal["auto", "ipm", "clarabel", "cvxpy"] = "auto",
        constraints: Sequence[tuple[str, float, str, float]] | None = None,
    ) -> None:
        self.degree = degree
        self.l1 = l1
        self.scale = scale
        self.selection = selection
        self.cv = cv
        self.solver = solver
        self.constraints = constraints

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of the published comparison: 17 degrees, 21 bounds, 2 folds.

        Returns
        -------
        rpr : RestrictedPolynomialRegression
            Degrees 4 to 20, bounds 5^-10 to 5^10, chosen by the largest error of 10
            bins, on the log-odds in place of the score of a support vector machine. 714
            programs a fit.
        """
        bounds = tuple(5.0**power for power in range(-10, 11))
        return cls(tuple(range(4, 21)), l1=bounds, scale="logit", selection="mce", cv=2)

    def _fit(self, proba, codes, weight):
        """Choose degree and bound, and fit the polynomial under its constraints."""
        from .._kernels._monotone_program import compute_chebyshev_t_yt_and_y2_means

        score = self._round_score(proba)
        knots, _, mass, share = find_scores_index_mass_and_event_rates(
            score, codes, weight
        )
        constraints = self._parse_constraints()
        points = (
            knots
            if constraints is None
            else np.union1d(knots, self._compute_score_at(constraints.probability))
        )
        self.domain_ = points[[0, -1]]
        degrees, bounds = self._read_degrees_and_bounds()
        if len(points) == 1 or not self.domain_[1] - self.domain_[0] > 0:
            self._fit_constant(
                float(weight @ codes / weight.sum()), bounds[-1], constraints
            )
            return
        x = self._to_polynomial_domain(knots)
        moved_constraints = (
            None
            if constraints is None
            else self._make_domain_value_and_slope_bounds(constraints)
        )
        self.degree_ = degrees[0]
        bound = bounds[0]
        if len(degrees) * len(bounds) > 1:
            self.degree_, bound = self._choose_degree_and_bound(
                x, share, mass, degrees, bounds, moved_constraints
            )
        # A polynomial of a higher degree than the number of points less 1 is not
        # determined.
        self.degree_ = int(min(self.degree_, len(points) - 1))
        # For labels of 0 and 1, y^2 is y: the moment of the labels keeps the spread
        # within ties.
        mean_t, mean_y, _ = compute_chebyshev_t_yt_and_y2_means(
            x, share, mass, self.degree_
        )
        data = [(mean_t, mean_y, float(mass @ share / mass.sum()))]
        [[fit]] = self._fit_polynomials_by_part_and_bound(
            data, self.degree_, [bound], moved_constraints
        )
        if fit is None:
            raise self._impossible_constraints_error(
                constraints, f"a rising polynomial of degree {self.degree_}"
            )
        self.coef_ = fit.chebyshev_coef
        self.l1_ = fit.monomial_l1
        self.optimality_gap_ = float(fit.gap)
        self.constraint_gap_ = (
            0.0
            if constraints is None
            else self._measure_violation(constraints, moved_constraints)
        )
        if self.optimality_gap_ > _MAX_OPTIMALITY_GAP:
            warn_calibration(
                expected=f"an optimality gap of at most {_MAX_OPTIMALITY_GAP}",
                got=f"{self.optimality_gap_:.2g}",
                hint="Use a smaller degree, or another bound l1",
                estimator=self,
            )
        if constraints is not None and self.constraint_gap_ > _MAX_OPTIMALITY_GAP:
            warn_calibration(
                expected=f"a map that misses its constraints by at most {_MAX_OPTIMALITY_GAP}",
                got=f"{self.constraint_gap_:.2g}",
                hint="Use another degree, or fewer constraints",
                estimator=self,
            )

    def _fit_constant(self, mean, bound, constraints) -> None:
        """Fit a constant if all scores, and points of constraints, are equal."""
        low = 0.0
        high = bound
        if constraints is not None:
            low = constraints.low[~constraints.is_slope].max(initial=0.0)
            high = min(constraints.high[~constraints.is_slope].min(initial=1.0), bound)
            if low > high or (constraints.low[constraints.is_slope] > 0).any():
                raise self._impossible_constraints_error(
                    constraints, "a constant, since all scores are equal,"
                )
        self.coef_ = np.array([max(min(mean, high), low)])
        self.degree_ = 0
        self.l1_ = float(self.coef_[0])
        self.optimality_gap_ = self.constraint_gap_ = 0.0

    def _make_map(self):
        if len(self.coef_) == 1:
            return maps.make_constant(np.clip(self.coef_[0], 0.0, 1.0))
        return maps.ClippedChebyshev(
            input=self.scale,
            ties=True,
            domain=self.domain_,
            coef=self.coef_,
        )

    def _round_score(self, proba):
        if self.scale == "logit":
            return round_to_36_bits(compute_log_odds(proba), least_exponent=0)
        return get_rounded_second_class_column(proba)

    def _to_polynomial_domain(self, score):
        low, high = self.domain_
        if not high > low:
            return np.zeros_like(score)
        return np.clip(2 * (score - low) / (high - low) - 1, -1.0, 1.0)

    def _read_degrees_and_bounds(self):
        """Return the degrees and bounds to try, increasing."""
        degrees = _DEFAULT_DEGREES if isinstance(self.degree, str) else self.degree
        try:
            degrees = np.unique(np.asarray(degrees))
        except (TypeError, ValueError):
            # The entries are neither all numbers nor all texts.
            degrees = np.empty(0)
        try:
            bounds = np.unique(
                np.asarray(np.inf if self.l1 is None else self.l1, dtype=np.float64)
            )
        except (TypeError, ValueError):
            # The entries are not numbers.
            bounds = np.empty(0)
        has_integers = degrees.dtype.kind == "i" and len(degrees)
        if not has_integers or degrees[0] < 1 or degrees[-1] > 60:
            raise invalid_input(
                expected="degrees that are integers from 1 to 60",
                got=repr(self.degree),
                hint="Pass an int, a list of them or 'cv'",
            )
        if not len(bounds) or not bounds[0] > 0:
            raise invalid_input(
                "l1",
                expected="bounds l1 above 0",
                got=repr(self.l1),
                hint="Pass None for no bound",
            )
        return degrees.tolist(), bounds.tolist()

    def _fit_polynomials_by_part_and_bound(
        self, moments_by_part, degree, bounds, moved_constraints, tol=1e-10
    ):
        """Fit each part of the data for each bound.

        None if constraints cannot be satisfied.
        """
        if moved_constraints is None and self.solver in ("auto", "ipm"):
            from .._kernels._monotone_program import fit_bounded_polynomials

            return fit_bounded_polynomials(moments_by_part, degree, bounds, tol)
        from .._kernels._monotone_program import fit_polynomial_by_cvxpy

        name = None if self.solver == "cvxpy" else "CLARABEL"
        return [
            [
                fit_polynomial_by_cvxpy(
                    *moments, degree, bound, name, moved_constraints
                )
                for bound in bounds
            ]
            for moments in moments_by_part
        ]

    def _choose_degree_and_bound(
        self, x, share, mass, degrees, bounds, moved_constraints
    ):
        """Choose the degree and the bound with the smallest held-out error."""
        from .._kernels._monotone_program import compute_chebyshev_t_yt_and_y2_means

        # The points are sorted, so every fold covers the whole range of scores.
        fold = np.arange(len(x)) % self.cv
        # The first fold is the largest, so fits without it have the fewest rows.
        max_degree = len(x) - -(-len(x) // self.cv) - 1
        degrees = [degree for degree in degrees if degree <= max_degree]
        if len(x) < 2 * self.cv or not degrees:
            return self._find_smallest_degree(
                x,
                share,
                mass,
                bounds[-1],
                moved_constraints,
            ), bounds[-1]
        sums = []
        for f in range(self.cv):
            rows = fold == f
            mean_t, mean_y, _ = compute_chebyshev_t_yt_and_y2_means(
                x[rows],
                share[rows],
                mass[rows],
                degrees[-1],
            )
            total = mass[rows].sum()
            # Moments are sums over rows: those of all folds but one are a difference,
            # and no fold is read twice.
            sums.append((total * mean_t, total * mean_y, total))
        all_sums = [sum(parts) for parts in zip(*sums, strict=True)]
        fit_moments = []
        for held in sums:
            mean_t, mean_y, total = (w - h for w, h in zip(all_sums, held, strict=True))
            fit_moments.append((mean_t / total, mean_y / total, 0.0))
        losses = np.zeros((len(degrees), len(bounds)))
        for i, degree in enumerate(degrees):
            # A looser tolerance is enough to compare candidates.
            for f, fits in enumerate(
                self._fit_polynomials_by_part_and_bound(
                    fit_moments, degree, bounds, moved_constraints, 1e-8
                )
            ):
                rows = fold == f
                held = x[rows], share[rows], mass[rows]
                for j, fit in enumerate(fits):
                    if fit is None:
                        losses[i, j] = np.inf
                    elif self.selection == "brier":
                        losses[i, j] += _compute_loss_up_to_constant(
                            fit.chebyshev_coef, sums[f]
                        )
                    else:
                        losses[i, j] += _compute_max_gap_over_bins(
                            fit.chebyshev_coef, *held
                        )
        i, j = np.unravel_index(losses.argmin(), losses.shape)
        # If the highest degree has no finite loss either, `_fit` warns.
        if not np.isfinite(losses[i, j]):
            return degrees[-1], bounds[-1]
        return degrees[i], bounds[j]

    def _find_smallest_degree(self, x, share, mass, bound, moved_constraints):
        """Return the smallest degree that satisfies the constraints; 1 without any."""
        from .._kernels._monotone_program import compute_chebyshev_t_yt_and_y2_means

        for degree in range(
            1, 1 if moved_constraints is None else len(x) + len(moved_constraints.x)
        ):
            data = [compute_chebyshev_t_yt_and_y2_means(x, share, mass, degree)]
            if (
                self._fit_polynomials_by_part_and_bound(
                    data, degree, [bound], moved_constraints
                )[0][0]
                is not None
            ):
                return degree
        return 1

    # -- constraints of the user's own

    def _parse_constraints(self):
        """Parse and check the constraints; None without any."""
        if self.constraints is None or len(self.constraints) == 0:
            return None
        if self.solver == "ipm":
            raise invalid_input(
                expected="a solver of programs with constraints",
                got="solver='ipm'",
                hint="Use solver='auto'",
            )
        if len(self.constraints) > _MAX_CONSTRAINTS:
            raise invalid_input(
                expected=f"at most {_MAX_CONSTRAINTS} constraints",
                got=str(len(self.constraints)),
                hint="Bound the map at fewer points",
            )
        parts = [_parse_constraint(entry, self.scale) for entry in self.constraints]
        *columns, texts = zip(*parts, strict=True)
        constraints = _BoundsAtProbabilities(*map(np.array, columns), texts)
        p = constraints.probability
        slope = constraints.is_slope
        for i, j in np.argwhere(constraints.low[:, None] > constraints.high):
            # The values increase, so a lower bound also applies to all points behind
            # it.
            is_ahead = p[i] <= p[j] and not slope[i]
            if slope[i] == slope[j] and (is_ahead or p[i] == p[j]):
                raise invalid_input(
                    expected="constraints that a map that rises can fulfil",
                    got=f"{constraints.text[i]} and {constraints.text[j]}",
                    hint="Drop one",
                )
        return constraints

    def _compute_score_at(self, p):
        return self._round_score(np.column_stack([1 - p, p]))

    def _compute_domain_coordinate_slope(self, p):
        """Compute how fast the domain moved to [-1, 1] passes at probabilities."""
        # d x / d p, for x linear in the score, which is p or its log-odds.
        slope = 2 / (self.domain_[1] - self.domain_[0])
        return (
            slope / (p * (1 - p)) if self.scale == "logit" else np.full(len(p), slope)
        )

    def _make_domain_value_and_slope_bounds(self, constraints):
        """Return the constraints on the domain moved to [-1, 1]."""
        from .._kernels._monotone_program import ValueAndSlopeBounds

        pace = np.where(
            constraints.is_slope,
            self._compute_domain_coordinate_slope(constraints.probability),
            1.0,
        )
        x = self._to_polynomial_domain(self._compute_score_at(constraints.probability))
        return ValueAndSlopeBounds(
            x,
            constraints.is_slope,
            constraints.low / pace,
            constraints.high / pace,
        )

    def _measure_violation(self, constraints, moved_constraints):
        """Compute by how much the map misses its constraints, in their own units."""
        pace = np.where(
            constraints.is_slope,
            self._compute_domain_coordinate_slope(constraints.probability),
            1.0,
        )
        values = moved_constraints.make_matrix(self.degree_) @ self.coef_ * pace
        return float(
            np.maximum(constraints.low - values, values - constraints.high).max(
                initial=0.0
            )
        )

    def _impossible_constraints_error(self, constraints, what):
        return invalid_input(
            "constraints",
            expected=f"constraints that {what} can fulfil",
            got=", ".join(constraints.text[:4])
            + ("" if len(constraints.text) <= 4 else ", ..."),
            hint="Use a higher degree, a larger bound l1, or fewer constraints",
        )


class _BoundsAtProbabilities(NamedTuple):
    """Constraints by the probability: `low` <= P or its slope at `probability` <= `high`."""

    probability: FloatArray
    is_slope: AnyArray
    low: FloatArray
    high: FloatArray
    text: tuple[str, ...]


def _parse_constraint(entry, scale) -> tuple[float, bool, float, float, str]:
    """Parse a constraint into (at, slope, low, high, text)."""
    expected = "constraints as (quantity, at, relation, bound)"
    hint = "Write for instance ('value', 0.0, '==', 0.0) or ('slope', 0.5, '<=', 2.0)"
    got = repr(entry)[:80]
    if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 4:
        raise invalid_input(expected=expected, got=got, hint=hint)
    quantity, probability, relation, bound = entry
    if quantity not in ("value", "slope") or relation not in ("<=", ">=", "=="):
        expected += ", quantity 'value' or 'slope', relation '<=', '>=' or '=='"
        raise invalid_input(expected=expected, got=got, hint=hint)
    are_numbers = all(
        isinstance(v, Real) and not isinstance(v, bool) for v in (probability, bound)
    )
    if (
        not are_numbers
        or not 0 <= probability <= 1
        or (scale == "logit" and probability in (0, 1))
    ):
        allowed_range = (
            "strictly between 0 and 1 on the log-odds"
            if scale == "logit"
            else "from 0 to 1"
        )
        raise invalid_input(
            "constraints",
            expected=f"constraints at probabilities {allowed_range}",
            got=got,
            hint=hint,
        )
    if not 0 <= bound <= (1 if quantity == "value" else np.finfo(float).max):
        allowed_bounds = (
            "values from 0 to 1" if quantity == "value" else "slopes of at least 0"
        )
        raise invalid_input(
            "constraints",
            expected=f"constraints with bounds on {allowed_bounds}",
            got=got,
            hint=hint,
        )
    is_slope = quantity == "slope"
    name = "P'" if is_slope else "P"
    low = -np.inf if relation == "<=" else float(bound)
    high = np.inf if relation == ">=" else float(bound)
    return (
        float(probability),
        is_slope,
        low,
        high,
        f"{name}({float(probability):g}) {relation} {float(bound):g}",
    )


def _compute_loss_up_to_constant(coef, held):
    """Return sum w f^2 - 2 sum w y f of held-out rows, from their moments."""
    from .._kernels._monotone_program import compute_chebyshev_gram

    sum_t, sum_y, _ = held
    return (
        coef @ compute_chebyshev_gram(sum_t, len(coef)) @ coef
        - 2 * coef @ sum_y[: len(coef)]
    )


def _compute_max_gap_over_bins(coef, x, share, mass):
    """Compute the largest gap of 10 bins of equal mass."""
    bins = assign_values_to_bins(x, mass, 10, "quantile")
    gap = mass * (chebyshev.chebval(x, coef) - share)
    total, gaps = sum_bins(bins, 10, mass, gap)
    return float((np.abs(gaps) / np.maximum(total, 1e-300)).max())
