"""Watches calibration while labels come in, with evidence that is valid at any time.

It may import `metrics`, `recalibrators` and the layers below them.
Start reading with `CalibrationMonitor` in `_monitor.py`.
"""

from ._aftermath import Diagnosis as Diagnosis, ShiftRegion as ShiftRegion
from ._monitor import CalibrationMonitor, add_rows_to_last_batch_in_place
from ._result import Alarm as Alarm, MonitorHistory as MonitorHistory
from ._rows import TIME_ORDER_HINT
from ._safe_test import SafeTestResult as SafeTestResult, safe_calibration_test

__all__ = [
    "CalibrationMonitor",
    "safe_calibration_test",
]


def __dir__() -> list[str]:
    return __all__
