"""Reports: the measures of one or several models, with intervals and pictures."""

from ._report import CalibrationReport as CalibrationReport
from ._report import calibration_report as calibration_report
from ._table import ReportRow as ReportRow

__all__ = ["CalibrationReport", "ReportRow", "calibration_report"]
