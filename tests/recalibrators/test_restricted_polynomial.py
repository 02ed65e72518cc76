import warnings

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from sklearn_calib._kernels._monotone_polynomial import fit_monotone, frame, moments
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import brier_loss
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    PlattScaling,
    RestrictedPolynomialRegression,
)


def fit(s, y, degree):
    low, high = np.min(s), np.max(s)
    x = (2 * np.asarray(s) - low - high) / (high - low)
    y = np.asarray(y, dtype=float)
    return fit_monotone(*moments(x, y, np.ones(len(x)), degree), degree), x


@pytest.mark.parametrize("name", ["rpr_unif", "rpr_ties60"])
def test_oracle(oracle, name):
    case = oracle("rpr.json")[name]
    s, t = np.array(case["s"]), np.array(case["t"])
    for expected in case["fits"]:
        found, _ = fit(s, case["y"], expected["k"])
        assert found.loss == pytest.approx(expected["mse"], abs=1e-9)
        x = (2 * np.clip(t, s.min(), s.max()) - s.min() - s.max()) / (s.max() - s.min())
        np.testing.assert_allclose(chebyshev.chebval(x, found.coef), expected["pred"], atol=1e-4)


def reference(x, y, degree):
    """The paper's program in Chebyshev nodes, written out for cvxpy."""
    cvxpy = pytest.importorskip("cvxpy")
    blocks, to_coef = frame(degree)
    squares = [cvxpy.Variable((b.shape[1], b.shape[1]), PSD=True) for b in blocks]
    start = cvxpy.Variable(nonneg=True)
    slopes = sum(
        cvxpy.reshape(cvxpy.diag(b @ U @ b.T), (degree,), order="F")
        for b, U in zip(blocks, squares, strict=True)
    )
    theta = cvxpy.hstack([start, slopes])
    values = chebyshev.chebvander(x, degree) @ to_coef
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(values @ theta - y) / len(y)), [cvxpy.sum(theta) <= 1]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cvxpy.CLARABEL)
    return problem.value


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8, 13])
def test_equals_the_program_written_out(degree):
    rng = np.random.default_rng(degree)
    s = rng.random(80)
    y = (rng.random(80) < s**2).astype(float)
    found, x = fit(s, y, degree)
    assert found.loss == pytest.approx(reference(x, y, degree), abs=1e-7)
    assert found.loss == pytest.approx(np.mean((chebyshev.chebval(x, found.coef) - y) ** 2))


def problems():
    rng = np.random.default_rng(0)
    for i in range(160):
        n, kind = int(rng.integers(3, 800)), i % 8
        s = rng.standard_cauchy(n) if kind == 2 else rng.random(n)
        s = np.round(s, 1) if kind == 1 else s
        s = 0.3 + 1e-9 * s if kind == 3 else s
        y = (rng.random(n) < np.clip(s, 0, 1)).astype(float)
        if kind == 4:
            y = (s > 0.5).astype(float)
        elif kind == 5:
            y = np.full(n, float(i % 2))
        elif kind == 6:
            y = (rng.random(n) > s).astype(float)
        degree = min(int(rng.integers(1, 41)), len(np.unique(s)) - 1)
        if degree >= 1:
            yield s, y, degree


def test_certificates():
    """Every fit is optimal to 1e-6, rises, stays within [0, 1] and is not below isotonic."""
    grid = np.cos(np.linspace(np.pi, 0, 5001))
    for s, y, degree in problems():
        found, x = fit(s, y, degree)
        assert found.gap <= 1e-6
        values = chebyshev.chebval(grid, found.coef)
        assert np.diff(values).min() >= -1e-12
        assert values[0] >= -1e-12
        assert values[-1] <= 1 + 1e-12
        from sklearn.isotonic import isotonic_regression

        order = np.argsort(x)
        levels, code = np.unique(x[order], return_inverse=True)
        mass = np.bincount(code)
        mean = np.bincount(code, y[order]) / mass
        iso = isotonic_regression(mean, sample_weight=mass)
        bound = np.mean((iso[code] - y[order]) ** 2)
        assert found.loss >= bound - 1e-9
        assert len(levels) > degree


def test_the_loss_falls_with_the_degree():
    rng = np.random.default_rng(0)
    s = rng.random(500)
    y = (rng.random(500) < (s > 0.5)).astype(float)
    losses = [fit(s, y, degree)[0].loss for degree in range(1, 25)]
    assert (np.diff(losses) <= 1e-8).all()


def curve(p):
    return 0.5 + 0.5 * (2 * p - 1) ** 3


def test_cross_validation_finds_a_degree():
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < curve(p)).astype(int)
    rpr = RestrictedPolynomialRegression().fit(p, y)
    assert 3 <= rpr.degree_ <= 8
    assert rpr.optimality_gap_ < 1e-8
    grid = np.linspace(0.01, 0.99, 99)
    error = np.abs(rpr.predict_proba(grid)[:, 1] - curve(grid)).mean()
    others = [
        np.abs(other.fit(p, y).predict_proba(grid)[:, 1] - curve(grid)).mean()
        for other in (PlattScaling(), IsotonicCalibration())
    ]
    assert error < min(others)
    line = RestrictedPolynomialRegression().fit(p, (rng.random(3000) < p).astype(int))
    assert line.degree_ <= 3
    assert brier_loss(y, rpr.predict_proba(p)) < brier_loss(y, line.predict_proba(p))


def test_degree_is_capped_by_the_distinct_scores():
    rpr = RestrictedPolynomialRegression(degree=10).fit([0.1, 0.1, 0.5, 0.9], [0, 1, 0, 1])
    assert rpr.degree_ == 2
    with pytest.warns(CalibrationWarning, match="at least two different rows of scores"):
        constant = RestrictedPolynomialRegression().fit([0.3] * 4, [0, 0, 0, 1])
    assert constant.degree_ == 0
    assert constant.predict_proba([0.9])[0, 1] == pytest.approx(0.25)


def test_log_odds_scale_and_constant_beyond_the_domain():
    rng = np.random.default_rng(0)
    p = 0.2 + 0.6 * rng.random(500)
    y = (rng.random(500) < p).astype(int)
    rpr = RestrictedPolynomialRegression(degree=3, scale="logit").fit(p, y)
    assert rpr.domain_ == pytest.approx([np.log(p / (1 - p)).min(), np.log(p / (1 - p)).max()])
    inside = rpr.predict_proba([p.min(), p.max()])
    np.testing.assert_allclose(rpr.predict_proba([0.0, 1.0]), inside)
    assert len(rpr.coef_) == 4


def test_a_gap_is_told(monkeypatch):
    from sklearn_calib.recalibrators import _restricted_polynomial as module

    monkeypatch.setattr(module, "_WORST_GAP", -1.0)
    with pytest.warns(CalibrationWarning, match="expected an optimality gap of at most"):
        RestrictedPolynomialRegression(degree=2).fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])


@pytest.mark.parametrize("options", [{"degree": 0}, {"degree": 61}, {"scale": "raw"}, {"cv": 1}])
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter"):
        RestrictedPolynomialRegression(**options).fit([0.1, 0.9], [0, 1])
