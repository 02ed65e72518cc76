"""Names for methods, measures, losses, displays, learners and maps of your own.

The pages on extending the package use these names and those that the public
sub-packages list, and nothing else. They keep their meaning between minor releases, as
public names do.
"""

from ._validation import check_same_length, read_labels, read_proba
from .displays import Display
from .exceptions import invalid_input
from .maps import (
    LOGIT_FIELD,
    CalibrationMap,
    FunctionOfScore,
    Identity,
    Mixture,
    Number,
    SoftmaxAffine,
    invalid_field,
    schema_field,
)
from .metrics import (
    BinaryOptions,
    BinaryProblem,
    Measure,
    Predictions,
    ProperLoss,
    SharedOptions,
    all_losses,
    binary_measure,
    measure,
)
from .recalibrators import Capabilities, Recalibrator
from .staged import Staging, find_staging, register_staging
from .testing import check_contract, contract_checks

__all__ = [
    "LOGIT_FIELD",
    "BinaryOptions",
    "BinaryProblem",
    "CalibrationMap",
    "Capabilities",
    "Display",
    "FunctionOfScore",
    "Identity",
    "Measure",
    "Mixture",
    "Number",
    "Predictions",
    "ProperLoss",
    "Recalibrator",
    "SharedOptions",
    "SoftmaxAffine",
    "Staging",
    "all_losses",
    "binary_measure",
    "check_contract",
    "check_same_length",
    "contract_checks",
    "find_staging",
    "invalid_field",
    "invalid_input",
    "measure",
    "read_labels",
    "read_proba",
    "register_staging",
    "schema_field",
]


def __dir__() -> list[str]:
    return __all__
