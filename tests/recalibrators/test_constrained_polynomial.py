"""Linear constraints of a user's own on the restricted polynomial."""

import re
import warnings

import cvxpy as cp
import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from numpy.polynomial import chebyshev
from sklearn.base import clone

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.recalibrators import RestrictedPolynomialRegression

ORIGIN = [("value", 0.0, "==", 0.0)]
SETS = {
    "origin": ORIGIN,
    "both ends": [*ORIGIN, ("value", 1.0, "==", 1.0)],
    "ceiling": [("value", 0.9, "<=", 0.6)],
    "floor": [("value", 0.3, ">=", 0.35), ("value", 0.1, "<=", 0.2)],
    "steep": [("slope", 0.25, ">=", 1.3)],
    "flat": [("slope", 0.75, "==", 0.2), ("value", 0.5, "==", 0.5)],
}


def sample(n=400):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.97, n)
    return p, (rng.random(n) < 0.15 + 0.6 * p**2).astype(int), rng.integers(1, 4, n)


def fitted(constraints, degree=4, **options):
    p, y, w = sample()
    rpr = RestrictedPolynomialRegression(degree, constraints=constraints, **options)
    return rpr.fit(p, y, sample_weight=w), p, y, w


def score(rpr, p):
    return np.log(p / (1 - p)) if rpr.scale == "logit" else np.asarray(p, dtype=float)


def numbers(rpr, constraint):
    """The constrained number of the fitted map, from its predictions alone."""
    quantity, at, _, _ = constraint
    if quantity == "value":
        return rpr.predict_proba([at])[0, 1]
    step = 1e-5
    ends = np.clip([at - step, at + step], 0, 1)
    return np.diff(rpr.predict_proba(ends)[:, 1])[0] / np.diff(ends)[0]


def holds(rpr, constraint):
    _, _, relation, bound = constraint
    slack = 1e-6 if constraint[0] == "value" else 1e-4  # of differences
    number = numbers(rpr, constraint)
    below, above = number <= bound + slack, number >= bound - slack
    return {"<=": below, ">=": above, "==": below and above}[relation]


def loss(coef, rpr, p, y, w):
    low, high = rpr.domain_
    x = (2 * score(rpr, p) - low - high) / (high - low)
    return np.average((chebyshev.chebval(x, coef) - y) ** 2, weights=w)


def on_a_grid(rpr, p, y, w):
    """The least loss of a quadratic program: f' >= 0 at 2000 points, constraints as written."""
    low, high = rpr.domain_
    degree = len(rpr.coef_) - 1
    coef = cp.Variable(degree + 1)

    def row(at):
        unit = (2 * score(rpr, np.array(at)) - low - high) / (high - low)
        return chebyshev.chebvander(unit, degree)

    grid = np.cos(np.linspace(0, np.pi, 2000))
    slopes = chebyshev.chebval(grid, chebyshev.chebder(np.eye(degree + 1))).T
    ends = chebyshev.chebvander(np.array([-1.0, 1.0]), degree)
    limits = [slopes @ coef >= 0, ends[0] @ coef >= 0, ends[1] @ coef <= 1]
    for quantity, at, relation, bound in rpr.constraints:
        number = row(at) @ coef
        if quantity == "slope":
            near = np.clip([at - 1e-6, at + 1e-6], 0, 1)
            number = np.diff(row(near), axis=0)[0] @ coef / np.diff(near)[0]
        limits += [number <= bound] if relation != ">=" else []
        limits += [number >= bound] if relation != "<=" else []
    share = np.sqrt(w / w.sum())
    error = cp.sum_squares(cp.multiply(share, row(p) @ coef - y))
    return cp.Problem(cp.Minimize(error), limits).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("scale", ["proba", "logit"])
@pytest.mark.parametrize("name", SETS)
def test_the_best_of_the_maps_that_fulfil_them(name, scale):
    constraints = SETS[name]
    if scale == "logit":  # 0 and 1 have no log-odds
        constraints = [
            (q, np.clip(at, 0.01, 0.99), r, b) for q, at, r, b in constraints
        ]
    rpr, *rows = fitted(constraints, scale=scale)
    assert all(holds(rpr, constraint) for constraint in constraints)
    assert rpr.constraint_gap_ <= 1e-7
    assert rpr.optimality_gap_ <= 1e-7
    found, best = loss(rpr.coef_, rpr, *rows), on_a_grid(rpr, *rows)
    assert found == pytest.approx(best, abs=1e-6)
    grid = rpr.predict_proba(np.linspace(0, 1, 2001))[:, 1]
    assert np.diff(grid).min() >= -1e-12
    assert grid[0] >= 0 and grid[-1] <= 1
    # they matter: the free fit is better and does not fulfil them
    free, *_ = fitted(None, scale=scale)
    assert not all(holds(free, constraint) for constraint in constraints)


