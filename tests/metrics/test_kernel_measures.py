from itertools import pairwise

import numpy as np
import pytest
from cases import run_every_case
from error_fields import raises_invalid_input
from scipy.integrate import trapezoid

from sklearn_calib.metrics import (
    convolved_calibration_error,
    interval_calibration_error,
    kernel_calibration_error,
    lower_distance_to_calibration,
    random_interval_calibration_error,
    smooth_calibration_error,
)

MEASURES = [
    convolved_calibration_error,
    interval_calibration_error,
    kernel_calibration_error,
    lower_distance_to_calibration,
    random_interval_calibration_error,
    smooth_calibration_error,
]


@pytest.fixture(params=range(8))
def rows(request):
    rng = np.random.default_rng(request.param)
    n = rng.integers(2, 120)
    v = rng.beta(0.5, 0.5, n) if request.param % 2 else np.round(rng.random(n), 1)
    y = (rng.random(n) < rng.choice([v, 1 - v])).astype(int)
    return v, y, rng.random(n) if request.param % 3 else np.ones(n)


def test_laplace_kernel_is_the_double_sum(rows):
    v, y, w = rows
    r = w / w.sum() * (y - v)
    for bandwidth in (0.01, 1.0):
        gram = np.exp(-np.abs(v[:, None] - v) / bandwidth)
        found = kernel_calibration_error(
            y, v, bandwidth=bandwidth, sample_weight=w, labels=[0, 1]
        )
        assert found == pytest.approx(np.sqrt(r @ gram @ r), abs=1e-12)


def test_random_intervals_average_over_the_shift(rows):
    v, y, w = rows
    r = w / w.sum() * (y - v)
    for width in (0.07, 0.25, 1.0):
        # constant between these
        cuts = np.unique(np.concatenate([[0, width], v % width]))
        total = 0.0
        for low, high in pairwise(cuts):
            cell = np.floor((v - (low + high) / 2) / width).astype(int)
            total += (high - low) * np.abs(np.bincount(cell - cell.min(), r)).sum()
        found = random_interval_calibration_error(
            y, v, width=width, sample_weight=w, labels=[0, 1]
        )
        assert found == pytest.approx(total / width, abs=1e-12)


def test_surrogate_interval_error_is_the_best_width(rows):
    v, y, w = rows
    options = {"sample_weight": w, "labels": [0, 1]}
    widths = 2.0 ** -np.arange(19)
    by_hand = min(
        random_interval_calibration_error(y, v, width=width, **options) + width
        for width in widths
    )
    found = interval_calibration_error(y, v, **options)
    assert found <= by_hand + 1e-12
    if by_hand - found > 1e-12:  # the limit of narrow intervals is less
        _, code = np.unique(v, return_inverse=True)
        limit = np.abs(np.bincount(code, w / w.sum() * (y - v))).sum()
        assert found == pytest.approx(limit, abs=1e-12)
    assert found >= lower_distance_to_calibration(y, v, **options) - 1e-3


def reflected_gaussian(v, r, bandwidth, n_points=4001):
    """The definition: smooth, reflect at both ends, integrate the absolute value."""
    t = np.linspace(0, 1, n_points)
    total = np.zeros(n_points)
    reach = 1 + int(np.ceil(4 * bandwidth))  # 8 standard deviations
    for image in range(-reach, reach + 1):
        for centre in (2 * image + v, 2 * image - v):
            z = (t[:, None] - centre) / bandwidth
            total += (np.exp(-(z**2) / 2) / (bandwidth * np.sqrt(2 * np.pi))) @ r
    return trapezoid(np.abs(total), t)


@pytest.mark.slow
def test_convolution_is_the_reflected_gaussian(rows):
    v, y, w = rows
    r = w / w.sum() * (y - v)
    options = {"sample_weight": w, "labels": [0, 1]}
    for bandwidth in (0.02, 0.1, 0.7):
        found = convolved_calibration_error(y, v, bandwidth=bandwidth, **options)
        assert found == pytest.approx(reflected_gaussian(v, r, bandwidth), abs=2e-5)
    fixed = convolved_calibration_error(y, v, **options)
    at = convolved_calibration_error(y, v, bandwidth=fixed, **options)
    assert at == pytest.approx(fixed, abs=1e-8)


@run_every_case("measure", MEASURES, ids=lambda m: m.__name__)
def test_counts_of_equal_predictions(measure):
    rng = np.random.default_rng(0)
    v = rng.integers(0, 21, 3000) / 20
    y = (rng.random(3000) < v**2).astype(int)
    levels, code = np.unique(v, return_inverse=True)
    ones, total = np.bincount(code, y), np.bincount(code)
    pooled = measure(
        np.repeat([1, 0], len(levels)),
        np.tile(levels, 2),
        sample_weight=np.concatenate([ones, total - ones]),
    )
    assert pooled == pytest.approx(measure(y, v), abs=1e-12)


@run_every_case("measure", MEASURES, ids=lambda m: m.__name__)
def test_calibrated_and_not(measure):
    rng = np.random.default_rng(0)
    v = rng.random(20_000)
    good = measure((rng.random(20_000) < v).astype(int), v)
    bad = measure((rng.random(20_000) < v**2).astype(int), v)
    assert good < 0.06
    assert bad > 2.5 * good
    assert measure([0, 1], [-1e-9, 1 + 1e-9]) == pytest.approx(0, abs=0.01)
    with raises_invalid_input(ValueError, value=r"1\.01"):
        measure([0, 1], [0.5, 1.01])


@pytest.mark.parametrize(
    "measure, options, message",
    [
        (
            kernel_calibration_error,
            {"bandwidth": 0},
            "a finite bandwidth above 0, got 0",
        ),
        (
            kernel_calibration_error,
            {"kernel": "rbf"},
            "expected kernel 'laplace', got 'rbf'",
        ),
        (
            convolved_calibration_error,
            {"bandwidth": -1},
            "a bandwidth above 0, or None, got -1",
        ),
        (
            random_interval_calibration_error,
            {"width": 2},
            "a width from 1e-6 to 1, got 2",
        ),
    ],
)
def test_bad_options(measure, options, message):
    with pytest.raises(ValueError, match=message):
        measure([0, 1], [0.2, 0.4], **options)


@pytest.mark.parametrize("estimator", ["biased", "unbiased", "linear"])
def test_a_common_factor_of_the_weights_says_nothing(estimator):
    rng = np.random.default_rng(0)
    p, weight = rng.uniform(size=20), rng.uniform(1, 2, size=20)
    y, options = rng.random(20) < p, {"multiclass": "canonical", "estimator": estimator}
    found = kernel_calibration_error(y, p, sample_weight=weight, **options)
    for scale in (1e-300, 1e300):
        scaled = kernel_calibration_error(y, p, sample_weight=scale * weight, **options)
        assert scaled == pytest.approx(found, rel=1e-10)
