"""Data whose true probabilities are known, and what theory says of models fitted to them."""

from ._gaussian_logistic import GaussianLogisticModel as GaussianLogisticModel
from ._gaussian_logistic import LogisticLimit as LogisticLimit
from ._high_dimensional import LinearTruth as LinearTruth
from ._high_dimensional import make_high_dimensional as make_high_dimensional
from ._miscalibrated import ScoredData as ScoredData
from ._miscalibrated import make_sign_perturbed as make_sign_perturbed
from ._miscalibrated import make_uniform_shift as make_uniform_shift
from ._two_gaussians import GaussianLoss as GaussianLoss
from ._two_gaussians import gaussian_loss as gaussian_loss
from ._two_gaussians import make_two_gaussians as make_two_gaussians

__all__ = [
    "GaussianLogisticModel",
    "GaussianLoss",
    "LinearTruth",
    "LogisticLimit",
    "ScoredData",
    "gaussian_loss",
    "make_high_dimensional",
    "make_sign_perturbed",
    "make_two_gaussians",
    "make_uniform_shift",
]
