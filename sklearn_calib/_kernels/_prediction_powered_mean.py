"""A mean of few labels, corrected by a score of all rows: its errors row by row, and its interval.

With w the weights of labelled rows, W their sum, g the recalibrated score, d = g less
its mean over all N rows, the estimate is theta = sum w (y - lambda d) / W
(Angelopoulos, Duchi, Zrnic 2023, section 6, written for all rows). Its error is a sum
over rows of A - lambda B with A = w (y - ybar) / W and B = w (d - dbar) / W of a
labelled row, less d / N of every row.
"""

import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import ndtri, stdtrit

from ._proportion import compute_exact_interval


def sum_clusters_if_any(values, cluster, n_clusters):
    """Sum the rows of each cluster; return the rows if there are no clusters."""
    if cluster is None:
        return values
    return np.bincount(cluster, weights=values, minlength=n_clusters)


def count_effective_clusters(weight, cluster):
    """Return Kish's number of labelled clusters: (sum w)^2 / sum w^2."""
    cluster_weight = weight if cluster is None else np.bincount(cluster, weights=weight)
    return float(weight.sum() ** 2 / (cluster_weight @ cluster_weight))


def choose_power_tuning_factors(label_errors, gains):
    """Return the lambdas in [0, 1] of least sum (label_errors - gains @ lambda)^2."""
    return lsq_linear(gains, label_errors, (0.0, 1.0), method="bvls").x


def compute_error_sum_variance(errors, n_effective, fitted):
    """Return the variance of the sum of errors, for `fitted` estimated numbers."""
    return float(errors @ errors) * n_effective / max(n_effective - fitted, 1.0)


def bound_square_from_one_unseen_unit(errors, n_effective, n_rows):
    """Return the squared error of one more row, or of one more cluster.

    `n_rows` is None for rows. The cluster is like those that differ.

    A row that differs moves the mean by 1 / n. A cluster moves it by the mean of the
    errors, each weighted by its size, which is the error itself if those that are not 0
    are equal: by a row at least, and by all of its rows if no cluster differs.
    """
    # A row that was not observed may have an error as large as a label can be wrong.
    max_square = n_effective**-2
    total = np.abs(errors).sum()
    if n_rows is None or not total > 0:
        return max_square
    return min(max(float((errors @ errors / total) ** 2), n_rows**-2), max_square)


def get_two_sided_student_quantile(n_effective, level):
    """Return the quantile of Student's distribution."""
    return float(stdtrit(max(n_effective - 1.0, 1.0), (1 + level) / 2))


def compute_equivalent_label_count(fraction, variance, n_effective, n_rows):
    """Return how many independent labels have the variance of this fraction."""
    if variance <= 0 or not 0 < fraction < 1:
        return n_effective
    return min(fraction * (1 - fraction) / variance, float(n_rows))


def compute_plain_and_corrected_ends(
    label_fraction, corrected_fraction, variances, rows, level, t
):
    """Return intervals of a fraction: by labels alone, and corrected.

    The second is never the wider one.

    Clopper and Pearson's, of so many more rows for the corrected one as the variance is
    smaller, and of fewer as Student's `t` is above the normal quantile (Korn, Graubard
    1998, eq. 2). Both variances get t^2 / 4n^2, Wilson's own, first: no error seen in n
    labels does not mean that there is none.
    """
    min_variance = t**2 / (4 * rows**2)
    fewer = (ndtri((1 + level) / 2) / t) ** 2
    # The correction can only be worth additional labels; an estimated ratio above 1 is
    # noise, since a power of 0 is allowed.
    ratio = min((variances[1] + min_variance) / (variances[0] + min_variance), 1.0)

    def find_exact_proportion_ends(fraction, size):
        low, high = compute_exact_interval(fraction * size * fewer, size * fewer, level)
        return float(low), float(high)

    ends = find_exact_proportion_ends(label_fraction, rows)
    corrected_ends = find_exact_proportion_ends(corrected_fraction, rows / ratio)
    return ends, shrink_interval_to_width(
        corrected_fraction, corrected_ends, ends[1] - ends[0]
    )


def shrink_interval_to_width(middle, ends, width):
    """Shrink an interval around a point inside it until it is at most `width` wide."""
    low, high = ends
    if high - low > width:
        ratio = width / (high - low)
        low, high = (middle + (end - middle) * ratio for end in ends)
    return float(low), float(high)
