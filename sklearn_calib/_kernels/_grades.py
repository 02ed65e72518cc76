"""Tests of the numbers of events of rating grades.

Arrays have one entry for each grade: events k of n rows, and a probability.
"""

import numpy as np
from scipy.special import betainc, xlogy
from scipy.stats import binom

from ._proportion import compute_upper_bound

# The hypergeometric sampler of numpy accepts fewer rows than this.
_MAX_NUMPY_HYPERGEOMETRIC_ROWS = 10**9


def compute_jeffreys_p(events, rows, probability):
    """Return P(rate <= probability) under Jeffreys' posterior.

    The posterior is Beta(k + 1/2, n - k + 1/2).
    """
    # The posterior under Jeffreys' prior Beta(1/2, 1/2), the test that the European
    # Central Bank requires in its validation reports.
    return betainc(events + 0.5, rows - events + 0.5, probability)


def compute_upper_binomial_p(events, rows, probability):
    """Return P(X >= k) of a binomial distribution."""
    # P(X >= k) is an incomplete beta function for k >= 1; for k = 0 it is 1, and its
    # first argument would be 0.
    at_least_one = np.maximum(events, 1)
    tail = betainc(at_least_one, rows - at_least_one + 1, probability)
    return np.where(events > 0, tail, 1.0)


def compute_two_sided_p(events, rows, probability):
    """Return twice the smaller of P(X >= k) and P(X <= k), at most 1."""
    above = compute_upper_binomial_p(events, rows, probability)
    below = binom.cdf(events, rows, probability)
    return np.minimum(1.0, 2 * np.minimum(above, below))


def compute_two_sided_total_events_p(events, rows, probability):
    """Return the two-sided p-value of the number of events of all grades together.

    Its distribution is the binomial one with the mean and the variance of the sum:
    exact for equal rates.
    """
    total = events.sum()
    mean = rows @ probability
    # If all probabilities are 0, or all are 1, the number of events is certain.
    if not 0 < mean < rows.sum():
        return float(total == mean)
    # The number of events is a sum of binomials with different rates. A binomial with
    # the same mean and variance approximates it.
    mean_rate = rows @ probability**2 / mean
    size = max(mean / mean_rate, total)
    above = compute_upper_binomial_p(total, size, mean_rate)
    below = betainc(max(size - total, 1e-9), total + 1, 1 - mean_rate)
    return float(min(1.0, 2 * min(above, below)))


def compute_joint_p_from_smallest_p(events, rows, probability):
    """Return the probability that the smallest p-value of all grades is this small.

    Events are whole numbers: what is this rare in another grade, either tail at most
    half of the p-value, has a smaller chance than the p-value itself.
    """
    # The grades are independent, so the smallest p-value has an exact distribution: the
    # product of the probabilities that no grade is as extreme.
    half = np.min(compute_two_sided_p(events, rows, probability)) / 2 * (1 + 1e-9)
    if half >= 0.5:
        return 1.0
    below = binom.cdf(binom.ppf(half, rows, probability) - 1, rows, probability)
    above = binom.sf(binom.isf(half, rows, probability), rows, probability)
    log_none = np.log1p(-below - above).sum()
    return float(abs(np.expm1(log_none)))


def compute_pluto_tasche_upper_rates(events, rows, level):
    """Return most prudent rates from the best grade to the worst.

    They are upper bounds that do not decrease.

    Of each grade and all worse ones together (Pluto, Tasche 2005, section 3).
    """
    # Pluto and Tasche (2005): no grade is better than the worse ones, so the bound of a
    # grade pools it with all worse grades.
    worse_events = np.cumsum(events[::-1])[::-1]
    worse_rows = np.cumsum(rows[::-1])[::-1]
    return np.maximum.accumulate(
        compute_upper_bound(worse_events, worse_rows, 1 - level)
    )


