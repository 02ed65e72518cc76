"""Wrong calls, one per line, that type checkers reject.

mypy and pyright report each comment without an error, and each error without a comment. Nothing
here is run.
"""
# mypy: warn-unused-ignores
# pyright: basic, reportUnnecessaryTypeIgnoreComment=true

from sklearn_calib import CalibratedModel, RefineThenCalibrateCV
from sklearn_calib.recalibrators import DefaultCalibration, PlattScaling, TemperatureScaling

model = object()

CalibratedModel()  # type: ignore[call-arg]
CalibratedModel(model, recalibratr="beta")  # type: ignore[call-arg]
CalibratedModel(model, ensemble="yes")  # type: ignore[arg-type]
RefineThenCalibrateCV(model, selection="min")  # type: ignore[arg-type]
TemperatureScaling(smoth=True)  # type: ignore[call-arg]
TemperatureScaling(False, True)  # type: ignore[call-arg]
PlattScaling(scale="logits")  # type: ignore[arg-type]
DefaultCalibration(smoth=True)  # type: ignore[call-arg]
