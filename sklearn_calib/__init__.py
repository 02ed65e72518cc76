"""Probability calibration for scikit-learn.

Scores are validated in one place (`canonical_proba`) and become rows on the simplex; estimators
change them (`sklearn_calib.recalibrators`) and functions measure them (`sklearn_calib.metrics`).
`CalibratedModel` wraps the classifier you already have, `RefineThenCalibrateCV` tunes it and
chooses when to stop its training.
"""

from . import decomposition as decomposition  # its measures join the registry
from ._version import __version__
from .canonical import canonical_labels, canonical_proba, log_proba
from .meta import CalibratedModel, RefineThenCalibrateCV

__all__ = [
    "CalibratedModel",
    "RefineThenCalibrateCV",
    "__version__",
    "canonical_labels",
    "canonical_proba",
    "log_proba",
]
