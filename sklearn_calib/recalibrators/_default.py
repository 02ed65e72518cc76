"""The method that is taken when none is named."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from .._kernels._joint_start import fit_structured_pair, fit_temperature_and_offsets
from .._kernels._softmax_regression import fit_softmax_regression
from .._kernels._temperature import fit_temperature
from .._simplex import log_odds, log_proba
from .._typing import FloatArray
from ..exceptions import caution
from ._describe import UNIFORM, chain, mixture
from ._softmax_family import SoftmaxRegression
from ._structured_matrix import StructuredMatrixScaling

_PRIOR_ROWS = 2  # for each class, whose labels follow the scores
_NATS = 2.0  # for each class beyond two that the offsets must save on the calibration rows
_PENALTY_FOR_TWO = 4.0


class DefaultCalibration(SoftmaxRegression):
    """Structured scaling, from a temperature and, where the rates have moved, base-rate offsets.

    One method for any number of classes and rows. First one temperature for all classes, together
    with an offset for each class where the calibration rows leave no doubt that the base rates
    differ; then a penalised matrix (two classes: a factor for each) that departs from it as far as
    the rows tell. It can move the base rate, which temperature scaling cannot: the safe choice for
    forests, nearest neighbours, trees, naive Bayes, and models trained with class weights or on
    resampled rows.

    Attributes
    ----------
    inverse_temperature_ : float
        Factor a of the log-probabilities in the first step.
    offsets_ : ndarray of shape (n_classes,)
        Added to a log p in the first step, with mean 0; all 0 where they were not taken.
    n_samples_ : float
        n, the sum of the calibration weights. The result of the first step is mixed with 1 / (n +
        1) of the uniform distribution.
    coef_ : ndarray of shape (2,) for two classes, otherwise (n_classes, n_classes)
        Of the logarithms of that; a row makes one class. For two classes at least 0.
    intercept_ : ndarray of shape (n_classes,)
        With mean 0.
    objective_, gradient_norm_, newton_decrement_ : float
        The penalised loss of the second step, in nats, and the certificate of its optimality.
    n_iter_ : int
        Of the second step.
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
    The first step minimises the mean log loss of softmax(a log p + b) over the rows and 2 k
    invented ones whose labels follow p: a convex problem with a finite optimum, in which the prior
    never costs more than 2 k rows could, on any scale of the scores. The invented rows are spread
    over all rows; for two classes they are those of `PlattScaling`, of weight 2 each. It is taken
    where its log loss on the calibration rows is by more than 2 (k - 2) nats in all below that of
    the best temperature alone, which is taken otherwise: for two classes always. Where every row
    has its class on top, that temperature would be 0 without one more row, of all classes in equal
    parts. The second step is `StructuredMatrixScaling`, for two classes `StructuredVectorScaling`
    with four times its penalty, from there. A factor below 0, with which the map would not be
    monotone for two classes, is 0 instead. Scores that fall with the outcome get a falling map.

    Chosen by its log loss on real tables and hard cases, and judged on others, see the folder
    ``benchmarks/defaults``. Sample weights count rows: multiplied by a constant above 1 they let
    the fit depart further from no change. Cost: O(n k^2) a product.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), "Structured matrix scaling for multi-class
    calibration". Platt (1999), "Probabilistic outputs for support vector machines", for invented
    rows.

    Examples
    --------
    >>> from sklearn_calib.recalibrators import DefaultCalibration
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 2000)
    >>> default = DefaultCalibration().fit(proba, y)
    >>> bool(default.inverse_temperature_ < 1), default.offsets_.tolist()
    (True, [0.0, 0.0, 0.0])
    >>> DefaultCalibration().fit(*make_overconfident(2, 500)).coef_.shape
    (2,)
    """

    inverse_temperature_: float
    offsets_: FloatArray
    n_samples_: float

    capabilities = replace(SoftmaxRegression.capabilities, monotone=True, weights="counts")
    _parameter_constraints: dict = {}  # noqa: RUF012
    _laplace = True

    def __init__(self) -> None:
        """Without the penalty of the family."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(_of_before(state) if "recalibrator_" in state else state)

    def _fit(self, proba, codes, weight):
        log, n = log_proba(proba), float(weight.sum())
        self.n_samples_, k = n, log.shape[1]
        if k == 2:
            self._take(fit_temperature_and_offsets(log, codes, weight, _PRIOR_ROWS * k)[:2])
            first = np.stack(self._pair(log_odds(proba)))
            self._keep(fit_structured_pair(first, codes, weight, _PENALTY_FOR_TWO * k / n))
            return
        self._start(log, codes, weight)
        ridges = StructuredMatrixScaling()._ridges(n, k)
        self._keep(fit_softmax_regression(self._inputs(proba).T, codes, weight, *ridges))

    def _take(self, first):
        self.inverse_temperature_, self.offsets_ = first

    def _start(self, log, codes, weight):
        """The first step: the temperature alone, or the joint fit where that is clearly better."""
        fit, k = fit_temperature(log, codes, weight), log.shape[1]
        if fit.status == "separable":  # no finite optimum without an invented row of all labels
            fit = fit_temperature(log, codes, weight, 1.0 / (self.n_samples_ + 1.0))
        start = fit.beta if fit.status == "inside" else 0.0
        joint = fit_temperature_and_offsets(log, codes, weight, _PRIOR_ROWS * k, start)
        alone, losses = (float(fit.beta), np.zeros(k)), []
        for first in (alone, joint[:2]):
            self._take(first)
            true = self._smoothed(log)[np.arange(len(codes)), codes]
            losses.append(float(-weight @ np.log(true)))
        if losses[0] - losses[1] > _NATS * (k - 2):
            return
        self._take(alone)
        if fit.status == "uninformative":
            caution(
                "DefaultCalibration.fit",
                "scores that are higher for the true class",
                "scores that are no better than a uniform guess",
                "The result is near the class frequencies",
            )

    def _smoothed(self, log):
        """The result of the first step."""
        scaled = self.inverse_temperature_ * (log - log.max(axis=1, keepdims=True))
        share = 1.0 / (self.n_samples_ + 1.0)
        return (1.0 - share) * softmax(scaled + self.offsets_, axis=1) + share / log.shape[1]

    def _inputs(self, proba):
        return np.log(self._smoothed(log_proba(proba)))

    def _pair(self, score):
        """The logarithms of the first step's two probabilities, from log-odds."""
        score = self.inverse_temperature_ * score
        score += self.offsets_[1] - self.offsets_[0]
        share = 1.0 / (self.n_samples_ + 1.0)
        pair = expit(-score), expit(score, out=score)
        for part in pair:
            part *= 1.0 - share
            part += share / 2
            np.log(part, out=part)
        return pair

    def _predict_proba(self, proba):
        if proba.shape[1] > 2:
            return super()._predict_proba(proba)
        first, second = self._pair(log_odds(proba))
        second *= self.coef_[1]
        first *= self.coef_[0]
        second -= first
        second += self.intercept_[1] - self.intercept_[0]
        out = np.empty((len(second), 2))
        expit(second, out=out[:, 1])
        expit(np.negative(second, out=second), out=out[:, 0])
        return out

    def _nodes(self):
        first = {
            "node": "softmax_affine",
            "coef": self.inverse_temperature_,
            "intercept": self.offsets_,
            "centred": True,
        }
        share = 1.0 / (self.n_samples_ + 1.0)
        last = {"node": "softmax_affine", "coef": self.coef_, "intercept": self.intercept_}
        return chain(mixture([1.0 - share, share], [first, UNIFORM]), last)


def _of_before(state):
    """The state of a pickle of version 0.1.0: Platt scaling, or offsets and a structured matrix."""
    state = dict(state)
    method = state.pop("recalibrator_")
    names = ["coef_", "intercept_", "n_iter_", "objective_", "gradient_norm_", "newton_decrement_"]
    if "offsets_" in state:
        first = method.temperature_scaling_
        state |= {name: getattr(method, name) for name in names}
        state["inverse_temperature_"] = a = first.inverse_temperature_
        return state | {"offsets_": a * state["offsets_"], "n_samples_": first.n_samples_}
    half = method.intercept_ / 2
    state |= {"inverse_temperature_": method.slope_, "offsets_": np.array([-half, half])}
    return state | {"coef_": np.ones(2), "intercept_": np.zeros(2), "n_samples_": 1e300}
