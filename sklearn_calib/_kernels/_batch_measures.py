"""Measures of many predictions of the same rows of two classes, all in one pass.

`proba` has one line per model and one column per row; each model may weigh the rows in
its own way. Rows are sorted once per model, and serve every set of weights.
"""

from functools import cached_property

import numpy as np
from scipy.special import entr, expit

from ._loess import LOESS_SPAN
from ._log_odds import compute_finite_log_odds
from ._logistic import (
    fit_coefficient_and_likelihood,
    fit_logistic_line_and_likelihood,
    threshold_separates,
)

# Cells of the smoothed curve.
MAX_CURVE_CELLS = 64
# The temporaries of a block have so many entries and stay in the cache.
_MAX_BLOCK_ENTRIES = 1 << 15
# After these a slower method takes over, which always converges.
_MAX_NEWTON_STEPS = 12
# The likelihood that a last step may still gain, per unit of weight.
_MIN_LIKELIHOOD_GAIN = 1e-14
# Probabilities are raised to this for a log loss.
_MIN_PROBABILITY = float(np.finfo(np.float64).eps)
# A determinant below this, relative to its terms, determines no parabola: the scores
# are too few or too close.
_DETERMINANT_TOLERANCE = 1e-9


class SortedMultiModelPredictions:
    """Predictions of some models for the same rows, sorted once for all weights of the rows.

    Parameters
    ----------
    proba : ndarray of shape (n_models, n_samples)
        Of the event.
    outcome : ndarray of shape (n_samples,)
        1 for the event, else 0.
    """

    def __init__(self, proba, outcome):
        self._order = np.argsort(proba, axis=1, kind="stable")
        self.p = np.take_along_axis(proba, self._order, axis=1)
        self.outcome = outcome[self._order].astype(np.float64)

    @cached_property
    def _log_odds(self):
        return compute_finite_log_odds(self.p, 1 - self.p)

    @cached_property
    def _tie_first_and_last_if_any(self):
        """Return the first and last index of equal predictions; None without ties."""
        new = self.p[:, 1:] != self.p[:, :-1]
        if new.all():
            return None
        index = np.arange(self.p.shape[1])
        edge = np.ones((len(new), 1), dtype=bool)
        first = np.where(np.hstack([edge, new]), index, 0)
        first = np.maximum.accumulate(first, axis=1)
        last = np.where(np.hstack([new, edge]), index, index[-1])
        last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
        return first, last

    @cached_property
    def _log_losses(self):
        # The loss is limited by the spacing of float64 at 1, as in scikit-learn's
        # `log_loss`, so that a certain and wrong prediction does not make the mean of
        # all rows infinite.
        label_proba = np.where(self.outcome == 1, self.p, 1 - self.p)
        return -np.log(np.maximum(label_proba, _MIN_PROBABILITY))

    def compute_table_by_measure_and_model(self, names, weight):
        """Return one row per name and one column per model.

        Parameters
        ----------
        names : sequence of str
            Among `MEASURE_METHODS`.
        weight : ndarray of shape (n_samples,) or (n_models, n_samples)
            At least 0, not all 0.

        Returns
        -------
        values : ndarray of shape (n_names, n_models)
            NaN if a value does not exist.
        """
        self._set_resample_weights(weight)
        values = [getattr(self, MEASURE_METHODS[name])() for name in names]
        return np.array(values).reshape(len(names), -1)

    def smooth_curves(self, weight):
        """Return smoothed calibration curves of each model.

        These are the predictions and the frequencies, one row for each model.
        """
        self._set_resample_weights(weight)
        score, frequency, _ = self._get_cell_scores_smoothed_rates_and_mass()
        return score, frequency

    def _set_resample_weights(self, weight):
        """Weigh the sorted rows, and forget what depends on other weights."""
        # The line depends on the weights and is cached; the sort order, the log-odds
        # and the losses of the rows do not, so they are kept.
        vars(self).pop("_line_coefficients", None)
        if weight.ndim == 1:
            self.weight = weight[self._order]
        else:
            self.weight = np.take_along_axis(weight, self._order, axis=1)
        self.total = self.weight.sum(axis=1)
        self.event_weight = self._sum_weighted_rows(self.outcome)
        self.rate = self.event_weight / self.total
        self.has_both = (self.event_weight > 0) & (self.event_weight < self.total)

    def _sum_weighted_rows(self, values):
        return np.einsum("bn,bn->b", self.weight, values)

    def _average_weighted_rows(self, values):
        return self._sum_weighted_rows(values) / self.total

    def compute_oe_ratio(self):
        expected = self._sum_weighted_rows(self.p)
        return np.divide(
            self.event_weight,
            expected,
            out=np.full(len(expected), np.nan),
            where=expected > 0,
        )

    def compute_brier(self):
        return self._average_weighted_rows((self.outcome - self.p) ** 2)

    def compute_scaled_brier(self):
        return self._evaluate_if_both_labels(
            lambda: 1 - self.compute_brier() / (self.rate * (1 - self.rate))
        )

    def compute_log_losses(self):
        return self._average_weighted_rows(self._log_losses)

    def compute_nagelkerke_r2(self):
        # The log likelihood ratio per row is the entropy of the event rate less the log
        # loss. Nagelkerke divides Cox and Snell's R2, 1 - exp(-2 ratio), by its largest
        # possible value.
        entropy = entr(self.rate) + entr(1 - self.rate)
        gain = self.compute_log_losses() - entropy
        return self._evaluate_if_both_labels(
            lambda: np.expm1(2 * gain) / np.expm1(-2 * entropy)
        )

    def _evaluate_if_both_labels(self, compute_measure):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.has_both, compute_measure(), np.nan)

    def compute_auc(self):
        """Compute the area under the ROC curve of each model."""
        events = self.weight * self.outcome
        non_events = self.weight - events
        # A tie between an event and a non-event counts 1/2, as in the Mann-Whitney
        # statistic: the mean of the sums below the tie and up to it.
        before, after = self._sum_below_and_up_to_tie(non_events)
        below = (before + after) / 2
        pairs = self.event_weight * (self.total - self.event_weight)
        return self._evaluate_if_both_labels(
            lambda: np.einsum("bn,bn->b", events, below) / pairs
        )

    def _sum_below_and_up_to_tie(self, values):
        """Return sums over all lower predictions, and over these and equal ones."""
        after = np.cumsum(values, axis=1)
        if self._tie_first_and_last_if_any is None:
            return after - values, after
        first, last = self._tie_first_and_last_if_any
        before = np.take_along_axis(after - values, first, axis=1)
        return before, np.take_along_axis(after, last, axis=1)

    def _sum_ties_for_each_row(self, values):
        """Return the sum over the rows with the prediction of each row."""
        before, after = self._sum_below_and_up_to_tie(values)
        return after - before

    # -- lines in the log-odds ---------------------------------------------------------------

    def get_intercept(self):
        return self._line_coefficients[0]

    def get_slope(self):
        return self._line_coefficients[1]

    @cached_property
    def _line_coefficients(self):
        """Fit (a, b) of logit P = a + b z for each model."""
        log_odds = self._log_odds
        a = np.zeros(len(self.p))
        b = np.ones(len(self.p))
        arrived = np.zeros(len(a), dtype=bool)
        for _ in range(_MAX_NEWTON_STEPS):
            step_a, step_b, gain = self._compute_newton_steps_and_gains(log_odds, a, b)
            # A model that has converged keeps stepping with the others: a step at the
            # optimum changes nothing, and a mask would cost more than the step.
            arrived |= gain <= _MIN_LIKELIHOOD_GAIN * self.total
            a = a + step_a
            b = b + step_b
            if not (np.isfinite(gain) & ~arrived).any():
                break
        arrived &= np.isfinite(a) & np.isfinite(b)
        # Newton's method from (0, 1) diverges for few models, mostly those whose
        # classes nearly separate. These get a damped method, one at a time.
        for model in np.flatnonzero(~arrived):
            a[model], b[model] = self._fit_line_with_damping(model)
        return a, b

    def _compute_newton_steps_and_gains(self, log_odds, a, b):
        """Return Newton's step for each model and its gain; NaN if there is no step."""
        mean = expit(a[:, None] + b[:, None] * log_odds)
        curve = self.weight * mean
        pull = self.weight * self.outcome - curve
        curve *= 1 - mean
        pull = pull.sum(axis=1), np.einsum("bn,bn->b", pull, log_odds)
        bent = curve * log_odds
        h = curve.sum(axis=1), bent.sum(axis=1), np.einsum("bn,bn->b", bent, log_odds)
        with np.errstate(divide="ignore", invalid="ignore"):
            # The determinant of the 2 x 2 Hessian cancels if all log-odds are nearly
            # equal; NaN marks such models for the slower method.
            size = h[0] * h[2] - h[1] ** 2
            size = np.where(size > _DETERMINANT_TOLERANCE * h[0] * h[2], size, np.nan)
            step_a = (h[2] * pull[0] - h[1] * pull[1]) / size
            step_b = (h[0] * pull[1] - h[1] * pull[0]) / size
        return step_a, step_b, step_a * pull[0] + step_b * pull[1]

    def _fit_line_with_damping(self, model):
        """Fit the line of one model by a method that always converges."""
        used = self.weight[model] > 0
        log_odds = self._log_odds[model, used]
        outcome = self.outcome[model, used]
        weight = self.weight[model, used]
        # The likelihood has no finite maximum for one class, and no slope for one
        # score.
        if (outcome == outcome[0]).all() or (log_odds == log_odds[0]).all():
            return np.nan, np.nan
        (a, b), _ = fit_logistic_line_and_likelihood(log_odds, outcome, weight)
        if threshold_separates(log_odds, outcome):
            return np.nan, np.sign(b) * np.inf
        return a, b

    def fit_log_odds_shift(self):
        """Return a of logit P = a + z."""
        shifts = np.full(len(self.p), np.nan)
        for model in np.flatnonzero(self.has_both):
            log_odds = self._log_odds[model]
            constant = np.ones_like(log_odds)
            outcome = self.outcome[model]
            weight = self.weight[model]
            fit = fit_coefficient_and_likelihood(log_odds, constant, outcome, weight)
            shifts[model] = fit[0]
        return shifts

    # -- the smoothed curve ------------------------------------------------------------------

    def compute_ici(self):
        """Return the ICI: the mean distance of the cells from the curve."""
        score, frequency, mass = self._get_cell_scores_smoothed_rates_and_mass()
        return np.einsum("bc,bc->b", mass, np.abs(frequency - score)) / self.total

    def _get_cell_scores_smoothed_rates_and_mass(self):
        """Return scores, smoothed frequencies and masses of each model's cells.

        There are at most `MAX_CURVE_CELLS` cells.

        Local quadratic regression of the events on the predictions, as R's loess, of
        cells of equally many rows.
        """
        n = self.p.shape[1]
        # Cells hold equal numbers of rows, not equal weights: the same cells then serve
        # all bootstrap weights of a model, and the sort is not repeated.
        n_cells = min(MAX_CURVE_CELLS, n)
        starts = np.arange(n_cells) * n // n_cells
        mass = np.add.reduceat(self.weight, starts, axis=1)
        counts = np.diff(np.append(starts, n))
        plain_mean = np.add.reduceat(self.p, starts, axis=1) / counts
        score = np.add.reduceat(self.weight * self.p, starts, axis=1)
        score = np.divide(score, mass, out=plain_mean, where=mass > 0)
        events = self.weight * self.outcome
        # The rows of one prediction may be in two cells.
        if self._tie_first_and_last_if_any is not None:
            total = self._sum_ties_for_each_row(self.weight)
            event_rate = np.divide(
                self._sum_ties_for_each_row(events),
                total,
                out=np.zeros_like(total),
                where=total > 0,
            )
            # Each row gets the mean outcome of its tie, so the curve does not depend on
            # how the sort ordered the rows of a tie.
            events = self.weight * event_rate
        # Smoothing the excess over the diagonal instead of the frequency has no bias
        # for a calibrated model, even at the ends where a local fit is one-sided.
        excess = np.add.reduceat(events, starts, axis=1) - mass * score
        smoothed = score + _fit_local_parabolas(score, mass, excess)
        return score, np.clip(smoothed, 0, 1), mass


