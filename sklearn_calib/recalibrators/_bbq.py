"""Bayesian binning into quantiles."""

from typing import ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .. import maps
from .._kernels._binning import (
    BIN_EDGE_TOLERANCE_IN_BINS,
    find_scores_index_mass_and_event_rates,
    limit_rows_by_distinct_values,
    sum_log_evidence_over_bins,
)
from .._kernels._log_odds import get_rounded_second_class_column
from .._typing import FloatArray, IntArray
from .._validation import get_rows_per_weight
from ._base import Capabilities, Recalibrator

_MIN_MODEL_WEIGHT_DROP_PER_VARIANCE = 0.001


class BBQ(Recalibrator):
    """Average of histogram binnings with different numbers of bins, weighted by Bayesian evidence.

    More than two classes are handled one-vs-rest and the rows divided by their sums.
    Not for a hundred classes, of which each has too few rows for bins: there take
    `TopLabel` of it.

    Parameters
    ----------
    criterion : {"bdeu2", "bdeu"}, default="bdeu2"
        The prior of a bin's frequency: "bdeu2" two pseudo-counts a bin with the middle
        of the bin as mean; "bdeu" two pseudo-counts shared by all bins, with mean 1/2.

    Attributes
    ----------
    n_bins_ : ndarray of shape (n_models,), int
        Bins of the models that are averaged, the best first.
    weights_ : ndarray of shape (n_models,)
        Their weights, with sum 1.
    bin_edges_ : ndarray of shape (n_pieces - 1,)
        Inner edges of the averaged step function, increasing; a piece contains its left
        edge.
    values_ : ndarray of shape (n_pieces,)
        Its values.
    one_vs_rest_ : list of BBQ
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    From N^(1/3) / 10 to 10 N^(1/3) bins of equal numbers of rows, at most N / 5. N is
    the number of rows, but not more than 8000 or, if that is more, the number of
    distinct scores: heavy weights cannot lead to more bins than there are scores to
    fill them. Weights that are whole numbers count rows; other weights add up to Kish's
    effective number of rows, (sum w)^2 / sum w^2, so that a common factor changes
    nothing. Models after the elbow of the sorted weights are left out. Bins are filled
    from below and the prior counts positives, as in the authors' program, so that
    swapping the classes changes the result; scores within 1.5e-11 of each other next to
    1 are ties. Departure from the authors' program: equal scores share a bin, or the
    fit would depend on the order of the rows; few or constant scores are not an error.
    Cost: O(n log n) and N^(2/3) log n for the models.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), "Obtaining well calibrated probabilities using
    Bayesian binning", and its program for the prior "bdeu2".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import BBQ
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(2, 500)
    >>> bbq = BBQ().fit(proba, y)
    >>> bool(0 < bbq.values_.min() < bbq.values_.max() < 1)
    True
    """

    n_bins_: IntArray
    weights_: FloatArray
    bin_edges_: FloatArray
    values_: FloatArray

    capabilities = Capabilities(
        nonparametric_shape=True,
        nonparametric=True,
        weights="rows",
        cost="O(k n log n)",
    )
    _parameter_constraints: ClassVar = {"criterion": [StrOptions({"bdeu2", "bdeu"})]}

    def __init__(self, criterion: Literal["bdeu2", "bdeu"] = "bdeu2") -> None:
        self.criterion = criterion

    def _fit(self, proba, codes, weight):
        """Fit all numbers of bins, and average those with the highest evidence."""
        data = _BinningFitter(proba, codes, weight)
        rows = limit_rows_by_distinct_values(data.rows, len(data.knots))
        root = np.cbrt(rows)
        # The paper tries n^(1/3) / 10 to 10 n^(1/3) bins; here bins also hold at least
        # five rows on average.
        min_bins = max(1, int(root / 10 + BIN_EDGE_TOLERANCE_IN_BINS))
        max_bins = max(
            min_bins,
            int(np.ceil(min(rows / 5, 10 * root) - BIN_EDGE_TOLERANCE_IN_BINS)),
        )
        models = [
            data.get_log_evidence_cuts_and_values(n_bins, self.criterion)
            for n_bins in range(min_bins, max_bins + 1)
        ]
        evidence = np.array([model[0] for model in models])
        # Relative to the best model, because the evidences themselves underflow.
        weights = np.exp(evidence - evidence.max())
        kept = _find_positions_before_elbow(weights)
        weights = weights[kept] / weights[kept].sum()
        self.n_bins_ = np.array([len(models[i][2]) for i in kept])
        self.weights_ = weights
        self.bin_edges_, self.values_ = _average_step_functions(
            [models[i] for i in kept], weights
        )

    def _make_map(self):
        return maps.make_steps("proba", self.bin_edges_, self.values_)


