import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from numpy.polynomial import chebyshev

from sklearn_calib._kernels._monotone_program import (
    compute_chebyshev_t_yt_and_y2_means,
    fit_bounded_polynomials,
    fit_polynomial_by_cvxpy,
)
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import brier_loss
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    PlattScaling,
    RestrictedPolynomialRegression,
)


def fit_one(mean_t, mean_y, square, degree, l1=np.inf):
    """The polynomial of this degree with the least mean squared error."""
    [[found]] = fit_bounded_polynomials([(mean_t, mean_y, square)], degree, [l1])
    return found


def fit(s, y, degree):
    low, high = np.min(s), np.max(s)
    x = (2 * np.asarray(s) - low - high) / (high - low)
    y = np.asarray(y, dtype=float)
    return fit_one(
        *compute_chebyshev_t_yt_and_y2_means(x, y, np.ones(len(x)), degree),
        degree,
    ), x


@pytest.mark.parametrize("name", ["rpr_unif", "rpr_ties60"])
def test_oracle(oracle, name):
    case = oracle("rpr.json")[name]
    s, t = np.array(case["s"]), np.array(case["t"])
    for expected in case["fits"]:
        found, _ = fit(s, case["y"], expected["k"])
        assert found.loss == pytest.approx(expected["mse"], abs=1e-9)
        x = (2 * np.clip(t, s.min(), s.max()) - s.min() - s.max()) / (s.max() - s.min())
        np.testing.assert_allclose(
            chebyshev.chebval(x, found.chebyshev_coef), expected["pred"], atol=1e-4
        )


@pytest.mark.parametrize("bound", [np.inf, 20.0, 1.2, 0.3])
@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8, 13])
def test_equals_the_program_written_out(degree, bound):
    """The cvxpy model of the paper's program."""
    rng = np.random.default_rng(degree)
    x = rng.uniform(-1, 1, 80)
    y = (rng.random(80) < (x > 0) * 0.6 + 0.2).astype(float)
    data = compute_chebyshev_t_yt_and_y2_means(x, y, np.ones(80), degree)
    found = fit_one(*data, degree, bound)
    expected = fit_polynomial_by_cvxpy(*data, degree, bound, "CLARABEL")
    assert found.loss == pytest.approx(expected.loss, abs=1e-6)
    assert found.gap <= 1e-8
    assert expected.gap <= 1e-5
    assert found.loss == pytest.approx(
        np.mean((chebyshev.chebval(x, found.chebyshev_coef) - y) ** 2)
    )
    powers = np.abs(chebyshev.cheb2poly(found.chebyshev_coef)).sum()
    assert powers <= bound * (1 + 1e-6)
    assert found.monomial_l1 == pytest.approx(powers, rel=1e-6)


@pytest.mark.parametrize("solver", ["clarabel", "cvxpy", "ipm"])
def test_solvers_agree(solver):
    proba, y = make_overconfident(2, 300)
    auto = RestrictedPolynomialRegression(degree=5, l1=1.5).fit(proba, y)
    other = RestrictedPolynomialRegression(degree=5, l1=1.5, solver=solver).fit(
        proba, y
    )
    assert auto.l1_ == pytest.approx(1.5, rel=1e-6)
    np.testing.assert_allclose(
        other.predict_proba(proba), auto.predict_proba(proba), atol=1e-3
    )


@pytest.mark.slow
def test_bounded_problems_are_certified():
    """The published grid, degrees 4 to 20, two data sets."""
    rng = np.random.default_rng(0)
    bounds = [5.0**power for power in range(-10, 6)]
    x = rng.uniform(-1, 1, 200)
    y = (rng.random(200) < (x > 0) * 0.6 + 0.2).astype(float)
    for degree in range(4, 21, 4):
        data = [
            compute_chebyshev_t_yt_and_y2_means(x[f::2], y[f::2], np.ones(100), degree)
            for f in (0, 1)
        ]
        for fits in fit_bounded_polynomials(data, degree, bounds, 1e-8):
            assert max(fit.gap for fit in fits) <= 1e-6
            assert (np.diff([fit.loss for fit in fits]) <= 1e-7).all()
            for fit, bound in zip(fits, bounds, strict=True):
                assert fit.monomial_l1 <= bound * (1 + 1e-6)


