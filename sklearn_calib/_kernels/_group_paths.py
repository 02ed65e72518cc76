"""Paths of the residuals under drawn labels, and logistic fits, group by group.

A path is the cumulative sum of w (y - p) over the rows of a group in order of p, equal
p one step. Rows of one p, weight and set of groups are one cell. Cells are sorted by p.
Group g has the cells ``cells[starts[g] : starts[g + 1]]``, increasing. `hits`, `weight`
and `squares` are the weight of the events of each cell, of all its rows, and the sum of
their squared weights.
"""

import math
from typing import Any, NamedTuple

from ._compile import compile_helper, compile_kernel

# So many sets of labels are evaluated side by side: many times the number that a
# processor adds at once.
DRAWS_PER_BLOCK = 16


@compile_kernel
def fill_group_path_range_end_and_tilt(
    residual, step, log_odds, cells, starts, scales, work, out
):
    """Fill in range, end and tilt of each path, over its standard deviation.

    Parameters
    ----------
    residual : ndarray of shape (n_cells, DRAWS)
        The sum of w (y - p) in each cell for DRAWS sets of labels.
    step : ndarray of shape (n_cells,), int64
        Increasing; equal for cells that are one step.
    log_odds : ndarray of shape (n_cells,)
        The log-odds.
    cells : ndarray of shape (n_entries,), int32
    starts : ndarray of shape (n_groups + 1,)
    scales : ndarray of shape (3, n_groups)
        One over the standard deviation of the end, the mean log-odds that the tilt is
        measured from, and one over the standard deviation of the tilt; 0 for none.
    work : ndarray of shape (4, DRAWS)
        Overwritten.
    out : ndarray of shape (3, n_groups, DRAWS)
        Filled: the range of the path, its end, and the sum of (z - mean) w (y - p).
    """
    for g in range(len(starts) - 1):
        # The rows are the path so far, its maximum, its minimum, and the tilt.
        work[:] = 0.0
        last = starts[g + 1] - 1
        mean = scales[1, g]
        for k in range(starts[g], last + 1):
            i = cells[k]
            arm = log_odds[i] - mean
            # The extremes are updated only after a whole tie.
            if k == last or step[cells[k + 1]] > step[i]:
                for b in range(DRAWS_PER_BLOCK):
                    r = residual[i, b]
                    path = work[0, b] + r
                    work[0, b] = path
                    work[1, b] = max(work[1, b], path)
                    work[2, b] = min(work[2, b], path)
                    work[3, b] += arm * r
            else:
                for b in range(DRAWS_PER_BLOCK):
                    r = residual[i, b]
                    work[0, b] += r
                    work[3, b] += arm * r
        for b in range(DRAWS_PER_BLOCK):
            out[0, g, b] = (work[1, b] - work[2, b]) * scales[0, g]
            out[1, g, b] = work[0, b] * scales[0, g]
            out[2, g, b] = work[3, b] * scales[2, g]


@compile_kernel
def fill_group_moments(
    score, log_odds, event_weight, weight, squares, cells, starts, out
):
    """Fill the sums over each group into `out`, of shape (8, n_groups).

    Weight, events, expected events, the variance of the latter under calibration, the
    mean of the log-odds weighted by w p (1 - p), the variance of the tilt around it,
    the size of the largest contradiction of a certain prediction, and the mean weight
    of a row as it weighs in sums.
    """
    for g in range(len(starts) - 1):
        total = events = expected = variance = information = mean = tilt = wrong = 0.0
        square = 0.0
        for k in range(starts[g], starts[g + 1]):
            i = cells[k]
            p = score[i]
            w = weight[i]
            spread = p * (1.0 - p)
            total += w
            square += squares[i]
            events += event_weight[i]
            expected += w * p
            variance += squares[i] * spread
            information += w * spread
            mean += w * spread * log_odds[i]
            if spread <= 0.0:
                wrong = max(wrong, abs(event_weight[i] / w - p))
        mean = mean / information if information > 0.0 else 0.0
        for k in range(starts[g], starts[g + 1]):
            i = cells[k]
            tilt += squares[i] * (log_odds[i] - mean) ** 2 * score[i] * (1.0 - score[i])
        out[0, g] = total
        out[1, g] = events
        out[2, g] = expected
        out[3, g] = variance
        out[4, g] = mean
        out[5, g] = tilt
        out[6, g] = wrong
        out[7, g] = square / total


