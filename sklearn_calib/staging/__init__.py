"""Learners seen stage by stage: boosting rounds, trees, epochs.

One file per family of learners; an adapter is a `Staging`, `register_staging` adds yours.
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
