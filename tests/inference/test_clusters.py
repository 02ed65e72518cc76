"""Clusters of rows: what `groups` change, beside programs written from the definitions."""

import numpy as np
import pytest
from error_fields import raises_invalid_input
from scipy import linalg, stats
from scipy.special import expit, logit

from sklearn_calib._kernels._cluster_sums import (
    compute_cluster_mean_with_error_and_df,
    compute_jackknife_standard_errors_and_df,
    estimate_df_and_variance_ratio,
)
from sklearn_calib.exceptions import CalibrationWarning
from sklearn_calib.inference import (
    ClusterSample,
    PairedLosses,
    calibration_test,
    confidence_interval,
    cox_test,
    cumulative_test,
    hosmer_lemeshow_test,
    paired_difference,
    simulate_bootstrap_distribution,
    spiegelhalter_test,
    validation_summary,
)
from sklearn_calib.inference._clusters import (
    compute_clustered_loss_interval,
    compute_small_sample_inflation,
)
from sklearn_calib.metrics import (
    all_metrics,
    brier_loss,
    smooth_calibration_error,
    validate_predictions,
)
from sklearn_calib.report import calibration_report
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
    for quantity in (
        "O/E",
        "calibration in the large",
        "intercept",
        "slope",
        "Cox chi-square",
    ):
        many, one = (table[quantity] for table in tables)
        for name in ("estimate", "low", "high", "pvalue"):
            found, wanted = getattr(many, name), getattr(one, name)
            near = 0.02 if quantity == "O/E" else 1e-6  # which counts the rows too
            assert found == pytest.approx(wanted, rel=near, nan_ok=True), (
                quantity,
                name,
            )
    other = np.clip(p + 0.1, 0, 1)
    many = paired_difference(y, p, other, **given)
    one = paired_difference(few, scores, np.clip(scores + 0.1, 0, 1), **alone)
    assert (many.low, many.high) == pytest.approx((one.low, one.high))


@pytest.mark.slow
def test_groups_matter_everywhere():
    """Code that ignores the option gives the narrow intervals of independent rows."""
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
            confidence_interval(y, q, measure, n_resamples=39, groups=g)
            for g in (groups, None)
        )
        assert width(with_) > 1.3 * width(without), measure
    with_, without = (
        validation_summary(y, p, n_resamples=19, groups=g) for g in (groups, None)
    )
    for quantity in ("O/E", "slope", "intercept"):
        assert width(with_[quantity]) > 1.5 * width(without[quantity])
    assert with_["ICI"].null_mean > 1.5 * without["ICI"].null_mean
    assert with_["Cox chi-square"].pvalue > without["Cox chi-square"].pvalue
    spread = [
        simulate_bootstrap_distribution(
            validate_predictions(y, p), brier_loss.evaluate, 60, groups=g
        ).std()
        for g in (groups, None)
    ]
    assert spread[0] > 1.5 * spread[1]


def line_of(y, p):
    """Columns, fitted log-odds and the matrix of second derivatives, by Newton's steps."""
    x = np.column_stack([np.ones_like(p), logit(p)])
    beta = np.zeros(2)
    for _ in range(30):
        mean = expit(x @ beta)
        curvature = x.T @ (x * (mean * (1 - mean))[:, None])
        beta = beta + np.linalg.solve(curvature, x.T @ (y - mean))
    return x, beta, curvature