@compile_helper
def _compute_expit(x):
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


class _CellRange(NamedTuple):
    """A group: its cells are ``cells[start:end]``, and `events` is the sum of its events.

    The other arrays are those of all cells.
    """

    log_odds: Any
    weight: Any
    squares: Any
    cells: Any
    start: Any
    end: Any
    events: Any


@compile_helper
def _compute_event_excess_less_deviations(shift, n_deviations, group):
    """Return the events above those expected after the shift, less so many deviations."""
    # The variance is that under the shifted probabilities, so the interval inverts a
    # score test and stays within the possible shifts.
    expected = variance = 0.0
    for k in range(group.start, group.end):
        i = group.cells[k]
        q = _compute_expit(group.log_odds[i] + shift)
        expected += group.weight[i] * q
        variance += group.squares[i] * q * (1.0 - q)
    return group.events - expected - n_deviations * math.sqrt(variance)


@compile_helper
def _find_log_odds_shift(n_deviations, guess, step, group):
    """Find the shift at which `_compute_event_excess_less_deviations` is 0.

    The root is bracketed, then found by regula falsi (Illinois).
    """
    a = guess
    fa = _compute_event_excess_less_deviations(guess, n_deviations, group)
    if fa == 0.0:
        return a
    step = abs(step) if fa > 0.0 else -abs(step)
    b = a
    fb = fa
    while fa * fb > 0.0:
        a = b
        fa = fb
        b = a + step
        # At log-odds beyond 745 all probabilities are 0 or 1, so the level is never
        # reached.
        if abs(b) > 800.0:
            return math.inf if step > 0.0 else -math.inf
        step *= 2.0
        fb = _compute_event_excess_less_deviations(b, n_deviations, group)
    for _ in range(200):
        c = b - fb * (b - a) / (fb - fa)
        if not min(a, b) < c < max(a, b):
            c = 0.5 * (a + b)
        fc = _compute_event_excess_less_deviations(c, n_deviations, group)
        if fc * fb < 0.0:
            a = b
            fa = fb
        else:
            # The Illinois variant of regula falsi: halving the value at the end that
            # stays keeps the convergence superlinear.
            fa *= 0.5
        change = abs(c - b)
        b = c
        fb = fc
        if (
            fb == 0.0
            or abs(a - b) <= 1e-13 * (1.0 + abs(b))
            or change <= 1e-14 * (1.0 + abs(b))
        ):
            break
    return b


@compile_helper
def _fill_line_fit_bread_and_meat(
    log_odds, event_weight, weight, squares, cells, start, end, out
):
    """Fit intercept and slope by Newton's method, halving steps until the loss falls.

    Fills out[0 : 6] with them, the inverse of the information, and out[6 : 9] with the
    meat.
    """
    a = 0.0
    b = 1.0
    tried_a = 0.0
    tried_b = 1.0
    loss = math.inf
    for _ in range(200):
        now = ga = gb = haa = hab = hbb = maa = mab = mbb = 0.0
        for k in range(start, end):
            i = cells[k]
            w = weight[i]
            z = log_odds[i]
            x = tried_a + tried_b * z
            q = _compute_expit(x)
            r = event_weight[i] - w * q
            spread = q * (1.0 - q)
            v = w * spread
            m = squares[i] * spread
            softplus = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
            now += w * softplus - event_weight[i] * x
            ga += r
            gb += r * z
            haa += v
            hab += v * z
            hbb += v * z * z
            maa += m
            mab += m * z
            mbb += m * z * z
        determinant = haa * hbb - hab * hab
        # A trial that is worse is moved halfway back to the last good point.
        if not now <= loss * (1.0 + 1e-14) or not determinant > 0.0:
            near = abs(tried_a - a) + abs(tried_b - b) <= 1e-12 * (
                1.0 + abs(a) + abs(b)
            )
            if near or loss == math.inf:
                break
            tried_a = 0.5 * (tried_a + a)
            tried_b = 0.5 * (tried_b + b)
            continue
        a = tried_a
        b = tried_b
        loss = now
        step_a = (hbb * ga - hab * gb) / determinant
        step_b = (haa * gb - hab * ga) / determinant
        out[0] = a
        out[1] = b
        out[2] = hbb / determinant
        out[3] = -hab / determinant
        out[4] = haa / determinant
        out[5] = maa
        out[6] = mab
        out[7] = mbb
        if ga * step_a + gb * step_b <= 1e-20 * (1.0 + loss):
            break
        tried_a = a + step_a
        tried_b = b + step_b


