"""The method that is taken when none is named."""

from dataclasses import replace

import numpy as np
from scipy.special import expit, logsumexp, softmax

from .. import maps
from .._kernels._logistic import fit_slope_and_intercept, fit_structured_pair
from .._kernels._softmax_regression import (
    fit_softmax_regression,
    fit_temperature_and_offsets,
)
from .._kernels._temperature import fit_temperature, mix_with_uniform, scale_proba
from .._simplex_array import apply_sigmoid, log_proba
from .._typing import FloatArray
from .._warnings import warn_calibration
from ._base import Recalibrator
from ._softmax_family import FittedSoftmax
from ._structured_matrix import StructuredMatrixScaling

_PRIOR_ROWS = 2  # for each class, whose labels follow the scores
# for each class beyond two that the offsets must save on the calibration rows
_NATS = 2.0
_PENALTY_FOR_TWO = 4.0
_PRIOR = 0.9  # of the first map
_SMALLEST_WEIGHT = 0.01
MIN_LIKELIHOOD = 2.2e-16  # likelihood of a row
_CLASSES_FOR_ONE = 50


class DefaultCalibration(Recalibrator):
    """Structured scaling, from a temperature and, if the rates have moved, base-rate offsets.

    One method for any number of classes and rows. First one temperature for all
    classes, together with an offset for each class if the calibration rows leave no
    doubt that the base rates differ; then a penalised matrix (two classes: a factor for
    each) that departs from it as far as the rows justify. The same again from scores
    whose tails are made short, for two classes also from a temperature without offsets,
    and the mean of these maps, weighted by how well they fit. It can move the base
    rate, which temperature scaling cannot: the safe choice for forests, nearest
    neighbours, trees, naive Bayes, and models trained with class weights or on
    resampled rows.

    Attributes
    ----------
    maps_ : list of one to three fitted maps
        The map of the scores as they are, that of the scores whose tails are short
        (``squeezed``), and that without offsets, without those whose weight would be
        below .01. Each has ``inverse_temperature_``, the factor a of the logarithms in
        the first step; ``offsets_`` of shape (n_classes,), added to a l there, with
        mean 0, all 0 if they were not taken; ``coef_``, of shape (2,) for two
        classes (at least 0) and (n_classes, n_classes) for more, of the logarithms of
        its result, a row makes one class; ``intercept_`` of shape (n_classes,), with
        mean 0; and of the second step ``objective_`` in nats, ``gradient_norm_``,
        ``newton_decrement_`` and ``n_iter_``.
    weights_ : ndarray of shape (n_maps,)
        Of the mean, with sum 1.
    floor_ : float
        What smaller probabilities count as; see `Recalibrator`.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    Warns
    -----
    CalibrationWarning
        More than two classes, and scores that are no better than a uniform guess.

    Notes
    -----
    The first step minimises the mean log loss of softmax(a l + b) over the rows and 2 k
    invented ones whose labels follow the scores, l the logarithms of the scores: a
    convex problem with a finite optimum, in which the prior never costs more than 2 k
    rows could, on any scale of the scores. The invented rows are spread over all rows;
    for two classes they are those of `PlattScaling`, of weight 2 each. It is taken
    if its log loss on the calibration rows is by more than 2 (k - 2) nats in all
    below that of the best temperature alone, which is taken otherwise: for two classes
    always. If every row has its class on top, that temperature would be 0 without
    one more row, of all classes in equal parts. The result is mixed with 1 / (n + 1) of
    the uniform distribution, n the sum of the weights. The second step is
    `StructuredMatrixScaling`, for two classes `StructuredVectorScaling` with four times
    its penalty, from there. A factor below 0, with which the map would not be monotone
    for two classes, is 0 instead. Scores that fall with the outcome get a falling map.

    Log-odds of naive Bayes reach 80, and a few of them tilt the map of all others. In
    the second map l is -log(1 + max l - l), in which they stand near the others. For
    two classes there is a third one, of the scores as they are, from a temperature
    without offsets (with the same invented rows) and with the plain penalty: few rows
    of a class determine offsets poorly. The weights are proportional to the likelihood
    of the calibration rows, times .9 for the first map and .1 for the others together.
    From 50 classes on there is the first map only.

    Chosen by its log loss on real tables and hard cases, and judged on others, see the
    folder ``benchmarks/defaults``. Sample weights count rows: multiplied by a constant
    above 1 they let the fit depart further from no change. Cost: O(n k^2) a product.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), "Structured matrix scaling for multi-class
    calibration". Platt (1999), "Probabilistic outputs for support vector machines", for
    invented rows.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import DefaultCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 2000)
    >>> first = DefaultCalibration().fit(proba, y).maps_[0]
    >>> bool(first.inverse_temperature_ < 1), first.offsets_.tolist()
    (True, [0.0, 0.0, 0.0])
    >>> DefaultCalibration().fit(*make_overconfident(2, 500)).maps_[0].coef_.shape
    (2,)
    """

    maps_: "list[_TwoSteps]"
    weights_: FloatArray

    capabilities = replace(FittedSoftmax.capabilities, monotone=True, weights="counts")

    def _fit(self, proba, codes, weight):
        k = proba.shape[1]
        rows = np.arange(len(codes))
        # Maps of the log-odds and of compressed log-odds; for two classes also one
        # without offsets. They are mixed by their likelihood, not selected, so that
        # small changes of the data change the result little.
        candidates = [
            _TwoSteps(),
            *([_TwoSteps(squeezed=True)] if k < _CLASSES_FOR_ONE else []),
        ]
        candidates += [_TwoSteps(offsets=False)] if k == 2 else []
        given = _log_scores(proba)
        fits = []
        for one in candidates:
            one._fit(given, codes, weight)
            true = one._compute_proba(given)[rows, codes]
            fits.append(float(weight @ np.log(np.maximum(true, MIN_LIKELIHOOD))))
        prior = [
            _PRIOR,
            *[(1 - _PRIOR) / (len(candidates) - 1) for _ in candidates[1:]],
        ]
        # The posterior weights of the candidates under this prior, with the fitted
        # likelihoods.
        weights = softmax(np.log(prior) + fits)
        slopes = np.array([one.inverse_temperature_ for one in candidates])
        if k == 2:  # a mean of maps that rise and that fall may do neither
            weights[slopes * slopes[weights.argmax()] < 0] = 0.0
        kept = weights >= _SMALLEST_WEIGHT
        self.maps_ = [
            one for one, is_kept in zip(candidates, kept, strict=True) if is_kept
        ]
        self.weights_ = weights[kept] / weights[kept].sum()

    def _make_map(self):
        return maps.make_mixture(self.weights_, [one._make_map() for one in self.maps_])


