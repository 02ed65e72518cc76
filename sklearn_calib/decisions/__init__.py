"""Turns probabilities into decisions: costs, thresholds, abstention and net benefit.

It may import `metrics`, `recalibrators` and the layers below them.
Start reading with `decision_curve` in `_decision_curve.py`.
"""

from ..metrics import register_measures as _register
from ._cost_sensitive import CostSensitiveClassifier
from ._costs import validate_binary_predictions
from ._decision_curve import (
    DecisionCurve as DecisionCurve,
    NetBenefitDifference as NetBenefitDifference,
    decision_curve,
    decision_difference,
)
from ._expected_cost import ExpectedCost as ExpectedCost, expected_cost_test
from ._expected_metrics import ExpectedMetrics as ExpectedMetrics, expected_metrics
from ._measures import (
    area_under_risk_coverage as area_under_risk_coverage,
    calibration_decision_loss as calibration_decision_loss,
    expected_cost_score as expected_cost_score,
)
from ._regret import RegretCurve as RegretCurve, regret_curve
from ._risk_coverage import RiskCoverageCurve as RiskCoverageCurve, risk_coverage_curve
from ._selective import SelectiveClassifier

_REGISTERED_MEASURE_NAMES = _register(globals().values())

__all__ = [
    "CostSensitiveClassifier",
    "SelectiveClassifier",
    "decision_curve",
    "decision_difference",
    "expected_cost_test",
    "expected_metrics",
    "regret_curve",
    "risk_coverage_curve",
    *_REGISTERED_MEASURE_NAMES,
]


def __dir__() -> list[str]:
    return __all__
