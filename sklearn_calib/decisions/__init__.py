"""From probabilities to decisions: costs, thresholds, abstention, and what miscalibration costs."""

from ..metrics import register as _register
from ._cost_sensitive import CostSensitiveClassifier as CostSensitiveClassifier
from ._decision_curve import DecisionCurve as DecisionCurve
from ._decision_curve import NetBenefitDifference as NetBenefitDifference
from ._decision_curve import decision_curve as decision_curve
from ._decision_curve import decision_difference as decision_difference
from ._expected_cost import ExpectedCost as ExpectedCost
from ._expected_cost import expected_cost_score as expected_cost_score
from ._expected_cost import expected_cost_test as expected_cost_test
from ._regret import RegretCurve as RegretCurve
from ._regret import regret_curve as regret_curve

_REGISTERED = _register(globals().values())

__all__ = [
    "CostSensitiveClassifier",
    "DecisionCurve",
    "ExpectedCost",
    "NetBenefitDifference",
    "RegretCurve",
    "decision_curve",
    "decision_difference",
    "expected_cost_test",
    "regret_curve",
    *_REGISTERED,
]
