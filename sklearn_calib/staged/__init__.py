"""Adapters of learners whose training has stages: boosting rounds, trees, epochs.

It may import `_kernels`, `_validation` and the layers below them.
Start reading with `Staging` in `_base.py`.
"""

from . import _catboost, _lightgbm, _partial_fit, _scikit_learn, _xgboost
from ._base import (
    Staging as Staging,
    classifier_logits as classifier_logits,
    find_staging as find_staging,
    register_staging,
)

__all__ = ["register_staging"]


def __dir__() -> list[str]:
    return __all__
