"""Measures and corrects the calibration within groups of rows.

It may import `inference`, `classifiers`, `testing` and the layers below them.
Start reading with `group_calibration` in `_group_calibration.py`.
"""

from ..recalibrators import (
    GroupRecalibration as GroupRecalibration,
    MulticalibratedScores as MulticalibratedScores,
)
from ._grade_calibration import (
    GradeCalibration as GradeCalibration,
    GradeRow as GradeRow,
    grade_calibration as grade_calibration,
)
from ._grades import Grades as Grades, to_grades
from ._group_calibration import (
    audit_pair_sums,
    audit_predictions,
    audit_summaries,
    group_calibration as group_calibration,
    partition_values,
)
from ._grouping import ALL_ROWS_NAME, Grouping as Grouping, find_groups as find_groups
from ._multicalibrated_model import MulticalibratedModel as MulticalibratedModel
from ._result import GroupCalibration as GroupCalibration, GroupRow as GroupRow

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
