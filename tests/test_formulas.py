"""Constants, degrees of freedom and levels: the formula of each closed form, written out again.

No simulation and no band: what is returned is what the formula gives, for strongly
unequal weights where there are weights, at a level that is not a default, with the field
in the message.
"""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from sklearn_calib import decisions, decomposition, groups, inference, metrics, report
from sklearn_calib._cli._drawn import _estimate_standard_error
from sklearn_calib._cli._fit import _compute_held_out_gain_by_rows
from sklearn_calib._kernels import _log_odds_cells as cells
from sklearn_calib._kernels._classical_tests import compute_spearman_and_z
from sklearn_calib._kernels._logistic_grid import COARSE_LINE_GRID
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition._intervals import SamplingErrorDistribution
from sklearn_calib.groups._grades import _compute_joining_loss
from sklearn_calib.inference import prior_shift_test
from sklearn_calib.linear import logistic_intervals
from sklearn_calib.linear._fit import LOSS_DERIVATIVES_BY_NAME
from sklearn_calib.metrics import validate_predictions
from sklearn_calib.monitoring import CalibrationMonitor, safe_calibration_test
from sklearn_calib.monitoring._result import e_benjamini_hochberg
from sklearn_calib.recalibrators import IsotonicCalibration, cross_fitted_proba
from sklearn_calib.report._advice import _AdviceSource, _CellSource, _ClusterSource
from sklearn_calib.report._models import PredictionsModel
from sklearn_calib.summary import CalibrationSummary
from sklearn_calib.theory import GaussianLogisticModel

