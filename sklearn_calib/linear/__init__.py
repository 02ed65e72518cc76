"""Leave-one-out scores, angles to the truth and intervals of linear classifiers.

It may import `metrics`, `recalibrators` and the layers below them.
Start reading with `approximate_leave_one_out` in `_fit.py`.
"""

from ._angle import (
    AngleEstimate as AngleEstimate,
    check_angle_assumptions_and_get_fits,
    estimate_angle,
    estimate_angle_from_fit,
    make_angular_recalibrator,
    make_unsupported_weights_error,
)
from ._fit import (
    LinearFit,
    approximate_leave_one_out,
    compute_leave_one_out_scores,
    read_linear,
    refine_fits_and_update_own_model,
)
from ._intervals import logistic_intervals

__all__ = [
    "approximate_leave_one_out",
    "estimate_angle",
    "logistic_intervals",
]


def __dir__() -> list[str]:
    return __all__
