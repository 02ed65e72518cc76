"""Cumulative calibration error: golden values, ties, weights, and the test that shares its path."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from error_fields import raises_invalid_input
from golden_sets import golden_set

from sklearn_calib.inference import calibration_test, cumulative_test
from sklearn_calib.metrics import cumulative_calibration_error, cumulative_differences

Y, P = golden_set()


def test_golden():
    path = cumulative_differences(Y, P)
    assert path.range == pytest.approx(0.0596251785, abs=1e-10)
    assert path.mad == pytest.approx(0.0586204704, abs=1e-10)
    assert path.sigma == pytest.approx(0.0274643909, abs=1e-10)
    assert cumulative_calibration_error(Y, P) == path.range
    assert cumulative_calibration_error(Y, P, statistic="mad") == path.mad


def test_range_is_the_worst_interval_of_scores():
    rng = np.random.default_rng(0)
    p, y, w = rng.random(40).round(1), rng.integers(0, 2, 40), rng.random(40)
    values = np.unique(p)
    ends = [*combinations(range(len(values)), 2), *((k, k) for k in range(len(values)))]
    residual = w * (y - p)
    worst = max(
        abs(residual[(values[a] <= p) & (p <= values[b])].sum()) for a, b in ends
    )
    found = cumulative_calibration_error(y, p, sample_weight=w)
    assert found == pytest.approx(worst / w.sum(), abs=1e-14)


@pytest.mark.parametrize(
    ("statistic", "law"), [("range", "kuiper"), ("mad", "kolmogorov_smirnov")]
)
def test_it_is_the_statistic_of_the_cumulative_test(statistic, law):
    rng = np.random.default_rng(1)
    p, y, w = rng.random(80).round(2), rng.integers(0, 2, 80), rng.random(80)
    path = cumulative_differences(y, p, sample_weight=w)
    value = cumulative_calibration_error(y, p, statistic=statistic, sample_weight=w)
    tested = cumulative_test(y, p, statistic=law, sample_weight=w)
    assert value / path.sigma == pytest.approx(tested.statistic, rel=1e-12)


def test_equal_scores_are_one_step():
    assert cumulative_calibration_error([1, 0, 1, 0], [0.5] * 4) == 0
    path = cumulative_differences([1, 0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5, 0.9])
    assert path.score.tolist() == [0.5, 0.9]
    assert path.weight.tolist() == [0.8, 1.0]


def test_several_problems():
    rng = np.random.default_rng(2)
    proba, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    paths = cumulative_differences(y, proba, multiclass="classwise")
    assert [path.title for path in paths] == ["class 0", "class 1", "class 2"]
    value = cumulative_calibration_error(y, proba, multiclass="classwise")
    assert value == pytest.approx(np.mean([path.range for path in paths]), abs=1e-15)


def test_the_exact_test_of_both_statistics():
    found = calibration_test(
        Y, P, statistic="cumulative_calibration_error", n_resamples=499
    )
    asymptotic = cumulative_test(Y, P).pvalue
    assert found.pvalue == pytest.approx(asymptotic, abs=0.06)
    mad = partial(cumulative_calibration_error, statistic="mad")
    found = calibration_test(Y, P, statistic=mad, n_resamples=99)
    assert found.statistic == pytest.approx(0.0586204704, abs=1e-10)


def test_refused():
    with raises_invalid_input(
        ValueError, expected=".*statistic among range, mad", value="'kuiper'"
    ):
        cumulative_calibration_error(Y, P, statistic="kuiper")
