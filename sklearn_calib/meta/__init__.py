"""Estimators on features: they wrap a classifier and its recalibrator."""

from ._calibrated_model import CalibratedModel as CalibratedModel
from ._pairs import CalibratedPair as CalibratedPair

__all__ = ["CalibratedModel", "CalibratedPair"]
