"""Means of a link over normal noise, beside quadrature."""

import numpy as np
import pytest
from cases import run_every_case
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit, log_expit, log_ndtr, logsumexp, ndtr
from scipy.stats import norm as norm_law

from sklearn_calib._kernels import _expected_link
from sklearn_calib._kernels._expected_link import (
    average_clipped_relu_and_derivatives,
    average_logistic_and_derivatives,
    compute_label_log_proba_and_derivatives,
    compute_negative_and_positive_proba,
    log_average_logistic_and_derivatives,
    log_average_probit_and_derivatives,
    make_normal_average_and_derivatives,
)


def average_probit(mu, tau):
    """Return the mean of the normal distribution function, and its derivatives."""
    norm = np.hypot(1, tau)
    z = mu / norm
    density = norm_law.pdf(z)
    return ndtr(z), density / norm, -density * mu * tau / norm**3


MEAN_FUNCTIONS = {
    "logit": average_logistic_and_derivatives,
    "probit": average_probit,
    "clipped_relu": average_clipped_relu_and_derivatives,
}
LINK = {"logit": expit, "probit": ndtr, "clipped_relu": lambda t: np.clip(t, 0, 1)}


def by_quadrature(link, mu, tau, kinks=(0,)):
    points = sorted({(k - mu) / tau for k in kinks if abs(k - mu) < 12 * tau})

    def integrand(z):
        return link(mu + tau * z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    return quad(
        integrand, -12, 12, points=points, epsabs=1e-14, epsrel=1e-13, limit=500
    )[0]


@run_every_case(
    ("link", "mu", "tau", "value"),
    [
        (average_logistic_and_derivatives, 0.7, 0.5, 0.6597195347666581),
        (average_logistic_and_derivatives, 0.7, 2.6, 0.588514682985041),
        (average_logistic_and_derivatives, 3.3, 10, 0.627314274174529),
        (average_logistic_and_derivatives, -5, 30, 0.433935562829366),
        (average_clipped_relu_and_derivatives, 0.7, 2.6, 0.5304700776796742),
        (average_clipped_relu_and_derivatives, 1.2, 0.3, 0.9546662494302086),
        (average_clipped_relu_and_derivatives, 0.5, 1.5, 0.5),
        (average_probit, 0.5, 1.5, 0.6092443525006433),
    ],
)
def test_reference_values(link, mu, tau, value):
    assert_allclose(link(np.array([mu]), tau)[0], value, atol=2e-14)


@pytest.mark.parametrize("name", ["logit", "probit", "clipped_relu"])
def test_error_below_one_in_a_billion(name):
    link, expected = LINK[name], MEAN_FUNCTIONS[name]
    rng = np.random.default_rng(0)
    for tau in (0.05, 0.7, 2.9, 2.9999, 3.0001, 7.0, 30.0):
        mu = np.concatenate([rng.normal(0, 2 + tau, 12), [-40.0, 40.0]])
        exact = [by_quadrature(link, m, tau, (0, 1)) for m in mu]
        assert_allclose(expected(mu, tau)[0], exact, atol=1e-9)


@pytest.mark.parametrize(
    "expected",
    [*MEAN_FUNCTIONS.values(), make_normal_average_and_derivatives(expit)],
)
@pytest.mark.parametrize("tau", [0.4, 2.0, 7.0])
def test_derivatives(expected, tau):
    mu, step = np.array([0.3, -2.0, 4.0]), 1e-5
    _, by_mu, by_tau = expected(mu, tau)
    found = (expected(mu + step, tau)[0] - expected(mu - step, tau)[0]) / (2 * step)
    assert_allclose(by_mu, found, atol=1e-9)
    found = (expected(mu, tau + step)[0] - expected(mu, tau - step)[0]) / (2 * step)
    assert_allclose(by_tau, found, atol=1e-9)


def test_without_noise_it_is_the_link():
    mu = np.linspace(-3, 3, 7)
    for name, expected in MEAN_FUNCTIONS.items():
        assert_allclose(expected(mu, 0.0)[0], LINK[name](mu), atol=1e-15)
    assert_allclose(
        make_normal_average_and_derivatives(np.tanh)(mu, 0.0)[0],
        np.tanh(mu),
        atol=1e-14,
    )


@pytest.mark.parametrize("tau", [0.0, 0.3, 2.9, 3.1, 50.0])
def test_many_rows_are_interpolated(tau, monkeypatch):
    mu = np.linspace(-20, 20, 30_000)
    table = average_logistic_and_derivatives(mu, tau)
    monkeypatch.setattr(_expected_link, "_MIN_ROWS_TO_INTERPOLATE", 10**9)
    direct = average_logistic_and_derivatives(mu, tau)
    for found, exact, tolerance in zip(table, direct, (1e-11, 5e-9, 5e-9), strict=True):
        assert_allclose(found, exact, atol=tolerance)


def test_any_link():
    mu = np.linspace(-3, 3, 7)
    assert_allclose(
        make_normal_average_and_derivatives(expit)(mu, 2.0)[0],
        average_logistic_and_derivatives(mu, 2.0)[0],
        atol=1e-13,
    )
    kinked = make_normal_average_and_derivatives(lambda t: np.clip(t, 0, 1))
    assert_allclose(
        kinked(mu, 2.0)[0], average_clipped_relu_and_derivatives(mu, 2.0)[0], atol=1e-4
    )


@run_every_case("mu", [-1.0, -5.0, -40.0, -90.0, -449.0, -451.0, -2000.0, -1e5, 20.0])
@run_every_case("tau", [0.0, 0.5, 2.9, 4.0, 12.0, 30.0])
def test_logarithms_of_the_lower_tail(mu, tau):
    """Beside sums of logarithms over 60,000 nodes; a subtraction has a floor at 1e-16."""
    z = np.linspace(-15, 45, 60_001)  # the mode of the integrand lies between 0 and tau
    exact = logsumexp(
        log_expit(mu + tau * z) - z**2 / 2 + np.log(1e-3 / np.sqrt(2 * np.pi))
    )
    assert_allclose(
        log_average_logistic_and_derivatives(np.array([mu]), tau)[0],
        exact,
        rtol=1e-7,
        atol=2e-7,
    )
    exact = log_ndtr(mu / np.hypot(1, tau))
    assert_allclose(
        log_average_probit_and_derivatives(np.array([mu]), tau)[0], exact, rtol=1e-11
    )


@pytest.mark.parametrize("link", ["logit", "probit", "clipped_relu", expit], ids=str)
@pytest.mark.parametrize("tau", [0.4, 2.0, 7.0])
def test_log_likelihood_derivatives(link, tau):
    mu = np.array([0.3, 0.8, -2.0, 4.0, -30.0 if link in ("logit", "probit") else -1.0])
    for positive in (mu > -99, mu < -99):
        _, by_mu, by_tau = compute_label_log_proba_and_derivatives(
            link, mu, tau, positive
        )
        step = 1e-5
        up, down = (
            compute_label_log_proba_and_derivatives(link, mu + d, tau, positive)[0]
            for d in (step, -step)
        )
        assert_allclose(by_mu, (up - down) / (2 * step), rtol=1e-6, atol=1e-7)
        up, down = (
            compute_label_log_proba_and_derivatives(link, mu, tau + d, positive)[0]
            for d in (step, -step)
        )
        assert_allclose(by_tau, (up - down) / (2 * step), rtol=1e-6, atol=1e-7)


def test_both_ends_keep_their_digits():
    mu = np.array([-60.0, 60.0])
    first, second = compute_negative_and_positive_proba("logit", mu, 0.0)
    assert_allclose(second, [np.exp(-60), 1.0], rtol=1e-12)
    assert_allclose(first, [1.0, np.exp(-60)], rtol=1e-12)
    for link in ("probit", "clipped_relu", expit):
        first, second = compute_negative_and_positive_proba(
            link, np.linspace(-3, 4, 29), 0.7
        )
        assert_allclose(first + second, 1, atol=1e-15)
        expected = MEAN_FUNCTIONS.get(link, make_normal_average_and_derivatives(expit))
        assert_allclose(second, expected(np.linspace(-3, 4, 29), 0.7)[0], atol=1e-14)
