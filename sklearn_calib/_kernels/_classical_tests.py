"""Classical tests of calibration from sums at each score: (statistic, p-value).

`compute_spearman_and_z` is of rows: (correlation, statistic).

`score` are scores in increasing order, equal ones together or apart; `rows` the numbers
of rows there, `events` of those with the event.
"""

import numpy as np
from scipy import stats

from .._typing import AnyArray, FloatArray
from ._binning import assign_values_to_bins, sum_bins
from ._log_odds import compute_finite_log_odds
from ._logistic import fit_logistic, split_rows_by_label


def run_spiegelhalter_test(excess, variance, certain_and_wrong):
    """Test the Brier loss less its expectation.

    `excess` and `variance` are sums over the rows.
    """
    # An event of probability 0 happened, which refutes the predictions at once; its
    # variance is 0, so the statistic is infinite.
    if certain_and_wrong:
        return np.inf, 0.0
    if variance <= 0:
        return 0.0, 1.0
    z = float(excess / np.sqrt(variance))
    return z, float(2 * stats.norm.sf(abs(z)))


# The events of a bin, and its non-events, are nearly normal from this expected number
# on.
MIN_EXPECTED_ROWS_PER_OUTCOME = 5


def run_hosmer_lemeshow_test(
    score, rows, events, n_bins, n_lost
) -> tuple[float, float]:
    """Run a chi-square test over bins of equal numbers of rows.

    It has `n_lost` fewer degrees of freedom than bins.

    If a bin has few expected events or non-events, the null distribution is a multiple
    of chi-square with the mean and the variance that the statistic has.
    """
    statistic, used, mean = compute_chi_square_and_used_bins(
        score, rows, events, n_bins
    )
    # Hosmer and Lemeshow lose two degrees of freedom if the model was fitted to the
    # same rows, and none for rows that the fit has not used.
    freedom = len(used) - n_lost
    if np.isinf(statistic):
        return np.inf, 0.0
    # The chi-square approximation is poor if few events are expected. The statistic is
    # then scaled to its exact variance, which depends on the fourth moments of
    # binomials.
    scale = 1.0
    variance = mean * (1 - mean)
    if (
        not n_lost
        and (used * np.minimum(mean, 1 - mean) < MIN_EXPECTED_ROWS_PER_OUTCOME).any()
    ):
        scale = 1 + ((1 - 6 * variance) / (2 * used * variance)).mean()
    pvalue = stats.chi2.sf(statistic / scale, freedom / scale) if freedom > 0 else 1.0
    return statistic, float(pvalue)


def compute_chi_square_and_used_bins(score, rows, events, n_bins):
    """Return the statistic, and rows and means of the bins in it.

    The statistic is infinite if a certain prediction is wrong.
    """
    bins = assign_values_to_bins(score, rows, n_bins, "quantile")
    rows, expected, events = sum_bins(bins, n_bins, rows, rows * score, events)
    mean = np.divide(expected, rows, out=np.zeros(n_bins), where=rows > 0)
    variance = rows * mean * (1 - mean)
    gap = (events - expected) ** 2
    # A bin whose predictions are all 0 or 1 has no variance: it agrees exactly, or it
    # refutes the predictions.
    certain = (rows > 0) & (variance <= 0)
    used = variance > 0
    statistic = float((gap[used] / variance[used]).sum())
    if (gap[certain] > 0).any():
        statistic = np.inf
    return statistic, rows[used], mean[used]


def run_cox_test(score, complement, rows, events):
    """Run the likelihood ratio test of intercept 0 and slope 1.

    `complement` is 1 - score, with all its digits.
    """
    log_odds = compute_finite_log_odds(score, complement)
    label_log_odds, outcome, weight = split_rows_by_label(log_odds, rows, events)
    # Cox (1958): logit P(y = 1) = a + b logit(p). The start (1, 0) is the hypothesis,
    # so the gain in likelihood is that over calibrated predictions.
    columns = np.column_stack([label_log_odds, np.ones_like(label_log_odds)])
    fitted = fit_logistic(columns, outcome, weight, (), [1, 0])
    total = weight.sum()
    margin = np.where(outcome == 1, -label_log_odds, label_log_odds)
    initial_loss = weight @ np.logaddexp(0.0, margin) / total
    statistic = float(max(2 * total * (initial_loss - fitted.loss), 0.0))
    return statistic, float(stats.chi2.sf(statistic, 2))


