"""Wrong calls, one per line, that type checkers reject.

mypy and pyright report each comment without an error, and each error without a comment.
Nothing here is run.
"""
# mypy: warn-unused-ignores
# pyright: basic, reportUnnecessaryTypeIgnoreComment=true

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.displays import ReliabilityDisplay
from sklearn_calib.metrics import (
    brier_loss,
    expected_calibration_error,
    kernel_calibration_error,
    smooth_calibration_error,
)
from sklearn_calib.recalibrators import (
    DefaultCalibration,
    PlattScaling,
    TemperatureScaling,
)

model = object()
y, p = [0, 1], [0.2, 0.9]

CalibratedModel()  # type: ignore[call-arg]
CalibratedModel(model, recalibratr="beta")  # type: ignore[call-arg]
CalibratedModel(model, ensemble="yes")  # type: ignore[arg-type]
RefineThenCalibrateCV(model, selection="min")  # type: ignore[arg-type]
TemperatureScaling(smoth=True)  # type: ignore[call-arg]
TemperatureScaling(False, True)  # type: ignore[call-arg]
PlattScaling(scale="logits")  # type: ignore[arg-type]
DefaultCalibration(smoth=True)  # type: ignore[call-arg]
expected_calibration_error(y, p, strategy="quantil")  # type: ignore[arg-type]
expected_calibration_error(y, p, n_bin=10)  # type: ignore[call-arg]
expected_calibration_error(y)  # type: ignore[call-arg]
smooth_calibration_error(y, p, multiclass="canonical")  # type: ignore[arg-type]
kernel_calibration_error(y, p, multiclass="joint")  # type: ignore[arg-type]
brier_loss(y, p, sampl_weight=[1, 2])  # type: ignore[call-arg]
brier_loss(y, p, multilabel="mean")  # type: ignore[arg-type]
ReliabilityDisplay.from_predictions(y, p, nbins=3)  # type: ignore[call-arg]
ReliabilityDisplay.from_predictions(y, p, scale="log")  # type: ignore[arg-type]
ReliabilityDisplay.from_estimator(model, [[0]], [1], strategy="quantil")  # type: ignore[arg-type]
