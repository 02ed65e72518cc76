"""Calibration watched while labels come in: evidence that may be looked at at any time."""

from ._monitor import CalibrationMonitor as CalibrationMonitor
from ._result import Alarm as Alarm
from ._result import MonitorHistory as MonitorHistory
from ._safe_test import SafeTestResult as SafeTestResult
from ._safe_test import safe_calibration_test as safe_calibration_test

__all__ = [
    "Alarm",
    "CalibrationMonitor",
    "MonitorHistory",
    "SafeTestResult",
    "safe_calibration_test",
]
