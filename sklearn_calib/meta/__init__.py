"""Estimators on features: they wrap a classifier and its recalibrator."""

from ._calibrated_model import CalibratedModel as CalibratedModel
from ._pairs import CalibratedPair as CalibratedPair
from ._refine_then_calibrate import RefineThenCalibrateCV as RefineThenCalibrateCV

__all__ = ["CalibratedModel", "CalibratedPair", "RefineThenCalibrateCV"]