def test_slope_errors_against_the_definition():
    """Each cluster left out, by one step of Newton's; Student's law of fourth moments."""
    groups, y, p, *_ = copies(80, seed=2)
    row = validation_summary(y, p, n_resamples=1, groups=groups)["slope"]
    x, beta, curvature = line_of(y, p)
    mean = expit(x @ beta)
    variance, away = mean * (1 - mean), y - mean
    moved = []
    for g in range(80):
        rest = groups != g
        without = x[rest].T @ (x[rest] * variance[rest, None])
        moved.append(np.linalg.solve(without, x[rest].T @ away[rest])[1])
    error = np.sqrt(79 / 80 * np.square(moved).sum())
    pull = x @ np.linalg.inv(curvature)[:, 1]
    alone = np.array([(pull**2 * variance)[groups == g].sum() for g in range(80)])
    effect = np.square([(pull * away)[groups == g].sum() for g in range(80)]).sum()
    effect /= (pull**2 * away**2).sum()
    tails = effect * (pull**4 * variance * (1 - 6 * variance)).sum()
    freedom = alone.sum() ** 2 / ((alone**2).sum() + tails / 2)
    most = alone.sum() ** 2 / (alone**2).sum() - 1
    half = stats.t.ppf(0.975, min(freedom, most)) * error
    assert (row.low, row.high) == pytest.approx(
        (beta[1] - half, beta[1] + half), rel=1e-6
    )
    assert row.estimate == pytest.approx(beta[1])


def test_rare_events_leave_few_degrees_of_freedom():
    """Of one event in twenty: 2 n v / (1 - 4 v), where a normal law has n - 1."""
    hit = np.zeros(40)
    hit[:2] = 1
    given = np.ones((40, 1)), np.full(40, logit(0.05)), hit, np.ones(40), np.arange(40)
    errors, degrees = compute_jackknife_standard_errors_and_df(*given)
    assert degrees == pytest.approx(2 * 40 * 0.0475 / 0.81)
    assert errors == pytest.approx(np.sqrt(1 / 1.9), rel=0.03)
    given = (
        np.ones((40, 1)),
        np.zeros(40),
        np.arange(40) % 2,
        np.ones(40),
        np.arange(40),
    )
    assert compute_jackknife_standard_errors_and_df(*given)[1] == pytest.approx(39)


def scores(x, y, p, groups):
    """U' V^-1 U, V the squared sums of clusters times known over seen squares of rows."""
    total = x.T @ (y - p)
    pulls = np.array(
        [x[groups == g].T @ (y - p)[groups == g] for g in np.unique(groups)]
    )
    if x.shape[1] == 1:
        ratio = (x[:, 0] ** 2 @ (p * (1 - p))) / (x[:, 0] ** 2 @ (y - p) ** 2)
        return (total**2 / (ratio * (pulls**2).sum())).item()
    known = x.T @ (x * (p * (1 - p))[:, None])
    root = linalg.sqrtm(np.linalg.inv(known))
    x, total, pulls = x @ root, total @ root, pulls @ root
    seen = linalg.sqrtm(x.T @ (x * ((y - p) ** 2)[:, None]))
    return total @ seen @ np.linalg.solve(pulls.T @ pulls, seen @ total)


def test_score_tests_against_the_definition():
    groups, y, p, *_ = copies(80, seed=2)
    z = logit(p)
    both = np.column_stack(
        [np.ones_like(z), z - (p * (1 - p)) @ z / (p * (1 - p)).sum()]
    )
    table = validation_summary(y, p, n_resamples=1, groups=groups)
    cox = cox_test(y, p, groups=groups)
    assert cox.statistic == pytest.approx(scores(both, y, p, groups), rel=1e-6)
    assert cox.pvalue == pytest.approx(stats.chi2.sf(cox.statistic, 2))
    row = table["Cox chi-square"]
    assert (row.estimate, row.pvalue) == pytest.approx(cox)
    found = spiegelhalter_test(y, p, groups=groups)
    assert found.statistic**2 == pytest.approx(scores(1 - 2 * p[:, None], y, p, groups))
    assert np.sign(found.statistic) == np.sign(((y - p) * (1 - 2 * p)).sum())
    assert found.pvalue == pytest.approx(2 * stats.norm.sf(abs(found.statistic)))
    moved = expit(z + table["calibration in the large"].estimate)
    alone = (z - (moved * (1 - moved)) @ z / (moved * (1 - moved)).sum())[:, None]
    square = scores(alone, y, moved, groups)
    assert table["slope"].pvalue == pytest.approx(stats.chi2.sf(square, 1), rel=1e-6)


