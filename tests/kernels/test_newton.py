"""The damped Newton method: minima with and without bounds, starts far away, ends at rounding."""

import numpy as np
import pytest
from cases import run_every_case
from scipy.optimize import lsq_linear, minimize
from scipy.special import expit

from sklearn_calib._kernels._newton import (
    minimise_by_newton,
    solve_bounded_step,
    solve_newton_step_and_decrement,
)


def logistic(seed, ridge=0.1):
    """A penalised logistic regression: its value, and its step under bounds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4)) * [1, 3, 0.1, 1]
    y = rng.random(60) < expit(X[:, 0] - X[:, 3])

    def evaluate(theta):
        z = X @ theta
        return np.logaddexp(0, np.where(y, -z, z)).sum() + ridge * theta @ theta / 2, z

    def direction(theta, z, lowest=-np.inf):
        p = expit(z)
        gradient = X.T @ (p - y) + ridge * theta
        hessian = (X.T * (p * (1 - p))) @ X + ridge * np.eye(4)
        return solve_newton_step_and_decrement(hessian, gradient, lowest - theta)

    return evaluate, direction


@run_every_case("seed", range(5))
@run_every_case("start", [0.0, 30.0])
@run_every_case("lowest", [-np.inf, np.array([0.0, 0.0, -np.inf, 0.0])])
def test_a_minimum_from_near_and_far(seed, start, lowest):
    """Full steps from 30 overshoot; what scipy finds is never better."""
    evaluate, direction = logistic(seed)
    end = minimise_by_newton(
        evaluate, lambda *at: direction(*at, lowest), np.full(4, start), 1e-9, lowest
    )
    bounds = [(None if np.isneginf(low) else low, None) for low in lowest + np.zeros(4)]
    found = minimize(
        lambda theta: evaluate(theta)[0], np.ones(4), bounds=bounds, tol=1e-13
    )
    assert (end.theta >= lowest).all()
    assert end.value <= found.fun + 1e-9
    assert end.value == pytest.approx(evaluate(end.theta)[0], abs=1e-12)
    assert 0 <= end.decrement <= 1e-9


def test_it_ends_where_rounding_allows_no_more():
    evaluate, direction = logistic(0)
    end = minimise_by_newton(evaluate, direction, np.zeros(4), 0.0)
    again = minimise_by_newton(evaluate, direction, end.theta + 1e-9, 0.0)
    assert end.n_iter < 20
    np.testing.assert_allclose(end.theta, again.theta, rtol=1e-13, atol=1e-14)


def test_steps_are_halved_and_no_bound_is_crossed():
    """sqrt(1 + x^2), whose Newton steps diverge from beyond 1, and x - log x, infinite below 0."""

    def root(x):
        return float(np.sqrt(1 + x @ x)), None

    def of_root(x, _):
        size = np.sqrt(1 + x**2)
        step = -x / size * size**3
        return step, float(-(x / size) @ step)

    assert (
        abs(minimise_by_newton(root, of_root, np.array([5.0]), 1e-12).theta[0]) < 1e-6
    )

    def barrier(x):
        with np.errstate(divide="ignore"):
            return float(x[0] - np.log(x[0])), None

    def of_barrier(x, _):
        return solve_newton_step_and_decrement(np.diag(x**-2), 1 - 1 / x, -x)

    end = minimise_by_newton(barrier, of_barrier, np.array([20.0]), 1e-20, 0.0)
    assert end.theta[0] == pytest.approx(1, abs=1e-12)


def test_a_step_that_is_not_trusted_is_not_the_last_one():
    evaluate, direction = logistic(1)
    first = minimise_by_newton(evaluate, direction, np.zeros(4), 1e9)
    seen = []
    other = minimise_by_newton(
        evaluate,
        direction,
        np.zeros(4),
        1e9,
        is_trusted=lambda *at: seen.append(at) or len(seen) > 2,
    )
    assert (first.n_iter, other.n_iter) == (1, 3)
    assert other.decrement < first.decrement


@run_every_case("seed", range(6))
def test_the_nearest_step_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    root, pull = rng.normal(size=(5, 5)), 3 * rng.normal(size=5)
    lowest = np.where(rng.random(5) < 0.6, -0.3 * rng.random(5), -np.inf)
    expected = lsq_linear(root, pull, (lowest, np.inf), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(
        solve_bounded_step(root, pull, lowest), expected, atol=1e-9
    )
    gradient = -root.T @ pull
    step, decrement = solve_newton_step_and_decrement(root.T @ root, gradient, lowest)
    np.testing.assert_allclose(step, expected, atol=1e-6)
    assert decrement == pytest.approx(-gradient @ step)
