"""Scorers: measures as scikit-learn's model selection takes them."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .._sklearn_compat import BaseScorer
from .._typing import ArrayLike, Estimator, Features
from .._validation import align_columns, check_and_get_common_index

if TYPE_CHECKING:
    from . import Measure


class ProbabilityScorer(BaseScorer):
    """A scorer for ``scoring=`` of scikit-learn: called with (estimator, X, y); greater is better.

    Calls ``predict_proba`` of the estimator and passes its ``classes_`` on, so that a
    test fold may miss a class. `sample_weight` is passed if metadata routing
    requests it (``scorer.set_score_request(sample_weight=True)``). With the option
    `multilabel` it scores estimators of many labels per row. Two scorers of one measure
    are equal if their options and their requests are.
    """

    # The method of scikit-learn has no types.
    if TYPE_CHECKING:

        def __call__(
            self,
            estimator: Estimator,
            X: Features,
            y_true: ArrayLike,
            sample_weight: ArrayLike | None = None,
            **kwargs: Any,
        ) -> float: ...

    def __init__(
        self,
        score_func: "Measure",
        sign: int,
        kwargs: dict[str, Any],
        response_method: str = "predict_proba",
    ) -> None:
        super().__init__(score_func, sign, kwargs, response_method)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self._kwargs.items())
        return f"get_scorer({self._score_func.spec.scorer_name!r}{options})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        options = self._kwargs
        others = other._kwargs
        if self._score_func != other._score_func or options.keys() != others.keys():
            return False
        # Options may be arrays, which `==` compares entry by entry.
        are_equal = all(np.array_equal(options[name], others[name]) for name in options)
        return are_equal and _get_request_by_name(self) == _get_request_by_name(other)

    def __hash__(self) -> int:
        return hash((type(self), self._score_func, *sorted(self._kwargs)))

    def _score(self, method_caller, estimator, X, y_true, **kwargs):
        """Score the predictions of an estimator; scikit-learn calls this method."""
        self._warn_overlap("Some of the scorer's options are given twice.", kwargs)
        options = {**self._kwargs, **kwargs}
        check_and_get_common_index(X, y_true)
        # scikit-learn would take two labels per row for one label with two classes.
        if "multilabel" in options:
            proba = estimator.predict_proba(X)
        else:
            proba = method_caller(estimator, "predict_proba", X)
            classes = estimator.classes_
            options.setdefault("labels", np.sort(classes))
            # scikit-learn returns a single column, that of the last class.
            if np.ndim(proba) == 1:
                proba = np.column_stack([1 - proba, proba])
            proba = align_columns(proba, classes, options["labels"])
        return self._sign * self._score_func(y_true, proba, **options)


def _get_request_by_name(scorer):
    """Return the metadata requested by ``set_score_request``."""
    return scorer.get_metadata_routing().score.requests
