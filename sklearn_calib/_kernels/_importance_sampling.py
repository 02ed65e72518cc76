"""Small p-values of the range of a path, by importance sampling of the labels.

Draws from the predictions alone would have to be as many as one over the probability.
Here they come from a mixture of the predictions and of predictions that are tilted, too
high or too low between two of five places of the path, and count with the ratio of
their probabilities. With the weight of the true labels among them that is a p-value,
never too small for any mixture: Harrison (2012).
"""

import numpy as np
from scipy.special import gammaincinv, logit, logsumexp, ndtri

# The parts of the path have equal variance.
_N_EQUAL_VARIANCE_PATH_PARTS = 4
# The tilts of a part of the path, in its standard deviations.
_PATH_TILT_STANDARD_DEVIATIONS = (3.5, 6.0)
# A block of draws has at most so many entries.
_MAX_BLOCK_ENTRIES = 1 << 20
# Relative tolerance of a width.
_WIDTH_TOLERANCE = 1e-12


def compute_path_range_p_value(proba, trials, events, weight, n_draws, rng):
    """Return a p-value of the range of the path.

    The path is the cumulative sum of the events less the expected ones.

    Parameters
    ----------
    proba : ndarray of shape (n_cells,)
        In increasing order; equal ones are one step of the path.
    trials, events : ndarray of int of shape (n_cells,)
        Rows, and those of them with the event.
    weight : ndarray of shape (n_cells,)
        Of a row.
    n_draws : int
    rng : Generator
    """
    # Certain rows add nothing to the path of drawn labels, and a tilt of their log-odds
    # is infinite.
    alive = (proba > 0) & (proba < 1)
    p, n, y, w = (
        column[alive] for column in (proba, trials, events, weight / weight.max())
    )
    ends = np.flatnonzero(np.append(p[1:] > p[:-1], True))
    tilts = _make_log_odds_shift_table(p, n, w, ends)
    # Exponential tilting of independent Bernoulli labels: the likelihood ratio of a
    # draw is an exponential of its weighted sum.
    normaliser = 1 - p + p * np.exp(tilts * w)
    logs = (n * np.log(normaliser)).sum(axis=1)
    drawn_from = np.minimum(p * np.exp(tilts * w) / normaliser, 1)

    def compute_likelihood_ratios_and_ranges(counts):
        ratio = (counts * w) @ tilts.T - logs
        path = np.cumsum((counts - n * p) * w, axis=1)[:, ends]
        width = np.maximum(path.max(axis=1), 0) - np.minimum(path.min(axis=1), 0)
        # The mixture has equal weights, so the ratio is one over the mean of the
        # components' ratios.
        return np.exp(np.log(len(tilts)) - logsumexp(ratio, axis=1)), width

    # The observed labels count as one of the draws, which makes the p-value valid for
    # any number of draws.
    (total,), (width,) = compute_likelihood_ratios_and_ranges(y[None, :])
    step = max(1, _MAX_BLOCK_ENTRIES // len(p))
    for start in range(0, n_draws, step):
        chosen = rng.integers(len(tilts), size=min(step, n_draws - start))
        if (n == 1).all():
            counts = rng.random((len(chosen), len(p))) < drawn_from[chosen]
        else:
            counts = rng.binomial(n, drawn_from[chosen])
        ratio, widths = compute_likelihood_ratios_and_ranges(counts.astype(float))
        total += ratio[widths >= width * (1 - _WIDTH_TOLERANCE)].sum()
    return min(float(total) / (n_draws + 1), 1.0)


def _make_log_odds_shift_table(p, n, w, ends):
    """Return the shifts of the log-odds per unit of weight; the first one is 0."""
    variance = np.cumsum(n * w * w * p * (1 - p))
    targets = (
        variance[-1]
        * np.arange(1, _N_EQUAL_VARIANCE_PATH_PARTS)
        / _N_EQUAL_VARIANCE_PATH_PARTS
    )
    indices = np.searchsorted(variance[ends], targets)
    edges = np.unique(np.concatenate([[0], ends[indices] + 1, [len(p)]]))
    tilts = [np.zeros(len(p))]
    for first, low in enumerate(edges[:-1]):
        for high in edges[first + 1 :]:
            rows = slice(low, high)
            mean = float(n[rows] @ p[rows])
            size = float(n[rows].sum())
            spread = np.sqrt(float((n * p * (1 - p))[rows].sum()))
            for deviations in _PATH_TILT_STANDARD_DEVIATIONS:
                for goal in (mean + deviations * spread, mean - deviations * spread):
                    # A tilt to nearly 0 or all events would have weights of enormous
                    # variance.
                    goal = np.clip(goal, mean / 8, size - (size - mean) / 8)
                    tilt = np.zeros(len(p))
                    tilt[rows] = logit(goal / size) - logit(mean / size)
                    tilts.append(tilt)
    return np.array(tilts)


# A skewness below this moves neither end of an interval visibly.
_MAX_NEGLIGIBLE_SKEWNESS = 1e-4


def compute_skewed_interval_offsets(terms, jump, level):
    """Return ends for the expectation of a sum of independent terms, less that sum.

    `terms` are the terms, whose sum is 0; `jump` is the size of a term that they may
    lack.

    The normal interval is too short if few events make the sum: it ignores the
    skewness, and a sample that lacks events has too small a variance as well. Here the
    sum is taken as a shifted gamma variable (Pearson's type III) with the variance and
    the third moment of the terms, and at the end where the long tail is one more term
    is counted, as in the gamma interval of Fay and Feuer (1997) for weighted sums of
    counts.
    """
    squares = float(terms @ terms)
    seen = float((terms**3).sum()) / squares if squares > 0 else 0.0
    # One more event that was not observed could contribute as much as the largest one;
    # the interval allows for it.
    jump = max(jump, seen, key=abs)
    ends = []
    for tail, extra_term in (
        ((1 - level) / 2, min(jump, 0.0)),
        ((1 + level) / 2, max(jump, 0.0)),
    ):
        extended = np.append(terms, extra_term) if extra_term else terms
        extended = extended - extended.mean()
        ends.append(extra_term + _compute_sum_quantile(extended, tail))
    return min(ends[0], 0.0), max(ends[1], 0.0)


def _compute_sum_quantile(terms, tail):
    """Return the quantile of a sum of independent terms of mean 0, corrected for skewness."""
    variance = float(terms @ terms)
    if variance <= 0:
        return 0.0
    deviation = np.sqrt(variance)
    skewness = float((terms**3).sum()) / (variance * deviation)
    if abs(skewness) < _MAX_NEGLIGIBLE_SKEWNESS:
        return float(ndtri(tail) * deviation)
    # A shifted gamma distribution with the same first three moments (Pearson type III).
    shape = 4 / skewness**2
    gamma_quantile = gammaincinv(shape, tail if skewness > 0 else 1 - tail)
    return float((gamma_quantile - shape) * deviation * skewness / 2)
