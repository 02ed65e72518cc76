"""paired_difference: the difference itself, what pairing is worth, and how often it is held."""

import numpy as np
import pytest

from sklearn_calib.inference import confidence_interval, paired_difference
from sklearn_calib.metrics import all_metrics, get_loss


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n)
    truth = 1 / (1 + np.exp(-z))
    return (rng.random(n) < truth).astype(int), truth, 1 / (1 + np.exp(-2 * z))


@pytest.mark.parametrize("measure", ["log_loss", "brier_loss", "smooth_calibration_error"])
def test_the_difference_of_two_measures(measure):
    y, p, q = rows()
    found = paired_difference(y, p, q, measure, n_resamples=19)
    function = all_metrics()[measure]
    assert found.first == pytest.approx(function(y, p)) == found.second - found.difference
    assert found.second == pytest.approx(function(y, q))
    assert found.low <= found.difference <= found.high
    back = paired_difference(y, q, p, measure, n_resamples=19)
    assert back.difference == -found.difference
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low), abs=1e-12)


def test_the_normal_interval_is_that_of_the_mean_of_differences():
    y, p, q = rows()
    found = paired_difference(y, p, q, level=0.95)
    loss = [-np.log(np.where(y, s, 1 - s)) for s in (p, q)]
    d = loss[1] - loss[0]
    half = 1.959964 * d.std(ddof=1) / np.sqrt(len(d))
    assert found.method == "normal"
    assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half), rel=1e-6)
    apart = np.hypot(*(part.std(ddof=1) for part in loss)) / np.sqrt(len(d))
    assert half < 0.6 * 1.96 * apart, "pairing is worth something"
    accuracy = paired_difference(y, p, q, "accuracy")
    assert (accuracy.difference, accuracy.low, accuracy.high) == (0, 0, 0)


def test_weights_count_rows():
    y, p, q = rows(60)
    weight = np.random.default_rng(1).integers(1, 4, 60)
    repeated = [np.repeat(column, weight) for column in (y, p, q)]
    weighted = paired_difference(y, p, q, sample_weight=weight)
    assert weighted.difference == pytest.approx(paired_difference(*repeated).difference)
    flat = paired_difference(y, p, q, sample_weight=np.full(60, 3.0))
    assert (flat.low, flat.high) == pytest.approx(
        (paired_difference(y, p, q).low, paired_difference(y, p, q).high)
    )


@pytest.mark.slow
def test_the_combined_interval_holds_both_alone():
    y, p, q = rows(200)
    options = {"n_resamples": 39, "level": 0.9}
    one, two = (confidence_interval(y, s, **options) for s in (p, q))
    found = paired_difference(y, p, q, "smooth_calibration_error", **options)
    assert found.method == "combined"
    assert (found.low, found.high) == (two.low - one.high, two.high - one.low)
    assert found.high - found.low > max(one.high - one.low, two.high - two.low)


@pytest.mark.parametrize("name", ["log", "brier", "spherical"])
def test_losses_by_the_normal_law(name):
    y, p, q = rows()
    found = paired_difference(y, p, q, f"{name}_loss", level=0.95)
    first, second = (get_loss(name).of_rows(np.column_stack([1 - s, s]), y) for s in (p, q))
    d = second - first
    half = 1.959964 * d.std(ddof=1) / np.sqrt(len(d))
    assert found.method == "normal"
    assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half), rel=1e-6)


def test_other_proper_losses_by_the_bootstrap():
    """The ranked probability score, which of two classes is the Brier loss."""
    y, p, q = rows(300)
    normal = paired_difference(y, p, q, "brier_loss", level=0.9)
    found = paired_difference(y, p, q, "ranked_probability_score", level=0.9, n_resamples=499)
    assert found.method == "bootstrap" and found.difference == pytest.approx(normal.difference)
    width = normal.high - normal.low
    assert abs(found.low - normal.low) + abs(found.high - normal.high) < 0.2 * width


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "auc"}, r"paired_difference: expected a measure among accuracy, .*got 'auc'"),
        ({"level": 95}, r"expected a level between 0 and 1, got 95\. Pass for instance 0\.95"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        paired_difference(*rows(20), **options)


def test_coverage():
    """A small version of ``benchmarks/paired_coverage``, on both sides."""
    misses = np.zeros(2)
    for seed in range(300):
        y, p, q = rows(150, seed)
        found = paired_difference(y, p, q, "brier_loss", level=0.8)
        misses += found.low > TRUTH, found.high < TRUTH
    assert (misses > 12).all() and (misses < 55).all(), misses  # 30 expected on each side


_z = 1.5 * np.random.default_rng(1).normal(size=1_000_000)
_truth, _sharp = 1 / (1 + np.exp(-_z)), 1 / (1 + np.exp(-2 * _z))
TRUTH = float(((_truth - _sharp) ** 2).mean())


@pytest.mark.parametrize("measure", ["smooth_calibration_error", "ranked_probability_score"])
def test_weights_go_to_both_models(measure):
    y, p, q = rows(80)
    weight = 1 + 2 * y
    found = paired_difference(y, p, q, measure, n_resamples=39, sample_weight=weight)
    for value, proba in ((found.first, p), (found.second, q)):
        assert value == pytest.approx(all_metrics()[measure](y, proba, sample_weight=weight))
        assert value != pytest.approx(all_metrics()[measure](y, proba))