N, LEVEL = 150, 0.8
RNG = np.random.default_rng(5)
P = RNG.beta(1.2, 1.8, N).clip(0.01, 0.99)
Y = (RNG.random(N) < special.expit(0.3 + 0.7 * special.logit(P))).astype(int)
OTHER = special.expit(special.logit(P) * 0.8 + RNG.normal(size=N) * 0.4)
#: One row in nine weighs as much as ten others; no weight is a whole number.
WEIGHT = np.where(np.arange(N) % 9 == 4, 6.5, 0.6) + np.arange(N) % 5 * 0.07
CLUSTER = np.minimum(np.arange(N) // 4 % 24, np.arange(N) % 13)
Z = special.logit(P)
FAR = stats.norm.ppf((1 + LEVEL) / 2)
SHARE = WEIGHT / WEIGHT.sum()


def check(found, expected, where, rtol=1e-7):
    np.testing.assert_allclose(found, expected, rtol, 1e-12, err_msg=where)


def two_sided(z):
    return 2 * stats.norm.sf(abs(z))


def clopper_pearson(share, rows, level):
    """The interval of a share of `rows` rows, whole numbers or not."""
    events, tail = share * rows, (1 - level) / 2
    low = np.where(events > 0, stats.beta.ppf(tail, events, rows - events + 1), 0.0)
    high = np.where(
        events < rows, stats.beta.ppf(1 - tail, events + 1, rows - events), 1.0
    )
    return low, high


def wilson(share, rows, level):
    z2 = stats.norm.ppf((1 + level) / 2) ** 2
    root = np.sqrt(z2 * share * (1 - share) / rows + (z2 / (2 * rows)) ** 2)
    middle = share + z2 / (2 * rows)
    return (middle - root) / (1 + z2 / rows), (middle + root) / (1 + z2 / rows)


def kish(weight):
    return weight.sum() ** 2 / (weight**2).sum()


def sums_of(values, cluster=CLUSTER):
    return np.array([values[cluster == c].sum(axis=0) for c in np.unique(cluster)])


def line(weight, columns, offset=0.0):
    """Logistic regression: coefficients and their information."""

    def loss(b):
        eta = offset + columns @ b
        return weight @ (np.logaddexp(0, eta) - Y * eta)

    b = optimize.minimize(loss, np.zeros(columns.shape[1]), tol=1e-12).x
    for _ in range(20):
        q = special.expit(offset + columns @ b)
        information = (columns * (weight * q * (1 - q))[:, None]).T @ columns
        b = b + np.linalg.solve(information, columns.T @ (weight * (Y - q)))
    return b, information, q, -loss(b)


# -- classical tests -------------------------------------------------------------------------------


def test_spiegelhalter():
    z = (
        WEIGHT
        @ ((Y - P) * (1 - 2 * P))
        / np.sqrt(WEIGHT**2 @ ((1 - 2 * P) ** 2 * P * (1 - P)))
    )
    found = inference.spiegelhalter_test(Y, P, sample_weight=WEIGHT)
    check(found, [z, two_sided(z)], "statistic, pvalue")


def test_spiegelhalter_of_clusters():
    """The variance of the sums of clusters, by the design effect times p (1 - p)."""
    pull, c = WEIGHT * (Y - P) * (1 - 2 * P), WEIGHT * (1 - 2 * P) ** 2
    effect = (sums_of(pull) ** 2).sum() / (c @ (Y - P) ** 2)
    z = pull.sum() / np.sqrt(effect * (c @ (P * (1 - P))))
    found = inference.spiegelhalter_test(Y, P, sample_weight=WEIGHT, groups=CLUSTER)
    check(found, [z, two_sided(z)], "statistic, pvalue")


@pytest.mark.parametrize(("held_out", "lost"), [(True, 0), (False, 2), (False, 3)])
def test_hosmer_lemeshow(held_out, lost):
    """If few events are expected, the law has the mean and the variance of the statistic."""
    square = variance = 0.0
    for rows in np.array_split(np.argsort(P), 5):
        n, p = len(rows), P[rows].mean()
        events, of_bin = np.arange(n + 1), stats.binom(n, p)
        square += (Y[rows].sum() - n * p) ** 2 / of_bin.var()
        values = (events - n * p) ** 2 / of_bin.var()
        variance += of_bin.pmf(events) @ (values - 1) ** 2  # 1 is their mean
    assert np.sort(P)[: len(P) // 5].sum() < 5
    # a multiple c of a chi-square law has the mean c * degrees and the variance 2 c^2 *
    # degrees
    c = 1.0 if lost else variance / (2 * 5)
    given = {"n_bins": 5, "held_out": held_out, "n_parameters": lost or 2}
    found = inference.hosmer_lemeshow_test(Y, P, **given)
    check(found, [square, stats.chi2.sf(square / c, (5 - lost) / c)], f"{given}")


def test_cox():
    b, _, _, top = line(np.ones(N), np.column_stack([np.ones(N), Z]))
    ratio = 2 * (top - np.log(np.where(Y == 1, P, 1 - P)).sum())
    check(inference.cox_test(Y, P), [ratio, stats.chi2.sf(ratio, 2)], f"line {b}")


def test_cox_of_clusters():
    """Rao's score test of both: V of the clusters, the rows' variance exchanged for p (1 - p)."""
    v = P * (1 - P)
    columns = np.column_stack([np.ones(N), Z - v @ Z / v.sum()])
    known = np.sqrt(np.diag((columns * v[:, None]).T @ columns))
    scaled = columns / known
    seen = (scaled * ((Y - P) ** 2)[:, None]).T @ scaled
    values, vectors = np.linalg.eigh(seen)
    pulls = sums_of((Y - P)[:, None] * scaled) @ (vectors / np.sqrt(values)) @ vectors.T
    total = ((Y - P)[:, None] * scaled).sum(axis=0)
    square = total @ np.linalg.solve(pulls.T @ pulls, total)
    found = inference.cox_test(Y, P, groups=CLUSTER)
    check(found, [square, stats.chi2.sf(square, 2)], "statistic, pvalue")


@pytest.mark.parametrize("statistic", ["kuiper", "kolmogorov_smirnov"])
def test_cumulative(statistic):
    order = np.argsort(P)
    path = np.append(0, np.cumsum((WEIGHT * (Y - P))[order]))
    size = np.ptp(path) if statistic == "kuiper" else np.abs(path).max()
    size /= np.sqrt(WEIGHT**2 @ (P * (1 - P)))
    k = np.arange(1, 200)
    if statistic == "kuiper":
        pvalue = 8 * ((-1.0) ** (k - 1) * k * stats.norm.sf(k * size)).sum()
    else:
        pvalue = 4 * ((-1.0) ** (k - 1) * stats.norm.sf((2 * k - 1) * size)).sum()
    found = inference.cumulative_test(Y, P, statistic=statistic, sample_weight=WEIGHT)
    check(found, [size, pvalue], statistic, 1e-6)


def test_polynomial_test():
    found = inference.polynomial_test(Y, P)
    columns = np.vander(Z, found.degree + 1, increasing=True)
    b, information, _, top = line(np.ones(N), columns)
    ratio = 2 * (top - np.log(np.where(Y == 1, P, 1 - P)).sum())
    assert found.degree == 1
    check(found.coef, b, "coef", 1e-5)
    check(found.covariance, np.linalg.inv(information), "covariance", 1e-5)
    check(
        [found.statistic, found.pvalue], [ratio, stats.chi2.sf(ratio, 2)], "test", 1e-6
    )
    half = np.sqrt(
        stats.chi2.ppf(LEVEL, 2) * (columns @ found.covariance * columns).sum(axis=1)
    )
    check(
        found.belt(P, level=LEVEL)[1], special.expit(columns @ b + half), "belt", 1e-5
    )


# -- the table of a validation ---------------------------------------------------------------------


def summary_of(**more):
    return inference.validation_summary(Y, P, level=LEVEL, n_resamples=9, **more)


@pytest.fixture(scope="module")
def tables():
    """Of no weights by likelihood and by Wald, of weights, and of clusters."""
    return {
        "profile": summary_of(smoother="cox"),
        "wald": summary_of(smoother="cox", ci="wald"),
        "weights": summary_of(smoother="cox", sample_weight=WEIGHT),
        "clusters": summary_of(sample_weight=WEIGHT, groups=CLUSTER),
    }


@pytest.mark.parametrize("how", ["wald", "weights"])
def test_observed_over_expected(tables, how):
    weight = WEIGHT if how == "weights" else np.ones(N)
    z = weight @ (Y - P) / np.sqrt(weight**2 @ (P * (1 - P)))
    low, high = clopper_pearson(weight @ Y / weight.sum(), kish(weight), LEVEL)
    most = weight.sum() / (weight @ P)
    row = tables[how]["O/E"]
    expected = [weight @ Y / (weight @ P), low * most, high * most, two_sided(z)]
    check([row.estimate, row.low, row.high, row.pvalue], expected, how)


def test_observed_over_expected_of_clusters(tables):
    residual = sums_of(WEIGHT * (Y - P))
    rate, mean = SHARE @ Y, SHARE @ P
    seen = rate * (1 - rate) + (rate - mean) ** 2
    z = residual.sum() / np.sqrt(residual @ residual * mean * (1 - mean) / seen)
    assert tables["clusters"]["O/E"].pvalue == pytest.approx(two_sided(z)), "pvalue"


def errors_of(how, weight, columns, information, q):
    """Standard errors of coefficients: of the likelihood, or of squared weights and residuals."""
    inverse = np.linalg.inv(information)
    if how == "weights":
        meat = (columns * (weight**2 * (Y - q) ** 2)[:, None]).T @ columns
        inverse = inverse @ meat @ inverse
    return np.sqrt(np.diag(inverse)), inverse


@pytest.mark.parametrize("how", ["wald", "weights"])
def test_the_line_of_a_validation(tables, how):
    weight = WEIGHT if how == "weights" else np.ones(N)
    columns = np.column_stack([np.ones(N), Z])
    (a, b), information, q, _ = line(weight, columns)
    errors, covariance = errors_of(how, weight, columns, information, q)
    (c,), information, q, _ = line(weight, columns[:, :1], Z)
    large, _ = errors_of(how, weight, columns[:, :1], information, q)
    of_rows = (("calibration in the large", c, large[0]), ("intercept", a, errors[0]))
    for name, value, error in (*of_rows, ("slope", b, errors[1])):
        row = tables[how][name]
        expected = [value, value - FAR * error, value + FAR * error]
        check([row.estimate, row.low, row.high], expected, f"{how}, {name}", 1e-5)
    if how == "weights":
        away = np.array([a, b - 1])
        square = away @ np.linalg.solve(covariance, away)
        expected = [two_sided(c / large[0]), two_sided((b - 1) / errors[1])]
        found = [
            tables[how][name].pvalue for name in ("calibration in the large", "slope")
        ]
        check(found, expected, "Wald p-values", 1e-4)
        row = tables[how]["Cox chi-square"]
        check(
            [row.estimate, row.pvalue], [square, stats.chi2.sf(square, 2)], "both", 1e-4
        )


def test_likelihood_ratios_of_a_validation(tables):
    """p-values, and the ends of the slope: where the likelihood falls by half a quantile."""
    one, columns = np.ones(N), np.column_stack([np.ones(N), Z])
    start = np.log(np.where(Y == 1, P, 1 - P)).sum()
    large, (_, slope), both = (
        line(one, columns[:, :1], Z)[3],
        *line(one, columns)[::3],
    )
    ratios = [2 * (large - start), 2 * (both - large), 2 * (both - start)]
    names = "calibration in the large", "slope", "Cox chi-square"
    found = [tables["profile"][name].pvalue for name in names]
    expected = [
        stats.chi2.sf(ratio, df) for ratio, df in zip(ratios, (1, 1, 2), strict=True)
    ]
    check(found, expected, "p-values", 1e-5)
    for end in (tables["profile"]["slope"].low, tables["profile"]["slope"].high):
        fallen = 2 * (both - line(one, columns[:, :1], end * Z)[3])
        assert fallen == pytest.approx(stats.chi2.ppf(LEVEL, 1), rel=1e-4), (
            f"{slope} to {end}"
        )


def jackknife(weight, columns, q, information, cluster):
    """One-step errors of leaving out each cluster, and degrees of freedom by fourth moments."""
    names, v, r = np.unique(cluster), q * (1 - q), Y - q
    moved = []
    for c in names:
        own = cluster == c
        part = (columns[own] * (weight * v)[own, None]).T @ columns[own]
        pull = columns[own].T @ (weight * r)[own]
        moved.append(np.linalg.solve(information - part, pull))
    errors = np.sqrt((len(names) - 1) / len(names) * (np.array(moved) ** 2).sum(axis=0))
    influence = (np.linalg.inv(information) @ (columns * weight[:, None]).T).T
    alone = sums_of(influence**2 * v[:, None], cluster)
    total, pairs = alone.sum(axis=0), (alone**2).sum(axis=0)
    at_once = (sums_of(influence * r[:, None], cluster) ** 2).sum(axis=0)
    effect = at_once / (influence**2 * (r**2)[:, None]).sum(axis=0)
    kurtosis = (influence**4 * (v * (1 - 6 * v))[:, None]).sum(axis=0)
    degrees = total**2 / (pairs + effect * kurtosis / 2)
    return errors, np.clip(degrees, 1, np.clip(total**2 / pairs - 1, 1, len(names) - 1))


def test_the_slope_of_clusters(tables):
    columns = np.column_stack([np.ones(N), Z])
    b, information, q, _ = line(WEIGHT, columns)
    errors, degrees = jackknife(WEIGHT, columns, q, information, CLUSTER)
    half = stats.t.ppf((1 + LEVEL) / 2, degrees) * errors
    for at, name in enumerate(("intercept", "slope")):
        row = tables["clusters"][name]
        expected = [b[at] - half[at], b[at] + half[at]]
        check([row.low, row.high], expected, f"{name}, degrees {degrees[at]:.3g}", 1e-5)


def test_what_a_validation_says_of_the_whole(tables):
    for how, weight in (("wald", np.ones(N)), ("weights", WEIGHT)):
        share = weight / weight.sum()
        rate, brier = share @ Y, share @ (Y - P) ** 2
        loss = -share @ np.log(np.where(Y == 1, P, 1 - P))
        blind = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
        pairs = np.outer(share[Y == 1], share[Y == 0])
        above = np.sign(P[Y == 1][:, None] - P[Y == 0]) / 2 + 0.5
        # Nagelkerke: 1 - exp(2 (loss - blind)) as a part of its largest value
        r2 = (1 - np.exp(2 * (loss - blind))) / (1 - np.exp(-2 * blind))
        expected = {
            "Brier": brier,
            "scaled Brier": 1 - brier / (rate * (1 - rate)),
            "log loss": loss,
            "AUC": (pairs * above).sum() / pairs.sum(),
            "Nagelkerke R2": r2,
        }
        for name, value in expected.items():
            assert tables[how][name].estimate == pytest.approx(value, rel=1e-7), (
                f"{how}, {name}"
            )
        assert tables[how]["Brier"].null_mean == pytest.approx(share @ (P * (1 - P))), (
            how
        )


# -- how many rows ---------------------------------------------------------------------------------


def test_rows_of_a_validation():
    widths = {
        "oe_width": 0.3,
        "slope_width": 0.5,
        "c_width": 0.2,
        "net_benefit_width": 0.3,
    }
    plan = inference.validation_sample_size(
        P, threshold=0.4, level=LEVEL, sample_weight=WEIGHT, **widths
    )
    phi, v = SHARE @ P, SHARE * P * (1 - P)
    above = (P[:, None] > P) + (P[:, None] == P) / 2
    c = (SHARE * P) @ above @ (SHARE * (1 - P)) / (phi * (1 - phi))
    oe = math.asinh(0.15) / FAR
    n_oe = (1 - phi) / (phi * oe**2)
    n_slope = v.sum() / (v.sum() * (v @ Z**2) - (v @ Z) ** 2) / (0.25 / FAR) ** 2
    hits, alarms = (
        SHARE @ (P * (P >= 0.4)) / phi,
        SHARE @ ((1 - P) * (P >= 0.4)) / (1 - phi),
    )
    odds = (1 - phi) / phi * 2 / 3
    spread = hits * (1 - hits) / phi + odds**2 * alarms * (1 - alarms) / (1 - phi)
    n_net = (spread + (odds * alarms) ** 2 / (phi * (1 - phi))) / (0.15 / FAR) ** 2

    def error_of_c(n):
        """Newcombe's."""
        extra = (n / 2 - 1) * ((1 - c) / (2 - c) + c / (1 + c))
        return np.sqrt(c * (1 - c) * (1 + extra) / (n**2 * phi * (1 - phi)))

    n_c = optimize.brentq(lambda n: error_of_c(n) - 0.1 / FAR, 2, 1e9)
    found = {target.target: target.n_samples for target in plan.targets}
    expected = {"O/E": n_oe, "calibration slope": n_slope, "C statistic": n_c}
    expected["net benefit at 0.4"] = n_net
    assert found == {name: math.ceil(rows - 1e-6) for name, rows in expected.items()}
    check([plan.c_statistic, plan.prevalence], [c, phi], "C and prevalence")


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_rows_for_bins(p):
    """A cell may be off by beta, 2 beta^(p - 1) = (epsilon)^p."""
    beta = (0.1**p / 2) ** (1 / (p - 1))
    choice = 72 / beta * np.log(8 / (beta * 0.2))
    rest = 8 / beta**2 * (30 * np.log(2) + np.log(8 * 4 / 0.2))
    found = inference.binning_sample_size(p, 0.1, 0.2, 4, n_bins=30)
    assert found == math.ceil(choice) + math.ceil(rest), p


def test_the_bound_of_lp_calibration():
    k3 = np.column_stack([P / 2, P / 2, 1 - P])
    for level in (0.8, 0.95):
        given = {"p": 2, "n_levels": 4, "sample_weight": WEIGHT, "labels": [0, 1, 2]}
        error = metrics.lp_calibration_error(Y, k3, **given)
        radius = np.sqrt(2) + 2 * np.sqrt(np.log(1 / (1 - level)))
        found = inference.lp_calibration_bound(Y, k3, level=level, **given)
        assert found == pytest.approx(error + radius / np.sqrt(kish(WEIGHT))), level


@pytest.mark.parametrize(
    ("method", "times", "parts"), [("smooth", 4, 4), ("distance", 1, 2)]
)
def test_a_tester_of_calibration(method, times, parts):
    tester = inference.CalibrationTester(0.5, tolerance=0.05, method=method, delta=0.1)
    root = (2 + np.sqrt(2 * np.log(10))) * parts / (0.5 - times * 0.05)
    assert tester.sample_size() == math.ceil(root**2), method
    found = tester.test(Y, P)
    assert found.threshold == pytest.approx((times * 0.05 + 0.5) / parts), method
    assert found.required == math.ceil(root**2) and found.n_samples == N, method


# -- differences and losses ------------------------------------------------------------------------


def loss_of(p):
    return -np.log(np.where(Y == 1, p, 1 - p))


def mean_of_clusters(values):
    """Mean, error by leaving out each cluster, degrees of freedom of clusters of other sizes."""
    mass, totals = sums_of(WEIGHT), sums_of(WEIGHT * values)
    n, mean = len(mass), SHARE @ values
    without = (totals.sum() - totals) / (mass.sum() - mass)
    error = np.sqrt((n - 1) / n * ((without - mean) ** 2).sum())
    pull = 1 / (mass.sum() - mass)
    # left-out means are linear in the totals: the trace and the square of their
    # covariance
    linear = np.diag(pull) @ (
        np.diag(np.sqrt(mass)) - np.outer(mass, np.sqrt(mass)) / mass.sum()
    )
    covariance = linear @ linear.T
    return mean, error, np.trace(covariance) ** 2 / (covariance**2).sum()


def test_a_difference_of_losses():
    moved = loss_of(OTHER) - loss_of(P)
    mean = SHARE @ moved
    error = np.sqrt((SHARE**2 @ (moved - mean) ** 2) / (1 - SHARE @ SHARE))
    found = inference.paired_difference(Y, P, OTHER, sample_weight=WEIGHT, level=LEVEL)
    expected = [mean, mean - FAR * error, mean + FAR * error]
    check([found.difference, found.low, found.high], expected, "no groups")
    given = {"sample_weight": WEIGHT, "level": LEVEL, "groups": CLUSTER}
    found = inference.paired_difference(Y, P, OTHER, **given)
    mean, error, degrees = mean_of_clusters(moved)
    half = stats.t.ppf((1 + LEVEL) / 2, degrees) * error
    check(
        [found.low, found.high],
        [mean - half, mean + half],
        f"groups, {degrees:.3g} degrees",
    )


@pytest.mark.parametrize("measure", ["log_loss", "brier_loss"])
def test_a_loss_of_clusters(measure):
    losses = loss_of(P) if measure == "log_loss" else (Y - P) ** 2
    mean, error, degrees = mean_of_clusters(losses)
    far = stats.t.ppf((1 + LEVEL) / 2, degrees) * error / mean
    given = {"sample_weight": WEIGHT, "level": LEVEL, "groups": CLUSTER}
    found = inference.confidence_interval(Y, P, measure, **given)
    check([found.low, found.high], [mean * np.exp(-far), mean * np.exp(far)], measure)


def test_the_upper_end_of_an_error_that_is_not_seen():
    """All predictions 1/2, half of 100 rows true: the shift that hides with probability 0.025."""
    p, y = np.full(100, 0.5), np.arange(100) % 2
    given = {"n_resamples": 499, "level": 0.95}
    found = inference.confidence_interval(y, p, "expected_calibration_error", **given)
    end = optimize.brentq(lambda s: stats.binom.pmf(50, 100, 0.5 + s) - 0.025, 0, 0.3)
    assert found.low == 0.0 and found.high == pytest.approx(end, rel=0.06)


def test_errors_of_a_decomposition():
    found = decomposition.decompose_loss(Y, P, sample_weight=WEIGHT)
    losses, left = loss_of(P), 1 - SHARE @ SHARE
    error = np.sqrt(SHARE**2 @ (losses - SHARE @ losses) ** 2 / left)
    assert found.standard_errors["risk"] == pytest.approx(error), "risk"
    interval = found.interval("risk", LEVEL)
    skew = (SHARE**3 @ (losses - SHARE @ losses) ** 3) / (error * np.sqrt(left)) ** 3
    for end, x in zip(interval, (FAR, -FAR), strict=True):  # Hall's for a skewed mean
        moved = 3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1)
        assert end == pytest.approx(SHARE @ losses - error * moved), f"risk, {x:.3g}"


def test_errors_of_a_refinement_curve():
    """Of each stage against the best one."""
    given = {"loss": "brier", "recalibrator": "isotonic", "sample_weight": WEIGHT}
    found = decomposition.refinement_curve(Y, [OTHER, P, P**2], **given)
    stages = []
    for p in (OTHER, P, P**2):
        cell, w = np.unique(p, return_inverse=True)[1], WEIGHT
        fitted = IsotonicRegression().fit(cell, Y, sample_weight=w).predict(cell)
        stages.append((Y - fitted) ** 2)
    best = np.argmin([SHARE @ losses for losses in stages])
    for at, losses in enumerate(stages):
        moved = losses - stages[best]
        error = np.sqrt(SHARE**2 @ (moved - SHARE @ moved) ** 2)
        check(found.standard_error[at], error, f"stage {at}", 1e-4)


# -- decisions -------------------------------------------------------------------------------------


def test_the_net_benefit():
    t = np.array([0.2, 0.5])
    found = decisions.decision_curve(
        Y, P, thresholds=t, level=LEVEL, sample_weight=WEIGHT, n_resamples=9
    )
    for at, threshold in enumerate(t):
        odds, acts = threshold / (1 - threshold), threshold <= P
        gain = acts * (Y - (1 - Y) * odds)
        mean = SHARE @ gain
        error = np.sqrt(SHARE**2 @ (gain - mean) ** 2)
        everybody = SHARE @ (Y - (1 - Y) * odds)
        check(found.net_benefit[at], mean, f"net benefit at {threshold}")
        check(found.standard_error[at], error, f"error at {threshold}")
        check(found.treat_all[at], everybody, f"all at {threshold}")
        over = gain - (Y - (1 - Y) * odds)
        error = np.sqrt(SHARE**2 @ (over - SHARE @ over) ** 2)
        check(found.over_all.standard_error[at], error, f"over all at {threshold}")
        other = (threshold <= OTHER) * (Y - (1 - Y) * odds) - gain
        given = {"thresholds": [threshold], "sample_weight": WEIGHT, "n_resamples": 9}
        against = decisions.decision_difference(Y, OTHER, P, level=LEVEL, **given)
        error = np.sqrt(SHARE**2 @ (other - SHARE @ other) ** 2)
        check(against.standard_error, [error], f"difference at {threshold}")


def test_the_interval_of_a_difference_of_net_benefits():
    """Wilson's ends of four shares: acts won and lost, with the event and without (MOVER)."""
    odds, first, second = 2 / 3, OTHER >= 0.4, P >= 0.4
    given = {"thresholds": [0.4], "level": LEVEL, "n_resamples": 9}
    found = decisions.decision_difference(Y, OTHER, P, **given)
    changes = [second & ~first & (Y == 1), ~second & first & (Y == 1)]
    changes += [second & ~first & (Y == 0), ~second & first & (Y == 0)]
    share, value = np.mean(changes, axis=1), np.array([1, -1, -odds, odds])
    low, high = wilson(share, N, LEVEL)
    # shares of one table: their correlation is that of the multinomial law
    r = np.sqrt(share / (1 - share))
    correlation = -np.outer(r, r)
    np.fill_diagonal(correlation, 1)
    below = value * np.where(value > 0, share - low, high - share)
    above = value * np.where(value > 0, high - share, share - low)
    ends = [
        value @ share - np.sqrt(below @ correlation @ below),
        value @ share + np.sqrt(above @ correlation @ above),
    ]
    check([found.low[0], found.high[0]], ends, "low, high")


def test_the_net_benefit_at_another_prevalence():
    """Rows of each class are drawn by themselves: two variances."""
    given = {
        "thresholds": [0.3],
        "prevalence": 0.1,
        "sample_weight": WEIGHT,
        "n_resamples": 9,
    }
    found = decisions.decision_curve(Y, P, **given)
    acts, variance, total = P >= 0.3, 0.0, 0.0
    for event, unit in ((1, 0.1), (0, -0.9 * 3 / 7)):
        share = WEIGHT * (event == Y) / WEIGHT[event == Y].sum()
        rate = share @ acts
        total += unit * rate
        variance += unit**2 * (share**2 @ (acts - rate) ** 2)
    check(
        [found.net_benefit[0], found.standard_error[0]],
        [total, np.sqrt(variance)],
        "0.3",
    )


def test_the_expected_cost():
    costs = np.array([[0.0, 1.0], [4.0, 0.5]])
    given = {"costs": costs, "level": LEVEL, "sample_weight": WEIGHT}
    found = decisions.expected_cost_test(Y, P, **given)
    by_action = np.column_stack([1 - P, P]) @ costs
    action = by_action.argmin(axis=1)
    believed, paid = by_action.min(axis=1), costs[Y, action]
    gap = SHARE @ (believed - paid)
    error = np.sqrt(SHARE**2 @ (believed - paid - gap) ** 2)
    z = gap / np.sqrt(
        SHARE**2 @ (P * (1 - P) * (costs[1, action] - costs[0, action]) ** 2)
    )
    expected = [gap, error, gap - FAR * error, gap + FAR * error, z, two_sided(z)]
    names = "difference", "standard_error", "low", "high", "statistic", "pvalue"
    for name, value in zip(names, expected, strict=True):
        check(getattr(found, name), value, name)


def test_the_risk_of_a_selective_classifier():
    """The bound allows for the steps of the search, ceil(log2(n + 1)) of them."""
    model = FrozenEstimator(LogisticRegression().fit(Z[:, None], Y))
    found = decisions.SelectiveClassifier(model, max_risk=0.35, delta=0.2).fit(
        Z[:, None], Y
    )
    proba = model.predict_proba(Z[:, None])
    kept = proba.max(axis=1) >= found.threshold_ - 1e-12
    n, wrong = kept.sum(), (proba.argmax(axis=1) != Y)[kept].sum()
    bound = stats.beta.ppf(1 - 0.2 / math.ceil(np.log2(N + 1)), wrong + 1, n - wrong)
    assert 0 < n < N and found.risk_bound_ == pytest.approx(bound), f"{wrong} of {n}"


def auc_of(p, weight):
    """The expected share of ordered pairs of different rows."""
    events, others = weight * p, weight * (1 - p)
    pairs = np.outer(events, others) * (1 - np.eye(len(p)))
    above = (P[:, None] > P) + (P[:, None] == P) / 2
    return (pairs * above).sum() / pairs.sum()


def test_deviations_of_expected_metrics():
    """The AUC's by the derivative with respect to each label, numerically."""
    found = decisions.expected_metrics(P, y_true=Y, sample_weight=WEIGHT, threshold=0.4)
    v, acts = P * (1 - P), P >= 0.4
    steps = [np.where(np.arange(N) == i, 1e-5, 0) for i in range(N)]
    slopes = [
        (auc_of(P + step, WEIGHT) - auc_of(P - step, WEIGHT)) / 2e-5 for step in steps
    ]
    recall = SHARE @ (acts * P) / (SHARE @ P)
    of_recall = SHARE * (acts - recall) / (SHARE @ P)
    expected = {
        "accuracy": np.sqrt(SHARE**2 @ v),
        "brier_loss": np.sqrt(SHARE**2 @ (v * (1 - 2 * P) ** 2)),
        "log_loss": np.sqrt(SHARE**2 @ (v * Z**2)),
        "precision": np.sqrt((SHARE * acts) ** 2 @ v) / (SHARE @ acts),
        "recall": np.sqrt(of_recall**2 @ v),
        "auc": np.sqrt(np.square(slopes) @ v),
    }
    assert found.auc == pytest.approx(auc_of(P, WEIGHT)), "auc"
    for name, value in expected.items():
        assert found.standard_deviations[name] == pytest.approx(value, rel=1e-5), name


def test_the_risk_at_each_coverage():
    given = {"level": LEVEL, "sample_weight": WEIGHT}
    found = decisions.risk_coverage_curve(Y, P, **given)
    order = np.argsort(-np.maximum(P, 1 - P), kind="stable")
    wrong, w = ((P >= 0.5) != Y)[order], WEIGHT[order]
    for at in (0, 40, 90, N - 1):
        mass = w[: at + 1]
        risk, size = mass @ wrong[: at + 1] / mass.sum(), kish(mass)
        low, high = clopper_pearson(risk, size, LEVEL)
        values = [found.risk[at], found.low[at], found.high[at], found.coverage[at]]
        check(values, [risk, low, high, mass.sum() / w.sum()], f"row {at}")


# -- groups and grades -----------------------------------------------------------------------------


def test_groups():
    member = np.arange(N) % 3 == 0
    given = {"min_rows": 10, "n_resamples": 19, "level": LEVEL, "sample_weight": WEIGHT}
    found = groups.group_calibration(Y, P, {"a": member}, **given)
    row = next(one for one in found.rows if "True" in one.group)
    w, y, p, z = (one[member] for one in (WEIGHT, Y, P, Z))
    path = np.append(0, np.cumsum((w * (y - p))[np.argsort(p)]))
    sigma = np.ptp(path) / np.sqrt(w**2 @ (p * (1 - p)))
    shift = optimize.brentq(lambda a: w @ (special.expit(z + a) - y), -5, 5)
    v = special.expit(z + shift) * (1 - special.expit(z + shift))
    check(row.sigma, sigma, "sigma")
    check(row.in_the_large, shift, "in_the_large", 1e-6)
    check(
        row.in_the_large_error, np.sqrt(w**2 @ v) / (w @ v), "in_the_large_error", 1e-6
    )
    values = [row.weight, row.events, row.expected, row.observed_over_expected]
    check(values, [w.sum(), w @ y, w @ p, (w @ y) / (w @ p)], "sums")
    columns = np.column_stack([np.ones(member.sum()), z])
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(z[:, None], y, sample_weight=w)
    q = model.predict_proba(z[:, None])[:, 1]
    bread = np.linalg.inv((columns * (w * q * (1 - q))[:, None]).T @ columns)
    meat = (columns * (w**2 * q * (1 - q))[:, None]).T @ columns
    error = np.sqrt((bread @ meat @ bread)[1, 1])
    check([row.slope, row.slope_error], [model.coef_[0, 0], error], "slope", 1e-4)
    rank = np.sort(found.null_distribution)
    assert found.critical_sigma == rank[math.ceil(LEVEL * 20) - 1], "critical_sigma"
    larger = np.sum(found.null_distribution >= row.sigma)
    assert row.adjusted_p_value == pytest.approx((1 + larger) / 20), "adjusted_p_value"


def test_grades():
    edges, given = [0.3, 0.6], {"level": LEVEL, "prudent_level": 0.7, "n_resamples": 9}
    found = groups.grade_calibration(Y, P, edges, **given)
    grade = np.searchsorted(edges, P, side="right")
    n, k, p = (
        np.array([f(grade == g) for g in range(3)]) for f in (np.sum, *sums_in_grades())
    )
    low, high = clopper_pearson(k / n, n, LEVEL)
    worse = [(k[g:].sum(), n[g:].sum()) for g in range(3)]
    prudent = np.maximum.accumulate(
        [stats.beta.ppf(0.7, a + 1, b - a) for a, b in worse]
    )
    for g, row in enumerate(found.rows):
        expected = [k[g] / n[g], low[g], high[g], p[g], prudent[g]]
        values = [
            row.observed,
            row.observed_low,
            row.observed_high,
            row.predicted,
            row.prudent,
        ]
        check(values, expected, f"grade {g}")
        jeffreys = stats.beta.cdf(p[g], k[g] + 0.5, n[g] - k[g] + 0.5)
        binomial = stats.binom.sf(k[g] - 1, n[g], p[g])
        check([row.jeffreys_p, row.binomial_p], [jeffreys, binomial], f"grade {g}")


def sums_in_grades():
    return (lambda rows: Y[rows].sum()), (lambda rows: P[rows].mean())


# -- curves ----------------------------------------------------------------------------------------


def test_a_bin_of_a_reliability_curve():
    given = {
        "strategy": "uniform",
        "n_bins": 4,
        "level": LEVEL,
        "sample_weight": WEIGHT,
    }
    (found,) = metrics.reliability_curve(Y, P, n_resamples=0, **given)
    for at in range(4):
        rows = (at / 4 < P) & ((at + 1) / 4 >= P)
        w = WEIGHT[rows]
        low, high = clopper_pearson(w @ Y[rows] / w.sum(), kish(w), LEVEL)
        values = [
            found.observed[at],
            found.confidence_low[at],
            found.confidence_high[at],
        ]
        check(values, [w @ Y[rows] / w.sum(), low, high], f"bin {at}")
        check(
            [found.predicted[at], found.weight[at]],
            [w @ P[rows] / w.sum(), w.sum()],
            f"{at}",
        )


def test_the_belt_of_a_curve():
    """The polynomial's is that of the test, with as many rows as the weights are worth."""
    given = {"strategy": "polynomial", "level": LEVEL, "sample_weight": WEIGHT}
    (found,) = metrics.reliability_curve(Y, P, n_resamples=0, **given)
    scaled = WEIGHT * WEIGHT.sum() / (WEIGHT @ WEIGHT)
    columns = np.column_stack([np.ones(N), Z])
    b, information, _, _ = line(scaled, columns)
    points = special.logit(found.predicted)
    rows = np.column_stack([np.ones(len(points)), points])
    spread = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows)
    half = np.sqrt(stats.chi2.ppf(LEVEL, 2) * spread)
    check(found.confidence_low, special.expit(rows @ b - half), "low", 1e-5)
    check(found.confidence_high, special.expit(rows @ b + half), "high", 1e-5)


