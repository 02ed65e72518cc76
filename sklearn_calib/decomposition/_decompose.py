"""Proper losses split into what recalibration can remove and what it cannot."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._argument_checks import (
    check_between,
    is_scalar_equal,
    read_bool_with_none_as_false,
)
from .._kernels._temperature import (
    compute_temperature_cv_loss_if_inside,
    fit_temperature,
)
from .._simplex_array import log_proba
from .._typing import CV, ArrayLike, FloatArray, RecalibratorLike
from .._validation import canonical_proba, read_logits_by_class, read_proba
from .._warnings import ignore_calibration_warnings
from ..exceptions import invalid_input
from ..metrics import LossLike, get_loss, validate_predictions
from ..recalibrators import (
    TemperatureScaling,
    make_folds,
    recalibrate_in_sample_or_by_cv,
)
from ._grouping import decompose_by_features
from ._in_sample import (
    compute_isotonic_loss,
    compute_loss_after_temperature,
    fit_temperature_in_sample,
    raise_zeros_to_floor,
)
from ._intervals import (
    compute_temperature_sampling_errors,
    compute_uncertainty_sampling_error,
    estimate_mean_sampling_error,
)
from ._parts import LOSS_TERMS, LossDecomposition

if TYPE_CHECKING:
    from ..metrics import Predictions


def decompose_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    features: object = None,
    loss: LossLike = "log",
    recalibrator: RecalibratorLike | None = None,
    cv: CV = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> LossDecomposition:
    """Split a mean loss into calibration and refinement, and into uncertainty and sharpness.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
    features : table of shape (n_samples, n_features), default=None
        What the model saw, or could have: a table of pandas, polars or Arrow, a dict of
        columns, or an array. Splits the refinement into `grouping`, what a better use
        of them gains at least, and `irreducible`, what remains. Text and categories are
        categories; missing is allowed. At most 1000 columns, and at least 50 rows.
    loss : {"log", "brier", "spherical"} or ProperLoss, default="log"
        The loss of `log_loss` (in nats), `brier_loss` or `spherical_loss`, any other
        name of `all_losses`, or an instance such as ``BetaFamilyLoss(2, 8)``.
    recalibrator : str or recalibrator, default=None
        Whose best fit defines what can be removed; None is "temperature", and with
        features "auto": what a map of the scores repairs must not be put down to the
        features. With "isotonic" and two classes this is the CORP decomposition:
        calibration is MCB, sharpness DSC, uncertainty UNC.
    cv : int, splitter or iterable, default=None
        With features None is 5, each row is tested once, and an int means shuffled
        folds that are not stratified. Otherwise None fits and evaluates on the same
        rows, which is fine for one parameter: for temperature scaling the refinement is
        too low by about 1 / (2 n). Pass folds for richer methods, and for isotonic
        below some 10,000 rows; an int means stratified folds, shuffled with seed 0.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.

    Returns
    -------
    decomposition : LossDecomposition

    Raises
    ------
    ValueError
        Unknown loss, or one of another number of classes; or invalid scores, labels or
        weights; see `canonical_proba`. Features with another number of rows or more
        than 1000 columns; with features fewer than 50 rows of positive weight, or fewer
        than 5 of all classes but one, or folds that do not test each row once.
    TypeError
        Features that are not a table.

    Notes
    -----
    Signs. In sample, calibration >= 0 if the recalibrator contains the identity and
    minimises the loss that is decomposed. It can be negative for other losses than
    "log" after temperature scaling, which minimises the log loss, with smoothing, and
    with `cv`. Sharpness >= 0 if the recalibrator contains the class frequencies;
    temperature scaling contains only the uniform prediction, so with unequal classes a
    useless score has negative sharpness. Nothing is clipped.

    Intervals. ``decomposition.interval("calibration")`` is a confidence interval of a
    term; its docstring describes what each term estimates, and how. Risk and
    uncertainty have one always, the other terms for temperature scaling only. The
    calibration term of isotonic calibration is positive on calibrated rows too, by an
    amount that shrinks like n^(-2/3) and depends on the whole law of the scores; with
    folds its refinement is too high in the same way. No standard error makes up for
    that: measured with the error of the row means, 95 % intervals held the calibration
    term in 0 to 72 % of the draws. Of other methods no interval was tested, so none is
    given; resample the rows where one is needed.

    Features. In each of 5 folds the recalibrator is fitted on the other four, then
    `MulticalibratedScores` on the probabilities that it makes of these, with the
    features as groups; both are judged on the fold. calibration is the mean gain of the
    former, grouping what the latter adds: a lower bound, since another model may use
    the features still better, and more rows would let it. Their intervals are for the
    expected gains of these very maps on new rows. Their standard errors are those of
    paired rows, enlarged by how much the maps of the folds differ, up to sqrt(2) times:
    folds train each other's maps, and if there is nothing to gain the error of the mean
    is that much larger. For the features this fades if the gain is many errors from 0.
    Measured at 1000 rows, 60 to 100 draws of a law (``benchmarks/grouping``): 90 %
    intervals held the gain of recalibration in 85 to 92 %. That of a missed product of
    features they held in 90 %, with 5 % on each side. If nothing was to be gained they
    held that of the features in 97 to 99 %, more than promised: in most such draws no
    tree is grown, and the gain and its interval are 0. The advice there was "retrain"
    or "both" in 0 to 3 % of the draws of a law. ``parts.action`` and ``parts.advice()``
    are the conclusion.

    `minimum_detectable` holds for a single missed feature: it moves the log-odds of the
    likeliest class up in one half of the rows and down in the other, and the trees,
    which have to learn that, lose up to 30 nats over the number of rows. That is n gain
    = 57 or so for the log loss. Measured with a gain of that size at 1000 rows: found
    in 79 of 80 draws of four laws (one column with 8 % of positives, a wave of one of
    ten columns, five categories, a group with four classes), in 11 of 12 with 30
    categories, and at 4000 rows in 12 of 12: the probability is above the 80 %. It
    holds for no product of two columns, which was found in 2 of 12 draws: the trees
    need about twice the gain for that.

    Cost: the fits, and for temperature scaling with `cv` one more, of all rows. With
    features some 2 s for 1000 rows of 5 columns and two classes, 4 s for 5000; in
    proportion to the number of classes beyond two.

    References
    ----------
    Perez-Lebel, Le Morvan, Varoquaux (2023), "Beyond calibration: estimating the
    grouping loss of modern neural networks", for grouping. Bayle, Bayle, Janson, Mackey
    (2020), "Cross-validation confidence intervals for test error", theorem 1. Berta,
    Holzmueller, Jordan, Bach (2025), "Rethinking early stopping: refine, then
    calibrate", equations 1 and 2, and section 3. Broecker (2009), "Reliability,
    sufficiency, and the decomposition of proper scores", eq. 9. Dimitriadis, Gneiting,
    Jordan (2021) for CORP.

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

    A model that does not know of two regions:

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> rng = np.random.default_rng(0)
    >>> z, region = rng.normal(size=1000), rng.choice(["north", "south"], 1000)
    >>> y = (rng.random(1000) < expit(z + np.where(region == "north", 1.5, -1.5))).astype(int)
    >>> table = {"z": z, "region": region}
    >>> parts = decompose_loss(y, expit(z), features=table, recalibrator="beta")
    >>> parts.grouping > 0.1, next(iter(parts.feature_gains))
    (True, 'region')
    """
    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    if features is None:
        recalibrator = "temperature" if recalibrator is None else recalibrator
        return decompose_predictions(predictions, loss, recalibrator, cv)
    recalibrator = "auto" if recalibrator is None else recalibrator
    return decompose_by_features(predictions, features, loss, recalibrator, cv)


def decompose_predictions(
    predictions: "Predictions",
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    squares: FloatArray | None = None,
) -> LossDecomposition:
    """Compute `decompose_loss` of `Predictions` without validation.

    If an entry stands for several rows of one prediction and label, its weight is the
    sum of theirs, and `squares` of shape (n_samples,) are the sums of their squared
    weights, which the intervals need.
    """
    rule = get_loss(loss, len(predictions.classes))
    total = predictions.weight.sum()
    w = predictions.weight / total
    squares = w**2 if squares is None else squares / total**2
    # Rows keep their losses, from which the standard errors follow.
    risk = rule.compute_row_losses(predictions.proba, predictions.codes)
    fit = None
    if _is_temperature_without_laplace(recalibrator):
        predictions = raise_zeros_to_floor(predictions)
        z = log_proba(predictions.proba)
        fit = fit_temperature(z, predictions.codes, predictions.weight)
    recalibrated = _predict_recalibrated_proba(predictions, recalibrator, cv, fit)
    refined = rule.compute_row_losses(recalibrated, predictions.codes)
    frequencies = np.bincount(
        predictions.codes, weights=w, minlength=len(predictions.classes)
    )
    # Uncertainty: the loss of the class frequencies as prediction of every row.
    base_rate_losses = rule.compute_label_losses(frequencies[None].astype(float))[0][
        predictions.codes
    ]
    # Equations 1 and 2 of Berta, Holzmueller, Jordan, Bach (2025), row by row.
    rows = {
        "risk": risk,
        "calibration": risk - refined,
        "refinement": refined,
        "sharpness": base_rate_losses - refined,
        "uncertainty": base_rate_losses,
    }
    values: dict[str, Any] = {name: float(w @ x) for name, x in rows.items()}
    laws = {"risk": estimate_mean_sampling_error(risk, w, squares)}
    laws["uncertainty"] = compute_uncertainty_sampling_error(
        base_rate_losses, frequencies, w, squares, rule
    )
    # At a bound the temperature is not a stationary point, and the expansion of its
    # error does not hold.
    if fit is not None and fit.status == "inside":
        laws |= compute_temperature_sampling_errors(
            predictions,
            fit.beta,
            w,
            squares,
            rule,
            risk,
            base_rate_losses,
            laws["uncertainty"],
        )
    errors = dict.fromkeys(LOSS_TERMS)
    errors |= {name: law.standard_error for name, law in laws.items()}
    return LossDecomposition(
        **values, standard_errors=errors, loss=loss, _sampling_errors=laws
    )


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
    pos_label: object = None,
) -> float:
    """Compute the mean loss that remains after recalibration.

    The criterion for early stopping and tuning: it does not punish the miscalibration
    that a later recalibration removes.

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
        As in `decompose_loss`. For temperature scaling and the log loss the folds share
        one fit of all rows: one pass more for any number of folds if they are large
        (some 100,000 rows), else about one pass of each.
    label_smoothing : bool, default=False
        The form for selection: labels (1 - eps) one-hot + eps / k with eps = 1 / (n +
        1). Without it all models with perfect accuracy tie at 0. Temperature scaling
        and log loss only.
    start : float, default=None
        Inverse temperature to start from, for instance the last epoch's; it saves time
        only.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.

    Returns
    -------
    error : float
        At least the smallest value of the loss, 0 for the log loss.

    Raises
    ------
    ValueError
        Unknown loss, or one of another number of classes; label smoothing with another
        recalibrator or loss; or invalid scores, labels or weights, see
        `canonical_proba`.

    Notes
    -----
    Cost: O(n k) per pass for temperature scaling, 2 to 6 passes.

    If every label has the largest score, temperature scaling reaches a loss of 0 in
    sample, and that is the value. With `cv` it is the loss of what `TemperatureScaling`
    predicts for rows that it has not seen, and that smooths the labels of such training
    rows so as not to predict 0: the value is then above 0 (0.01 to 0.03 for a few hundred
    rows), and not comparable with the one in sample. A score of exactly 0 enters the
    fits as 1.18e-38; the losses count the recalibrated probabilities as `log_loss`
    does, in sample and with folds.

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
    rule = get_loss(loss)
    if start is not None:
        check_between(
            "start",
            start,
            0,
            np.inf,
            expected="start above 0",
            hint="Pass an inverse temperature, or None",
        )
    is_single_fit = _is_one_temperature_fit_or_raise(
        rule, recalibrator, cv, label_smoothing
    )
    validate: Callable[..., FloatArray] = partial(read_proba, kind=kind)
    # The fit only needs differences of logits, so the softmax is not computed.
    if is_single_fit and kind == "logits":
        validate = read_logits_by_class
    predictions = validate_predictions(
        y_true,
        y_proba,
        sample_weight,
        labels,
        pos_label,
        validate=validate,
    )
    if is_single_fit and kind == "logits":
        # The smoothed target has weight 1 / (n + 1), as in `refinement_curve`.
        smoothing = 1.0 / (predictions.weight.sum() + 1.0) if label_smoothing else 0.0
        return fit_temperature(
            predictions.proba, predictions.codes, predictions.weight, smoothing, start
        ).loss
    return _compute_refinement(
        predictions,
        rule,
        recalibrator,
        cv,
        label_smoothing,
        start,
    )


