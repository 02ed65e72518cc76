"""Exact tests by measures that have no law of their own reject as often as they say.

A small sample of ``benchmarks/exact_levels``.
"""

import numpy as np
import pytest
from scipy.special import softmax

from sklearn_calib.inference import calibration_test

DRAWS = 39  # p-values are multiples of 1/40: a level of 0.1 is reached exactly
CANONICAL = {"multiclass": "canonical", "bandwidth": "median"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("integrated_calibration_index", {}),
        ("cumulative_calibration_error", {}),
        ("expected_calibration_error", {"n_bins": "sweep"}),
        ("kernel_calibration_error", CANONICAL),
        ("kernel_calibration_error", {**CANONICAL, "estimator": "linear"}),
    ],
)
def test_level(name, options):
    sets, found = 200, []
    for number in range(sets):
        rng = np.random.default_rng(number)
        proba = softmax(rng.normal(size=(50, 3)), axis=1)
        y = (rng.random(50)[:, None] > proba.cumsum(axis=1)[:, :2]).sum(axis=1)
        given = {"labels": range(3), "n_resamples": DRAWS, "random_state": number}
        found.append(
            calibration_test(y, proba, statistic=name, **given, **options).pvalue
        )
    for level in (0.1, 0.5):
        share = np.mean(np.array(found) <= level + 1e-9)
        assert abs(share - level) < 3.3 * np.sqrt(level * (1 - level) / sets), (
            level,
            share,
        )
