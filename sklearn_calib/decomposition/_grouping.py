"""What a better use of the features would gain beyond recalibration: the grouping loss.

The rows are split into folds. Each row gets three losses: of its probabilities as they
are, of these after a recalibrator that was fitted without its fold, and of these after
trees that correct the recalibrated probabilities by the features, also fitted without
its fold. The means of the differences are the gains.

The intervals are for the expected gains, on new rows, of the very maps that were
fitted: what is in the features is more. If something is to be gained, the error of
the mean is that of independent rows to first order (Bayle, Bayle, Janson, Mackey,
2020); for the rest see `_estimate_fold_sampling_error`.
"""

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri
from sklearn.model_selection import KFold

from .._simplex_array import apply_softmax, log_proba
from .._typing import CV, AnyArray, FloatArray, RecalibratorLike
from .._validation import check_same_index
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

MIN_FEATURE_ROWS = 50
MIN_ROWS_PER_CLASS = 5
_N_FOLDS = 5
# A feature moves the true log-odds by at most this much.
MAX_FEATURE_SHIFT = 12.0
# `minimum_detectable` is computed from at most this many rows.
_DETECTABLE_GAIN_ROWS = 4096
# Smaller differences of a loss are treated as 0.
LOSS_TOLERANCE = 1e-12
MAX_VARIANCE_FACTOR = 2.0
# The loss, in rows times nats, of trees where one feature is missed, with a reserve.
_TREE_OVERFITTING_COST = 30.0


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
    folds = make_row_folds(predictions, _N_FOLDS if cv is None else cv)
    fold, recalibrated, (mapped, used), gains = _correct_by_features(
        predictions, columns, rule, recalibrator, folds
    )
    w = predictions.weight / predictions.weight.sum()
    frequencies = np.bincount(predictions.codes, w, len(predictions.classes)).astype(
        float
    )
    blind = rule.compute_label_losses(frequencies[None])[0][predictions.codes]
    risk = rule.compute_row_losses(predictions.proba, predictions.codes)
    by_map = {
        "calibration": risk - mapped,
        "refinement": mapped,
        "sharpness": blind - mapped,
        # Gain of the trees beyond the recalibrated probabilities.
        "grouping": mapped - used,
        "irreducible": used,
    }
    laws = {"risk": estimate_mean_sampling_error(risk, w, w**2)}
    laws |= {
        name: _estimate_fold_sampling_error(losses, fold, w, fading=name == "grouping")
        for name, losses in by_map.items()
    }
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
        feature_gains=_sort_gain_fractions(gains),
        minimum_detectable=minimum_detectable(rule, recalibrated, w),
        n_rows=len(predictions.codes),
        _sampling_errors=laws,
    )


def _estimate_fold_sampling_error(losses, fold, w, fading=False):
    """Estimate the law of a mean of rows, each of which is judged by the maps of its own fold.

    Of two folds each trains the maps that judge the other. If nothing is to be
    gained, that is all that varies, and it enters twice: the variance is up to two
    times that of independent rows. How much of it there is shows in how the maps of the
    folds differ, of which those of two share three quarters of their rows: what varies
    is sums of four folds, and what differs, of two.

    Trees agree on what is clearly there, and have seen the rows on which they are
    compared, so what differs is too much for them if the gain is many errors from 0;
    `fading` lets it go there.
    """
    # Rounding must not look like a gain.
    losses = np.where(np.abs(losses) < LOSS_TOLERANCE, 0.0, losses)
    own = losses[fold, np.arange(len(fold))]
    law = estimate_mean_sampling_error(own, w, w**2)
    # How much the maps of other folds differ on the same row: rows train each other's
    # maps.
    apart = ((losses - own) ** 2).sum(axis=0) / (len(losses) - 1)
    twice = min(MAX_VARIANCE_FACTOR * float(w**2 @ apart), law.variance)
    # Far from 0 the error is that of independent rows to first order.
    if fading and law.estimate:
        twice *= min(
            1.0,
            ndtri(1 - GAIN_SIGNIFICANCE_LEVEL) ** 2 * law.variance / law.estimate**2,
        )
    return replace(law, variance=law.variance + twice)


def has_enough_rows_for_features(predictions: "Predictions") -> bool:
    """Return whether there are enough rows to measure gains."""
    counts = np.bincount(predictions.codes)
    return (
        counts.sum() >= MIN_FEATURE_ROWS and (counts >= MIN_ROWS_PER_CLASS).sum() >= 2
    )


