"""Estimators on features, which wrap a classifier and its recalibrator.

It may import `decisions`, `decomposition`, `linear`, `monitoring` and the layers below
them. Start reading with `CalibratedModel` in `_calibrated_model.py`.
"""

from ._angular import AngularCalibratedClassifier
from ._base import (
    ESTIMATOR_CONSTRAINTS,
    BaseCalibratedClassifier,
    CalibratedPair as CalibratedPair,
)
from ._calibrated_model import CalibratedModel
from ._refine_then_calibrate import RefineThenCalibrateCV
from ._user_estimators import check_gives_proba

__all__ = [
    "AngularCalibratedClassifier",
    "CalibratedModel",
    "RefineThenCalibrateCV",
]


def __dir__() -> list[str]:
    return __all__
