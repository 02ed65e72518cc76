"""Summaries of predictions and labels that are small, can be merged, and are measured like rows."""

from ._summary import CalibrationSummary as CalibrationSummary
from ._summary import Totals as Totals

__all__ = ["CalibrationSummary", "Totals"]
