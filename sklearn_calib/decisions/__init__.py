"""From probabilities to decisions: costs, thresholds, abstention, and what miscalibration costs."""

from ..metrics import register as _register
from ._cost_sensitive import CostSensitiveClassifier as CostSensitiveClassifier
from ._expected_cost import ExpectedCost as ExpectedCost
from ._expected_cost import expected_cost_score as expected_cost_score
from ._expected_cost import expected_cost_test as expected_cost_test

_REGISTERED = _register(globals().values())

__all__ = [
    "CostSensitiveClassifier",
    "ExpectedCost",
    "expected_cost_test",
    *_REGISTERED,
]