@compile_kernel
def fill_group_logistic_fits(
    log_odds, event_weight, weight, squares, cells, starts, moments, critical, work, out
):
    """Fit logistic models of each group into `out`, of shape (8, n_groups).

    The shift of the log-odds (calibration in the large), its standard error, the ends
    of its interval by inverting the score test at `critical` standard deviations, and
    how many events these ends mean; the slope of the log-odds, and its standard error.
    Undetermined numbers are infinite or NaN. `moments` as of `fill_group_moments`;
    `work`, 8 numbers, is overwritten.
    """
    for g in range(len(starts) - 1):
        start = starts[g]
        end = starts[g + 1]
        events = moments[1, g]
        expected = moments[2, g]
        variance = moments[3, g]
        group = _CellRange(log_odds, weight, squares, cells, start, end, events)
        # The ranges of the log-odds of non-events (0) and of events (1).
        low0 = low1 = math.inf
        high0 = high1 = -math.inf
        for k in range(start, end):
            i = cells[k]
            z = log_odds[i]
            if event_weight[i] > 0.0:
                low1 = min(low1, z)
                high1 = max(high1, z)
            if event_weight[i] < weight[i]:
                low0 = min(low0, z)
                high0 = max(high0, z)
        out[:, g] = math.nan
        # All predictions are 0 or 1: no shift of the log-odds changes them.
        if variance <= 0.0:
            continue
        has_both = low0 <= high0 and low1 <= high1
        # The standard error of the shift, to first order.
        step = math.sqrt(1.0 / variance) * moments[7, g]
        shift = math.inf if low0 > high0 else -math.inf
        if has_both:
            guess = (events - expected) * step * step
            guess = min(max(guess, -5.0), 5.0)
            shift = _find_log_odds_shift(0.0, guess, step, group)
        # The variance of the shift is that of a sandwich: the variance of the events
        # over the squared information.
        information = meat = 0.0
        for k in range(start, end):
            i = cells[k]
            q = _compute_expit(log_odds[i] + shift)
            information += weight[i] * q * (1.0 - q)
            meat += squares[i] * q * (1.0 - q)
        out[0, g] = shift
        out[1, g] = math.sqrt(meat) / information if has_both else math.inf
        near = shift if has_both else 0.0
        for side in range(2):
            t = critical if side == 0 else -critical
            edge = math.inf if side == 1 else -math.inf
            # If all labels are equal, only one end of the interval is finite.
            if has_both or (side == 0) == (shift > 0.0):
                step = max(critical * out[1, g], 1e-3) if has_both else 1.0
                edge = _find_log_odds_shift(t, near, step, group)
            out[2 + side, g] = edge
            count = 0.0
            for k in range(start, end):
                count += weight[cells[k]] * _compute_expit(log_odds[cells[k]] + edge)
            out[4 + side, g] = count
        if has_both and min(low0, low1) < max(high0, high1):
            # The classes are separated by a threshold, so the slope has no finite
            # maximum likelihood estimate.
            if low1 >= high0 or high1 <= low0:
                out[6, g] = math.inf if low1 >= high0 else -math.inf
                out[7, g] = math.inf
            else:
                _fill_line_fit_bread_and_meat(
                    log_odds, event_weight, weight, squares, cells, start, end, work
                )
                out[6, g] = work[1]
                # The variance of the slope: the second row of the inverse information,
                # on both sides of the meat.
                left = work[3]
                right = work[4]
                spread = left * left * work[5] + 2.0 * left * right * work[6]
                out[7, g] = math.sqrt(spread + right * right * work[7])
