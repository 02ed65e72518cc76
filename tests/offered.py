"""What the sub-packages offer: what users call, and classes that come back from it.

The contracts are about both. `__all__` lists the first; the others are in the table
below, so that none of them is forgotten.
"""

from importlib import import_module
from pkgutil import iter_modules

import sklearn_calib

#: Classes that come back from what users call, protocols and functions for authors of
#: methods, and measures that another one has as an option.
RETURNED = {
    "_validation": "SimplexArray canonical_labels canonical_weight log_proba",
    "datasets": "LinearTruth ScoredData",
    "decisions": "DecisionCurve ExpectedCost ExpectedMetrics NetBenefitDifference RegretCurve "
    "RiskCoverageCurve",
    "decomposition": "CalibrationIndices LossDecomposition RefinementCurve VariationalInterval "
    "e50_calibration_index e90_calibration_index emax_calibration_index isotonic_refinement_brier "
    "isotonic_refinement_log_loss temperature_refinement_brier temperature_refinement_log_loss",
    "displays": "Display",
    "export": "ExportedMap",
    "groups": "GradeCalibration GradeRow GroupCalibration GroupRow Grouping find_groups",
    "inference": "CalibratedMean ClusterSample ConfidenceInterval Instability InternalValidation "
    "InternalValidationRow MonteCarloResult PairedDifference PolynomialTest PriorShiftResult "
    "SampleSizeTarget SignificanceResult TesterVerdict ValidationRow ValidationSampleSize "
    "ValidationSummary ValidationTable simulate_bootstrap_distribution simulate_distribution "
    "simulate_null_distribution",
    "linear": "AngleEstimate",
    "classifiers": "CalibratedPair",
    "metrics": "BinaryProblem BrierLoss CalibrationWitness Cells CumulativeDifferences CurveRows "
    "DistanceInterval LogLoss LpCalibrationResult Measure MetricSpec Predictions "
    "ProbabilityScorer ProperLoss ReliabilityCurve ReliabilityCurves SphericalLoss "
    "all_losses binary_measure compute_curve measure validate_multilabel "
    "validate_predictions",
    "monitoring": "Alarm Diagnosis MonitorHistory SafeTestResult ShiftRegion",
    "recalibrators": "Capabilities CellGroup Recalibrator Threshold",
    "report": "Advice AdviceRow Bin CalibrationReport ColumnOrder Evidence LabelAverage "
    "LabelReport Line ReportRow Run Sentence Verdict",
    "staged": "Staging classifier_logits find_staging",
    "summary": "CellProblems CellSample Fold MulticlassTotals Totals is_summary_file",
    "theory": "GaussianLoss LogisticLimit",
}


#: Names for authors, which other sub-packages offer too.
REPEATED = ("extending",)


def list_subpackages():
    """Return the names of the sub-packages and modules that offer something to users."""
    found = [subpackage.name for subpackage in iter_modules(sklearn_calib.__path__)]
    public = [name for name in found if name[0] != "_" and name not in REPEATED]
    return ["_validation", *public]  # whose names are at the root


def names_of(subpackage):
    """What a sub-package offers, sorted."""
    module = import_module(f"sklearn_calib.{subpackage}")
    return sorted([*module.__all__, *RETURNED.get(subpackage, "").split()])


def offered(*but):
    """(name, thing) of all sub-packages but some."""
    for subpackage in list_subpackages():
        if subpackage not in but:
            module = import_module(f"sklearn_calib.{subpackage}")
            yield from ((name, getattr(module, name)) for name in names_of(subpackage))
