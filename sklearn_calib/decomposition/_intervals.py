"""How far the terms of a decomposition may be from their values in the population.

A term is, to first order, a mean of one number for each row, its influence; the
variance of that mean is the sum of the squared influences, with squared weights. There
are two corrections to this.

Bias. The refinement in sample is too low, because the temperature was fitted on the
same rows: by 1 / (2 n) for the log loss.

Degenerate points. On calibrated rows the calibration term is a product of two small
numbers: the temperature's distance from 1, and the mean slope of the loss on the way
there. If all labels cost the same, as equally frequent ones do, the uncertainty has
no slope. All influences vanish there, and only the second order remains: its variance
is that of a product of two normal variables, or of a sum of k - 1 squares. Near
calibrated rows the labels are draws from the probabilities, from which both orders can
be computed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from .._simplex_array import log_proba
from .._typing import AnyArray, FloatArray
from .._validation import canonical_proba

if TYPE_CHECKING:
    from ..metrics import Predictions, ProperLoss


@dataclass(frozen=True)
class SamplingErrorDistribution:
    """The distribution of the error of an estimated term.

    At a small distance q from its degenerate point the variance is `origin_variance` +
    `variance_slope` q; far from it, `variance`.
    """

    estimate: float
    # The variance of first order.
    variance: float
    skewness: float = 0.0
    bias: float = 0.0
    # The variance at the degenerate point, which is of second order.
    origin_variance: float = 0.0
    variance_slope: float = 0.0
    # The degenerate point.
    origin: float = 0.0
    # The bounds of the term in the population.
    lowest: float = -np.inf
    highest: float = np.inf

    @property
    def standard_error(self) -> float | None:
        """Return the standard error, or None for a term that has a degenerate point."""
        return None if self.origin_variance else float(np.sqrt(self.variance))

    def compute_interval(self, level: float) -> tuple[float, float]:
        """Return all values whose own variance allows the estimate, after removing its bias."""
        z = ndtri((1 + level) / 2)
        center = self.estimate - self.bias
        if not self.origin_variance:
            error = np.sqrt(self.variance)
            low = center - error * _invert_hall(z, self.skewness)
            high = center - error * _invert_hall(-z, self.skewness)
        else:
            x = center - self.origin
            distance = abs(self.estimate - self.origin)
            # A variance that is linear in the distance from the degenerate point, and
            # agrees with the first order at the estimate if that is far from it.
            slope = self.variance_slope
            if distance > 0:
                slope = min(slope, self.variance / distance)
            constant = self.variance - slope * distance - 3 * self.origin_variance
            constant = max(self.origin_variance, constant)
            low = self.origin - _solve_upper_interval_end(-x, z**2, constant, slope)
            high = self.origin + _solve_upper_interval_end(x, z**2, constant, slope)
        low, high = np.clip([low, high], self.lowest, self.highest).tolist()
        return low, high


def _invert_hall(x, g):
    """Invert Hall's transformation of a Student ratio of skewness `g` (x if that is 0)."""
    if abs(g) < 1e-8:
        return x
    cube_root = np.cbrt(1 + g * (x - g / 6))
    return 3 / g * (cube_root - 1)


def _solve_upper_interval_end(x, z2, constant, slope):
    """Return the largest q around x with (x - q)^2 <= z2 (constant + slope |q|)."""
    # The side of 0 on which q lies.
    side = 1 if x >= 0 or x**2 <= z2 * constant else -1
    half = x + side * z2 * slope / 2
    return half + np.sqrt(half**2 - x**2 + z2 * constant)


def estimate_mean_sampling_error(
    rows: FloatArray, w: FloatArray, squares: FloatArray
) -> SamplingErrorDistribution:
    """Compute the law of a weighted mean.

    `w` sums to 1. An entry may stand for several rows: w is the sum of their weights,
    and `squares` that of the squared weights.
    """
    return SamplingErrorDistribution(
        float(w @ rows), *_compute_variance_and_skewness(rows, w, squares)
    )


def compute_uncertainty_sampling_error(
    rows: FloatArray,
    frequencies: AnyArray,
    w: FloatArray,
    squares: FloatArray,
    loss: "ProperLoss",
) -> SamplingErrorDistribution:
    """Compute the law of the loss of the class frequencies.

    It is degenerate if all labels cost the same. There it is its maximum less half of
    the sum of l_i x_i^2, with independent normal x_i. The coefficients l_i are the
    eigenvalues of the loss's curvature times the multinomial covariance; their sum and
    the sum of their squares follow from the slopes towards each label.
    """
    k = len(frequencies)
    # One over Kish's number of rows.
    inverse_kish_rows = float(squares.sum())
    undecided = loss.get_undecided_prediction(k)
    derivatives = loss.slope(np.tile(undecided, (k, 1)), np.eye(k) / undecided - 1)
    largest_loss = loss.compute_label_losses(undecided[None])[0, 0]
    trace = -(undecided @ np.diag(derivatives))
    square = undecided @ derivatives**2 @ undecided
    return SamplingErrorDistribution(
        float(w @ rows),
        *_compute_variance_and_skewness(rows, w, squares),
        bias=-float(trace) / 2 * inverse_kish_rows,
        origin_variance=float(square) / 2 * inverse_kish_rows**2,
        variance_slope=2 * float(square / trace) * inverse_kish_rows,
        origin=float(largest_loss),
        lowest=loss.range[0],
        highest=float(largest_loss),
    )