def test_the_scale_of_cumulative_differences():
    found = metrics.cumulative_differences(Y, P, sample_weight=WEIGHT)
    check(found.sigma, np.sqrt(SHARE**2 @ (P * (1 - P))), "sigma")


# -- intervals of maps -----------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [np.inf, 0.5])
def test_intervals_of_a_logistic_regression(penalty):
    X = np.column_stack([Z, OTHER])
    model = LogisticRegression(C=penalty).fit(X, Y, sample_weight=WEIGHT)
    q = model.predict_proba(X)[:, 1]
    columns = np.column_stack([X, np.ones(N)])
    information = (columns * (WEIGHT * q * (1 - q))[:, None]).T @ columns
    information += np.diag([1 / penalty, 1 / penalty, 0])
    spread = np.einsum("ij,jk,ik->i", columns, np.linalg.inv(information), columns)
    z = model.decision_function(X)
    found = logistic_intervals(model, X, X, sample_weight=WEIGHT, level=LEVEL)
    check(found[:, 0], special.expit(z - FAR * np.sqrt(spread)), f"low, C={penalty}")
    check(found[:, 1], special.expit(z + FAR * np.sqrt(spread)), f"high, C={penalty}")


def test_the_mean_of_labels():
    """Student's t of the effective number of rows, less one."""
    y = np.random.default_rng(8).normal(size=40)
    w = np.where(np.arange(40) % 5 == 0, 4.0, 0.5)
    share = w / w.sum()
    found = inference.calibrated_mean(
        y,
        y**3 / 9 + 0.1,
        np.linspace(-2, 2, 99),
        scale=None,
        power=0.0,
        sample_weight=w,
        level=LEVEL,
    )
    mean, size = share @ y, kish(w)
    error = np.sqrt(share**2 @ (y - mean) ** 2 * size / (size - 1))
    half = stats.t.ppf((1 + LEVEL) / 2, size - 1) * error
    values = [
        found.labels_estimate,
        found.labels_se,
        found.labels_low,
        found.labels_high,
    ]
    check(values, [mean, error, mean - half, mean + half], "labels")
    check([found.estimate, found.se], [mean, error], "power 0")