def test_no_events_by_chance_are_no_proof():
    """30 patients of five equal rows at 0.05: none has the event in a fifth of all draws."""
    p, groups = np.full(150, 0.05), np.arange(150) // 5
    y = np.zeros(150, dtype=int)
    z = 7.5 / np.sqrt(5 * 150 * 0.0475)  # each patient counts once
    found = cox_test(y, p, groups=groups, labels=[0, 1])
    assert found.pvalue == pytest.approx(2 * stats.norm.sf(z)) and found.pvalue > 0.2
    how = {"groups": groups, "labels": [0, 1]}
    with pytest.warns(CalibrationWarning, match="both outcomes"):
        row = validation_summary(y, p, n_resamples=1, **how)["O/E"]
    assert row.low == row.estimate == 0 and row.high == pytest.approx(2.2, abs=0.2)
    assert row.pvalue == pytest.approx(found.pvalue)
    for test in (calibration_test, cumulative_test, hosmer_lemeshow_test):
        assert test(y, p, n_resamples=199, **how).pvalue > 0.1, test
    # a certain prediction that is wrong is a proof
    p[0], y[0] = 0.0, 1
    for test in (cox_test, spiegelhalter_test):
        assert test(np.r_[1, y], np.r_[0.0, p], groups=np.r_[30, groups]).pvalue < 1e-6


def test_the_interval_of_a_ratio_is_where_its_test_rejects():
    rng = np.random.default_rng(8)
    groups, y, p, *_ = copies(30, seed=3)
    weight = rng.integers(1, 4, len(y)).astype(float)
    given = {"groups": groups, "sample_weight": weight}
    rows = validation_summary(y, p, n_resamples=1, level=0.9, **given)

    def z(mean):
        off = np.array([(weight * (y - mean))[groups == g].sum() for g in range(30)])
        rate, m = np.average(y, weights=weight), np.average(mean, weights=weight)
        known = m * (1 - m) / (rate * (1 - rate) + (rate - m) ** 2)
        return off.sum() / np.sqrt(known * off @ off)

    one, large = rows["O/E"], rows["calibration in the large"]
    far = stats.norm.ppf(0.95)
    assert [z(one.low * p), z(one.high * p)] == pytest.approx([far, -far])
    ends = [z(expit(logit(p) + end)) for end in (large.low, large.high)]
    assert ends == pytest.approx([far, -far])
    assert one.low < one.estimate < one.high and large.low < large.estimate < large.high
    assert one.pvalue == pytest.approx(2 * stats.norm.sf(abs(z(p)))) == large.pvalue
    with pytest.warns(CalibrationWarning, match="overlap"):  # predicted without doubt
        row = validation_summary(y, y.astype(float), n_resamples=1, groups=groups)[
            "O/E"
        ]
    exact = stats.binomtest(round(30 * y.mean()), 30).proportion_ci(method="exact")
    assert (
        row.low == pytest.approx(exact.low / y.mean(), rel=0.05)
        and row.low < 1 < row.high
    )
    some = y == 1  # all are events
    with pytest.warns(CalibrationWarning, match="both outcomes"):
        how = {"groups": groups[some], "labels": [0, 1]}
        row = validation_summary(y[some], p[some], n_resamples=1, **how)["O/E"]
    assert row.high == pytest.approx(row.estimate) and 0 < row.low < row.estimate


@pytest.mark.parametrize("test", [cox_test, cumulative_test, hosmer_lemeshow_test])
def test_tests_of_clusters(test):
    groups, y, p, few, scores_ = copies(100)
    how = {} if test is cox_test else {"n_resamples": 99}
    many = test(y, p, groups=groups, **how)
    one = test(few, scores_, groups=np.arange(100), **how)
    # bins of equal scores may differ
    assert many.pvalue == pytest.approx(one.pvalue, abs=0.021)
    alone = test(y, p)
    assert many.pvalue > 1.1 * alone.pvalue
    off = expit(logit(p) + 1.5)
    assert test(y, off, groups=groups, **how).pvalue <= 0.02
    with raises_invalid_input(ValueError, expected="at least two groups"):
        test(y, p, groups=np.zeros(len(y)))


