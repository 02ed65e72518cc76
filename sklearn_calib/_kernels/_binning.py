"""Bins on [0, 1] that never split ties. Used by the binned measures and by histogram binning."""

import numpy as np
from scipy.special import gammaln


def distinct(scores):
    """Sorted distinct scores and, for every row, the position of its score among them."""
    return np.unique(scores, return_inverse=True)


def pool(scores, codes, weight):
    """As `distinct`, and the weight and the frequency of the labels 1 at each distinct score."""
    values, row_value = distinct(scores)
    mass = np.bincount(row_value, weights=weight)
    return values, row_value, mass, np.bincount(row_value, weights=weight * codes) / mass


def bin_of_distinct(values, mass, n_bins, strategy):
    """Bin numbers 0 .. n_bins - 1 of sorted distinct values.

    "uniform": [0, 1] cut in equal widths, each bin closed on the right, the first on both sides.
    "quantile": bins of equal mass; a value belongs where the middle of its mass falls, so that
    ties stay together, any multiple of the weights gives the same bins, and without ties the
    numbers of rows differ by at most one.
    """
    if strategy == "uniform":
        edges = np.arange(n_bins + 1) / n_bins
        bins = np.minimum((values * n_bins).astype(np.intp), n_bins - 1)
        bins += values > edges[bins + 1]  # the product rounds; the edges are exact
        bins -= values <= edges[bins]
        return np.maximum(bins, 0, out=bins)
    cumulated = np.cumsum(mass)
    middle = (cumulated - 0.5 * mass) / cumulated[-1]
    return np.minimum((middle * n_bins).astype(np.intp), n_bins - 1)


def bin_of_rows(scores, weight, n_bins, strategy):
    """Bin numbers of rows; as `bin_of_distinct`, without a sort for equal widths."""
    if strategy == "uniform":
        return bin_of_distinct(scores, None, n_bins, strategy)
    values, row_value = distinct(scores)
    mass = np.bincount(row_value, weights=weight)
    return bin_of_distinct(values, mass, n_bins, strategy)[row_value]


def rows_for_bins(total, n_values):
    """What numbers of bins are derived from: the number of rows, as far as it can matter.

    Bins cannot be finer than the distinct values: many rows, or heavy weights, on few values ask
    for no more bins than 8000 rows would, or than rows as many as the values.
    """
    return min(float(total), float(max(n_values, 8000)))


def bin_sums(bins, n_bins, *columns):
    """Sum of each column over each bin."""
    return [np.bincount(bins, weights=column, minlength=n_bins) for column in columns]


def invented_share(score, base):
    """What invented rows of a bin are: nine parts the score, one part the base rate.

    The base rate keeps a bin of exact zeros from predicting 0; both sum to 1 over the classes.
    """
    return 0.9 * score + 0.1 * base


def log_evidence(total, ones, count, mean):
    """Log marginal likelihood of bins, each with a beta prior of this many counts and this mean."""
    parts = gammaln(count) - gammaln(total + count)
    parts += gammaln(ones + count * mean) - gammaln(count * mean)
    parts += gammaln(total - ones + count * (1 - mean)) - gammaln(count * (1 - mean))
    return float(parts.sum())
