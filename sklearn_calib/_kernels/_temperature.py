"""Temperature scaling: a safeguarded Halley iteration on the convex objective in beta = 1/T.

With d_ic = z_ic - max_c z_ic <= 0 and S_j = sum_c exp(beta d_ic) d_ic^j the objective and its
derivatives are
    L(beta) = sum_i w_i (log S_0 - beta d_{i,y})      L'   = sum w (E_1 - d_y)
    L''     = sum w (E_2 - E_1^2)                     L''' = sum w (E_3 - 3 E_1 E_2 + 2 E_1^3)
with E_j = S_j / S_0. L is convex in beta, and not in the temperature.
"""

import os
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from .._simplex_array import LARGEST_LOG_LOSS, iter_row_blocks

BETA_MIN, BETA_MAX = np.exp(-16.0), np.exp(16.0)  # the box of Berta et al. (2025), for unit logits
_BLOCK_ENTRIES = 1 << 15  # a block of them stays in the cache
_SUBSAMPLED_ENTRIES = 40_000  # from here on a subsample gives the start: half the full passes
_COMPILED_ENTRIES = 100_000  # from here on loading the compiler pays
_LONG_ROW = 32
_START_ROWS = 20_000  # of a very large problem; their optimum is a Halley step away
_EQUAL = 1e-12  # means of probabilities
_SHORT_STEP = 2e-3  # relative; up to it one Halley step is exact to 1e-8 of the loss


class TemperatureFit(NamedTuple):
    beta: float
    loss: float  # mean log loss at beta, in nats; no row counts more than LARGEST_LOG_LOSS
    status: str  # "inside", "uninformative" (beta at its minimum) or "separable" (at its maximum)
    n_passes: int


def scale_proba(log, beta, intercept=0.0):
    """Return softmax(beta log + intercept) of rows of logarithms."""
    # relative to the maximum first: a product of 1e150 and beta may overflow otherwise
    return softmax(beta * (log - log.max(axis=1, keepdims=True)) + intercept, axis=1)


def mix_with_uniform(proba, share):
    """Return probabilities with a share of the uniform distribution."""
    return (1.0 - share) * proba + share / proba.shape[1]