def test_hosmer_and_lemeshow_reject_if_every_bin_holds_one_cluster():
    """A change of sign leaves each bin as it was, so no draw would differ from what is seen."""
    groups = np.repeat(np.arange(10), 5)
    p = 0.3 + groups / 100
    how = {"groups": groups, "labels": [0, 1], "n_resamples": 199}
    found = hosmer_lemeshow_test(np.ones(50), p, **how)
    assert found.statistic == pytest.approx((5 * (1 - p) / p)[::5].sum())
    assert found.pvalue <= 0.01
    right = np.tile([1, 0, 0, 1, 0], 10)
    assert hosmer_lemeshow_test(right, p, **how).pvalue > 0.5


@pytest.mark.slow
def test_hosmer_and_lemeshow_keep_their_level_with_20_clusters():
    """The table of ``benchmarks/cluster_coverage`` has more draws, more laws, and power."""
    pvalues = []
    for seed in range(150):
        rng = np.random.default_rng([seed, 20])
        groups = np.repeat(np.arange(20), 3)
        z = rng.normal(size=20)[groups] + 0.5 * rng.normal(size=60)
        shared, own = rng.normal(size=20)[groups], rng.normal(size=60)
        y = stats.norm.cdf(np.sqrt(0.6) * shared + np.sqrt(0.4) * own) < expit(z)
        how = {"groups": groups, "labels": [0, 1], "n_resamples": 99}
        pvalues.append(hosmer_lemeshow_test(y.astype(int), expit(z), **how).pvalue)
    assert 0.35 < np.mean(np.array(pvalues) <= 0.5) < 0.65
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.1
    assert np.mean(np.array(pvalues) <= 0.01) <= 0.02


def test_draws_of_tests_are_options():
    groups, y, p, *_ = copies(60, seed=1)
    for test in (cumulative_test, hosmer_lemeshow_test):
        found = {
            test(y, p, groups=groups, random_state=s, n_resamples=49).pvalue
            for s in range(5)
        }
        assert len(found) > 1 and all(
            round(50 * one) == pytest.approx(50 * one) for one in found
        )
        with raises_invalid_input(ValueError, expected=".*n_resamples"):
            test(y, p, groups=groups, n_resamples=0)
    with raises_invalid_input(
        ValueError, expected="held_out=True, with groups or soft labels"
    ):
        hosmer_lemeshow_test(y, p, groups=groups, held_out=False)


def left_out(values, weight, groups):
    """(mean, error, degrees) by leaving out each cluster, and from whole matrices."""
    names = np.unique(groups)
    mean = np.average(values, weights=weight)
    others = [groups != name for name in names]
    means = np.array(
        [np.average(values[kept], weights=weight[kept]) for kept in others]
    )
    n, mass = len(names), np.array([weight[groups == name].sum() for name in names])
    residuals = np.eye(n) - mass[:, None] / mass.sum()  # times the sums of the clusters
    pulled = residuals / (mass.sum() - mass)[:, None]
    law = pulled @ np.diag(mass) @ pulled.T
    error = np.sqrt((n - 1) / n * ((means - mean) ** 2).sum())
    return mean, error, np.trace(law) ** 2 / (law**2).sum()


def test_the_interval_of_a_mean_against_the_definition():
    """Weights and sizes that differ, so that both matter; few clusters."""
    values, weight = (
        np.array([0.3, 0.9, 0.1, 0.4, 0.8]),
        np.array([1.0, 5.0, 2.0, 0.5, 1.0]),
    )
    groups = np.array([0, 0, 1, 2, 2])
    mean, error, degrees = left_out(values + 1, weight, groups)
    assert 1 < degrees < 2
    far = stats.t.ppf(0.95, degrees) * error / mean
    found = compute_clustered_loss_interval(values, weight, groups, 0.9, (-1.0, 0.9))
    assert found == pytest.approx((mean * np.exp(-far) - 1, 0.9), rel=1e-12)
    found = compute_clustered_loss_interval(
        values, weight, groups, 0.9, (-1.0, np.inf)
    )[1]
    assert found == pytest.approx(mean * np.exp(far) - 1, rel=1e-12)
    assert compute_clustered_loss_interval(
        np.zeros(5), weight, groups, 0.9, (0.0, 2.0)
    ) == (
        0.0,
        0.0,
    )


