"""Mixtures over a grid of logistic recalibrations, P = sigmoid(shift + slope * log-odds).

Evidence against calibration, the detection of a change, and online recalibration are
sums and products of the same numbers: how likely each pair of the grid makes each
label.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from .._random import GOLDEN_RATIO_INCREMENT, mix_bits
from .._typing import AnyArray, FloatArray, IntArray

# The detector computes so many rows at once; rows after an alarm are computed again.
_BLOCK_ROWS = 32


class LineGrid(NamedTuple):
    """Pairs of a slope and a shift, and the logarithms of their prior weights, with sum 1.

    All of shape (n_pairs,); the shifts vary fastest.
    """

    slope: FloatArray
    shift: FloatArray
    log_prior: FloatArray


def make_line_grid_with_normal_priors(slopes, shifts, spread):
    """Return all pairs of slopes and shifts with normal priors.

    The shift is standard normal, the logarithm of the slope normal with `spread`.
    """
    slope, shift = np.meshgrid(slopes, shifts, indexing="ij")
    slope = slope.ravel()
    shift = shift.ravel()
    # Slopes are log-normal around 1, because halving and doubling are equally plausible
    # errors.
    log = -((np.log(slope) / spread) ** 2) / 2 - shift**2 / 2
    return LineGrid(slope, shift, log - logsumexp(log))


#: Of the monitor: few pairs, which differ by what is worth an alarm.
COARSE_LINE_GRID = make_line_grid_with_normal_priors(
    np.array([0.25, 0.5, 0.75, 1, 1.5, 2]),
    np.array([-2, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 2]),
    np.log(2),
)
#: Of online recalibration, whose predictions are mixtures of the pairs.
FINE_LINE_GRID = make_line_grid_with_normal_priors(
    np.append(np.arange(1, 11) / 8, [1.5, 1.75, 2]), np.arange(-12, 13) / 4, 0.5
)


# -- evidence against calibration -----------------------------------------------------------------


def compute_line_gains_and_impossible(
    log_pair: FloatArray, outcome: AnyArray, grid: LineGrid
) -> tuple[FloatArray, AnyArray]:
    """Return the log-likelihood gain of each pair over the prediction, for each label.

    Parameters
    ----------
    log_pair : ndarray of shape (n, 2)
        Logarithms of the probabilities of no event and of the event; -inf for a
        probability of 0.
    outcome : ndarray of shape (n,), bool
        Whether the event happened.
    grid : LineGrid

    Returns
    -------
    gain : ndarray of shape (n, n_pairs), in nats
        0 for impossible rows.
    impossible : ndarray of shape (n,), bool
        What happened had probability 0.
    """
    label_log_proba = log_pair[np.arange(len(outcome)), outcome.astype(np.intp)]
    # A label of predicted probability 0 refutes the prediction at once. Such rows are
    # reported separately, because their gain is infinite.
    impossible = np.isneginf(label_log_proba)
    log_odds = np.where(impossible, 0.0, log_pair[:, 1] - log_pair[:, 0])
    sign = np.where(outcome, 1.0, -1.0)
    gain = log_expit(sign[:, None] * (log_odds[:, None] * grid.slope + grid.shift))
    gain -= np.where(impossible, 0.0, label_log_proba)[:, None]
    gain[impossible] = 0.0
    return gain, impossible


def compute_soft_gains_and_impossible(
    log_pair: FloatArray, soft_label: FloatArray, grid: LineGrid
) -> tuple[FloatArray, AnyArray]:
    """Return `compute_line_gains_and_impossible` of both labels, weighted by the soft labels.

    For a share y of mean p its exponential is at most y q / p + (1 - y) (1 - q) / (1 -
    p), by the inequality of means, whose mean is 1: products of them are evidence as
    those of labels are.

    Parameters
    ----------
    log_pair : ndarray of shape (n, 2)
    soft_label : ndarray of shape (n,)
        From 0 to 1.
    grid : LineGrid

    Returns
    -------
    gain : ndarray of shape (n, n_pairs), in nats
        0 for impossible rows.
    impossible : ndarray of shape (n,), bool
        Some share has what had probability 0.
    """
    ones = np.ones(len(soft_label), dtype=bool)
    event_gain, is_never = compute_line_gains_and_impossible(log_pair, ones, grid)
    other_gain, is_sure = compute_line_gains_and_impossible(log_pair, ~ones, grid)
    impossible = (is_never & (soft_label > 0)) | (is_sure & (soft_label < 1))
    # By Jensen's inequality the exponential of a weighted mean of gains is at most the
    # weighted mean of the exponentials, so the process remains a supermartingale.
    gain = soft_label[:, None] * event_gain
    gain += (1.0 - soft_label)[:, None] * other_gain
    gain[impossible] = 0.0
    return gain, impossible


def draw_label_flags_by_column(
    soft_labels: FloatArray, row_number: IntArray
) -> AnyArray:
    """Draw one label per row from its soft label, by the digits of the row's number.

    Parameters
    ----------
    soft_labels : ndarray of shape (n, n_parallel)
        Of one event, or of all classes.
    row_number : ndarray of shape (n,)

    Returns
    -------
    hit : ndarray of shape (n, n_parallel), bool
        In each row at most one of several.
    """
    # The draw depends on the number of the row only, so that a stream gives the same
    # labels in batches of any size.
    bits = mix_bits(np.asarray(row_number).astype(np.uint64) * GOLDEN_RATIO_INCREMENT)
    # The leading 53 bits, as numpy makes uniform floats of 64 random bits.
    chance = (bits >> np.uint64(11)) * 2.0**-53
    ends = np.cumsum(soft_labels, axis=1)
    starts = np.column_stack([np.zeros(len(soft_labels)), ends[:, :-1]])
    return (chance[:, None] >= starts) & (chance[:, None] < ends)


def draw_class(soft_labels: FloatArray, row_number: IntArray) -> IntArray:
    """Draw a class per row from soft labels of shape (n, n_classes).

    It is drawn as by `draw_label_flags_by_column`.
    """
    drawn = draw_label_flags_by_column(soft_labels, row_number)
    # Shares may sum to a little less than 1 because of rounding.
    drawn[~drawn.any(axis=1), -1] = True
    return drawn.argmax(axis=1)


def compute_log_mixture(total: FloatArray, grid: LineGrid) -> FloatArray:
    """Return the logarithm of the mean over the pairs.

    Of sums of gains this is the evidence against calibration.
    """
    log = total + grid.log_prior
    top = log.max(axis=-1)
    return top + np.log(np.exp(log - top[..., None]).sum(axis=-1))


def update_state_and_find_alarm_or_end(
    state: FloatArray,
    gain: FloatArray,
    certain: AnyArray,
    stream: IntArray,
    grid: LineGrid,
    bound: float,
    start: int = 0,
) -> tuple[int, float]:
    """Run M <- (1 + M) exp(gain) from row `start` to the first alarm.

    This is Shiryaev and Roberts' recursion.

    Parameters
    ----------
    state : ndarray of shape (n_streams, n_parallel, n_pairs)
        M of each pair, changed in place.
    gain : ndarray of shape (n, n_parallel, n_pairs)
        At most 500 is used.
    certain : ndarray of shape (n,), bool
        Rows that are an alarm for every value of the statistic.
    stream : ndarray of shape (n,)
        Which stream a row belongs to.
    grid : LineGrid
    bound : float
        The statistic that is an alarm: the sum over streams of the mean over the
        parallel ones.
    start : int, default=0

    Returns
    -------
    row : int
        The row of the alarm, at which the recursion stopped; n without an alarm.
    statistic : float
        At that row, or at the end.
    """
    # The recursion of Shiryaev and Roberts, for each pair and each stream; their mean
    # is compared with the bound.
    prior = np.exp(grid.log_prior) / state.shape[1]
    first_certain = start + int(np.append(certain[start:], True).argmax())
    if len(state) == 1:
        return _detect_change_in_single_stream(
            state[0],
            gain,
            first_certain,
            prior,
            bound,
            start,
        )
    # A gain above 500 nats raises an alarm in every state; the limit avoids an
    # overflow.
    factor = np.exp(np.minimum(gain[start:], 500.0))
    stream_means = (state @ prior).sum(axis=1)
    total = float(stream_means.sum())
    for row, (index, gain_factor) in enumerate(
        zip(stream[start:].tolist(), factor, strict=True), start
    ):
        # A view, so that the state is updated in place.
        statistic = state[index]
        statistic += 1.0
        statistic *= gain_factor
        stream_means[index] = (statistic @ prior).sum()
        total = float(stream_means.sum())
        if total >= bound or row == first_certain:
            return row, total
    return len(gain), total


def _detect_change_in_single_stream(state, gain, first, prior, bound, start):
    """Run `update_state_and_find_alarm_or_end` of one stream, for some rows at once."""
    # Rounding changes a sum by less than this factor.
    below = bound * (1 - 1e-9)
    for begin in range(start, len(gain), _BLOCK_ROWS):
        # The statistic of a block is computed at once and checked afterwards: alarms
        # are rare, and numpy's overhead per row is large.
        course = np.exp(np.minimum(gain[begin : begin + _BLOCK_ROWS], 500.0))
        # The entries are views of the rows of `course`: each is changed before it
        # serves the next one.
        for number, before in enumerate([state, *course[:-1]]):
            course[number] *= before + 1.0
        # A matrix product may round differently from the sum of one row, so rows near
        # the bound are summed again as the loop for several streams does.
        near = (course @ prior).sum(axis=1) >= below
        if begin <= first < begin + len(course):
            near[first - begin] = True
        for index in np.flatnonzero(near).tolist():
            total = float((course[index] @ prior).sum())
            if total >= bound or begin + index == first:
                state[:] = course[index]
                return begin + index, total
        state[:] = course[-1]
    return len(gain), float((state @ prior).sum())


# -- online recalibration -------------------------------------------------------------------------


def compute_proba_by_line(
    sign: Any, log_odds: FloatArray, grid: LineGrid
) -> FloatArray:
    """Return P(event) by each pair, or P(no event) if `sign` is -1; (n, n_pairs).

    The log-odds `log_odds`, of shape (n,), are within 30 of 0, so that none is 0.
    """
    slope = np.multiply(sign, log_odds)
    shift = np.multiply(sign, 1.0)
    return expit(
        np.multiply.outer(slope, grid.slope) + np.multiply.outer(shift, grid.shift)
    )


def update_grid_weights(
    log_weight: FloatArray,
    likelihood: FloatArray,
    power: FloatArray | None,
    grid: LineGrid,
    returned_fraction: float,
) -> FloatArray:
    """Return the weights of the pairs after some rows.

    Bayes' rule, then a fraction goes back to the prior.

    Parameters
    ----------
    log_weight : ndarray of shape (n_pairs,)
        Logarithms before the first row, of weights with sum 1.
    likelihood : ndarray of shape (n, n_pairs), > 0
        Of the label of each row, not below 1e-100.
    power : ndarray of shape (n,), or None
        To which the likelihoods of each row are raised.
    grid : LineGrid
    returned_fraction : float from 0 to 1

    Returns
    -------
    log_weight : ndarray of shape (n_pairs,)
        With these weights the row behind the last is predicted.
    """
    if power is not None or returned_fraction == 0:
        log = np.log(likelihood) * (1.0 if power is None else power[:, None])
        if returned_fraction == 0:
            log_weight = log_weight + log.sum(axis=0)
            return log_weight - compute_log_mixture(log_weight - grid.log_prior, grid)
        likelihood = np.exp(log - log.max(axis=1, keepdims=True))
    weight = np.exp(log_weight)
    # Fixed share (Herbster and Warmuth): a fraction of the weight returns to the prior
    # after each row, so that the mixture can follow a drift.
    back = returned_fraction * np.exp(grid.log_prior)
    for row in likelihood:
        weight *= row
        weight *= (1.0 - returned_fraction) / weight.sum()
        weight += back
    return np.log(weight)