def test_the_gap_is_above_the_distance_to_the_optimum(monkeypatch):
    """Also if a solver stops early."""
    from sklearn_calib._kernels import _monotone_program as program

    best = fitted(SETS["flat"], 6)
    monkeypatch.setattr(
        program,
        "_TIGHT_SOLVER_TOLERANCES",
        dict.fromkeys(program._TIGHT_SOLVER_TOLERANCES, 1e-3),
    )
    with pytest.warns(CalibrationWarning) as told:  # of both gaps
        early = fitted(SETS["flat"], 6)
    assert "an optimality gap of at most 1e-06" in str(told[0].message)
    assert "misses its constraints by at most 1e-06" in str(told[1].message)
    above = loss(early[0].coef_, *early) - loss(best[0].coef_, *best)
    assert 1e-5 < above <= early[0].optimality_gap_


@pytest.mark.parametrize("constraints", [None, [], ()])
def test_without_constraints_nothing_changes(constraints):
    rpr, p, y, w = fitted(constraints)
    as_before = RestrictedPolynomialRegression(4).fit(p, y, sample_weight=w)
    assert np.array_equal(rpr.coef_, as_before.coef_)
    assert np.array_equal(rpr.domain_, as_before.domain_)
    assert rpr.constraint_gap_ == 0


def test_a_constraint_that_the_free_fit_fulfils():
    inactive = [("value", 0.5, "<=", 0.9), ("slope", 0.5, "<=", 50.0)]
    rpr, p, y, w = fitted(inactive, 6)
    free, *_ = fitted(None, 6)
    assert loss(rpr.coef_, rpr, p, y, w) == pytest.approx(
        loss(free.coef_, free, p, y, w), abs=1e-8
    )
    np.testing.assert_allclose(rpr.predict_proba(p), free.predict_proba(p), atol=1e-3)


def test_weights_are_repetition():
    rpr, p, y, w = fitted(SETS["floor"])
    same = RestrictedPolynomialRegression(4, constraints=SETS["floor"])
    same.fit(np.repeat(p, w), np.repeat(y, w))
    np.testing.assert_allclose(rpr.coef_, same.coef_, atol=1e-6)
    other = clone(same).fit(p, y)
    assert np.abs(other.coef_ - rpr.coef_).max() > 1e-3


def test_the_domain_reaches_to_the_points():
    rpr, p, *_ = fitted(ORIGIN)
    assert rpr.domain_ == pytest.approx([0, p.max()])
    low, lowest = rpr.predict_proba([0.0, p.min()])[:, 1]
    assert low <= 1e-7 and lowest > 0.005