class _BinningFitter:
    """Distinct scores as they are, for cuts between them, and sums over ranges of them."""

    def __init__(self, proba, codes, weight):
        from .._kernels._range_sums import RangeSums

        knots, row_knot, mass, share = find_scores_index_mass_and_event_rates(
            get_rounded_second_class_column(proba), codes, weight
        )
        self.knots = np.zeros(len(knots))
        # Scores that agree to 36 bits are pooled, but cut points lie between the scores
        # as given.
        np.maximum.at(self.knots, row_knot, np.asarray(proba)[:, 1])
        mass = mass * get_rows_per_weight(weight)
        ones = mass * share
        self._sums = RangeSums(mass * (1 - share), ones, ones * self.knots)
        self._before = np.append(0.0, np.cumsum(mass))
        self.rows = self._before[-1]

    def get_log_evidence_cuts_and_values(self, n_bins, criterion):
        """Log evidence, inner edges and values of a model."""
        size = self.rows / n_bins
        size = (
            np.floor(size + BIN_EDGE_TOLERANCE_IN_BINS)
            if size >= 1 - BIN_EDGE_TOLERANCE_IN_BINS
            else size
        )
        starts = np.searchsorted(
            self._before[:-1], (np.arange(n_bins) - BIN_EDGE_TOLERANCE_IN_BINS) * size
        )
        starts = np.unique(starts[starts < len(self.knots)])
        before = self.knots[starts[1:] - 1]
        after = self.knots[starts[1:]]
        cuts = (before + after) / 2
        # The mean of two neighbouring floats is one of them, perhaps the lower one,
        # which belongs below the cut.
        cuts = np.where(cuts > before, cuts, after)
        zeros, ones, scores = self._sums.sum_runs(starts)
        n = zeros + ones
        middle = (np.append(0.0, cuts) + np.append(cuts, 1.0)) / 2
        if criterion == "bdeu2":
            count = 2.0
            mean = np.clip(middle, 0.005, 0.995)
        else:
            count = 2.0 / len(n)
            mean = np.full(len(n), 0.5)
        evidence = sum_log_evidence_over_bins(n, ones, count, mean)
        # The value of a bin is its event rate with one pseudo row; its label is the
        # mean of the bin's positives and its middle, which keeps empty bins near the
        # diagonal.
        values = (ones + (scores + middle) / (ones + 1)) / (n + 1)
        return evidence, cuts, np.clip(values, 0.0, 1.0)


def _find_positions_before_elbow(weights):
    """Return the positions of the heaviest models, before the weights level out."""
    order = np.argsort(-weights, kind="stable")
    falling = weights[order]
    spread = weights.var()
    k = 0
    # Models with equal evidence are kept together, so the selection does not depend on
    # their order.
    while k + 1 < len(order) and falling[k] == falling[k + 1]:
        k += 1
    while (
        k + 1 < len(order)
        and falling[k] - falling[k + 1] > _MIN_MODEL_WEIGHT_DROP_PER_VARIANCE * spread
    ):
        k += 1
    return order[: max(k, 1)]


def _average_step_functions(models, weights):
    """Average step functions with weights: sort their jumps, and sum them."""
    cuts = np.concatenate([cuts for _, cuts, _ in models])
    jumps = np.concatenate(
        [w * np.diff(values) for w, (*_, values) in zip(weights, models, strict=True)]
    )
    first = sum(w * values[0] for w, (*_, values) in zip(weights, models, strict=True))
    edges, edge_index = np.unique(cuts, return_inverse=True)
    steps = np.bincount(edge_index.ravel(), jumps, len(edges))
    return edges, np.clip(first + np.append(0.0, np.cumsum(steps)), 0.0, 1.0)