# -- p-values of draws, evidence, levels -----------------------------------------------------------


@pytest.mark.parametrize("function", [inference.calibration_test, prior_shift_test])
def test_ranks_among_draws(function):
    if function is prior_shift_test:
        found = function(P, Y, OTHER, n_resamples=39)
    else:
        found = function(Y, P, n_resamples=39, sample_weight=WEIGHT)
    larger = np.sum(found.null_distribution >= found.statistic - 1e-12)
    assert found.pvalue == (1 + larger) / 40, function.__name__


def test_evidence():
    found = safe_calibration_test(Y, P, n_splits=4)
    mean = np.exp(found.log_e_values).mean()
    check([found.e_value, found.pvalue], [mean, min(1.0, 1 / mean)], "e_value, pvalue")


def test_a_monitor_rejects_at_its_level():
    """At the first row at which the mixture of likelihood ratios reaches 1 / alpha."""
    bad = special.expit(2.5 * Z + 1.5)
    found = CalibrationMonitor("test", alpha=0.1, classes=[0, 1])
    path = [found.update(Y[[i]], bad[[i]]).log_e_value_ for i in range(60)]
    first = next(i for i, log in enumerate(path) if log >= np.log(10))
    assert found.rejected_at_ == first + 1
    assert found.p_value_ == pytest.approx(np.exp(-max(path)))


