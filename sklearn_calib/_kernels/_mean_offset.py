"""Offsets on the logarithms of probabilities after which their means are given numbers."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from .._simplex_array import has_exact_log, log_proba
from .._typing import FloatArray
from ._newton import damped_newton

_STEPS = 300  # of a bracket that halves: enough for any pair of float64
_SCALINGS, _ALL_SCALINGS = 20, 2000  # before Newton's steps, and instead of them
_MANY = 200  # classes, of which a Hessian takes too long
_CLOSE = 1e-14
_LONGEST = 10.0  # step of an offset, so that targets out of reach end


class MeanOffset(NamedTuple):
    """What is added to the logarithms, 0 for the first class, and the means that it gives."""

    offset: FloatArray
    means: FloatArray


def logarithms(proba: FloatArray) -> FloatArray:
    """Exact ones of logits; of plain probabilities, where 0 stays 0, -inf."""
    if has_exact_log(proba):
        return np.asarray(log_proba(proba))
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(proba))


def reachable_means(proba: FloatArray, weight: FloatArray) -> FloatArray:
    """Of each class the open range of its mean: rows of exactly 0 and 1 cannot move; (k, 2)."""
    total, log = weight.sum(), logarithms(proba)
    never = np.isneginf(log)
    alone = (never.sum(axis=1) == log.shape[1] - 1)[:, None] & ~never
    return np.column_stack([weight @ alone / total, 1 - weight @ never / total])


def mean_offset(proba: FloatArray, weight: FloatArray, target: FloatArray) -> MeanOffset:
    """Offsets after which the weighted mean of rows proportional to p exp(offset) is `target`.

    Parameters
    ----------
    proba : ndarray of shape (n, k)
    weight : ndarray of shape (n,)
        Above 0.
    target : ndarray of shape (k,)
        Above 0, with sum 1; of two classes inside `reachable_means`.

    Notes
    -----
    Two classes: the mean rises with the offset, and between the target's log-odds less the largest
    and less the smallest of the rows it crosses the target; Newton's steps on the log-odds of the
    mean inside that bracket. More classes: the offsets minimise the convex function
    mean(log sum_k p_k exp(b_k)) - target . b, whose gradient is the mean less the target; some
    steps of iterative scaling, then Newton's steps that never raise it. Targets that zeros put out
    of reach have no minimum: the caller compares the means with the target. O(n k^2) a step, with
    more than 200 classes at most 2000 scalings of O(n k).
    """
    share = weight / weight.sum()
    log = logarithms(proba)
    if len(target) == 2:
        z = log[:, 1] - log[:, 0]
        inside = np.isfinite(z)
        zeros, ones = share[np.isneginf(z)].sum(), share[np.isposinf(z)].sum()
        aim = np.log(target[1] - ones) - np.log(target[0] - zeros)  # of the other rows' mean
        offset = np.array([0.0, _crossing(z[inside], share[inside], aim)])
    else:
        offset = _of_many(log, share, target)
    return MeanOffset(offset, share @ softmax(log + offset, axis=1))


def _crossing(z, share, aim):
    """The number a for which the mean of expit(z + a) has the log-odds `aim`."""
    low, high = aim - z.max(), aim - z.min()
    a = min(max(0.0, low), high)
    for _ in range(_STEPS):
        hit, miss = expit(z + a), expit(-(z + a))
        up, down = share @ hit, share @ miss
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            above = np.log(up) - np.log(down) - aim
            step = above * up * down / (share @ (hit * miss)) / share.sum()
        if above == 0:
            break
        low, high = (low, a) if above > 0 else (a, high)
        new = a - step
        if not low < new < high:
            new = low + (high - low) / 2
        if new == a or not low < new < high:
            break
        a = new
    return float(a)


def _of_many(log, share, target):
    k = len(target)
    offset = np.zeros(k)
    for _ in range(_SCALINGS if k <= _MANY else _ALL_SCALINGS):
        mean = share @ softmax(log + offset, axis=1)
        if (mean == 0).any() or np.abs(mean / target - 1).max() < _CLOSE:
            break
        offset += np.clip(np.log(target) - np.log(mean), -_LONGEST, _LONGEST)
    if k <= _MANY:
        return _newton(log, share, target, offset)
    return offset - offset[0]


def _newton(log, share, target, offset):
    """Steps on all offsets but the first that never raise the convex function."""

    def evaluate(b):
        moved = log + np.append(0.0, b)
        return share @ logsumexp(moved, axis=1) - target[1:] @ b, moved

    def direction(_, moved):
        q = softmax(moved, axis=1)
        mean = share @ q
        pull = (mean - target)[1:]
        curvature = (np.diag(mean) - q.T @ (q * share[:, None]))[1:, 1:]
        step = -np.linalg.lstsq(curvature, pull, rcond=None)[0]
        step *= min(1.0, _LONGEST / max(np.abs(step).max(), _LONGEST))
        return step, -pull @ step

    free = damped_newton(
        evaluate, direction, offset[1:] - offset[0], 1e-20 * target.min(), max_iter=100
    ).theta
    return np.append(0.0, free)
