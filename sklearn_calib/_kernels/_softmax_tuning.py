"""Penalties of a softmax regression, chosen by its approximate leave-one-out loss.

Without row i the logits u_i = A x_i + ... move, to first order in the row's weight, by
    (I - w G M)^-1 w G r,   M = diag(p) - p p',   r = p - e_y,   G = J H^-1 J'
with J the derivative of u_i in the coefficients and H the Hessian of the objective: the approximate
leave-one-out of ridge estimators (Rad and Maleki 2020). H has (k (k + 1))^2 entries. Its block of
class c, sum w p_c (1 - p_c) x x' + ridge, gives G a diagonal, the leverages x' H_c^-1 x; the other
blocks only say that moving all classes at once is free, which takes 1 of k off: a factor
(k - 1) / k. Rows where p_c (1 - p_c) is below _CUT are left out of H_c.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.linalg.blas import dsyrk

from ._softmax_regression import SoftmaxFit, evaluate_softmax, fit_softmax_regression

_CUT = 2e-3
_FACTOR, _FARTHEST = 10.0, 3  # neighbours of the search, and the largest power of it
_GAIN = 3e-4  # nats that a longer walk must bring
_MOST_ROWS = 5000  # that choose; the penalties are stated in units of 1 / n
_LEAST = 1e-3  # of the curvature that is left without a row


class TunedFit(NamedTuple):
    fit: SoftmaxFit
    off_diagonal: float  # factors of the squares in the objective
    own: float  # of the diagonal of A and of the intercepts
    leave_one_out_loss: float  # of the neighbour in the grid, from the rows that choose


def leave_one_out_losses(z, codes, weight, unit, fit, ridge_a, ridge_b):
    """The log loss of each row by the fit without `unit` of its weight, approximately.

    `z`, (k, n), and the rest are as in `fit_softmax_regression`, with weights that add up to 1. For
    weights that are repetitions, `unit` is that of one row.
    """
    k, n = z.shape
    proba = evaluate_softmax(z, codes, weight, fit.A, fit.b, ridge_a, ridge_b)[1]
    x, leverage = np.column_stack([z.T, np.ones(n)]), np.zeros((k, n))
    for c in range(k):
        spread = proba[c] * (1 - proba[c])
        rows = np.flatnonzero((spread > _CUT) | (codes == c))
        part = x[rows]
        rooted = part * np.sqrt(weight * spread)[rows, None]
        hessian = dsyrk(1.0, rooted.T, lower=1)  # half of a product
        hessian[np.diag_indices(k + 1)] += 2 * np.r_[ridge_a[c], ridge_b] + 1e-12
        factor = cho_factor(hessian, lower=True)[0]
        half = solve_triangular(factor, part.T, lower=True, check_finite=False)
        leverage[c, rows] = np.einsum("ij,ij->j", half, half)
    moved = unit * (k - 1) / k * leverage
    residual = proba.copy()
    residual[codes, np.arange(n)] -= 1
    left = np.maximum(1 - moved * proba, _LEAST)
    step, along = moved * residual / left, moved * proba / left
    step -= along * ((proba * step).sum(axis=0) / (1 + (proba * along).sum(axis=0)))
    logits = z + fit.A @ z + fit.b[:, None] + step
    logits -= logits.max(axis=0)
    return np.log(np.exp(logits).sum(axis=0)) - logits[codes, np.arange(n)]


def fit_tuned_softmax_regression(z, codes, weight, n_rows):
    """`fit_softmax_regression` with a full A; two penalties are chosen by leave-one-out.

    The objective has a k (k - 1) / n on the squares off the diagonal and d k / n on the others, for
    `n_rows` n. From a = d = 1 the search goes along a, then along d, by factors of _FACTOR while
    the loss falls; a parabola through the last three gives the factor that is used.
    """
    k, w = len(z), weight / weight.sum()
    some = np.arange(z.shape[1])
    if len(some) > _MOST_ROWS:
        some = np.sort(np.random.default_rng(0).permutation(len(some))[:_MOST_ROWS])
    part = np.ascontiguousarray(z[:, some]), codes[some], w[some] / w[some].sum()
    n_part = n_rows * w[some].sum()
    known, last = {}, None

    def ridges(powers, n):
        off, own = _FACTOR ** np.asarray(powers) * (k * (k - 1) / n, k / n)
        full = np.full((k, k), off)
        np.fill_diagonal(full, own)
        return full, float(own)

    def loss(powers):
        nonlocal last
        if powers not in known:
            pair = ridges(powers, n_part)
            last = fit_softmax_regression(*part, *pair, tol=1e-6, start=last)
            known[powers] = leave_one_out_losses(*part, 1.0 / n_part, last, *pair)
        return known[powers]

    at, best = _search(loss, part[2], n_part)
    ridge_a, ridge_b = ridges(best, n_rows)
    fit = fit_softmax_regression(z, codes, weight, ridge_a, ridge_b, start=last)
    return TunedFit(fit, float(ridge_a[0, -1]), ridge_b, float(part[2] @ known[at]))


def _search(losses, weight, n_rows):
    """The best powers of a grid found axis by axis, and those that parabolas put between them.

    A weaker penalty must gain half a standard error of the gain: what chance gains is lost again.
    """

    def gain(powers, other):
        gains = losses(powers) - losses(other)
        mean = weight @ gains
        return mean, np.sqrt(weight @ (gains - mean) ** 2 / n_rows)

    at, between = (0, 0), []
    for axis in (0, 1):
        for sign in (-1, 1):
            while abs(at[axis]) < _FARTHEST:
                mean, error = gain(at, _beside(at, axis, sign))
                if mean <= (max(_GAIN, 0.5 * error) if sign < 0 else _GAIN):
                    break
                at = _beside(at, axis, sign)
        low, high = (-gain(at, _beside(at, axis, sign))[0] for sign in (-1, 1))
        vertex = (low - high) / (2 * (low + high)) if low + high > 0 else 0.0
        between.append(at[axis] + np.clip(vertex, 0.0 if low < 0 else -0.5, 0.5))
    return at, tuple(between)


def _beside(powers, axis, sign):
    return tuple(power + sign * (i == axis) for i, power in enumerate(powers))
