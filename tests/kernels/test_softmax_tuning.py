"""Penalties chosen by approximate leave-one-out, beside fits without each row."""

import numpy as np
import pytest
from scipy.special import logsumexp

from sklearn_calib._kernels import _softmax_regression as regression
from sklearn_calib._kernels._softmax_regression import fit_softmax_regression
from sklearn_calib._kernels._softmax_tuning import (
    compute_leave_one_out_losses,
    fit_tuned_softmax_regression,
)


def problem(n, k, seed=0, slope=0.5):
    rng = np.random.default_rng([seed, k])
    z = 2 * rng.normal(size=(k, n))
    y = (slope * z + rng.normal(size=(k, 1)) + rng.gumbel(size=z.shape)).argmax(axis=0)
    return z, y


def ridges(k, off, own):
    full = np.full((k, k), off)
    np.fill_diagonal(full, own)
    return full, own


def losses(z, y, fit):
    u = z + fit.A @ z + fit.b[:, None]
    return logsumexp(u, axis=0) - u[y, np.arange(len(y))]


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("strength", [1e-3, 1e-2, 1e-1])
def test_leave_one_out(k, strength):
    """What a row adds to its own fit is found within a quarter, and never missed."""
    n = 150
    z, y = problem(n, k)
    w, pair = np.full(n, 1 / n), ridges(k, 3 * strength, strength)
    fit = fit_softmax_regression(z, y, w, *pair)
    found = compute_leave_one_out_losses(z, y, w, 1 / n, fit, *pair).mean()
    exact = []
    for i in range(n):
        rest = np.arange(n) != i
        # the penalties belong to the mean over n rows
        scaled = [part * n / (n - 1) for part in pair]
        without = fit_softmax_regression(
            z[:, rest], y[rest], np.ones(n - 1), *scaled, start=fit
        )
        exact.append(losses(z[:, [i]], y[[i]], without)[0])
    optimism = np.mean(exact) - losses(z, y, fit).mean()
    assert optimism > 0
    assert found - losses(z, y, fit).mean() == pytest.approx(optimism, rel=0.25)


def test_a_weight_is_a_repetition():
    z, y = problem(120, 3)
    weight = np.random.default_rng(0).integers(1, 4, 120).astype(float)
    pair, n = ridges(3, 0.02, 0.01), weight.sum()
    fit = fit_softmax_regression(z, y, weight, *pair)
    one = compute_leave_one_out_losses(z, y, weight / n, 1 / n, fit, *pair)
    rows = np.repeat(np.arange(120), weight.astype(int))
    two = compute_leave_one_out_losses(
        z[:, rows], y[rows], np.full(len(rows), 1 / n), 1 / n, fit, *pair
    )
    np.testing.assert_allclose(one[rows], two, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "slope"), [(100, 1.0), (3000, 0.5), (9000, 0.5)])
def test_the_choice_is_near_the_best_of_a_grid(n, slope):
    """On fresh rows; 9000 rows are more than choose."""
    z, y = problem(n + 40_000, 6, seed=1, slope=slope)
    if slope == 0.5:  # what the penalties are for: one class goes with another
        z[0] += 0.7 * z[1]
    fresh, z, y = (z[:, n:], y[n:]), np.ascontiguousarray(z[:, :n]), y[:n]
    tuned = fit_tuned_softmax_regression(z, y, np.ones(n), n)
    grid = [
        losses(
            *fresh,
            fit_softmax_regression(z, y, np.ones(n), *ridges(6, a * 30 / n, d * 6 / n)),
        ).mean()
        for a in 10.0 ** np.arange(-2, 4)
        for d in 10.0 ** np.arange(-2, 4, 2)
    ]
    gap = losses(*fresh, tuned.fit).mean() - min(grid)
    assert gap < 0.25 * (np.median(grid) - min(grid)) + 1e-3


@pytest.mark.parametrize("ridge", [1e-4, 1.0])
def test_both_preconditioners_find_the_optimum(ridge, monkeypatch):
    z, y = problem(4000, 12)
    pair = ridges(12, ridge, ridge / 10)
    monkeypatch.setattr(regression, "_MAX_PRECONDITIONER_WORK", 1)  # some rows only
    one = fit_softmax_regression(z, y, np.ones(4000), *pair)
    monkeypatch.setattr(regression, "_MAX_BLOCK_PRECONDITIONER_CLASSES", 0)
    two = fit_softmax_regression(z, y, np.ones(4000), *pair)
    np.testing.assert_allclose(one.A, two.A, atol=1e-5)
    assert one.objective == pytest.approx(two.objective, abs=1e-11)
    assert max(one.decrement, two.decrement) < 1e-11
