"""scikit-learn's calibration module."""

import numpy as np
from runner import Predictions, largest_difference
from scipy.special import expit, logsumexp
from sklearn import calibration
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from sklearn_calib import CalibratedModel, canonical_proba
from sklearn_calib._kernels._temperature import fit_temperature
from sklearn_calib.metrics import log_loss
from sklearn_calib.recalibrators import (
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
)


def _logits(n, k):
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(n, k))
    y = (z + rng.gumbel(size=(n, k))).argmax(axis=1)
    return 2.5 * z, y


def cases():
    for n, k in ((10_000, 10), (100_000, 10), (1_000_000, 10), (10_000, 1000)):
        yield _temperature(n, k)
        yield _temperature_kernel(n, k)
    yield from _platt(100_000)
    yield _isotonic(1_000_000)
    yield from _few_rows(1000)
    yield from _predictions(100_000)
    X, y = make_classification(20_000, random_state=0)
    base = FrozenEstimator(LogisticRegression().fit(X, y))
    yield Predictions(
        "wrapped fitted model, Platt, n = 2e4, fit and predict",
        lambda: CalibratedModel(base, PlattScaling()).fit(X, y).predict_proba(X),
        lambda: (
            CalibratedClassifierCV(base, method="sigmoid").fit(X, y).predict_proba(X)
        ),
        tolerance=1e-3,
        note="the peer's solver stops earlier",
    )


def _temperature(n, k):
    z, y = _logits(n, k)
    scores = canonical_proba(z, kind="logits")

    def ours():
        return TemperatureScaling().fit(scores, y).predict_proba(scores[:1000])

    def theirs():
        scaler = calibration._TemperatureScaling().fit(z, y)
        return canonical_proba(scaler.beta_ * z[:1000], kind="logits")

    def gap(mine, other):  # how far our loss is above theirs
        return max(
            0.0,
            log_loss(y[:1000], mine, labels=range(k))
            - log_loss(y[:1000], other, labels=range(k)),
        )

    return Predictions(
        f"temperature scaling, n = {n}, k = {k}", ours, theirs, gap, tolerance=1e-5
    )


def _temperature_kernel(n, k):
    """The two fits alone, on logits; how far our loss is above theirs."""
    z, y = _logits(n, k)
    weight = np.ones(n)

    def loss(beta):
        scaled = beta * z
        return np.mean(logsumexp(scaled, axis=1) - scaled[np.arange(n), y])

    def gap(mine, other):
        return max(0.0, loss(mine.beta) - loss(other.beta_))

    return Predictions(
        f"temperature kernel, n = {n}, k = {k}",
        lambda: fit_temperature(z, y, weight),
        lambda: calibration._TemperatureScaling().fit(z, y),
        gap,
        tolerance=1e-12,
        bar=">= 15x",
        note="difference: by how much our loss is above theirs",
    )


def _platt(n):
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    y = (z + rng.logistic(size=n) > 0).astype(int)
    scores = canonical_proba(z, kind="logits")
    yield Predictions(
        f"Platt scaling, n = {n}",
        lambda: PlattScaling().fit(scores, y).predict_proba(scores[:1000])[:, 1],
        lambda: calibration._SigmoidCalibration().fit(z, y).predict(z[:1000]),
        tolerance=1e-4,
    )


def _isotonic(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    return Predictions(
        f"isotonic, n = {n}, fit and predict 1e6",
        lambda: IsotonicCalibration().fit(p, y).predict_proba(p)[:, 1],
        lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(p),
        largest_difference,
        tolerance=1e-9,
        note="the peer orders by the probability, ours by the log-odds",
    )


def _few_rows(n):
    """Fits of few rows beside the classes inside `CalibratedClassifierCV`."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    y = (z + rng.logistic(size=n) > 0).astype(int)
    p = expit(z)
    yield Predictions(
        f"Platt scaling, fit, n = {n}",
        lambda: PlattScaling("proba").fit(p, y),
        lambda: calibration._SigmoidCalibration().fit(p, y),
        lambda mine, other: largest_difference(
            mine.predict_proba(p)[:, 1], other.predict(p)
        ),
        tolerance=1e-4,
        bar=">= 1x",
        note="the peer's class checks hardly anything",
    )


def _predictions(n):
    """Predictions of fitted maps beside these classes."""
    z, y = _logits(n, 10)
    scores = canonical_proba(z, kind="logits")
    temperature = TemperatureScaling().fit(scores, y)
    bare = calibration._TemperatureScaling().fit(z, y)
    proba = np.asarray(scores)
    yield Predictions(
        f"temperature, predict from probabilities, n = {n}, k = 10",
        lambda: temperature.predict_proba(proba),
        lambda: bare.predict(np.log(proba)),
        tolerance=1e-4,
        bar=">= 1x",
    )
    yield Predictions(
        f"temperature, predict from logits, n = {n}, k = 10",
        lambda: temperature.predict_proba(scores),
        lambda: bare.predict(z),
        tolerance=1e-4,
        bar=">= 1x",
    )
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    y = (z + rng.logistic(size=n) > 0).astype(int)
    p = expit(z)
    platt = PlattScaling("proba").fit(p, y)
    sigmoid = calibration._SigmoidCalibration().fit(p, y)
    yield Predictions(
        f"Platt scaling of probabilities, predict, n = {n}",
        lambda: platt.predict_proba(p)[:, 1],
        lambda: sigmoid.predict(p),
        tolerance=1e-4,
        bar=">= 1x",
    )
    isotonic = IsotonicCalibration().fit(p, y)
    regression = IsotonicRegression(out_of_bounds="clip").fit(p, y)
    yield Predictions(
        f"isotonic, predict, n = {n}",
        lambda: isotonic.predict_proba(p)[:, 1],
        lambda: regression.predict(p),
        tolerance=1e-6,
        bar=">= 1x",
    )
