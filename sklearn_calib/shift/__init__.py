"""Target rows that differ from the rows of training and calibration: tests and weights.

The correction for other class frequencies is `PriorShift`, in `sklearn_calib.recalibrators`.
"""

from ._covariate_weights import CovariateWeights as CovariateWeights
from ._covariate_weights import covariate_weights
from ._prior_shift_test import PriorShiftResult as PriorShiftResult
from ._prior_shift_test import prior_shift_test

__all__ = ["covariate_weights", "prior_shift_test"]


def __dir__() -> list[str]:
    return __all__
