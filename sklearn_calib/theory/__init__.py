"""Exact losses and limits of models fitted to data whose distribution is known.

It may import `inference`, `classifiers`, `testing` and the layers below them.
Start reading with `GaussianLogisticModel` in `_gaussian_logistic.py`.
"""

from ._gaussian_logistic import (
    GaussianLogisticModel,
    GaussianLoss as GaussianLoss,
    LogisticLimit as LogisticLimit,
)

__all__ = ["GaussianLogisticModel"]


def __dir__() -> list[str]:
    return __all__
