"""Draws results with matplotlib (the ``plot`` extra) and computes nothing.

It may import `export`, `groups`, `summary`, `theory` and the layers below them.
Start reading with `Display` in `_base.py`.
"""

from ._base import Display as Display
from ._calibrating_function import CalibratingFunctionDisplay
from ._cumulative import CumulativeDifferenceDisplay
from ._decision_curve import DecisionCurveDisplay
from ._decomposition import DecompositionDisplay
from ._grades import GradeDisplay
from ._group_reliability import GroupReliabilityDisplay
from ._instability import InstabilityDisplay
from ._monitor import MonitorDisplay
from ._murphy import MurphyDisplay
from ._refinement import RefinementCurveDisplay
from ._regret import RegretDisplay
from ._reliability import ReliabilityDisplay
from ._risk_coverage import RiskCoverageDisplay
from ._stack import StackDisplay
from ._witness import NullDistributionDisplay, WitnessDisplay

__all__ = [
    "CalibratingFunctionDisplay",
    "CumulativeDifferenceDisplay",
    "DecisionCurveDisplay",
    "DecompositionDisplay",
    "GradeDisplay",
    "GroupReliabilityDisplay",
    "InstabilityDisplay",
    "MonitorDisplay",
    "MurphyDisplay",
    "NullDistributionDisplay",
    "RefinementCurveDisplay",
    "RegretDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "StackDisplay",
    "WitnessDisplay",
]


def __dir__() -> list[str]:
    return __all__