def test_when_a_monitor_thinks_that_it_began():
    """95 % of the weight of where it began, half of a block's to either side."""
    many = np.tile(np.arange(N), 3)
    p = np.where(np.arange(3 * N) < 120, P[many], special.expit(0.6 * Z[many] + 0.5))
    found = CalibrationMonitor(classes=[0, 1]).update(Y[many], p)
    record = found._records[0].add_waiting_rows_in_place()
    gains = np.array([block.compute_log_likelihood_ratios() for block in record.blocks])
    behind = np.cumsum(gains[::-1], axis=0)[::-1]
    log = np.append(special.logsumexp(behind + COARSE_LINE_GRID.log_prior, axis=1), 0.0)
    weight = np.exp(log - log.max())
    mass = np.array([block.rows for block in record.blocks]) * (
        weight[1:] + weight[:-1]
    )
    low, high = np.searchsorted(np.cumsum(mass) / mass.sum(), [0.025, 0.975])
    assert record.locate_onset_and_interval_blocks() == (
        log[:-1].argmax(),
        low,
        min(high, len(mass) - 1),
    )
    assert low < high


def test_the_region_of_a_monitor():
    """Lines whose likelihood is 1 - level of the evidence, or more."""
    many = np.tile(np.arange(N), 3)
    found = CalibrationMonitor(classes=[0, 1]).update(Y[many], P[many])
    atoms = found._records[0].update_and_get_cells(False)
    evidence = cells.get_log_evidence_mode_and_covariance_root(atoms)[0]
    shift, slope = found.region(LEVEL).border.T
    log = cells.compute_log_likelihood_gain(atoms, shift, slope)
    check(log, evidence + np.log(1 - LEVEL), "border", 1e-4)


