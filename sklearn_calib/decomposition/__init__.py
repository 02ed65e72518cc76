"""Splits proper losses into calibration and refinement by recalibrating the scores.

It may import `metrics`, `recalibrators` and the layers below them.
Start reading with `decompose_loss` in `_decompose.py`.
"""

from ..metrics import register_measures as _register
from ._adapters import as_eval_metric
from ._calibration_index import CalibrationIndices as CalibrationIndices
from ._calibration_index import calibration_indices
from ._calibration_index import compute_problem_indices as compute_problem_indices
from ._calibration_index import e50_calibration_index as e50_calibration_index
from ._calibration_index import e90_calibration_index as e90_calibration_index
from ._calibration_index import emax_calibration_index as emax_calibration_index
from ._calibration_index import (
    integrated_calibration_index as integrated_calibration_index,
)
from ._calibration_index import smooth_frequencies as smooth_frequencies
from ._curve import RefinementCurve as RefinementCurve
from ._curve import refinement_curve
from ._decompose import decompose_loss, proper_calibration_error, refinement_error
from ._decompose import decompose_predictions as decompose_predictions
from ._grouping import decompose_by_features as decompose_by_features
from ._grouping import enough_for_features as enough_for_features
from ._measures import isotonic_refinement_brier as isotonic_refinement_brier
from ._measures import isotonic_refinement_log_loss as isotonic_refinement_log_loss
from ._measures import temperature_refinement_brier as temperature_refinement_brier
from ._measures import (
    temperature_refinement_log_loss as temperature_refinement_log_loss,
)
from ._parts import LossDecomposition as LossDecomposition
from ._variational import VariationalInterval as VariationalInterval
from ._variational import variational_calibration_error as variational_calibration_error
from ._variational import variational_calibration_interval

_register(globals().values())

__all__ = [
    "as_eval_metric",
    "calibration_indices",
    "decompose_loss",
    "integrated_calibration_index",
    "proper_calibration_error",
    "refinement_curve",
    "refinement_error",
    "variational_calibration_error",
    "variational_calibration_interval",
]


def __dir__() -> list[str]:
    return __all__
