"""Tests of calibration, confidence intervals and sample sizes.

It may import `decisions`, `decomposition`, `linear`, `monitoring` and the layers below
them. Start reading with `confidence_interval` in `_intervals.py`.
"""

from ._calibrated_mean import calibrated_mean
from ._calibrated_mean_result import CalibratedMean as CalibratedMean
from ._classical import PolynomialTest as PolynomialTest
from ._classical import SignificanceResult as SignificanceResult
from ._classical import (
    cox_test,
    cumulative_test,
    hosmer_lemeshow_test,
    polynomial_test,
    spiegelhalter_test,
)
from ._clusters import ClusterSample as ClusterSample
from ._clusters import compute_clustered_sum_error as compute_clustered_sum_error
from ._clusters import few_event_interval as few_event_interval
from ._clusters import loss_interval as loss_interval
from ._clusters import mean_loss_interval as mean_loss_interval
from ._clusters import reads_residuals as reads_residuals
from ._clusters import small_sample_inflation as small_sample_inflation
from ._clusters import warn_few_events as warn_few_events
from ._clusters import with_cluster_ids as with_cluster_ids
from ._internal_result import Instability as Instability
from ._internal_result import InternalValidation as InternalValidation
from ._internal_result import InternalValidationRow as InternalValidationRow
from ._internal_validation import internal_validation
from ._intervals import ConfidenceInterval as ConfidenceInterval
from ._intervals import confidence_interval
from ._lp_calibration import binning_sample_size, lp_calibration_bound
from ._monte_carlo import MonteCarloResult as MonteCarloResult
from ._monte_carlo import calibration_test
from ._paired import PairedDifference as PairedDifference
from ._paired import PairedLosses, paired_difference
from ._paired import count_hits as count_hits
from ._prior_shift_test import PriorShiftResult as PriorShiftResult
from ._prior_shift_test import prior_shift_test
from ._resampling import (
    simulate_bootstrap_distribution as simulate_bootstrap_distribution,
)
from ._resampling import simulate_distribution as simulate_distribution
from ._resampling import simulate_null_distribution as simulate_null_distribution
from ._sample_size import SampleSizeTarget as SampleSizeTarget
from ._sample_size import ValidationSampleSize as ValidationSampleSize
from ._sample_size import validation_sample_size
from ._testers import CalibrationTester
from ._testers import TesterVerdict as TesterVerdict
from ._validation import ValidationRow as ValidationRow
from ._validation import ValidationSummary as ValidationSummary
from ._validation import ValidationTable as ValidationTable
from ._validation import validation_summary

__all__ = [
    "CalibrationTester",
    "PairedLosses",
    "binning_sample_size",
    "calibrated_mean",
    "calibration_test",
    "confidence_interval",
    "cox_test",
    "cumulative_test",
    "hosmer_lemeshow_test",
    "internal_validation",
    "lp_calibration_bound",
    "paired_difference",
    "polynomial_test",
    "prior_shift_test",
    "spiegelhalter_test",
    "validation_sample_size",
    "validation_summary",
]


def __dir__() -> list[str]:
    return __all__
