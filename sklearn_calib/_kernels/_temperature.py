"""Temperature scaling by a safeguarded Halley iteration in beta = 1/T.

With d_ic = z_ic - max_c z_ic <= 0 and S_j = sum_c exp(beta d_ic) d_ic^j the objective
and its derivatives are
    L(beta) = sum_i w_i (log S_0 - beta d_{i,y})      L'   = sum w (E_1 - d_y) L''     =
    sum w (E_2 - E_1^2)                     L''' = sum w (E_3 - 3 E_1 E_2 + 2 E_1^3)
with E_j = S_j / S_0. L is convex in beta, and not in the temperature.
"""

import os
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from .._simplex_array import LARGEST_LOG_LOSS, iter_row_blocks

# The box of Berta et al. (2025), for logits with a spread of 1.
MIN_INVERSE_TEMPERATURE = np.exp(-16.0)
MAX_INVERSE_TEMPERATURE = np.exp(16.0)
# A block of so many entries stays in the cache.
_MAX_BLOCK_ENTRIES = 1 << 15
# From so many entries on, a subsample gives the start, which saves half of the full
# passes.
_MIN_SUBSAMPLED_ENTRIES = 40_000
# From so many entries on, loading the compiler pays.
_MIN_COMPILED_ENTRIES = 100_000
_MIN_LONG_ROW_CLASSES = 32
# The subsample of a very large problem has so many rows; its optimum is a Halley step
# away from that of all rows.
_MAX_START_ROWS = 20_000
# The tolerance of means of probabilities.
_MEAN_PROBABILITY_TOLERANCE = 1e-12
# Up to this relative step, one Halley step is exact to 1e-8 of the loss.
_MAX_RELATIVE_FINAL_STEP = 2e-3


class InverseTemperatureFit(NamedTuple):
    beta: float
    # The mean log loss at beta, in nats. The loss of a row is cut at LARGEST_LOG_LOSS.
    loss: float
    # "inside", "uninformative" (beta at its minimum) or "separable" (beta at its
    # maximum).
    status: str
    n_passes: int


def scale_proba(log_proba, beta, intercept=0.0):
    """Return softmax(beta log + intercept) of rows of logarithms."""
    # The maximum is subtracted first, because a product of 1e150 and beta may overflow.
    return softmax(
        beta * (log_proba - log_proba.max(axis=1, keepdims=True)) + intercept, axis=1
    )


def mix_with_uniform(proba, fraction):
    """Return probabilities with a share of the uniform distribution."""
    return (1.0 - fraction) * proba + fraction / proba.shape[1]


