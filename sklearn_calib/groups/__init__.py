"""Calibration of groups of rows: an audit of all of them at once."""

from ._group_calibration import group_calibration as group_calibration
from ._grouping import Grouping as Grouping
from ._grouping import find_groups as find_groups
from ._result import GroupCalibration as GroupCalibration
from ._result import GroupRow as GroupRow

__all__ = [
    "GroupCalibration",
    "GroupRow",
    "Grouping",
    "find_groups",
    "group_calibration",
]
