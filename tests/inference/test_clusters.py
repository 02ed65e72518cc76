"""Clusters of rows: what `groups` change, beside programs written from the definitions."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from sklearn_calib.inference import (
    ClusterSample,
    PairedLosses,
    bootstrap_distribution,
    calibration_test,
    confidence_interval,
    paired_difference,
    spiegelhalter_test,
    validation_summary,
)
from sklearn_calib.inference._clusters import mean_error
from sklearn_calib.metrics import brier_loss, canonical_case, smooth_calibration_error
from sklearn_calib.summary import CalibrationSummary


def copies(n=60, times=5, seed=0):
    """Rows that are five copies of a few: clusters, labels, probabilities, and the few."""
    rng = np.random.default_rng(seed)
    p = np.round(expit(rng.normal(size=n)), 2)
    y = (rng.random(n) < p).astype(int)
    place = np.tile(np.arange(n), times)
    return place, y[place], p[place], y, p


def test_copies_of_a_row_are_one_row():
    """What independent rows have by the same mechanism; copies add nothing but rows."""
    groups, y, p, few, scores = copies()
    own = np.arange(len(few))
    given, alone = {"groups": groups}, {"groups": own}
    assert spiegelhalter_test(y, p, **given).pvalue == pytest.approx(
        spiegelhalter_test(few, scores, **alone).pvalue
    )
    how = {"statistic": "kernel_calibration_error", "n_resamples": 99}
    many, one = (
        calibration_test(y, p, **how, **given),
        calibration_test(few, scores, **how, **alone),
    )
    assert many.null_distribution == pytest.approx(one.null_distribution)
    assert many.pvalue == one.pvalue
    tables = [
        validation_summary(*rows, n_resamples=9, groups=which)
        for *rows, which in ((y, p, groups), (few, scores, own))
    ]
    for quantity in ("O/E", "calibration in the large", "intercept", "slope", "Cox chi-square"):
        many, one = (table[quantity] for table in tables)
        for name in ("estimate", "low", "high", "pvalue"):
            found, wanted = getattr(many, name), getattr(one, name)
            near = 0.02 if quantity == "O/E" else 1e-6  # which counts the rows too
            assert found == pytest.approx(wanted, rel=near, nan_ok=True), (quantity, name)
    other = np.clip(p + 0.1, 0, 1)
    many = paired_difference(y, p, other, **given)
    one = paired_difference(few, scores, np.clip(scores + 0.1, 0, 1), **alone)
    assert (many.low, many.high) == pytest.approx((one.low, one.high))


@pytest.mark.slow
def test_groups_matter_everywhere():
    """Whoever ignores the option gives the narrow intervals of independent rows."""
    groups, y, p, *_ = copies(200)
    q = np.clip(p + np.where(groups % 2, 0.1, -0.1), 0.01, 0.99)
    assert spiegelhalter_test(y, p, groups=groups) != spiegelhalter_test(y, p)

    def width(found):
        return found.high - found.low

    for measure in ("log_loss", "ranked_probability_score", "accuracy"):
        how = {"n_resamples": 39}
        with_, without = (
            paired_difference(y, p, q, measure, groups=g, **how) for g in (groups, None)
        )
        assert width(with_) > 1.4 * width(without), measure
    for measure in ("brier_loss", "kernel_calibration_error"):
        with_, without = (
            confidence_interval(y, q, measure, n_resamples=39, groups=g) for g in (groups, None)
        )
        assert width(with_) > 1.3 * width(without), measure
    with_, without = (validation_summary(y, p, n_resamples=19, groups=g) for g in (groups, None))
    for quantity in ("O/E", "slope", "intercept"):
        assert width(with_[quantity]) > 1.5 * width(without[quantity])
    assert with_["ICI"].if_calibrated > 1.5 * without["ICI"].if_calibrated
    assert with_["Cox chi-square"].pvalue > without["Cox chi-square"].pvalue
    spread = [
        bootstrap_distribution(canonical_case("t", y, p), brier_loss.of_case, 60, groups=g).std()
        for g in (groups, None)
    ]
    assert spread[0] > 1.5 * spread[1]


def test_slope_errors_against_the_definition():
    groups, y, p, *_ = copies(80, seed=2)
    z = np.log(p / (1 - p))
    row = validation_summary(y, p, n_resamples=1, groups=groups)["slope"]
    x = np.column_stack([np.ones_like(z), z])
    beta = np.zeros(2)
    for _ in range(30):
        mean = expit(x @ beta)
        bread = np.linalg.inv(x.T @ (x * (mean * (1 - mean))[:, None]))
        beta = beta + bread @ x.T @ (y - mean)
    pull = np.array([(x * (y - mean)[:, None])[groups == g].sum(axis=0) for g in range(80)])
    error = np.sqrt(np.diag(bread @ (pull.T @ pull) @ bread)[1] * 80 / 79)
    half = stats.t.ppf(0.975, 79) * error
    assert (row.low, row.high) == pytest.approx((beta[1] - half, beta[1] + half), rel=1e-6)
    assert row.estimate == pytest.approx(beta[1])


def test_the_error_of_a_mean_against_the_definition():
    """Sums of clusters, by hand; few of them and weights that differ, so that both matter."""
    values, weight = np.array([0.3, 0.9, 0.1, 0.4, 0.8]), np.array([1.0, 5.0, 2.0, 0.5, 1.0])
    groups = np.array([0, 0, 1, 2, 2])
    off = weight * (values - np.average(values, weights=weight))
    pull = np.array([off[:2].sum(), off[2], off[3:].sum()])
    error = np.sqrt(3 / 2 * (pull**2).sum()) / 9.5
    assert mean_error(values, weight, groups) == pytest.approx(error, rel=1e-13)


def test_paired_losses_against_the_definition():
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 12, 90).astype(str)
    one, two, weight = rng.random((3, 90))
    sums = PairedLosses()
    for rows in (slice(0, 50), slice(50, 90)):  # clusters go on in the second block
        sums.add(one[rows], two[rows], weight[rows], groups[rows])
    found = sums.difference("loss", 0.9)
    change, names = two - one, np.unique(groups)
    mean = weight @ change / weight.sum()
    pull = np.array([(weight * (change - mean))[groups == g].sum() for g in names])
    n = len(names)
    error = np.sqrt(n / (n - 1) * (pull**2).sum()) / weight.sum()
    assert found.high - mean == pytest.approx(stats.t.ppf(0.95, n - 1) * error)
    with pytest.raises(ValueError, match="groups in all blocks or in none, got groups in some"):
        sums.add(one, two)


def test_draws_of_clusters():
    groups, y, p, *_ = copies(40, seed=3)
    case = canonical_case("t", y, p)
    (problem,) = case.problems()
    sample = ClusterSample(problem, groups)
    rng = np.random.default_rng(0)
    mass = sample.weight.sum(axis=1)
    redrawn = np.array([sample.redrawn(rng).weight.sum() for _ in range(50)])
    assert redrawn == pytest.approx(np.full(50, 200.0))  # clusters of one size
    ones = sample.events(4000, rng)
    residual = np.zeros((40, len(mass)))
    cell = sample.place // 2
    np.add.at(residual, (groups, cell), y - p)
    assert ones.mean(axis=0) == pytest.approx(mass * sample.proba[:, 1], abs=0.7)
    assert ones.var(axis=0) == pytest.approx((residual**2).sum(axis=0), rel=0.1, abs=1e-9)
    drawn = sample.relabelled(rng).weight.reshape(-1, 2)
    assert drawn.sum(axis=1) == pytest.approx(mass)
    assert smooth_calibration_error.of_case(sample.case) == pytest.approx(
        smooth_calibration_error.of_case(case)
    )
    score = rng.random(2000)
    (problem,) = canonical_case("t", rng.random(2000) < score, score).problems()
    few = ClusterSample(problem, np.arange(2000) % 50, 256)
    assert 64 < len(few.proba) <= 256 and few.weight.sum() == 2000
    assert few.weight.sum(axis=1) @ few.proba[:, 1] == pytest.approx(score.sum())


def test_share_intervals():
    """Korn and Graubard's: of copies Clopper and Pearson's of the few."""
    groups, y, _p, few, _scores = copies(50, seed=4)
    (problem,) = canonical_case("t", y, np.full(len(y), 0.5)).problems()
    ends = ClusterSample(problem, groups).share_intervals(np.zeros(1, dtype=int), 1, 0.9)
    exact = stats.binomtest(int(few.sum()), 50).proportion_ci(0.9, "exact")
    assert ends[0][0] == pytest.approx(exact.low, abs=0.01)
    assert ends[1][0] == pytest.approx(exact.high, abs=0.01)
    (problem,) = canonical_case("t", np.ones(100, int), np.full(100, 0.9), labels=[0, 1]).problems()
    ends = ClusterSample(problem, np.arange(100) // 5).share_intervals(np.zeros(1, int), 1, 0.9)
    assert 0.8 < ends[0][0] <= 0.05 ** (1 / 20) and ends[1][0] == 1


def test_weights_and_rows_of_weight_zero():
    groups, y, p, *_ = copies(40)
    weight = np.ones(len(y))
    weight[::3] = 0
    kept = weight > 0
    names = np.array([f"q{g}" for g in groups])
    for function in (spiegelhalter_test, validation_summary, calibration_test):
        how = {} if function is spiegelhalter_test else {"n_resamples": 9}
        one = function(y, p, sample_weight=weight, groups=names, **how)
        two = function(y[kept], p[kept], groups=names[kept], **how)
        if function is validation_summary:
            one, two = one["slope"], two["slope"]
            assert (one.low, one.high) == pytest.approx((two.low, two.high))
        else:
            assert one.pvalue == two.pvalue


def test_refusals():
    groups, y, p, *_ = copies(20)
    with pytest.raises(ValueError, match="groups: one value for each of the 100 rows"):
        calibration_test(y, p, groups=groups[:-1])
    with pytest.raises(ValueError, match="at least two groups, which are drawn, got one"):
        spiegelhalter_test(y, p, groups=np.zeros(100))
    with pytest.raises(ValueError, match="at least three groups, got 2"):
        validation_summary(y, p, groups=groups % 2)
    with pytest.raises(ValueError, match="smoother='loess' with groups"):
        validation_summary(y, p, groups=groups, smoother="isotonic")
    with pytest.raises(ValueError, match="a calibration error or a proper loss"):
        calibration_test(y, p, groups=groups, statistic=lambda y, p: 0.0)
    with pytest.raises(ValueError, match="a calibration error with its default options"):
        confidence_interval(y, p, "brier_loss", method="inversion", groups=groups)
    summary = CalibrationSummary().update(y, p)
    with pytest.raises(ValueError, match="groups need the rows"):
        confidence_interval(summary, groups=groups)
    with pytest.raises(ValueError, match="summaries, which know of none"):
        measure = "smooth_calibration_error"
        paired_difference(None, summary, summary, measure, groups=groups)


@pytest.mark.cross
@pytest.mark.parametrize(("n_clusters", "draws"), [(30, 400)])
def test_level_and_coverage(n_clusters, draws):
    """A small version of ``benchmarks/cluster_coverage``, on both sides."""
    found = []
    for number in range(draws):
        rng = np.random.default_rng(number)
        groups = np.repeat(np.arange(n_clusters), 5)
        z = rng.normal(size=n_clusters)[groups] + 0.5 * rng.normal(size=len(groups))
        cause = np.sqrt(0.6) * rng.normal(size=n_clusters)[groups]
        u = stats.norm.cdf(cause + np.sqrt(0.4) * rng.normal(size=len(groups)))
        y, p = (u < expit(z)).astype(int), expit(z)
        table = validation_summary(y, p, level=0.9, n_resamples=1, groups=groups)
        row = [spiegelhalter_test(y, p, groups=groups).pvalue <= 0.05]
        row.append(calibration_test(y, p, n_resamples=39, groups=groups).pvalue <= 0.05)
        row += [table["slope"].low > 1, table["slope"].high < 1]
        found.append([*row, table["intercept"].low > 0, table["intercept"].high < 0])
    rates = np.mean(found, axis=0)
    assert (rates[:2] >= 0.02).all() and (rates[:2] <= 0.085).all(), rates
    assert (rates[2:] >= 0.02).all() and (rates[2:] <= 0.085).all(), rates
