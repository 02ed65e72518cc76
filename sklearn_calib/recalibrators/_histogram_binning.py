"""Histogram binning."""

from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._binning import (
    BIN_EDGE_TOLERANCE_IN_BINS,
    blend_with_base_rate,
    find_distinct_scores_and_index,
    find_mass_midpoint_fractions,
    find_scores_index_mass_and_event_rates,
    limit_rows_by_distinct_values,
    sum_bins,
    sum_log_evidence_over_bins,
)
from .._kernels._log_odds import (
    average_log_odds_as_probabilities,
    compute_rounded_unclipped_log_odds,
)
from .._sklearn_compat import NONNEGATIVE_REAL, POSITIVE_INTEGER
from .._typing import FloatArray, Strategy
from .._validation import get_rows_per_weight
from ._base import Capabilities, Recalibrator


class HistogramBinning(Recalibrator):
    """Replace each score by the share of positives in its bin.

    Makes no assumption on the shape and gives each bin its own guarantee; the result
    has as many values as bins. Often fitted after a parametric method, which is the
    scaling-binning calibrator: ``make_pipeline(TemperatureScaling(),
    HistogramBinning())``. More than two classes are handled one-vs-rest and the rows
    divided by their sums; with ten classes and more, each of them rare, ten bins of
    equal mass are too wide for the few rows that matter: take ``n_bins="bdeu"``, with
    fifty and more `TopLabel` of it.

    Parameters
    ----------
    n_bins : int or "bdeu", default=10
        Number of bins; "bdeu" takes the one up to 10 N^(1/3) whose bins have the
        largest marginal likelihood with the BDeu prior of two pseudo-counts in all. N
        is the number of rows, but not more than 8000 or, if that is more, the number of
        distinct scores.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass, or of equal width: those of `reliability_curve` and
        `expected_calibration_error`.
    prior_weight : float, default=5.0
        Number, at least 0, of rows that are invented in each bin: nine parts the mean
        score of the bin, one part the share of positives of all rows. They draw bins
        with few rows towards the score, and no bin predicts 0 or 1. With 0 a bin has
        the plain share of positives, as published.

    Attributes
    ----------
    n_bins_ : int
        Number of bins requested or chosen.
    bin_edges_ : ndarray of shape (n_bins_found - 1,)
        Inner edges, increasing; each bin contains its right edge.
    bin_values_ : ndarray of shape (n_bins_found,)
        Share of positives, invented rows included; the middle of the bin if it holds
        no calibration row.
    bin_weights_ : ndarray of shape (n_bins_found,)
        Calibration weight of each bin.
    one_vs_rest_ : list of HistogramBinning
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Equal scores always share a bin, so heavy ties can leave fewer bins than requested.
    Bins of equal mass are found in the log-odds, which distinguish scores close to 0
    and to 1. Swapping the classes swaps the result: a score whose weight has its middle
    on an edge of equal masses (the third of 5 rows in 2 bins) belongs to the bin nearer
    to the median, and on the median to that of the more certain scores. Two exceptions
    are not mirrored when the classes are swapped: a score of 1/2 on the median, which
    belongs to the upper bin, and a score on an edge of equal widths, whose bins are
    closed on the right.

    Weights that are whole numbers count rows; other weights add up to Kish's effective
    number of rows, (sum w)^2 / sum w^2, so that a common factor changes nothing. Cost:
    O(n log n) at fit, O(log B) a prediction for B bins.

    References
    ----------
    Zadrozny, Elkan (2001), "Obtaining calibrated probability estimates from decision
    trees and naive Bayesian classifiers", section 4. Kumar, Liang, Ma (2019), "Verified
    uncertainty calibration", for the scaling-binning calibrator.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import HistogramBinning
    >>> p, y = [0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1]
    >>> HistogramBinning(n_bins=2, prior_weight=0).fit(p, y).bin_values_
    array([0.5, 1. ])
    >>> hb = HistogramBinning(n_bins=2).fit(p, y)
    >>> hb.bin_edges_, hb.bin_values_.round(2)
    (array([0.5]), array([0.29, 0.89]))
    """

    n_bins_: int
    bin_edges_: FloatArray
    bin_values_: FloatArray
    bin_weights_: FloatArray

    capabilities = Capabilities(
        nonparametric_shape=True, weights="rows", cost="O(k n log n)"
    )
    _parameter_constraints: ClassVar = {
        "n_bins": [POSITIVE_INTEGER, StrOptions({"bdeu"})],
        "strategy": [StrOptions({"quantile", "uniform"})],
        "prior_weight": [NONNEGATIVE_REAL],
    }

    def __init__(
        self,
        n_bins: int | Literal["bdeu"] = 10,
        *,
        strategy: Strategy = "quantile",
        prior_weight: float = 5.0,
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.prior_weight = prior_weight

    def _fit(self, proba, codes, weight):
        """Choose the bins, and set each value to the event rate shrunk to the mean score."""
        score = self._compute_proba_or_rank_score(proba)
        self.n_bins_ = self.n_bins
        if self.n_bins == "bdeu":
            self.n_bins_ = _choose_bin_count(score, codes, weight, self.strategy)
        if self.strategy == "uniform":
            self._cuts = self.bin_edges_ = np.arange(1, self.n_bins_) / self.n_bins_
        else:
            self._cuts = _find_equal_mass_cuts(score, weight, self.n_bins_)
            self.bin_edges_ = expit(self._cuts)
        # With equal masses, bins that ties left empty are removed. With equal widths
        # they stay, with their middle as the value.
        number = np.searchsorted(self._cuts, score, side="left")
        second = weight * np.asarray(proba)[:, 1]
        total, hits, scores = sum_bins(
            number,
            len(self._cuts) + 1,
            weight,
            weight * codes,
            second,
        )
        filled = total > 0
        invented = self.prior_weight / get_rows_per_weight(weight)
        mean = np.divide(scores, total, out=np.zeros_like(total), where=filled)
        # Pseudo rows shrink a bin mostly to its own mean score, so that small bins do
        # little harm.
        hits = hits + invented * blend_with_base_rate(mean, hits.sum() / total.sum())
        centre = np.convolve(np.r_[0.0, self.bin_edges_, 1.0], [0.5, 0.5], mode="valid")
        self.bin_values_ = np.divide(hits, total + invented, out=centre, where=filled)
        self.bin_weights_ = total

    def _make_map(self):
        # Bins contain their right edges, steps their left ones.
        if self.strategy == "uniform":
            return maps.make_steps(
                "proba", np.nextafter(self._cuts, np.inf), self.bin_values_
            )
        return maps.make_steps_on_rounded_log_odds(
            self._cuts, self.bin_values_, right_closed=True
        )

    def _compute_proba_or_rank_score(self, proba):
        """Return the values to cut: probabilities for equal widths, ranks for equal masses."""
        return (
            np.asarray(proba)[:, 1]
            if self.strategy == "uniform"
            else compute_rounded_unclipped_log_odds(proba)
        )


def _find_equal_mass_cuts(score, weight, n_bins):
    """Return right-closed cuts between bins of equal mass, without empty bins."""
    values, row_value = find_distinct_scores_and_index(score)
    middles = find_mass_midpoint_fractions(np.bincount(row_value, weights=weight))
    starts = np.unique(_find_inner_bin_starts(values, middles, n_bins))
    # Bins that begin before the first score or behind the last one are empty.
    left = starts[(starts > 0) & (starts < len(values))] - 1
    # The mean of neighbouring floats may round to the right one, which must stay in the
    # next bin.
    return np.minimum(
        average_log_odds_as_probabilities(values[left], values[left + 1]),
        np.nextafter(values[left + 1], -np.inf),
    )


def _find_inner_bin_starts(values, mass_midpoints, n_bins):
    """Find the starts of bins 1, 2, ... of increasing log-odds, from the middles of masses.

    A middle on an edge belongs to the bin that is nearer to the median, and on the
    median to that of the more certain scores: the same rows when the classes are
    swapped.
    """
    edge = np.arange(1, n_bins)
    # A middle on an edge is put into the outer bin on both sides of 1/2, so that
    # exchanged classes give mirrored bins.
    above = np.searchsorted(
        mass_midpoints, (edge - BIN_EDGE_TOLERANCE_IN_BINS) / n_bins
    )
    below = np.searchsorted(
        mass_midpoints, (edge + BIN_EDGE_TOLERANCE_IN_BINS) / n_bins
    )
    upwards = values[np.minimum(above, len(values) - 1)] >= 0
    upwards = np.where(2 * edge == n_bins, upwards, 2 * edge < n_bins)
    return np.where(upwards, above, below)


def _choose_bin_count(score, codes, weight, strategy):
    """Return the number of bins with the largest evidence, from partial sums."""
    from .._kernels._range_sums import RangeSums

    knots, _, mass, share = find_scores_index_mass_and_event_rates(score, codes, weight)
    mass = mass * get_rows_per_weight(weight)
    sums = RangeSums(mass * (1 - share), mass * share)
    uniform = strategy == "uniform"
    bin_axis = knots if uniform else find_mass_midpoint_fractions(mass)
    rows = limit_rows_by_distinct_values(mass.sum(), len(knots))
    evidence = []
    # At most 10 n^(1/3) bins are tried, as in the averages of binnings (BBQ).
    most = int(np.ceil(min(rows, 10 * np.cbrt(rows)) - BIN_EDGE_TOLERANCE_IN_BINS))
    for n_bins in range(1, 1 + most):
        if uniform:
            cuts = np.searchsorted(
                bin_axis, np.arange(1, n_bins) / n_bins, side="right"
            )
        else:
            cuts = _find_inner_bin_starts(knots, bin_axis, n_bins)
        zeros, ones = sums.sum_between(np.append(0, cuts), np.append(cuts, len(knots)))
        # The BDeu score with an equivalent sample size of 2, as in the implementation
        # of Naeini et al. (2015).
        evidence.append(
            sum_log_evidence_over_bins(zeros + ones, ones, 2.0 / n_bins, 0.5)
        )
    return 1 + int(np.argmax(evidence))