def fit_isotonic_rates(events, rows):
    """Fit rates that do not decrease; the last axis of the arrays are the grades.

    The largest of all mean rates that begin at s <= i of the smallest that end at t >=
    i.
    """
    zero = np.zeros((*np.shape(events)[:-1], 1))
    total = np.concatenate([zero, np.cumsum(events, axis=-1)], axis=-1)
    size = np.append(0.0, np.cumsum(rows))
    k = len(rows)
    best = np.full((k, *np.shape(events)[:-1]), -np.inf)
    for s in range(k):
        lowest = np.inf
        for t in range(k - 1, s - 1, -1):
            events_between = total[..., t + 1] - total[..., s]
            lowest = np.minimum(lowest, events_between / (size[t + 1] - size[s]))
            # The max-min formula of isotonic regression; for a few grades and many
            # draws it is faster than pooling adjacent violators draw by draw.
            best[t] = np.maximum(best[t], lowest)
    return np.moveaxis(best, 0, -1)


def compute_order_likelihood_ratio(events, rows):
    """Return twice the log-likelihood ratio of the rates and increasing rates.

    The latter are the increasing rates that fit best.
    """
    rate = events / rows
    ordered = fit_isotonic_rates(events, rows)
    best = xlogy(events, rate) + xlogy(rows - events, 1 - rate)
    fitted = xlogy(events, ordered) + xlogy(rows - events, 1 - np.minimum(ordered, 1.0))
    return 2 * np.maximum(best - fitted, 0.0).sum(axis=-1)


def compute_order_p(events, rows, n_resamples, rng):
    """Return the fraction of draws whose rates are at least as far out of order.

    The events are dealt out to the rows of all grades anew, which is their distribution
    if all rates are equal: of all rates that do not fall, the ones that are out of
    order most often.
    """
    observed = compute_order_likelihood_ratio(events, rows)
    integer_rows = rows.astype(np.int64)
    if len(rows) < 2 or not 0 < events.sum() < rows.sum():
        return 1.0
    # Given the number of events, labels that are exchangeable between grades have a
    # hypergeometric distribution. This is the least favourable case of increasing
    # rates.
    drawn = draw_event_counts(integer_rows, int(events.sum()), n_resamples, rng)
    ratios = compute_order_likelihood_ratio(drawn.astype(float), rows)
    larger = np.count_nonzero(ratios >= observed * (1 - 1e-9) - 1e-12)
    return float((1 + larger) / (1 + n_resamples))


def draw_event_counts(rows, n_events, size, rng):
    """Draw how the events fall on the rows of all grades: (size, n_grades).

    numpy draws of fewer than 1e9 rows; of more, the binomial distribution of each grade
    in turn is narrowed to what the other grades make of the rest.
    """
    if rows.sum() < _MAX_NUMPY_HYPERGEOMETRIC_ROWS:
        return rng.multivariate_hypergeometric(rows, n_events, size, method="marginals")
    drawn = np.zeros((size, len(rows)), dtype=np.int64)
    # Drawing one grade after the other gives the same distribution for any number of
    # rows.
    remaining = np.full(size, n_events)
    for grade in range(len(rows) - 1):
        drawn[:, grade] = _draw_hypergeometric_counts(
            rows[grade],
            rows[grade + 1 :].sum(),
            remaining,
            rng,
        )
        remaining -= drawn[:, grade]
    drawn[:, -1] = remaining
    return drawn


def _draw_hypergeometric_counts(n, n_others, events, rng):
    """Draw how many of the events fall on n rows and not on the others, exactly.

    The smaller side is drawn from its binomial distribution, and accepted with the
    probability, relative to the largest, with which the larger side has the rest: at
    least seven times in ten.
    """
    if n > n_others:
        return events - _draw_hypergeometric_counts(n_others, n, events, rng)
    drawn_events = np.zeros(len(events), dtype=np.int64)
    waiting = np.flatnonzero((events > 0) & (n > 0))
    while len(waiting):
        k = events[waiting]
        # Rejection sampling: a binomial proposal, accepted in proportion to the
        # binomial probability of the remaining events.
        probability = k / (n + n_others)
        drawn = rng.binomial(n, probability)
        mode = np.floor((n_others + 1) * probability)
        mode = np.clip(mode, 0, np.minimum(n_others, k))
        chance = binom.pmf(k - drawn, n_others, probability)
        chance /= binom.pmf(mode, n_others, probability)
        good = rng.random(len(k)) < chance
        drawn_events[waiting[good]] = drawn[good]
        waiting = waiting[~good]
    return drawn_events
