"""Histogram binning."""

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._kernels._binning import bin_sums, equal_mass_edges, log_evidence, pool
from .._simplex import second_score
from ._base import Capabilities, Recalibrator, two_columns


class HistogramBinning(Recalibrator):
    """Replace each score by the share of positives in its bin.

    Makes no assumption on the shape and gives each bin its own guarantee; the result has as many
    values as bins. Often fitted after a parametric method, which is the scaling-binning
    calibrator: ``make_pipeline(TemperatureScaling(), HistogramBinning())``. More than two classes
    are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    n_bins : int or "bdeu", default=10
        Number of bins; "bdeu" takes the one up to 10 n^(1/3) whose bins have the largest marginal
        likelihood with the BDeu prior of two pseudo-counts in all.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass, or of equal width.

    Attributes
    ----------
    n_bins_ : int
        Number of bins asked for or chosen.
    bin_edges_ : ndarray of shape (n_bins_found - 1,)
        Inner edges, increasing; each bin contains its right edge.
    bin_values_ : ndarray of shape (n_bins_found,)
        Share of positives; the middle of the bin where it holds no calibration row.
    bin_weights_ : ndarray of shape (n_bins_found,)
        Calibration weight of each bin.
    one_vs_rest_ : list of HistogramBinning
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    Equal scores always share a bin, so heavy ties can leave fewer bins than asked for. Cost:
    O(n log n) at fit, O(log B) a prediction for B bins.

    References
    ----------
    Zadrozny, Elkan (2001), "Obtaining calibrated probability estimates from decision trees and
    naive Bayesian classifiers", section 4. Kumar, Liang, Ma (2019), "Verified uncertainty
    calibration", for the scaling-binning calibrator.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import HistogramBinning
    >>> hb = HistogramBinning(n_bins=2).fit([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1])
    >>> hb.bin_edges_, hb.bin_values_
    (array([0.5]), array([0.5, 1. ]))
    """

    capabilities = Capabilities(flexible=True, cost="O(k n log n)")
    _parameter_constraints: dict = {  # noqa: RUF012
        "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"bdeu"})],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    def __init__(self, n_bins=10, strategy="quantile"):
        self.n_bins = n_bins
        self.strategy = strategy

    def _fit(self, proba, codes, weight):
        score = second_score(proba)
        self.n_bins_ = self.n_bins
        if self.n_bins == "bdeu":
            self.n_bins_ = _best_number(score, codes, weight, self.strategy)
        if self.strategy == "uniform":
            self.bin_edges_ = np.arange(1, self.n_bins_) / self.n_bins_
        else:
            self.bin_edges_ = equal_mass_edges(score, weight, self.n_bins_)
        # equal mass: bins that ties left empty vanish; equal width: they stay, with their middle
        number = np.searchsorted(self.bin_edges_, score, side="left")
        total, hits = bin_sums(number, len(self.bin_edges_) + 1, weight, weight * codes)
        middle = np.convolve(np.r_[0.0, self.bin_edges_, 1.0], [0.5, 0.5], mode="valid")
        self.bin_values_ = np.divide(hits, total, out=middle, where=total > 0)
        self.bin_weights_ = total

    def _predict_proba(self, proba):
        number = np.searchsorted(self.bin_edges_, second_score(proba), side="left")
        return two_columns(self.bin_values_[number])


def _best_number(score, codes, weight, strategy):
    """The number of bins with the largest evidence, by prefix sums over the distinct scores."""
    knots, _, mass, share = pool(score, codes, weight)
    total = np.append(0.0, np.cumsum(mass))
    ones = np.append(0.0, np.cumsum(mass * share))
    place = knots if strategy == "uniform" else (total[1:] - 0.5 * mass) / total[-1]
    evidence = []
    for n_bins in range(1, 1 + min(int(np.ceil(total[-1])), int(np.ceil(10 * np.cbrt(total[-1]))))):
        inner = np.arange(1, n_bins) / n_bins
        ends = np.searchsorted(place, inner, side="right" if strategy == "uniform" else "left")
        cuts = np.concatenate([[0], ends, [len(knots)]])
        filled = np.diff(total[cuts])
        prior = 2.0 / n_bins
        evidence.append(log_evidence(filled, np.diff(ones[cuts]), prior, 0.5))
    return 1 + int(np.argmax(evidence))
