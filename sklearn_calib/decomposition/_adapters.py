"""Measures as the evaluation functions of gradient boosting libraries."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..exceptions import called, refuse_unknown
from ..metrics import get_scorer, scorer_names


def as_xgboost_metric(
    measure: str = "temperature_refinement_log_loss", **options: Any
) -> Callable[[Any, Any], float]:
    """Turn a measure into ``eval_metric=`` of ``xgboost.XGBClassifier``, for early stopping.

    Parameters
    ----------
    measure : str, default="temperature_refinement_log_loss"
        A name from `all_metrics`; a loss or error, since XGBoost minimises.
    **options
        Options of the measure, such as ``label_smoothing=True``.

    Returns
    -------
    eval_metric : callable (y_true, y_score) -> float

    Examples
    --------
    >>> from sklearn_calib.decomposition import as_xgboost_metric
    >>> metric = as_xgboost_metric(label_smoothing=True)
    >>> metric.__name__
    'temperature_refinement_log_loss'
    """
    evaluate = _evaluation(measure, options)
    evaluate.__name__ = measure
    return evaluate


def as_lightgbm_metric(
    measure: str = "temperature_refinement_log_loss", **options: Any
) -> Callable[[Any, Any], tuple[str, float, bool]]:
    """Turn a measure into ``eval_metric=`` of ``lightgbm.LGBMClassifier.fit``, for early stopping.

    Turn LightGBM's own metric off with ``metric="None"`` in the constructor, or early stopping
    watches both.

    Parameters
    ----------
    measure : str, default="temperature_refinement_log_loss"
        A name from `all_metrics`.
    **options
        Options of the measure, such as ``label_smoothing=True``.

    Returns
    -------
    feval : callable (y_true, y_pred) -> (name, value, greater_is_better)

    Examples
    --------
    >>> from sklearn_calib.decomposition import as_lightgbm_metric
    >>> as_lightgbm_metric()([0, 1, 1, 0], [0.2, 0.6, 0.4, 0.7])[0]
    'temperature_refinement_log_loss'
    """
    evaluate = _evaluation(measure, options)

    def feval(y_true, y_pred):
        return measure, evaluate(y_true, y_pred), False

    return feval


def _evaluation(measure, options):
    """f(whole-number labels, probabilities) -> float; the name and options are checked here."""
    if not isinstance(measure, str) or f"neg_{measure}" not in scorer_names():
        known = [name.removeprefix("neg_") for name in scorer_names() if name[:4] == "neg_"]
        refuse_unknown(called("as_xgboost_metric"), "a measure", measure, known)
    scorer = get_scorer(f"neg_{measure}", **options)

    def evaluate(y_true, y_score):
        score = np.asarray(y_score)
        n_classes = 2 if score.ndim == 1 else score.shape[1]
        labels = np.arange(n_classes)
        return scorer._score_func(
            np.asarray(y_true).astype(int), score, labels=labels, **scorer._kwargs
        )

    return evaluate
