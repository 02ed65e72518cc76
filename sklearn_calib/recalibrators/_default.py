"""The method that is taken when none is named."""

from dataclasses import replace
from itertools import chain

import numpy as np
from scipy.special import expit, logit, logsumexp, softmax

from .. import maps
from .._kernels._log_odds import round_to_36_bits
from .._kernels._logistic import (
    fit_slope_and_opposite_offsets,
    fit_two_class_vector_scaling,
)
from .._kernels._softmax_regression import (
    fit_softmax_regression,
    fit_temperature_and_offsets,
)
from .._kernels._temperature import fit_temperature, mix_with_uniform, scale_proba
from .._kernels._two_class_problems import iter_one_vs_rest
from .._simplex_array import compute_log_odds, compute_sigmoid_columns, log_proba
from .._typing import FloatArray
from .._warnings import warn_calibration
from ._base import Recalibrator
from ._identity import Identity
from ._softmax_family import FittedSoftmax
from ._spline import SplineCalibration
from ._structured_matrix import StructuredMatrixScaling
from ._structured_vector import StructuredVectorScaling

# Labels of these rows follow the scores.
_IDENTITY_PSEUDO_ROWS_PER_CLASS = 2
# For each class beyond two, the offsets must save so many nats on the calibration rows.
_MIN_OFFSET_GAIN_NATS_PER_CLASS = 2.0
_BINARY_LINE_PENALTY = 2.0
#: Nats that a map must save on the calibration rows, compared with unchanged scores.
_MIN_TWO_CLASS_GAIN_NATS_BY_SCALE = {
    "logit": 2.0,
    "compressed": 4.0,
    "rank": 2.5,
    "proba": 4.0,
}
_VECTOR_PRICE_NATS = 1.0
# Half a nat for each class if that is more.
_MIN_MATRIX_PRICE_NATS = 4.0
# Beyond the price of the matrix.
_COMPRESSED_EXTRA_PRICE_NATS = 1.0
_SPLINE_EXTRA_PRICE_NATS = 8.0
_MIN_MAP_WEIGHT = 0.01
# The weight of the uniform distribution.
_MIN_UNIFORM_WEIGHT = 1e-9
MIN_ROW_LIKELIHOOD = 2.2e-16
_MAX_RANK_KNOTS = 20
# The slope of the log-odds at 1/2.
_LOG_ODDS_SLOPE_AT_HALF = 4.0
# From so many classes on there are only matrix, vector and unchanged scores.
_MIN_CLASSES_FOR_FEWER_MAPS = 50
# With fewer rows a spline does not save its price.
_MIN_SPLINE_ROWS = 300


