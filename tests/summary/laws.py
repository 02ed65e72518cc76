"""Laws of scores that summaries are tried on."""

import numpy as np
from cells_by_sorting import by_sorting

from sklearn_calib._kernels._cells import (
    IDENTITY_COLUMN,
    compute_mean_label_proba_by_cell,
    compute_ordered_cell_ids,
    encode_float_keys,
)

LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "low": lambda rng, n: rng.beta(0.1, 20, n),
    "atoms": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.integers(0, 11, n) / 10, rng.random(n)
    ),
    "rates": lambda rng, n: np.exp(rng.normal(-13.8, 1, n)),
    "float32": lambda rng, n: rng.beta(2, 5, n).astype(np.float32),
    "float16": lambda rng, n: rng.beta(2, 5, n).astype(np.float16),
    "saturated": lambda rng, n: np.select(
        [rng.random(n) < 0.1, rng.random(n) < 0.1],
        [0.0, 1.0],
        1 / (1 + np.exp(-rng.normal(0, 20, n))),
    ),
}


def sample(law, n, seed=0):
    """Scores and labels that are a little off; both labels are there."""
    rng = np.random.default_rng(seed)
    p = LAWS[law](rng, n)
    y = (rng.random(n) < p.astype(float) ** 1.2).astype(int)
    y[p.argmax()], y[p.argmin()] = 1, 0
    return p, y


def kept_bits(p):
    """Scores of 36 bits: what the cells of an exact summary say, multiples of 1/60 themselves."""
    p = np.asarray(p, dtype=float)
    flat = p.ravel()
    table, _ = by_sorting(flat, np.zeros(len(flat)), 10**9)
    high = flat > 0.5
    ids = compute_ordered_cell_ids(
        encode_float_keys(np.where(high, 1 - flat, flat)), high
    ).view(np.uint64)
    place = np.searchsorted(table[:, IDENTITY_COLUMN].view(np.uint64), ids)
    return compute_mean_label_proba_by_cell(table)[place, 1].reshape(p.shape)
