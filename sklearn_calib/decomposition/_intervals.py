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
class SamplingError:
    """The distribution of the error of an estimated term.

    At a small distance q from its degenerate point the variance is `curved` + `slope` q;
    far from it, `variance`.
    """

    estimate: float
    # The variance of first order.
    variance: float
    skewness: float = 0.0
    bias: float = 0.0
    # The variance at the degenerate point, which is of second order.
    curved: float = 0.0
    slope: float = 0.0
    # The degenerate point.
    origin: float = 0.0
    # The bounds of the term in the population.
    lowest: float = -np.inf
    highest: float = np.inf

    @property
    def standard_error(self) -> float | None:
        """Return the standard error, or None for a term that has a degenerate point."""
        return None if self.curved else float(np.sqrt(self.variance))

    def invert_variance(self, level: float) -> tuple[float, float]:
        """Return all values whose own variance allows the estimate, after removing its bias."""
        z = ndtri((1 + level) / 2)
        center = self.estimate - self.bias
        if not self.curved:
            error = np.sqrt(self.variance)
            low = center - error * _invert_hall(z, self.skewness)
            high = center - error * _invert_hall(-z, self.skewness)
        else:
            x = center - self.origin
            distance = abs(self.estimate - self.origin)
            # A variance that is linear in the distance from the degenerate point, and
            # agrees with the first order at the estimate if that is far from it.
            slope = self.slope
            if distance > 0:
                slope = min(slope, self.variance / distance)
            constant = max(
                self.curved, self.variance - slope * distance - 3 * self.curved
            )
            low = self.origin - _solve_largest_root(-x, z**2, constant, slope)
            high = self.origin + _solve_largest_root(x, z**2, constant, slope)
        low, high = np.clip([low, high], self.lowest, self.highest).tolist()
        return low, high


def _invert_hall(x, g):
    """Invert Hall's transformation of a Student ratio of skewness `g` (x if that is 0)."""
    return x if abs(g) < 1e-8 else 3 / g * (np.cbrt(1 + g * (x - g / 6)) - 1)


def _solve_largest_root(x, z2, curved, slope):
    """Return the largest q around x with (x - q)^2 <= z2 (curved + slope |q|)."""
    # The side of 0 on which q lies.
    side = 1 if x >= 0 or x**2 <= z2 * curved else -1
    half = x + side * z2 * slope / 2
    return half + np.sqrt(half**2 - x**2 + z2 * curved)


def estimate_mean_sampling_error(
    rows: FloatArray, w: FloatArray, squares: FloatArray
) -> SamplingError:
    """Compute the law of a weighted mean.

    `w` sums to 1. An entry may stand for several rows: w is the sum of their weights,
    and `squares` that of the squared weights.
    """
    return SamplingError(float(w @ rows), *_compute_moments(rows, w, squares))


def compute_uncertainty_sampling_error(
    rows: FloatArray,
    frequencies: AnyArray,
    w: FloatArray,
    squares: FloatArray,
    loss: "ProperLoss",
) -> SamplingError:
    """Compute the law of the loss of the class frequencies.

    It is degenerate if all labels cost the same. There it is its maximum less half of
    the sum of l_i x_i^2, with independent normal x_i. The coefficients l_i are the
    eigenvalues of the loss's curvature times the multinomial covariance; their sum and
    the sum of their squares follow from the slopes towards each label.
    """
    k = len(frequencies)
    # One over Kish's number of rows.
    size = float(squares.sum())
    even = loss.get_undecided_prediction(k)
    towards = loss.slope(np.tile(even, (k, 1)), np.eye(k) / even - 1)
    top = loss.compute_label_losses(even[None])[0, 0]
    trace = -(even @ np.diag(towards))
    square = even @ towards**2 @ even
    return SamplingError(
        float(w @ rows),
        *_compute_moments(rows, w, squares),
        bias=-float(trace) / 2 * size,
        curved=float(square) / 2 * size**2,
        slope=2 * float(square / trace) * size,
        origin=float(top),
        lowest=loss.range[0],
        highest=float(top),
    )


def compute_temperature_sampling_errors(
    predictions: "Predictions",
    beta: float,
    w: FloatArray,
    squares: FloatArray,
    loss: "ProperLoss",
    risk: FloatArray,
    blind: FloatArray,
    uncertainty: SamplingError,
) -> dict[str, SamplingError]:
    """Compute the laws of calibration, refinement and sharpness for temperature scaling.

    `beta` is the inverse temperature of all rows, `risk` and `blind` the losses of the
    rows as they are and with the class frequencies, `uncertainty` the law of the
    latter.
    """
    fitted, score, slope, information, cross, spread = _compute_derivatives(
        predictions, beta, loss
    )
    total = w @ information
    bend = w @ cross
    refined = fitted - (w @ slope) * score / total
    # The second order, for labels drawn from the recalibrated probabilities: u is the
    # error of beta, v that of the loss's mean slope between 1 and beta.
    uu = squares @ information / total**2
    vv = squares @ spread
    uv = squares @ cross / total
    bias = uv - bend / 2 * uu
    curved = uu * (vv - bend * uv + bend**2 / 4 * uu) + bias**2
    return {
        "calibration": SamplingError(
            float(w @ (risk - fitted)),
            *_compute_moments(risk - refined, w, squares),
            bias=float(bias),
            curved=float(curved),
            slope=float(2 * vv / bend),
            lowest=0.0 if loss.is_likelihood else -np.inf,
        ),
        "refinement": SamplingError(
            float(w @ fitted),
            _compute_moments(refined, w, squares)[0],
            # Calibration and refinement add up to the risk, which has no bias.
            bias=-float(bias),
            lowest=loss.range[0],
        ),
        "sharpness": SamplingError(
            float(w @ (blind - fitted)),
            _compute_moments(blind - refined, w, squares)[0],
            bias=float(uncertainty.bias + bias),
        ),
    }


def _compute_derivatives(predictions, beta, loss):
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
    d = log - np.einsum("ij,ij->i", p, log)[:, None]
    derivative = p * d
    information = np.einsum("ij,ij->i", derivative, d)
    score = -d[rows, codes]
    slopes = loss.slope(proba, d)
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


def _compute_moments(
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
    skewness = float((squares**2 / w) @ centred**3) / total**1.5 if total > 0 else 0.0
    return (total / factor if factor > 0 else np.inf), skewness
