"""What a better use of the features would gain beyond recalibration: the grouping loss.

The rows are split into folds. Each row gets three losses: of its probabilities as they
are, of these after a recalibrator that was fitted without its fold, and of these after
trees that correct the recalibrated probabilities by the features, also fitted without
its fold. The means of the differences are the gains.

The intervals are for the expected gains, on new rows, of the very maps that were
fitted: what is in the features is more. If something is to be gained, the error of
the mean is that of independent rows to first order (Bayle, Bayle, Janson, Mackey,
2020); for the rest see `_estimate_fold_mean_and_variance`.
"""

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from sklearn.model_selection import KFold

from .._simplex_array import apply_softmax_or_sigmoid, log_proba
from .._typing import CV, AnyArray, FloatArray, RecalibratorLike
from .._validation import check_and_get_common_index
from .._warnings import ignore_calibration_warnings
from ..exceptions import invalid_input
from ..metrics import LogLoss, LossLike, get_loss
from ..recalibrators import (
    MAX_GROUP_COLUMNS,
    SCORE_FEATURE_NAME,
    MulticalibratedScores,
    fit_recalibrator,
    make_folds,
    predict_proba_aligned,
    read_group_columns,
    resolve_recalibrator,
)
from ._intervals import compute_uncertainty_sampling_error, estimate_mean_sampling_error
from ._parts import (
    DETECTION_POWER,
    FEATURE_TERMS,
    GAIN_SIGNIFICANCE_LEVEL,
    LOSS_TERMS,
    LossDecomposition,
)

if TYPE_CHECKING:
    from ..metrics import Predictions

MIN_ROWS_FOR_FEATURES = 50
MIN_ROWS_PER_CLASS_FOR_FEATURES = 5
_N_FOLDS = 5
# A feature moves the true log-odds by at most this much.
MAX_FEATURE_LOG_ODDS_SHIFT = 12.0
# `minimum_detectable` is computed from at most this many rows.
_DETECTABLE_GAIN_ROWS = 4096
# Smaller differences of a loss are treated as 0.
ABSOLUTE_LOSS_TOLERANCE = 1e-12
DEPENDENCE_VARIANCE_FACTOR = 2.0
# The loss, in rows times nats, of trees where one feature is missed, with a reserve.
_TREE_OVERFITTING_TOTAL_NATS = 30.0


def decompose_by_features(
    predictions: "Predictions",
    features: object,
    loss: LossLike = "log",
    recalibrator: RecalibratorLike = "auto",
    cv: CV = None,
) -> LossDecomposition:
    """Compute `decompose_loss` of `Predictions` with one row of features for each given row."""
    rule = get_loss(loss, len(predictions.classes))
    columns = read_feature_columns(features, predictions)
    if not has_enough_rows_for_features(predictions):
        raise _too_few_rows_error(predictions)
    folds = make_test_once_folds(predictions, _N_FOLDS if cv is None else cv)
    fold, recalibrated, (mapped, corrected), gains = (
        _cross_fit_losses_and_feature_gains(
            predictions, columns, rule, recalibrator, folds
        )
    )
    w = predictions.weight / predictions.weight.sum()
    counts = np.bincount(predictions.codes, w, len(predictions.classes))
    frequencies = counts.astype(float)
    blind = rule.compute_label_losses(frequencies[None])[0][predictions.codes]
    risk = rule.compute_row_losses(predictions.proba, predictions.codes)
    term_losses = {
        "calibration": risk - mapped,
        "refinement": mapped,
        "sharpness": blind - mapped,
        # Gain of the trees beyond the recalibrated probabilities.
        "grouping": mapped - corrected,
        "irreducible": corrected,
    }
    laws = {"risk": estimate_mean_sampling_error(risk, w, w**2)}
    for name, losses in term_losses.items():
        laws[name] = _estimate_fold_mean_and_variance(
            losses, fold, w, fading=name == "grouping"
        )
    laws["uncertainty"] = compute_uncertainty_sampling_error(
        blind, frequencies, w, w**2, rule
    )
    gain = laws["grouping"].estimate
    # A negative estimate is noise of the trees; the term itself is not negative.
    grouping = max(gain, 0.0)
    return LossDecomposition(
        **{name: laws[name].estimate for name in LOSS_TERMS},
        standard_errors={
            name: laws[name].standard_error for name in (*LOSS_TERMS, *FEATURE_TERMS)
        },
        loss=loss,
        grouping=grouping,
        gain_of_features=gain,
        irreducible=laws["refinement"].estimate - grouping,
        feature_gains=_get_sorted_gain_fraction_by_column(gains),
        minimum_detectable=compute_detectable_feature_gain(rule, recalibrated, w),
        n_rows=len(predictions.codes),
        _sampling_errors=laws,
    )


