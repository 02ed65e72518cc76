"""The contract of a proper loss: what each possible label costs, and how fast that changes."""

from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from .._simplex_array import apply_softmax_or_sigmoid, log_proba
from .._typing import FloatArray, IntArray
from ..exceptions import invalid_input
from ._measure import Measure, measure

if TYPE_CHECKING:
    from . import Predictions

# The cube root of the machine epsilon, for central differences.
_DIFFERENCE_STEP = 6e-6


class ProperLoss:
    """A loss that is smallest on average if the prediction is the true probability.

    What ``loss=`` takes all over the package, as an instance or, once its measure is
    registered, by its name. A loss of your own needs its name, its title and
    `compute_label_losses`; `slope` makes its intervals exact and fast.
    `sklearn_calib.testing.check_contract` holds it to its contract.

    Attributes
    ----------
    name : str
        What ``loss="..."`` calls it.
    title, unit : str
        For axes and texts: "log loss", "nats"; the unit may be empty.
    range : tuple of float
        Smallest value, that of certain and right predictions, and largest.
    n_classes : int or None
        How many classes it takes; None for any number.
    strict : bool
        Whether the true probabilities alone have the smallest expected loss.
    is_likelihood : bool
        Whether it is the loss that recalibrators minimise. Their own values are then
        used where they are known, and labels may be smoothed. True of the log loss
        alone.

    Notes
    -----
    Costs: one evaluation of `compute_label_losses`, O(n k), each, unless a loss states another
    cost.

    References
    ----------
    Gneiting, Raftery (2007), "Strictly proper scoring rules, prediction, and
    estimation", section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib.decomposition import decompose_loss
    >>> from sklearn_calib.metrics import ProperLoss
    >>> class MiddleThresholds(ProperLoss):
    ...     name, title, range, n_classes = "middle", "loss of middle thresholds", (0.0, 1.0), 2
    ...
    ...     def compute_label_losses(self, proba):
    ...         q = 1 - np.asarray(proba)
    ...         return 4 * q**3 - 3 * q**4
    >>> parts = decompose_loss([0, 1, 1, 0, 1], [0.2, 0.6, 0.9, 0.5, 0.7], loss=MiddleThresholds())
    >>> round(parts.risk, 4)
    0.1213
    """

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str] = ""
    range: tuple[float, float] = (0.0, np.inf)
    n_classes: ClassVar[int | None] = None
    strict: ClassVar[bool] = True
    is_likelihood: ClassVar[bool] = False

    def compute_label_losses(self, proba: FloatArray) -> FloatArray:
        """Return the loss of each row for each label that it may have.

        Parameters
        ----------
        proba : ndarray of shape (n_samples, n_classes)
            What `canonical_proba` returned.

        Returns
        -------
        losses : ndarray of shape (n_samples, n_classes)
            Finite.
        """
        raise NotImplementedError

    def slope(self, proba: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the derivative of `compute_label_losses` along moving log-probabilities.

        Parameters
        ----------
        proba : ndarray of shape (n_samples, n_classes)
        rate : ndarray of shape (n_samples, n_classes)
            Derivatives of the logarithms. The mass stays 1: rows of ``proba * rate``
            sum to 0.

        Returns
        -------
        slopes : ndarray of shape (n_samples, n_classes)
            By default from central differences, to some 9 digits.
        """
        log = log_proba(proba)
        # A central difference serves losses whose author gives no derivative; the step
        # balances truncation and rounding.
        ahead = self.compute_label_losses(
            apply_softmax_or_sigmoid(log + _DIFFERENCE_STEP * rate)
        )
        behind = self.compute_label_losses(
            apply_softmax_or_sigmoid(log - _DIFFERENCE_STEP * rate)
        )
        return (ahead - behind) / (2 * _DIFFERENCE_STEP)

    def compute_row_losses(self, proba: FloatArray, codes: IntArray) -> FloatArray:
        """Return the loss of each row, shape (n_samples,).

        `codes` are positions of the labels.
        """
        return self.compute_label_losses(proba)[np.arange(len(codes)), codes]

    def compute_logit_losses(self, logits: FloatArray, codes: IntArray) -> FloatArray:
        """Return the loss of each row of the softmax of these logits."""
        return self.compute_row_losses(apply_softmax_or_sigmoid(logits), codes)

    def mean(self, predictions: "Predictions") -> float:
        """Return the weighted mean over the rows of `Predictions`."""
        return predictions.mean(
            self.compute_row_losses(predictions.proba, predictions.codes)
        )

    def expected(self, proba: FloatArray, truth: FloatArray) -> FloatArray:
        """Return the expected loss of each row.

        Labels are drawn from `truth`, which has the same shape.
        """
        return np.einsum("ij,ij->i", truth, self.compute_label_losses(proba))

    def divergence(self, proba: FloatArray, truth: FloatArray) -> FloatArray:
        """Return each row's expected loss above that of predicting `truth`, >= 0."""
        return self.expected(proba, truth) - self.expected(truth, truth)

    def get_undecided_prediction(self, n_classes: int) -> FloatArray:
        """Return the prediction for which all labels cost the same, shape (n_classes,).

        Equal probabilities, unless a loss treats the classes differently.
        """
        return np.full(n_classes, 1 / n_classes)

    def without_floor(self) -> "ProperLoss":
        """Return the loss without a bound for certain and wrong predictions.

        It is used for exact integrals.
        """
        return self

    def check_classes(self, n_classes: int) -> None:
        """Raise ValueError if the loss is not one of so many classes."""
        if self.n_classes not in (None, n_classes):
            raise invalid_input(
                expected=f"{self.n_classes} classes for {self.name}",
                got=str(n_classes),
                hint="Choose a loss of any number of classes, or pass one class against the others",
            )

    def measure(self) -> Measure:
        """Return the mean loss as a measure.

        It has a scorer: ``loss.measure().scorer()``.
        """
        return MeanLoss(self)

    @property
    def label(self) -> str:
        """Return the title and the unit, for an axis."""
        return f"{self.title} [{self.unit}]" if self.unit else self.title


class MeanLoss(Measure):
    """The measure of a loss that has none of its own; made by `ProperLoss.measure`."""

    def __init__(self, loss: ProperLoss) -> None:
        def mean_loss(predictions):
            """Mean of a proper loss.

            Parameters
            ----------
            {shared_parameters}
            """
            loss.check_classes(len(predictions.classes))
            return loss.mean(predictions)

        mean_loss.__name__ = mean_loss.__qualname__ = loss.name
        super().__init__(mean_loss, measure(loss=loss, in_report=False)(mean_loss).spec)
        self.loss = loss

    def __reduce__(self) -> Any:
        return MeanLoss, (self.loss,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeanLoss) and self.loss == other.loss

    def __hash__(self) -> int:
        return hash(self.loss)


#: The name of a registered loss, or an instance of one.
LossLike: TypeAlias = str | ProperLoss
