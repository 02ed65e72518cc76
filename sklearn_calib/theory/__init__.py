"""What theory says of models fitted to data whose law is known: exact losses and limits."""

from ._gaussian_logistic import GaussianLogisticModel
from ._gaussian_logistic import LogisticLimit as LogisticLimit
from ._gaussian_loss import GaussianLoss as GaussianLoss
from ._gaussian_loss import gaussian_loss

__all__ = ["GaussianLogisticModel", "gaussian_loss"]


def __dir__() -> list[str]:
    return __all__
