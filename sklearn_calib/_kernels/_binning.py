"""Bins on [0, 1] that never split ties.

They are used by the binned measures and by histogram binning.
"""

import numpy as np
from scipy.special import gammaln

# A value nearer to an edge than this fraction of a bin lies on the edge.
BIN_EDGE_TOLERANCE_IN_BINS = 1e-9
# The sweep over numbers of bins ends here even if the frequencies still increase, as
# they always do if the scores sort the labels.
MAX_SWEPT_BINS = 1000


def find_distinct_scores_and_index(scores):
    """Return sorted distinct scores, and the index of each row's score among them."""
    return np.unique(scores, return_inverse=True)


def find_scores_index_mass_and_event_rates(scores, y_encoded, weight):
    """Return the distinct scores, the index of each row, and weight and event rate by score."""
    values, row_value = find_distinct_scores_and_index(scores)
    mass = np.bincount(row_value, weights=weight)
    return (
        values,
        row_value,
        mass,
        np.bincount(row_value, weights=weight * y_encoded) / mass,
    )


def assign_values_to_bins(sorted_values, mass, n_bins, strategy):
    """Return bin numbers 0 .. n_bins - 1 of sorted distinct values.

    "uniform": [0, 1] cut in equal widths, each bin closed on the right, the first on
    both sides. "quantile": bins of equal mass; a value belongs to the bin of the middle
    of its mass, on an edge to the bin above, so that ties stay together, any multiple
    of the weights gives the same bins, and without ties the numbers of rows differ by
    at most one.
    """
    if strategy == "uniform":
        edges = np.arange(n_bins + 1) / n_bins
        bins = np.minimum((sorted_values * n_bins).astype(np.intp), n_bins - 1)
        # The product above is rounded, whereas the edges are exact: they decide.
        bins += sorted_values > edges[bins + 1]
        bins -= sorted_values <= edges[bins]
        return np.maximum(bins, 0, out=bins)
    # A distinct score goes to the bin of the middle of its mass, so ties are never
    # split; the tolerance keeps middles that rounding moved below an edge in the upper
    # bin.
    middle = find_mass_midpoint_fractions(mass) * n_bins + BIN_EDGE_TOLERANCE_IN_BINS
    return np.minimum(middle.astype(np.intp), n_bins - 1)


def find_bin_starts_and_end(mass, n_bins):
    """Return where the bins of equal mass of `assign_values_to_bins` begin, with the end.

    An empty bin begins where the next one does.
    """
    cumulated = np.cumsum(mass)
    wanted = np.arange(1, n_bins)
    index = np.searchsorted(
        cumulated, (wanted - BIN_EDGE_TOLERANCE_IN_BINS) * (cumulated[-1] / n_bins)
    )
    # The right cell is this one or the next: the first whose middle lies beyond the
    # edge.
    index = np.minimum(index, len(mass) - 1)
    middle = (cumulated[index] - 0.5 * mass[index]) / cumulated[
        -1
    ] * n_bins + BIN_EDGE_TOLERANCE_IN_BINS
    return np.concatenate([[0], index + (middle < wanted), [len(mass)]])


def sum_runs(edges, *columns):
    """Sum each column along its last axis from each edge to the next.

    The last edge is the end.
    """
    # `reduceat` returns the first entry, not 0, for an empty run; such runs are masked.
    filled = np.diff(edges) > 0
    first = np.minimum(edges[:-1], edges[-1] - 1)
    return [np.add.reduceat(column, first, axis=-1) * filled for column in columns]


def find_mass_midpoint_fractions(mass):
    """Return the fraction of the mass below the middle of each.

    Callers that compare it with multiples of 1 / n treat differences up to
    `BIN_EDGE_TOLERANCE_IN_BINS` / n as 0, because sums of 0.1 are not exact multiples
    of 0.1.
    """
    cumulated = np.cumsum(mass)
    return (cumulated - 0.5 * mass) / cumulated[-1]


