"""Reports: a verdict, measures with intervals, advice and pictures of one or several models."""

from ._advice import Advice, AdviceRow
from ._calibration_report import calibration_report
from ._columns import ColumnOrder, find_column_order
from ._evidence import Bin, Evidence, Line, Run
from ._label_report import LabelReport
from ._labels import LabelAverage
from ._report import CalibrationReport
from ._table import ReportRow
from ._verdict import Sentence, Verdict

__all__ = [
    "Advice",
    "AdviceRow",
    "Bin",
    "CalibrationReport",
    "ColumnOrder",
    "Evidence",
    "LabelAverage",
    "LabelReport",
    "Line",
    "ReportRow",
    "Run",
    "Sentence",
    "Verdict",
    "calibration_report",
    "find_column_order",
]