def test_the_evidence_of_a_report():
    """Intervals of all bins at once, of the mean, and of the slope by the sandwich."""
    given = {"sample_weight": WEIGHT, "level": LEVEL, "n_resamples": 9}
    found = report.calibration_report(
        np.tile(Y, 3), np.tile(P, 3), **given | {"sample_weight": np.tile(WEIGHT, 3)}
    ).verdict.evidence
    y, p, w = (np.tile(one, 3) for one in (Y, P, WEIGHT))
    n_bins = len(found.bins)
    assert n_bins > 2
    for number, one in enumerate(found.bins):
        rows = (one.low <= p) & (one.high >= p)
        share = w[rows] @ y[rows] / w[rows].sum()
        low, high = clopper_pearson(share, kish(w[rows]), LEVEL ** (1 / n_bins))
        values = [one.observed, one.observed_low, one.observed_high, one.predicted]
        expected = [share, low, high, w[rows] @ p[rows] / w[rows].sum()]
        check(values, expected, f"bin {number}", 1e-6)
    low, high = clopper_pearson(w @ y / w.sum(), kish(w), LEVEL)
    check([found.observed_low, found.observed_high], [low, high], "mean", 1e-6)
    columns = np.column_stack([np.ones(N), Z])
    (a, b), information, q, _ = line(WEIGHT, columns)
    errors = errors_of("weights", WEIGHT, columns, information, q)[0] / np.sqrt(3)
    values = [found.line.intercept, found.line.slope]
    values += [found.line.intercept_error, found.line.slope_error]
    check(values, [a, b, *errors], "line", 1e-4)
    half = FAR * found.line.slope_error
    check(
        found.line.slope_interval(LEVEL), [b - half, b + half], "slope_interval", 1e-4
    )


