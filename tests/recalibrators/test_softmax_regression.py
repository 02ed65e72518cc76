"""Vector, matrix, structured and Dirichlet scaling: gradients of their objectives vanish."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy.optimize import minimize
from scipy.special import logsumexp

from sklearn_calib import canonical_proba
from sklearn_calib._kernels import _softmax_regression as kernel
from sklearn_calib._kernels._softmax_regression import fit_softmax_regression
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    DirichletCalibration,
    EnsembleTemperatureScaling,
    MatrixScaling,
    QuadraticScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)


def objective(theta, z, y, w, shape, ridge_a, ridge_b):
    A = theta[: np.prod(shape)].reshape(shape)
    b = theta[np.prod(shape) :]
    u = z + (z @ A.T if A.ndim == 2 else z * A) + b
    loss = w @ (logsumexp(u, axis=1) - u[np.arange(len(y)), y])
    return loss + (ridge_a * A**2).sum() + (ridge_b * b**2).sum()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("ridge", [1e-6, 1e-2, 1.0])
def test_certificate(full, k, ridge):
    rng = np.random.default_rng([k, full])
    z = 2 * rng.normal(size=(300, k))
    y = (
        z * rng.uniform(0.3, 1.5, k) + rng.normal(size=k) + rng.gumbel(size=(300, k))
    ).argmax(1)
    weight = rng.exponential(size=300)
    w = weight / weight.sum()
    shape = (k, k) if full else (k,)
    ridge_a = ridge * rng.uniform(0.5, 2, shape)
    fit = fit_softmax_regression(z.T, y, weight, ridge_a, ridge)
    assert fit.decrement < 1e-10 and fit.gradient_norm < 1e-4
    args = (z, y, w, shape, ridge_a, ridge)
    theta = np.r_[fit.A.ravel(), fit.b]
    assert objective(theta, *args) == pytest.approx(fit.objective, rel=1e-12)
    found = minimize(objective, theta, args=args, method="BFGS", options={"gtol": 1e-9})
    assert fit.objective <= found.fun + 1e-8
    for _ in range(30):
        assert (
            objective(theta + 1e-3 * rng.normal(size=theta.shape), *args)
            >= fit.objective - 1e-9
        )


def test_structured_penalties():
    """SVS and SMS minimise their published objectives."""
    proba, y = make_overconfident(4, 300)
    w = np.full(300, 1 / 300)
    for cls in (StructuredVectorScaling, StructuredMatrixScaling):
        fit = cls().fit(proba, y)
        z = np.log(TemperatureScaling(laplace=True).fit(proba, y).predict_proba(proba))
        k, n = 4, 300
        ridge = np.full((k, k), k * (k - 1) / n)
        np.fill_diagonal(ridge, k / n)
        ridge = np.diag(ridge) if cls is StructuredVectorScaling else ridge
        A = fit.coef_ - (1 if fit.coef_.ndim == 1 else np.eye(k))
        theta = np.r_[A.ravel(), fit.intercept_]
        value = objective(theta, z, y, w, fit.coef_.shape, ridge, k / n)
        assert value == pytest.approx(fit.objective_, rel=1e-9)


def test_more_freedom_fits_better():
    proba, y = make_overconfident(5, 3000)
    losses = [
        log_loss(y, m.fit(proba, y).predict_proba(proba))
        for m in (TemperatureScaling(), VectorScaling(0.0), MatrixScaling(1e-8))
    ]
    assert losses[0] >= losses[1] >= losses[2]
    small, ys = make_overconfident(5, 40)
    near = StructuredMatrixScaling(1e5).fit(small, ys).predict_proba(small)
    smooth = TemperatureScaling(laplace=True).fit(small, ys).predict_proba(small)
    np.testing.assert_allclose(near, smooth, atol=1e-3)


def test_vector_scaling_undoes_a_shift():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20_000, 3)) * 1.5
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    shifted = canonical_proba(2 * z + [1.0, 0.0, -2.0], kind="logits")
    out = VectorScaling(0.0).fit(shifted, y).predict_proba(shifted)
    np.testing.assert_allclose(out, canonical_proba(z, kind="logits"), atol=0.03)


def test_dirichlet_off_diagonal_penalty():
    proba, y = make_overconfident(4, 500)
    strong = DirichletCalibration(1e6).fit(proba, y)
    off = strong.coef_[~np.eye(4, dtype=bool)]
    assert np.abs(off).max() < 1e-4 and np.abs(strong.intercept_).max() < 1e-4
    weak = DirichletCalibration(1e-8, intercept_penalty=1.0).fit(proba, y)
    assert np.abs(weak.coef_[~np.eye(4, dtype=bool)]).max() > 1e-2
    assert weak.objective_ < strong.objective_


def test_quadratic_score_equations():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 4000)
    x = np.where(y, rng.normal(1, 2, 4000), rng.normal(-1, 1, 4000))
    quadratic = QuadraticScaling().fit(canonical_proba(x, kind="logits"), y)
    residual = quadratic.predict_proba(canonical_proba(x, kind="logits"))[:, 1] - y
    for column in (x**2, x, np.ones_like(x)):
        assert abs(residual @ column) / 4000 < 1e-8
    # log-odds of N(1, 4) against N(-1, 1): x^2 (1 - 1/4) / 2 + x (1/4 + 1) + ...
    assert quadratic.a_ == pytest.approx(0.375, abs=0.06)
    assert quadratic.b_ == pytest.approx(1.25, abs=0.12)


def test_ensemble_temperature_kkt():
    proba, y = make_overconfident(4, 800, random_state=3)
    y[::7] = (y[::7] + 1) % 4
    ets = EnsembleTemperatureScaling().fit(proba, y)
    parts = np.stack([p[np.arange(800), y] for p in ets._compute_parts(proba)])
    gain = (parts / (ets.weights_ @ parts)).mean(axis=1)
    assert gain.max() <= 1 + 1e-5
    assert np.abs(gain[ets.weights_ > 1e-4] - 1).max() < 1e-4
    assert ets.loss_ <= ets.temperature_scaling_.loss_ + 1e-9
    assert np.array_equal(ets.predict(proba), proba.argmax(axis=1))


def confused(n, k, seed=0):
    """Logits of an overconfident model that confuses classes of one group."""
    rng = np.random.default_rng(seed)
    group = np.arange(k) // 5
    z = 1.3 * rng.normal(size=(n, k)) + 1.2 * rng.normal(size=(n, k // 5))[:, group]
    y = rng.integers(0, k, n)
    z += 1.2 * (group == group[y][:, None])
    z[np.arange(n), y] += rng.normal(3.2, 2.0, n)
    return canonical_proba(2 * z + 0.4 * rng.normal(size=k), kind="logits"), y


def gain_over_temperature(n, k, seed):
    proba, y = confused(n + 20_000, k, seed)
    dirichlet, temperature = (
        log_loss(y[n:], make().fit(proba[:n], y[:n]).predict_proba(proba[n:]))
        for make in (DirichletCalibration, TemperatureScaling)
    )
    return temperature - dirichlet


@pytest.mark.slow
def test_dirichlet_is_no_worse_than_temperature_on_fresh_rows():
    gains = [gain_over_temperature(1000, 20, seed) for seed in range(3)]
    assert np.mean(gains) > 0 and min(gains) > -0.005


@pytest.mark.slow
def test_dirichlet_with_a_hundred_classes():
    """With a penalty of 1.0 on the mean square the loss is 5.96 nats, beside 2.34."""
    assert gain_over_temperature(5000, 100, 0) > 0.005


def test_dirichlet_finds_a_map_that_temperature_cannot():
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(6000, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    mixed = canonical_proba(
        z @ [[1, 0, 0, 0], [0.6, 1, 0, 0], [-0.6, 0, 1, 0], [0, 0, 0, 1]]
        + [1, 0, 0, 0],
        kind="logits",
    )
    auto = DirichletCalibration().fit(mixed, y)
    error = np.abs(auto.predict_proba(mixed) - canonical_proba(z, kind="logits")).mean()
    assert error < 0.01
    assert (
        auto.off_diagonal_penalty_ <= 12 / 6000
        and 0 < auto.leave_one_out_loss_ < np.log(4)
    )
    few = DirichletCalibration().fit(*make_overconfident(4, 60))
    assert few.off_diagonal_penalty_ > 12 / 60


@pytest.mark.parametrize("labels", ["reversed", "separated"])
def test_dirichlet_where_temperature_has_no_optimum(labels):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    y = proba.argmin(axis=1) if labels == "reversed" else proba.argmax(axis=1)
    dirichlet = DirichletCalibration().fit(proba, y)
    assert np.mean(dirichlet.predict(proba) == y) > 0.9


def test_dirichlet_two_ways_to_penalise():
    proba, y = make_overconfident(3, 100)
    with raises_invalid_input(
        ValueError, expected="intercept_penalty=None beside penalty='auto'"
    ):
        DirichletCalibration(intercept_penalty=1.0).fit(proba, y)


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [False, True])
def test_large_tables_take_the_hessian_of_some_rows(monkeypatch, heavy):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(5, 120_000))
    codes = (z * rng.uniform(0.5, 1.5, 5)[:, None] + rng.gumbel(size=z.shape)).argmax(
        axis=0
    )
    weight = rng.exponential(size=120_000) ** (4 if heavy else 0)
    given = z, codes, weight, np.full(5, 1e-6), 1e-6
    some = kernel.fit_softmax_regression(*given)
    looked_at = []
    solver = kernel.make_diagonal_model_solver
    monkeypatch.setattr(
        kernel,
        "make_diagonal_model_solver",
        lambda *a: looked_at.append(a[0].shape[1]) or solver(*a),
    )
    assert kernel.fit_softmax_regression(*given).objective == some.objective
    assert looked_at[0] == 40_000
    monkeypatch.setattr(kernel, "_MAX_EXACT_ENTRIES", np.inf)
    every = kernel.fit_softmax_regression(*given)
    assert looked_at[-1] == 120_000
    assert abs(some.objective - every.objective) < 1e-12
    assert some.n_iter <= every.n_iter + 6


def test_a_hessian_without_a_factor_is_solved_by_least_squares(monkeypatch):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 50).T
    given = rng.normal(size=(3, 50)), rng.random(50), proba, np.full(3, 0.01), 0.01
    right = rng.normal(size=6)
    expected = kernel.make_diagonal_model_solver(*given)(right)

    def refuse(matrix):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(kernel, "cho_factor", refuse)
    found = kernel.make_diagonal_model_solver(*given)(right)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