def _too_few_rows_error(predictions):
    n_rows = len(predictions.codes)
    counts = np.bincount(predictions.codes)
    expected = (
        f"at least {MIN_FEATURE_ROWS} rows of positive weight, "
        f"{MIN_ROWS_PER_CLASS} of each of two "
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

    Rows of weight 0, which predictions do not hold, are left out.
    """
    check_same_index(features, first=predictions.index)
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


def make_row_folds(
    predictions: "Predictions", cv: CV
) -> list[tuple[AnyArray, AnyArray]]:
    """Return folds that test each row exactly once.

    Those of a number are not stratified: with the classes as frequent among the rows of
    a fit as among those that judge it, a fit of these frequencies looks better than it
    is, by 1 / n nats.
    """
    if isinstance(cv, Integral):
        cv = KFold(int(cv), shuffle=True, random_state=0)
    folds = [
        (np.asarray(train), np.asarray(test))
        for train, test in make_folds(predictions.codes, cv)
    ]
    tested = np.bincount(
        np.concatenate([test for _, test in folds]), minlength=len(predictions.codes)
    )
    if (tested != 1).any():
        raise invalid_input(
            expected="folds that test each row once, with features",
            got=f"{np.count_nonzero(tested != 1)} rows that are not",
            hint="Pass a number of folds, or a splitter such as GroupKFold",
        )
    return folds


def _correct_by_features(predictions, columns, rule, recalibrator, folds):
    """Recalibrate each row, then correct it by its features, with fits to other rows.

    Returns
    -------
    fold : ndarray of shape (n_samples,)
        In which each row was tested.
    recalibrated : ndarray of shape (n_samples, n_classes)
    losses : two ndarrays of shape (n_folds, n_samples)
        Of recalibrated probabilities, and of those by the features too. They have one
        row for the maps of each fold, of all rows: those they have not seen, and the
        others.
    gains : dict of column to float
        What the trees were made of.
    """
    proba = predictions.proba
    codes = predictions.codes
    weight = predictions.weight
    numbers = np.arange(len(predictions.classes))
    gains = dict.fromkeys(columns, 0.0)
    fold = np.empty(len(codes), dtype=np.intp)
    maps: list[list[FloatArray]] = [[], []]
    for number, (train, test) in enumerate(folds):
        given: dict[str, Any] = {"classes": numbers, "sample_weight": weight[train]}
        # a constant prediction is a fact here, not a mistake
        # The trees are fitted to recalibrated rows of the same folds, so that their
        # gain is beyond recalibration.
        with ignore_calibration_warnings():
            method = resolve_recalibrator(recalibrator)
            fit_recalibrator(method, proba[train], codes[train], **given)
            mapped = predict_proba_aligned(method, proba, numbers)
            trees = MulticalibratedScores()
            chosen = {name: column[train] for name, column in columns.items()}
            trees.fit(mapped[train], codes[train], groups=chosen, **given)
            used = trees.predict_proba(mapped, groups=columns)
        fold[test] = number
        for name in gains:
            gains[name] += sum(
                part.feature_gains_[name]
                for part in getattr(trees, "one_vs_rest_", [trees])
            )
        maps[0].append(mapped)
        maps[1].append(used)
    recalibrated = np.stack(maps[0])[fold, np.arange(len(codes))]
    losses = [
        np.stack([rule.compute_row_losses(one, codes) for one in found])
        for found in maps
    ]
    return fold, recalibrated, losses, gains


def _sort_gain_fractions(gains):
    """Divide the gains by their sum, and sort them, the largest first."""
    total = sum(gains.values())
    shares = {name: gain / total if total > 0 else 0.0 for name, gain in gains.items()}
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def minimum_detectable(rule: Any, proba: FloatArray, w: AnyArray) -> float | None:
    """Compute the gain by one feature that would have been found with probability 0.8.

    The truth is moved, up or down with equal chances, along the log-odds of the class
    with the largest probability, and a feature determines which: the gain is the value
    of this feature beyond the mean of both. Of the log loss the trees lose up to
    `_TREE_OVERFITTING_COST` over the number of rows. Measured with 1000 rows in nine
    laws, each of 25 to 40 draws: 9 to 10 if a step, a line or three or eight categories
    were missed, 14 to 16 for a quarter of the rows and a square, 18 and 20 with 8 % of
    positives and with 20 columns, 21 with five categories; the rest is a reserve. Of
    another loss they lose the same share of the gain.
    """
    # Kish's number of rows.
    rows = 1 / float(w @ w)
    step = -(-len(proba) // _DETECTABLE_GAIN_ROWS)
    log = log_proba(proba[::step])
    w = w[::step] / w[::step].sum()
    # The missed feature moves the log-odds of the most probable class up or down with
    # equal chances.
    top = np.eye(log.shape[1])[np.asarray(log).argmax(axis=1)]
    needed = ndtri(1 - GAIN_SIGNIFICANCE_LEVEL) + ndtri(DETECTION_POWER)
    nats = LogLoss()

    def gain_and_deviation(move, rule=rule):
        moved = [np.asarray(apply_softmax(log + sign * move * top)) for sign in (-1, 1)]
        # Without the feature the best prediction is the mean of both.
        without = rule.compute_label_losses((moved[0] + moved[1]) / 2)
        gains = [without - rule.compute_label_losses(one) for one in moved]
        first, second = (
            float(
                w
                @ sum(
                    np.einsum("ij,ij->i", p, g**k)
                    for p, g in zip(moved, gains, strict=True)
                )
            )
            / 2
            for k in (1, 2)
        )
        return first, np.sqrt(max(second - first**2, 0.0))

    def is_seen(move):
        gain, deviation = gain_and_deviation(move)
        # Trees find a feature only if its gain exceeds their own overfitting.
        known = rows * gain_and_deviation(move, nats)[0]
        if known <= _TREE_OVERFITTING_COST:
            return False
        return (1 - _TREE_OVERFITTING_COST / known) * gain * np.sqrt(
            rows
        ) > needed * deviation

    if not is_seen(MAX_FEATURE_SHIFT):
        return None
    low = 0.0
    high = MAX_FEATURE_SHIFT
    # The gain grows with the size of the move.
    while high - low > 1e-3 * high:
        half = (low + high) / 2
        low, high = (low, half) if is_seen(half) else (half, high)
    return gain_and_deviation(high)[0]