def fit_temperature(z, codes, weight, label_smoothing=0.0, start=None, tol=None, n_fits=1):
    """The beta >= 0 that minimises the weighted log loss of softmax(beta * z).

    Two sums of the first pass decide exactly which case it is:
      M = sum w (mean_c d - d_y) = L'(0) >= 0 : the scores carry no information, beta = minimum
      D = -sum w d_y = L'(inf) <= 0           : every label is an arg max, beta = maximum
      else one finite optimum, with beta <= W log k / D since L(beta) >= beta D and L(0) = W log k.
    Halley steps, Newton where Halley's denominator is not positive, bisection in log beta where a
    step leaves the bracket. Stops when the predicted change of log beta is below tol, applies
    that step (the error is then of order tol^3), and takes the loss from the Taylor polynomial:
    for small problems tol is 1e-3, for large ones 5e-3, a relative error of beta below 1e-7.

    `start` is the inverse temperature to begin with, if one is known to be near. `n_fits` is how
    many fits of this size there will be at least: for many, compiled code is loaded sooner.

    `label_smoothing` eps replaces a label by (1 - eps) one-hot + eps / k: L(beta) - beta eps M. The
    optimum is then finite also where every label is an arg max. The loss is then the objective, of
    which nothing is cut off.
    """
    z = np.ascontiguousarray(z)
    if z.dtype not in (np.float32, np.float64):  # the compiled pass reads float32 as it is
        z = z.astype(np.float64)
    spread = float(z.max()) - float(z.min()) or 1.0
    unit, [(z, *_)] = _in_units([(z, codes, weight)], spread)
    box = box_of(spread, unit)
    beta, sums = unit if start is None else start * unit, choose_pass(n_fits * z.size)
    if tol is None:
        tol = 1e-3 if z.size < _SUBSAMPLED_ENTRIES else 5e-3

    def solved(part, beta, tol):
        problem = np.ascontiguousarray(z[part]), codes[part], weight[part]
        total = float(problem[2].sum())
        return solve(partial(sums, *problem), total, z.shape[1], label_smoothing, beta, box, tol)

    if start is None and z.size >= _SUBSAMPLED_ENTRIES:
        step = 8 if z.size < 100 * _SUBSAMPLED_ENTRIES else 4
        if z.size >= 1000 * _SUBSAMPLED_ENTRIES:
            step = max(step, len(z) // _START_ROWS)
        rough = solved(slice(None, None, step), beta, 1e-2)
        beta = rough.beta if rough.status == "inside" else beta
    fit = solved(slice(None), beta, tol)
    if label_smoothing == 0 and fit.beta * spread / unit > unreachable(z.shape[1]):
        fit = _without_excess(fit, [(z, codes, weight)], weight.sum())
    return fit._replace(beta=fit.beta / unit)


def _in_units(parts, spread):
    """A unit in which third powers of the logits stay in the range of a float, and logits in it."""
    if 1e-50 < spread < 1e50:
        return 1.0, parts
    return spread, [
        ((z - z.max(axis=1, keepdims=True)) / np.float64(spread), *rest) for z, *rest in parts
    ]


def _without_excess(fit, parts, total):
    """The fit with the loss of which no row counts more than LARGEST_LOG_LOSS."""
    excess = sum(excess_loss(*part, fit.beta)[0] for part in parts) / total
    return fit._replace(loss=max(float(fit.loss - excess), 0.0))


def fit_temperature_of_options(z, codes, weight, label_smoothing=0.0):
    """As `fit_temperature`, for logits of which -inf marks an option that the row does not have.

    The sums add up over rows, so rows are sorted by how many options they have: those of m options
    are a dense problem of m classes, and the objective is the sum over all m. A smoothed label
    spreads over the options of its row. Rows of one option say nothing.
    """
    parts, spread = parts_of(z, codes, weight), 1.0
    if parts:
        spread = max(float((part[0].max(axis=1) - part[0].min(axis=1)).max()) for part in parts)
        spread = spread or 1.0
    unit, parts = _in_units(parts, spread)

    def sums(beta):
        found = [np.zeros(6)]
        found += [np.asarray(choose_pass(part[0].size)(*part, beta)) for part in parts]
        return np.sum(found, axis=0)

    total, most = float(weight.sum()), max([2, *(part[0].shape[1] for part in parts)])
    box = box_of(spread, unit)
    fit = solve(sums, total, most, label_smoothing, unit, box, 1e-3)
    if label_smoothing == 0:
        fit = _without_excess(fit, parts, total)
    return fit._replace(beta=fit.beta / unit)


def parts_of(z, codes, weight):
    """(logits, codes, weights) of the rows of each number of options from two on."""
    there = z > -np.inf
    counts, place = there.sum(axis=1), there.cumsum(axis=1) - 1
    parts = []
    for count in np.unique(counts[counts > 1]):
        rows = np.flatnonzero(counts == count)
        dense = z[rows][there[rows]].reshape(len(rows), count)
        parts.append((dense, place[rows, codes[rows]], weight[rows]))
    return parts


def box_of(spread, unit=1.0):
    """The smallest and the largest beta for logits that differ by up to `spread`."""
    return BETA_MIN * (unit / max(1.0, spread)), BETA_MAX * (unit / min(1.0, spread))


def unreachable(n_classes):
    """A row whose scaled logits differ by less cannot lose LARGEST_LOG_LOSS."""
    return LARGEST_LOG_LOSS - np.log(n_classes)


def excess_loss(z, codes, weight, beta):
    """The weighted sum of what rows lose beyond LARGEST_LOG_LOSS, and its derivative in beta."""
    excess = np.zeros(2)
    for block in iter_row_blocks(z):
        part, label = z[block], codes[block]
        if part.shape[1] < _LONG_ROW:  # along long rows the maximum is fast by itself
            top = np.ascontiguousarray(part.T).max(axis=0)
        else:
            top = part.max(axis=1)
        gap = beta * (top.astype(np.float64) - part[np.arange(len(part)), label])
        rows = np.flatnonzero(gap > unreachable(z.shape[1]))
        if len(rows):
            d = part[rows].astype(np.float64) - top[rows, None]
            log_sum = logsumexp(beta * d, axis=1)
            loss = log_sum + gap[rows]
            slope = (np.exp(beta * d - log_sum[:, None]) * d).sum(axis=1) + gap[rows] / beta
            w = np.where(loss > LARGEST_LOG_LOSS, weight[block][rows], 0.0)
            excess += w @ (loss - LARGEST_LOG_LOSS), w @ slope
    return excess


def solve(sums, total, n_classes, label_smoothing, beta, box, tol, step_from=None, max_iter=100):
    """The optimum where `sums(beta)` are the six sums of rows whose weights add up to `total`.

    ``step_from(beta, first, second, third)``, of the derivatives, is Halley's step or a better one.
    """
    step_from = step_from or (lambda beta, *derivatives: halley_step(*derivatives))
    lowest, highest = box
    loss, first, second, third, at_infinity, at_zero = sums(beta)
    eps = label_smoothing
    at_infinity -= eps * at_zero
    if at_zero * (1 - eps) >= 0 or at_infinity <= 0:
        status, beta = ("uninformative", lowest) if at_zero >= 0 else ("separable", highest)
        loss = sums(beta)[0] - beta * eps * at_zero
        return TemperatureFit(float(beta), max(float(loss / total), 0.0), status, 2)
    low, high = lowest, min(highest, total * np.log(n_classes) / at_infinity)
    for n_passes in range(1, max_iter + 1):
        if n_passes > 1:
            loss, first, second, third = sums(beta)[:4]
        loss, first = loss - beta * eps * at_zero, first - eps * at_zero
        if first > 0:
            high = min(high, beta)
        else:
            low = max(low, beta)
        new = beta + step_from(beta, first, second, third)
        converged = new > 0 and abs(np.log(new / beta)) < tol
        if not converged and not low < new < high:
            new = np.sqrt(low * high)
        step, beta = new - beta, new
        if converged:
            break
    loss += step * (first + step * (second / 2 + step * third / 6))
    return TemperatureFit(float(beta), float(loss / total), "inside", n_passes)


def halley_step(first, second, third):
    if second <= 0:
        return np.inf  # flat to rounding: let the caller bisect
    denominator = 2 * second * second - first * third
    if denominator <= 0:
        return -first / second
    return -2 * first * second / denominator


def choose_pass(size):
    """The compiled pass for large problems; by size alone, so that a result is reproducible."""
    if size < _COMPILED_ENTRIES or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return _sums_numpy
    from ._temperature_compiled import temperature_sums

    return temperature_sums


def _sums_numpy(z, codes, weight, beta):
    """The sums in blocks of rows that fit the cache; also what the compiled pass is tested with."""
    rows = max(1, _BLOCK_ENTRIES // z.shape[1])
    sums = np.zeros(6)
    for start in range(0, len(z), rows):
        block = slice(start, start + rows)
        d, w = z[block].astype(np.float64), weight[block]
        d = d - d.max(axis=1, keepdims=True)
        true = d[np.arange(len(d)), codes[block]]
        power = np.exp(beta * d)
        s0 = power.sum(axis=1)
        moments = []
        for _ in range(3):
            power *= d
            moments.append(power.sum(axis=1) / s0)
        e1, e2, e3 = moments
        sums += (
            w @ (np.log(s0) - beta * true),
            w @ (e1 - true),
            w @ (e2 - e1 * e1),
            w @ (e3 - 3 * e1 * e2 + 2 * e1**3),
            -(w @ true),
            w @ (d.mean(axis=1) - true),
        )
    return sums


def cross_validated_temperature(z, codes, weight, fold, start=None):
    """Mean held-out log loss of temperature scaling over folds, or None if some fit is not inside.

    The sums of every fold are taken at the optimum of all rows, in one pass; the optimum without a
    fold is a Halley step away. Where that step is short, below _SHORT_STEP of beta, its error is of
    the order of its third power, and the fold's loss is read off its Taylor polynomial; else the
    fit without the fold is run, from there. Equal to separate fits within 1e-8 either way.
    """
    fit = fit_temperature(z, codes, weight, start=start, tol=1e-4)
    if fit.status != "inside":
        return None
    sums = choose_pass(z.size)
    tests = [np.flatnonzero(fold == number) for number in range(fold.max() + 1)]
    parts = [np.asarray(sums(z[t], codes[t], weight[t], fit.beta)) for t in tests]
    total, loss = np.sum(parts, axis=0), 0.0
    for test, part in zip(tests, parts, strict=True):
        _, first, second, third, at_infinity, at_zero = total - part
        if at_zero >= 0 or at_infinity <= 0:
            return None
        step = halley_step(first, second, third)
        if abs(step) < _SHORT_STEP * fit.beta:
            loss += part[0] + step * (part[1] + step * (part[2] / 2 + step * part[3] / 6))
            beta = fit.beta + step
        else:
            train = np.flatnonzero(fold != fold[test[0]])
            near = fit.beta + step if abs(step) < 0.5 * fit.beta else fit.beta
            other = fit_temperature(z[train], codes[train], weight[train], start=near, tol=1e-4)
            if other.status != "inside":
                return None
            beta = other.beta
            loss += sums(z[test], codes[test], weight[test], beta)[0]
        loss -= excess_loss(z[test], codes[test], weight[test], beta)[0]
    return float(loss / weight.sum())


def fit_expected_accuracy(z, codes, weight, label_smoothing=0.0):
    """The beta >= 0 where the mean of max softmax(beta * z) is the share of right predictions.

    The mean confidence rises with beta, from 1 / k to 1: one root, by Brent's method in log beta.
    The accuracy counts as (1 - eps) accuracy + eps / k for a `label_smoothing` eps. Statuses as in
    `fit_temperature`; the loss is that at beta, of labels as they are.
    """
    z = np.asarray(z, dtype=np.float64)
    z = z - z.max(axis=1, keepdims=True)
    share, k = weight / weight.sum(), z.shape[1]
    accuracy = float(share[z.argmax(axis=1) == codes].sum())
    accuracy = (1 - label_smoothing) * accuracy + label_smoothing / k
    n_passes = 0

    def excess(log_beta):
        nonlocal n_passes
        n_passes += 1
        confidence = 0.0
        for block in iter_row_blocks(z):
            confidence += share[block] @ (1 / np.exp(np.exp(log_beta) * z[block]).sum(axis=1))
        return confidence - accuracy

    low, high = np.log(box_of(float(-z.min()) or 1.0))
    least, most = excess(low), excess(high)
    if least >= -_EQUAL or most - least < _EQUAL:
        status, beta = "uninformative", np.exp(low)
    elif most <= _EQUAL:
        status, beta = "separable", np.exp(high)
    else:
        status, beta = "inside", np.exp(brentq(excess, low, high, xtol=1e-10, rtol=1e-12))
    loss = choose_pass(z.size)(z, codes, weight, beta)[0] / weight.sum()
    return TemperatureFit(float(beta), max(float(loss), 0.0), status, n_passes + 1)
