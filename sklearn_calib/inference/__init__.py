"""Calibration tests, testers and confidence intervals."""

from ._calibrated_mean import calibrated_mean
from ._calibrated_mean_result import CalibratedMean
from ._classical import (
    SignificanceResult,
    cox_test,
    cumulative_test,
    hosmer_lemeshow_test,
    spiegelhalter_test,
)
from ._clusters import ClusterSample
from ._clusters import in_clusters as in_clusters
from ._clusters import loss_interval as loss_interval
from ._clusters import reads_residuals as reads_residuals
from ._clusters import stretch as stretch
from ._clusters import sum_error as sum_error
from ._clusters import warn_of_few_events as warn_of_few_events
from ._internal_result import Instability, InternalValidation, InternalValidationRow
from ._internal_validation import internal_validation
from ._intervals import ConfidenceInterval, confidence_interval
from ._lp_calibration import binning_sample_size, lp_calibration_bound
from ._monte_carlo import MonteCarloResult, calibration_test
from ._paired import PairedDifference, PairedLosses, paired_difference
from ._paired import hits as hits
from ._polynomial import PolynomialTest, polynomial_test
from ._resampling import bootstrap_distribution, distribution_of_draws, null_distribution
from ._sample_size import SampleSizeTarget, ValidationSampleSize, validation_sample_size
from ._testers import CalibrationTester, TesterVerdict, tester_sample_size
from ._validation import validation_summary
from ._validation_table import ValidationRow, ValidationSummary, ValidationTable

__all__ = [
    "CalibratedMean",
    "CalibrationTester",
    "ClusterSample",
    "ConfidenceInterval",
    "Instability",
    "InternalValidation",
    "InternalValidationRow",
    "MonteCarloResult",
    "PairedDifference",
    "PairedLosses",
    "PolynomialTest",
    "SampleSizeTarget",
    "SignificanceResult",
    "TesterVerdict",
    "ValidationRow",
    "ValidationSampleSize",
    "ValidationSummary",
    "ValidationTable",
    "binning_sample_size",
    "bootstrap_distribution",
    "calibrated_mean",
    "calibration_test",
    "confidence_interval",
    "cox_test",
    "cumulative_test",
    "distribution_of_draws",
    "hosmer_lemeshow_test",
    "internal_validation",
    "lp_calibration_bound",
    "null_distribution",
    "paired_difference",
    "polynomial_test",
    "spiegelhalter_test",
    "tester_sample_size",
    "validation_sample_size",
    "validation_summary",
]
