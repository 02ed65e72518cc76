"""Where a fit ends is told by the rows, and not by the order in which a library adds them up."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from test_soft_labels import RECALIBRATORS, doubled, shares
from words import QUICKER

from sklearn_calib._kernels._expected_link import (
    compute_label_log_proba_and_derivatives,
)
from sklearn_calib._kernels._logistic import fit_logistic
from sklearn_calib._simplex_array import compute_log_odds
from sklearn_calib.recalibrators import AngularCalibration, StackedCalibration


@pytest.mark.filterwarnings("ignore")
@pytest.mark.whole
@pytest.mark.parametrize("seeds", [(5,), pytest.param((0, 6), marks=pytest.mark.slow)])
@pytest.mark.parametrize("cls", RECALIBRATORS)
def test_the_order_of_rows_and_last_bits_do_not_show(cls, seeds):
    method = cls(**QUICKER.get(cls.__name__, {}))
    is_restricted = cls.__name__ == "RestrictedPolynomialRegression"
    within = 1e-11 if is_restricted else 1e-12  # 1.1e-12 on a processor with AVX-512
    for k, seed in product((2, 3), seeds):
        proba, soft, weight = shares(k, seed=seed)
        items, labels, mass = doubled(soft, weight)
        together = {"groups": items} if isinstance(method, StackedCalibration) else {}
        expected = method.fit(proba[items], labels, mass, **together).predict_proba(
            proba
        )
        rng = np.random.default_rng(seed)
        near = np.where(
            (rng.random(len(mass)) < 0.5) & (mass > 0), np.nextafter(mass, 9), mass
        )
        found = method.fit(proba[items], labels, near, **together).predict_proba(proba)
        np.testing.assert_allclose(found, expected, rtol=0, atol=within)
        if together:
            continue  # folds are drawn by the places of rows
        rows = rng.permutation(len(items))
        found = method.fit(proba[items][rows], labels[rows], mass[rows]).predict_proba(
            proba
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=within)


@pytest.mark.parametrize("nonnegative", [(), (0, 1)])
def test_a_logistic_fit_ends_where_its_slope_is_rounding(nonnegative):
    rng = np.random.default_rng(1)
    for _ in range(20):
        columns = rng.normal(size=(80, 3)) * [1, 1, 0] + [0, 0, 1.0]
        target, weight = rng.random(80), rng.random(80)
        coef = fit_logistic(columns, target, weight, nonnegative).coef
        residual = weight / weight.sum() * (expit(columns @ coef) - target)
        slope = residual @ columns
        free = [j for j in range(3) if coef[j] != 0 or j not in nonnegative]
        assert np.abs(slope[free]).max() < 2e-15


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_an_angular_fit_ends_where_its_slope_is_rounding(link):
    """Also the one of these three where a quasi-Newton method ends at a slope of 3e-4."""
    proba, soft, weight = shares(3, seed=5)
    items, labels, mass = doubled(soft, weight)
    parts = AngularCalibration(link=link).fit(proba[items], labels, mass).one_vs_rest_
    scores = compute_log_odds(
        np.stack([1 - proba, proba], -1)[items].reshape(-1, 2)
    ).reshape(-1, 3)
    for c, part in enumerate(parts):
        s = (scores[:, c] - part.center_) / part.norm_
        a, b, theta = part.link_slope_, part.link_intercept_, part.theta_
        tau = a * np.sin(theta)
        given = a * np.cos(theta) * s + b, tau, labels == c
        _, by_mu, by_tau = compute_label_log_proba_and_derivatives(link, *given)
        share = mass / mass.sum()
        slope = np.array([share @ (by_mu * s), share @ by_mu, share @ by_tau])
        assert np.abs(slope[: 3 if tau > 0 else 2]).max() < 1e-13