def _estimate_fold_mean_and_variance(row_losses_by_fold, fold, w, fading=False):
    """Estimate the law of a mean of rows, each of which is judged by the maps of its own fold.

    `row_losses_by_fold` has shape (n_folds, n_samples): the losses of all rows by the
    maps of each fold.

    Each of two folds trains the maps that judge the other. If nothing is to be gained,
    the mean varies only by this dependence, which enters twice: the variance is up to
    two times that of independent rows. Its size is estimated by the differences between
    the maps of the folds, two of which share three quarters of their rows: the mean
    varies by sums of four folds, and the differences by sums of two.

    Trees agree on large gains, and have seen the rows on which they are compared, so
    their differences overstate the dependence if the gain is many errors from 0;
    `fading` reduces it there.
    """
    # Rounding must not look like a gain.
    row_losses_by_fold = np.where(
        np.abs(row_losses_by_fold) < ABSOLUTE_LOSS_TOLERANCE, 0.0, row_losses_by_fold
    )
    held_out = row_losses_by_fold[fold, np.arange(len(fold))]
    law = estimate_mean_sampling_error(held_out, w, w**2)
    # How much the maps of other folds differ on the same row: rows train each other's
    # maps.
    spread = ((row_losses_by_fold - held_out) ** 2).sum(axis=0) / (
        len(row_losses_by_fold) - 1
    )
    dependence = min(DEPENDENCE_VARIANCE_FACTOR * float(w**2 @ spread), law.variance)
    # Far from 0 the error is that of independent rows to first order.
    if fading and law.estimate:
        quantile = ndtri(1 - GAIN_SIGNIFICANCE_LEVEL)
        dependence *= min(1.0, quantile**2 * law.variance / law.estimate**2)
    return replace(law, variance=law.variance + dependence)


def has_enough_rows_for_features(predictions: "Predictions") -> bool:
    """Return whether there are enough rows to measure gains."""
    counts = np.bincount(predictions.codes)
    n_classes = (counts >= MIN_ROWS_PER_CLASS_FOR_FEATURES).sum()
    return counts.sum() >= MIN_ROWS_FOR_FEATURES and n_classes >= 2


def _too_few_rows_error(predictions):
    """Return the error for too few rows."""
    n_rows = len(predictions.codes)
    counts = np.bincount(predictions.codes)
    expected = (
        f"at least {MIN_ROWS_FOR_FEATURES} rows of positive weight, "
        f"{MIN_ROWS_PER_CLASS_FOR_FEATURES} of each of two "
    )
    return invalid_input(
        expected=f"{expected}classes, for features",
        got=f"{n_rows} rows, classes of {', '.join(map(str, counts[:10]))}",
        hint="Leave features out",
    )


