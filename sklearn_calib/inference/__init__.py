"""Calibration tests, testers and confidence intervals."""

from ._classical import TestResult as TestResult
from ._classical import cox_test as cox_test
from ._classical import cumulative_test as cumulative_test
from ._classical import hosmer_lemeshow_test as hosmer_lemeshow_test
from ._classical import spiegelhalter_test as spiegelhalter_test
from ._intervals import ConfidenceInterval as ConfidenceInterval
from ._intervals import confidence_interval as confidence_interval
from ._lp_calibration import lp_calibration_bound as lp_calibration_bound
from ._lp_calibration import required_samples as required_samples
from ._monte_carlo import CalibrationTestResult as CalibrationTestResult
from ._monte_carlo import calibration_test as calibration_test
from ._resampling import bootstrap_distribution as bootstrap_distribution
from ._resampling import null_distribution as null_distribution
from ._testers import CalibrationTester as CalibrationTester
from ._testers import TesterVerdict as TesterVerdict
from ._testers import required_sample_size as required_sample_size

__all__ = [
    "CalibrationTestResult",
    "CalibrationTester",
    "ConfidenceInterval",
    "TestResult",
    "TesterVerdict",
    "calibration_test",
    "confidence_interval",
    "cox_test",
    "cumulative_test",
    "hosmer_lemeshow_test",
    "lp_calibration_bound",
    "required_sample_size",
    "required_samples",
    "spiegelhalter_test",
]