def _compute_refinement(
    predictions, rule, recalibrator="temperature", cv=None, smooth=False, start=None
) -> float:
    """Compute `refinement_error` of `Predictions`; `smooth` is its `label_smoothing`.

    The risk after the best recalibration, equation 3 of Berta, Holzmueller, Jordan, Bach
    (2025).
    """
    if _is_one_temperature_fit_or_raise(rule, recalibrator, cv, smooth):
        return fit_temperature_in_sample(predictions, smooth, start).loss
    is_temperature = _is_temperature_without_laplace(recalibrator)
    rule.check_classes(len(predictions.classes))
    # Two cases have fast forms whose parts resamples share: a temperature (with another
    # loss than the one that it minimises), and isotonic calibration of two classes.
    if is_temperature and cv is None:
        return compute_loss_after_temperature(predictions, rule)
    is_binary = len(predictions.classes) == 2
    if is_binary and cv is None and is_scalar_equal(recalibrator, "isotonic"):
        return compute_isotonic_loss(predictions, rule)
    if is_temperature:
        predictions = raise_zeros_to_floor(predictions)
    if is_temperature and rule.is_likelihood:
        fold = _assign_folds_if_partition(predictions, cv)
        value = None
        if fold is not None:
            # One compiled pass for all folds.
            value = compute_temperature_cv_loss_if_inside(
                log_proba(predictions.proba),
                predictions.codes,
                predictions.weight,
                fold,
                start,
            )
        if value is not None:
            return value
    recalibrated = _predict_recalibrated_proba(predictions, recalibrator, cv)
    refined = rule.compute_row_losses(recalibrated, predictions.codes)
    return float(predictions.weight @ refined / predictions.weight.sum())


