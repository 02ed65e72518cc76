"""The polynomial test and its belt: golden values, the law of the statistic, edge cases."""

import numpy as np
import pytest
from error_fields import parse_error_fields, raises_invalid_input
from golden_sets import golden_set
from scipy import stats
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from sklearn_calib._kernels._polynomial_test import (
    compute_degree_test_survival,
    find_degree_test_quantile,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import cox_test, polynomial_test
from sklearn_calib.metrics import reliability_curve

K = stats.chi2.ppf(0.95, 1)


def curved_set(n=500):
    """Like the golden set, but logit P = 0.6 + z - 0.25 z^2."""
    p = golden_set(n)[1]
    z, i = logit(p), np.arange(n)
    threshold = (i + 1) * (np.sqrt(5) - 1) / 2 % 1
    return (threshold < expit(z - 0.25 * z**2 + 0.6)).astype(int), p


# -- golden values --------------------------------------------------------------------------------


def test_law_of_the_statistic():
    found = [
        1 - compute_degree_test_survival(t, 2, m - 1)
        for m, t in ((1, 3), (2, 8), (2, 12), (3, 16))
    ]
    wanted = [0.7768698399, 0.6526149670, 0.9298634825, 0.8303312551]
    np.testing.assert_allclose(found, wanted, atol=1e-10, rtol=0)
    assert find_degree_test_quantile(0.95, 2, 1) == pytest.approx(
        12.7919131632, abs=1e-8
    )
    assert find_degree_test_quantile(0.95, 2, 2) == pytest.approx(19.3095985, abs=5e-7)
    assert compute_degree_test_survival(
        find_degree_test_quantile(0.95, 2, 2), 2, 2
    ) == pytest.approx(0.05, abs=1e-14)


def test_straight_golden_set():
    found = polynomial_test(*golden_set())
    assert found.degree == 1
    assert found.statistic == pytest.approx(7.0999613037, abs=1e-8)
    assert found.pvalue == pytest.approx(0.0287251954, abs=1e-8)
    cox = cox_test(*golden_set())
    assert (found.statistic, found.pvalue) == pytest.approx((cox.statistic, cox.pvalue))


def test_curved_golden_set():
    found = polynomial_test(*curved_set())
    assert found.degree == 2
    assert found.statistic == pytest.approx(21.9076708585, abs=1e-8)
    assert found.pvalue == pytest.approx(0.0008165717, abs=1e-8)
    wanted = [0.5821350989, 0.9795356164, -0.2265085724]
    np.testing.assert_allclose(found.coef, wanted, atol=1e-8)
    low, high = found.belt(expit([-2, 0, 2]))
    np.testing.assert_allclose(low, [0.0355236, 0.5070170, 0.7258765], atol=1e-7)
    np.testing.assert_allclose(high, [0.2201913, 0.7569813, 0.9085903], atol=1e-7)


# -- the law --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("freedom", "raised"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]
)
def test_law_is_that_of_truncated_sums(freedom, raised):
    rng = np.random.default_rng([freedom, raised])
    n = 40_000
    steps = stats.chi2.isf(0.05 * rng.random((raised, n)), 1)
    draws = rng.chisquare(freedom, n) + steps.sum(axis=0)
    for level in (0.1, 0.5, 0.95):
        t = find_degree_test_quantile(level, freedom, raised)
        assert (draws < t).mean() == pytest.approx(level, abs=4 * np.sqrt(0.25 / n))
    t = np.array([raised * K - 0.1, raised * K, 700.0])
    assert compute_degree_test_survival(t, freedom, raised)[:2] == pytest.approx(1)
    assert 0 < compute_degree_test_survival(t, freedom, raised)[2] < 1e-140


@pytest.mark.slow
def test_level_of_the_test():
    """A small version of ``benchmarks/validation``, on both sides."""
    rejected, degrees = 0, []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = expit(1.5 * rng.normal(size=200))
        found = polynomial_test((rng.random(200) < p).astype(int), p)
        rejected += found.pvalue <= 0.2
        degrees.append(found.degree)
    assert 8 <= rejected <= 33  # 20 expected, sd 4
    assert set(degrees) > {1}  # the truncated law was used


@pytest.mark.slow
@pytest.mark.parametrize(
    "held_out", [True, pytest.param(False, marks=pytest.mark.cross)]
)
def test_size_two_sided(held_out):
    pvalues = []
    for seed in range(500):
        rng = np.random.default_rng([7, seed])
        z = 1.5 * rng.normal(size=(400, 1))
        y = (rng.random(400) < expit(z[:, 0])).astype(int)
        p = expit(z[:, 0])
        if not held_out:
            model = LogisticRegression(C=np.inf).fit(z, y)
            p = model.predict_proba(z)[:, 1]
        pvalues.append(polynomial_test(y, p, held_out=held_out).pvalue)
    pvalues = np.array(pvalues)
    for level in (0.05, 0.2, 0.5):
        spread = 3.5 * np.sqrt(level * (1 - level) / 500)
        assert (pvalues <= level).mean() == pytest.approx(level, abs=spread + 0.01)


