"""Class frequencies of unlabelled rows from predictions on labelled ones."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.special import ndtri, softmax

from .._simplex_array import has_exact_log, log_proba
from .._typing import FloatArray, IntArray

_MAX_CONDITION_NUMBER = 1e10


class ConfusionTable(NamedTuple):
    """Moments of the predictions on labelled rows.

    `class_means` : mean predictions of the rows of each class, one column per class;
    `class_square_means` : entry (k, j) is the mean over rows of class j of the squared k-th
    entry of given^-1 @ prediction, or None if `class_means` has no inverse;
    `frequencies` : of the classes; `rows` : of each class.
    """

    class_means: FloatArray
    class_square_means: FloatArray | None
    frequencies: FloatArray
    rows: FloatArray


def make_hard_or_soft_predictions(proba: FloatArray, hard: bool) -> FloatArray:
    """Return the compared predictions: probabilities, or 1 for the largest of them."""
    plain_proba = np.asarray(proba)
    return (
        np.eye(plain_proba.shape[1])[plain_proba.argmax(axis=1)]
        if hard
        else plain_proba
    )


def estimate_confusion(
    proba: FloatArray, y_encoded: IntArray, weight: FloatArray
) -> ConfusionTable:
    """Return the `ConfusionTable` of labelled rows; columns of absent classes are 0."""
    k = proba.shape[1]
    mass = np.bincount(y_encoded, weight, k)
    # Columns are class-conditional means, so they do not depend on the class
    # frequencies of the labelled rows.
    class_weight = weight / np.where(mass > 0, mass, 1.0)[y_encoded]

    def average_within_classes(columns):
        return np.array(
            [np.bincount(y_encoded, class_weight * column, k) for column in columns]
        )

    class_means = average_within_classes(proba.T)
    class_square_means = None
    # A singular matrix means that the predictions do not distinguish some classes,
    # whose frequencies then cannot be estimated.
    if (mass > 0).all() and np.linalg.cond(class_means) < _MAX_CONDITION_NUMBER:
        class_square_means = average_within_classes(
            (np.linalg.inv(class_means) @ proba.T) ** 2
        )
    total = np.bincount(y_encoded, class_weight**2, k)
    rows = np.divide(1.0, total, out=np.zeros(k), where=total > 0)
    return ConfusionTable(class_means, class_square_means, mass / mass.sum(), rows)


def clip_vector_to_simplex(raw: FloatArray) -> FloatArray:
    """Set negative entries to 0 and divide the rest by their sum."""
    clipped = np.maximum(raw, 0.0)
    return clipped / clipped.sum()


def estimate_prior_with_se_and_interval(
    confusion: ConfusionTable, proba: FloatArray, weight: FloatArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Solve class_means @ b = mean prediction for the frequencies b.

    Returns them, their standard errors and intervals.

    The standard errors are those of the delta method, from the rows of both samples.
    The interval of a class holds each t with (raw estimate - t)^2 <= z^2 V(t), where
    V(t) is the variance if the frequency is t and the others keep their proportions:
    Wilson's interval if the predictions are perfect.
    """
    assert confusion.class_square_means is not None
    weight_fraction = weight / weight.sum()
    # Black box shift estimation (Lipton, Wang and Smola 2018): each row gives an
    # unbiased estimate of the class frequencies.
    estimates = np.linalg.inv(confusion.class_means) @ proba.T
    raw = estimates @ weight_fraction
    prior = clip_vector_to_simplex(raw)
    k = len(prior)
    # The variance that the labelled rows contribute, per squared frequency.
    noise = confusion.class_square_means - np.eye(k)
    noise = np.maximum(noise, 0.0) / np.maximum(confusion.rows - 1.0, 1.0)
    se = np.sqrt(
        (estimates - raw[:, None]) ** 2 @ weight_fraction**2 + noise @ prior**2
    )
    weight_square = weight_fraction @ weight_fraction
    # Wilson's construction: the variance is that at the tested frequency, so the
    # interval solves a quadratic equation and does not collapse at 0.
    z2 = ndtri((1 - level) / 2) ** 2

    def compute_prior_estimate_variance(class_index, assumed_share):
        other_classes = np.delete(np.arange(k), class_index)
        others_total = prior[other_classes].sum()
        b = np.empty(k)
        b[other_classes] = (1 - assumed_share) * (
            prior[other_classes] / others_total if others_total > 0 else 1.0 / (k - 1)
        )
        b[class_index] = assumed_share
        return (
            weight_square
            * (confusion.class_square_means[class_index] @ b - assumed_share**2)
            + noise[class_index] @ b**2
        )

    interval = np.empty((k, 2))
    for c in range(k):
        v0 = compute_prior_estimate_variance(c, 0.0)
        v1 = compute_prior_estimate_variance(c, 1.0)
        v_half = compute_prior_estimate_variance(c, 0.5)
        bend = 2 * v0 + 2 * v1 - 4 * v_half
        interval[c] = _find_nonpositive_range(
            1 - z2 * bend, -2 * raw[c] - z2 * (v1 - v0 - bend), raw[c] ** 2 - z2 * v0
        )
    low, high = np.clip(interval, 0.0, 1.0).T
    return prior, se, np.column_stack([np.minimum(low, prior), np.maximum(high, prior)])


