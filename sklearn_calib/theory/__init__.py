"""What theory says of models fitted to data whose law is known: exact losses and limits."""

from ._gaussian_logistic import GaussianLogisticModel as GaussianLogisticModel
from ._gaussian_logistic import LogisticLimit as LogisticLimit
from ._gaussian_loss import GaussianLoss as GaussianLoss
from ._gaussian_loss import gaussian_loss as gaussian_loss

__all__ = ["GaussianLogisticModel", "GaussianLoss", "LogisticLimit", "gaussian_loss"]
