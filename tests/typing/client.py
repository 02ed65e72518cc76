"""Documented calls, as a typed program writes them: pyright checks this file in strict mode."""

import numpy as np
from numpy.typing import NDArray

import sklearn_calib
from sklearn_calib import CalibratedModel, canonical_proba, compile_kernels
from sklearn_calib.metrics import brier_loss, expected_calibration_error
from sklearn_calib.recalibrators import TemperatureScaling, VennAbers


def losses(y: NDArray[np.int64], proba: NDArray[np.float64]) -> list[float]:
    recalibrated = TemperatureScaling().fit(proba, y).predict_proba(proba)
    return [
        brier_loss(y, recalibrated),
        expected_calibration_error(y, recalibrated, n_bins=10),
    ]


def interval(y: NDArray[np.int64], proba: NDArray[np.float64]) -> NDArray[np.float64]:
    return VennAbers().fit(proba, y).predict_interval(proba)


def calibrated(model: object) -> CalibratedModel:
    return CalibratedModel(model, "temperature", cv=5)


compile_kernels()
print(sklearn_calib.__version__, canonical_proba([0.2, 0.7]))
