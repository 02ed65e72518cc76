"""Target rows that differ from the rows of training and calibration: tests and weights.

The correction for other class frequencies is `PriorShift`, in `sklearn_calib.recalibrators`.
"""

from ._covariate_weights import CovariateWeights, covariate_weights
from ._prior_shift_test import PriorShiftResult, prior_shift_test

__all__ = ["CovariateWeights", "PriorShiftResult", "covariate_weights", "prior_shift_test"]