def test_rejections_of_e_values():
    """The k-th largest at least n / (k alpha): of 4 streams two at 0.2 if the second is 10."""
    for second, n_found in ((10.0, 2), (9.9, 0), (20.0, 2)):
        assert e_benjamini_hochberg([1.0, 12.0, second, 0.5], 0.2).sum() == n_found, (
            second
        )


def test_a_report_rejects_at_its_level():
    """The verdict is by 0.05 whatever the level of the intervals is."""
    seen = set()
    for shift, level in itertools.product((0.0, 0.3, 0.45, 1.0), (0.8,)):
        q = special.expit(Z + shift)
        verdict = report.calibration_report(Y, q, n_resamples=9, level=level).verdict
        rejected = verdict.calibrated is False
        assert rejected == (verdict.p_value <= 0.05), (
            f"{shift}, {level}: {verdict.p_value}"
        )
        seen.add(rejected)
    assert seen == {True, False}


@pytest.mark.parametrize("k", [2, 3])
def test_evidence_of_a_safe_test_with_scores_of_0_and_1(k):
    """Of k events in n rows of a certain score the first half states (k + 1/2) / (n + 1)."""
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.full(k, 0.5), N).clip(0.01)
    proba /= proba.sum(axis=1, keepdims=True)
    y = (rng.random(N)[:, None] > np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
    found = safe_calibration_test(
        y, proba, recalibrator="isotonic", n_splits=1, random_state=3
    )
    fit, judge = np.array_split(np.random.default_rng(3).permutation(N), 2)
    model = IsotonicCalibration().fit(proba[fit], y[fit])
    at, q = model.predict_proba(proba[fit]), np.array(model.predict_proba(proba[judge]))
    assert (q == 0).any()
    for column, value in itertools.product(range(k), (0.0, 1.0)):
        rows = at[:, column] == value
        said = ((y[fit] == column)[rows].sum() + 0.5) / (rows.sum() + 1)
        q[q[:, column] == value, column] = said
    q /= q.sum(axis=1, keepdims=True)
    gain = np.log(q / proba[judge])[np.arange(len(judge)), y[judge]].sum()
    check(found.log_e_values, [gain], "log_e_values", 1e-6)


@pytest.mark.parametrize("far", [1.6, 1.7])
def test_the_action_of_a_decomposition_is_that_of_one_sided_tests(far):
    """At 0.05, so from 1.645 standard errors on."""
    found = decomposition.decompose_loss(Y, P)
    for terms, said in ((["calibration"], "recalibrate"), (["grouping"], "retrain")):
        laws = dict.fromkeys(
            ("calibration", "grouping"), SamplingErrorDistribution(0.0, 1.0)
        )
        laws |= dict.fromkeys(terms, SamplingErrorDistribution(far, 1.0))
        expected = said if far > stats.norm.ppf(0.95) else "neither"
        assert replace(found, grouping=1.0, _sampling_errors=laws).action == expected, (
            terms,
            far,
        )


@pytest.mark.parametrize("ratio", [0.05, 0.3])
def test_the_population_of_a_theory_has_means_of_its_scale(ratio):
    """Coordinates of a normal law of variance scale^2 / d, after the eigenvalues."""
    model = GaussianLogisticModel(
        ratio=ratio, error_rate=0.1, spectrum=(1, 1), smallest=0.2
    )
    X, _, _, mean, eigenvalues = model.sample(40, np.random.RandomState(3))
    rng, d = np.random.RandomState(3), round(ratio * 40)
    assert X.shape == (40, d)
    check(eigenvalues, 0.2 + rng.beta(1, 1, d), "eigenvalues")
    check(mean, rng.normal(size=d) * model.scale_ / np.sqrt(d), "mean")
    inverse = np.log(1.2 / 0.2)  # the mean of 1 / (0.2 + u) of a uniform u
    check(model.scale_, -stats.norm.ppf(0.1) / np.sqrt(inverse), "scale", 1e-6)


@pytest.mark.parametrize("loss", sorted(LOSS_DERIVATIVES_BY_NAME))
def test_derivatives_of_losses_of_linear_models(loss):
    """By differences, on both sides of every kink."""
    f = np.array(
        [-3.1, -1.0 - 2e-4, -1.0 + 2e-4, -0.4, 0.0, 0.7, 1.0 - 2e-4, 1.0 + 2e-4, 2.5]
    )
    step = 1e-4
    if loss == "multinomial":
        f = np.column_stack([f, np.zeros(len(f)), -0.5 * f])
        codes = np.arange(len(f)) % 3
        _, psi, proba = LOSS_DERIVATIVES_BY_NAME[loss](f, codes)
        for c in range(3):
            move = step * np.eye(3)[c]
            ends = [
                LOSS_DERIVATIVES_BY_NAME[loss](f + sign * move, codes)[0]
                for sign in (1, -1)
            ]
            slope = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(
                -psi[:, c], slope, atol=1e-7, err_msg=f"class {c}"
            )
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        return
    for y in (np.ones(len(f)), -np.ones(len(f))):
        _, psi, curvature = LOSS_DERIVATIVES_BY_NAME[loss](f, y)
        low, high = (
            LOSS_DERIVATIVES_BY_NAME[loss](f + sign * step, y) for sign in (-1, 1)
        )
        where = f"{loss}, y = {y[0]:g}"
        np.testing.assert_allclose(
            -psi, (high[0] - low[0]) / (2 * step), atol=2e-4, err_msg=where
        )
        slope = (low[1] - high[1]) / (2 * step)
        np.testing.assert_allclose(
            curvature, slope, atol=1e-6, err_msg=f"{where}, curvature"
        )


@pytest.mark.parametrize("clustered", [False, True])
def test_errors_of_gains_of_an_advice(clustered):
    """Twice the variance of a mean, for folds that share rows; by sums of clusters."""
    deviations = np.sin(np.arange(30.0))
    weight, cluster = 0.3 + np.arange(30) % 4, np.arange(30) % 7
    if clustered:
        source = _ClusterSource(None)
        source._predictions = SimpleNamespace(clusters=cluster)
        sums = np.array([(weight * deviations)[cluster == c].sum() for c in range(7)])
        variance = 2 * 7 / 6 * (sums**2).sum()
    else:
        source = _AdviceSource(None)
        source.squares = weight**2
        variance = 2 * (weight**2 * deviations**2).sum()
    found = source.compute_gain_standard_error(
        SimpleNamespace(weight=weight), deviations
    )
    assert found == pytest.approx(np.sqrt(variance) / weight.sum())


@pytest.mark.parametrize("weight", [None, 0.6 + P.round(1)], ids=["rows", "weights"])
def test_cells_of_an_advice_stand_for_all_rows(weight):
    """Of every row one count, whatever it weighs; the rows of a cell weigh the same."""
    summary = CalibrationSummary().update(Y, P.round(1), weight)
    source = _CellSource(SimpleNamespace(summary=summary))
    assert source.store_folds_if_enough_rows(np.random.default_rng(0))
    found = source.make_summary(source.recalibrate_held_out("identity"))
    total = N if weight is None else weight.sum()
    check([found.n_samples, source.n_rows, found.weight], [N, N, total], "rows")
    check(found.totals.log_loss, summary.totals.log_loss, "loss", 1e-6)


def test_a_sample_of_rows_is_about_as_large_as_asked():
    proba, y = make_overconfident(3, 600)
    model = PredictionsModel(validate_predictions(y, proba))
    sizes = [
        model.sample_multiclass_rows_if_any(limit).n_drawn for limit in (100, 300, None)
    ]
    assert 100 <= sizes[0] < 300 <= sizes[1] < sizes[2] == 600


@pytest.mark.parametrize("drawn", [True, False])
def test_the_error_of_a_mean_of_drawn_rows(drawn):
    """Of all rows as a sample; and of drawn ones, by stratum, without replacement."""
    stratum, share = np.arange(N) % 3, np.array([1.0, 0.4, 0.25])[np.arange(N) % 3]
    kept = np.flatnonzero(np.arange(N) % 7 > 0)
    w, squares, far = WEIGHT[kept], WEIGHT[kept] ** 2 * 1.3, OTHER[kept] - 0.4
    held = SimpleNamespace(
        sample_indices=kept, squares=squares, predictions=SimpleNamespace(weight=w)
    )
    sample = SimpleNamespace(share=share, stratum=stratum + 5) if drawn else object()
    found = _estimate_standard_error(sample, held, OTHER[kept], 0.4)
    variance = squares @ far**2
    if drawn:
        variance = squares / share[kept] @ far**2
        for one in range(3):
            here = stratum[kept] == one
            own = np.average(far[here], weights=w[here])
            apart = (far[here] - own) ** 2 * here.sum() / (here.sum() - 1)
            variance += (1 - 1 / share[kept][here][0]) * (w[here] ** 2 @ apart)
    check(found, np.sqrt(variance) / w.sum(), "error")


@pytest.mark.parametrize("clusters", [None, CLUSTER], ids=["rows", "clusters"])
def test_the_gain_of_a_fit_by_rows(clusters):
    """Twice the variance of the differences row by row, or cluster by cluster."""
    given = {"sample_weight": WEIGHT, "classes": [0, 1], "groups": clusters}
    proba = np.column_stack([1 - P, P])
    rows = SimpleNamespace(labels=Y, weight=WEIGHT, classes=[0, 1], cluster=clusters)
    found = _compute_held_out_gain_by_rows("temperature", proba, rows, given)
    after = cross_fitted_proba("temperature", proba, Y, cv=5, **given)
    own = np.arange(N), Y
    moved = np.log(proba[own]) - np.log(after[own])
    far = WEIGHT * (moved - SHARE @ moved)
    check(
        [found.first, found.difference],
        [-SHARE @ np.log(proba[own]), SHARE @ moved],
        "gain",
    )
    n = kish(WEIGHT)
    error = np.sqrt(n / (n - 1) * (far @ far)) / WEIGHT.sum()
    quantile = stats.norm.ppf((1 + found.level) / 2)
    if clusters is not None:
        sums = sums_of(far)
        n = len(sums)
        error = np.sqrt(n / (n - 1) * (sums @ sums)) / WEIGHT.sum()
        quantile = stats.t.ppf((1 + found.level) / 2, n - 1)
    half = np.sqrt(2) * quantile * error
    check(found.high - found.difference, half, "half of the interval")
    check(found.difference - found.low, half, "half of the interval")


def test_the_likelihood_that_is_lost_where_grades_join():
    events, rows = np.array([0, 3, 9, 20]), np.array([40, 30, 45, 20])

    def likelihood(k, n):
        return stats.binom.logpmf(k, n, k / n) - np.log(special.comb(n, k))

    joined = zip(events[:-1] + events[1:], rows[:-1] + rows[1:], strict=True)
    own = likelihood(events, rows)
    expected = [
        own[i] + own[i + 1] - likelihood(*both) for i, both in enumerate(joined)
    ]
    np.testing.assert_allclose(_compute_joining_loss(events, rows), expected, rtol=1e-9)


@pytest.mark.parametrize("whole", [True, False])
def test_a_rank_correlation_of_weighted_rows(whole):
    """Middle ranks; the error is that of a weighted sum, with Kish's number of rows less 1."""
    rng = np.random.default_rng(5)
    score, outcome = np.round(rng.random(50), 1), rng.random(50)
    weight = np.ones(50) if whole else np.exp(rng.normal(size=50))
    rank = np.array(
        [
            weight[score < one].sum()
            + weight[score == one].sum() / 2
            - weight.sum() / 2
            for one in score
        ]
    )
    far = outcome - np.average(outcome, weights=weight)
    together = weight @ (rank * far)
    rows = weight.sum() ** 2 / (weight @ weight)
    spread = np.average(far**2, weights=weight) * rows / (rows - 1)
    correlation = together / np.sqrt((weight @ rank**2) * (weight @ far**2))
    found = compute_spearman_and_z(score, outcome, weight)
    assert found[0] == pytest.approx(correlation)
    assert found[1] == pytest.approx(together / np.sqrt(weight**2 @ rank**2 * spread))
