"""Numbers of five packages for the page "Coming from ...", as tests/data/coming_from_young.json.

``python benchmarks/peers/coming_from_young.py`` runs where calikit 0.1, pydantic-cal 0.0.4,
imbcal 0.4, streamcal 0.2 and rank-preserving-calibration 0.6 are installed. The rows
follow from whole numbers. tests/test_coming_from.py compares.
"""

import json
from importlib.metadata import version
from pathlib import Path

import calikit
import imbcal
import numpy as np
import pydantic_cal
import rank_preserving_calibration as ranks
import streamcal
from scipy.special import expit, logit, softmax

FILE = Path(__file__).parents[2] / "tests" / "data" / "coming_from_young.json"
PACKAGES = (
    "calikit",
    "pydantic-cal",
    "imbcal",
    "streamcal",
    "rank-preserving-calibration",
)


def two_classes():
    """Return labels and probabilities of 200 rows."""
    i = np.arange(1, 201)
    p = expit(3 * np.sin(i))
    chance = expit(0.6 * logit(p) - 0.3)
    return ((i * 7919) % 1000 < 1000 * chance).astype(int), p


def three_classes():
    """Return labels and probabilities of 200 rows."""
    i = np.arange(1, 201)
    return i * 7919 % 3, softmax(2 * np.sin(np.outer(i, [1, 2, 3])), axis=1)


def run_calikit(y, p):
    labels, proba = y.tolist(), p.tolist()
    mass, width = (
        calikit.bin_predictions(proba, labels, 10, scheme=scheme)
        for scheme in ("mass", "width")
    )
    return {
        "ece mass": calikit.ece(mass),
        "ece width": calikit.ece(width),
        "mce width": calikit.mce(width),
        "brier": calikit.brier(proba, labels),
        "log_loss": calikit.log_loss(proba, labels),
        "spiegelhalter": [*calikit.spiegelhalter(proba, labels)],
        "temperature": calikit.fit_temperature(proba, labels).apply(proba),
        "platt": calikit.fit_platt(proba, labels).apply(proba),
        "isotonic": calikit.fit_isotonic(proba, labels).apply(proba),
    }


def run_pydantic_cal(y, p):
    """Return its numbers; its isotonic map raises an IndexError for these rows."""
    return {
        "ece": pydantic_cal.ece(p, y, n_bins=10),
        "mce": pydantic_cal.mce(p, y, n_bins=10),
        "ace": pydantic_cal.ace(p, y, n_bins=10),
        "brier": pydantic_cal.brier(p, y),
        "smece": pydantic_cal.smece(p, y),
        "temperature": pydantic_cal.TemperatureScaler().fit(p, y).transform(p).tolist(),
        "platt": pydantic_cal.PlattScaler().fit(p, y).transform(p).tolist(),
    }


def run_imbcal(y, p):
    slope, intercept = imbcal.calibration_slope_intercept(y, p)
    return {
        "slope": slope,
        "intercept": intercept,
        "ece": imbcal.expected_calibration_error(y, p),
        "platt": imbcal.PlattCalibrator().fit(p, y).predict(p).tolist(),
        "isotonic": imbcal.IsotonicCalibrator().fit(p, y).predict(p).tolist(),
    }


def run_streamcal(y, p):
    found = {
        method: streamcal.BatchCalibrator(method).update(p, y).calibrate(p).tolist()
        for method in ("isotonic", "sigmoid", "temperature")
    }
    stream = streamcal.StreamingIsotonicCalibrator()
    before = []
    for first in range(0, 200, 20):
        part = slice(first, first + 20)
        before += stream.calibrate(p[part]).tolist()
        stream.update(p[part], y[part])
    error = streamcal.binned_calibration_error(y, p, n_bins=20)
    return found | {
        "error": error,
        "brier": streamcal.brier_score(y, p),
        "stream log loss": float(
            -np.log(np.where(y == 1, before, 1 - np.array(before))).mean()
        ),
    }


def run_ranks(y, p):
    target = np.array([0.5, 0.3, 0.2])
    found = ranks.calibrate_dykstra(p, 200 * target, max_iters=300, tol=1e-6)
    return {
        "target": target.tolist(),
        "projected": found.Q.tolist(),
        "nll": float(ranks.nll(y, p)),
        "brier": float(ranks.brier(y, p)),
        "top_label_ece": float(ranks.top_label_ece(y, p, n_bins=10)["ece"]),
    }


def main() -> None:
    two, three = two_classes(), three_classes()
    found = {
        "calikit": run_calikit(*two),
        "pydantic-cal": run_pydantic_cal(*two),
        "imbcal": run_imbcal(*two),
        "streamcal": run_streamcal(*two),
        "rank-preserving-calibration": run_ranks(*three),
        "versions": {name: version(name) for name in PACKAGES},
    }
    FILE.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
