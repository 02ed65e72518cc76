"""What theory says of models fitted to data whose law is known: exact losses and limits."""

from ._gaussian_logistic import GaussianLogisticModel, LogisticLimit
from ._gaussian_loss import GaussianLoss, gaussian_loss

__all__ = ["GaussianLogisticModel", "GaussianLoss", "LogisticLimit", "gaussian_loss"]
