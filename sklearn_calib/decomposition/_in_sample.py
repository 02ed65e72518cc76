"""Refinement in sample by temperature scaling and by isotonic calibration, and a fit for new rows.

The logarithms and the order of the predictions are computed once for all resamples.
"""

from typing import TYPE_CHECKING

import numpy as np

from .._kernels._log_odds import compute_rounded_unclipped_log_odds
from .._kernels._probability_floor import clip_to_floor, estimate_floor
from .._kernels._temperature import InverseTemperatureFit, fit_temperature
from .._simplex_array import has_exact_log, log_proba
from .._sklearn_compat import fit_isotonic_shares
from .._typing import Estimator, FloatArray, IntArray
from .._validation import canonical_proba
from .._warnings import ignore_calibration_warnings
from ..recalibrators import fit_recalibrator, predict_proba_aligned

if TYPE_CHECKING:
    from ..metrics import Predictions, ProperLoss

# There are at least this many resamples, so compiled code pays for smaller data.
_ASSUMED_N_RESAMPLE_FITS = 10


def raise_zeros_to_floor(predictions: "Predictions") -> "Predictions":
    """Return predictions whose exact zeros count as in `TemperatureScaling` of all rows.

    All folds have the same floor: half the smallest positive probability of all rows.
    """
    proba = _clip_zeros(predictions.proba)
    return predictions if proba is predictions.proba else predictions.with_proba(proba)


def _clip_zeros(proba):
    # Exact logarithms have no zeros to raise, so the pass for the floor is saved.
    if has_exact_log(proba):
        return proba
    # The same floor as a fit of `TemperatureScaling` would learn.
    clipped = clip_to_floor(proba, estimate_floor(proba))
    if clipped is proba:
        return proba
    return canonical_proba(np.log(clipped), kind="logits")


def fit_temperature_in_sample(
    predictions: "Predictions", smooths_labels: bool = False, start: float | None = None
) -> InverseTemperatureFit:
    """Fit the temperature to all rows, with smoothed labels if `smooths_labels`."""
    smoothing = 0.0
    if smooths_labels:
        smoothing = 1.0 / (predictions.weight.sum() + 1.0)
    return fit_temperature(
        predictions.derive_from_proba(_compute_fit_logits),
        predictions.codes,
        predictions.weight,
        smoothing,
        start,
        n_fits=_ASSUMED_N_RESAMPLE_FITS if predictions.is_resample else 1,
    )


def _compute_fit_logits(proba):
    return log_proba(_clip_zeros(proba))


def compute_loss_after_temperature(
    predictions: "Predictions", loss: "ProperLoss"
) -> float:
    """Compute the mean loss after temperature scaling."""
    logits = predictions.derive_from_proba(_compute_fit_logits)
    scaled = fit_temperature_in_sample(predictions).beta * logits
    return predictions.mean(loss.compute_logit_losses(scaled, predictions.codes))


def compute_isotonic_loss(predictions: "Predictions", loss: "ProperLoss") -> float:
    """Compute the mean loss of isotonic calibration in sample, for two classes."""
    n, score_index = predictions.derive_from_proba(_count_and_index_distinct_scores)
    mass = np.bincount(score_index, predictions.weight, n)
    events = np.bincount(score_index, predictions.weight * predictions.codes, n)
    # Resamples may lack some scores.
    is_filled = mass > 0
    mass = mass[is_filled]
    events = events[is_filled]
    p = fit_isotonic_shares(events / mass, mass)
    losses = loss.compute_label_losses(np.column_stack([1 - p, p]))
    loss_of_zero, loss_of_one = np.ascontiguousarray(losses.T)
    total = events @ loss_of_one + (mass - events) @ loss_of_zero
    return float(total / mass.sum())


def _count_and_index_distinct_scores(proba):
    """Count the distinct scores, and return the position of each row's score among them."""
    scores, score_index = np.unique(
        compute_rounded_unclipped_log_odds(proba), return_inverse=True
    )
    return len(scores), score_index


def fit_and_recalibrate_new_rows(
    method: Estimator,
    proba: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    new_proba: FloatArray,
) -> FloatArray:
    """Recalibrate new rows with a map that is fitted to others."""
    classes = np.arange(proba.shape[1])
    # Equal weights are not passed, since some methods do not take weights.
    row_weight = None if (weight == 1).all() else weight
    # Rows of one class, or of one score, are possible in a fold.
    with ignore_calibration_warnings():
        fitted = fit_recalibrator(
            method, proba, codes, classes=classes, sample_weight=row_weight
        )
        return predict_proba_aligned(fitted, new_proba, classes)
