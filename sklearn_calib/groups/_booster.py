"""Rounds of small trees on the log-odds: what multicalibration of two classes is made of."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from .._kernels._shrunk_lines import shrunk_lines
from .._typing import AnyArray, FloatArray, IntArray
from ._columns import Coding, bins_of_values, value_edges

FARTHEST = 36.0  # log-odds beyond which float64 probabilities do not tell more
GAIN = 1e-6  # nats by which a round has to lower the loss of the folds


class Settings(NamedTuple):
    """The numbers that trees and rounds need."""

    n_trees: int
    learning_rate: float
    max_leaves: int
    least: float  # weight of a leaf
    l2: float
    min_gain: float
    n_bins: int
    monotone: bool
    use_score: bool


class Rows(NamedTuple):
    """Rows of two classes: the log-odds before correction, the coded columns, labels, weights."""

    margin: FloatArray
    columns: list[AnyArray]
    target: FloatArray
    weight: FloatArray

    def take(self, rows: IntArray) -> "Rows":
        """Some of the rows."""
        columns = [column[rows] for column in self.columns]
        return Rows(self.margin[rows], columns, self.target[rows], self.weight[rows])


class Round(NamedTuple):
    """margin -> slope * (margin + trees) + intercept; `edges` are the bins of the margin."""

    edges: FloatArray
    trees: tuple[Any, ...]
    intercept: float
    slope: float

    def apply(self, margin: FloatArray, codes: AnyArray) -> FloatArray:
        """The next margin; writes the bins of this one into the last column of the codes."""
        from .._kernels._offset_trees import add_trees

        bins_of_values(margin, self.edges, codes[:, -1])
        raised = add_trees(self.trees, codes, margin)
        return np.clip(self.slope * raised + self.intercept, -FARTHEST, FARTHEST)


class Correction:
    """A chain of rounds, fitted one after the other on the same rows."""

    def __init__(self, rows: Rows, settings: Settings) -> None:
        residual = rows.weight * (rows.target - expit(rows.margin))
        self.settings = settings
        self.coding = Coding(rows.columns, residual, rows.weight, settings.n_bins)
        self.rounds: list[Round] = []
        self.gains = np.zeros(len(rows.columns) + 1)

    def blank(self, rows: Rows) -> AnyArray:
        """The bins of the columns, and a place for those of the margin."""
        codes = np.zeros((len(rows.margin), len(rows.columns) + 1), np.uint8)
        self.coding.codes(rows.columns, codes)
        return codes

    def advance(self, rows: Rows, margin: FloatArray, codes: AnyArray) -> FloatArray:
        """Fit one more round to the training rows; their margin after it."""
        from .._kernels._offset_trees import boost

        s = self.settings
        edges = value_edges(margin, rows.weight, s.n_bins) if s.use_score else np.empty(0)
        bins_of_values(margin, edges, codes[:, -1])
        trees, raised, gains = boost(
            codes,
            rows.target,
            rows.weight,
            margin,
            n_trees=s.n_trees,
            learning_rate=s.learning_rate,
            max_leaves=s.max_leaves,
            least=s.least,
            l2=s.l2,
            min_gain=s.min_gain,
            rising=codes.shape[1] - 1 if s.monotone else -1,
        )
        self.gains += gains
        intercept, slope = _line(raised, rows, s)
        self.rounds.append(Round(edges, trees, intercept, slope))
        return np.clip(slope * raised + intercept, -FARTHEST, FARTHEST)

    def predict(self, rows: Rows) -> FloatArray:
        """The corrected log-odds of any rows."""
        codes, margin = self.blank(rows), rows.margin
        for one in self.rounds:
            margin = one.apply(margin, codes)
        return margin


def _line(score, rows, settings):
    """Intercept and slope of the logistic regression on a score, drawn towards 0 and 1.

    As strongly as a leaf is drawn towards 0, so that they are finite where the score separates the
    classes.
    """
    one = np.zeros(len(score), np.intp)
    spread = weighted_deviation(score, rows.weight)

    def fitted(z):
        return shrunk_lines(z, rows.target, rows.weight, one, 1, (0.0, 1.0), settings.l2, spread)[0]

    intercept, slope = fitted(score)
    if settings.monotone and slope < 0:
        return float(fitted(np.zeros_like(score))[0]), 0.0
    return float(intercept), float(slope)


def weighted_deviation(values: FloatArray, weight: FloatArray) -> float:
    """Standard deviation; 1 where all values are equal."""
    values = values - np.average(values, weights=weight)
    return float(np.sqrt(np.average(values**2, weights=weight))) or 1.0


class _Fold:
    """A correction in the making, and the rows that judge it."""

    def __init__(self, rows, train, test, settings):
        self.rows, self.held = rows.take(train), rows.take(test)
        self.correction = Correction(self.rows, settings)
        self.codes = self.correction.blank(self.rows)
        self.held_codes = self.correction.blank(self.held)
        self.margin, self.held_margin = self.rows.margin, self.held.margin

    def advance(self):
        self.margin = self.correction.advance(self.rows, self.margin, self.codes)
        self.held_margin = self.correction.rounds[-1].apply(self.held_margin, self.held_codes)

    def loss(self):
        return loss_sum(self.held_margin, self.held)


def loss_sum(margin: FloatArray, rows: Rows) -> float:
    """The weighted log loss of the rows, in nats."""
    return float(rows.weight @ (np.logaddexp(0.0, margin) - rows.target * margin))


def cross_validated(
    rows: Rows, folds: list[Any], settings: Settings, n_rounds: int, patience: int
) -> tuple[int, FloatArray]:
    """The number of rounds with the smallest loss of the rows left out, and the losses from 0 on.

    All folds advance together, until `patience` rounds in turn have not lowered the loss.
    """
    if not folds:
        return 0, np.array([loss_sum(rows.margin, rows) / rows.weight.sum()])
    states = [_Fold(rows, train, test, settings) for train, test in folds]
    mass = sum(state.held.weight.sum() for state in states)
    losses, best = [sum(state.loss() for state in states) / mass], 0
    for number in range(1, n_rounds + 1):
        for state in states:
            state.advance()
        losses.append(sum(state.loss() for state in states) / mass)
        if losses[number] < losses[best] - GAIN:
            best = number
        elif number - best >= patience:
            break
    return best, np.array(losses)


def fit_correction(rows: Rows, settings: Settings, n_rounds: int) -> Correction:
    """A chain of so many rounds."""
    correction = Correction(rows, settings)
    codes, margin = correction.blank(rows), rows.margin
    for _ in range(n_rounds):
        margin = correction.advance(rows, margin, codes)
    return correction