def assign_rows_to_bins(scores, weight, n_bins, strategy):
    """Return bin numbers of rows, as `assign_values_to_bins`.

    Bins of equal width need no sort.
    """
    if strategy == "uniform":
        return assign_values_to_bins(scores, None, n_bins, strategy)
    values, row_value = find_distinct_scores_and_index(scores)
    mass = np.bincount(row_value, weights=weight)
    return assign_values_to_bins(values, mass, n_bins, strategy)[row_value]


def compute_rounded_up_cube_root(n_rows):
    """Return the cube root of the number of rows, rounded up."""
    # Rounding can lift the cube root of a perfect cube just above the integer, which
    # `ceil` would turn into one bin more.
    return max(int(np.ceil(np.cbrt(n_rows) - 1e-9)), 1)


def assign_values_to_monotonic_bins(values, mass, event_weight, strategy):
    """Return the largest number of bins before the frequencies first decrease.

    Roelofs et al. (2022), algorithm 1, at most `MAX_SWEPT_BINS`. "quantile": a value
    belongs where its first row does, as their program cuts, but ties stay together.
    Ties and gaps leave bins empty: these are not numbered, and a number of bins that
    fills no more of them than the one before is passed over.
    """
    cumulated = np.append(0.0, np.cumsum(mass))
    events = np.append(0.0, np.cumsum(event_weight))
    last = len(values)
    best = ends = np.array([0, last])
    for n_bins in range(2, MAX_SWEPT_BINS + 1):
        if len(ends) > last:
            break
        if strategy == "uniform":
            starts = np.searchsorted(
                values, np.arange(1, n_bins) / n_bins, side="right"
            )
        else:
            position = (
                cumulated[:-1] * n_bins / cumulated[-1] + BIN_EDGE_TOLERANCE_IN_BINS
            )
            starts = np.searchsorted(position, np.arange(1, n_bins))
        filled = len(ends)
        ends = np.unique(np.concatenate([[0], starts, [last]]))
        # No further bin is filled, so the frequencies are those of the last round and
        # need no comparison.
        if len(ends) == filled:
            continue
        frequency = np.diff(events[ends]) / np.diff(cumulated[ends])
        # A smaller decrease is rounding.
        if (np.diff(frequency) < -1e-9).any():
            break
        best = ends
    return np.repeat(np.arange(len(best) - 1), np.diff(best))


def limit_rows_by_distinct_values(total, n_values):
    """Return the number of rows that numbers of bins are derived from.

    Bins cannot be finer than the distinct values: many rows, or heavy weights, on few
    values give no more bins than 8000 rows, or than one row per value.
    """
    # More rows of the same few distinct values do not allow more bins.
    return min(float(total), float(max(n_values, 8000)))


def sum_bins(bins, n_bins, *columns):
    """Sum of each column over each bin."""
    return [np.bincount(bins, weights=column, minlength=n_bins) for column in columns]


def blend_with_base_rate(score, base):
    """Return the label of pseudo rows: nine parts the score, one part the base rate.

    The base rate keeps a bin of exact zeros from predicting 0; both sum to 1 over the
    classes.
    """
    return 0.9 * score + 0.1 * base


def sum_log_evidence_over_bins(total, ones, prior_count, prior_mean):
    """Return the log marginal likelihood of bins.

    Each has a beta prior of this many counts and this mean.
    """
    # A beta-binomial likelihood per bin, as in Naeini, Cooper and Hauskrecht (2015).
    prior_ones = prior_count * prior_mean
    prior_zeros = prior_count * (1 - prior_mean)
    log_likelihoods = gammaln(prior_count) - gammaln(total + prior_count)
    log_likelihoods += gammaln(ones + prior_ones) - gammaln(prior_ones)
    log_likelihoods += gammaln(total - ones + prior_zeros) - gammaln(prior_zeros)
    return float(log_likelihoods.sum())
