"""Logistic regressions on one score, one for each group or label, drawn towards a given line."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ._newton import damped_newton

_TOLERANCE = 1e-13  # of the decrement


def shrunk_lines(z, target, weight, group, n_groups, centre, strength, spread):
    """(intercept, slope) of each group, as an array of shape (n_groups, 2).

    Each minimises sum w (log(1 + e^t) - y t) + strength / 2 ((a - a0)^2 + (b - b0)^2 spread^2) for
    t = a + b z, with (a0, b0) the centre. Strictly convex; Newton's method for all groups at once.
    A group without rows stays at the centre.
    """
    centre = np.asarray(centre, float)
    penalty = strength * np.array([1.0, spread**2])

    def total(values):
        return np.bincount(group, values, minlength=n_groups)

    def evaluate(line):
        t = line[group, 0] + line[group, 1] * z
        small = np.exp(-np.abs(t))
        losses = np.maximum(t, 0.0) + np.log1p(small) - target * t
        return weight @ losses + 0.5 * ((line - centre) ** 2 @ penalty).sum(), (t, small)

    def direction(line, rest):
        t, small = rest
        pull = weight * (target - np.where(t >= 0, 1.0, small) / (1.0 + small))
        curvature = weight * small / (1.0 + small) ** 2
        slope = np.stack([total(pull), total(pull * z)], axis=1) - (line - centre) * penalty
        h00 = total(curvature) + penalty[0]
        h01 = total(curvature * z)
        h11 = total(curvature * z * z) + penalty[1]
        step = np.stack(
            [h11 * slope[:, 0] - h01 * slope[:, 1], h00 * slope[:, 1] - h01 * slope[:, 0]], axis=1
        )
        step /= (h00 * h11 - h01 * h01)[:, None]
        return step, (slope * step).sum()

    return damped_newton(evaluate, direction, np.tile(centre, (n_groups, 1)), _TOLERANCE).theta


COMMON = np.inf
PENALTIES = (COMMON, 100.0, 10.0, 1.0, 0.1)
_WIN = 1e-7  # by less a weaker penalty does not win


class LabelColumns(NamedTuple):
    """All arrays of shape (n_samples, n_labels); weights are 0 where a label is unknown."""

    score: np.ndarray
    hit: np.ndarray
    weight: np.ndarray
    unit: np.ndarray  # what one row weighs

    @property
    def scale(self):
        """Weighted standard deviation of all scores; 1 where they are equal."""
        share = self.weight / self.weight.sum()
        mean = (share * self.score).sum()
        spread = np.sqrt((share * (self.score - mean) ** 2).sum())
        return float(spread) if spread > 0 else 1.0

    def column(self, label):
        return tuple(table[:, label] for table in self)


class ShrunkenFit(NamedTuple):
    lines: np.ndarray  # shape (n_labels, 2): intercepts and slopes
    penalty: float
    loo: dict  # approximate leave-one-out loss of each penalty, a mean over the weights


def fit_shrunken(labels, centre, penalties=PENALTIES):
    """The lines by the penalty of least leave-one-out loss, tried in this order.

    Parameters
    ----------
    labels : LabelColumns
    centre : array-like of shape (2,)
        Intercept and slope of the labels together.
    penalties : sequence of float > 0
        A penalty wins against those before it by at least 1e-7 nats.
    """
    scale, count = labels.scale, labels.score.shape[1]
    to_scaled = np.array([1.0, scale])
    moves = _moves_of_centre(labels, centre * to_scaled, scale)
    known = labels.weight > 0
    score, hit, weight = (table[known] for table in labels[:3])
    label = np.nonzero(known)[1]
    best, loo = None, {}
    for penalty in penalties:
        if penalty == COMMON:
            lines = np.tile(centre * to_scaled, (count, 1))
        else:
            lines = shrunk_lines(score, hit, weight, label, count, centre, penalty, scale)
            lines *= to_scaled
        loo[penalty] = _left_out(labels, scale, lines, moves, penalty)
        if best is None or loo[penalty] < loo[best[1]] - _WIN:
            best = lines / to_scaled, penalty
    return ShrunkenFit(*best, loo)


def _design(score, scale):
    return np.column_stack([np.ones_like(score), score / scale])


def _hessian(x, curvature, penalty=0.0):
    return (x * curvature[:, None]).T @ x + penalty * np.eye(2)


def _moves_of_centre(labels, centre, scale):
    """Where the common line goes without each row and all its labels, shape (n_samples, 2)."""
    n, count = labels.score.shape
    whole, own, pull = np.zeros((2, 2)), np.zeros((n, 2, 2)), np.zeros((n, 2))
    for label in range(count):
        score, hit, weight, unit = labels.column(label)
        x = _design(score, scale)
        mean = expit(x @ centre)
        variance = mean * (1 - mean)
        whole += _hessian(x, weight * variance)
        own += (unit * variance)[:, None, None] * x[:, :, None] * x[:, None, :]
        pull += (unit * (mean - hit))[:, None] * x
    ridge = 1e-9 * (np.trace(whole) + 1e-290) * np.eye(2)  # for a single row, or equal scores
    return np.linalg.solve(whole + ridge - own, pull[:, :, None])[:, :, 0]


def _left_out(labels, scale, lines, moves, penalty):
    """Mean log loss of labels predicted without their own row, by one Newton step.

    Without a row of unit u, mean m, variance v and label y the line of its label has the Hessian
    H - u v xx' and the gradient -u (m - y) x - tau move, where the common line moves as well.
    """
    total = 0.0
    for label, line in enumerate(lines):
        score, hit, weight, unit = labels.column(label)
        x = _design(score, scale)
        eta = x @ line
        if penalty == COMMON:
            eta = eta + (x * moves).sum(axis=1)
        else:
            mean = expit(eta)
            variance = mean * (1 - mean)
            inverse = np.linalg.inv(_hessian(x, weight * variance, penalty))
            half = x @ inverse
            own = unit * (half * x).sum(axis=1)
            shift = own * (mean - hit) + penalty * (half * moves).sum(axis=1)
            eta = eta + shift / (1 - own * variance)
        total += weight @ (np.logaddexp(0, eta) - hit * eta)
    return float(total / labels.weight.sum())
