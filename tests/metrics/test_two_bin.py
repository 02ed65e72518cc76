"""The averaged two-bin error: its definition by brute force, and distortions do not lower it."""

from itertools import pairwise, product

import numpy as np
import pytest
from error_fields import raises_invalid_input
from hypothesis import given, settings, strategies as st

from sklearn_calib.displays import CumulativeDifferenceDisplay
from sklearn_calib.inference import calibration_test
from sklearn_calib.metrics import averaged_two_bin_error, cumulative_differences


def by_thresholds(y, p, w):
    """The definition: between two neighbouring scores no row changes its bin."""
    ends = np.unique(np.r_[0.0, p, 1.0])
    residual, value = w * (y - p) / w.sum(), 0.0
    for low, high in pairwise(ends):
        below = p < (low + high) / 2
        square = residual[below].sum() ** 2 + residual[~below].sum() ** 2
        value += (high - low) * square
    return value


def evaluate_population_value(truth, p):
    """The expected value over the labels of all rows, by counting them all."""
    value = 0.0
    for y in product([0, 1], repeat=len(truth)):
        chance = np.prod(np.where(y, truth, 1 - truth))
        value += chance * averaged_two_bin_error(y, p, labels=[0, 1])
    return value


def test_golden():
    assert averaged_two_bin_error([0, 1, 1, 0], [0.1, 0.4, 0.4, 0.8]) == pytest.approx(
        0.051125
    )
    weighted = averaged_two_bin_error(
        [0, 1, 1], [0.2, 0.5, 0.9], sample_weight=[1, 2, 1]
    )
    assert weighted == pytest.approx(0.054875, abs=1e-15)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1]), st.floats(0, 1), st.integers(1, 50)),
        min_size=1,
    ),
    st.integers(1, 3),
)
def test_it_is_the_mean_over_thresholds(rows, digits):
    y, p, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    for scores in (p, p.round(digits)):
        found = averaged_two_bin_error(y, scores, sample_weight=w, labels=[0, 1])
        assert found == pytest.approx(by_thresholds(y, scores, w), abs=1e-13)


@pytest.mark.slow
def test_the_truth_has_the_smallest_expected_value_of_all():
    rng = np.random.default_rng(0)
    truth = rng.beta(2, 2, 8)
    honest = evaluate_population_value(truth, truth)
    assert honest == pytest.approx((truth * (1 - truth)).sum() / 64, abs=1e-14)
    lies = [
        truth.round(1),
        0.95 * truth + 0.025,
        np.full(8, truth.mean()),
        1.2 * truth - 0.1,
    ]
    lies += [np.clip(truth + rng.normal(0, 0.05, 8), 0, 1), (truth > 0.5).astype(float)]
    for lie in lies:
        worse = evaluate_population_value(truth, lie) - honest
        # by how much: the error with the truth in the place of the labels
        assert (
            worse == pytest.approx(by_thresholds(truth, lie, np.ones(8)), abs=1e-14)
            and worse > 0
        )


def test_debiasing_subtracts_the_expected_value():
    rng = np.random.default_rng(1)
    p, w = rng.random(30), rng.gamma(1.0, size=30)
    y = (rng.random(30) < p).astype(int)
    excess, path = (
        averaged_two_bin_error(y, p, sample_weight=w, debias=True),
        cumulative_differences(y, p, sample_weight=w),
    )
    assert path.averaged_two_bin == averaged_two_bin_error(y, p, sample_weight=w)
    expected = (w**2 * p * (1 - p)).sum() / w.sum() ** 2
    assert path.sigma**2 == pytest.approx(expected, rel=1e-12)
    assert excess == pytest.approx(path.averaged_two_bin - expected, abs=1e-15)


def test_the_exact_test():
    rng = np.random.default_rng(2)
    p = rng.random(300)
    y = (rng.random(300) < p**1.5).astype(int)
    found = calibration_test(y, p, statistic="averaged_two_bin_error", n_resamples=99)
    assert found.pvalue == 0.01
    drawn = np.mean(found.null_distribution)
    assert drawn == pytest.approx(cumulative_differences(y, p).sigma ** 2, rel=0.25)


def test_the_picture_holds_what_is_averaged():
    rng = np.random.default_rng(3)
    p, y = rng.random(50), rng.integers(0, 2, 50)
    display = CumulativeDifferenceDisplay.from_predictions(y, p, axis="score")
    [[(threshold, below), (_, above)]] = display.get_plotted_data()
    area = np.diff(threshold) @ (below[:-1] ** 2 + above[:-1] ** 2)
    error = averaged_two_bin_error(y, p)
    assert area == pytest.approx(error, abs=1e-14)
    assert f"{error:.3g}" in display.ax_.get_legend().get_title().get_text()
    with raises_invalid_input(
        ValueError, expected=".*axis among rows, score", value="'rank'"
    ):
        CumulativeDifferenceDisplay.from_predictions(y, p, axis="rank")
