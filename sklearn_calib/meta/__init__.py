"""Estimators on features: they wrap a classifier and its recalibrator."""

from ._angular import AngularCalibratedClassifier
from ._brought import check_gives_proba as check_gives_proba
from ._calibrated_model import CalibratedModel
from ._pairs import CalibratedClassifier as CalibratedClassifier
from ._pairs import CalibratedPair as CalibratedPair
from ._pairs import GivesScores as GivesScores
from ._refine_then_calibrate import RefineThenCalibrateCV

__all__ = [
    "AngularCalibratedClassifier",
    "CalibratedModel",
    "RefineThenCalibrateCV",
]


def __dir__() -> list[str]:
    return __all__