def _is_one_temperature_fit_or_raise(loss, recalibrator, cv, label_smoothing):
    """Return whether one temperature fit gives the value; if not, reject label smoothing."""
    is_single_fit = _is_temperature_without_laplace(recalibrator) and cv is None
    is_single_fit = is_single_fit and loss.is_likelihood
    if (
        read_bool_with_none_as_false(label_smoothing, "label_smoothing")
        and not is_single_fit
    ):
        raise invalid_input(
            "label_smoothing",
            expected="label_smoothing with temperature scaling, log loss and no folds",
            got=f"{recalibrator!r}, {loss.label}, cv={cv!r}",
            hint="Set label_smoothing=False",
        )
    return is_single_fit


def proper_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    """Compute the part of a proper loss that recalibration removes: risk - refinement.

    Parameters
    ----------
    y_true, y_proba, loss, recalibrator, cv, sample_weight, labels, pos_label
        As in `decompose_loss`.

    Returns
    -------
    error : float
        Perfect 0; see `decompose_loss` for when it can be negative. A lower bound of
        the calibration error in expectation, the better the richer the recalibrator.
        Cost: the fits.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 4. Gruber, Buettner (2022), "Better
    uncertainty calibration via proper scores for classification and beyond", definition
    4.

    Examples
    --------
    >>> from sklearn_calib.decomposition import proper_calibration_error
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 1000)
    >>> proper_calibration_error(y, proba) > 0.05
    True
    """
    predictions = validate_predictions(
        y_true, y_proba, sample_weight, labels, pos_label
    )
    return decompose_predictions(predictions, loss, recalibrator, cv).calibration


