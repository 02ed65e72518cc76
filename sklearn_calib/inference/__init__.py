"""Tests of calibration, confidence intervals and sample sizes.

It may import `decisions`, `decomposition`, `linear`, `monitoring` and the layers below
them. Start reading with `confidence_interval` in `_intervals.py`.
"""

from ._calibrated_mean import calibrated_mean
from ._calibrated_mean_result import CalibratedMean as CalibratedMean
from ._classical import (
    PolynomialTest as PolynomialTest,
    SignificanceResult as SignificanceResult,
    cox_test,
    cumulative_test,
    hosmer_lemeshow_test,
    polynomial_test,
    spiegelhalter_test,
)
from ._clusters import (
    ClusterSample as ClusterSample,
    add_cluster_ids,
    compute_clustered_loss_interval,
    compute_clustered_sum_error,
    compute_mean_loss_interval,
    compute_rare_class_loss_interval,
    compute_small_sample_inflation,
    depends_only_on_residuals,
    warn_few_event_clusters,
)
from ._internal_result import (
    Instability as Instability,
    InternalValidation as InternalValidation,
    InternalValidationRow as InternalValidationRow,
)
from ._internal_validation import internal_validation
from ._intervals import ConfidenceInterval as ConfidenceInterval, confidence_interval
from ._lp_calibration import binning_sample_size, lp_calibration_bound
from ._monte_carlo import MonteCarloResult as MonteCarloResult, calibration_test
from ._paired import (
    PairedDifference as PairedDifference,
    PairedLosses,
    mark_correct_predictions,
    paired_difference,
)
from ._prior_shift_test import PriorShiftResult as PriorShiftResult, prior_shift_test
from ._resampling import (
    simulate_bootstrap_distribution as simulate_bootstrap_distribution,
    simulate_distribution as simulate_distribution,
    simulate_null_distribution as simulate_null_distribution,
)
from ._sample_size import (
    SampleSizeTarget as SampleSizeTarget,
    ValidationSampleSize as ValidationSampleSize,
    validation_sample_size,
)
from ._testers import CalibrationTester, TesterVerdict as TesterVerdict
from ._validation import (
    ValidationRow as ValidationRow,
    ValidationSummary as ValidationSummary,
    ValidationTable as ValidationTable,
    validation_summary,
)

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
