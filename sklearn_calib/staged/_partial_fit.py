"""Learners trained epoch by epoch with partial_fit: scikit-learn's MLP and SGD."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from .._typing import ArrayLike, Estimator, Features
from ._base import StagedScores, Staging, copy_with_attributes, register_staging


class PartialFitStaging(Staging):
    """One call of partial_fit is one epoch; what was learned is copied after each.

    The learner's own stopping (``tol``, ``early_stopping``) is not used. With a whole
    number as ``random_state``, partial_fit would repeat one shuffle in all epochs; it
    gets a generator.

    Parameters
    ----------
    learned : tuple of str
        The fitted attributes that predictions depend on: arrays or lists of arrays.
    max_epochs : int, default=None
        Epochs that are enough if ``max_iter`` is a safeguard.
    """

    unit = "epochs"

    def __init__(self, learned: Any, max_epochs: Any = None) -> None:
        self.learned = learned
        self.max_epochs = max_epochs

    def applies(self, estimator: Estimator) -> bool:
        return hasattr(estimator, "partial_fit") and (
            not hasattr(estimator, "classes_")
            or hasattr(estimator, "_staged_snapshots")
        )

    def n_stages(self, estimator: Estimator) -> int:
        if hasattr(estimator, "_staged_snapshots"):
            return len(estimator._staged_snapshots)
        if self.max_epochs is None:
            return estimator.max_iter
        return min(estimator.max_iter, self.max_epochs)

    def fit(
        self, estimator: Estimator, X: Features, y: ArrayLike, **params: Any
    ) -> Estimator:
        """Fit epoch by epoch, and record the coefficients after each of them."""
        parameters = {
            name: estimator.get_params()[name]
            for name in ("random_state", "early_stopping")
        }
        estimator.set_params(
            random_state=check_random_state(parameters["random_state"]),
            early_stopping=False,
        )
        classes = np.unique(y)
        # `partial_fit` does not see all labels, so balanced weights are computed from
        # these.
        if getattr(estimator, "class_weight", None) == "balanced":
            parameters["class_weight"] = "balanced"
            balanced = compute_class_weight("balanced", classes=classes, y=y)
            estimator.set_params(class_weight=dict(zip(classes, balanced, strict=True)))
        snapshots = []
        try:
            for epoch in range(self.n_stages(estimator)):
                first = {"classes": classes} if epoch == 0 else {}
                estimator.partial_fit(X, y, **first, **params)
                snapshots.append(
                    {
                        name: _copy_arrays(getattr(estimator, name))
                        for name in self.learned
                    }
                )
        finally:
            estimator.set_params(**parameters)
        estimator._staged_snapshots = snapshots
        return estimator

    def staged_scores(self, fitted: Estimator, X: Features) -> StagedScores:
        for stage in range(1, self.n_stages(fitted) + 1):
            view = self.truncate_to_stage(fitted, stage)
            if hasattr(view, "decision_function"):
                yield "logits", view.decision_function(X)
            else:
                yield "proba", view.predict_proba(X)

    def staged_proba(
        self, fitted: Estimator, X: Features
    ) -> Iterable[ArrayLike] | None:
        if not (
            hasattr(fitted, "decision_function") and hasattr(fitted, "predict_proba")
        ):
            return None
        stages = range(1, self.n_stages(fitted) + 1)
        return (
            self.truncate_to_stage(fitted, stage).predict_proba(X) for stage in stages
        )

    def truncate_to_stage(self, fitted: Estimator, stage: int) -> Estimator:
        shorter = copy_with_attributes(fitted, **fitted._staged_snapshots[stage - 1])
        # The snapshots are of the other epochs.
        del shorter._staged_snapshots
        return shorter

    def with_max_stages(self, estimator: Estimator, stage: int) -> Estimator:
        return clone(estimator).set_params(max_iter=int(stage))


def _copy_arrays(value):
    return (
        [array.copy() for array in value] if isinstance(value, list) else np.copy(value)
    )


register_staging("sklearn.MLPClassifier", PartialFitStaging(("coefs_", "intercepts_")))
# max_iter = 1000 is a safeguard for SGD, whose own stopping rule ends after some dozens
# of epochs.
register_staging(
    "sklearn.SGDClassifier", PartialFitStaging(("coef_", "intercept_"), max_epochs=100)
)