def _is_temperature_without_laplace(recalibrator):
    if type(recalibrator) is TemperatureScaling:
        return not recalibrator.laplace
    return is_scalar_equal(recalibrator, "temperature")


def _predict_recalibrated_proba(predictions, recalibrator, cv, fit=None):
    """Recalibrate in sample or out of fold; `fit` is the temperature of all rows."""
    if _is_temperature_without_laplace(recalibrator):
        predictions = raise_zeros_to_floor(predictions)
    proba = predictions.proba
    codes = predictions.codes
    weight = predictions.weight
    if _is_temperature_without_laplace(recalibrator) and cv is None:
        # The exact limit, also if every label is an arg max: `TemperatureScaling` itself
        # returns a finite temperature then.
        fit = fit or fit_temperature(log_proba(proba), codes, weight)
        return canonical_proba(fit.beta * log_proba(proba), kind="logits")

    # A constant prediction is a result here, not a mistake.
    with ignore_calibration_warnings():
        return recalibrate_in_sample_or_by_cv(
            recalibrator,
            proba,
            codes,
            cv,
            sample_weight=weight,
            classes=np.arange(len(predictions.classes)),
        )


def _assign_folds_if_partition(predictions, cv):
    """Return the number of each row's test fold, or None if the folds are not a partition."""
    fold = np.full(len(predictions.codes), -1)
    for number, (_, test) in enumerate(make_folds(predictions.codes, cv)):
        if (fold[test] >= 0).any():
            return None
        fold[test] = number
    return None if (fold < 0).any() else fold
