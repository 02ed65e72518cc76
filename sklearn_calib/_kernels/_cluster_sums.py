"""Tests and standard errors from sums over few clusters of rows with rare events.

`residual` is what happened less its probability, `variance` that of the residual if
that probability is right, `weight` above 0, `groups` the cluster of each row, numbered
from 0.

The variance of a sum of residuals is estimated as a design effect times the variance
that independent rows would have: the squared sums of the clusters over the squared
residuals, times p (1 - p). If few events came by chance, both sums of squares are
too small, and their ratio is not; squared sums alone are then small whenever the sum
itself is far below 0, and reject.
"""

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

from ._proportion import compute_exact_interval

# A smaller p (1 - p) belongs to a probability of 0 or 1, whose log-odds are finite here.
_MAX_CERTAIN_ROW_VARIANCE = 1e-30
# A sum is treated as 0 below this, relative to the sum of weights.
_NEGLIGIBLE_SUM_WEIGHT_SHARE = 1e-12
# Ends of intervals are clipped to this.
_MAX_ABS_END_LOG_ODDS = 700.0


def compute_expected_over_observed_squares(residual, variance, weight):
    """Return the expected over the observed sum of squared residuals.

    Weights are not squared, so that a share y of 1 counts as labels 1 and 0 of weights
    y and 1 - y, whose expectations are the same.
    """
    expected = weight @ variance
    seen = weight @ residual**2
    return expected / seen if seen > 0 else 1.0


def bound_total_within_cluster_covariance(chance, weight, groups):
    """Bound the summed covariances of different rows of a cluster.

    They are largest if one random number decides all rows of a cluster.

    Row i is then 1 if the number is below its chance: weight_i weight_j (the smaller
    chance of the two, less their product).
    """
    # The covariance of two events is at most that of the rarer one occurring only
    # together with the other: min(p, q) - p q. Sorting makes this a cumulative sum.
    order = np.lexsort((chance, groups))
    chance = chance[order]
    weight = weight[order]
    groups = groups[order]
    upto = np.cumsum(weight)
    ends = np.append(np.flatnonzero(np.diff(groups)), len(groups) - 1)
    # The weight of the later rows of the same cluster.
    larger = upto[ends[groups]] - upto
    expected = weight * chance
    cluster_square = (np.bincount(groups, expected) ** 2).sum()
    return 2 * expected @ larger - cluster_square + expected @ expected


def run_score_test(columns, residual, variance, weight, groups):
    """Test whether the sum of weight * residual * columns is 0; return (root, p-value).

    Rao and Scott (1992), "A simple method for the analysis of clustered binary data",
    for the design effect, here of a vector of sums. In coordinates in which the known
    variance of independent rows is the unit matrix the squared sums of clusters are
    divided by the roots of the squares of the residuals. Normal and chi-square laws:
    expectations are given, not estimated. `root` is z of one column; of several that of
    the chi-square statistic, of which the degrees are the directions in which the rows
    can vary.
    """
    # A certain prediction that is wrong contradicts the hypothesis, whatever the other
    # rows are.
    if (np.abs(residual[variance < _MAX_CERTAIN_ROW_VARIANCE]) > 0.5).any():
        return np.inf, 0.0
    # The columns are first standardised under the hypothesis and then under the
    # observed squares; the ratio of both is the design effect of the clusters.
    mass = weight[:, None]
    expected = (columns * mass * variance[:, None]).T @ columns
    columns = columns @ _raise_matrix_to_power(expected, -0.5)
    seen = (columns * mass * (residual**2)[:, None]).T @ columns
    row_pulls = (weight * residual)[:, None] * columns
    pulls = sum_clusters(row_pulls, groups)
    pulls = pulls @ _raise_matrix_to_power(seen, -0.5)
    total = sum_clusters(row_pulls, np.zeros_like(groups))[0]
    spread = pulls.T @ pulls
    values = np.linalg.eigvalsh(spread)
    # Clusters fewer than columns leave directions without any observed variance, which
    # cannot be tested.
    degrees = 0
    if values[-1] > 0:
        degrees = int((values > 1e-10 * max(values[-1], 1e-300)).sum())
    if degrees == 0:
        return 0.0, 1.0
    square = float(total @ np.linalg.pinv(spread, rcond=1e-10, hermitian=True) @ total)
    sign = np.sign(total.sum()) if columns.shape[1] == 1 else 1.0
    root = sign * np.sqrt(max(square, 0.0))
    return float(root), float(stats.chi2.sf(square, degrees))


