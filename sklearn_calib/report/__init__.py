"""Reports on models: a verdict, measures with intervals, advice and pictures.

It may import `displays` and the layers below it.
Start reading with `calibration_report` in `_calibration_report.py`.
"""

from ._advice import Advice as Advice
from ._advice import AdviceRow as AdviceRow
from ._calibration_report import GROUP_CODE_INPUTS as GROUP_CODE_INPUTS
from ._calibration_report import calibration_report
from ._columns import ColumnOrder as ColumnOrder
from ._columns import find_column_order
from ._evidence import Bin as Bin
from ._evidence import Evidence as Evidence
from ._evidence import Line as Line
from ._evidence import Run as Run
from ._label_report import LabelAverage as LabelAverage
from ._label_report import LabelReport as LabelReport
from ._label_report import multilabel_report
from ._report import CalibrationReport as CalibrationReport
from ._table import ReportRow as ReportRow
from ._verdict import Sentence as Sentence
from ._verdict import Verdict as Verdict
from ._written import SectionPage as SectionPage

__all__ = [
    "calibration_report",
    "find_column_order",
    "multilabel_report",
]


def __dir__() -> list[str]:
    return __all__
