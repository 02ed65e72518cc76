"""Refinement along the stages of a training: which epoch, which boosting round."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from .._argument_checks import check_choice
from .._kernels._temperature import fit_temperature
from .._simplex_array import log_proba
from .._typing import CV, AnyArray, ArrayLike, FloatArray, RecalibratorLike
from .._validation import (
    canonical_proba,
    canonical_weight,
    check_and_get_common_index,
    check_same_length,
    get_proba_with_single_column_at_class,
    read_proba,
    reorder_columns_if_names_match,
)
from ..exceptions import invalid_input
from ..metrics import LossLike, get_loss, validate_predictions
from ._decompose import _is_temperature_without_laplace, _predict_recalibrated_proba
from ._in_sample import raise_zeros_to_floor

SELECTION_RULES = ("minimum", "one_standard_error")
# Standard errors are estimated from at most this many rows.
_MAX_STANDARD_ERROR_ROWS = 20_000
# Compiled code is chosen as for so many fits: a curve has one for each stage.
_ASSUMED_N_STAGE_FITS = 10


@dataclass(frozen=True)
class RefinementCurve:
    """Risk, calibration and refinement after each stage of a training.

    Attributes
    ----------
    stage : ndarray of shape (n_stages,), int
    risk : ndarray of shape (n_stages,)
        Mean loss of the scores.
    refinement : ndarray of shape (n_stages,)
        Mean loss after recalibration.
    calibration : ndarray of shape (n_stages,)
        risk - refinement.
    criterion : ndarray of shape (n_stages,)
        What is compared. For temperature scaling the refinement with smoothed labels,
        which does not tie if every label is the arg max; for other recalibrators the
        refinement.
    standard_error : ndarray of shape (n_stages,)
        Of the difference between a stage's criterion and the smallest, by paired rows.
    loss : str or ProperLoss
        As it was given.
    unit : str
        What a stage is, in the plural.
    """

    stage: AnyArray
    risk: FloatArray
    refinement: FloatArray
    calibration: FloatArray
    criterion: FloatArray
    standard_error: FloatArray
    loss: LossLike
    unit: str = "stages"

    def best(self, rule: Literal["minimum", "one_standard_error"] = "minimum") -> int:
        """Return the position of the stage to choose.

        Parameters
        ----------
        rule : {"minimum", "one_standard_error"}, default="minimum"
            The smallest criterion, the first of equals; or the earliest stage that is
            worse by no more than one standard error.

        Returns
        -------
        position : int
            The stage is ``curve.stage[position]``.
        """
        check_choice("rule", rule, SELECTION_RULES)
        best = int(np.argmin(self.criterion))
        if rule == "minimum":
            return best
        # The first stage that is not clearly worse than the best one.
        is_close = self.criterion - self.criterion[best] <= self.standard_error
        return int(np.argmax(is_close[: best + 1]))


def refinement_curve(
    y_true: ArrayLike,
    staged_proba: Iterable[ArrayLike],
    *,
    stages: Sequence[int] | None = None,
    kind: Literal["proba", "logits"] = "proba",
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "temperature",
    cv: CV = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
    unit: str = "stages",
) -> RefinementCurve:
    """Split the loss of every stage of a training into calibration and refinement.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Validation labels.
    staged_proba : iterable of array-like of shape (n_samples, n_classes) or (n_samples,)
        Validation scores, one array per stage: a list, or a generator such as
        ``model.staged_predict_proba(X_valid)``, of which one array is held at a time.
    stages : sequence of int, default=None
        The numbers of the stages, increasing; 1, 2, ... by default.
    kind : {"proba", "logits"}, default="proba"
    loss : {"log", "brier", "spherical"} or ProperLoss, default="log"
        As in `decompose_loss`.
    recalibrator : str or recalibrator, default="temperature"
    cv : int, splitter or iterable, default=None
        As in `decompose_loss`; pass folds for recalibrators with many parameters.
    sample_weight : array-like of shape (n_samples,), default=None
    labels : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y_true` lacks a class.
    pos_label : label, default=None
        The class of two that a single column of `y_proba` is the probability of; by
        default the last of `labels`, or 1 or True. Required for other labels, unless
        `labels` is given.
    unit : str, default="stages"
        What the stages are called in plots: "trees", "epochs".

    Returns
    -------
    curve : RefinementCurve

    Raises
    ------
    ValueError
        No stages at all; `stages` of another length than `staged_proba`; or invalid
        scores, labels or weights, see `canonical_proba`.

    Notes
    -----
    Cost: two fits of the recalibrator per stage. Those of temperature scaling start
    from the previous stage's and take some 4 passes of O(n k). Memory: O(n k), and 4
    bytes per stage for each of at most 20,000 rows.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), section 4.

    Examples
    --------
    >>> from sklearn.datasets import make_hastie_10_2
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> from sklearn_calib.decomposition import refinement_curve
    >>> X, y = make_hastie_10_2(2000, random_state=0)
    >>> model = GradientBoostingClassifier(max_depth=4, learning_rate=0.5, random_state=0)
    >>> staged = model.fit(X[:1000], y[:1000]).staged_predict_proba(X[1000:])
    >>> curve = refinement_curve(y[1000:], staged)
    >>> bool(curve.refinement.argmin() > curve.risk.argmin())  # the log loss stops too early
    True
    """
    rule = get_loss(loss)
    is_temperature = _is_temperature_without_laplace(recalibrator) and cv is None
    predictions = None
    start = None
    rows = slice(None)
    table = []
    _check_stages_are_sequences(staged_proba, stages)
    for number, stage_proba in enumerate(staged_proba):
        proba = read_proba(stage_proba, kind=kind, input_name=f"staged_proba[{number}]")
        if predictions is None:
            validate = partial(
                validate_predictions,
                y_true,
                stage_proba,
                labels=labels,
                pos_label=pos_label,
                validate=partial(read_proba, kind=kind),
                input_name="staged_proba[0]",
            )
            all_rows = validate(check_order=False)
            predictions = validate(sample_weight=sample_weight)
            rule.check_classes(len(predictions.classes))
            is_weighted = canonical_weight(sample_weight, len(all_rows.codes)) > 0
            # Standard errors need losses of all stages at once: of many rows every k-th
            # one is kept.
            rows = slice(
                None, None, -(-len(predictions.codes) // _MAX_STANDARD_ERROR_ROWS)
            )
            weight = predictions.weight / predictions.weight.sum()
        else:
            proba = read_proba(proba, n_classes=len(predictions.classes))
            check_same_length(all_rows.codes, proba)
            check_and_get_common_index(y_true, stage_proba, sample_weight)
            proba = reorder_columns_if_names_match(
                proba, stage_proba, predictions.classes
            )
            proba = get_proba_with_single_column_at_class(
                proba, stage_proba, predictions.positive
            )
            # Rows of weight 0 were checked with the others, and count no further.
            if not is_weighted.all():
                proba = proba[is_weighted]
            predictions = predictions.with_proba(proba)
        losses = rule.compute_row_losses(predictions.proba, predictions.codes)
        risk = float(weight @ losses)
        if is_temperature:
            criterion, refinement, losses, start = _compute_stage_losses_and_next_start(
                predictions,
                rule,
                start,
                rows,
            )
        else:
            recalibrated = _predict_recalibrated_proba(predictions, recalibrator, cv)
            losses = rule.compute_row_losses(recalibrated, predictions.codes)
            criterion = refinement = float(weight @ losses)
            losses = losses[rows]
        table.append((risk, refinement, criterion, losses.astype(np.float32)))
    return _build_curve(table, stages, weight[rows] if table else None, loss, unit)


def _check_stages_are_sequences(staged_proba, stages) -> None:
    # An array without dimensions has `__iter__`, but cannot be iterated.
    is_series = isinstance(staged_proba, Iterable) and not isinstance(staged_proba, str)
    if not is_series or not getattr(staged_proba, "ndim", 1):
        raise invalid_input(
            expected="staged_proba, one table for each stage",
            got=repr(staged_proba)[:60],
            hint="Pass a list with one array for each stage",
        )
    if stages is not None and np.ndim(stages) != 1:
        raise invalid_input(
            expected="stages, one number or name for each stage",
            got=repr(stages)[:60],
            hint="Leave it out for 1, 2, ...",
        )


def _compute_stage_losses_and_next_start(predictions, loss, start, rows):
    """Compute criterion, refinement, losses of some rows, and the start of the next stage."""
    z = log_proba(raise_zeros_to_floor(predictions).proba)
    codes = predictions.codes
    weight = predictions.weight
    # Labels smoothed by 1 / (n + 1): a perfect fit would have an infinite inverse
    # temperature and a loss of 0, and all such stages would be equal.
    fit_to_smoothed = fit_temperature(
        z,
        codes,
        weight,
        1.0 / (weight.sum() + 1.0),
        start,
        n_fits=_ASSUMED_N_STAGE_FITS,
    )
    inner_beta = fit_to_smoothed.beta if fit_to_smoothed.status == "inside" else None
    # The last optimum is near the next one.
    fit_to_labels = fit_temperature(
        z, codes, weight, start=inner_beta, n_fits=_ASSUMED_N_STAGE_FITS
    )
    if loss.is_likelihood:
        proba = canonical_proba(fit_to_smoothed.beta * z[rows], kind="logits")
        return (
            fit_to_smoothed.loss,
            fit_to_labels.loss,
            loss.compute_row_losses(proba, codes[rows]),
            inner_beta,
        )
    # Another loss than the one that the fits minimise.
    losses = []
    for fit in (fit_to_smoothed, fit_to_labels):
        proba = canonical_proba(fit.beta * z, kind="logits")
        losses.append(loss.compute_row_losses(proba, codes))
    means = [float(weight @ row_losses / weight.sum()) for row_losses in losses]
    return *means, losses[0][rows], inner_beta


def _build_curve(table, stages, weight, loss, unit):
    """Build the curve from (risk, refinement, criterion, losses of some rows) of each stage."""
    if not table or (stages is not None and len(stages) != len(table)):
        expected = "at least one stage"
        if table:
            expected = f"{len(stages)} stages, as in stages="
        raise invalid_input(
            expected=expected,
            got=f"{len(table)} arrays of scores",
            hint="Pass an iterable with one array of scores per stage",
        )
    risk, refinement, criterion = np.array([row[:3] for row in table]).T
    best = table[int(criterion.argmin())][3].astype(float)
    errors = []
    for *_, losses in table:
        # Paired with the best stage: differences vary less than the losses.
        difference = losses - best
        center = weight @ difference / weight.sum()
        # The sum of w^2 d^2 over all rows, estimated from these.
        variance = (weight**2) @ (difference - center) ** 2 / weight.sum()
        errors.append(np.sqrt(variance))
    stage = np.arange(1, len(table) + 1)
    if stages is not None:
        stage = np.asarray(stages, dtype=int)
    return RefinementCurve(
        stage=stage,
        risk=risk,
        refinement=refinement,
        calibration=risk - refinement,
        criterion=criterion,
        standard_error=np.array(errors),
        loss=loss,
        unit=unit,
    )