class DefaultCalibration(Recalibrator):
    """The mean of structured scaling on several scales and of the unchanged scores.

    One method for any number of classes and rows. Each map first fits one temperature
    for all classes, together with an offset for each class if the calibration rows
    leave no doubt that the base rates differ. A penalised matrix (two classes: a factor
    for each) then departs from it as far as the rows determine. The maps, and the
    scores as they are, are averaged with weights for how well they fit. The mean can
    move the base rate, which temperature scaling cannot, and rarely makes scores worse:
    the safe choice for forests, nearest neighbours, trees, naive Bayes, and models
    trained with class weights or on resampled rows.

    Attributes
    ----------
    maps_ : list of fitted maps
        Without those whose weight would be below 0.01. For two classes these are maps of
        the log-odds, of log-odds with short tails, of ranks, and of the probability;
        their ``scale`` is "logit", "compressed", "rank" or "proba". For more classes they
        are matrix scaling, vector scaling, matrix scaling of scores with short tails,
        and the first one followed by a spline that all classes share. The last one is
        `Identity`, the unchanged scores. All but the last two have
        ``inverse_temperature_``, the factor a of the logarithms in the first step;
        ``offsets_`` of shape (n_classes,), added to a l there, with mean 0, all 0 if
        they were not taken; ``uniform_share_``; ``coef_``, of shape (2,) for two
        classes (at least 0), (n_classes, n_classes) for a matrix of more, and
        (n_classes,) for a vector, of the logarithms of its result, a row makes one
        class; ``intercept_`` of shape (n_classes,), with mean 0; and of the second step
        ``objective_`` in nats, ``gradient_norm_``, ``newton_decrement_`` and
        ``n_iter_``.
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
    the uniform distribution, n the sum of the weights; on the log-odds of two classes
    with less if the first step expects less than one error among the n rows. The second
    step is `StructuredMatrixScaling` or `StructuredVectorScaling`, for two classes the
    latter with twice its penalty, from there. A factor below 0, with which the map
    would not be monotone for two classes, is 0 instead. Scores that fall with the
    outcome get a falling map.

    Log-odds of naive Bayes reach 80, and a few of them tilt the map of all others. In
    scores with short tails l is -log(1 + max l - l), in which they stand near the
    others. The map of ranks replaces a score by the log-odds of its share among the
    calibration scores, linear between 20 of them: it does not depend on how scores are
    spaced. That of the probability p takes 4 p - 2 for the log-odds, for scores that
    count votes.

    The weights are proportional to the likelihood of the calibration rows, divided by
    exp(price), in nats: 0 for unchanged scores; for two classes 2 on log-odds, 4 with
    short tails, 2.5 for ranks and 4 for probabilities; for more classes 1 for the
    vector, at least 4 and k / 2 for the matrix, 1 more with short tails and 8 more with
    the spline, which takes 300 rows. From 50 classes on there are only matrix, vector
    and unchanged scores.

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
    >>> DefaultCalibration().fit(*make_overconfident(2, 500)).maps_[0].scale
    'logit'
    """

    maps_: "list[_TwoStepScaling | _MapWithSharedSpline | Identity]"
    weights_: FloatArray

    capabilities = replace(FittedSoftmax.capabilities, monotone=True, weights="counts")

    def _fit(self, proba, codes, weight):
        """Fit the candidates, and mix their maps by penalised likelihoods."""
        is_binary = proba.shape[1] == 2
        iter_fits = (
            self._iter_two_class_fits_prices_and_proba
            if is_binary
            else self._iter_multiclass_fits_prices_and_proba
        )
        unchanged = [(Identity(), 0.0, proba)]
        candidates = []
        scores = []
        slopes = []
        for candidate, price, predicted in chain(
            iter_fits(proba, codes, weight), unchanged
        ):
            true = np.asarray(predicted)[np.arange(len(codes)), codes]
            # Large tables are not held while the next map is fitted.
            del predicted
            fit = weight @ np.log(np.maximum(true, MIN_ROW_LIKELIHOOD))
            candidates.append(candidate)
            scores.append(float(fit) - price)
            slopes.append(getattr(candidate, "inverse_temperature_", 1.0))
        # Maps are mixed by their likelihood, not selected, so that small changes of the
        # data change the result little.
        weights = softmax(scores)
        # The first map always stays, because unchanged scores alone may be exact zeros.
        weights[0] = max(weights[0], _MIN_MAP_WEIGHT)
        # The mean of an increasing and a decreasing map may be neither.
        if is_binary:
            weights[np.array(slopes) * slopes[weights.argmax()] < 0] = 0.0
        kept = np.flatnonzero(weights >= _MIN_MAP_WEIGHT)
        self.maps_ = [candidates[number] for number in kept]
        self.weights_ = weights[kept] / weights[kept].sum()

    def _iter_two_class_fits_prices_and_proba(self, proba, codes, weight):
        """Yield fitted maps, their prices, and what they make of the rows."""
        scores = _compute_log_proba_or_log_odds(proba)
        for scale, price in _MIN_TWO_CLASS_GAIN_NATS_BY_SCALE.items():
            steps = _TwoStepScaling(scale)
            if scale == "rank" and not steps._try_set_rank_knots(scores, weight):
                continue
            yield steps, price, steps._fit_predict_scores(scores, codes, weight)

    def _iter_multiclass_fits_prices_and_proba(self, proba, codes, weight):
        """Yield fitted maps, their prices, and what they make of the rows."""
        scores = _compute_log_proba_or_log_odds(proba)
        matrix = _TwoStepScaling()
        matrix_proba = matrix._fit_predict_scores(scores, codes, weight)
        price = max(_MIN_MATRIX_PRICE_NATS, proba.shape[1] / 2)
        yield matrix, price, matrix_proba
        vector = _TwoStepScaling(first_step=matrix)
        yield (
            vector,
            _VECTOR_PRICE_NATS,
            vector._fit_predict_scores(scores, codes, weight),
        )
        if proba.shape[1] >= _MIN_CLASSES_FOR_FEWER_MAPS:
            return
        compressed = _TwoStepScaling("compressed")
        compressed_price = price + _COMPRESSED_EXTRA_PRICE_NATS
        yield (
            compressed,
            compressed_price,
            compressed._fit_predict_scores(scores, codes, weight),
        )
        del scores
        if weight.sum() < _MIN_SPLINE_ROWS:
            return
        splined = _MapWithSharedSpline(matrix)
        splined._fit(matrix_proba, codes, weight)
        yield (
            splined,
            price + _SPLINE_EXTRA_PRICE_NATS,
            splined._make_last_map()(matrix_proba),
        )

    def _make_map(self):
        return maps.make_mixture(
            self.weights_, [fitted._make_map() for fitted in self.maps_]
        )


