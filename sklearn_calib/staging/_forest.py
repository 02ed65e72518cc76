"""scikit-learn's random forests and extra trees: the first trees are a smaller forest."""

from collections.abc import Iterator

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array

from .._typing import ArrayLike, Estimator, Features
from ._base import Staging, register_staging, with_attributes


class ForestStaging(Staging):
    unit = "trees"

    def n_stages(self, estimator: Estimator) -> int:
        return len(getattr(estimator, "estimators_", range(estimator.n_estimators)))

    def staged_scores(self, fitted: Estimator, X: Features) -> Iterator[tuple[str, ArrayLike]]:
        X = check_array(X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=False)
        total = 0.0
        for number, tree in enumerate(fitted.estimators_, start=1):
            total = total + tree.predict_proba(X)
            yield "proba", total / number

    def truncated(self, fitted: Estimator, stage: int) -> Estimator:
        return with_attributes(
            fitted, estimators_=fitted.estimators_[:stage], n_estimators=int(stage)
        )

    def limited(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(n_estimators=int(stage))


for _name in ("RandomForestClassifier", "ExtraTreesClassifier"):
    register_staging(f"sklearn.{_name}", ForestStaging())