def test_clusters_of_one_size_have_one_degree_less_than_clusters():
    assert estimate_df_and_variance_ratio(np.full(20, 3.0)) == pytest.approx(
        (19.0, 1.0), rel=1e-12
    )
    longer = compute_small_sample_inflation(
        np.ones(60), np.repeat(np.arange(20), 3), 0.95
    )
    assert longer == pytest.approx(
        stats.t.ppf(0.975, 19) / stats.norm.ppf(0.975), rel=1e-12
    )


@pytest.mark.slow
def test_means_of_clusters_of_unequal_sizes_cover():
    """Of 8000 draws 0.954 held; with a degree less than clusters 0.939, by sums of squares 0.89."""
    rng, held = np.random.default_rng(3), []
    for _ in range(4000):
        mass = np.ceil(np.exp(rng.normal(size=20)))
        mean, error, degrees = compute_cluster_mean_with_error_and_df(
            rng.normal(size=20) * mass, mass
        )
        held.append(abs(mean) <= stats.t.ppf(0.975, degrees) * error)
    assert 0.946 <= np.mean(held) <= 0.964


@pytest.mark.parametrize("measure", ["log_loss", "brier_loss"])
def test_the_interval_of_a_loss_needs_no_draws(measure):
    rng = np.random.default_rng(5)
    groups, p = rng.integers(0, 20, 90), rng.random(90)
    y, weight = (rng.random(90) < p).astype(int), rng.random(90)
    given = {"groups": groups, "sample_weight": weight}
    found = confidence_interval(y, p, measure, random_state=0, **given)
    assert found == confidence_interval(y, p, measure, random_state=1, **given)
    losses = (
        (p - y) ** 2 if measure == "brier_loss" else -np.log(np.where(y == 1, p, 1 - p))
    )
    mean, error, degrees = left_out(losses, weight, groups)
    far = stats.t.ppf(0.975, degrees) * error / mean
    ends = mean * np.exp(-far), mean * np.exp(far)
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-9)
    given |= {"measures": [measure], "n_resamples": 9, "level": 0.95}
    row = calibration_report(y, p, **given).rows[0]
    assert (row.low, row.high) == pytest.approx(ends, rel=1e-9)


def test_resampled_differences_are_made_longer():
    """Percentiles of few clusters are too short, of a difference as of a measure."""
    rng = np.random.default_rng(5)
    groups, p = np.repeat(np.arange(6), [2, 3, 5, 8, 20, 30]), rng.random(68)
    y = (rng.random(68) < p).astype(int)
    measure, given = "area_under_risk_coverage", {"n_resamples": 50, "groups": groups}
    found = paired_difference(y, p, p**2, measure, **given)
    cases = [validate_predictions(y, q) for q in (p, p**2)]
    evaluate = all_metrics()[measure].evaluate
    one, two = (
        simulate_bootstrap_distribution(case, evaluate, 50, groups=groups)
        for case in cases
    )
    plain = np.quantile(two - one, [0.025, 0.975]) - found.difference
    longer = np.array([found.low, found.high]) - found.difference
    assert longer == pytest.approx(
        compute_small_sample_inflation(np.ones(68), groups, 0.95) * plain, rel=1e-9
    )
    assert longer[1] > 1.4 * plain[1]


def test_paired_losses_against_the_definition():
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 12, 90).astype(str)
    one, two, weight = rng.random((3, 90))
    sums = PairedLosses()
    for rows in (slice(0, 50), slice(50, 90)):  # clusters go on in the second block
        sums.add(one[rows], two[rows], weight[rows], groups[rows])
    found = sums.difference("loss", 0.9)
    mean, error, degrees = left_out(two - one, weight, groups)
    assert found.high - mean == pytest.approx(stats.t.ppf(0.95, degrees) * error)
    with raises_invalid_input(
        ValueError, expected=".*groups in all blocks or in none", value="groups in some"
    ):
        sums.add(one, two)