def test_on_the_rows_of_the_fit():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 1))
    y = (rng.random(300) < expit(z[:, 0] + z[:, 0] ** 2)).astype(int)
    p = LogisticRegression(C=np.inf, tol=1e-10).fit(z, y).predict_proba(z)[:, 1]
    found = polynomial_test(y, p, held_out=False)
    assert found.degree == 2 and not found.held_out
    assert found.pvalue == pytest.approx(stats.chi2.sf(found.statistic, 1))
    assert found.pvalue < 1e-4 < cox_test(y, p).pvalue


# -- belt -----------------------------------------------------------------------------------------


def test_belt_agrees_with_the_curve_and_the_covariance():
    y, p = curved_set()
    found = polynomial_test(y, p)
    (curve,) = reliability_curve(y, p, strategy="polynomial", level=0.95)
    low, high = found.belt(curve.predicted)
    np.testing.assert_allclose(curve.confidence_low, low)
    np.testing.assert_allclose(curve.confidence_high, high)
    assert curve.consistency_low is None and curve.weight.sum() == 500
    rows = np.vander(logit(curve.predicted), 3, increasing=True)
    half = np.sqrt(
        find_degree_test_quantile(0.95, 2, 1)
        * ((rows @ found.covariance) * rows).sum(axis=1)
    )
    np.testing.assert_allclose(logit(high) - rows @ found.coef, half)
    np.testing.assert_allclose(curve.observed, expit(rows @ found.coef))


def test_weights_of_the_curve():
    y, p = curved_set(300)
    options = {"strategy": "polynomial"}
    (plain,) = reliability_curve(y, p, **options)
    (flat,) = reliability_curve(y, p, sample_weight=np.full(300, 0.2), **options)
    # the ends of the belt are found by iteration, to some 1e-7
    np.testing.assert_allclose(flat.confidence_low, plain.confidence_low, rtol=1e-6)
    weight = np.where(np.arange(300) % 3, 1.0, 6.0)
    (weighted,) = reliability_curve(y, p, sample_weight=weight, **options)
    wider = (weighted.confidence_high - weighted.confidence_low)[20:-20]
    assert (wider > (plain.confidence_high - plain.confidence_low)[20:-20]).mean() > 0.8


# -- edge cases -----------------------------------------------------------------------------------


def test_the_belt_at_certainty():
    low, high = polynomial_test(*golden_set(60)).belt([0.0, 1.0])
    assert (low >= 0).all() and (low <= high).all() and (high <= 1).all()


def test_separated_outcomes():
    p = np.linspace(0.05, 0.95, 20)
    found = polynomial_test((p > 0.5).astype(int), p)
    assert found.degree == 1
    raised = -2 * np.log(np.where(p > 0.5, p, 1 - p)).sum()
    assert found.statistic == pytest.approx(raised, rel=1e-6)
    assert np.isinf(found.covariance).all()
    low, high = found.belt(p)
    assert (low == 0).all() and (high == 1).all()


def test_few_different_predictions():
    y = np.repeat([0, 1], [6, 14])
    one = polynomial_test(y, np.full(20, 0.5))
    assert len(one.coef) == 1 and one.coef[0] == pytest.approx(logit(0.7))
    likelihoods = stats.bernoulli.logpmf(y, 0.7).sum() - 20 * np.log(0.5)
    assert one.statistic == pytest.approx(2 * likelihoods)
    assert one.pvalue == pytest.approx(stats.chi2.sf(one.statistic, 1))
    low, high = one.belt([0.1, 0.9])  # the same rate whatever is predicted
    assert low[0] == low[1] < 0.7 < high[0] == high[1]
    two = polynomial_test([0, 1, 1, 0, 0, 1, 1, 0], [0.2, 0.2, 0.7, 0.7] * 2)
    assert two.degree == 1
    with raises_invalid_input(
        ValueError,
        expected=".*at least 3 different predictions ",
        value="2",
        hint="On fewer",
    ):
        polynomial_test([0, 1, 1, 0], [0.2, 0.2, 0.7, 0.7], held_out=False)


@pytest.mark.parametrize("y", [[1], [0, 0, 0], [0, 1]])
def test_tiny(y):
    found = polynomial_test(y, [0.3, 0.5, 0.6][: len(y)], labels=[0, 1])
    assert 0 <= found.pvalue <= 1 and np.isfinite(found.statistic)
    low, high = found.belt([0.1, 0.5])
    assert (low <= high).all()


def test_certain_predictions():
    p = np.r_[0.0, np.linspace(0.1, 0.9, 30), 1.0]
    y = np.r_[0, np.tile([0, 1], 15), 1]
    assert 0 < polynomial_test(y, p).pvalue < 1  # certain and right
    y[0] = 1
    with pytest.warns(CalibrationWarning, match="1 of 32 rows have probability 0 or 1"):
        assert polynomial_test(y, p).pvalue < 1e-10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda found: found.belt([0.5, 1.2]), r"probabilities in \[0, 1\], got 1\.2"),
        (lambda found: found.belt([-0.1]), r"probabilities in \[0, 1\], got -0\.1"),
        (lambda found: found.belt([np.nan]), r"probabilities in \[0, 1\], got nan"),
        (lambda found: found.belt([0.5], level=95), "a level between 0 and 1, got 95"),
    ],
)
def test_what_is_refused(call, message):
    with raises_invalid_input(ValueError, **parse_error_fields(message)):
        call(polynomial_test(*golden_set(60)))
