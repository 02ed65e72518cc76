"""Proper losses split into what recalibration can remove and what it cannot."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from .._kernels._temperature import cross_validated_temperature, fit_temperature
from .._simplex import log_proba
from .._typing import CV, ArrayLike, FloatArray, RecalibratorLike
from ..canonical import canonical_logits, canonical_proba
from ..exceptions import CalibrationWarning, check_level, is_number, refuse, refuse_unknown
from ..metrics import LossLike, canonical_case, get_loss
from ..recalibrators import (
    TemperatureScaling,
    aligned_proba,
    cross_fitted_proba,
    fit_recalibrator,
    folds_of,
    resolve_recalibrator,
)
from ._in_sample import (
    isotonic_refinement,
    loss_after_temperature,
    raised_case,
    temperature_of_case,
)
from ._intervals import Law, mean_law, temperature_laws, uncertainty_law

if TYPE_CHECKING:
    from ..metrics import Case

TERMS = ("risk", "calibration", "refinement", "sharpness", "uncertainty")


@dataclass(frozen=True)
class LossDecomposition:
    """A mean loss and its parts.

    risk = calibration + refinement = calibration + uncertainty - sharpness.

    Attributes
    ----------
    risk : float
        Mean loss of the predictions.
    calibration : float
        What recalibration removes: risk - refinement.
    refinement : float
        Mean loss after recalibration.
    sharpness : float
        What the scores are worth: uncertainty - refinement.
    uncertainty : float
        Mean loss of the class frequencies as prediction.
    standard_errors : dict of str to float or None
        Of risk, refinement and sharpness; the value give or take 1.96 of it is a 95 % interval.
        None where that is not so. It never is for calibration and uncertainty, whose errors are far
        from normal on calibrated rows and for equally frequent classes: `interval` knows their
        laws. And none is given for calibration, refinement and sharpness by another recalibrator
        than temperature scaling: see `decompose_loss`.
    loss : str or ProperLoss
        As it was given.
    """

    risk: float
    calibration: float
    refinement: float
    sharpness: float
    uncertainty: float
    standard_errors: dict[str, float | None]
    loss: LossLike
    _laws: dict[str, Law] = field(repr=False, default_factory=dict)

    def interval(self, term: str, level: float = 0.95) -> tuple[float, float] | None:
        """A confidence interval for the value of a term in the population.

        Parameters
        ----------
        term : {"risk", "calibration", "refinement", "sharpness", "uncertainty"}
        level : float in (0, 1), default=0.95

        Returns
        -------
        low, high : float
            Or None where no interval is known that holds what it promises: calibration, refinement
            and sharpness by another recalibrator than temperature scaling, or where the best
            temperature is infinite or 0.

        Raises
        ------
        ValueError
            An unknown term, or a level outside (0, 1).

        Notes
        -----
        The population values are: risk, the expected loss of the predictions; refinement, that of
        the predictions after the temperature with the smallest expected log loss; uncertainty, that
        of the true class frequencies; calibration and sharpness, their differences. With `cv` the
        estimates differ from those in sample by about 1 / n, the population values do not, and
        neither do the intervals.

        The bias of the terms in sample is taken off, so an interval need not be centred on its
        term. Risk: the normal law with Hall's correction for skewness. Refinement and sharpness:
        the normal law of the influences of the rows, which for the Brier loss include that of the
        fitted temperature. Calibration and uncertainty: those values q for which the estimate is
        within 1.96 standard deviations, whose square is a + b q; a is the variance of second order
        that is left on calibrated rows, or for equally frequent classes, where b q is 0.

        Measured coverage of the 95 % intervals: 93 to 97 % for two and four classes, 200 to 20,000
        rows, calibrated and overconfident, for log and Brier loss
        (``benchmarks/decomposition_coverage``). Of the spherical loss and two of the beta family,
        two classes: 90 to 96 % at 300 rows for the calibration term, whose law does not know its
        skewness, and 93 to 98 % at 1500; it is lowest for a loss without a bound on overconfident
        rows.

        References
        ----------
        Hall (1992), "On the removal of skewness by transformation", section 2.

        Examples
        --------
        >>> from sklearn_calib.decomposition import decompose_loss
        >>> from sklearn_calib.datasets import make_overconfident
        >>> proba, y = make_overconfident(3, 1000)
        >>> low, high = decompose_loss(y, proba).interval("calibration")
        >>> low > 0  # overconfident
        True
        """
        where = "LossDecomposition.interval"
        if term not in TERMS:
            refuse_unknown(where, "term", term, TERMS)
        check_level(level, where)
        law = self._laws.get(term)
        return None if law is None else law.interval(level)


def decompose_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> LossDecomposition:
    """Split a mean loss into calibration and refinement, and into uncertainty and sharpness.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    loss : {"log", "brier", "spherical"} or ProperLoss, default="log"
        The loss of `log_loss` (in nats), `brier_loss` or `spherical_loss`, any other name of
        `all_losses`, or an instance such as ``BetaFamilyLoss(2, 8)``.
    recalibrator : str or recalibrator, default="temperature"
        Whose best fit defines what can be removed. With "isotonic" and two classes this is the
        CORP decomposition: calibration is MCB, sharpness DSC, uncertainty UNC.
    cv : int, splitter or iterable, default=None
        None fits and evaluates on the same rows, which is fine for one parameter: for temperature
        scaling the refinement is too low by about 1 / (2 n). Pass folds for richer methods, and
        for isotonic below some 10,000 rows; an int means stratified folds, shuffled with seed 0.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.

    Returns
    -------
    decomposition : LossDecomposition

    Raises
    ------
    ValueError
        Unknown loss, or one of another number of classes; or invalid scores, labels or weights;
        see `canonical_proba`.

    Notes
    -----
    Signs. In sample, calibration >= 0 if the recalibrator contains the identity and minimises the
    loss that is decomposed. It can be negative for other losses than "log" after temperature
    scaling, which minimises the log loss, with smoothing, and with `cv`. Sharpness >= 0 if the
    recalibrator contains the class frequencies; temperature scaling contains only the uniform
    prediction, so with unequal classes a useless score has negative sharpness. Nothing is clipped.

    Intervals. ``decomposition.interval("calibration")`` is a confidence interval of a term; its
    docstring says what each term estimates, and how. Risk and uncertainty have one always, the
    other terms for temperature scaling only. The calibration term of isotonic calibration is
    positive on calibrated rows too, by an amount that shrinks like n^(-2/3) and depends on the
    whole law of the scores; with folds its refinement is too high in the same way. No standard
    error makes up for that: measured with the error of the row means, 95 % intervals held the
    calibration term in 0 to 72 % of the draws. Of other methods no interval was tested, so none is
    given; resample the rows where one is needed.

    Cost: the fits, and for temperature scaling with `cv` one more, of all rows.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), "Rethinking early stopping: refine, then calibrate",
    section 3. Broecker (2009), "Reliability, sufficiency, and the decomposition of proper scores",
    eq. 9. Dimitriadis, Gneiting, Jordan (2021) for CORP.

    Examples
    --------
    >>> from sklearn_calib.decomposition import decompose_loss
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 1000)
    >>> parts = decompose_loss(y, proba)
    >>> abs(parts.risk - parts.calibration - parts.refinement) < 1e-12
    True
    >>> parts.interval("calibration")[0] > 0  # overconfident
    True
    """
    case = canonical_case("decompose_loss", y_true, y_proba, sample_weight, labels)
    return decompose_case(case, loss, recalibrator, cv)


def decompose_case(
    case: "Case",
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    squares: FloatArray | None = None,
) -> LossDecomposition:
    """`decompose_loss` of a `Case`: nothing is validated again.

    Where an entry of the case stands for several rows of one prediction and label, its weight is
    the sum of theirs, and `squares` of shape (n_samples,) are the sums of their squared weights,
    which the intervals need.
    """
    rule = get_loss(loss, case.where, len(case.classes))
    total = case.weight.sum()
    w = case.weight / total
    squares = w**2 if squares is None else squares / total**2
    risk = rule.of_rows(case.proba, case.codes)
    fit = None
    if _is_plain_temperature(recalibrator):
        case = raised_case(case)
        fit = fit_temperature(log_proba(case.proba), case.codes, case.weight)
    refined = rule.of_rows(_recalibrated(case, recalibrator, cv, case.where, fit), case.codes)
    frequencies = np.bincount(case.codes, weights=w, minlength=len(case.classes))
    blind = rule.of_labels(frequencies[None].astype(float))[0][case.codes]
    rows = {
        "risk": risk,
        "calibration": risk - refined,
        "refinement": refined,
        "sharpness": blind - refined,
        "uncertainty": blind,
    }
    values = {name: float(w @ x) for name, x in rows.items()}
    laws = {"risk": mean_law(risk, w, squares)}
    laws["uncertainty"] = uncertainty_law(blind, frequencies, w, squares, rule)
    if fit is not None and fit.status == "inside":
        given = rule, risk, blind, laws["uncertainty"]
        laws |= temperature_laws(case, fit.beta, w, squares, *given)
    errors = {name: laws[name].standard_error if name in laws else None for name in TERMS}
    return LossDecomposition(**values, standard_errors=errors, loss=loss, _laws=laws)


def refinement_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    kind: Literal["proba", "logits"] = "proba",
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    label_smoothing: bool = False,
    start: float | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """The mean loss after recalibration: what a model is worth once it is calibrated.

    The criterion for early stopping and tuning: it does not punish the miscalibration that a later
    recalibration removes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, or logits with ``kind="logits"``.
    kind : {"proba", "logits"}, default="proba"
    loss : {"log", "brier", "spherical"} or ProperLoss, default="log"
        As in `decompose_loss`.
    recalibrator : str or recalibrator, default="temperature"
    cv : int, splitter or iterable, default=None
        As in `decompose_loss`. For temperature scaling and the log loss the folds share one fit of
        all rows: one pass more for any number of folds where they are large (some 100,000 rows),
        else about one pass of each.
    label_smoothing : bool, default=False
        The form for selection: labels (1 - eps) one-hot + eps / k with eps = 1 / (n + 1). Without
        it all models with perfect accuracy tie at 0. Temperature scaling and log loss only.
    start : float, default=None
        Inverse temperature to start from, for instance the last epoch's; it saves time only.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns, where `y_true` misses one.

    Returns
    -------
    error : float
        At least the smallest value of the loss, 0 for the log loss.

    Raises
    ------
    ValueError
        Unknown loss, or one of another number of classes; label smoothing with another recalibrator
        or loss; or invalid scores, labels or weights, see `canonical_proba`.

    Notes
    -----
    Cost: O(n k) per pass for temperature scaling, 2 to 6 passes.

    Where every label has the largest score, temperature scaling reaches a loss of 0 in sample, and
    that is the value. With `cv` it is the loss of what `TemperatureScaling` predicts for rows that
    it has not seen, and that smooths the labels of such training rows so as not to predict 0: the
    value is then above 0 (.01 to .03 for a few hundred rows), and not comparable with the one in
    sample. A score of exactly 0 enters the fits as 1.18e-38; the losses count the recalibrated
    probabilities as `log_loss` does, in sample and with folds.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 4.

    Examples
    --------
    >>> from sklearn_calib.decomposition import refinement_error
    >>> from sklearn_calib.metrics import log_loss
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 1000)
    >>> refinement_error(y, proba) < log_loss(y, proba)
    True
    """
    where = "refinement_error"
    rule = get_loss(loss, where)
    if start is not None and not (is_number(start) and 0 < start < np.inf):
        cure = "Pass an inverse temperature, or None"
        refuse(where, "start above 0", repr(start), cure)
    in_sample = _in_sample(where, rule, recalibrator, cv, label_smoothing)
    validate: Callable[..., FloatArray] = partial(canonical_proba, kind=kind)
    if in_sample and kind == "logits":
        validate = canonical_logits  # differences are all that is needed: no softmax
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, validate=validate)
    if in_sample:
        z = case.proba if kind == "logits" else log_proba(raised_case(case).proba)
        smoothing = 1.0 / (case.weight.sum() + 1.0) if label_smoothing else 0.0
        return fit_temperature(z, case.codes, case.weight, smoothing, start).loss
    return _refinement(case, rule, recalibrator, cv, start)


def refinement_of_case(
    case: "Case",
    *,
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    smooth: bool = False,
) -> float:
    """`refinement_error` of a `Case`; `smooth` is its `label_smoothing`."""
    rule = get_loss(loss)
    if _in_sample(case.where, rule, recalibrator, cv, smooth):
        smoothing = 1.0 / (case.weight.sum() + 1.0) if smooth else 0.0
        return temperature_of_case(case, smoothing).loss
    return _refinement(case, rule, recalibrator, cv)


def _in_sample(where, loss, recalibrator, cv, label_smoothing):
    """Whether one temperature fit gives the value; refuses label smoothing where it does not."""
    in_sample = _is_plain_temperature(recalibrator) and loss.is_likelihood and cv is None
    if label_smoothing and not in_sample:
        refuse(
            where,
            "label_smoothing with temperature scaling, log loss and no folds",
            f"{recalibrator!r}, {loss.label}, cv={cv!r}",
            "Set label_smoothing=False",
        )
    return in_sample


def _refinement(case, loss, recalibrator, cv, start=None):
    plain, where = _is_plain_temperature(recalibrator), case.where
    loss.check_classes(len(case.classes), where)
    if plain and cv is None:  # of another loss than the one that was minimised
        return loss_after_temperature(case, loss)
    if recalibrator == "isotonic" and cv is None and len(case.classes) == 2:
        return isotonic_refinement(case, loss)
    if plain:
        case = raised_case(case)
    if plain and loss.is_likelihood:
        problem, fold = (log_proba(case.proba), case.codes, case.weight), _fold_of_row(case, cv)
        value = None if fold is None else cross_validated_temperature(*problem, fold, start)
        if value is not None:
            return value
    refined = loss.of_rows(_recalibrated(case, recalibrator, cv, where), case.codes)
    return float(case.weight @ refined / case.weight.sum())


def proper_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """How much of a proper loss recalibration removes: risk - refinement.

    Parameters
    ----------
    y_true, y_proba, loss, recalibrator, cv, sample_weight, labels
        As in `decompose_loss`.

    Returns
    -------
    error : float
        Perfect 0; `decompose_loss` says when it can be negative. A lower bound of the calibration
        error in expectation, the better the richer the recalibrator. Cost: the fits.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 4. Gruber, Buettner (2022), "Better uncertainty
    calibration via proper scores for classification and beyond", definition 4.

    Examples
    --------
    >>> from sklearn_calib.decomposition import proper_calibration_error
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 1000)
    >>> proper_calibration_error(y, proba) > 0.05
    True
    """
    case = canonical_case("proper_calibration_error", y_true, y_proba, sample_weight, labels)
    return decompose_case(case, loss, recalibrator, cv).calibration


def _is_plain_temperature(recalibrator):
    return recalibrator == "temperature" or (
        type(recalibrator) is TemperatureScaling and not recalibrator.laplace
    )


def _recalibrated(case, recalibrator, cv, where, fit=None):
    """Recalibrated probabilities, in sample or out of fold; `fit`: the temperature of all rows."""
    if _is_plain_temperature(recalibrator):
        case = raised_case(case)
    proba, codes, weight, classes = case.proba, case.codes, case.weight, case.classes
    numbers = np.arange(len(classes))
    if _is_plain_temperature(recalibrator) and cv is None:
        # the exact limit also where every label is an arg max, without the fallback of the class
        fit = fit or fit_temperature(log_proba(proba), codes, weight)
        return canonical_proba(fit.beta * log_proba(proba), kind="logits")

    with warnings.catch_warnings():  # a constant prediction is a fact here, not a mistake
        warnings.simplefilter("ignore", CalibrationWarning)
        if cv is not None:
            given = {"sample_weight": weight, "classes": numbers, "where": where}
            return cross_fitted_proba(recalibrator, proba, codes, cv=cv, **given)
        method = resolve_recalibrator(recalibrator, where)
        fit_recalibrator(method, proba, codes, classes=numbers, sample_weight=weight)
        return aligned_proba(method, proba, numbers)


def _fold_of_row(case, cv):
    """The number of the test fold of each row, or None where the folds are no partition."""
    fold = np.full(len(case.codes), -1)
    for number, (_, test) in enumerate(folds_of(case.codes, cv)):
        if (fold[test] >= 0).any():
            return None
        fold[test] = number
    return None if (fold < 0).any() else fold
