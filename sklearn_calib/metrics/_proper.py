"""The log loss, the Brier loss and the spherical loss, each with its measure; ranked scores."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .._simplex_array import LARGEST_LOG_LOSS, compute_log_losses, log_proba
from .._typing import ArrayLike, FloatArray, IntArray
from .._validation import order_scale_columns
from ._loss import ProperLoss
from ._measure import SharedOptions, measure

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import Predictions


@dataclass(frozen=True)
class LogLoss(ProperLoss):
    """-log p of the true class, in nats; a probability below 2.2e-16 counts as that.

    Parameters
    ----------
    floored : bool, default=True
        False: without that bound, as small as the logarithms represent.

    Examples
    --------
    >>> from sklearn_calib.metrics import LogLoss
    >>> LogLoss().compute_label_losses([[0.25, 0.75]]).round(4).tolist()
    [[1.3863, 0.2877]]
    """

    floored: bool = field(default=True, repr=False)
    name = "log"
    title = "log loss"
    unit = "nats"
    is_likelihood = True

    def compute_label_losses(self, proba: FloatArray) -> FloatArray:
        return compute_log_losses(proba) if self.floored else -log_proba(proba)

    def compute_row_losses(self, proba: FloatArray, codes: IntArray) -> FloatArray:
        rows = np.arange(len(codes))
        if self.floored:
            return compute_log_losses(proba, (rows, codes))
        return -log_proba(proba)[rows, codes]

    def compute_logit_losses(self, logits: FloatArray, codes: IntArray) -> FloatArray:
        """Return the loss of each row of the softmax of these logits."""
        if logits.shape[1] != 2:
            return super().compute_logit_losses(logits, codes)
        # log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)) does not overflow. It is
        # computed in place: search loops evaluate it for millions of rows.
        gap = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        gap *= 1.0 - 2.0 * codes
        losses = np.maximum(gap, 0.0)
        np.negative(np.abs(gap, out=gap), out=gap)
        losses += np.log1p(np.exp(gap, out=gap), out=gap)
        if self.floored:
            np.minimum(losses, LARGEST_LOG_LOSS, out=losses)
        return losses

    def slope(self, proba: FloatArray, rate: FloatArray) -> FloatArray:
        return -rate

    def without_floor(self) -> "LogLoss":
        return replace(self, floored=False)


@dataclass(frozen=True)
class BrierLoss(ProperLoss):
    """The squared distance to the label; with two classes one of the two equal squares is counted.

    Examples
    --------
    >>> from sklearn_calib.metrics import BrierLoss
    >>> BrierLoss().compute_label_losses([[0.25, 0.75]]).tolist()
    [[0.5625, 0.0625]]
    """

    name = "brier"
    title = "Brier loss"
    range = (0.0, 2.0)

    def compute_label_losses(self, proba: FloatArray) -> FloatArray:
        array = np.asarray(proba)
        if array.shape[1] == 2:
            return (1 - array) ** 2
        return np.einsum("ij,ij->i", array, array)[:, None] - 2 * array + 1

    def compute_row_losses(self, proba: FloatArray, codes: IntArray) -> FloatArray:
        array = np.asarray(proba)
        true = array[np.arange(len(array)), codes]
        if array.shape[1] == 2:
            return (1 - true) ** 2
        return np.einsum("ij,ij->i", array, array) - 2 * true + 1

    def mean(self, predictions: "Predictions") -> float:
        if len(predictions.classes) != 2:
            return super().mean(predictions)
        residual = predictions.codes - predictions.second
        return predictions.mean(np.square(residual, out=residual))

    def slope(self, proba: FloatArray, rate: FloatArray) -> FloatArray:
        array = np.asarray(proba)
        derivative = array * rate
        factor = 1.0 if array.shape[1] == 2 else 2.0
        return factor * (np.einsum("ij,ij->i", array, derivative)[:, None] - derivative)


@dataclass(frozen=True)
class SphericalLoss(ProperLoss):
    """-p of the true class, divided by the Euclidean length of the row.

    Examples
    --------
    >>> from sklearn_calib.metrics import SphericalLoss
    >>> SphericalLoss().compute_label_losses([[0.25, 0.75]]).round(4).tolist()
    [[-0.3162, -0.9487]]
    """

    name = "spherical"
    title = "spherical loss"
    range = (-1.0, 0.0)

    def compute_label_losses(self, proba: FloatArray) -> FloatArray:
        array = np.asarray(proba)
        return -array / np.sqrt(np.einsum("ij,ij->i", array, array))[:, None]

    def slope(self, proba: FloatArray, rate: FloatArray) -> FloatArray:
        losses = self.compute_label_losses(proba)
        return losses * (rate - np.einsum("ij,ij,ij->i", losses, losses, rate)[:, None])


LOG_LOSS = LogLoss()
BRIER_LOSS = BrierLoss()
SPHERICAL_LOSS = SphericalLoss()


@measure(loss=LOG_LOSS, poolable=True)
def log_loss(predictions: "Predictions", **shared: "Unpack[SharedOptions]") -> float:
    """Compute the mean negative log-probability of the true class.

    Parameters
    ----------
    {shared_parameters}

    Returns
    -------
    loss : float
        In nats. A row's loss is -log(max(p, 2.2e-16)) with p the probability of its
        true class, so a true class of probability 0 costs 36.04 and no row costs more.
        Unbiased for the expected loss. Cost: O(n).

    Notes
    -----
    Equal to scikit-learn's number for float64 probabilities. The floor is the float64
    machine epsilon for every dtype: float32 probabilities are raised to float64 first,
    whereas scikit-learn would floor them at 1.2e-7. Every log loss of this package
    (risk, refinement, uncertainty, reports) counts a row in this way.

    References
    ----------
    Good (1952), "Rational decisions".

    Examples
    --------
    >>> from sklearn_calib.metrics import log_loss
    >>> round(log_loss([0, 1], [0.2, 0.9]), 4)
    0.1643
    """
    return LOG_LOSS.mean(predictions)


@measure(loss=BRIER_LOSS, poolable=True)
def brier_loss(predictions: "Predictions", **shared: "Unpack[SharedOptions]") -> float:
    """Compute the mean squared distance between probabilities and outcomes.

    Equals `sklearn.metrics.brier_score_loss`, whose multiclass form came with version
    1.7.

    Parameters
    ----------
    {shared_parameters}

    Returns
    -------
    loss : float
        Two classes: the mean of (p - y)^2, in [0, 1]. More: the mean of sum_c (p_c -
        y_c)^2, in [0, 2]; this is twice the former for two classes. Unbiased for the
        expected loss. Cost: O(n k).

    References
    ----------
    Brier (1950), "Verification of forecasts expressed in terms of probability", eq. 2.

    Examples
    --------
    >>> from sklearn_calib.metrics import brier_loss
    >>> round(brier_loss([0, 1], [0.2, 0.9]), 4)
    0.025
    """
    return BRIER_LOSS.mean(predictions)


@measure(loss=SPHERICAL_LOSS, in_report=False, poolable=True)
def spherical_loss(
    predictions: "Predictions", **shared: "Unpack[SharedOptions]"
) -> float:
    """Compute minus the mean cosine of the angle between probabilities and outcomes.

    Parameters
    ----------
    {shared_parameters}

    Returns
    -------
    loss : float
        The mean of -p / r with p the probability of the true class and r the Euclidean
        length of the row, in [-1, 0]; -1 for predictions that are certain and right.
        Unbiased for the expected loss. Cost: O(n k).

    References
    ----------
    Good (1971), comment on "Measuring information and uncertainty". Gneiting, Raftery
    (2007), "Strictly proper scoring rules, prediction, and estimation", example 2 of
    section 4.1.

    Examples
    --------
    >>> from sklearn_calib.metrics import spherical_loss
    >>> round(spherical_loss([0, 1], [0.2, 0.9]), 4)
    -0.982
    """
    return SPHERICAL_LOSS.mean(predictions)


@measure(range=(0.0, 1.0), proper=True, in_report=False, poolable=True)
def ranked_probability_score(
    predictions: "Predictions",
    *,
    order: ArrayLike | None = None,
    **shared: "Unpack[SharedOptions]",
) -> float:
    """Compute the Brier loss for ordered classes, in which near misses cost less.

    The mean of the Brier losses of the questions "is the class at most k?", one for
    each class but the last. The order of the classes is `order`, or that of an ordered
    Categorical as labels; by default that of numbers, and of text the one in which
    `labels` names the columns. Three or more classes of text, with columns in the order
    of the alphabet, are an error without `order`.

    Parameters
    ----------
    {shared_parameters}
    order : array-like of shape (n_classes,), default=None
        All classes from the lowest to the highest, such as ``["poor", "fair",
        "good"]``, in any order of the columns.

    Returns
    -------
    score : float
        The mean over the rows of sum_k (F_k - 1{y <= k})^2 / (K - 1) over the first K -
        1 of K classes, F_k the predicted probability of class k or a lower one. In [0,
        1], perfect 0. For two classes it is the Brier loss. Unbiased for the expected
        score. Cost: O(n k).

    Notes
    -----
    Some authors do not divide by K - 1.

    References
    ----------
    Epstein (1969), "A scoring system for probability forecasts of ranked categories".
    Gneiting and Raftery (2007), "Strictly proper scoring rules, prediction, and
    estimation", section 4.2.

    Examples
    --------
    >>> from sklearn_calib.metrics import ranked_probability_score
    >>> stars = [1, 2, 3, 4, 5]
    >>> near, far = [0, 0, 0, 1, 0], [1, 0, 0, 0, 0]
    >>> [ranked_probability_score([5], [p], labels=stars) for p in (near, far)]
    [0.25, 1.0]
    >>> grades = ["poor", "fair", "good"]  # sorted, "fair" would come first
    >>> round(ranked_probability_score(["good", "poor"], [[0.1, 0.3, 0.6], [1, 0, 0]],
    ...                                labels=grades), 4)
    0.0425

    Columns in the order of the alphabet, as scikit-learn's classifiers give them:

    >>> proba = [[0.3, 0.6, 0.1], [0, 0, 1]]
    >>> alphabet = ["fair", "good", "poor"]
    >>> round(ranked_probability_score(["good", "poor"], proba, labels=alphabet, order=grades), 4)
    0.0425
    """
    columns = order_scale_columns(order, predictions.classes)
    difference = np.cumsum(np.asarray(predictions.proba)[:, columns], axis=1)[:, :-1]
    # The distribution function of the label is a step at its class; the score is the
    # mean squared distance of both functions.
    rank = np.argsort(columns)[predictions.codes]
    difference -= rank[:, None] <= np.arange(difference.shape[1])
    return predictions.mean(
        np.einsum("ij,ij->i", difference, difference) / difference.shape[1]
    )
