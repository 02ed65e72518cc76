"""What theory says of models fitted to data whose law is known: exact losses and limits."""

from ._gaussian_logistic import GaussianLogisticModel
from ._gaussian_logistic import GaussianLoss as GaussianLoss
from ._gaussian_logistic import LogisticLimit as LogisticLimit

__all__ = ["GaussianLogisticModel"]


def __dir__() -> list[str]:
    return __all__
