"""Labels of clusters that are drawn, for errors of bins, which a change of sign leaves alone."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from sklearn_calib._kernels._cluster_sums import bound_total_within_cluster_covariance
from sklearn_calib.inference import ClusterSample, calibration_test
from sklearn_calib.metrics import validate_predictions

OF_BINS = ["expected_calibration_error", "maximum_calibration_error"]


def rows(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    p = expit(shift + rng.normal(size=n))
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("statistic", OF_BINS)
@pytest.mark.parametrize("times", [1, 4])
def test_copies_are_drawn_as_the_rows_they_are_copies_of(times, statistic):
    """One row in each of 15 bins: a sign leaves all sizes, and p was 1 or the smallest of all."""
    p = np.arange(15) / 15 + 0.03
    groups = np.tile(np.arange(15), times)
    for seed in range(2):
        y = (np.random.default_rng(seed).random(15) < p).astype(int)
        how = {"statistic": statistic, "n_resamples": 299, "labels": [0, 1]}
        few = calibration_test(y, p, **how)
        found = calibration_test(y[groups], p[groups], groups=groups, **how)
        assert found.statistic == pytest.approx(few.statistic)
        assert found.pvalue == pytest.approx(few.pvalue, abs=0.1)
        # sums are ties
        both = (np.round(each.null_distribution, 9) for each in (found, few))
        assert stats.ks_2samp(*both).statistic < 0.12


def sample_of(y, p, groups=None, **options):
    case = validate_predictions(y, p, **options)
    (problem,) = case.problems()
    groups = np.arange(len(p)) if groups is None else groups
    items = case.items
    groups = groups if items is None else groups[items]
    return ClusterSample(problem, groups, items=items)


def test_the_covariance_against_the_definition():
    rng = np.random.default_rng(1)
    groups = np.unique(rng.integers(0, 4, 14), return_inverse=True)[1]
    p, w = np.round(rng.random(14), 1), rng.integers(1, 4, 14) * 1.0
    pairs = [
        (i, j)
        for i in range(14)
        for j in range(14)
        if i != j and groups[i] == groups[j]
    ]
    wanted = sum(w[i] * w[j] * (min(p[i], p[j]) - p[i] * p[j]) for i, j in pairs)
    assert bound_total_within_cluster_covariance(p, w, groups) == pytest.approx(wanted)
    assert bound_total_within_cluster_covariance(p, w, np.arange(14)) == pytest.approx(
        0, abs=1e-12
    )


def test_clusters_of_drawn_labels_vary_as_those_of_the_rows():
    """The sums of clusters have the squares that they have over those of independent rows."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(40), 5)
    u = np.where(rng.random(200) < 0.7, rng.random(40)[groups], rng.random(200))
    p = rng.uniform(0.2, 0.8, 200)
    weight = rng.integers(1, 4, 200) * 1.0
    y = (u < p).astype(int)
    sample = sample_of(y, p, groups, sample_weight=weight)
    pull = weight * (y - p)
    effect = (np.bincount(groups, pull) ** 2).sum() / (pull**2).sum()
    total = np.array(
        [sample.draw_dependent_labels(rng).weight[1::2].sum() for _ in range(800)]
    )
    assert effect > 1.5 and total.mean() == pytest.approx(weight @ p, rel=0.01)
    assert total.var() == pytest.approx(effect * (weight**2 @ (p * (1 - p))), rel=0.17)
    drawn = sample.draw_dependent_labels(rng).weight
    assert (drawn >= 0).all() and drawn.sum() == pytest.approx(weight.sum())
    # against each other: not less than independent rows
    even = sample_of(
        np.tile([0, 1], 100), np.full(200, 0.5), np.repeat(np.arange(100), 2)
    )
    total = np.array([even.draw_dependent_labels(rng).weight[1] for _ in range(1000)])
    assert total.var() == pytest.approx(50, rel=0.15)


@pytest.mark.parametrize("together", [False, True])
def test_soft_labels_are_drawn_as_votes(together):
    """As many as have the spread of the shares; of one item by itself, or of items that agree."""
    rng = np.random.default_rng(3)
    p, groups = np.full(300, 0.4), np.arange(300) // (3 if together else 1)
    share = (rng.random((100, 1, 5) if together else (300, 1, 5)) < 0.4).mean(axis=2)
    share = np.repeat(share.ravel(), 3 if together else 1)
    sample = sample_of(share, p, groups, soft_labels=True)
    total = np.array([sample.draw_dependent_labels(rng).weight[1] for _ in range(600)])
    assert total.mean() == pytest.approx(120, rel=0.01)
    items = 100 if together else 300
    assert total.var() == pytest.approx(items * (300 / items) ** 2 * 0.24 / 5, rel=0.2)


@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@pytest.mark.parametrize("statistic", OF_BINS)
def test_certain_predictions_have_one_law(statistic):
    y, groups = np.tile([0, 1], 20), np.arange(40) // 4
    given = {"groups": groups, "n_resamples": 19, "statistic": statistic}
    assert calibration_test(y, y * 1.0, **given).pvalue == 1
    found = calibration_test(np.r_[1, y[1:]], y * 1.0, **given)
    assert found.pvalue == 0.05 and not found.null_distribution.any()
    share = np.full(40, 0.5)
    assert calibration_test(share, share, soft_labels=True, **given).pvalue == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
def test_level_of_one_row_in_each_cluster():
    """A small version of ``benchmarks/cluster_coverage/bins.py``; signs rejected 0.13 of these."""
    for statistic in OF_BINS:
        given = {"groups": np.arange(60), "n_resamples": 39, "statistic": statistic}
        found = [
            calibration_test(*rows(60, [7, n]), **given).pvalue for n in range(200)
        ]
        assert 0.01 <= np.mean(np.array(found) <= 0.05) <= 0.09, statistic