def _compute_log_proba_or_log_odds(proba):
    """Return the inputs of the maps: logarithms, or log-odds of two classes."""
    log = log_proba(proba)
    return log[:, 1] - log[:, 0] if log.shape[1] == 2 else log


class _MapWithSharedSpline(Recalibrator):
    """A fitted map, followed by one spline that all classes share."""

    def __init__(self, first: "_TwoStepScaling") -> None:
        self.first = first

    def _fit(self, proba, codes, weight):
        """Fit one spline to the log-odds of each class against the rest."""
        n_classes = proba.shape[1]
        is_class = [codes == column for column in range(n_classes)]
        log_odds = [compute_log_odds(pair) for pair in iter_one_vs_rest(proba)]
        self.spline_ = SplineCalibration()
        self.spline_._fit_log_odds_and_set_attributes(
            np.concatenate(log_odds),
            np.concatenate(is_class),
            np.tile(weight, n_classes),
        )

    def _make_last_map(self):
        return maps.OneVsRest(parts=(self.spline_._make_map(),))

    def _make_map(self):
        return maps.make_chain(self.first._make_map(), self._make_last_map())


class _TwoStepScaling(FittedSoftmax):
    """One map: a temperature, perhaps with offsets, and structured scaling from there.

    Parameters
    ----------
    scale : {"logit", "compressed", "rank", "proba"}, default="logit"
        The scores that it is a map of; the last two are for two classes.
    first_step : _TwoStepScaling, default=None
        A fitted map of several classes whose first step is taken. Structured vector
        scaling follows it instead of matrix scaling.
    """

    inverse_temperature_: float
    offsets_: FloatArray
    uniform_share_: float

    def __init__(
        self, scale: str = "logit", *, first_step: "_TwoStepScaling | None" = None
    ) -> None:
        self.scale = scale
        self.first_step = first_step

    def _fit_predict_scores(self, scores, codes, weight):
        """Fit both steps, and return the probabilities of the rows."""
        total = float(weight.sum())
        # The uniform distribution gets the weight of one row in n + 1, so that no
        # probability becomes 0 (Laplace's rule).
        self.uniform_share_ = 1.0 / (total + 1.0)
        scores = self._convert_scores_to_scale(scores)
        if scores.ndim == 1:
            return self._fit_log_odds_and_predict_proba(scores, codes, weight)
        if self.first_step is None:
            self._fit_first_step(scores, codes, weight)
            second = StructuredMatrixScaling()
        else:
            self._set_first_step(
                (self.first_step.inverse_temperature_, self.first_step.offsets_)
            )
            second = StructuredVectorScaling()
        ridges = second._compute_coef_and_intercept_ridges(total, scores.shape[1])
        log = np.log(self._compute_first_step_proba(scores))
        self._store_fit(fit_softmax_regression(log.T, codes, weight, *ridges))
        log = log * self.coef_ if self.coef_.ndim == 1 else log @ self.coef_.T
        return softmax(log + self.intercept_, axis=1)

    def _fit_log_odds_and_predict_proba(self, log_odds, codes, weight):
        """Fit both steps for two classes, and return the probabilities of the rows."""
        self._set_first_step(
            fit_slope_and_opposite_offsets(
                log_odds, codes, weight, 2 * _IDENTITY_PSEUDO_ROWS_PER_CLASS
            )
        )
        log_odds = self.inverse_temperature_ * log_odds + np.diff(self.offsets_)
        # The data of a nearly perfect model contain few errors and allow a smaller
        # share.
        if self.scale == "logit":
            expected_errors = float(weight @ expit(-np.abs(log_odds)))
            share = self.uniform_share_ * min(1.0, expected_errors)
            self.uniform_share_ = max(share, _MIN_UNIFORM_WEIGHT)
        share = self.uniform_share_
        log = np.log((1.0 - share) * expit([-log_odds, log_odds]) + share / 2)
        penalty = _BINARY_LINE_PENALTY * 2 / float(weight.sum())
        self._store_fit(fit_two_class_vector_scaling(log, codes, weight, penalty))
        first, second = self.coef_[:, None] * log
        return compute_sigmoid_columns(second - first + np.diff(self.intercept_))

    def _try_set_rank_knots(self, scores, weight):
        """Keep log-odds of shares of the rows below scores; return whether scores differ.

        The knots are even in these log-odds, and the same if both classes change places.
        """
        score, row = np.unique(round_to_36_bits(scores, 0), return_inverse=True)
        if len(score) == 1:
            return False
        mass = np.bincount(row, weight)
        self.knots_ = score
        self.values_ = logit((np.cumsum(mass) - mass / 2) / mass.sum())
        if len(score) > _MAX_RANK_KNOTS:
            ends = self.values_[[0, -1]]
            even = np.linspace(*ends, _MAX_RANK_KNOTS)
            self.knots_ = np.interp(even, self.values_, score)
            self.values_ = even
        return True

    def _convert_scores_to_scale(self, scores):
        """Return the scores that this is a map of."""
        if self.scale == "logit":
            return scores
        if self.scale == "rank":
            return np.interp(scores, self.knots_, self.values_)
        if self.scale == "proba":
            return _LOG_ODDS_SLOPE_AT_HALF * (expit(scores) - 0.5)
        if scores.ndim == 1:
            # Log-odds grow like a logarithm in the tails, for scores whose extreme
            # values are overconfident.
            return np.copysign(np.log1p(np.abs(scores)), scores)
        log = -np.log1p(scores.max(axis=1, keepdims=True) - scores)
        return log - logsumexp(log, axis=1, keepdims=True)

    def _make_scale_map(self):
        """Return the map from given scores to those that this is a map of."""
        if self.scale == "compressed":
            return maps.TailCompression()
        if self.scale == "proba":
            coef = [-_LOG_ODDS_SLOPE_AT_HALF / 2, _LOG_ODDS_SLOPE_AT_HALF]
            return maps.SigmoidPoly(input="proba", coef=coef)
        return maps.PiecewiseLinear(
            input="logit",
            link="sigmoid",
            domain=self.knots_[[0, -1]],
            knots=self.knots_,
            values=self.values_,
        )

    def _set_first_step(self, beta_and_offsets):
        self.inverse_temperature_, self.offsets_ = beta_and_offsets

    def _fit_first_step(self, log, codes, weight):
        """Fit the temperature, or temperature and offsets if that is clearly better."""
        fit = fit_temperature(log, codes, weight)
        k = log.shape[1]
        # Separable data have no finite optimum without an invented row of each label.
        if fit.status == "separable":
            fit = fit_temperature(log, codes, weight, self.uniform_share_)
        start = fit.beta if fit.status == "inside" else 0.0
        joint = fit_temperature_and_offsets(
            log,
            codes,
            weight,
            _IDENTITY_PSEUDO_ROWS_PER_CLASS * k,
            start,
        )
        alone = (float(fit.beta), np.zeros(k))
        losses = []
        for first in (alone, joint):
            self._set_first_step(first)
            true = self._compute_first_step_proba(log)[np.arange(len(codes)), codes]
            losses.append(float(-weight @ np.log(true)))
        # Offsets cost k - 1 parameters; they are used only if they gain more than noise
        # in the labels could.
        if losses[0] - losses[1] > _MIN_OFFSET_GAIN_NATS_PER_CLASS * (k - 2):
            return
        self._set_first_step(alone)
        if fit.status == "uninformative" and self.scale == "logit":
            warn_calibration(
                expected="scores that are higher for the true class",
                got="scores that are no better than a uniform guess",
                hint="The result is near the class frequencies",
                estimator=self,
            )

    def _compute_first_step_proba(self, log):
        """Compute the result of the first step."""
        scaled = scale_proba(log, self.inverse_temperature_, self.offsets_)
        return mix_with_uniform(scaled, self.uniform_share_)

    def _make_map(self):
        first = maps.SoftmaxAffine(
            coef=self.inverse_temperature_, intercept=self.offsets_, centred=True
        )
        share = self.uniform_share_
        smoothed = maps.make_mixture([1.0 - share, share], [first, maps.Uniform()])
        last = maps.SoftmaxAffine(coef=self.coef_, intercept=self.intercept_)
        if self.scale == "logit":
            return maps.make_chain(smoothed, last)
        return maps.make_chain(self._make_scale_map(), smoothed, last)