def run_cumulative_test(score, residual, variance, statistic):
    """Test the cumulative sums of event less score.

    `variance` is that of their total.
    """
    value = compute_path_statistic(score, residual, variance, statistic)
    pvalue = SURVIVAL_FUNCTIONS[statistic](value) if np.isfinite(value) else 0.0
    return value, pvalue


def compute_path_statistic(score, residual, variance, statistic):
    """Return the range of the cumulative sums, or their largest size.

    The unit is the standard deviation.
    """
    # Only the values after whole ties count; inside a tie the path depends on the order
    # of the rows.
    path = np.cumsum(residual)[np.append(np.diff(score) > 0, True)]
    scale = np.sqrt(variance)
    high = max(path.max(), 0.0)
    low = min(path.min(), 0.0)
    size = high - low if statistic == "kuiper" else max(high, -low)
    if scale <= 0:
        return np.inf if size > 0 else 0.0
    return float(size / scale)


def compute_range_survival(x: float) -> float:
    """Return P(range of Brownian motion on [0, 1] > x)."""
    if x < 0.4:
        return 1.0
    # Feller's series for the range of a Brownian motion; terms beyond k x = 38
    # underflow.
    k = np.arange(1, int(45 / x) + 2)
    signs = np.where(k % 2 == 1, 1.0, -1.0)
    terms = signs * k * stats.norm.sf(k * x)
    return float(np.clip(8 * terms.sum(), 0.0, 1.0))


def compute_maximum_survival(x: float) -> float:
    """Return P(largest absolute value of Brownian motion on [0, 1] > x)."""
    if x < 0.15:
        return 1.0
    # The other series converges fast in the tail and keeps its digits there.
    if x > 2:
        k = np.arange(0, 10)
        terms = (-1.0) ** k * stats.norm.sf((2 * k + 1) * x)
        return float(np.clip(4 * terms.sum(), 0, 1))
    k = 2 * np.arange(0, 40) + 1
    signs = np.where(k % 4 == 1, 1.0, -1.0)
    # The series of the distribution function converges fast for small x, the one of the
    # reflection principle above for large x.
    terms = signs / k * np.exp(-((k * np.pi) ** 2) / (8 * x**2))
    inside = 4 / np.pi * terms.sum()
    return float(np.clip(1 - inside, 0.0, 1.0))


#: The survival function of each statistic of `run_cumulative_test`.
SURVIVAL_FUNCTIONS = {
    "kuiper": compute_range_survival,
    "kolmogorov_smirnov": compute_maximum_survival,
}


def compute_spearman_and_z(
    score: FloatArray, outcome: AnyArray, weight: FloatArray
) -> tuple[float, float]:
    """Return Spearman's correlation of scores and outcomes, and its statistic.

    The statistic is standard normal for many rows whose outcomes do not depend on the
    scores; for two outcomes and no weights it is Mann and Whitney's, with ties. Its
    variance is that of a weighted mean for whole numbers as well, which may be
    importances: heavy rows prove no more than one row each. Both are 0 if one side is
    constant.
    """
    order = np.argsort(score, kind="stable")
    scores = score[order]
    relative_weight = weight[order] / weight.max()
    starts = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])
    mass = np.add.reduceat(relative_weight, starts)
    total = mass.sum()
    # Mid-ranks, centred: rows of one score share the mean rank of their tie.
    middle = np.cumsum(mass) - mass / 2 - total / 2
    rank = np.repeat(middle, np.diff(np.r_[starts, len(scores)]))
    deviation = outcome[order] - relative_weight @ outcome[order] / total
    spread_of_ranks = relative_weight @ rank**2
    spread = relative_weight @ deviation**2
    if not (spread_of_ranks > 0 and spread > 0):
        return 0.0, 0.0
    covariance = (relative_weight * rank) @ deviation
    # Kish's effective number of rows.
    rows = total**2 / (relative_weight @ relative_weight)
    # The permutation variance of the covariance, for weights that do not depend on the
    # outcome.
    variance = (relative_weight**2 @ rank**2) * spread / total * rows / max(rows - 1, 1)
    correlation = covariance / np.sqrt(spread_of_ranks * spread)
    return float(correlation), float(covariance / np.sqrt(variance))
