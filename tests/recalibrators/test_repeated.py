"""Rows that repeat with their labels: a warning where folds share them, none where scores tie."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit, softmax

from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.groups import MulticalibratedScores
from sklearn_calib.recalibrators import StackedCalibration, cross_fitted_proba
from sklearn_calib.recalibrators._harm_checks import has_dependent_tied_rows
from sklearn_calib.summary import CalibrationSummary

RULE = "rows that are independent, to judge a fit"


def labelled(rng, proba):
    proba = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    return proba, (proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1)


def races(rng, n_races=100, rows=6, k=2):
    """Each race has one forecast and one outcome, and several rows."""
    proba, y = labelled(rng, softmax(1.5 * rng.normal(size=(n_races, k)), axis=1))
    return np.repeat(proba, rows, axis=0), np.repeat(y, rows)


def ties(rng, n):
    """Independent rows whose scores tie."""
    true = expit(2 * rng.normal(size=n))
    y = (rng.random(n) < true).astype(int)
    yield "continuous", true, y
    for digits in (1, 2, 3):
        yield f"{digits} digits", np.round(true, digits), y
    for trees in (10, 30, 100):
        yield f"{trees} trees", rng.binomial(trees, true) / trees, y
    yield "falling", rng.binomial(30, true) / 30, 1 - y
    steps = np.quantile(true, np.linspace(0.02, 0.98, 40))
    yield "steps", np.searchsorted(steps, true) / 40, y
    leaf, means = rng.integers(0, 60, n), rng.beta(0.3, 0.3, 60)
    rough = np.clip(means + 0.1 * rng.normal(size=60), 0, 1)
    yield "leaves", rough[leaf], (rng.random(n) < means[leaf]).astype(int)
    drawn = rng.integers(0, n, n)
    yield "bootstrap", true[drawn], y[drawn]
    yield "doubled", np.repeat(true, 2), np.repeat(y, 2)
    often = np.repeat(np.arange(n), rng.integers(1, 5, n))
    yield "one to four times", true[often], y[often]


@pytest.mark.parametrize("n", [500, 2000])
def test_ties_of_independent_rows_are_no_reason(n):
    rng = np.random.default_rng(n)
    for name, score, y in ties(rng, n):
        assert not has_dependent_tied_rows(np.column_stack([1 - score, score]), y), name
    for k in (3, 5):
        proba, y = labelled(rng, softmax(1.5 * rng.normal(size=(n, k)), axis=1))
        votes = rng.multinomial(10, proba) / 10
        assert not has_dependent_tied_rows(proba, y)
        assert not has_dependent_tied_rows(votes, y)


@pytest.mark.slow
@pytest.mark.parametrize("n_fits", [1000, pytest.param(3000, marks=pytest.mark.cross)])
def test_false_alarms_are_rare(n_fits):
    """At most 1e-4 each for two classes: none in many fits of each law."""
    rng = np.random.default_rng(0)
    for _ in range(n_fits):
        for name, score, y in ties(rng, 600):
            assert not has_dependent_tied_rows(
                np.column_stack([1 - score, score]), y
            ), name


@pytest.mark.parametrize("k", [2, 3])
def test_races_are_found(k):
    found = [
        has_dependent_tied_rows(*races(np.random.default_rng(seed), 150, 6, k))
        for seed in range(20)
    ]
    assert sum(found) >= 18


def test_the_order_of_rows_and_classes_does_not_matter():
    rng = np.random.default_rng(1)
    for k, rows in ((2, 6), (3, 6), (2, 3)):
        proba, y = races(rng, 150, rows, k)
        order, columns = rng.permutation(len(y)), np.arange(k)[::-1]
        moved = proba[order][:, columns], k - 1 - y[order]
        assert (
            has_dependent_tied_rows(proba, y)
            == has_dependent_tied_rows(*moved)
            == (rows == 6)
        )


def test_auto_warns_and_groups_cure():
    rng = np.random.default_rng(2)
    proba, y = races(rng)
    few = ["identity", "platt"]
    with pytest.warns(CalibrationWarning, match=RULE):
        shared = StackedCalibration(few, cv=2).fit(proba, y)
    own = np.repeat(np.arange(100), 6)
    # a warning would be an error
    StackedCalibration(few, cv=2).fit(proba, y, groups=own)
    single, label = proba[::6], y[::6]
    weighted = StackedCalibration(few, cv=2).fit(
        single, label, sample_weight=np.full(100, 6.0)
    )
    assert weighted.weights_ == pytest.approx(shared.weights_, abs=1e-9)


def test_others_that_cross_validate_warn():
    rng = np.random.default_rng(3)
    proba, y = races(rng)
    with pytest.warns(CalibrationWarning, match=RULE):
        cross_fitted_proba("platt", proba, y, cv=2)
    cross_fitted_proba("platt", proba, y, cv=2, groups=np.repeat(np.arange(100), 6))
    model = MulticalibratedScores(n_rounds=1, n_trees=10, cv=2)
    with pytest.warns(CalibrationWarning, match=RULE):
        model.fit(proba, y, groups=rng.integers(0, 3, (600, 1)))
    half = np.arange(600) < 300
    pairs = [(np.flatnonzero(half), np.flatnonzero(~half))]
    pairs += [pairs[0][::-1]]
    MulticalibratedScores(n_rounds=1, n_trees=10, cv=pairs).fit(
        proba, y, groups=rng.integers(0, 3, (600, 1))
    )


def test_folds_of_cells_warn():
    rng = np.random.default_rng(4)
    proba, y = races(rng)
    with pytest.warns(CalibrationWarning, match=RULE):
        CalibrationSummary().update(y, proba).cross_validate(["identity"], cv=2)
    for _, score, label in ties(rng, 600):  # a warning would be an error
        CalibrationSummary().update(label, score).cross_validate(["identity"], cv=2)
    with raises_invalid_input(
        ValueError, expected=".*at least 5 groups, one for each fold", value="3"
    ):
        cross_fitted_proba("platt", proba, y, groups=np.arange(600) % 3)