def fit_temperature(
    logits, y_encoded, weight, label_smoothing=0.0, start=None, tol=None, n_fits=1
):
    """Return the beta >= 0 that minimises the log loss of softmax(beta * logits).

    Two sums of the first pass decide exactly which case it is:
      M = sum w (mean_c d - d_y) = L'(0) >= 0 : the scores carry no information, beta =
      minimum D = -sum w d_y = L'(inf) <= 0           : every label is an arg max, beta
      = maximum else one finite optimum, with beta <= W log k / D since L(beta) >= beta
      D and L(0) = W log k.
    Halley steps, Newton if Halley's denominator is not positive, bisection in log beta
    if a step leaves the bracket. Stops when the predicted change of log beta is
    below tol, applies that step (the error is then of order tol^3), and takes the loss
    from the Taylor polynomial: for small problems tol is 1e-3, for large ones 5e-3, a
    relative error of beta below 1e-7.

    `start` is the inverse temperature to begin with, if one is known to be near.
    `n_fits` is how many fits of this size there will be at least: for many, compiled
    code is loaded sooner.

    `label_smoothing` eps replaces a label by (1 - eps) one-hot + eps / k: L(beta) -
    beta eps M. The optimum is then finite even if every label is an arg max. The loss
    is then the objective, of which nothing is cut off.
    """
    logits = np.ascontiguousarray(logits)
    # The compiled pass reads float32 without a conversion.
    if logits.dtype not in (np.float32, np.float64):
        logits = logits.astype(np.float64)
    spread = float(logits.max()) - float(logits.min()) or 1.0
    # The third powers of logits of extreme size overflow; in other units they do not,
    # and beta is scaled back at the end.
    unit, [(logits, *_)] = _find_logit_unit_and_rescaled_rows(
        [(logits, y_encoded, weight)], spread
    )
    box = get_inverse_temperature_bounds(spread, unit)
    beta = unit if start is None else start * unit
    sums = choose_sums_function(n_fits * logits.size)
    if tol is None:
        # The error of Halley's method is cubed in each step, so the last step needs no
        # check at such tolerances.
        tol = 1e-3 if logits.size < _MIN_SUBSAMPLED_ENTRIES else 5e-3

    def fit_temperature_to_row_slice(row_slice, beta, tol):
        """Solve the problem of some rows from the start beta."""
        problem = (
            np.ascontiguousarray(logits[row_slice]),
            y_encoded[row_slice],
            weight[row_slice],
        )
        total = float(problem[2].sum())
        return solve_temperature(
            partial(sums, *problem),
            total,
            logits.shape[1],
            label_smoothing,
            beta,
            box,
            tol,
        )

    if start is None and logits.size >= _MIN_SUBSAMPLED_ENTRIES:
        step = 8 if logits.size < 100 * _MIN_SUBSAMPLED_ENTRIES else 4
        if logits.size >= 1000 * _MIN_SUBSAMPLED_ENTRIES:
            step = max(step, len(logits) // _MAX_START_ROWS)
        # A subsample locates beta within its own noise, at an eighth of the price of a
        # pass.
        rough = fit_temperature_to_row_slice(slice(None, None, step), beta, 1e-2)
        beta = rough.beta if rough.status == "inside" else beta
    fit = fit_temperature_to_row_slice(slice(None), beta, tol)
    if (
        label_smoothing == 0
        and fit.beta * spread / unit > get_max_logit_gap_below_loss_cap(logits.shape[1])
    ):
        fit = _get_fit_with_loss_capped_by_row(
            fit, [(logits, y_encoded, weight)], weight.sum()
        )
    return fit._replace(beta=fit.beta / unit)


def _find_logit_unit_and_rescaled_rows(parts, spread):
    """Return a unit whose third powers of logits are floats, and the logits in it."""
    if 1e-50 < spread < 1e50:
        return 1.0, parts
    return spread, [
        ((logits - logits.max(axis=1, keepdims=True)) / np.float64(spread), *rest)
        for logits, *rest in parts
    ]


def _get_fit_with_loss_capped_by_row(fit, problems, total):
    """Return the fit with the loss of each row limited to LARGEST_LOG_LOSS."""
    excess = (
        sum(
            compute_loss_beyond_cap_and_derivative(*problem, fit.beta)[0]
            for problem in problems
        )
        / total
    )
    return fit._replace(loss=max(float(fit.loss - excess), 0.0))


def fit_temperature_with_absent_options(logits, y_encoded, weight, label_smoothing=0.0):
    """Fit as `fit_temperature`, if -inf marks options that a row does not have.

    The sums add up over rows, so rows are sorted by how many options they have: those
    of m options are a dense problem of m classes, and the objective is the sum over all
    m. A smoothed label spreads over the options of its row. Rows of one option are not
    informative.
    """
    problems = split_by_n_available_classes(logits, y_encoded, weight)
    spread = 0.0
    for problem_logits, _, _ in problems:
        ranges = problem_logits.max(axis=1) - problem_logits.min(axis=1)
        spread = max(spread, float(ranges.max()))
    spread = spread or 1.0
    unit, problems = _find_logit_unit_and_rescaled_rows(problems, spread)

    def sum_problems(beta):
        problem_sums = [np.zeros(6)]
        for problem in problems:
            compute_sums = choose_sums_function(problem[0].size)
            problem_sums.append(np.asarray(compute_sums(*problem, beta)))
        return np.sum(problem_sums, axis=0)

    total = float(weight.sum())
    max_options = max([2, *(problem[0].shape[1] for problem in problems)])
    box = get_inverse_temperature_bounds(spread, unit)
    fit = solve_temperature(
        sum_problems, total, max_options, label_smoothing, unit, box, 1e-3
    )
    if label_smoothing == 0:
        fit = _get_fit_with_loss_capped_by_row(fit, problems, total)
    return fit._replace(beta=fit.beta / unit)


def split_by_n_available_classes(logits, y_encoded, weight) -> list[tuple]:
    """Return (logits, y_encoded, weight) for each number of options from two on."""
    is_option = logits > -np.inf
    counts = is_option.sum(axis=1)
    option = is_option.cumsum(axis=1) - 1
    parts = []
    for count in np.unique(counts[counts > 1]):
        rows = np.flatnonzero(counts == count)
        dense = logits[rows][is_option[rows]].reshape(len(rows), count)
        parts.append((dense, option[rows, y_encoded[rows]], weight[rows]))
    return parts


def get_inverse_temperature_bounds(spread, unit=1.0):
    """Return the smallest and largest beta for logits that differ by up to `spread`."""
    low = MIN_INVERSE_TEMPERATURE * (unit / max(1.0, spread))
    high = MAX_INVERSE_TEMPERATURE * (unit / min(1.0, spread))
    return low, high


def get_max_logit_gap_below_loss_cap(n_classes):
    """Return the gap of scaled logits below which no row loses LARGEST_LOG_LOSS."""
    return LARGEST_LOG_LOSS - np.log(n_classes)


def compute_loss_beyond_cap_and_derivative(logits, y_encoded, weight, beta):
    """Return the weighted sum of losses beyond LARGEST_LOG_LOSS, and its derivative."""
    excess = np.zeros(2)
    for block in iter_row_blocks(logits):
        block_logits = logits[block]
        label = y_encoded[block]
        # The maximum along long rows is fast; short rows are transposed first.
        if block_logits.shape[1] < _MIN_LONG_ROW_CLASSES:
            top = np.ascontiguousarray(block_logits.T).max(axis=0)
        else:
            top = block_logits.max(axis=1)
        # The loss of a row exceeds the gap to the largest logit by at most
        # log(n_classes), so few rows need their exact loss.
        gap = beta * (
            top.astype(np.float64) - block_logits[np.arange(len(block_logits)), label]
        )
        rows = np.flatnonzero(gap > get_max_logit_gap_below_loss_cap(logits.shape[1]))
        if len(rows):
            d = block_logits[rows].astype(np.float64) - top[rows, None]
            log_sum = logsumexp(beta * d, axis=1)
            loss = log_sum + gap[rows]
            slope = (np.exp(beta * d - log_sum[:, None]) * d).sum(axis=1) + gap[
                rows
            ] / beta
            w = np.where(loss > LARGEST_LOG_LOSS, weight[block][rows], 0.0)
            excess += w @ (loss - LARGEST_LOG_LOSS), w @ slope
    return excess


def solve_temperature(
    compute_six_sums,
    total,
    n_classes,
    label_smoothing,
    beta,
    box,
    tol,
    step_from=None,
    max_iter=100,
):
    """Return the optimum, given `compute_six_sums(beta)` and the total weight.

    ``step_from(beta, first, second, third)``, of the derivatives, is Halley's step or a
    better one.
    """
    step_from = step_from or (
        lambda beta, *derivatives: compute_halley_step_or_inf(*derivatives)
    )
    lowest, highest = box
    loss, first, second, third, at_infinity, at_zero = compute_six_sums(beta)
    eps = label_smoothing
    at_infinity -= eps * at_zero
    # The objective is convex, so its slopes at 0 and at infinity show whether there is
    # a minimum inside. Otherwise scores are no better than a uniform guess, or they
    # rank the true class first in every row.
    if at_zero * (1 - eps) >= 0 or at_infinity <= 0:
        status, beta = (
            ("uninformative", lowest) if at_zero >= 0 else ("separable", highest)
        )
        loss = compute_six_sums(beta)[0] - beta * eps * at_zero
        return InverseTemperatureFit(
            float(beta), max(float(loss / total), 0.0), status, 2
        )
    low = lowest
    # At the optimum the loss is at most log(n_classes), which bounds beta times the
    # slope at infinity.
    high = min(highest, total * np.log(n_classes) / at_infinity)
    for n_passes in range(1, max_iter + 1):
        if n_passes > 1:
            loss, first, second, third = compute_six_sums(beta)[:4]
        loss -= beta * eps * at_zero
        first -= eps * at_zero
        if first > 0:
            high = min(high, beta)
        else:
            low = max(low, beta)
        # Berta, Holzmueller, Jordan, Bach (2025) minimise the same convex function of
        # beta by bisection (their section 3.3).
        new = beta + step_from(beta, first, second, third)
        converged = new > 0 and abs(np.log(new / beta)) < tol
        if not converged and not low < new < high:
            # The geometric mean, because beta is a scale.
            new = np.sqrt(low * high)
        step = new - beta
        beta = new
        if converged:
            break
    # The sums are those of the last pass; a Taylor expansion moves the loss to the
    # final beta without another pass.
    loss += step * (first + step * (second / 2 + step * third / 6))
    return InverseTemperatureFit(float(beta), float(loss / total), "inside", n_passes)


def compute_halley_step_or_inf(first, second, third):
    if second <= 0:
        # The loss is flat to rounding. An infinite step makes the caller bisect.
        return np.inf
    denominator = 2 * second * second - first * third
    if denominator <= 0:
        return -first / second
    return -2 * first * second / denominator


def choose_sums_function(size):
    """Choose the compiled pass for large problems.

    The size alone decides, so that a result is reproducible.
    """
    if size < _MIN_COMPILED_ENTRIES or os.environ.get("NUMBA_DISABLE_JIT", "0") not in (
        "",
        "0",
    ):
        return _compute_six_sums_in_blocks
    from ._temperature_compiled import compute_six_temperature_loss_sums

    return compute_six_temperature_loss_sums


def _compute_six_sums_in_blocks(logits, y_encoded, weight, beta):
    """Return the sums, in blocks of rows that fit the cache.

    Tests compare the compiled pass with it.
    """
    rows = max(1, _MAX_BLOCK_ENTRIES // logits.shape[1])
    sums = np.zeros(6)
    for start in range(0, len(logits), rows):
        block = slice(start, start + rows)
        d = logits[block].astype(np.float64)
        w = weight[block]
        # Relative to the largest logit all powers are at most 1, for any beta.
        d = d - d.max(axis=1, keepdims=True)
        true = d[np.arange(len(d)), y_encoded[block]]
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


def compute_temperature_cv_loss_if_inside(logits, y_encoded, weight, fold, start=None):
    """Return the mean held-out log loss over folds, or None if a fit is not inside.

    The sums of every fold are taken at the optimum of all rows, in one pass; the
    optimum without a fold is a Halley step away. If that step is short, below
    `_MAX_RELATIVE_FINAL_STEP` of beta, its error is of the order of its third power,
    and the fold's loss is read off its Taylor polynomial; else the fit without the fold
    is run, from there. Equal to separate fits within 1e-8 either way.
    """
    fit = fit_temperature(logits, y_encoded, weight, start=start, tol=1e-4)
    if fit.status != "inside":
        return None
    sums = choose_sums_function(logits.size)
    tests = [np.flatnonzero(fold == number) for number in range(fold.max() + 1)]
    parts = [
        np.asarray(sums(logits[t], y_encoded[t], weight[t], fit.beta)) for t in tests
    ]
    total = np.sum(parts, axis=0)
    loss = 0.0
    for test, fold_sums in zip(tests, parts, strict=True):
        # The derivatives of the training part are those of all rows less those of the
        # fold, at the beta of all rows. One Halley step from there replaces a fit for
        # each fold.
        _, first, second, third, at_infinity, at_zero = total - fold_sums
        if at_zero >= 0 or at_infinity <= 0:
            return None
        step = compute_halley_step_or_inf(first, second, third)
        if abs(step) < _MAX_RELATIVE_FINAL_STEP * fit.beta:
            loss += fold_sums[0] + step * (
                fold_sums[1] + step * (fold_sums[2] / 2 + step * fold_sums[3] / 6)
            )
            beta = fit.beta + step
        else:
            # A fold that moves beta far is fitted by itself.
            train = np.flatnonzero(fold != fold[test[0]])
            near = fit.beta + step if abs(step) < 0.5 * fit.beta else fit.beta
            fold_fit = fit_temperature(
                logits[train],
                y_encoded[train],
                weight[train],
                start=near,
                tol=1e-4,
            )
            if fold_fit.status != "inside":
                return None
            beta = fold_fit.beta
            loss += sums(logits[test], y_encoded[test], weight[test], beta)[0]
        loss -= compute_loss_beyond_cap_and_derivative(
            logits[test],
            y_encoded[test],
            weight[test],
            beta,
        )[0]
    return float(loss / weight.sum())


def fit_temperature_to_accuracy(logits, y_encoded, weight, label_smoothing=0.0):
    """Return the beta at which the mean of max softmax(beta * logits) is the accuracy.

    The mean confidence rises with beta, from 1 / k to 1: one root, by Brent's method in
    log beta. The accuracy counts as (1 - eps) accuracy + eps / k for a
    `label_smoothing` eps. Statuses as in `fit_temperature`; the loss is that at beta,
    of labels as they are.
    """
    logits = np.asarray(logits, dtype=np.float64)
    logits = logits - logits.max(axis=1, keepdims=True)
    weight_fraction = weight / weight.sum()
    k = logits.shape[1]
    accuracy = float(weight_fraction[logits.argmax(axis=1) == y_encoded].sum())
    # Smoothed labels are right in (1 - eps) of the cases that the hard ones are, plus
    # chance.
    accuracy = (1 - label_smoothing) * accuracy + label_smoothing / k
    n_passes = 0

    def measure_confidence_excess(log_beta):
        """Return by how much the mean confidence exceeds the accuracy."""
        nonlocal n_passes
        n_passes += 1
        confidence = 0.0
        for block in iter_row_blocks(logits):
            # The largest probability of a row is one over the sum of the powers
            # relative to the maximum.
            confidence += weight_fraction[block] @ (
                1 / np.exp(np.exp(log_beta) * logits[block]).sum(axis=1)
            )
        return confidence - accuracy

    low, high = np.log(get_inverse_temperature_bounds(float(-logits.min()) or 1.0))
    low_excess = measure_confidence_excess(low)
    high_excess = measure_confidence_excess(high)
    if (
        low_excess >= -_MEAN_PROBABILITY_TOLERANCE
        or high_excess - low_excess < _MEAN_PROBABILITY_TOLERANCE
    ):
        status = "uninformative"
        beta = np.exp(low)
    elif high_excess <= _MEAN_PROBABILITY_TOLERANCE:
        status = "separable"
        beta = np.exp(high)
    else:
        status = "inside"
        beta = np.exp(
            brentq(measure_confidence_excess, low, high, xtol=1e-10, rtol=1e-12)
        )
    loss = (
        choose_sums_function(logits.size)(logits, y_encoded, weight, beta)[0]
        / weight.sum()
    )
    return InverseTemperatureFit(
        float(beta), max(float(loss), 0.0), status, n_passes + 1
    )
