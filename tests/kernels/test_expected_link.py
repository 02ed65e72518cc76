"""Means of a link over normal noise, beside quadrature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit, ndtr

from sklearn_calib._kernels import _expected_link
from sklearn_calib._kernels._expected_link import LINKS, clipped, logistic, numerical, probit

LINK = {"logit": expit, "probit": ndtr, "clipped_relu": lambda t: np.clip(t, 0, 1)}


def by_quadrature(link, mu, tau, kinks=(0,)):
    points = sorted({(k - mu) / tau for k in kinks if abs(k - mu) < 12 * tau})

    def integrand(z):
        return link(mu + tau * z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    return quad(integrand, -12, 12, points=points, epsabs=1e-14, epsrel=1e-13, limit=500)[0]


@pytest.mark.parametrize(
    ("link", "mu", "tau", "value"),
    [
        (logistic, 0.7, 0.5, 0.6597195347666581),
        (logistic, 0.7, 2.6, 0.588514682985041),
        (logistic, 3.3, 10, 0.627314274174529),
        (logistic, -5, 30, 0.433935562829366),
        (clipped, 0.7, 2.6, 0.5304700776796742),
        (clipped, 1.2, 0.3, 0.9546662494302086),
        (clipped, 0.5, 1.5, 0.5),
        (probit, 0.5, 1.5, 0.6092443525006433),
    ],
)
def test_reference_values(link, mu, tau, value):
    assert_allclose(link(np.array([mu]), tau)[0], value, atol=2e-14)


@pytest.mark.parametrize("name", ["logit", "probit", "clipped_relu"])
def test_error_below_one_in_a_billion(name):
    link, expected = LINK[name], LINKS[name]
    rng = np.random.default_rng(0)
    for tau in (0.05, 0.7, 2.9, 2.9999, 3.0001, 7.0, 30.0):
        mu = np.concatenate([rng.normal(0, 2 + tau, 12), [-40.0, 40.0]])
        exact = [by_quadrature(link, m, tau, (0, 1)) for m in mu]
        assert_allclose(expected(mu, tau)[0], exact, atol=1e-9)


@pytest.mark.parametrize("expected", [*LINKS.values(), numerical(expit)])
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
    for name, expected in LINKS.items():
        assert_allclose(expected(mu, 0.0)[0], LINK[name](mu), atol=1e-15)
    assert_allclose(numerical(np.tanh)(mu, 0.0)[0], np.tanh(mu), atol=1e-14)


@pytest.mark.parametrize("tau", [0.0, 0.3, 2.9, 3.1, 50.0])
def test_many_rows_are_interpolated(tau, monkeypatch):
    mu = np.linspace(-20, 20, 30_000)
    table = logistic(mu, tau)
    monkeypatch.setattr(_expected_link, "_TABLE", 10**9)
    direct = logistic(mu, tau)
    for found, exact, tolerance in zip(table, direct, (1e-11, 5e-9, 5e-9), strict=True):
        assert_allclose(found, exact, atol=tolerance)


def test_any_link():
    mu = np.linspace(-3, 3, 7)
    assert_allclose(numerical(expit)(mu, 2.0)[0], logistic(mu, 2.0)[0], atol=1e-13)
    kinked = numerical(lambda t: np.clip(t, 0, 1))
    assert_allclose(kinked(mu, 2.0)[0], clipped(mu, 2.0)[0], atol=1e-4)
