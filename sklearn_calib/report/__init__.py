"""Reports on models: a verdict, measures with intervals, advice and pictures.

It may import `displays` and the layers below it.
Start reading with `calibration_report` in `_calibration_report.py`.
"""

from ._advice import Advice as Advice, AdviceRow as AdviceRow
from ._calibration_report import GROUP_CODE_INPUTS, calibration_report
from ._columns import ColumnOrder as ColumnOrder, find_column_order
from ._evidence import Bin as Bin, Evidence as Evidence, Line as Line, Run as Run
from ._label_report import (
    LabelAverage as LabelAverage,
    LabelReport as LabelReport,
    multilabel_report,
)
from ._report import CalibrationReport as CalibrationReport
from ._table import ReportRow as ReportRow
from ._verdict import Sentence as Sentence, Verdict as Verdict
from ._written_report import SectionPage

__all__ = [
    "calibration_report",
    "find_column_order",
    "multilabel_report",
]


def __dir__() -> list[str]:
    return __all__
