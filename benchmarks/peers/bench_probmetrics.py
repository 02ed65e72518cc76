"""probmetrics: temperature scaling, structured vector and matrix scaling."""

import logging

import numpy as np
from probmetrics.calibrators import get_calibrator
from runner import Case
from scipy.special import logsumexp, softmax

from sklearn_calib._kernels._temperature import fit_temperature
from sklearn_calib.recalibrators import StructuredMatrixScaling, StructuredVectorScaling

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

    return Case(
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
        A, b = (other.v_, other.b_) if name == "svs" else (other.W_[:, :k], other.W_[:, k])
        A, b = np.asarray(A, float), np.asarray(b, float)
        z = mine._inputs(proba)
        moved = (z * A if A.ndim == 1 else z @ A.T) + b
        value = np.mean(logsumexp(moved, axis=1) - moved[np.arange(len(y)), y])
        ridge_a, ridge_b = mine._ridges(float(len(y)), k)
        eye = 1.0 if A.ndim == 1 else np.eye(k)
        value += (ridge_a * (A - eye) ** 2).sum() + (ridge_b * b**2).sum()
        return max(0.0, mine.objective_ - value)

    return Case(
        f"{name}, n = 1e4, k = {k}",
        lambda: cls().fit(proba, y),
        theirs,
        gap,
        tolerance=1e-8,
        bar="not slower, objective gap <= 1e-8",
        note="difference: by how much our objective is above theirs",
    )


def cases():
    for n, k in ((10_000, 10), (100_000, 10), (1_000_000, 10), (10_000, 1000)):
        yield _temperature(n, k)
    for k in (10, 100):
        yield _structured("svs", StructuredVectorScaling, k)
        yield _structured("sms", StructuredMatrixScaling, k)
