"""Predictors whose true probabilities are known, each wrong in a way of its own."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
import runner  # noqa: F401 - the experiments take it from here

HERE = Path(__file__).parent
FAMILIES = ("temp", "bias", "leaf", "satur")


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def draw(family, n, k, seed):
    """Predictions, true probabilities and labels; the predictor does not depend on the seed."""
    fixed, rng = np.random.default_rng(12345), np.random.default_rng(seed)
    if family in ("temp", "bias"):  # a softmax, too sharp or shifted by class
        z = 1.5 * rng.standard_normal((n, k))
        truth = softmax(z)
        shift = fixed.standard_normal(k)
        predicted = softmax(2 * z) if family == "temp" else softmax(z + shift)
    elif family == "leaf":  # 30 leaves with predictions of their own
        leaves = fixed.dirichlet(np.full(k, 0.5), (2, 30))
        chosen = rng.integers(0, 30, n)
        predicted, truth = leaves[0][chosen], leaves[1][chosen]
    else:  # nearly one-hot, and each class is taken for another of its own
        label = rng.integers(0, k, n)
        rival = (np.arange(k) + 1 + fixed.integers(0, k - 1, k)) % k
        wrong = fixed.uniform(0.05, 0.35, k)
        predicted = np.full((n, k), 0.01 / k)
        predicted[np.arange(n), label] += 0.99
        truth = np.full((n, k), 0.02 / k)
        truth[np.arange(n), label] += 0.98 * (1 - wrong[label])
        truth[np.arange(n), rival[label]] += 0.98 * wrong[label]
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    return predicted, truth, y


def true_error(predicted, truth, p, n_levels):
    """The error of the population, with true probabilities in place of labels."""
    from sklearn_calib._kernels._level_sets import sort_rows_into_level_runs

    order, starts = sort_rows_into_level_runs(predicted, n_levels)
    total, largest = 0.0, 0.0
    for part in np.array_split(np.arange(len(starts)), max(1, len(order) // 20_000)):
        if not len(part):
            continue
        begin = starts[part[0]]
        end = starts[part[-1] + 1] if part[-1] + 1 < len(starts) else len(order)
        rows = order[begin:end]
        gaps = np.add.reduceat(
            predicted[rows] - truth[rows], starts[part] - begin, axis=0
        )
        gaps = np.abs(gaps) / len(order)
        largest = max(largest, gaps.max())
        if np.isfinite(p):
            total += (gaps**p).sum()
    return float(largest if np.isinf(p) else total ** (1 / p))
