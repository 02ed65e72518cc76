import numpy as np
import pytest
from cases import run_every_case

from sklearn_calib._kernels._trend_filter import (
    find_largest_penalty,
    fit_trend_and_get_multipliers_and_changes,
    fit_trend_filter,
)


def second_differences(x):
    """The matrix of the changes of slope."""
    inverse = 1 / np.diff(x)
    D = np.zeros((len(x) - 2, len(x)))
    for j in range(len(x) - 2):
        D[j, j : j + 3] = inverse[j], -inverse[j] - inverse[j + 1], inverse[j + 1]
    return D


def case(n, seed):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(n))
    y = (rng.random(n) < x).astype(float) if seed % 2 else rng.standard_normal(n)
    return x, y, rng.random(n) + 0.1


@pytest.mark.parametrize("n", [3, 4, 7, 60])
def test_the_smoother_solves_the_normal_equations(n):
    x, y, w = case(n, 0)
    rng = np.random.default_rng(n)
    m, q = rng.standard_normal(n - 2), rng.random(n - 2) + 0.1
    D = second_differences(x)
    b = np.linalg.solve(np.diag(w) + D.T @ np.diag(1 / q) @ D, w * y + D.T @ (m / q))
    values, u, change = fit_trend_and_get_multipliers_and_changes(
        np.diff(x), y, 1 / w, m, q
    )
    scale = np.abs(D).max()
    np.testing.assert_allclose(values, b, atol=1e-13 * scale**2)
    np.testing.assert_allclose(change, D @ b, atol=1e-13 * scale**2)
    np.testing.assert_allclose(w * (values - y) + D.T @ u, 0, atol=1e-13 * scale**2)


@run_every_case("seed", range(6))
@run_every_case("n", [3, 5, 40, 700])
def test_optimality(n, seed):
    """The multipliers lie in the box, and at a bend on its border: by double sums, without D."""
    x, y, w = case(n, seed)
    top = find_largest_penalty(x, y, w)
    for penalty in (top * 0.3, top * 1e-2, top * 1e-4):
        fit = fit_trend_filter(x, y, w, penalty)
        assert 0 <= fit.gap <= 1e-10 * n
        first = np.cumsum(w * (fit.values - y))
        u = np.cumsum(first[:-1] * np.diff(x))[:-1]
        assert abs(first[-1]) <= 1e-12 * n
        # by duality the loss is above the optimum by no more than this
        assert np.abs(u).max() <= penalty * (1 + 1e-5) + 1e-12
        np.testing.assert_allclose(np.abs(u[fit.knots - 1]), penalty, rtol=1e-3)
        drawn = np.interp(x, x[knots_of(fit, n)], fit.values[knots_of(fit, n)])
        np.testing.assert_allclose(drawn, fit.values, atol=2e-4)


def knots_of(fit, n):
    return np.concatenate([[0], fit.knots, [n - 1]])


def test_equals_the_program_written_out():
    cvxpy = pytest.importorskip("cvxpy")
    x, y, w = case(50, 1)
    penalty = 0.05 * find_largest_penalty(x, y, w)
    b = cvxpy.Variable(50)
    loss = cvxpy.sum(cvxpy.multiply(w, (b - y) ** 2)) / 2
    problem = cvxpy.Problem(
        cvxpy.Minimize(loss + penalty * cvxpy.norm1(second_differences(x) @ b))
    )
    problem.solve(solver=cvxpy.CLARABEL)
    np.testing.assert_allclose(
        fit_trend_filter(x, y, w, penalty).values, b.value, atol=1e-5
    )


def test_the_ends_of_the_path():
    x, y, w = case(30, 1)
    top = find_largest_penalty(x, y, w)
    line = np.polynomial.Polynomial.fit(x, y, 1, w=np.sqrt(w))(x)
    np.testing.assert_allclose(fit_trend_filter(x, y, w, top).values, line, atol=1e-12)
    assert len(fit_trend_filter(x, y, w, 0.999 * top).knots) >= 1
    np.testing.assert_array_equal(fit_trend_filter(x, y, w, 0.0).values, y)


def test_many_points_at_uneven_distances():
    """Distances from 1e-12 to 1: the condition of the normal equations would be 1e40."""
    rng = np.random.default_rng(0)
    x = np.cumsum(10.0 ** rng.uniform(-12, -4, 30_000))
    y = (rng.random(30_000) < x / x[-1]).astype(float)
    w = np.ones(30_000)
    fit = fit_trend_filter(x, y, w, 1e-3 * find_largest_penalty(x, y, w))
    assert fit.gap <= 1e-10 * 30_000
    assert 1 <= len(fit.knots) < 1000
    assert np.abs(fit.values - x / x[-1]).mean() < 0.05