def _log_scores(proba):
    """Return the inputs of the maps: logarithms, or log-odds of two classes."""
    log = log_proba(proba)
    return log[:, 1] - log[:, 0] if log.shape[1] == 2 else log


class _TwoSteps(FittedSoftmax):
    """One map: a temperature, perhaps with offsets, and structured scaling from there."""

    inverse_temperature_: float
    offsets_: FloatArray
    n_samples_: float

    def __init__(self, *, squeezed: bool = False, offsets: bool = True) -> None:
        self.squeezed = squeezed
        self.offsets = offsets

    def _fit(self, given, codes, weight):
        self.n_samples_ = float(weight.sum())
        two = given.ndim == 1
        given, k = self._squeeze_log_proba(given), 2 if two else given.shape[1]
        if two:
            prior_rows = _PRIOR_ROWS * k
            fit = fit_slope_and_intercept(
                given, codes, weight, prior_rows, self.offsets
            )
            self._keep_first(fit)
            penalty = (_PENALTY_FOR_TWO if self.offsets else 1.0) * k / self.n_samples_
            self._keep_fit(
                fit_structured_pair(
                    np.stack(self._compute_log_pair(given)), codes, weight, penalty
                )
            )
            return
        self._fit_first_step(given, codes, weight)
        ridges = StructuredMatrixScaling()._compute_ridges(self.n_samples_, k)
        first = np.log(self._apply_first_step(given)).T
        self._keep_fit(fit_softmax_regression(first, codes, weight, *ridges))

    def _squeeze_log_proba(self, given):
        if not self.squeezed:
            return given
        if given.ndim == 1:
            # Log-odds grow like a logarithm in the tails, for scores whose extreme
            # values are overconfident.
            return np.copysign(np.log1p(np.abs(given)), given)
        log = -np.log1p(given.max(axis=1, keepdims=True) - given)
        return log - logsumexp(log, axis=1, keepdims=True)

    def _keep_first(self, first):
        self.inverse_temperature_, self.offsets_ = first

    def _fit_first_step(self, log, codes, weight):
        """Fit the temperature, or temperature and offsets if that is clearly better."""
        fit = fit_temperature(log, codes, weight)
        k = log.shape[1]
        # no finite optimum without an invented row of all labels
        if fit.status == "separable":
            fit = fit_temperature(log, codes, weight, 1.0 / (self.n_samples_ + 1.0))
        start = fit.beta if fit.status == "inside" else 0.0
        joint = fit_temperature_and_offsets(log, codes, weight, _PRIOR_ROWS * k, start)
        alone, losses = (float(fit.beta), np.zeros(k)), []
        for first in (alone, joint):
            self._keep_first(first)
            true = self._apply_first_step(log)[np.arange(len(codes)), codes]
            losses.append(float(-weight @ np.log(true)))
        # Offsets cost k - 1 parameters; they are used only if they gain more than noise
        # in the labels could.
        if losses[0] - losses[1] > _NATS * (k - 2):
            return
        self._keep_first(alone)
        if fit.status == "uninformative" and not self.squeezed:
            warn_calibration(
                expected="scores that are higher for the true class",
                got="scores that are no better than a uniform guess",
                hint="The result is near the class frequencies",
                estimator=self,
            )

    def _apply_first_step(self, log):
        """Compute the result of the first step."""
        scaled = scale_proba(log, self.inverse_temperature_, self.offsets_)
        return mix_with_uniform(scaled, 1.0 / (self.n_samples_ + 1.0))

    def _compute_log_pair(self, score):
        """Compute the logarithms of the first step's two probabilities, from log-odds."""
        score = self.inverse_temperature_ * score + (
            self.offsets_[1] - self.offsets_[0]
        )
        # The uniform distribution gets the weight of one row in n + 1, so that no
        # probability becomes 0 (Laplace's rule).
        share = 1.0 / (self.n_samples_ + 1.0)
        return [np.log((1.0 - share) * expit(z) + share / 2) for z in (-score, score)]

    def _compute_proba(self, given):
        """Return the probabilities that the weights of the maps are fitted to."""
        given = self._squeeze_log_proba(given)
        if given.ndim == 2:
            z = np.log(self._apply_first_step(given))
            return softmax(z @ self.coef_.T + self.intercept_, axis=1)
        first, second = self._compute_log_pair(given)
        move = self.intercept_[1] - self.intercept_[0]
        z = self.coef_[1] * second - self.coef_[0] * first + move
        return apply_sigmoid(z)

    def _make_map(self):
        first = maps.SoftmaxAffine(
            coef=self.inverse_temperature_, intercept=self.offsets_, centred=True
        )
        share = 1.0 / (self.n_samples_ + 1.0)
        smoothed = maps.make_mixture([1.0 - share, share], [first, maps.Uniform()])
        last = maps.SoftmaxAffine(coef=self.coef_, intercept=self.intercept_)
        if self.squeezed:
            return maps.make_chain(maps.TailCompression(), smoothed, last)
        return maps.make_chain(smoothed, last)