def read_feature_columns(
    features: object, predictions: "Predictions"
) -> dict[Any, AnyArray]:
    """Return the checked columns of features by name, for the rows of the predictions.

    Rows of weight 0, which predictions do not have, are left out.
    """
    check_and_get_common_index(features, first=predictions.index)
    columns = read_group_columns(features, predictions.n_given, "features")
    if len(columns) > MAX_GROUP_COLUMNS:
        raise invalid_input(
            expected=f"at most {MAX_GROUP_COLUMNS} features",
            got=f"{len(columns)}",
            hint="Choose those that may matter, or principal components of them",
        )
    if SCORE_FEATURE_NAME in columns:
        raise invalid_input(
            expected=f"features with names other than {SCORE_FEATURE_NAME!r}",
            got=repr(SCORE_FEATURE_NAME),
            sentence=(
                f"The name {SCORE_FEATURE_NAME!r} is reserved for the score and cannot be the name "
                "of a feature"
            ),
            hint="Rename it",
        )
    return {
        name: predictions.expand_input_column(column)
        for name, column in columns.items()
    }


def make_test_once_folds(
    predictions: "Predictions", cv: CV
) -> list[tuple[AnyArray, AnyArray]]:
    """Return folds that test each row exactly once.

    A number makes folds that are not stratified: if the classes are as frequent in the
    rows of a fit as in those that judge it, a fit of these frequencies looks better than
    it is, by 1 / n nats.
    """
    if isinstance(cv, Integral):
        cv = KFold(int(cv), shuffle=True, random_state=0)
    folds = []
    n_tests = np.zeros(len(predictions.codes))
    for train, test in make_folds(predictions.codes, cv):
        folds.append((np.asarray(train), np.asarray(test)))
        np.add.at(n_tests, test, 1)
    if (n_tests != 1).any():
        raise invalid_input(
            expected="folds that test each row once, with features",
            got=f"{np.count_nonzero(n_tests != 1)} rows that are not",
            hint="Pass a number of folds, or a splitter such as GroupKFold",
        )
    return folds


def _cross_fit_losses_and_feature_gains(
    predictions, columns, rule, recalibrator, folds
) -> tuple[AnyArray, FloatArray, list[FloatArray], dict[Any, float]]:
    """Recalibrate each row, then correct it by its features, with fits to other rows.

    Returns
    -------
    fold : ndarray of shape (n_samples,)
        In which each row was tested.
    recalibrated : ndarray of shape (n_samples, n_classes)
    losses : two ndarrays of shape (n_folds, n_samples)
        Losses of recalibrated probabilities, and of those that the features correct
        too. Each row has those of all samples by the maps of one fold, also of the
        samples that these were fitted to.
    gains : dict of column to float
        The gains of the splits of the trees.
    """
    proba = predictions.proba
    codes = predictions.codes
    weight = predictions.weight
    class_numbers = np.arange(len(predictions.classes))
    gains = dict.fromkeys(columns, 0.0)
    fold = np.empty(len(codes), dtype=np.intp)
    all_mapped: list[FloatArray] = []
    all_corrected: list[FloatArray] = []
    for fold_number, (train, test) in enumerate(folds):
        options: dict[str, Any] = {
            "classes": class_numbers,
            "sample_weight": weight[train],
        }
        # The trees are fitted to recalibrated rows of the same folds, so that their
        # gain is beyond recalibration. A constant prediction is a result, not a mistake.
        with ignore_calibration_warnings():
            method = resolve_recalibrator(recalibrator)
            fit_recalibrator(method, proba[train], codes[train], **options)
            mapped = predict_proba_aligned(method, proba, class_numbers)
            trees = MulticalibratedScores()
            train_columns = {name: column[train] for name, column in columns.items()}
            trees.fit(mapped[train], codes[train], groups=train_columns, **options)
            corrected = trees.predict_proba(mapped, groups=columns)
        fold[test] = fold_number
        # Several classes have one set of trees each.
        for fitted_trees in getattr(trees, "one_vs_rest_", [trees]):
            for name in gains:
                gains[name] += fitted_trees.feature_gains_[name]
        all_mapped.append(mapped)
        all_corrected.append(corrected)
    recalibrated = np.stack(all_mapped)[fold, np.arange(len(codes))]
    losses = []
    for maps in (all_mapped, all_corrected):
        losses_by_fold = [rule.compute_row_losses(proba, codes) for proba in maps]
        losses.append(np.stack(losses_by_fold))
    return fold, recalibrated, losses, gains


