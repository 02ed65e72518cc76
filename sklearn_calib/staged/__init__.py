"""Adapters of learners whose training has stages: boosting rounds, trees, epochs.

It may import `_kernels`, `_validation` and the layers below them.
Start reading with `Staging` in `_base.py`.
"""

from . import _catboost as _catboost
from . import _lightgbm as _lightgbm
from . import _partial_fit as _partial_fit
from . import _scikit_learn as _scikit_learn
from . import _xgboost as _xgboost
from ._base import Staging as Staging
from ._base import classifier_logits as classifier_logits
from ._base import find_staging as find_staging
from ._base import register_staging

__all__ = ["register_staging"]


def __dir__() -> list[str]:
    return __all__
