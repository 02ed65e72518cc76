"""Clopper and Pearson's bounds: those of many shares at once, and of weighted ones."""

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binomtest

from sklearn_calib._kernels import _proportion
from sklearn_calib._kernels._proportion import compute_exact_interval


@pytest.mark.parametrize(("events", "rows"), [(0, 7), (3, 20), (20, 20), (1, 5000)])
def test_bounds_are_those_of_scipy(events, rows):
    expected = binomtest(events, rows).proportion_ci(0.9, "exact")
    np.testing.assert_allclose(
        compute_exact_interval(events, rows, 0.9), expected, rtol=1e-7
    )


@pytest.mark.parametrize(
    "fraction", [0.0, 0.4]
)  # shares of fewer than one weighted event, too
def test_bounds_of_many_shares_are_those_of_each(monkeypatch, fraction):
    rows = np.arange(1.0, 1001.0)
    hit = np.random.default_rng(0).random(1000) < np.linspace(0.01, 0.9, 1000)
    events = np.maximum(np.cumsum(hit) - fraction, 0.0)
    monkeypatch.setattr(_proportion, "_MIN_INTERPOLATED_QUANTILES", 100)
    monkeypatch.setattr(_proportion, "betaincinv", counted := Counted())
    low, high = compute_exact_interval(events, rows, 0.95)
    assert counted.entries < 2 * 20_000  # of the nodes, whatever the number of shares
    some = np.append(np.arange(0, 60), np.arange(60, 1000, 50))
    a, b = events[some], rows[some] - events[some]
    expected = np.where(a > 0, betaincinv(np.where(a > 0, a, 1), b + 1, 0.025), 0.0)
    np.testing.assert_allclose(low[some], expected, rtol=1e-10, atol=1e-15)
    expected = np.where(b > 0, betaincinv(a + 1, np.where(b > 0, b, 1), 0.975), 1.0)
    np.testing.assert_allclose(high[some], expected, rtol=1e-10, atol=1e-15)


class Counted:
    """Count the quantiles that are computed one by one."""

    entries = 0

    def __call__(self, a, b, p):
        self.entries += np.size(a)
        return betaincinv(a, b, p)
