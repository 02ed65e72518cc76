"""probmetrics: temperature, structured scaling, the variational error with the same folds."""

import logging
from functools import partial

import numpy as np
import torch
from probmetrics.calibrators import get_calibrator
from probmetrics.metrics import MetricsWithCalibration, ProperLpLoss
from runner import Predictions
from scipy.special import logsumexp, softmax

from sklearn_calib._kernels._temperature import fit_temperature
from sklearn_calib.decomposition import variational_calibration_error
from sklearn_calib.recalibrators import (
    StructuredMatrixScaling,
    StructuredVectorScaling,
    get_recalibrator,
)

logging.disable(logging.INFO)


def _problem(n, k):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(n, k))
    y = (z * rng.uniform(0.6, 1.4, k) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return 2.5 * z, y


def _temperature(n, k):
    z, y = _problem(n, k)
    proba, weight = softmax(z, axis=1), np.ones(n)
    log = np.log(proba)

    def loss(beta):
        return np.mean(logsumexp(beta * log, axis=1) - beta * log[np.arange(n), y])

    def theirs():
        calibrator = get_calibrator("temp-scaling", calibrate_with_mixture=False)
        calibrator.fit(proba, y)
        return calibrator

    def gap(mine, other):
        predicted = np.maximum(other.predict_proba(proba)[np.arange(n), y], 1e-300)
        return max(0.0, loss(mine.beta) + np.log(predicted).mean())

    return Predictions(
        f"temperature kernel, n = {n}, k = {k}",
        lambda: fit_temperature(log, y, weight),
        theirs,
        gap,
        tolerance=1e-8,
        bar=">= 50x",
        note="difference: by how much our loss is above theirs, whose probabilities are float32",
    )


def _structured(name, cls, k):
    z, y = _problem(10_000, k)
    proba = softmax(z, axis=1)

    def theirs():
        calibrator = get_calibrator(name)
        calibrator.fit(proba, y)
        return calibrator

    def gap(mine, other):
        """Both parameter vectors in one objective."""
        A, b = (
            (other.v_, other.b_) if name == "svs" else (other.W_[:, :k], other.W_[:, k])
        )
        A, b = np.asarray(A, float), np.asarray(b, float)
        z = mine._compute_scaled_log_proba(proba)
        moved = (z * A if A.ndim == 1 else z @ A.T) + b
        value = np.mean(logsumexp(moved, axis=1) - moved[np.arange(len(y)), y])
        ridge_a, ridge_b = mine._compute_coef_and_intercept_ridges(float(len(y)), k)
        eye = 1.0 if A.ndim == 1 else np.eye(k)
        value += (ridge_a * (A - eye) ** 2).sum() + (ridge_b * b**2).sum()
        return max(0.0, mine.objective_ - value)

    return Predictions(
        f"{name}, n = 1e4, k = {k}",
        lambda: cls().fit(proba, y),
        theirs,
        gap,
        tolerance=1e-8,
        bar="not slower, objective gap <= 1e-8",
        note="difference: by how much our objective is above theirs",
    )


class Splits:
    """Their splitter, of pairs that are given."""

    def __init__(self, pairs):
        self.pairs = pairs

    def get_name(self):
        return "given"

    def get_splits(self, y_true, random_state=None):
        return [tuple(torch.as_tensor(part) for part in pair) for pair in self.pairs]


def _overconfident(n, k):
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(n, k))
    proba = softmax(z, axis=1)
    below = rng.random(n)[:, None] > softmax(z / 1.5, axis=1).cumsum(axis=1)
    fold = rng.permutation(n) % 5
    pairs = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(5)]
    return proba, below.sum(axis=1).clip(max=k - 1), pairs


def _variational(n, k, norm):
    proba, y, pairs = _overconfident(n, k)
    ours = partial(
        variational_calibration_error,
        y,
        proba,
        multiclass="canonical",
        norm=norm,
        recalibrator="temperature",
        cv=pairs,
    )

    def theirs():
        metric = MetricsWithCalibration(
            ProperLpLoss(p=norm, binary_as_multiclass=True),
            get_recalibrator("temperature"),
            Splits(pairs),
            cal_name="ours",
        )
        found = metric.compute_all_from_labels_probs(
            torch.as_tensor(y), torch.as_tensor(proba)
        )
        return float(
            next(value for name, value in found.items() if name.startswith("calib"))
        )

    return Predictions(
        f"L{norm:g} error of vectors, n = {n:.0e}, k = {k}",
        ours,
        theirs,
        tolerance=1e-6,
        note="the same folds and the same recalibrator, ours, in both",
    )


def cases():
    for n, k in ((10_000, 10), (100_000, 10), (1_000_000, 10), (10_000, 1000)):
        yield _temperature(n, k)
    for k in (10, 100):
        yield _structured("svs", StructuredVectorScaling, k)
        yield _structured("sms", StructuredMatrixScaling, k)
    for n, k, norm in (
        (10_000, 2, 1.0),
        (10_000, 10, 1.0),
        (10_000, 10, 2.0),
        (100_000, 10, 1.0),
    ):
        yield _variational(n, k, norm)
