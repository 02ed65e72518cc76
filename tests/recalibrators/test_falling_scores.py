"""Scores that fall with the outcome: maps that cannot fall say so, and only then."""

import warnings

import numpy as np
import pytest
from cases import run_every_case
from scipy import stats
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel
from sklearn_calib._kernels._classical_tests import compute_spearman_and_z
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import all_recalibrators, get_recalibrator
from sklearn_calib.recalibrators._harm_checks import (
    WARNING_SIGNIFICANCE_LEVEL,
    find_negative_rank_correlation,
)

INCREASING = [
    n for n in all_recalibrators() if get_recalibrator(n).capabilities.increasing
]
#: The first two learn nothing of the order; the third holds to the scores by its prior.
NEVER = {"identity", "prior_shift", "multiclass_binning"}


def falling(n=400, k=2, seed=0):
    rng = np.random.default_rng(seed)
    y, z = rng.integers(0, k, n), rng.normal(size=(n, k))
    z[np.arange(n), y] -= 1.0
    return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), y


def said(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [
        str(w.message) for w in caught if issubclass(w.category, CalibrationWarning)
    ]


@run_every_case("name", sorted(set(all_recalibrators()) - NEVER))
def test_no_method_returns_the_base_rate_in_silence(name):
    proba, y = falling()
    method = get_recalibrator(name)
    if not said(lambda: method.fit(proba, y)):
        # the base rate has 0.693
        assert log_loss(y, method.predict_proba(proba)) < 0.66


def test_what_the_warning_says_works():
    proba, y = falling()
    message = (
        r"expected scores that rise with the outcome, got scores that "
        r"fall \(rank correlation about -0.5\).*1 - p.*'platt'"
    )
    with pytest.warns(CalibrationWarning, match=message) as caught:
        get_recalibrator("isotonic").fit(proba, y)
    assert caught[0].filename == __file__
    cured = [
        get_recalibrator("isotonic")
        .fit(1 - proba[:, 1], y)
        .predict_proba(1 - proba[:, 1]),
        get_recalibrator("isotonic")
        .fit(proba[:, ::-1], y)
        .predict_proba(proba[:, ::-1]),
        get_recalibrator("isotonic")
        .fit(proba, y, classes=[1, 0])
        .predict_proba(proba)[:, ::-1],
        get_recalibrator("platt").fit(proba, y).predict_proba(proba),
    ]
    assert all(log_loss(y, one) < 0.66 for one in cured)


@pytest.mark.slow
@pytest.mark.parametrize("name", INCREASING)
def test_silent_on_scores_that_rise_or_say_nothing(name):
    proba, y = falling(400)
    method = get_recalibrator(name)
    rng = np.random.default_rng(1)
    assert not said(lambda: method.fit(1 - proba, y))
    assert not [
        m for m in said(lambda: method.fit(proba, rng.permutation(y))) if "fall" in m
    ]


@pytest.mark.slow
def test_a_spline_that_may_fall_is_silent():
    proba, y = falling()
    assert not said(lambda: get_recalibrator("spline", monotone=False).fit(proba, y))
    assert said(lambda: get_recalibrator("spline", monotone=True).fit(proba, y))
    assert not said(lambda: get_recalibrator("auto").fit(proba, y))
    assert any(
        "fall" in m
        for m in said(lambda: get_recalibrator("auto", monotone=True).fit(*falling()))
    )


def test_one_warning_of_many_classes():
    proba, y = falling(900, 7)
    (message,) = said(lambda: get_recalibrator("isotonic").fit(proba, y))
    assert "scores of the classes 0, 1, 2, 3, 4, ... that rise" in message
    good = np.where(np.arange(7) < 6, 1 / proba, proba)  # one class falls
    good[:, 6] = 30 * proba[:, 6]
    good /= good.sum(axis=1, keepdims=True)
    (message,) = said(lambda: get_recalibrator("isotonic").fit(good, y))
    assert "scores of the classes 6 that rise" in message


def test_one_text_in_cross_validation():
    """Python shows the same text once."""
    proba, y = falling(2000)

    class Backwards(LogisticRegression):
        def decision_function(self, X):
            return -super().decision_function(X)

    X = np.log(proba)
    found = said(lambda: CalibratedModel(Backwards(), "isotonic", cv=5).fit(X, y))
    assert len(found) == 5 and len({m for m in found if "that fall" in m}) == 1


def test_weights_decide():
    proba, y = falling(300)
    other, z = 1 - proba, y
    both, labels = np.vstack([proba, other]), np.r_[y, z]
    for heavy, expected in ((20.0, True), (0.05, False)):
        weight = np.r_[np.full(300, heavy), np.ones(300)]
        found = said(
            lambda weight=weight: get_recalibrator("isotonic").fit(
                both, labels, sample_weight=weight
            )
        )
        assert bool(found) == expected


# -- the statistic --------------------------------------------------------------------------------


def test_against_scipy():
    rng = np.random.default_rng(0)
    score = np.round(rng.normal(size=80), 1)
    outcome = (rng.random(80) < 0.3).astype(int)
    correlation, z = compute_spearman_and_z(score, outcome, np.ones(80))
    assert correlation == pytest.approx(stats.spearmanr(score, outcome).statistic)
    test = stats.mannwhitneyu(
        score[outcome == 1],
        score[outcome == 0],
        use_continuity=False,
        method="asymptotic",
    )
    assert 2 * stats.norm.sf(abs(z)) == pytest.approx(test.pvalue)
    grades = rng.integers(0, 5, 80)
    expected = np.corrcoef(stats.rankdata(score), grades)[0, 1]
    assert compute_spearman_and_z(score, grades, np.ones(80))[0] == pytest.approx(
        expected
    )


def test_weights_of_the_statistic():
    rng = np.random.default_rng(0)
    score, outcome = np.round(rng.normal(size=50), 1), rng.integers(0, 2, 50)
    counts = rng.integers(1, 5, 50)
    whole = compute_spearman_and_z(score, outcome, counts.astype(float))
    again = compute_spearman_and_z(
        np.repeat(score, counts), np.repeat(outcome, counts), np.ones(counts.sum())
    )
    assert whole[0] == pytest.approx(again[0]) and abs(whole[1]) <= abs(again[1])
    weight = rng.random(50)
    found = compute_spearman_and_z(score, outcome, weight)
    for factor in (1e-200, 3.7, 1e200):
        assert compute_spearman_and_z(score, outcome, factor * weight) == pytest.approx(
            found, rel=1e-9
        )
    assert compute_spearman_and_z(np.ones(5), np.arange(5), np.ones(5)) == (0.0, 0.0)
    assert compute_spearman_and_z(np.arange(5.0), np.ones(5), np.ones(5)) == (
        0.0,
        0.0,
    )


def simulated(kind, repetitions):
    """Statistics on scores that say nothing, and how often the warning is given."""
    rng, n = np.random.default_rng(0), 120
    fired, statistics = 0, np.empty(repetitions)
    ones = np.ones(n)
    for i in range(repetitions):
        y = (rng.random(n) < 0.4).astype(np.intp)
        p = rng.random(n)
        if kind == "ties":
            p = np.round(p, 1).clip(0.05, 0.95)
        if kind == "skewed":
            p = p**6
        weight = ones
        if kind in ("weights", "counts"):
            weight = (
                0.5 + rng.random(n)
                if kind == "weights"
                else rng.integers(1, 4, n) * 1.0
            )
        statistics[i] = compute_spearman_and_z(p, y, weight)[1]
        if statistics[i] < -3.5:
            fired += (
                find_negative_rank_correlation(np.column_stack([1 - p, p]), y, weight)
                is not None
            )
    return statistics, fired


@pytest.mark.cross
def test_level_on_scores_that_say_nothing():
    """Two-sided, of the statistic for each kind of rows, and of the warning over all of them."""
    kinds, repetitions, alarms = (
        ("plain", "ties", "weights", "counts", "skewed"),
        40_000,
        0,
    )
    for kind in kinds:
        statistics, fired = simulated(kind, repetitions)
        for level in (0.05, 0.01, 1e-3):
            found = (statistics < stats.norm.ppf(level)).mean()
            bound = 0.05 + 3.5 / np.sqrt(level * repetitions)
            assert abs(found / level - 1) < bound, (kind, level)
        assert (
            stats.poisson.sf(fired - 1, WARNING_SIGNIFICANCE_LEVEL * repetitions) > 1e-4
        ), kind
        alarms += fired
    expected = WARNING_SIGNIFICANCE_LEVEL * repetitions * len(kinds)
    assert stats.poisson.cdf(alarms, expected) > 1e-4  # not far too seldom
    assert stats.poisson.sf(alarms - 1, expected) > 1e-4


@pytest.mark.cross
def test_level_of_many_rare_classes():
    """At most the level over all classes together, however rare."""
    rng = np.random.default_rng(0)
    k, fits, fired = 50, 1000, 0
    prior = rng.dirichlet(np.full(k, 0.3))
    method = get_recalibrator("isotonic")
    for _ in range(fits):
        y = rng.choice(k, size=300, p=prior)
        proba = rng.dirichlet(np.full(k, 0.5), 300)
        pairs = (np.column_stack([1 - p, p]) for p in proba.T)
        fired += any(
            find_negative_rank_correlation(
                pair, (y == c).astype(np.intp), np.ones(300), k
            )
            is not None
            for c, pair in enumerate(pairs)
        )
    assert method.capabilities.increasing
    assert stats.poisson.sf(fired - 1, WARNING_SIGNIFICANCE_LEVEL * fits) > 1e-3
