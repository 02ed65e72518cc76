"""Logistic fits under sign constraints: the conditions of optimality, and where there is none."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from scipy.special import expit

from sklearn_calib._kernels._logistic import (
    can_interval_separate_classes,
    fit_logistic,
    threshold_separates,
    zero_separates,
)


def loss(features, y, w, coef):
    z = features @ coef
    return w @ np.logaddexp(0, np.where(y == 1, -z, z)) / w.sum()


def columns_of(p):
    return np.column_stack(
        [np.log(p) - np.log(p.max()), np.log1p(-p.min()) - np.log1p(-p)]
    )


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    centre=st.floats(0.02, 0.98),
    width=st.floats(1e-4, 1.0),
    slope=st.floats(-4, 4),
    weights=st.sampled_from([0, 1, 3]),
    constrained=st.sampled_from([(), (0,), (0, 1)]),
)
def test_conditions_of_optimality(seed, centre, width, slope, weights, constrained):
    """Free coefficients have gradient 0, those at 0 none that points inwards, in units of loss."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, 80)
    p = centre + width * min(centre, 1 - centre) * u * 0.999
    y = (rng.random(80) < expit(slope * u + rng.normal())).astype(int)
    y[:4], p[:4] = (0, 1, 0, 1), p[[0, 0, 1, 1]]  # finite: two scores have both classes
    w = rng.exponential(size=80) ** weights
    features = np.column_stack([columns_of(p), np.ones(80)])
    if can_interval_separate_classes(p, y):
        return
    fit = fit_logistic(features, y.astype(float), w, constrained)
    residual = w * (expit(features @ fit.coef) - y) / w.sum()
    assert (fit.coef[list(constrained)] >= 0).all()
    centred = features - np.r_[features[:, :2].mean(axis=0), 0]
    sizes = np.sqrt(np.mean(centred**2, axis=0))
    gradient = centred.T @ residual / sizes
    held = np.array([j in constrained and fit.coef[j] == 0 for j in range(3)])
    assert (
        np.abs(gradient[~held]) < 1e-6
    ).all()  # digits of features in a narrow range
    assert (gradient[held] > -1e-6).all()
    # terms that cancel
    rounding = 1e-13 + 1e-16 * np.max(np.abs(features) @ np.abs(fit.coef))
    assert fit.loss == pytest.approx(loss(features, y, w, fit.coef), abs=rounding)
    for _ in range(20):
        other = fit.coef * np.exp(rng.normal(size=3) * 10.0 ** -rng.integers(0, 9, 3))
        assert loss(features, y, w, other) >= fit.loss - 10 * rounding


@pytest.mark.filterwarnings(
    "ignore:Solution may be inaccurate"
)  # an older Clarabel reports it
@pytest.mark.parametrize("half", [0.2, 0.05, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_equals_a_conic_solver(half, seed):
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, 200)
    p = 0.3 + half * u
    y = (rng.random(200) < expit(2 * u + rng.normal())).astype(int)
    w = rng.exponential(size=200)
    features = columns_of(p)
    fit = fit_logistic(
        np.column_stack([features, np.ones(200)]), y.astype(float), w, (0, 1)
    )
    unit = features / np.abs(features).max(axis=0)
    a, c = cp.Variable(2, nonneg=True), cp.Variable()
    z = unit @ a + c
    objective = (w / w.sum()) @ (cp.logistic(z) - cp.multiply(y, z))
    solved = cp.Problem(cp.Minimize(objective)).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    assert fit.loss == pytest.approx(solved, abs=2e-9)


def test_rows_of_huge_features():
    """One row at 1e150 does not hide the slope that the others need."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=200)
    y = (rng.random(200) < expit(2 * s)).astype(float)
    few = fit_logistic(np.column_stack([s, np.ones(200)]), y, np.ones(200))
    s, y = np.append(s, 1e150), np.append(y, 1.0)
    for sign in (1, -1):
        all_rows = fit_logistic(
            np.column_stack([sign * s, np.ones(201)]), y, np.ones(201)
        )
        np.testing.assert_allclose(all_rows.coef, few.coef * [sign, 1], rtol=1e-6)


def test_collinear_columns_share():
    """Equal columns: the least step is taken, so that neither is preferred."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=100)
    y = (rng.random(100) < expit(2 * s)).astype(float)
    fit = fit_logistic(np.column_stack([s, s, np.ones(100)]), y, np.ones(100), (0, 1))
    alone = fit_logistic(np.column_stack([s, np.ones(100)]), y, np.ones(100))
    np.testing.assert_allclose(
        fit.coef, [alone.coef[0] / 2, alone.coef[0] / 2, alone.coef[1]]
    )


def separable(features, codes, nonnegative):
    """By linear programs: is a direction wrong in no row and right in some?"""
    sign = np.where(codes == 1, 1.0, -1.0)
    margins = sign[:, None] * features
    bounds = [(0 if j in nonnegative else -1, 1) for j in range(features.shape[1])]
    found = linprog(
        -margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(codes)), bounds=bounds
    )
    return -found.fun > 1e-9


@pytest.mark.slow
def test_infinite_likelihoods_by_linear_programs():
    """Few whole scores, ties among them, labelled at random: exactly the infinite ones."""
    seen = set()
    for case in range(60):
        rng = np.random.default_rng(case)
        s = rng.integers(-2, 4, 1 + case % 6).astype(float)
        one, p = np.ones(len(s)), expit(s)
        square = np.column_stack([s * s, s, one])
        straight = np.column_stack([s, one])
        anchored = np.column_stack([np.log(2 * p), -np.log(2 * (1 - p))])
        for y in rng.integers(0, 2, (4, len(s))):
            found = (
                threshold_separates(s, y),
                threshold_separates(s, y, increasing=True),
                zero_separates(s, y),
                can_interval_separate_classes(s, y),
            )
            assert found == (
                separable(straight, y, ()),
                separable(straight, y, (0,)),
                separable(anchored, y, (0, 1)),
                separable(square, y, ()),
            ), (s, y)
            seen.add(found)
    assert len(seen) == 5  # each condition implies the next
