"""Bayesian binning into quantiles."""

import numpy as np
from sklearn.utils._param_validation import StrOptions

from .._kernels._binning import log_evidence
from ._base import Capabilities, Recalibrator, two_columns
from ._near_isotonic import pooled

_MIN_DROP = 0.001


class BBQ(Recalibrator):
    """Average of histogram binnings with different numbers of bins, weighted by their evidence.

    More than two classes are handled one-vs-rest and the rows divided by their sums.

    Parameters
    ----------
    score : {"bdeu2", "bdeu"}, default="bdeu2"
        The prior of a bin's frequency: "bdeu2" two pseudo-counts a bin with the middle of the bin
        as mean; "bdeu" two pseudo-counts shared by all bins, with mean 1/2.

    Attributes
    ----------
    n_bins_ : ndarray of shape (n_models,), int
        Bins of the models that are averaged, the best first.
    weights_ : ndarray of shape (n_models,)
        Their weights, with sum 1.
    bin_edges_ : ndarray of shape (n_pieces - 1,)
        Inner edges of the averaged step function, increasing; a piece contains its left edge.
    values_ : ndarray of shape (n_pieces,)
        Its values.
    one_vs_rest_ : list of BBQ
        More than two classes only.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Notes
    -----
    From n^(1/3) / 10 to 10 n^(1/3) bins of equal numbers of rows, at most n / 5. Models after the
    elbow of the sorted weights are left out. Departure from the authors' program: equal scores
    share a bin, or the fit would depend on the order of the rows; few or constant scores are not an
    error. Cost: O(n log n) and n^(2/3) for the models.

    References
    ----------
    Naeini, Cooper, Hauskrecht (2015), "Obtaining well calibrated probabilities using Bayesian
    binning", and its program for the prior "bdeu2".

    Examples
    --------
    >>> from sklearn_calib.recalibrators import BBQ
    >>> from sklearn_calib.testing import make_scores
    >>> proba, y = make_scores(2, 500)
    >>> bbq = BBQ().fit(proba, y)
    >>> bool(0 < bbq.values_.min() < bbq.values_.max() < 1)
    True
    """

    capabilities = Capabilities(flexible=True, nonparametric=True, cost="O(k n log n)")
    _parameter_constraints: dict = {  # noqa: RUF012
        "score": [StrOptions({"bdeu2", "bdeu"})],
    }

    def __init__(self, score="bdeu2"):
        self.score = score

    def _fit(self, proba, codes, weight):
        data = _Sorted(*pooled(proba, codes, weight))
        total = data.mass[-1]
        root = np.cbrt(total)
        least = max(1, int(root / 10))
        most = max(least, min(int(np.ceil(total / 5)), int(np.ceil(10 * root))))
        models = [data.binned(n_bins, self.score) for n_bins in range(least, most + 1)]
        evidence = np.array([model[0] for model in models])
        weights = np.exp(evidence - evidence.max())
        kept = _before_elbow(weights)
        weights = weights[kept] / weights[kept].sum()
        self.n_bins_ = np.array([len(models[i][2]) for i in kept])
        self.weights_ = weights
        self.bin_edges_, self.values_ = _averaged([models[i] for i in kept], weights)

    def _predict_proba(self, proba):
        piece = np.searchsorted(self.bin_edges_, np.asarray(proba)[:, 1], side="right")
        return two_columns(self.values_[piece])


class _Sorted:
    """Prefix sums over the distinct scores."""

    def __init__(self, knots, mass, share):
        self.knots = knots
        self.mass = np.append(0.0, np.cumsum(mass))
        self.ones = np.append(0.0, np.cumsum(mass * share))
        self.scores_of_ones = np.append(0.0, np.cumsum(mass * share * knots))

    def binned(self, n_bins, prior):
        """Log evidence, inner edges and values of a model."""
        total = self.mass[-1]
        size = np.floor(total / n_bins) if total >= n_bins else total / n_bins
        starts = np.searchsorted(self.mass[:-1], np.arange(n_bins) * size - 1e-9 * size)
        starts = np.unique(starts[starts < len(self.knots)])
        cuts = (self.knots[starts[1:] - 1] + self.knots[starts[1:]]) / 2
        ends = np.append(starts[1:], len(self.knots))
        n, ones = self.mass[ends] - self.mass[starts], self.ones[ends] - self.ones[starts]
        middle = (np.append(0.0, cuts) + np.append(cuts, 1.0)) / 2
        if prior == "bdeu2":
            count, mean = 2.0, np.clip(middle, 0.005, 0.995)
        else:
            count, mean = 2.0 / len(n), np.full(len(n), 0.5)
        evidence = log_evidence(n, ones, count, mean)
        scores = self.scores_of_ones[ends] - self.scores_of_ones[starts]
        values = (ones + (scores + middle) / (ones + 1)) / (n + 1)
        return evidence, cuts, np.clip(values, 0.0, 1.0)


def _before_elbow(weights):
    """Positions of the models before the weights level out, the heaviest first."""
    order = np.argsort(-weights, kind="stable")
    falling, spread = weights[order], weights.var()
    k = 0
    while k + 1 < len(order) and falling[k] == falling[k + 1]:
        k += 1
    while k + 1 < len(order) and falling[k] - falling[k + 1] > _MIN_DROP * spread:
        k += 1
    return order[: max(k, 1)]


def _averaged(models, weights):
    """The weighted mean of step functions: their jumps, sorted and summed."""
    cuts = np.concatenate([cuts for _, cuts, _ in models])
    jumps = np.concatenate(
        [w * np.diff(values) for w, (*_, values) in zip(weights, models, strict=True)]
    )
    first = sum(w * values[0] for w, (*_, values) in zip(weights, models, strict=True))
    edges, place = np.unique(cuts, return_inverse=True)
    steps = np.bincount(place.ravel(), jumps, len(edges))
    return edges, np.clip(first + np.append(0.0, np.cumsum(steps)), 0.0, 1.0)
