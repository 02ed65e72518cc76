"""Pairwise coupling."""

import numpy as np

MIN_PAIR_PROBABILITY = 1e-12  # pairs that are certain, r_ij = 0, would leave the system singular


def couple_pairs(pairwise):
    """Class probabilities from pairwise ones, Wu, Lin, Weng (2004), eq. 14 to 17.

    pairwise[n, i, j] estimates P(class i | class i or j). Minimises
    sum_{i != j} (r_ji p_i - r_ij p_j)^2 subject to sum p = 1; its solution is non-negative
    (Theorem 2). The multiplier is found with p from (Q + 1 1') p = 1, up to a factor.
    """
    k = pairwise.shape[1]
    r = np.clip(pairwise, MIN_PAIR_PROBABILITY, 1 - MIN_PAIR_PROBABILITY)
    diagonal = np.arange(k)
    r[:, diagonal, diagonal] = 0.0
    q = -r.transpose(0, 2, 1) * r
    q[:, diagonal, diagonal] = (r**2).sum(axis=1)
    p = np.linalg.solve(q + np.ones((k, k)), np.ones((len(r), k, 1)))[..., 0]
    p = np.maximum(p, 0.0)
    return p / p.sum(axis=1, keepdims=True)