def _raise_matrix_to_power(matrix, power):
    """Return a power of a matrix without negative eigenvalues; those of 0 stay 0."""
    values, vectors = np.linalg.eigh(matrix)
    is_positive = values > 1e-12 * max(values[-1], 0.0)
    values[is_positive] = values[is_positive] ** power
    values[~is_positive] = 0.0
    return (vectors * values) @ vectors.T


def sum_clusters(rows, groups):
    """Sum each column over the rows of each cluster."""
    return np.array([np.bincount(groups, column) for column in rows.T]).T


class EventTotalTest:
    """The number of events if one parameter moves all probabilities up and down.

    As `run_score_test` of the sum, with p (1 - p) of the mean probability in place of
    that of the rows: it holds for every shape of the true curve. `expected` is a
    function of the parameter that gives the expected events of each cluster, and rises
    from 0 to all.
    """

    def __init__(self, events, mass, expected):
        self.events = events
        self.expected = expected
        self.mass = mass
        self.rate = events.sum() / mass

    def standardise_total(self, parameter):
        """Return events less expected ones, over their standard deviation."""
        expected = self.expected(parameter)
        away = self.events - expected
        # The variance of the observed rate includes the distance from the hypothesised
        # mean, so that the ratio of both variances stays finite.
        mean = expected.sum() / self.mass
        seen = self.rate * (1 - self.rate) + (self.rate - mean) ** 2
        if seen <= 0:
            return 0.0
        variance = away @ away * max(mean * (1 - mean), 0.0) / seen
        total = away.sum()
        if abs(total) <= _NEGLIGIBLE_SUM_WEIGHT_SHARE * self.mass:
            return 0.0
        return (
            float(total / np.sqrt(variance))
            if variance > 0
            else float(np.sign(total) * np.inf)
        )

    def find_parameter_interval(self, estimate, level):
        """Return where z is as far from 0 as the level allows, on both sides.

        If the events of all clusters equal their expectations at the estimate, z is not
        usable: each cluster then counts as one row of Clopper and Pearson's interval.
        """
        critical = stats.norm.ppf((1 + level) / 2)
        low, high = compute_exact_interval(
            self.rate * len(self.events), len(self.events), level
        )
        # If all clusters agree exactly with the estimate, the sandwich variance is 0;
        # the exact binomial interval of the event rate replaces it.
        exact = (
            np.abs(self.events - self.expected(estimate)).max()
            <= _NEGLIGIBLE_SUM_WEIGHT_SHARE * self.mass
        )

        def measure_margin_inside(c, sign):
            if exact:
                rate = self.expected(c).sum() / self.mass
                return high - rate if sign > 0 else rate - low
            return np.clip(sign * self.standardise_total(c), -1e9, 1e9) + critical

        def find_end(sign):
            """Find the end of the interval below (sign -1) or above (1) the estimate."""
            inside = estimate
            step = 0.5
            # The end may be infinite, if for instance all rows are events, so the
            # bracket doubles up to a limit.
            while measure_margin_inside(inside + sign * step, sign) > 0:
                inside += sign * step
                step *= 2
                if abs(inside) > _MAX_ABS_END_LOG_ODDS:
                    return sign * np.inf
            return brentq(
                measure_margin_inside, *sorted([inside, inside + sign * step]), (sign,)
            )

        return find_end(-1), find_end(1)


def compute_oe_interval_and_z(events, expected, mass, level):
    """Compare all events with all expected ones.

    Returns the interval of their ratio, and z of a ratio of 1.
    """
    # The ratio of observed to expected events lies in [0, max_ratio], so a logistic
    # curve parametrises it without bounds. The largest ratio is reached if all rows are
    # events.
    max_ratio = mass / expected.sum()
    total = EventTotalTest(events, mass, lambda c: expit(c) * max_ratio * expected)
    rate = min(total.rate, 1.0)
    if max_ratio > 1:
        z = total.standardise_total(logit(1 / max_ratio))
    else:
        # No parameter gives a ratio of 1: the probabilities themselves are tested.
        fixed = EventTotalTest(events, mass, lambda _: expected)
        z = fixed.standardise_total(0)
    if 0 < rate < 1:
        start = float(np.clip(logit(rate), -40, 40))
    else:
        start = 40 * np.sign(rate - 0.5)
    low, high = total.find_parameter_interval(start, level)
    low = 0.0 if rate <= 0 else expit(low)
    high = 1.0 if rate >= 1 else expit(high)
    return float(low * max_ratio), float(high * max_ratio), z


