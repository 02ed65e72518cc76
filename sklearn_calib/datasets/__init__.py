"""Data whose true probabilities are known."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._renamed import renamed_names as _renamed_names
from ._high_dimensional import LinearTruth as LinearTruth
from ._high_dimensional import make_high_dimensional as make_high_dimensional
from ._miscalibrated import ScoredData as ScoredData
from ._miscalibrated import make_sign_perturbed as make_sign_perturbed
from ._miscalibrated import make_uniform_shift as make_uniform_shift
from ._overconfident import make_overconfident as make_overconfident
from ._two_gaussians import make_two_gaussians as make_two_gaussians

__all__ = [
    "LinearTruth",
    "ScoredData",
    "make_high_dimensional",
    "make_overconfident",
    "make_sign_perturbed",
    "make_two_gaussians",
    "make_uniform_shift",
]

if not _TYPE_CHECKING:  # a type checker need not know the old names
    __getattr__ = _renamed_names(
        __name__,
        {
            name: f"theory:{name}"
            for name in ("GaussianLogisticModel", "GaussianLoss", "LogisticLimit", "gaussian_loss")
        },
    )
