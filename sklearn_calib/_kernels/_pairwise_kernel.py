"""The Laplace kernel of the total variation between rows of probabilities, over pairs of rows."""

import numpy as np
from scipy.spatial.distance import cdist, pdist

# The median bandwidth is taken from the pairs of at most so many rows.
MAX_MEDIAN_ROWS = 2000


def compute_total_variation(p, q):
    """Return the total variation between rows p[i] and q[i]: half the l1 distance."""
    return 0.5 * np.abs(p - q).sum(axis=1)


def compute_median_bandwidth(proba):
    """Return the median total variation of all pairs of rows.

    Of more than `MAX_MEDIAN_ROWS` rows, as many evenly spaced ones count.

    If it is 0, the median of the pairs that differ; if none does, 1.
    """
    n = len(proba)
    rows = np.asarray(proba)
    if n > MAX_MEDIAN_ROWS:
        rows = rows[np.linspace(0, n - 1, MAX_MEDIAN_ROWS).astype(np.intp)]
    distances = 0.5 * pdist(rows, "cityblock")
    positive = distances[distances > 0]
    if not len(positive):
        return 1.0
    # If more than half of the pairs are equal the median is 0, which is not a bandwidth.
    return float(np.median(distances)) or float(np.median(positive))


def compute_pair_kernel(proba, bandwidth):
    """Return k(p_i, p_j) = exp(-TV(p_i, p_j) / bandwidth) of all rows: (n, n)."""
    out = cdist(proba, proba, "cityblock")
    out *= -0.5 / bandwidth
    return np.exp(out, out=out)


def compute_adjacent_pair_kernel(proba, bandwidth):
    """Return the kernel of rows 0 and 1, 2 and 3, and so on."""
    even = len(proba) // 2 * 2
    return np.exp(-compute_total_variation(proba[:even:2], proba[1:even:2]) / bandwidth)


def average_kernel_over_pairs(gram, residual, weight, diagonal):
    """Average gram_ij residual_i . residual_j, with or without the terms i = j."""
    weighted = residual * weight[:, None]
    total = np.vdot(weighted, gram @ weighted)
    size = weight.sum() ** 2
    if not diagonal:
        # Without the diagonal the average is a U-statistic, which is unbiased for
        # calibrated predictions.
        squares = weight**2
        total -= squares @ (gram.diagonal() * (residual**2).sum(axis=1))
        size -= squares.sum()
    return float(total / size)


def average_kernel_over_adjacent_pairs(gram, residual, weight):
    """Average gram_j residual_2j . residual_2j+1 by weight."""
    even = 2 * len(gram)
    weight = weight[:even:2] * weight[1:even:2]
    products = np.einsum("ij,ij->i", residual[:even:2], residual[1:even:2])
    return float(weight @ (gram * products) / weight.sum())
