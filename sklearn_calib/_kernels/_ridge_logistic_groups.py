"""Logistic regressions on one score, one for each group or label, drawn towards a given line."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ._newton import minimise_by_newton

# Newton's method ends at a smaller decrement.
_DECREMENT_TOLERANCE = 1e-13


def fit_group_line_coefficients(
    log_odds, target, weight, group, n_groups, centre, strength, spread
):
    """Return (intercept, slope) of each group, of shape (n_groups, 2).

    Each minimises sum w (log(1 + e^t) - y t) + strength / 2 ((a - a0)^2 + (b - b0)^2
    spread^2) for t = a + b z, with (a0, b0) the centre. Strictly convex; Newton's
    method for all groups at once. A group without rows stays at the centre.
    """
    centre = np.asarray(centre, float)
    # In units of the spread of the scores, intercept and slope are penalised alike.
    penalty = strength * np.array([1.0, spread**2])

    def sum_groups(values):
        return np.bincount(group, values, minlength=n_groups)

    def evaluate_penalised_loss_and_score_terms(lines):
        t = lines[group, 0] + lines[group, 1] * log_odds
        small = np.exp(-np.abs(t))
        losses = np.maximum(t, 0.0) + np.log1p(small) - target * t
        return weight @ losses + 0.5 * ((lines - centre) ** 2 @ penalty).sum(), (
            t,
            small,
        )

    def find_step_and_decrement(lines, terms):
        """Solve the 2 x 2 Newton system of every group."""
        t, small = terms
        pull = weight * (target - np.where(t >= 0, 1.0, small) / (1.0 + small))
        curvature = weight * small / (1.0 + small) ** 2
        slope = (
            np.stack([sum_groups(pull), sum_groups(pull * log_odds)], axis=1)
            - (lines - centre) * penalty
        )
        h00 = sum_groups(curvature) + penalty[0]
        h01 = sum_groups(curvature * log_odds)
        h11 = sum_groups(curvature * log_odds * log_odds) + penalty[1]
        step = np.stack(
            [
                h11 * slope[:, 0] - h01 * slope[:, 1],
                h00 * slope[:, 1] - h01 * slope[:, 0],
            ],
            axis=1,
        )
        step /= (h00 * h11 - h01 * h01)[:, None]
        return step, (slope * step).sum()

    return minimise_by_newton(
        evaluate_penalised_loss_and_score_terms,
        find_step_and_decrement,
        np.tile(centre, (n_groups, 1)),
        _DECREMENT_TOLERANCE,
    ).theta


COMMON_LINE_PENALTY = np.inf
DEFAULT_PENALTIES = (COMMON_LINE_PENALTY, 100.0, 10.0, 1.0, 0.1)
# A weaker penalty has to lower the loss by more than this.
_MIN_LOSS_GAIN = 1e-7


class MultilabelRidgeInput(NamedTuple):
    """All arrays of shape (n_samples, n_labels); weights are 0 if a label is unknown."""

    score: np.ndarray
    outcome: np.ndarray
    weight: np.ndarray
    # The weight of one row.
    unit_weight: np.ndarray

    @property
    def score_standard_deviation(self):
        """Return the weighted standard deviation of all scores; 1 if they are equal."""
        weight_fraction = self.weight / self.weight.sum()
        mean = (weight_fraction * self.score).sum()
        spread = np.sqrt((weight_fraction * (self.score - mean) ** 2).sum())
        return float(spread) if spread > 0 else 1.0

    def get_label_columns(self, label):
        return tuple(table[:, label] for table in self)


class ShrunkenLinesFit(NamedTuple):
    # Of shape (n_labels, 2): intercepts and slopes.
    lines: np.ndarray
    penalty: float
    # The approximate leave-one-out loss of each penalty, a mean over the weights.
    loss_by_penalty: dict


def choose_shrunken_lines(labels, centre, penalties=DEFAULT_PENALTIES):
    """Return the lines by the penalty of least leave-one-out loss, tried in this order.

    Parameters
    ----------
    labels : MultilabelRidgeInput
    centre : array-like of shape (2,)
        Intercept and slope of the labels together.
    penalties : sequence of float > 0
        A penalty wins against those before it by at least 1e-7 nats.
    """
    scale = labels.score_standard_deviation
    count = labels.score.shape[1]
    to_scaled = np.array([1.0, scale])
    # The common line is itself fitted to all rows, so a row that is left out moves the
    # centre of the shrinkage too.
    moves = _compute_centre_moves_by_left_out_row(labels, centre * to_scaled, scale)
    is_known = labels.weight > 0
    score, outcome, weight = (table[is_known] for table in labels[:3])
    label = np.nonzero(is_known)[1]
    best = None
    loss_by_penalty = {}
    for penalty in penalties:
        if penalty == COMMON_LINE_PENALTY:
            lines = np.tile(centre * to_scaled, (count, 1))
        else:
            lines = fit_group_line_coefficients(
                score, outcome, weight, label, count, centre, penalty, scale
            )
            lines *= to_scaled
        loss_by_penalty[penalty] = _compute_left_out_loss(
            labels, scale, lines, moves, penalty
        )
        # Ties go to the stronger penalty, which is tried first.
        if (
            best is None
            or loss_by_penalty[penalty] < loss_by_penalty[best[1]] - _MIN_LOSS_GAIN
        ):
            best = lines / to_scaled, penalty
    return ShrunkenLinesFit(*best, loss_by_penalty)


def _make_design(score, scale):
    return np.column_stack([np.ones_like(score), score / scale])


def _compute_hessian(x, curvature, penalty=0.0):
    return (x * curvature[:, None]).T @ x + penalty * np.eye(2)


def _compute_centre_moves_by_left_out_row(labels, centre, scale):
    """Return how the common line moves without each row: (n_samples, 2).

    A row leaves with all its labels.
    """
    n, count = labels.score.shape
    total = np.zeros((2, 2))
    row_information = np.zeros((n, 2, 2))
    pull = np.zeros((n, 2))
    for label in range(count):
        score, outcome, weight, unit_weight = labels.get_label_columns(label)
        x = _make_design(score, scale)
        mean = expit(x @ centre)
        variance = mean * (1 - mean)
        total += _compute_hessian(x, weight * variance)
        row_information += (
            (unit_weight * variance)[:, None, None] * x[:, :, None] * x[:, None, :]
        )
        pull += (unit_weight * (mean - outcome))[:, None] * x
    # The ridge keeps the matrix invertible for a single row or equal scores.
    ridge = 1e-9 * (np.trace(total) + 1e-290) * np.eye(2)
    return np.linalg.solve(total + ridge - row_information, pull[:, :, None])[:, :, 0]


def _compute_left_out_loss(labels, scale, lines, moves, penalty):
    """Return the mean log loss of labels predicted without their own row.

    One Newton step approximates each fit.

    Without a row of unit u, mean m, variance v and label y the line of its label has
    the Hessian H - u v xx' and the gradient -u (m - y) x - tau move, if the common line
    moves as well.
    """
    total = 0.0
    for label, line in enumerate(lines):
        score, outcome, weight, unit_weight = labels.get_label_columns(label)
        x = _make_design(score, scale)
        eta = x @ line
        if penalty == COMMON_LINE_PENALTY:
            eta = eta + (x * moves).sum(axis=1)
        else:
            mean = expit(eta)
            variance = mean * (1 - mean)
            inverse = np.linalg.inv(_compute_hessian(x, weight * variance, penalty))
            half = x @ inverse
            row_leverage = unit_weight * (half * x).sum(axis=1)
            shift = row_leverage * (mean - outcome) + penalty * (half * moves).sum(
                axis=1
            )
            # One Newton step without the row, from the fit to all rows; the denominator
            # removes the row's own curvature.
            eta = eta + shift / (1 - row_leverage * variance)
        total += weight @ (np.logaddexp(0, eta) - outcome * eta)
    return float(total / labels.weight.sum())
