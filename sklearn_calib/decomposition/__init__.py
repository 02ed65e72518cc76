"""Splits proper losses into calibration and refinement by recalibrating the scores.

It may import `metrics`, `recalibrators` and the layers below them.
Start reading with `decompose_loss` in `_decompose.py`.
"""

from ..metrics import register_measures as _register
from ._adapters import as_eval_metric
from ._calibration_index import (
    CalibrationIndices as CalibrationIndices,
    calibration_indices,
    compute_problem_indices,
    e50_calibration_index as e50_calibration_index,
    e90_calibration_index as e90_calibration_index,
    emax_calibration_index as emax_calibration_index,
    integrated_calibration_index as integrated_calibration_index,
    smooth_cell_frequencies,
)
from ._curve import RefinementCurve as RefinementCurve, refinement_curve
from ._decompose import (
    decompose_loss,
    decompose_predictions,
    proper_calibration_error,
    refinement_error,
)
from ._grouping import decompose_by_features, has_enough_rows_for_features
from ._measures import (
    isotonic_refinement_brier as isotonic_refinement_brier,
    isotonic_refinement_log_loss as isotonic_refinement_log_loss,
    temperature_refinement_brier as temperature_refinement_brier,
    temperature_refinement_log_loss as temperature_refinement_log_loss,
)
from ._parts import LossDecomposition as LossDecomposition
from ._variational import (
    VariationalInterval as VariationalInterval,
    variational_calibration_error as variational_calibration_error,
    variational_calibration_interval,
)

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
