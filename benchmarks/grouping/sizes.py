"""How often a gain of the size that `smallest_seen` names is found; it is a lower limit."""

import numpy as np
from scipy.special import expit

from sklearn_calib.decomposition import decompose_loss


def found_of(n, draws, features=5):
    """One row: the gain named for n calibrated rows, and how often it is found where it is."""
    found, named, gains = [], [], []
    for seed in range(draws):
        rng = np.random.default_rng([n, seed])
        z, x = rng.normal(size=n), rng.normal(size=(n, features))
        y = (rng.random(n) < expit(z)).astype(int)
        given = {"features": x, "recalibrator": "identity"}
        named.append(decompose_loss(y, expit(z), **given).smallest_seen)
        move = _move_of(expit(z), named[-1])
        truth = expit(z + move * np.sign(x[:, 0]))
        y = (rng.random(n) < truth).astype(int)
        p = (expit(z + move) + expit(z - move)) / 2
        parts = decompose_loss(y, p, **given)
        found.append(parts.action in ("retrain", "both"))
        gains.append(parts.gain_of_features)
    return {
        "n": n,
        "draws": draws,
        "smallest_seen": f"{np.mean(named):.5f}",
        "mean_gain_measured": f"{np.mean(gains):.5f}",
        "found": f"{np.mean(found):.3f}",
    }


def _move_of(p, gain):
    """The move of the log-odds, up or down, that is worth so much."""
    low, high = 0.0, 12.0
    z = np.log(p / (1 - p))
    while high - low > 1e-4:
        move = (low + high) / 2
        up, down = expit(z + move), expit(z - move)
        worth = (_entropy((up + down) / 2) - (_entropy(up) + _entropy(down)) / 2).mean()
        low, high = (move, high) if worth < gain else (low, move)
    return high


def _entropy(p):
    return -p * np.log(p) - (1 - p) * np.log1p(-p)
