"""Displays draw results; they compute nothing. They need matplotlib (the ``plot`` extra)."""

from ._base import Display as Display
from ._calibrating_function import CalibratingFunctionDisplay as CalibratingFunctionDisplay
from ._cumulative import CumulativeDifferenceDisplay as CumulativeDifferenceDisplay
from ._decision_curve import DecisionCurveDisplay as DecisionCurveDisplay
from ._decomposition import DecompositionDisplay as DecompositionDisplay
from ._grades import GradeDisplay as GradeDisplay
from ._group_reliability import GroupReliabilityDisplay as GroupReliabilityDisplay
from ._heatmap import HeatmapDisplay as HeatmapDisplay
from ._instability import InstabilityDisplay as InstabilityDisplay
from ._monitor import MonitorDisplay as MonitorDisplay
from ._murphy import MurphyDisplay as MurphyDisplay
from ._refinement import RefinementCurveDisplay as RefinementCurveDisplay
from ._regret import RegretDisplay as RegretDisplay
from ._reliability import ReliabilityDisplay as ReliabilityDisplay
from ._risk_coverage import RiskCoverageDisplay as RiskCoverageDisplay
from ._stack import StackDisplay as StackDisplay
from ._witness import NullDistributionDisplay as NullDistributionDisplay
from ._witness import WitnessDisplay as WitnessDisplay

__all__ = [
    "CalibratingFunctionDisplay",
    "CumulativeDifferenceDisplay",
    "DecisionCurveDisplay",
    "DecompositionDisplay",
    "Display",
    "GradeDisplay",
    "GroupReliabilityDisplay",
    "HeatmapDisplay",
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