def test_solvers_agree_and_l1_holds():
    one, p, *_ = fitted(SETS["ceiling"], 6, l1=0.9)
    assert one.l1_ == pytest.approx(0.9, rel=1e-5)
    for solver in ("clarabel", "cvxpy"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # of what cvxpy chooses
            other, *_ = fitted(SETS["ceiling"], 6, l1=0.9, solver=solver)
        np.testing.assert_allclose(
            other.predict_proba(p), one.predict_proba(p), atol=0.01
        )
    free, *_ = fitted(SETS["ceiling"], 6)
    assert free.l1_ > 1


@pytest.mark.slow
def test_degrees_that_cannot_are_not_taken():
    curved = [*ORIGIN, ("value", 0.5, "==", 0.1), ("value", 1.0, "==", 1.0)]
    assert fitted(curved, [1, 2, 3])[0].degree_ == 3
    assert fitted(curved, [1, 2, 5])[0].degree_ == 5
    for degree in (1, [1, 2]):
        with pytest.raises(
            ValueError, match=r"a rising polynomial of degree [12] can fulfil, got "
        ):
            fitted(curved, degree)
    few = RestrictedPolynomialRegression(constraints=curved).fit([0.2, 0.7], [0, 1])
    assert few.degree_ == 3
    assert all(holds(few, constraint) for constraint in curved)


def test_one_score():
    with pytest.warns(
        CalibrationWarning, match="at least two different rows of scores"
    ):
        line = RestrictedPolynomialRegression(constraints=ORIGIN).fit(
            [0.4] * 4, [0, 0, 0, 1]
        )
    np.testing.assert_allclose(line.predict_proba([0, 0.4])[:, 1], [0, 0.25], atol=1e-6)
    for relation, bound, expected in [
        ("<=", 0.1, 0.1),
        (">=", 0.6, 0.6),
        (">=", 0.1, 0.25),
    ]:
        rpr = RestrictedPolynomialRegression(
            constraints=[("value", 0.4, relation, bound)]
        )
        with pytest.warns(
            CalibrationWarning, match="at least two different rows of scores"
        ):
            rpr.fit([0.4] * 4, [0, 0, 0, 1])
        assert rpr.predict_proba([0.9])[0, 1] == pytest.approx(expected)
    rising = RestrictedPolynomialRegression(constraints=[("slope", 0.4, ">=", 1)])
    with (
        pytest.warns(CalibrationWarning, match="at least two different rows of scores"),
        raises_invalid_input(
            ValueError, expected=".*a constant, since all scores are equal, can fulfil"
        ),
    ):
        rising.fit([0.4] * 4, [0, 0, 0, 1])


def test_of_several_classes_each_map_obeys():
    proba, y = make_overconfident(3, 300)
    rpr = RestrictedPolynomialRegression(3, constraints=ORIGIN).fit(proba, y)
    for one in rpr.one_vs_rest_:
        assert one.constraints == ORIGIN
        assert one._predict_proba(np.array([[1.0, 0.0]]))[0, 1] <= 1e-7
    assert rpr.predict_proba([[0.0, 0.3, 0.7]])[0, 0] <= 1e-7


def test_copies_and_exports():
    rpr, p, *_ = fitted(SETS["both ends"])
    assert clone(rpr).get_params()["constraints"] == SETS["both ends"]
    assert rpr.constraints is SETS["both ends"]
    np.testing.assert_allclose(
        from_dict(to_dict(rpr)).predict_proba(p), rpr.predict_proba(p), atol=1e-12
    )


def test_a_gap_of_the_constraints_is_told(monkeypatch):
    monkeypatch.setattr(
        RestrictedPolynomialRegression, "_measure_violation", lambda *_: 1e-3
    )
    with pytest.warns(
        CalibrationWarning, match=r"a map that misses its constraints .* got 0.001"
    ):
        fitted(ORIGIN)


@run_every_case(
    ("constraints", "words"),
    [
        (("value", 0.0, "==", 0.0), "(quantity, at, relation, bound), got 'value'"),
        (
            [("value", 0.0, "==")],
            "(quantity, at, relation, bound), got ('value', 0.0, '==')",
        ),
        ([("level", 0.0, "==", 0.0)], "quantity 'value' or 'slope'"),
        ([("value", 0.0, "<", 0.0)], "relation '<=', '>=' or '=='"),
        ([(["value"], 0.0, "<=", 0.0)], "quantity 'value' or 'slope'"),
        ([("value", 1.2, "<=", 0.5)], "constraints at probabilities from 0 to 1"),
        ([("value", "0", "<=", 0.5)], "constraints at probabilities from 0 to 1"),
        ([("value", np.nan, "<=", 0.5)], "constraints at probabilities from 0 to 1"),
        ([("value", 0.5, "<=", 1.5)], "bounds on values from 0 to 1"),
        ([("value", 0.5, "<=", np.nan)], "bounds on values from 0 to 1"),
        ([("slope", 0.5, "<=", -1)], "bounds on slopes of at least 0"),
        ([("slope", 0.5, "<=", np.inf)], "bounds on slopes of at least 0"),
        (
            [("value", 0.2, ">=", 0.5), ("value", 0.7, "<=", 0.4)],
            "that a map that rises can fulfil, got P(0.2) >= 0.5 and P(0.7) <= 0.4",
        ),
        (
            [("slope", 0.2, "<=", 0.5), ("slope", 0.2, ">=", 1)],
            "got P'(0.2) >= 1 and P'(0.2) <= 0.5",
        ),
        ([("value", 0.2, ">=", 0.5)] * 201, "at most 200 constraints, got 201"),
    ],
)
def test_what_is_refused(constraints, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fitted(constraints)


def test_what_options_refuse():
    with raises_invalid_input(
        ValueError, expected=".*strictly between 0 and 1 on the log-odds"
    ):
        fitted(ORIGIN, scale="logit")
    with raises_invalid_input(
        ValueError,
        expected=".*a solver of programs with constraints",
        value="solver='ipm'",
    ):
        fitted(ORIGIN, solver="ipm")
    with pytest.raises(ValueError, match="The 'constraints' parameter"):
        fitted("P(0) = 0")
