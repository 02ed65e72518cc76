"""Rounds of small trees on the log-odds: what multicalibration of two classes is made of."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from .._kernels._ridge_logistic_groups import fit_group_line_coefficients
from .._sklearn_compat import (
    NONNEGATIVE_INTEGER,
    NONNEGATIVE_REAL,
    POSITIVE_INTEGER,
    POSITIVE_REAL,
)
from .._typing import CV, AnyArray, FloatArray, IntArray, Self
from ._group_columns import (
    MAX_COLUMN_BINS,
    ColumnBinner,
    compute_inner_bin_edges,
    fill_bin_codes_with_zero_if_nan,
)

# Beyond these log-odds float64 probabilities do not differ.
# Float64 probabilities of larger log-odds do not differ.
MAX_ABS_LOG_ODDS = 36.0
# The folds are evaluated after this many trees.
TREES_PER_EVALUATION = 10
# A round has to lower the loss of the folds by at least this much.
MIN_LOSS_GAIN_NATS = 1e-6


class BoosterOptionsMixin:
    """Base of the estimators that are corrected by rounds of trees: their parameters."""

    _parameter_constraints: ClassVar = {
        "n_rounds": [NONNEGATIVE_INTEGER],
        "n_trees": [POSITIVE_INTEGER],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "max_leaves": [Interval(Integral, 2, 256, closed="both")],
        "min_samples_leaf": [
            Interval(Real, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "l2": [POSITIVE_REAL],
        "min_gain": [NONNEGATIVE_REAL],
        "n_bins": [Interval(Integral, 2, MAX_COLUMN_BINS, closed="both")],
        "cv": ["cv_object"],
        "patience": [POSITIVE_INTEGER],
        "monotone": ["boolean"],
        "use_score": ["boolean"],
    }

    def __init__(
        self,
        *,
        n_rounds: int = 20,
        n_trees: int = 100,
        learning_rate: float = 0.1,
        max_leaves: int = 5,
        min_samples_leaf: float | Literal["auto"] = "auto",
        l2: float = 1.0,
        min_gain: float = 0.15,
        n_bins: int = 64,
        cv: CV = 5,
        patience: int = 1,
        monotone: bool = False,
        use_score: bool = True,
    ) -> None:
        self.n_rounds = n_rounds
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.min_gain = min_gain
        self.n_bins = n_bins
        self.cv = cv
        self.patience = patience
        self.monotone = monotone
        self.use_score = use_score

    def _count_steps_and_trees(self):
        """Return the number of steps in a round, and of trees in a step."""
        return -(-self.n_trees // TREES_PER_EVALUATION), min(
            TREES_PER_EVALUATION, int(self.n_trees)
        )


class BoosterRows(NamedTuple):
    """Rows of two classes: the log-odds before correction, the coded columns, labels, weights.

    Trees read columns of features beside the scores, which `FitInput` has by name and
    uncoded.
    """

    margin: FloatArray
    columns: list[AnyArray]
    target: FloatArray
    weight: FloatArray

    def take_rows(self, rows: IntArray) -> "BoosterRows":
        """Return some of the rows."""
        columns = [column[rows] for column in self.columns]
        return BoosterRows(
            self.margin[rows],
            columns,
            self.target[rows],
            self.weight[rows],
        )


class BoosterRound(NamedTuple):
    """margin -> slope * (margin + trees) + intercept; `edges` are the bins of the margin.

    `trees` has one block of them, and `lines` one (intercept, slope), for each step.
    """

    edges: FloatArray
    trees: list[Any]
    lines: list[tuple[float, float]]

    def apply_last_line(self, raised: FloatArray) -> FloatArray:
        """Map the margin with the line of the last step."""
        intercept, slope = self.lines[-1]
        return np.clip(slope * raised + intercept, -MAX_ABS_LOG_ODDS, MAX_ABS_LOG_ODDS)


class _MarginUpdater:
    """Rows that follow a correction as it grows: their bins and their log-odds."""

    def __init__(self, rows, coding):
        self.rows = rows
        self.margin = rows.margin
        # The margin before the round, plus the trees of the round.
        self.raised = rows.margin
        self.codes = np.zeros((len(rows.margin), len(rows.columns) + 1), np.uint8)
        coding.write_bins(rows.columns, self.codes)

    def begin_round(self, edges):
        # Trees of a round are added to the margin at its start, and the line is
        # refitted after each step.
        self.raised = self.margin
        fill_bin_codes_with_zero_if_nan(self.margin, edges, self.codes[:, -1])

    def update_margins_by_block(self, round_, block):
        from .._kernels._offset_trees import sum_offset_and_tree_values

        self.raised = sum_offset_and_tree_values(block, self.codes, self.raised)
        self.margin = round_.apply_last_line(self.raised)


class BoostingRounds:
    """Rounds that are fitted one after the other on the same rows, in steps of some trees each."""

    def __init__(self, rows: BoosterRows, n_bins: int) -> None:
        # Bins of categories are ordered by their mean residual.
        residual = rows.weight * (rows.target - expit(rows.margin))
        self.coding = ColumnBinner(rows.columns, residual, rows.weight, n_bins)
        self.rounds: list[BoosterRound] = []
        # The gain of each column, one array for each step.
        self.gains: list[FloatArray] = []

    def grow_step(
        self,
        track: _MarginUpdater,
        options: BoosterOptionsMixin,
        min_leaf_weight: float,
        followers: Sequence[_MarginUpdater] = (),
    ) -> None:
        """Grow one more step on the training rows, with leaves of at least `min_leaf_weight`."""
        from .._kernels._offset_trees import boost_trees_and_get_log_odds_and_gains

        s = options
        rows = track.rows
        n_steps, n_trees = s._count_steps_and_trees()
        # A new round bins the corrected score again, as multicalibration needs groups
        # of the current predictions.
        if not self.rounds or len(self.rounds[-1].trees) == n_steps:
            edges = np.empty(0)
            if s.use_score:
                edges = compute_inner_bin_edges(track.margin, rows.weight, s.n_bins)
            self.rounds.append(BoosterRound(edges, [], []))
            for other_track in (track, *followers):
                other_track.begin_round(edges)
        block, track.raised, gains = boost_trees_and_get_log_odds_and_gains(
            track.codes,
            rows.target,
            rows.weight,
            track.raised,
            # The last column is the score.
            unordered=[*self.coding.unordered, False],
            n_trees=n_trees,
            learning_rate=s.learning_rate,
            max_leaves=s.max_leaves,
            min_weight=min_leaf_weight,
            l2=s.l2,
            min_gain=s.min_gain,
            rising_column=track.codes.shape[1] - 1 if s.monotone else -1,
        )
        last = self.rounds[-1]
        last.trees.append(block)
        last.lines.append(_fit_line(track.raised, rows, s))
        self.gains.append(gains)
        track.margin = last.apply_last_line(track.raised)
        for other_track in followers:
            other_track.update_margins_by_block(last, block)

    def keep_first_steps_in_place(self, n_steps: int) -> Self:
        """Return the same rounds with their first steps only."""
        kept: list[BoosterRound] = []
        self.gains = self.gains[:n_steps]
        while n_steps > 0:
            last_round = self.rounds[len(kept)]
            kept.append(
                BoosterRound(
                    last_round.edges,
                    last_round.trees[:n_steps],
                    last_round.lines[:n_steps],
                )
            )
            n_steps -= len(last_round.trees)
        self.rounds = kept
        return self

    def predict(self, rows: BoosterRows) -> FloatArray:
        """Predict the corrected log-odds of any rows."""
        track = _MarginUpdater(rows, self.coding)
        for each_round in self.rounds:
            track.begin_round(each_round.edges)
            for block in each_round.trees:
                track.update_margins_by_block(each_round, block)
        return track.margin


def _fit_line(score, rows, options):
    """Fit a logistic regression on a score, shrunk towards intercept 0 and slope 1.

    As strongly as a leaf is drawn towards 0, so that they are finite if the score
    separates the classes.
    """
    single_group = np.zeros(len(score), np.intp)
    spread = compute_weighted_deviation_or_one(score, rows.weight)

    def fit_shrunken_line(z):
        return fit_group_line_coefficients(
            z,
            rows.target,
            rows.weight,
            single_group,
            1,
            (0.0, 1.0),
            options.l2,
            spread,
        )[0]

    intercept, slope = fit_shrunken_line(score)
    # A negative slope would reverse the order of the scores; a constant is the best
    # monotone line.
    if options.monotone and slope < 0:
        return float(fit_shrunken_line(np.zeros_like(score))[0]), 0.0
    return float(intercept), float(slope)


def compute_weighted_deviation_or_one(values: FloatArray, weight: FloatArray) -> float:
    """Compute the standard deviation; 1 if all values are equal."""
    values = values - np.average(values, weights=weight)
    return float(np.sqrt(np.average(values**2, weights=weight))) or 1.0


def sum_losses(margin: FloatArray, rows: BoosterRows) -> float:
    """Compute the weighted log loss of the rows, in nats."""
    return float(rows.weight @ (np.logaddexp(0.0, margin) - rows.target * margin))


def cross_validate_step_count(
    rows: BoosterRows,
    start_margin: FloatArray,
    folds: list[Any],
    options: BoosterOptionsMixin,
    min_leaf_weight: float,
) -> tuple[int, FloatArray, list[BoostingRounds]]:
    """Return the number of steps with the smallest held-out loss, and all losses.

    Also the folds' rounds, of so many steps. 0 steps leave the log-odds `start_margin`.
    All folds advance together, until the steps of `patience` rounds have not lowered
    the loss.
    """
    if not folds:
        return 0, np.array([sum_losses(start_margin, rows) / rows.weight.sum()]), []
    fold_rounds = [
        BoostingRounds(rows.take_rows(train), options.n_bins) for train, _ in folds
    ]
    # For each fold, a track of the rows that are learned from and one of those that
    # judge.
    tracks = []
    for rounds, (train, test) in zip(fold_rounds, folds, strict=True):
        learned = _MarginUpdater(rows.take_rows(train), rounds.coding)
        held = _MarginUpdater(rows.take_rows(test), rounds.coding)
        tracks.append((learned, held))
    mass = sum(held.rows.weight.sum() for _, held in tracks)
    n_steps, _ = options._count_steps_and_trees()
    start_loss = 0.0
    for _, test in folds:
        start_loss += sum_losses(start_margin[test], rows.take_rows(test))
    losses = [start_loss / mass]
    best_step = 0
    for number in range(1, options.n_rounds * n_steps + 1):
        for rounds, (train, held) in zip(fold_rounds, tracks, strict=True):
            rounds.grow_step(train, options, min_leaf_weight, [held])
        loss = sum(sum_losses(held.margin, held.rows) for _, held in tracks)
        losses.append(loss / mass)
        # The first of nearly equal numbers of steps is kept.
        if losses[number] < losses[best_step] - MIN_LOSS_GAIN_NATS:
            best_step = number
        elif number - best_step >= options.patience * n_steps:
            break
    return (
        best_step,
        np.array(losses),
        [rounds.keep_first_steps_in_place(best_step) for rounds in fold_rounds],
    )
