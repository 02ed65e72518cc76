"""A mean of few labels, corrected by a score of all rows: its errors row by row, and its interval.

With w the weights of labelled rows, W their sum, g the recalibrated score, d = g less its mean over
all N rows, the estimate is theta = sum w (y - lambda d) / W (Angelopoulos, Duchi, Zrnic 2023,
section 6, written for all rows). Its error is a sum over rows of A - lambda B with
A = w (y - ybar) / W and B = w (d - dbar) / W of a labelled row, less d / N of every row.
"""

import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import ndtri, stdtrit

from ._proportion import share_interval


def summed(values, cluster, n_clusters):
    """Sums of the rows of each cluster; the rows themselves where there are no clusters."""
    if cluster is None:
        return values
    return np.bincount(cluster, weights=values, minlength=n_clusters)


def effective(weight, cluster):
    """Kish's number of labelled clusters: (sum w)^2 / sum w^2."""
    of_cluster = weight if cluster is None else np.bincount(cluster, weights=weight)
    return float(weight.sum() ** 2 / (of_cluster @ of_cluster))


def best_power(own, gains):
    """The lambdas in [0, 1] that make sum (own - gains @ lambda)^2 least."""
    return lsq_linear(gains, own, (0.0, 1.0), method="bvls").x


def variance(errors, n_effective, fitted):
    """The variance of their sum, for `fitted` numbers that were estimated."""
    return float(errors @ errors) * n_effective / max(n_effective - fitted, 1.0)


def unseen_square(errors, n_effective, n_rows):
    """The squared error of one more row (n_rows None), or one more cluster like those that differ.

    A row that differs moves the mean by 1 / n. A cluster moves it by the mean of the errors, each
    weighted by its size, which is the error itself where those that are not 0 are alike: by a row
    at least, and by all of its rows where no cluster differs.
    """
    most, total = n_effective**-2, np.abs(errors).sum()
    if n_rows is None or not total > 0:
        return most
    return min(max(float((errors @ errors / total) ** 2), n_rows**-2), most)


def quantile(n_effective, level):
    """That of Student's law."""
    return float(stdtrit(max(n_effective - 1.0, 1.0), (1 + level) / 2))


def worth(share, spread, n_effective, n_rows):
    """How many independent labels those of a share are worth, judged by its variance."""
    if spread <= 0 or not 0 < share < 1:
        return n_effective
    return min(share * (1 - share) / spread, float(n_rows))


def share_intervals(alone, found, spreads, rows, level, t):
    """Intervals of a share: by labels alone, and corrected; the second is never the wider one.

    Clopper and Pearson's, of so many more rows for the corrected one as the variance is smaller,
    and of fewer as Student's `t` is above the normal quantile (Korn, Graubard 1998, eq. 2). Both
    variances get t^2 / 4n^2, Wilson's own, first: no error seen in n labels does not mean that
    there is none.
    """
    least, fewer = t**2 / (4 * rows**2), (ndtri((1 + level) / 2) / t) ** 2
    ratio = min((spreads[1] + least) / (spreads[0] + least), 1.0)
    ends, ours = (
        tuple(map(float, share_interval(share * size * fewer, size * fewer, level)))
        for share, size in ((alone, rows), (found, rows / ratio))
    )
    return ends, no_wider(found, ours, ends[1] - ends[0])


def no_wider(middle, ends, width):
    """An interval drawn together around a point inside it until it is no wider than that."""
    low, high = ends
    if high - low > width:
        ratio = width / (high - low)
        low, high = (middle + (end - middle) * ratio for end in ends)
    return float(low), float(high)