def test_draws_of_clusters():
    groups, y, p, *_ = copies(40, seed=3)
    case = validate_predictions(y, p)
    (problem,) = case.problems()
    sample = ClusterSample(problem, groups)
    rng = np.random.default_rng(0)
    mass = sample.weight.sum(axis=1)
    redrawn = np.array(
        [sample.draw_bootstrap_sample(rng).weight.sum() for _ in range(50)]
    )
    assert redrawn == pytest.approx(np.full(50, 200.0))  # clusters of one size
    ones = sample.draw_event_weights(4000, rng)
    residual = np.zeros((40, len(mass)))
    cell = sample.table_column // 2
    np.add.at(residual, (groups, cell), y - p)
    assert ones.mean(axis=0) == pytest.approx(mass * sample.proba[:, 1], abs=0.7)
    known = (p * (1 - p)).sum() / ((y - p) ** 2).sum()
    variance = known * (residual**2).sum(axis=0)
    assert ones.var(axis=0) == pytest.approx(variance, rel=0.1, abs=1e-9)
    drawn = sample.simulate_labels(rng).weight.reshape(-1, 2)
    assert drawn.sum(axis=1) == pytest.approx(mass)
    assert smooth_calibration_error.evaluate(sample.predictions) == pytest.approx(
        smooth_calibration_error.evaluate(case)
    )
    score = rng.random(2000)
    (problem,) = validate_predictions(rng.random(2000) < score, score).problems()
    few = ClusterSample(problem, np.arange(2000) % 50, 256)
    assert 64 < len(few.proba) <= 256 and few.weight.sum() == 2000
    assert few.weight.sum(axis=1) @ few.proba[:, 1] == pytest.approx(score.sum())
    weight = 1 + 9 * score  # the heavier rows of a cell count more in its mean
    (problem,) = validate_predictions(problem.hit, score, weight).problems()
    few = ClusterSample(problem, np.arange(2000) % 50, 256)
    sums = few.weight.sum(axis=1) @ few.proba[:, 1]
    assert sums == pytest.approx((weight * score).sum(), rel=1e-12)


def test_share_intervals():
    """Korn and Graubard's: of copies Clopper and Pearson's of the few."""
    groups, y, _p, few, _scores = copies(50, seed=4)
    (problem,) = validate_predictions(y, np.full(len(y), 0.5)).problems()
    ends = ClusterSample(problem, groups).compute_frequency_intervals(
        np.zeros(1, dtype=int), 1, 0.9
    )
    exact = stats.binomtest(int(few.sum()), 50).proportion_ci(0.9, "exact")
    assert ends[0][0] == pytest.approx(exact.low, abs=0.01)
    assert ends[1][0] == pytest.approx(exact.high, abs=0.01)
    (problem,) = validate_predictions(
        np.ones(100, int), np.full(100, 0.9), labels=[0, 1]
    ).problems()
    ends = ClusterSample(problem, np.arange(100) // 5).compute_frequency_intervals(
        np.zeros(1, int), 1, 0.9
    )
    assert 0.8 < ends[0][0] <= 0.05 ** (1 / 20) and ends[1][0] == 1
    # The residuals 1, 0 and -1 of three clusters have the variance of 12 rows, less for
    # the two degrees of freedom.
    y = np.array([1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0])
    (problem,) = validate_predictions(y, np.full(12, 0.5)).problems()
    ends = ClusterSample(problem, np.arange(12) // 4).compute_frequency_intervals(
        np.zeros(1, int), 1, 0.8
    )
    n = 12 * (stats.t.ppf(0.9, 11) / stats.t.ppf(0.9, 2)) ** 2
    assert ends[0][0] == pytest.approx(stats.beta.ppf(0.1, n / 2, n / 2 + 1), rel=1e-9)
    assert ends[1][0] == pytest.approx(stats.beta.ppf(0.9, n / 2 + 1, n / 2), rel=1e-9)


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
    with raises_invalid_input(
        ValueError, expected="groups: one value for each of the 100 rows"
    ):
        calibration_test(y, p, groups=groups[:-1])
    with raises_invalid_input(
        ValueError, expected=".*at least two groups, which are drawn", value="one"
    ):
        spiegelhalter_test(y, p, groups=np.zeros(100))
    with raises_invalid_input(
        ValueError, expected=".*at least three groups", value="2"
    ):
        validation_summary(y, p, groups=groups % 2)
    with raises_invalid_input(ValueError, expected="smoother='loess' with groups"):
        validation_summary(y, p, groups=groups, smoother="isotonic")
    with raises_invalid_input(
        ValueError, expected="a calibration error or a proper loss"
    ):
        calibration_test(y, p, groups=groups, statistic=lambda y, p: 0.0)
    with raises_invalid_input(
        ValueError, expected="a calibration error with its default options"
    ):
        confidence_interval(y, p, "averaged_two_bin_error", groups=groups, debias=True)
    with raises_invalid_input(
        ValueError, expected="a calibration error for method 'inversion'"
    ):
        confidence_interval(y, p, "brier_loss", method="inversion", groups=groups)
    summary = CalibrationSummary().update(y, p)
    with raises_invalid_input(ValueError, hint=".*groups need the rows"):
        confidence_interval(summary, groups=groups)
    with raises_invalid_input(ValueError, value="summaries, which contain neither"):
        measure = "smooth_calibration_error"
        paired_difference(None, summary, summary, measure, groups=groups)


