"""Measures and corrects the calibration within groups of rows.

It may import `inference`, `classifiers`, `testing` and the layers below them.
Start reading with `group_calibration` in `_group_calibration.py`.
"""

from ..recalibrators import GroupRecalibration as GroupRecalibration
from ..recalibrators import MulticalibratedScores as MulticalibratedScores
from ._grade_calibration import GradeCalibration as GradeCalibration
from ._grade_calibration import GradeRow as GradeRow
from ._grade_calibration import grade_calibration as grade_calibration
from ._grades import Grades as Grades
from ._grades import to_grades as to_grades
from ._group_calibration import audit_pairs as audit_pairs
from ._group_calibration import audit_predictions as audit_predictions
from ._group_calibration import audit_summaries as audit_summaries
from ._group_calibration import group_calibration as group_calibration
from ._group_calibration import partition_values as partition_values
from ._grouping import ALL_ROWS_NAME as ALL_ROWS_NAME
from ._grouping import Grouping as Grouping
from ._grouping import find_groups as find_groups
from ._multicalibrated_model import MulticalibratedModel as MulticalibratedModel
from ._result import GroupCalibration as GroupCalibration
from ._result import GroupRow as GroupRow

__all__ = [
    "Grades",
    "GroupRecalibration",
    "MulticalibratedModel",
    "MulticalibratedScores",
    "grade_calibration",
    "group_calibration",
]


def __dir__() -> list[str]:
    return __all__