#: Names of quantities, and what computes them.
MEASURE_METHODS = {
    "O/E": "compute_oe_ratio",
    "calibration in the large": "fit_log_odds_shift",
    "intercept": "get_intercept",
    "slope": "get_slope",
    "ICI": "compute_ici",
    "Brier": "compute_brier",
    "scaled Brier": "compute_scaled_brier",
    "log loss": "compute_log_losses",
    "AUC": "compute_auc",
    "Nagelkerke R2": "compute_nagelkerke_r2",
}


#: Of the values of each quantity.
MEASURE_RANGES = {
    "O/E": (0.0, np.inf),
    "ICI": (0.0, 1.0),
    "Brier": (0.0, 1.0),
    "scaled Brier": (-np.inf, 1.0),
    "log loss": (0.0, np.inf),
    "AUC": (0.0, 1.0),
    "Nagelkerke R2": (-np.inf, 1.0),
}


def compute_measures_by_weight_and_model(proba, outcome, weight_sets, measure_names):
    """Return the measures of each model under each set of weights.

    The result has the shape (n_weights, n_names, n_models).

    Parameters
    ----------
    proba : ndarray of shape (n_models, n_samples)
    outcome : ndarray of shape (n_samples,)
    weight_sets : sequence of ndarray
        Each of shape (n_samples,) or (n_models, n_samples).
    measure_names : sequence of str
    """
    # Blocks of models are as large as the cache allows; each temporary has one entry
    # per model and row.
    step = max(1, _MAX_BLOCK_ENTRIES // proba.shape[1])
    blocks = []
    for start in range(0, len(proba), step):
        rows = slice(start, start + step)
        batch = SortedMultiModelPredictions(proba[rows], outcome)
        cut = [weight if weight.ndim == 1 else weight[rows] for weight in weight_sets]
        blocks.append(
            [
                batch.compute_table_by_measure_and_model(measure_names, weight)
                for weight in cut
            ]
        )
    return np.concatenate(blocks, axis=2)


def _fit_local_parabolas(score, mass, excess):
    """Return the local parabola of `excess` / `mass` at each score.

    The arrays have the shape (n_models, n_cells).

    A parabola reproduces the score itself: the smoothed difference is that of the
    smoothed curve.
    """
    t = score[:, None, :] - score[:, :, None]
    t /= _find_window_half_widths(score, mass)[:, :, None]
    np.clip(t, -1, 1, out=t)
    root = np.abs(t)
    # The tricube kernel (1 - |t|^3)^3 of loess, computed in place because this array is
    # the largest one.
    root *= root * root
    np.subtract(1, root, out=root)
    kernel = root * root
    kernel *= root
    columns = np.stack([mass, excess], axis=2)
    sums = [kernel @ columns]
    for _ in range(4):
        kernel *= t
        sums.append(kernel @ columns)
    s0, s1, s2, s3, s4 = (table[:, :, 0] for table in sums)
    value = [table[:, :, 1] for table in sums]
    c0 = s2 * s4 - s3**2
    c1 = s1 * s4 - s2 * s3
    c2 = s1 * s3 - s2**2
    # Cramer's rule for the normal equations of a level, a line and a parabola. A
    # singular system falls back to the next simpler curve, as with few distinct scores.
    flat = s0 * s2 - s1**2
    determinant = s0 * c0 - s1 * c1 + s2 * c2
    with np.errstate(divide="ignore", invalid="ignore"):
        level = value[0] / s0
        line = (value[0] * s2 - value[1] * s1) / flat
        parabola = (value[0] * c0 - value[1] * c1 + value[2] * c2) / determinant
    line = np.where(flat > _DETERMINANT_TOLERANCE * s0 * s2, line, level)
    return np.where(determinant > _DETERMINANT_TOLERANCE * s0 * s2 * s4, parabola, line)


def _find_window_half_widths(score, mass):
    """Return the half-widths of windows that hold `LOESS_SPAN` of the mass; above 0.

    Linear between cells, of whose mass one half lies on either side of the score. A
    window around a cell is wide enough if it holds a span that begins, or ends, at some
    cell.
    """
    width = np.maximum(score - score[:, :1], score[:, -1:] - score)
    # A window that holds the span is narrowest if it begins or ends at a cell;
    # mirroring the scores turns ends into beginnings.
    for x, m in ((score, mass), (-score[:, ::-1], mass[:, ::-1])):
        begin, end = _find_span_start_and_end_scores(x, m)
        positions = score[:, :, None] if x is score else -score[:, :, None]
        reach = np.maximum(positions - begin[:, None, :], end[:, None, :] - positions)
        np.minimum(width, reach.min(axis=2), out=width)
    # A window of width 0 holds only equal scores. The smallest width whose square does
    # not underflow keeps t finite and gives them the full kernel.
    return np.where(width > 0, width, np.finfo(np.float64).tiny ** 0.5)


def _find_span_start_and_end_scores(x, mass):
    """Return where spans of `LOESS_SPAN` of the mass begin and end.

    They begin at cells, and end between cells.
    """
    middle = np.cumsum(mass, axis=1) - mass / 2
    goal = middle + LOESS_SPAN * mass.sum(axis=1, keepdims=True)
    last = x.shape[1] - 1
    first = max(1, int((goal <= middle[:, -1:]).sum(axis=1).max()))
    goal = goal[:, :first]
    n_below = (middle[:, None, :] < goal[:, :, None]).sum(axis=2)
    right = np.clip(n_below, min(1, last), last)
    left = np.maximum(right - 1, 0)
    # Each span ends between two cells, at scores `low` and `high`, up to which the
    # cells hold the mass `before` and `after`.
    low = np.take_along_axis(x, left, axis=1)
    high = np.take_along_axis(x, right, axis=1)
    before = np.take_along_axis(middle, left, axis=1)
    after = np.take_along_axis(middle, right, axis=1)
    gain = after - before
    fraction = np.divide(goal - before, gain, out=np.ones_like(gain), where=gain > 0)
    end = low + np.clip(fraction, 0, 1) * (high - low)
    # A span for which the mass does not suffice has no end.
    end = np.where(goal <= middle[:, -1:], end, np.inf)
    return x[:, :first], end
