"""Calibration watched while labels come in: evidence that may be looked at at any time."""

from ._aftermath import Diagnosis, ShiftRegion
from ._monitor import CalibrationMonitor
from ._result import Alarm, MonitorHistory
from ._safe_test import SafeTestResult, safe_calibration_test

__all__ = [
    "Alarm",
    "CalibrationMonitor",
    "Diagnosis",
    "MonitorHistory",
    "SafeTestResult",
    "ShiftRegion",
    "safe_calibration_test",
]
