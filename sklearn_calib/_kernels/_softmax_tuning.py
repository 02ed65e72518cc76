"""Penalties of a softmax regression, chosen by its approximate leave-one-out loss.

Without row i the logits u_i = A x_i + ... move, to first order in the row's weight, by
    (I - w G M)^-1 w G r,   M = diag(p) - p p',   r = p - e_y,   G = J H^-1 J'
with J the derivative of u_i in the coefficients and H the Hessian of the objective: the
approximate leave-one-out of ridge estimators (Rad and Maleki 2020). H has (k (k + 1))^2
entries. Its block of class c, sum w p_c (1 - p_c) x x' + ridge, gives G a diagonal, the
leverages x' H_c^-1 x; the other blocks only make moving all classes at once free, which
removes 1 of k: a factor (k - 1) / k. Rows in which p_c (1 - p_c) is below
`_MIN_ROW_LABEL_VARIANCE` are left out of H_c.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.linalg.blas import dsyrk

from ._softmax_regression import (
    SoftmaxFit,
    compute_softmax_loss_and_proba,
    fit_softmax_regression,
)

_MIN_ROW_LABEL_VARIANCE = 2e-3
# The factor between neighbours of the search, and its largest power.
_PENALTY_GRID_FACTOR = 10.0
_MAX_PENALTY_POWER = 3
# A longer walk must gain so many nats.
_MIN_LONG_WALK_GAIN_NATS = 3e-4
# Rows that choose a penalty; penalties are in units of 1 / n.
_MAX_TUNING_ROWS = 5000
# The fraction of the curvature that is left without a row.
_MIN_REMAINING_CURVATURE = 1e-3


class TunedFit(NamedTuple):
    fit: SoftmaxFit
    # The factors of the squares in the objective: for the entries of A off the
    # diagonal, and for its diagonal and the intercepts.
    off_diagonal: float
    diagonal: float
    # The loss of the neighbour in the grid, from the rows that choose the penalty.
    leave_one_out_loss: float


def compute_leave_one_out_losses(z, y_encoded, weight, unit, fit, ridge_a, ridge_b):
    """Return each row's log loss by the fit without `unit` of its weight.

    The losses are exact to first order.

    `z`, (k, n), and the rest are as in `fit_softmax_regression`, with weights that add
    up to 1. For weights that are repetitions, `unit` is that of one row.
    """
    k, n = z.shape
    proba = compute_softmax_loss_and_proba(
        z, y_encoded, weight, fit.A, fit.b, ridge_a, ridge_b
    )[1]
    x = np.column_stack([z.T, np.ones(n)])
    leverage = np.zeros((k, n))
    for c in range(k):
        spread = proba[c] * (1 - proba[c])
        # Rows that are almost certain of this class or its absence add nothing to its
        # Hessian.
        rows = np.flatnonzero((spread > _MIN_ROW_LABEL_VARIANCE) | (y_encoded == c))
        kept = x[rows]
        rooted = kept * np.sqrt(weight * spread)[rows, None]
        # Only the lower half of the symmetric product is computed.
        hessian = dsyrk(1.0, rooted.T, lower=1)
        hessian[np.diag_indices(k + 1)] += 2 * np.r_[ridge_a[c], ridge_b] + 1e-12
        factor = cho_factor(hessian, lower=True)[0]
        half = solve_triangular(factor, kept.T, lower=True, check_finite=False)
        leverage[c, rows] = np.einsum("ij,ij->j", half, half)
    row_leverage = unit * (k - 1) / k * leverage
    residual = proba.copy()
    residual[y_encoded, np.arange(n)] -= 1
    remaining_curvature = np.maximum(1 - row_leverage * proba, _MIN_REMAINING_CURVATURE)
    step = row_leverage * residual / remaining_curvature
    along = row_leverage * proba / remaining_curvature
    # Sherman and Morrison's formula for the rank-one part p p' of the curvature.
    step -= along * ((proba * step).sum(axis=0) / (1 + (proba * along).sum(axis=0)))
    logits = z + fit.A @ z + fit.b[:, None] + step
    logits -= logits.max(axis=0)
    return np.log(np.exp(logits).sum(axis=0)) - logits[y_encoded, np.arange(n)]


def fit_tuned_softmax_regression(z, y_encoded, weight, n_rows) -> TunedFit:
    """Fit `fit_softmax_regression` with a full A and two tuned penalties.

    The objective has a k (k - 1) / n on the squares off the diagonal and d k / n on the
    others, for `n_rows` n. From a = d = 1 the search goes along a, then along d, by
    factors of `_PENALTY_GRID_FACTOR` while the loss falls; a parabola through the last three
    gives the factor that is used.
    """
    k = len(z)
    w = weight / weight.sum()
    chosen = np.arange(z.shape[1])
    if len(chosen) > _MAX_TUNING_ROWS:
        shuffled = np.random.default_rng(0).permutation(len(chosen))
        chosen = np.sort(shuffled[:_MAX_TUNING_ROWS])
    share = w[chosen].sum()
    tuning_rows = (
        np.ascontiguousarray(z[:, chosen]),
        y_encoded[chosen],
        w[chosen] / share,
    )
    n_part = n_rows * share
    losses = {}
    last = None

    def make_coef_and_intercept_ridges(penalty_powers, n):
        unit = (k * (k - 1) / n, k / n)
        off, diagonal = _PENALTY_GRID_FACTOR ** np.asarray(penalty_powers) * unit
        full = np.full((k, k), off)
        np.fill_diagonal(full, diagonal)
        return full, float(diagonal)

    def get_losses(powers):
        """Return the leave-one-out losses of the tuning rows for powers of both penalties."""
        nonlocal last
        if powers not in losses:
            pair = make_coef_and_intercept_ridges(powers, n_part)
            # Neighbouring penalties have close solutions, so each fit starts from the
            # last one.
            last = fit_softmax_regression(*tuning_rows, *pair, tol=1e-6, start=last)
            losses[powers] = compute_leave_one_out_losses(
                *tuning_rows, 1.0 / n_part, last, *pair
            )
        return losses[powers]

    grid_powers, best = _find_grid_and_refined_powers(
        get_losses, tuning_rows[2], n_part
    )
    ridge_a, ridge_b = make_coef_and_intercept_ridges(best, n_rows)
    fit = fit_softmax_regression(z, y_encoded, weight, ridge_a, ridge_b, start=last)
    return TunedFit(
        fit,
        float(ridge_a[0, -1]),
        ridge_b,
        float(tuning_rows[2] @ losses[grid_powers]),
    )


def _find_grid_and_refined_powers(compute_losses, weight, n_rows):
    """Search a grid of powers axis by axis, and refine them by parabolas.

    A weaker penalty must gain half a standard error of the gain: what chance gains is
    lost again.
    """

    def compute_gain_and_error(powers, other):
        gains = compute_losses(powers) - compute_losses(other)
        mean = weight @ gains
        return mean, np.sqrt(weight @ (gains - mean) ** 2 / n_rows)

    grid_powers = (0, 0)
    between = []
    for axis in (0, 1):
        for sign in (-1, 1):
            while abs(grid_powers[axis]) < _MAX_PENALTY_POWER:
                # A step to a weaker penalty needs a gain that exceeds half its own
                # standard error, because noise favours flexible models.
                neighbour = _change_penalty_power(grid_powers, axis, sign)
                mean, error = compute_gain_and_error(grid_powers, neighbour)
                min_gain = _MIN_LONG_WALK_GAIN_NATS
                if sign < 0:
                    min_gain = max(min_gain, 0.5 * error)
                if mean <= min_gain:
                    break
                grid_powers = neighbour
        neighbours = [
            _change_penalty_power(grid_powers, axis, sign) for sign in (-1, 1)
        ]
        low, high = (
            -compute_gain_and_error(grid_powers, powers)[0] for powers in neighbours
        )
        # The vertex of the parabola through the losses at the grid point and its two
        # neighbours.
        vertex = (low - high) / (2 * (low + high)) if low + high > 0 else 0.0
        between.append(
            grid_powers[axis] + np.clip(vertex, 0.0 if low < 0 else -0.5, 0.5)
        )
    return grid_powers, tuple(between)


def _change_penalty_power(powers, axis, sign):
    return tuple(power + sign * (i == axis) for i, power in enumerate(powers))