def compute_temperature_sampling_errors(
    predictions: "Predictions",
    beta: float,
    w: FloatArray,
    squares: FloatArray,
    loss: "ProperLoss",
    risk: FloatArray,
    base_rate_losses: FloatArray,
    uncertainty: SamplingErrorDistribution,
) -> dict[str, SamplingErrorDistribution]:
    """Compute the laws of calibration, refinement and sharpness for temperature scaling.

    `beta` is the inverse temperature of all rows, `risk` and `base_rate_losses` the losses of the
    rows as they are and with the class frequencies, `uncertainty` the law of the
    latter.
    """
    fitted, score, slope, information, cross, spread = (
        _compute_row_losses_and_beta_derivatives(predictions, beta, loss)
    )
    total = w @ information
    mean_cross = w @ cross
    refined_influence = fitted - (w @ slope) * score / total
    # The second order, for labels drawn from the recalibrated probabilities: u is the
    # error of beta, v that of the loss's mean slope between 1 and beta.
    uu = squares @ information / total**2
    vv = squares @ spread
    uv = squares @ cross / total
    bias = uv - mean_cross / 2 * uu
    curved = uu * (vv - mean_cross * uv + mean_cross**2 / 4 * uu) + bias**2
    return {
        "calibration": SamplingErrorDistribution(
            float(w @ (risk - fitted)),
            *_compute_variance_and_skewness(risk - refined_influence, w, squares),
            bias=float(bias),
            origin_variance=float(curved),
            variance_slope=float(2 * vv / mean_cross),
            lowest=0.0 if loss.is_likelihood else -np.inf,
        ),
        "refinement": SamplingErrorDistribution(
            float(w @ fitted),
            _compute_variance_and_skewness(refined_influence, w, squares)[0],
            # Calibration and refinement add up to the risk, which has no bias.
            bias=-float(bias),
            lowest=loss.range[0],
        ),
        "sharpness": SamplingErrorDistribution(
            float(w @ (base_rate_losses - fitted)),
            _compute_variance_and_skewness(
                base_rate_losses - refined_influence, w, squares
            )[0],
            bias=float(uncertainty.bias + bias),
        ),
    }


def _compute_row_losses_and_beta_derivatives(predictions, beta, loss):
    """Compute the quantities of each row at `beta` that the laws need.

    They are its loss, the slope of its log loss and of its loss in beta; and for a label
    drawn from the recalibrated row the variance of the former slope, the covariance of
    both (which is the second derivative of the expected loss), and the variance of the
    latter.
    """
    codes = predictions.codes
    rows = np.arange(len(predictions.codes))
    log = log_proba(predictions.proba)
    proba = canonical_proba(beta * log, kind="logits")
    p = np.asarray(proba)
    # The derivatives of the recalibrated log-probabilities and probabilities in beta.
    log_derivative = log - np.einsum("ij,ij->i", p, log)[:, None]
    derivative = p * log_derivative
    information = np.einsum("ij,ij->i", derivative, log_derivative)
    score = -log_derivative[rows, codes]
    slopes = loss.slope(proba, log_derivative)
    cross = -np.einsum("ij,ij->i", derivative, slopes)
    spread = np.einsum("ij,ij->i", p * slopes, slopes)
    return (
        loss.compute_row_losses(proba, codes),
        score,
        slopes[rows, codes],
        information,
        cross,
        spread,
    )


def _compute_variance_and_skewness(
    rows: FloatArray, w: FloatArray, squares: FloatArray
) -> tuple[float, float]:
    """Compute the variance and skewness of a weighted mean of independent rows.

    The sum of cubed weights, squares^2 / w, is exact if the weights of an entry are
    equal.
    """
    centred = rows - w @ rows
    # (n - 1) / n for n rows of equal weight: the correction for the estimated mean.
    factor = 1.0 - float(squares.sum())
    total = float(squares @ centred**2)
    variance = total / factor if factor > 0 else np.inf
    skewness = 0.0
    if total > 0:
        skewness = float((squares**2 / w) @ centred**3) / total**1.5
    return variance, skewness