def _get_sorted_gain_fraction_by_column(gains):
    """Return the gains divided by their sum, the largest first."""
    total = sum(gains.values())
    fractions = {
        name: gain / total if total > 0 else 0.0 for name, gain in gains.items()
    }
    return dict(sorted(fractions.items(), key=lambda pair: -pair[1]))


def compute_detectable_feature_gain(
    rule: Any, proba: FloatArray, w: AnyArray
) -> float | None:
    """Compute the gain by one feature that would have been found with probability 0.8.

    The truth is moved, up or down with equal chances, along the log-odds of the class
    with the largest probability, and a feature determines which: the gain is the value
    of this feature beyond the mean of both. The trees lose up to
    `_TREE_OVERFITTING_TOTAL_NATS` over the number of rows of the log loss. Measured
    with 1000 rows in nine laws, each of 25 to 40 draws: 9 to 10 if a step, a line or
    three or eight categories were missed, 14 to 16 for a quarter of the rows and a
    square, 18 and 20 with 8 % of positives and with 20 columns, 21 with five
    categories; the rest is a reserve. Of another loss they lose the same share of the
    gain.
    """
    # Kish's number of rows.
    effective_rows = 1 / float(w @ w)
    step = -(-len(proba) // _DETECTABLE_GAIN_ROWS)
    log = log_proba(proba[::step])
    w = w[::step] / w[::step].sum()
    # The missed feature moves the log-odds of the most probable class up or down with
    # equal chances.
    is_top = np.eye(log.shape[1])[np.asarray(log).argmax(axis=1)]
    # The number of standard errors of a gain that is found with that power.
    required_errors = ndtri(1 - GAIN_SIGNIFICANCE_LEVEL) + ndtri(DETECTION_POWER)
    nats = LogLoss()

    def compute_gain_mean_and_std(shift, rule=rule):
        """Return the mean and the standard deviation of the gain of a row."""
        down_proba = np.asarray(apply_softmax_or_sigmoid(log - shift * is_top))
        up_proba = np.asarray(apply_softmax_or_sigmoid(log + shift * is_top))
        # Without the feature the best prediction is the mean of both.
        uninformed_losses = rule.compute_label_losses((down_proba + up_proba) / 2)
        gain_down = uninformed_losses - rule.compute_label_losses(down_proba)
        gain_up = uninformed_losses - rule.compute_label_losses(up_proba)
        moments = []
        for power in (1, 2):
            row_sums = np.einsum("ij,ij->i", down_proba, gain_down**power)
            row_sums += np.einsum("ij,ij->i", up_proba, gain_up**power)
            moments.append(float(w @ row_sums) / 2)
        mean, square = moments
        return mean, np.sqrt(max(square - mean**2, 0.0))

    def is_detected(shift):
        gain, deviation = compute_gain_mean_and_std(shift)
        # Trees find a feature only if its gain exceeds their own overfitting.
        gained_nats = effective_rows * compute_gain_mean_and_std(shift, nats)[0]
        if gained_nats <= _TREE_OVERFITTING_TOTAL_NATS:
            return False
        fraction_left = 1 - _TREE_OVERFITTING_TOTAL_NATS / gained_nats
        return (
            fraction_left * gain * np.sqrt(effective_rows) > required_errors * deviation
        )

    if not is_detected(MAX_FEATURE_LOG_ODDS_SHIFT):
        return None
    low = 0.0
    high = MAX_FEATURE_LOG_ODDS_SHIFT
    # The gain grows with the size of the move.
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        if is_detected(middle):
            high = middle
        else:
            low = middle
    return compute_gain_mean_and_std(high)[0]
