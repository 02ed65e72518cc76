"""Groups: whether the probabilities are right in each of them, and how to correct them."""

from ._group_recalibration import GroupRecalibration as GroupRecalibration
from ._multicalibrated_model import MulticalibratedModel as MulticalibratedModel
from ._multicalibrated_scores import MulticalibratedScores as MulticalibratedScores

__all__ = ["GroupRecalibration", "MulticalibratedModel", "MulticalibratedScores"]