def test_few_expected_events_are_said():
    """By the predictions: the same rows with labels 0 alone are warned of, or not."""
    groups, y = np.arange(150) // 5, np.zeros(150, dtype=int)
    how, rule = (
        {"groups": groups, "labels": [0, 1]},
        "five clusters with an event and five without",
    )
    p = np.full(150, 0.02)  # 3 are expected
    p[::7] /= 2
    for test in (cox_test, hosmer_lemeshow_test, cumulative_test, calibration_test):
        given = {} if test is cox_test else {"n_resamples": 9}
        with pytest.warns(CalibrationWarning, match=rule):
            test(y, p, **given, **how)
        test(y, p + 0.03, **given, **how)
        with pytest.warns(CalibrationWarning, match="got 2.8 for the rarer"):
            test(1 - y, 1 - p, **given, **how)
    with (
        pytest.warns(CalibrationWarning, match=rule),
        pytest.warns(match="both outcomes"),
    ):
        validation_summary(y, p, n_resamples=1, **how)
    share = np.full(6, 0.5)  # one row a cluster, which stands for two
    with pytest.warns(CalibrationWarning, match="got 3 for"):
        cox_test(share, share, soft_labels=True)


@pytest.mark.cross
@pytest.mark.filterwarnings("ignore::sklearn_calib.exceptions.CalibrationWarning")
@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_level_and_coverage(shift):
    """A small version of ``benchmarks/cluster_coverage``, on both sides; rare events too."""
    found = []
    for number in range(400):
        rng = np.random.default_rng(number)
        groups = np.repeat(np.arange(30), 5)
        z = shift + rng.normal(size=30)[groups] + 0.5 * rng.normal(size=len(groups))
        cause = np.sqrt(0.6) * rng.normal(size=30)[groups]
        u = stats.norm.cdf(cause + np.sqrt(0.4) * rng.normal(size=len(groups)))
        y, p = (u < expit(z)).astype(int), expit(z)
        if y.sum() < 2:
            continue
        table = validation_summary(y, p, level=0.9, n_resamples=1, groups=groups)
        pvalues = [table["O/E"].pvalue, table["Cox chi-square"].pvalue]
        pvalues.append(spiegelhalter_test(y, p, groups=groups).pvalue)
        pvalues.append(calibration_test(y, p, n_resamples=39, groups=groups).pvalue)
        row = [pvalue <= 0.05 for pvalue in pvalues]
        for quantity, truth in (("O/E", 1), ("slope", 1), ("intercept", 0)):
            row += [table[quantity].low > truth, table[quantity].high < truth]
        found.append(row)
    rates = np.mean(found, axis=0)
    assert (rates >= 0.02).all() and (rates <= 0.085).all(), rates
