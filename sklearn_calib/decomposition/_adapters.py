"""Measures as the evaluation functions of gradient boosting libraries."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .._argument_checks import check_choice, unknown_name_error
from ..metrics import all_metrics


def as_eval_metric(
    library: Literal["xgboost", "lightgbm"],
    measure: str = "temperature_refinement_log_loss",
    **options: Any,
) -> Callable[[Any, Any], Any]:
    """Turn a measure into the ``eval_metric=`` of a gradient boosting library, for early stopping.

    Parameters
    ----------
    library : {"xgboost", "lightgbm"}
        For ``xgboost.XGBClassifier(eval_metric=...)``, or for
        ``lightgbm.LGBMClassifier.fit(..., eval_metric=...)``: turn LightGBM's own
        metric off with ``metric="None"`` in the constructor, or early stopping watches
        both.
    measure : str, default="temperature_refinement_log_loss"
        A name from `all_metrics`; a loss or error, since both libraries minimise.
    **options
        Options of the measure, such as ``label_smoothing=True``.

    Returns
    -------
    eval_metric : callable
        (y_true, y_score, sample_weight) -> float for XGBoost, and -> (name, value,
        greater_is_better) for LightGBM. It can also be the ``custom_metric=`` of
        ``xgboost.train`` and the ``feval=`` of ``lightgbm.train``. Labels that are not
        whole numbers are shares of the second class, if the measure takes soft labels.

    Raises
    ------
    ValueError
        An unknown library, measure or option.

    Examples
    --------
    >>> from sklearn_calib.decomposition import as_eval_metric
    >>> as_eval_metric("xgboost", label_smoothing=True).__name__
    'temperature_refinement_log_loss'
    >>> as_eval_metric("lightgbm")([0, 1, 1, 0], [0.2, 0.6, 0.4, 0.7])[0]
    'temperature_refinement_log_loss'
    """
    check_choice("library", library, ("xgboost", "lightgbm"))
    # The libraries minimise their evaluation metric.
    errors = {}
    for name, function in all_metrics().items():
        if not function.spec.greater_is_better:
            errors[name] = function
    if not isinstance(measure, str) or measure not in errors:
        raise unknown_name_error("a measure", measure, list(errors))
    scorer = errors[measure].scorer(**options)

    def compute_eval_metric_result(y_true, y_score, sample_weight=None):
        """Return the measure in the form that the library expects."""
        # The classes of scikit-learn's kind pass labels and scores. `xgboost.train` and
        # `lightgbm.train` pass predictions first, and then their own data object.
        has_dataset = hasattr(y_score, "get_label")
        if has_dataset:
            data = y_score
            y_score = y_true
            y_true = data.get_label()
            sample_weight = data.get_weight()
        score = np.asarray(y_score)
        y = np.asarray(y_true)
        labels = np.arange(2 if score.ndim == 1 else score.shape[1])
        arguments = {"labels": labels, **scorer._kwargs}
        # Labels that are not whole numbers are shares of the second class.
        if (y == np.floor(y)).all():
            y = y.astype(int)
        else:
            arguments["soft_labels"] = True
        if sample_weight is not None and len(sample_weight):
            arguments["sample_weight"] = sample_weight
        value = scorer._score_func(y, score, **arguments)
        if library == "lightgbm":
            return measure, value, False
        return (measure, value) if has_dataset else value

    compute_eval_metric_result.__name__ = measure
    return compute_eval_metric_result
