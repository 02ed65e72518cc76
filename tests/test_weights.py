"""Weights of any size, equal weights and repetitions: every recalibrator, every measure."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from sklearn.base import clone
from words import QUICKER

from sklearn_calib._validation._weights import canonical_weight, read_weight_and_unit
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decisions import expected_metrics
from sklearn_calib.exceptions import CalibrationWarning, InvalidInputError
from sklearn_calib.groups import group_calibration
from sklearn_calib.metrics import all_metrics, reliability_curve, validate_predictions
from sklearn_calib.recalibrators import (
    Identity,
    OnlineCalibration,
    StackedCalibration,
    all_recalibrators,
)
from sklearn_calib.summary import CalibrationSummary

RECALIBRATORS = [
    cls(**(QUICKER[cls.__name__] if cls is StackedCalibration else {}))
    for cls in all_recalibrators().values()
    if cls.capabilities.sample_weight
]
QUICK = (1e-300, 1e306)
CONCEPTS = Path(__file__).parents[1] / "doc" / "user_guide" / "concepts.rst"
ALL = (
    1e-300,
    1e-200,
    1e-154,
    1e-77,
    1e-20,
    1e-5,
    0.1,
    7.3,
    1e9,
    1e17,
    1e100,
    1e200,
    1e300,
    1e306,
)


def case_of(k, n=120):
    proba, y = make_overconfident(k, n)
    return proba, y, np.random.default_rng(k).exponential(size=n) + 0.01


def fitted(recalibrator, proba, y, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return (
            clone(recalibrator).fit(proba, y, sample_weight=weight).predict_proba(proba)
        )


def check_recalibrator_sizes(recalibrator, factors):
    """Where weights are counts, huge ones stand for infinitely many rows, tiny ones for none."""
    proba, y, weight = case_of(2)
    with np.errstate(all="raise", under="ignore"):
        for factor in factors:
            near = 1.0
            if recalibrator.capabilities.weights == "counts":
                near = min(max(factor, 2.0**-60), 2.0**60)
            expected = fitted(recalibrator, proba, y, near * weight)
            found = fitted(recalibrator, proba, y, factor * weight)
            assert np.abs(found - expected).max() < 1e-6, factor


def check_measure_sizes(measure, factors):
    proba, y, weight = case_of(2)
    expected = measure(y, proba, sample_weight=weight)
    with np.errstate(all="raise", under="ignore"):
        for factor in factors:
            found = measure(y, proba, sample_weight=factor * weight)
            assert found == pytest.approx(expected, abs=1e-9), factor


@pytest.mark.slow
@run_every_case("recalibrator", RECALIBRATORS, ids=repr)
def test_recalibrators_bear_weights_of_any_size(recalibrator):
    check_recalibrator_sizes(recalibrator, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("recalibrator", RECALIBRATORS, ids=repr)
def test_recalibrators_bear_weights_of_all_sizes(recalibrator):
    check_recalibrator_sizes(recalibrator, ALL)


@run_every_case("name", all_metrics())
def test_measures_bear_weights_of_any_size(name):
    check_measure_sizes(all_metrics()[name], QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", all_metrics())
def test_measures_bear_weights_of_all_sizes(name):
    check_measure_sizes(all_metrics()[name], ALL)


@run_every_case("name", all_metrics())
def test_an_equal_weight_is_no_weight_and_two_is_the_row_given_twice(name):
    """With ties at the edges of quantile bins, where sums of 0.1 are not multiples of it."""
    measure, rng = all_metrics()[name], np.random.default_rng(0)
    p = rng.random(300).round(1)
    y = (rng.random(300) < p).astype(int)
    for size in (0.1, 0.5, 1.0, 5e-324, 1e308):
        weight = np.where(np.arange(300) < 290, size, 0)
        assert measure(y, p, sample_weight=weight) == measure(y[:290], p[:290]), size
    copies = rng.integers(1, 4, 300)
    repeated = measure(np.repeat(y, copies), np.repeat(p, copies))
    assert measure(y, p, sample_weight=copies) == pytest.approx(repeated, abs=1e-10)


@run_every_case(
    "recalibrator",
    [one for one in RECALIBRATORS if one.capabilities.weights != "counts"],
    ids=repr,
)
def test_an_equal_weight_is_no_weight_to_a_recalibrator(recalibrator):
    proba, y, _ = case_of(2, 300)
    expected = fitted(recalibrator, proba.round(2), y, None)
    for size in (0.1, 1e-200):
        found = fitted(recalibrator, proba.round(2), y, np.full(300, size))
        assert np.abs(found - expected).max() < 1e-9, size


def test_quantile_bins_do_not_move_with_a_common_factor():
    measures = [
        all_metrics()[name]
        for name in ("calibration_error", "expected_calibration_error")
    ]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, copies = rng.random(300).round(2), rng.integers(1, 4, 300)
        y = (rng.random(300) < p).astype(int)
        for measure in measures:
            expected = measure(y, p, sample_weight=copies)
            for factor in (0.1, 0.3):
                found = measure(y, p, sample_weight=factor * copies)
                assert found == pytest.approx(expected, abs=1e-12), (seed, factor)


def test_the_door():
    """A power of two, so exact; ordinary weights and counts as they are."""
    ordinary = np.array([0.3, 2.0, 0.0, 2.0**63])
    assert (canonical_weight(ordinary, 4) == ordinary).all()
    given = np.array([1e306, 3e306, 0.0])
    safe = canonical_weight(given, 3)
    assert (safe / safe[0] == given / given[0]).all() and np.frexp(safe[0] / given[0])[
        0
    ] == 0.5
    assert 2.0**63 <= safe.max() < 2.0**64
    assert (canonical_weight([5e-324, 1e-323], 2) == [2.0**-66, 2.0**-65]).all()
    tiny = canonical_weight([1.0, 1e-300], 2)
    assert tiny[0] == 1 and tiny[1] == 2.0**-400
    assert (canonical_weight(ordinary, 4, keeps_unit=True) == ordinary).all()
    rule = r"sample_weight of 0 or from 1e-100 to 1e\+100, got 1e"
    for bad in (1e101, 1e-101):
        with pytest.raises(ValueError, match=rule):
            canonical_weight([1.0, bad], 2, keeps_unit=True)
    weight, unit = read_weight_and_unit([0.1, 0, 0.1], 3)
    assert weight.tolist() == [1, 0, 1] and unit == 0.1
    assert read_weight_and_unit([2, 2], 2)[0].tolist() == [2, 2]


def test_sums_of_weights_are_those_given():
    proba, y, weight = case_of(2)
    for given in (np.full(120, 0.1), weight * 1e200):
        total = pytest.approx(given.sum(), rel=1e-12)
        assert validate_predictions(y, proba, given).unit > 0
        (curve,) = reliability_curve(y, proba, sample_weight=given)
        assert curve.weight.sum() == total
        assert (
            expected_metrics(proba, y_true=y, sample_weight=given).confusion.sum()
            == total
        )
        groups = {"a": np.arange(120) % 2}
        found = group_calibration(
            y, proba, groups, sample_weight=given, n_resamples=9, min_rows=9
        )
        assert found.rows[0].weight == total


def test_parts_share_their_unit():
    """Blocks and batches cannot be rescaled one by one: sizes without safe sums are rejected."""
    proba, y, weight = case_of(2)
    rule = r"expected sample_weight of 0 or from 1e-100 to 1e\+100, got"
    with pytest.raises(ValueError, match=rule):
        CalibrationSummary().update(y, proba, sample_weight=weight * 1e306)
    with pytest.raises(ValueError, match=rule):
        OnlineCalibration().partial_fit(proba, y, sample_weight=weight * 1e306)
    half = OnlineCalibration().partial_fit(proba, y, sample_weight=np.full(120, 0.5))
    whole = OnlineCalibration().partial_fit(proba, y)
    assert np.abs(half.predict_proba(proba) - whole.predict_proba(proba)).max() > 1e-3


class Unweighted(Identity):
    """A method that cannot use weights."""

    capabilities = replace(Identity.capabilities, sample_weight=False)


def test_a_method_without_weights_takes_equal_ones_alone():
    proba, y, weight = case_of(2)
    Unweighted().fit(proba, y, sample_weight=np.full(len(y), 2.0))
    with raises_invalid_input(
        InvalidInputError,
        expected="equal weights, as this method cannot use sample_weight",
    ) as refused:
        Unweighted().fit(proba, y, sample_weight=weight)
    assert refused.value.argument == "sample_weight"


@pytest.mark.parametrize("kind", ["rows", "counts"])
def test_the_table_of_weights_names_each_class(kind):
    """Each class that declares it is in the row of the table; options may add others."""
    page = CONCEPTS.read_text(encoding="utf-8")
    row = (
        page.partition(f'* - ``"{kind}"``')[2].partition("* -")[0].partition("\n\n")[0]
    )
    named = set(re.findall(r"``(\w+)", row))
    declared = {
        cls.__name__
        for cls in all_recalibrators().values()
        if cls.capabilities.weights == kind
    }
    assert len(declared) > 5
    assert declared <= named, f"not in the row of {kind}: {declared - named}"
