"""Angular calibration: the theory of the paper as properties."""

import pickle

import numpy as np
import pytest
from error_fields import raises_invalid_input
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_ndtr, logsumexp, ndtr

from sklearn_calib import canonical_proba
from sklearn_calib._simplex_array import compute_log_odds
from sklearn_calib.datasets import make_high_dimensional
from sklearn_calib.export import from_dict, to_dict
from sklearn_calib.recalibrators import (
    AngularCalibration,
    IsotonicCalibration,
    PlattScaling,
)


def scores(u):
    return canonical_proba(np.asarray(u, dtype=float), kind="logits")


def test_golden_values():
    known = AngularCalibration(
        0.381897525238621, 0.516639031832876, 0.0, link_slope=3.0, link_intercept=1.0
    ).fit(scores([-1, 1]), [0, 1])
    expected = [0.355135554722280, 0.619873845770337, 0.836214755642841]
    assert_allclose(known.predict_proba(scores([-1, 0, 1]))[:, 1], expected, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("link", ["logit", "probit", "clipped_relu"])
def test_theorem_8_calibrated_at_the_true_angle(link):
    """Mean label given the score, over many draws, in 20 bins: within 4 standard errors."""
    rng = np.random.default_rng(0)
    n, cos = 400_000, 0.5
    u, z = rng.standard_normal((2, n))
    truth = {
        "logit": expit,
        "probit": ndtr,
        "clipped_relu": lambda t: np.clip(t, 0, 1),
    }[link]
    p_true = truth(3 * (cos * u + np.sqrt(1 - cos**2) * z) + 0.5)
    y = rng.random(n) < p_true
    model = AngularCalibration(
        cos, 2.0, 0.0, link=link, link_slope=3.0, link_intercept=0.5
    )
    p = model.fit(scores(2 * u), y).predict_proba(scores(2 * u))[:, 1]
    for part in np.array_split(np.argsort(u), 20):
        error = 4 * np.std(p_true[part]) / np.sqrt(len(part))
        assert abs(p_true[part].mean() - p[part].mean()) < error


def test_theorem_4_no_monotone_map_of_the_score_is_better():
    rng = np.random.default_rng(1)
    cos, (n, m) = 0.6, (200_000, 100_000)
    u, z = rng.standard_normal((2, n + m))
    truth = expit(3 * (cos * u + 0.8 * z) + 1)
    y = rng.random(n + m) < truth
    angular = AngularCalibration(cos, 1.0, 0.0, link_slope=3.0, link_intercept=1.0)
    fitted = [
        model.fit(scores(u[:n]), y[:n]) for model in (angular, IsotonicCalibration())
    ]
    p, q = (model.predict_proba(scores(u[n:]))[:, 1] for model in fitted)
    t = truth[n:]
    for loss in (
        lambda p: (p - t) ** 2,
        lambda p: -(t * np.log(p) + (1 - t) * np.log1p(-p)),
    ):
        worse = loss(np.clip(q, 1e-4, 1 - 1e-4)) - loss(p)
        assert worse.mean() > -3 * worse.std() / np.sqrt(m)


def test_theorem_5_probit_is_platt():
    a, b, cos, norm, center = 2.0, -0.7, 0.4, 1.7, 0.3
    model = AngularCalibration(
        cos, norm, center, link="probit", link_slope=a, link_intercept=b
    ).fit(scores([0, 1]), [0, 1])
    u = np.linspace(-6, 6, 101)
    A, B = model.platt_equivalent_
    expected = ndtr(a * (A * (u - center) + B) + b)
    assert_allclose(model.predict_proba(scores(u))[:, 1], expected, atol=1e-10)


@pytest.mark.slow
def test_theorem_5_platt_converges_to_it():
    rng = np.random.default_rng(0)
    grid = np.linspace(-2, 2, 41)
    cos, sin = 0.5, np.sqrt(0.75)
    known = AngularCalibration(cos, 1.0, 0.0, link_slope=3.0, link_intercept=1.0)
    angular = known.fit(scores([0, 1]), [0, 1]).predict_proba(scores(grid))[:, 1]
    distance = []
    for n in (100, 3000, 100_000):
        runs = []
        for _ in range(5):
            u, z = rng.standard_normal((2, n))
            y = rng.random(n) < expit(3 * (cos * u + sin * z) + 1)
            platt = PlattScaling().fit(scores(u), y).predict_proba(scores(grid))[:, 1]
            runs.append(np.abs(platt - angular).max())
        distance.append(np.mean(runs))
    assert distance[0] > distance[1] > distance[2]
    assert distance[2] < 0.02  # the logistic is nearly a probit, not quite
    A, B = known.platt_equivalent_
    assert_allclose(expit(3 * (A * grid + B) + 1), angular, atol=0.02)


@pytest.mark.slow
def test_missing_parameters_are_fitted():
    rng = np.random.default_rng(0)
    n = 20_000
    u, z = rng.standard_normal((2, n))
    p = expit(3 * (0.6 * u + 0.8 * z) + 1)
    y = rng.random(n) < p
    s = scores(2 * u + 5)
    cos = AngularCalibration(link_slope=3.0, link_intercept=1.0).fit(s, y)
    assert abs(cos.cos_theta_ - 0.6) < 0.02
    assert abs(cos.norm_ - 2) < 0.02 and abs(cos.center_ - 5) < 0.03
    slope = AngularCalibration(0.6).fit(s, y)
    assert abs(slope.link_slope_ - 3) < 0.4 and abs(slope.link_intercept_ - 1) < 0.15
    free = AngularCalibration().fit(s, y)
    exact = AngularCalibration(0.6, 2.0, 5.0, link_slope=3.0, link_intercept=1.0).fit(
        s, y
    )
    difference = np.abs(free.predict_proba(s) - exact.predict_proba(s))
    assert difference.mean() < 0.005


@pytest.mark.slow
def test_the_link_may_be_a_function():
    rng = np.random.default_rng(0)
    u = rng.standard_normal(200)
    y = rng.random(200) < expit(u)
    named, given = (
        AngularCalibration(0.7, 1.0, 0.0, link=link, link_slope=2.0, link_intercept=0.1)
        .fit(scores(u), y)
        .predict_proba(scores(u))
        for link in ("logit", expit)
    )
    assert_allclose(named, given, atol=1e-9)
    with raises_invalid_input(
        ValueError,
        expected="a link",
        value=".* values from -1 to 1",
        hint=".*mean function",
    ):
        AngularCalibration(link=np.tanh).fit(scores(u), y)
    callable_link = AngularCalibration(link=expit).fit(scores(u), y)
    with pytest.raises(AttributeError, match="probit and logit"):
        _ = callable_link.platt_equivalent_


def test_scores_that_say_nothing():
    with pytest.warns(UserWarning, match="at least two different rows"):
        model = AngularCalibration().fit(np.full(50, 0.3), np.arange(50) % 2)
    assert_allclose(model.predict_proba([0.3])[0, 1], 0.5, atol=0.02)


@pytest.mark.slow
def test_make_high_dimensional():
    X, y, truth = make_high_dimensional(300, 40, design="elliptical", random_state=0)
    assert X.shape == (300, 40) and set(y) == {0, 1}
    assert_allclose(truth.norm(truth.coef), 1)
    again = make_high_dimensional(300, 40, design="elliptical", random_state=0)
    assert (again[0] == X).all() and (again[1] == y).all()
    assert (
        pickle.loads(pickle.dumps(truth)).draw(5, 0)[0] == truth.draw(5, 0)[0]
    ).all()
    for design in ("gaussian", "rademacher", "uniform", "elliptical"):
        for covariance in ("ar", "identity", truth.covariance):
            _, _, t = make_high_dimensional(
                2,
                40,
                design=design,
                covariance=covariance,
                degrees_of_freedom=30,
                random_state=1,
            )
            rows, labels = t.draw(20_000, 2)
            assert_allclose(np.cov(rows, rowvar=False), t.covariance, atol=0.0025)
            assert abs(t.proba(rows).mean() - labels.mean()) < 0.02
            assert_allclose(np.std(rows @ t.coef), 1, atol=0.03)
    for options, message in (
        ({"design": "cauchy"}, "expected a design among gaussian"),
        ({"link": "cloglog"}, "expected a callable, or a link among logit"),
        ({"link_slope": 0}, "link_slope > 0"),
        (
            {"covariance": np.eye(3)},
            r"covariance of shape \(40, 40\), got shape \(3, 3\)",
        ),
        ({"covariance": "banded"}, "got 'banded'"),
        ({"covariance": -np.eye(40)}, "positive definite"),
    ):
        with pytest.raises(ValueError, match=message):
            make_high_dimensional(10, 40, **options)


def smallest_probit_loss(u, y):
    """Convex: of the slope >= 0 and the intercept, in units in which a simplex method works."""
    sign = np.where(y == 1, 1, -1)
    s = (u - np.median(u)) / np.mean(np.abs(np.clip(u, -20, 20)))

    def loss(found):
        return -log_ndtr(sign * (abs(found[0]) * s + found[1])).mean()

    options = {"xatol": 1e-11, "fatol": 1e-14, "maxiter": 5000}
    starts = ([slope, 0.0] for slope in (0.0, 0.05, 0.3, 1.0, 3.0))
    return min(
        minimize(loss, x, method="Nelder-Mead", options=options).fun for x in starts
    )


def own_loss(model, u, y):
    q = model.fit(u, y).predict_proba(u)
    return -np.log(q[np.arange(len(y)), y]).mean()


def exact_logs(p):
    """Scores whose zeros count as 1.18e-38, as the references here count them."""
    return canonical_proba(compute_log_odds(canonical_proba(p)), kind="logits")


@pytest.mark.filterwarnings("ignore:.*at least two different rows")
@pytest.mark.parametrize("p", [0.1, 0.3, 0.7, 1e-5])
def test_equal_scores_learn_the_frequency(p):
    """The mean of equal log-odds is rounded; divided by that, 0.3 and 0.3 + 1e-9 were far apart."""
    y = np.repeat([0, 1], [210, 90])
    method = AngularCalibration().fit(np.full(300, p), y)
    near = method.predict_proba([p, p * (1 + 1e-9)])[:, 1]
    assert_allclose(near, method.predict_proba([p])[0, 1], atol=1e-6)
    assert_allclose(near, 0.3, atol=0.01)
    exported = from_dict(to_dict(method, tabulate=1e-6))
    assert_allclose(exported.predict_proba([p])[:, 1], near[:1], atol=1e-6)


@pytest.mark.parametrize("wrong", [1, 2, 4])
def test_probit_with_exact_zeros_and_ones(wrong):
    """A wrong row at 0 or 1, with a probability far below 1e-16. The fit was 0.03 too high."""
    rng = np.random.default_rng(wrong)
    y = (rng.random(4000) < 0.4).astype(int)
    p = np.clip(
        np.round(y + rng.normal(size=4000) * 0.12 * (1 + rng.random(4000)), 2), 0, 1
    )
    p[:wrong] = 1 - y[:wrong]
    u = exact_logs(p)
    excess = own_loss(AngularCalibration(link="probit"), u, y)
    floor = np.finfo(np.float32).tiny
    excess -= smallest_probit_loss(
        np.log(np.maximum(p, floor) / np.maximum(1 - p, floor)), y
    )
    assert abs(excess) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [50.0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1e4, 1e6)), 1e8]
)
@pytest.mark.parametrize("link", ["probit", "logit"])
def test_few_huge_scores(size, link):
    """They own the standard deviation; the slope was stopped at 100 of it, 0.12 nats too high."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=1000)
    y = (rng.random(1000) < expit(2 * u)).astype(int)
    u[:3], y[:3] = size, 1
    loss = own_loss(AngularCalibration(link=link), scores(u), y)
    u[:3] = 20.0
    assert loss == pytest.approx(
        own_loss(AngularCalibration(link=link), scores(u), y), abs=1e-6
    )
    if link == "probit":
        assert loss == pytest.approx(smallest_probit_loss(u, y), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.cross) for seed in (3, 4, 5))],
)
def test_logit_is_the_likeliest(seed):
    """Beside a simplex search with Gauss-Hermite nodes; saturated, narrow and rounded scores."""
    rng = np.random.default_rng(seed)
    p = rng.beta(*10 ** rng.uniform(-1, 0.7, 2), 150)
    if seed % 3 == 1:
        p = np.where(rng.random(150) < 0.3, rng.integers(0, 2, 150), p)
    if seed % 3 == 2:
        p = np.round(p, 1)
    floor = np.finfo(np.float32).tiny
    u = np.log(np.maximum(p, floor)) - np.log(np.maximum(1 - p, floor))
    y = (rng.random(150) < expit(np.clip(u / u.std(), -2, 2) + 0.3)).astype(int)
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    logs = np.log(weights / weights.sum() + 1e-320)
    s, sign = u / np.mean(np.abs(u)), np.where(y == 1, 1, -1)

    def loss(found):
        t = abs(found[0]) * s[:, None] + min(abs(found[1]), 3.0) * nodes + found[2]
        return -logsumexp(log_expit(sign[:, None] * t) + logs, axis=1).mean()

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 3000}
    best = min(
        minimize(loss, x, method="Nelder-Mead", options=options).fun
        for x in ([0.3, 0.5, 0.0], [1.0, 2.0, 0.0])
    )
    assert own_loss(AngularCalibration(), exact_logs(p), y) < best + 1e-6


@pytest.mark.parametrize("link", ["logit", "probit", "clipped_relu"])
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e3, 1e6, 1e149])
def test_classes_swap(link, scale):
    rng = np.random.default_rng(7)
    z = rng.normal(size=300) + 0.5
    y = (rng.random(300) < expit(z - 0.7)).astype(int)
    there, back = scores(scale * z), scores(-scale * z)
    model = AngularCalibration(link=link)
    there, back = (
        model.fit(u, labels).predict_proba(u)
        for u, labels in ((there, y), (back, 1 - y))
    )
    assert_allclose(there, back[:, ::-1], atol=1e-9)
