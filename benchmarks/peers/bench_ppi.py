"""ppi-python: the mean of few labels from predictions of all rows, with and without tuning."""

import importlib.metadata
from functools import partial

import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from runner import Predictions
from scipy.special import expit

from sklearn_calib.inference import calibrated_mean

VERSION = f"ppi-python {importlib.metadata.version('ppi-python')}"


def rows(n, total, seed):
    """Labels of n rows, and scores of these and of the others."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=total)
    y = (rng.random(total) < expit(z)).astype(float)
    score = expit((z + 0.8) / 1.2)
    return y[:n], score[:n], score[n:]


def ours(draws, power):
    """Estimates with the scores as they are; equal numbers of rows that have labels and not."""

    def run():
        found = [calibrated_mean(*d, recalibrator=None, power=power) for d in draws]
        return np.array([one.estimate for one in found])

    return run


def theirs(draws, power):
    """Their lambda weighs the rows without a label alone: n + m rows against m of them."""

    def run():
        values = []
        for y, score, rest in draws:
            weight = None if power is None else power * len(rest) / (len(y) + len(rest))
            values.append(
                float(np.squeeze(ppi_mean_pointestimate(y, score, rest, lam=weight)))
            )
        return np.array(values)

    return run


def intervals(draws):
    """Ends of their interval, 95 %, with the power that they find."""
    return np.array([np.squeeze(ppi_mean_ci(*d, alpha=0.05)) for d in draws])


def ends(draws):
    """Ends of our interval, 95 %, of the scores as they are."""
    found = [calibrated_mean(*d, recalibrator=None) for d in draws]
    return np.array([(one.low, one.high) for one in found])


def cases():
    draws = [rows(200, 5000, seed) for seed in range(200)]
    for power in (0.0, 0.3, 1.0):
        name = f"mean of 200 labels of 5000, power {power:g}, 200 draws ({VERSION})"
        yield Predictions(
            name, ours(draws, power), theirs(draws, power), tolerance=1e-10
        )
    name = f"the same, power tuned by each ({VERSION})"
    yield Predictions(name, ours(draws, "auto"), theirs(draws, None), tolerance=5e-3)
    line = np.array(
        [(one.low, one.high) for one in (calibrated_mean(*d) for d in draws)]
    )
    said = [
        f"{np.mean((x[:, 0] <= 0.5) & (x[:, 1] >= 0.5)):.3f}, width {np.ptp(x, axis=1).mean():.4f}"
        for x in (intervals(draws), ends(draws), line)
    ]
    note = (
        f"intervals hold the truth in {said[0]} (theirs), {said[1]} (ours, the scores as they "
        f"are), {said[2]} (ours, recalibrated)"
    )
    name = f"the same, intervals and power tuned by each ({VERSION})"
    given = partial(ends, draws), partial(intervals, draws)
    yield Predictions(name, *given, tolerance=0.05, note=note)