@pytest.mark.slow
def test_the_published_settings():
    proba, y = make_overconfident(2, 100)
    rpr = RestrictedPolynomialRegression.paper()
    assert len(rpr.degree) * len(rpr.l1) * rpr.cv == 714
    rpr = rpr.fit(proba, y)
    assert 4 <= rpr.degree_ <= 20
    assert rpr.optimality_gap_ < 1e-5


def test_selection_among_candidates():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < curve(p)).astype(int)
    one = RestrictedPolynomialRegression(degree=[1, 4]).fit(p, y)
    assert one.degree_ == 4
    bound = RestrictedPolynomialRegression(degree=4, l1=[0.01, 10.0]).fit(p, y)
    assert bound.l1_ > 0.5
    by_mce = RestrictedPolynomialRegression(degree=[1, 4], selection="mce").fit(p, y)
    assert by_mce.degree_ == 4


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


@pytest.mark.slow
def test_certificates():
    """Every fit is optimal to 1e-6, rises, stays within [0, 1] and is not below isotonic."""
    grid = np.cos(np.linspace(np.pi, 0, 5001))
    for s, y, degree in problems():
        found, x = fit(s, y, degree)
        assert found.gap <= 1e-6
        values = chebyshev.chebval(grid, found.chebyshev_coef)
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


@pytest.mark.slow
def test_the_loss_falls_with_the_degree():
    rng = np.random.default_rng(0)
    s = rng.random(500)
    y = (rng.random(500) < (s > 0.5)).astype(float)
    losses = [fit(s, y, degree)[0].loss for degree in range(1, 25)]
    assert (np.diff(losses) <= 1e-8).all()


def curve(p):
    return 0.5 + 0.5 * (2 * p - 1) ** 3


@pytest.mark.slow
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
    rpr = RestrictedPolynomialRegression(degree=10).fit(
        [0.1, 0.1, 0.5, 0.9], [0, 1, 0, 1]
    )
    assert rpr.degree_ == 2
    with pytest.warns(
        CalibrationWarning, match="at least two different rows of scores"
    ):
        constant = RestrictedPolynomialRegression().fit([0.3] * 4, [0, 0, 0, 1])
    assert constant.degree_ == 0
    assert constant.predict_proba([0.9])[0, 1] == pytest.approx(0.25)


def test_log_odds_scale_and_constant_beyond_the_domain():
    rng = np.random.default_rng(0)
    p = 0.2 + 0.6 * rng.random(500)
    y = (rng.random(500) < p).astype(int)
    rpr = RestrictedPolynomialRegression(degree=3, scale="logit").fit(p, y)
    assert rpr.domain_ == pytest.approx(
        [np.log(p / (1 - p)).min(), np.log(p / (1 - p)).max()]
    )
    inside = rpr.predict_proba([p.min(), p.max()])
    np.testing.assert_allclose(rpr.predict_proba([0.0, 1.0]), inside)
    assert len(rpr.coef_) == 4


def test_a_gap_is_told(monkeypatch):
    from sklearn_calib.recalibrators import _restricted_polynomial as module

    monkeypatch.setattr(module, "_MAX_OPTIMALITY_GAP", -1.0)
    with pytest.warns(
        CalibrationWarning, match="expected an optimality gap of at most"
    ):
        RestrictedPolynomialRegression(degree=2).fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])


@run_every_case("options", [
    {"degree": 0}, {"degree": 61}, {"scale": "raw"}, {"cv": 1}, {"l1": -1.0}, {"solver": "scs"},
    {"selection": "auc"},
])  # fmt: skip
def test_bad_parameters(options):
    with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter"):
        RestrictedPolynomialRegression(**options).fit([0.1, 0.9], [0, 1])


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"degree": [0, 2]}, "degrees that are integers from 1 to 60"),
        ({"degree": [1.5]}, "degrees that are integers from 1 to 60"),
        ({"degree": []}, "degrees that are integers from 1 to 60"),
        ({"l1": [1.0, -1.0]}, "bounds l1 above 0"),
    ],
)
def test_bad_candidates(options, rule):
    with raises_invalid_input(ValueError, expected=rule):
        RestrictedPolynomialRegression(**options).fit([0.1, 0.9], [0, 1])
