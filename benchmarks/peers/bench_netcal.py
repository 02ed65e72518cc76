"""netcal: its temperature scaling, histogram binning, isotonic regression and ECE."""

import numpy as np
from netcal.binning import HistogramBinning as TheirBinning
from netcal.metrics import ECE
from netcal.scaling import TemperatureScaling as TheirTemperature
from runner import Predictions

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import expected_calibration_error, log_loss
from sklearn_calib.recalibrators import HistogramBinning, TemperatureScaling


def cases():
    proba, y = make_overconfident(10, 100_000)
    two, y2 = make_overconfident(2, 1_000_000)
    p = two[:, 1]

    def gap(mine, other):
        return max(0.0, log_loss(y, mine) - log_loss(y, np.clip(other, 0, 1)))

    return [
        Predictions(
            "ECE, 15 equal-width bins, n = 1e6",
            lambda: expected_calibration_error(y2, p, strategy="uniform", n_bins=15),
            lambda: ECE(15).measure(p, y2),
            tolerance=1e-9,
        ),
        Predictions(
            "ECE of the confidence, n = 1e5, k = 10",
            lambda: expected_calibration_error(y, proba, strategy="uniform", n_bins=15),
            lambda: ECE(15).measure(proba, y),
            tolerance=1e-9,
        ),
        Predictions(
            "histogram binning, 10 equal-width bins, n = 1e6",
            lambda: (
                HistogramBinning(10, strategy="uniform", prior_weight=0)
                .fit(p, y2)
                .predict_proba(p)[:, 1]
            ),
            lambda: TheirBinning(10).fit(p, y2).transform(p),
            tolerance=1e-9,
        ),
        Predictions(
            "temperature scaling, n = 1e5, k = 10",
            lambda: TemperatureScaling().fit(proba, y).predict_proba(proba),
            lambda: TheirTemperature().fit(proba, y).transform(proba),
            gap,
            tolerance=1e-6,
            note="difference: by how much our log loss is above theirs",
        ),
    ]
