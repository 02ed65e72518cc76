"""probcal: Platt and beta fits of few rows, bins of equal mass, the ICI."""

import numpy as np
from probcal import BetaCalibrator, PlattCalibrator
from probcal.metrics import ece, ici
from runner import Predictions, largest_difference

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.decomposition import integrated_calibration_index
from sklearn_calib.metrics import expected_calibration_error
from sklearn_calib.recalibrators import BetaCalibration, PlattScaling


def _fit(name, ours, theirs, n):
    proba, y = make_overconfident(2, n)
    p = np.ascontiguousarray(proba[:, 1])
    return Predictions(
        f"{name}, fit, n = {n}",
        lambda: ours().fit(p, y),
        lambda: theirs().fit(p, y),
        lambda mine, other: largest_difference(
            mine.predict_proba(p)[:, 1], np.asarray(other.predict_proba(p)).ravel()[:n]
        ),
        tolerance=1e-6,
        bar=">= 1x",
    )


def _measures(n):
    proba, y = make_overconfident(2, n)
    p = np.ascontiguousarray(proba[:, 1])
    yield Predictions(
        f"ECE, 15 bins of equal mass, n = {n}",
        lambda: expected_calibration_error(y, p),
        lambda: ece(y, p),
        tolerance=1e-3,
        bar=">= 1x",
        note="their bins are cut at interpolated quantiles",
    )
    yield Predictions(
        f"ICI, n = {n}",
        lambda: integrated_calibration_index(y, p),
        lambda: ici(y, p),
        tolerance=1e-2,
        bar=">= 1x",
        note="theirs: 512 points; ours: local parabolas",
    )


def cases():
    for n in (200, 1000):
        yield _fit("Platt", PlattScaling, PlattCalibrator, n)
        yield _fit("beta", BetaCalibration, BetaCalibrator, n)
    for n in (10_000, 1_000_000):
        yield from _measures(n)