def compute_jackknife_standard_errors_and_df(
    columns, log_odds, outcome, weight, groups
):
    """Return standard errors of coefficients, and their degrees of freedom.

    Errors by leaving out each cluster, one Newton step each: the jackknife, CR3, of
    Bell and McCaffrey (2002), "Bias reduction in standard errors for linear regression
    with multi-stage samples". Student's distribution with degrees of freedom that match
    the variance of the squared error, as there (Satterthwaite's), but of binary
    outcomes instead of normal ones: their fourth moments about p are p (1 - p) (1 - 3 p
    (1 - p)), and rare events leave far fewer degrees than clusters. The design effect D
    is the number of rows that count as one: a cluster counts as rows / D times D
    copies.
    """
    mean = expit(log_odds)
    variance = mean * (1 - mean)
    residual = outcome - mean
    size = columns.shape[1]
    n = int(groups.max()) + 1
    crossed = (
        columns[:, :, None] * columns[:, None] * (weight * variance)[:, None, None]
    )
    cluster_information = sum_clusters(
        crossed.reshape(len(log_odds), -1), groups
    ).reshape(n, size, size)
    information = cluster_information.sum(axis=0)
    pulls = sum_clusters(columns * (weight * residual)[:, None], groups)
    # The change of the coefficients if one cluster is left out, with one Newton step:
    # the jackknife of Lipsitz, Dear and Zhao (1994).
    changes = np.einsum(
        "gij,gj->gi",
        np.linalg.pinv(information - cluster_information, hermitian=True),
        pulls,
    )
    errors = np.sqrt((n - 1) / n * (changes**2).sum(axis=0))
    # Satterthwaite's degrees of freedom: twice the squared mean of the variance
    # estimate over its variance, from the first four moments of Bernoulli residuals.
    influence = columns @ np.linalg.pinv(information, hermitian=True) * weight[:, None]
    squares = influence**2
    total_squares = sum_clusters(influence * residual[:, None], groups)
    alone = sum_clusters(squares * variance[:, None], groups)
    total = alone.sum(axis=0)
    pairs = (alone**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = (total_squares**2).sum(axis=0) / (
            squares * (residual**2)[:, None]
        ).sum(axis=0)
        tails = effect * (squares**2 * (variance * (1 - 6 * variance))[:, None]).sum(
            axis=0
        )
        normal = np.nan_to_num(total**2 / pairs, nan=1.0) - 1
        degrees = total**2 / np.maximum(pairs + tails / 2, 0.0)
    normal = np.clip(normal, 1.0, n - 1)
    return errors, np.clip(np.nan_to_num(degrees, nan=1.0, posinf=np.inf), 1.0, normal)


def compute_cluster_mean_with_error_and_df(totals, mass):
    """Return the mean of rows, its standard error and its degrees of freedom.

    `totals` are sums of weight times value.

    Both arrays have a number for each cluster, `mass` the weight of its rows. The error
    is the jackknife's, CR3 as in `compute_jackknife_standard_errors_and_df`, the
    degrees are those of `estimate_df_and_variance_ratio`.
    """
    mean = totals.sum() / mass.sum()
    # The mean without one cluster less the mean of all, exactly.
    changes = (totals - mean * mass) / (mass.sum() - mass)
    error = np.sqrt((len(mass) - 1) / len(mass) * (changes**2).sum())
    return mean, error, estimate_df_and_variance_ratio(mass)[0]


def estimate_df_and_variance_ratio(mass):
    """Return the degrees of freedom of a mean of clusters, and a ratio of variances.

    Satterthwaite's degrees of the squared jackknife error of Bell and McCaffrey (2002),
    if the variance of what a cluster adds is as its mass; and that squared error over
    what sums of squares with n / (n - 1) would give, both as expected. n - 1 and 1 for
    clusters of one size.
    """
    n = len(mass)
    total = mass.sum()
    # The jackknife divides each residual by the mass of the other clusters; this is the
    # weight of its square.
    pull = (total - mass) ** -2.0
    alone = mass - mass**2 / total
    shared = mass**2 / total
    squares = (pull**2 * (alone**2 - shared**2)).sum() + (pull @ shared) ** 2
    degrees = (pull @ alone) ** 2 / squares
    ratio = ((n - 1) / n) ** 2 * total**2 * (pull @ alone) / alone.sum()
    return float(np.clip(degrees, 1.0, n - 1)), float(ratio)
