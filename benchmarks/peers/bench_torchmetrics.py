"""torchmetrics: its calibration error; and the Brier loss beside plain numpy."""

import numpy as np
import torch
from runner import Predictions
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

from sklearn_calib.datasets import make_overconfident
from sklearn_calib.metrics import brier_loss, expected_calibration_error


def squared_error(p, y):
    """What one writes without a library."""
    hit = (y == 1).astype(float)
    residual = p - hit
    return np.mean(residual**2)


def cases():
    torch.set_num_threads(1)
    two, y2 = make_overconfident(2, 1_000_000)
    p = np.ascontiguousarray(two[:, 1])
    proba, y = make_overconfident(10, 100_000)
    tensors = torch.from_numpy(p), torch.from_numpy(y2)
    many = torch.from_numpy(proba), torch.from_numpy(y)
    return [
        Predictions(
            "ECE, 15 equal-width bins, n = 1e6",
            lambda: expected_calibration_error(y2, p, strategy="uniform"),
            lambda: float(binary_calibration_error(*tensors, n_bins=15)),
            tolerance=1e-6,
            bar=">= 1x",
        ),
        Predictions(
            "ECE of the confidence, n = 1e5, k = 10",
            lambda: expected_calibration_error(y, proba, strategy="uniform"),
            lambda: float(
                multiclass_calibration_error(*many, num_classes=10, n_bins=15)
            ),
            tolerance=1e-5,  # theirs sums in single precision
        ),
        Predictions(
            "Brier loss beside three lines of numpy, n = 1e6",
            lambda: brier_loss(y2, p),
            lambda: squared_error(p, y2),
            tolerance=1e-12,
            bar=">= 0.67x",
        ),
    ]
