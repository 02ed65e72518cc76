"""Estimators on features: they wrap a classifier and its recalibrator."""

from ._angle import Angle as Angle
from ._angle import estimate_angle as estimate_angle
from ._angular import AngularCalibratedClassifier as AngularCalibratedClassifier
from ._calibrated_model import CalibratedModel as CalibratedModel
from ._leave_one_out import approximate_leave_one_out as approximate_leave_one_out
from ._pairs import CalibratedPair as CalibratedPair
from ._refine_then_calibrate import RefineThenCalibrateCV as RefineThenCalibrateCV

__all__ = [
    "Angle",
    "AngularCalibratedClassifier",
    "CalibratedModel",
    "CalibratedPair",
    "RefineThenCalibrateCV",
    "approximate_leave_one_out",
    "estimate_angle",
]