def _find_nonpositive_range(a, b, c):
    """Return where a t^2 + b t + c <= 0; everything if it has no minimum."""
    root = b * b - 4 * a * c
    if a <= 0 or root < 0:
        return (-np.inf, np.inf) if a <= 0 else (-b / (2 * a), -b / (2 * a))
    return (-b - np.sqrt(root)) / (2 * a), (-b + np.sqrt(root)) / (2 * a)


def estimate_regularised_prior(
    confusion: ConfusionTable, proba: FloatArray, weight: FloatArray, penalty: float
) -> FloatArray:
    """Return frequencies by the weights of the smallest penalised error.

    The weights w >= 0 minimise ||C w - mu|| + rho ||w - 1||.

    C is the joint table of predictions and classes, mu the mean prediction, and rho =
    `penalty` times the deviation of C that its number of rows n allows, 3 (2 log(2 k /
    0.05) / (3 n) + sqrt(2 log(2 k / 0.05) / n)).
    """
    k = len(confusion.frequencies)
    joint = confusion.class_means * confusion.frequencies
    mismatch = (weight / weight.sum()) @ proba - joint.sum(axis=1)
    # The penalty of Azizzadenesheli, Liu, Yang and Anandkumar (2019), a bound of the
    # estimation error of the confusion matrix.
    deviation = np.log(2 * k / 0.05) / confusion.rows.sum()
    rho = penalty * 3 * (2 * deviation / 3 + np.sqrt(2 * deviation))

    def fit_weight_change_by_class(log_ridge):
        """Minimise ||C theta - miss||^2 + ridge ||theta||^2 over theta >= -1."""
        ridge = np.sqrt(np.exp(log_ridge))
        # Ridge regression as least squares with extra rows; nonnegative weights are
        # theta >= -1.
        table = np.vstack([joint, ridge * np.eye(k)])
        wanted = np.concatenate([mismatch + joint.sum(axis=1), np.full(k, ridge)])
        return nnls(table, wanted, maxiter=30 * k + 100)[0] - 1.0

    def compute_ridge_equation_residual(log_ridge):
        """Return 0 if the ridge is the one that norms without squares imply."""
        theta = fit_weight_change_by_class(log_ridge)
        residual = np.linalg.norm(joint @ theta - mismatch)
        return np.exp(log_ridge) * np.linalg.norm(theta) - rho * residual

    low = -60.0
    high = 30.0
    if not mismatch.any() or rho == 0 or compute_ridge_equation_residual(low) > 0:
        theta = fit_weight_change_by_class(low) if mismatch.any() else np.zeros(k)
    elif compute_ridge_equation_residual(high) < 0:
        # The penalty keeps all weights at 1.
        theta = np.zeros(k)
    else:
        # The paper penalises norms, not squares. For one value of the ridge both
        # problems have the same solution.
        theta = fit_weight_change_by_class(
            brentq(compute_ridge_equation_residual, low, high, xtol=1e-13)
        )
    return clip_vector_to_simplex((1.0 + theta) * confusion.frequencies)


# Exported documents hold finite numbers only. The exponential of this one is 0.
MIN_EXPORTED_LOG = -1e30


def multiply_log_ratio_by_strength(
    prior: FloatArray, source: FloatArray, strength: float
) -> FloatArray:
    """Return strength log(prior / source), -inf if prior is 0."""
    with np.errstate(divide="ignore"):
        return strength * (np.log(prior) - np.log(source))


def shift_posterior(proba: FloatArray, added: FloatArray) -> FloatArray:
    """Return rows proportional to p exp(added).

    A probability of 0 stays 0. If nothing would be left of a row, because all that
    it has is on classes whose factor is 0, the classes that it calls impossible are
    equally so.
    """
    if has_exact_log(proba):
        log_shifted = log_proba(proba) + added
    else:
        with np.errstate(divide="ignore"):
            log_shifted = np.log(np.asarray(proba)) + added
        # All classes of the row that the new frequencies allow had probability 0 after
        # rounding; their exact logarithms still order them.
        lost = np.isneginf(log_shifted.max(axis=1))
        if lost.any():
            log_shifted[lost] = log_proba(proba[lost]) + added
    return softmax(log_shifted, axis=1)
