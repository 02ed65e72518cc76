"""Signs that a recalibration harms, or that the rows do not allow to judge it."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.special import ndtri
from scipy.stats import norm
from sklearn.pipeline import Pipeline

from .._kernels._classical_tests import compute_spearman_and_z
from .._kernels._log_odds import compute_rounded_unclipped_log_odds
from .._simplex_array import LOG_LOSS_FLOOR, compute_log_losses, iter_row_blocks
from .._typing import AnyArray, Estimator, FloatArray, IntArray
from .._warnings import warn_calibration
from ._any_recalibrator import predict_proba_aligned

# The level of the tests of scores without information and of independent rows.
WARNING_SIGNIFICANCE_LEVEL = 1e-4
# A score counts as tied if this many rows have it.
_MIN_ROWS_PER_TIED_SCORE = 5
# So many scores must have that many rows.
_MIN_TIED_SCORES = 20
# The base rate is tested on a sample of at most this many rows.
_MAX_BASE_RATE_TEST_ROWS = 20_000
# With more rows an overfitted map is unlikely, and refits take long.
_MAX_LOSS_CHECK_ROWS = 4_000
# With fewer rows, 3 standard errors of skewed differences are not evidence.
_MIN_LOSS_CHECK_ROWS = 500
_MAX_BASE_RATE_STANDARD_ERRORS = 3.0
# A map that learns nothing costs its parameters / (2 n) nats.
_MAX_LOSS_RATIO_AFTER_TO_BEFORE = 1.05
# The fraction of rows that must be copies of others.
_MIN_COPIED_FRACTION = 0.2
# From the distances of the last two follows where the first is to be expected.
_NEIGHBOUR_RANKS = 1, 40, 80
# In units of that distance; independent rows are above 0.65 of it.
_MAX_NEIGHBOUR_DISTANCE_RATIO = 0.5
_NEAR_COPY_RADIUS_RATIO = 0.7
# In more rows only equal ones are looked for.
_MAX_NEAR_COPY_SEARCH_ROWS = 20_000
# The fraction of the different rows that have a number of their own.
_MIN_DISTINCT_FRACTION = 0.9

_REPEATED_SCORES_MESSAGE = "scores that repeat with the same labels"
GROUPS_HINT = (
    "Name what belongs together, such as the number of the patient or of "
    "the election, with groups=; instead of repeated rows pass "
    "sample_weight="
)
_GROUPS_KEPT_HINT = (
    "The folds keep them together. Name what else does belong together with "
    "groups=; instead of repeated rows pass sample_weight="
)
_BASE_RATE_HINT = (
    "Take a method that can move the base rate: "
    "recalibrator='default', 'platt' or 'beta'"
)


# -- scores and labels of one fit -----------------------------------------------------------------


def warn_constant_scores(method: object, proba: FloatArray) -> None:
    """Warn if all rows of scores are equal."""
    first = np.asarray(proba)[0]
    # A comparison of the first row with the last one is fast and usually decides.
    ends_differ = bool((proba[-1] != first).any())
    if len(proba) == 1 or ends_differ or (proba != first).any():
        return
    warn_calibration(
        expected="at least two different rows of scores",
        got=f"one row {np.round(proba[0], 6).tolist()} {len(proba)} times",
        hint="Only class frequencies can be learned from it; check where the scores come from",
        estimator=method,
    )


def warn_absent_classes(method: Any, absent: IntArray) -> None:
    """Warn if no calibration row has a class that the scores have a column for."""
    names = ", ".join(repr(label) for label in method.classes_[absent[:5]].tolist())
    warn_calibration(
        expected="calibration rows of each class",
        got=f"none of {names}" + (", ..." if len(absent) > 5 else ""),
        hint=(
            "It is taken to be as frequent as predicted, and the others share the "
            "rest: get rows of it, or drop its column"
        ),
        estimator=method,
    )


def find_negative_rank_correlation(
    proba: FloatArray, y_encoded: IntArray, weight: FloatArray, n_tests: int = 1
) -> float | None:
    """Return the rank correlation of scores and classes if it is negative beyond chance, or None.

    The mean of the scores comes first: if it rises with the outcome, nothing is sorted.
    """
    table = np.asarray(proba)
    two = table.shape[1] == 2
    # With more than two classes the score is the mean of the class numbers.
    score = table[:, 1] if two else table @ np.arange(table.shape[1], dtype=float)
    share = weight / weight.max()
    outcome = share * y_encoded
    # A positive covariance decides the question without ranks, which is the usual case.
    if outcome @ score >= outcome.sum() / share.sum() * (share @ score):
        return None
    if two:
        score = compute_rounded_unclipped_log_odds(proba)
    correlation, statistic = compute_spearman_and_z(score, y_encoded, weight)
    return (
        correlation if statistic < ndtri(WARNING_SIGNIFICANCE_LEVEL / n_tests) else None
    )


def warn_decreasing_scores(method: object, correlations: Mapping[str, float]) -> None:
    """Warn once of decreasing scores: of two classes (""), or of those of many that have them."""
    names = ", ".join([*correlations][:5]) + (", ..." if len(correlations) > 5 else "")
    if names:
        of_classes = f" of the classes {names}"
        hint = "Check the order of the columns, classes= and logits of the wrong sign"
    else:
        of_classes = ""
        hint = (
            "If a high score speaks for the first class, pass 1 - p, or exchange the columns "
            "or the two names in classes=; a method that may fall is 'platt'"
        )
    worst = min(correlations.values())
    warn_calibration(
        expected=f"scores{of_classes} that rise with the outcome",
        got=(
            f"scores that fall (rank correlation about {worst:.1f}), of which a map "
            "that cannot fall keeps the class frequencies only"
        ),
        hint=hint,
        estimator=method,
    )


# -- rows that belong together --------------------------------------------------------------------


def has_dependent_tied_rows(proba: FloatArray, y_encoded: IntArray) -> bool:
    """Return whether rows of one score agree in their labels as independent rows would not.

    The scores that at least 5 rows have are compared. They must hold half of all rows,
    and be 20 at least. If all rows of one score are positive and all of the next higher
    one negative, the pair falls; if it is the other way round, it rises. If rows are
    independent and the share of positives rises with the score (or falls), one of the
    two has in a pair of m1 and m2 rows a probability of at most max_x x^m1 (1 - x)^m2,
    1 in 1000 for 5 and 5, for every law of the scores: votes of trees, rounded
    numbers, steps. Each second pair is independent of the others. More falling and more
    rising pairs than that, at a level of 1e-4 by Chernoff's bound, are rows that belong
    together. Of several classes each is compared with the others.
    """
    # Rounding makes scores equal that differ by the order of summation in a model.
    digits = np.rint(np.asarray(proba) * 2.0**36)
    if proba.shape[1] == 2:
        columns = [1]
        key = digits[:, 1]
    else:
        columns = [*range(proba.shape[1])]
        # Square roots of different integers are independent over the rationals (up to
        # squares), so different rows rarely get one key.
        key = digits @ np.sqrt(np.arange(2.0, 2 + len(digits.T)))
    _, tie, count = np.unique(key, return_inverse=True, return_counts=True)
    large = count >= _MIN_ROWS_PER_TIED_SCORE
    if large.sum() < _MIN_TIED_SCORES or 2 * count[large].sum() < len(y_encoded):
        return False
    count = np.bincount(tie)[large]
    for column in columns:
        hits = np.bincount(tie, weights=y_encoded == column)[large]
        value = np.zeros(len(large))
        value[tie] = digits[:, column]
        # Scores with the same value of this column are sorted by their event rates.
        order = np.lexsort((hits / count, value[large]))
        if _has_too_many_pure_label_changes(count[order], hits[order], len(columns)):
            return True
    return False


def _has_too_many_pure_label_changes(count, events, n_tests):
    """Return whether too many neighbouring scores have rows of opposite labels only."""
    all_events = events == count
    no_events = events == 0
    first = count[:-1]
    second = count[1:]
    pair_count = first + second
    # The largest probability, over all event rates, that all labels of one score are
    # events and none of its neighbour's are.
    max_probability = np.exp(
        first * np.log(first / pair_count) + second * np.log(second / pair_count)
    )
    falls = all_events[:-1] & no_events[1:]
    rises = no_events[:-1] & all_events[1:]
    for start in (0, 1):
        observed = min(falls[start::2].sum(), rises[start::2].sum())
        expected = max_probability[start::2].sum()
        if observed > expected:
            # Chernoff's bound for a sum of independent indicators.
            bound = observed - expected + observed * np.log(expected / observed)
            if bound < np.log(WARNING_SIGNIFICANCE_LEVEL / (2 * n_tests)):
                return True
    return False


def warn_leaky_folds(got: str, hint: str = GROUPS_HINT) -> None:
    """Warn of folds that share what belongs together, or would share it."""
    warn_calibration(
        expected="rows that are independent, to judge a fit by rows that it has not seen",
        got=got,
        hint=hint,
    )


def warn_repeated_rows_in_counts(class_counts_by_score: IntArray) -> None:
    """Warn of repeated rows of two classes, counted by class in cells of increasing scores."""
    count = class_counts_by_score.sum(axis=1).astype(float)
    hits = class_counts_by_score[:, 1].astype(float)
    large = count >= _MIN_ROWS_PER_TIED_SCORE
    if large.sum() < _MIN_TIED_SCORES or 2 * count[large].sum() < count.sum():
        return
    if _has_too_many_pure_label_changes(count[large], hits[large], 1):
        warn_leaky_folds(_REPEATED_SCORES_MESSAGE)


def warn_repeated_rows(proba: FloatArray, y_encoded: IntArray, hint: str) -> None:
    """Warn of repeated rows: folds that share them know the labels that they are judged by."""
    if has_dependent_tied_rows(proba, y_encoded):
        warn_leaky_folds(_REPEATED_SCORES_MESSAGE, hint)


def group_near_duplicates_and_warn(X: Any, n_folds: int) -> IntArray | None:
    """Return groups of equal or nearly equal rows, with a warning; None if few are copies.

    A fifth of the rows has to be equal to others, or half of them nearer to another one
    than the 40th nearest suggests: oversampled rows, windows of one series,
    measurements of one person. Rows are compared by their columns of floating-point
    numbers. Without two continuous ones, in which nine of ten different rows have a
    number that no other one has, rows may well be equal.
    """
    if hasattr(X, "select_dtypes"):
        X = X.select_dtypes("float").to_numpy(np.float64, na_value=np.nan)
    if not (isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.size):
        return None
    table = X.reshape(len(X), -1)
    factors = np.sqrt(np.arange(2.0, 2 + table.shape[1]))
    blocks = (
        np.nan_to_num(table[rows].astype(np.float64)) for rows in iter_row_blocks(table)
    )
    key = np.concatenate([np.einsum("ij,j->i", block, factors) for block in blocks])
    n = len(key)
    different = len(np.unique(key))
    equal = n - different >= _MIN_COPIED_FRACTION * n
    if not (equal or _NEIGHBOUR_RANKS[-1] < n <= _MAX_NEAR_COPY_SEARCH_ROWS):
        return None
    continuous = [
        c for c in table.T if len(np.unique(c)) >= _MIN_DISTINCT_FRACTION * different
    ]
    # A single column may be rounded, so that equal numbers are expected.
    if len(continuous) < 2:
        return None
    groups = (
        np.unique(key, return_inverse=True)[1]
        if equal
        else _group_near_duplicate_rows(continuous)
    )
    if groups is None:
        return None
    sizes = np.bincount(groups)
    got = f"{len(sizes)} different rows of X among {n}, nearly equal ones counted once"
    # Groups that are so few or so large cannot be divided into folds, or are clusters
    # rather than copies.
    if len(sizes) < 2 * n_folds or sizes.max() > n / (2 * n_folds):
        if equal:
            warn_leaky_folds(got)
        return None
    warn_leaky_folds(got, _GROUPS_KEPT_HINT)
    return groups


def _group_near_duplicate_rows(columns) -> IntArray | None:
    """Return groups of rows that are near each other for how near the others are, or None.

    Distances are those of ranks. The number of neighbours grows with the power of the
    distance that is the dimension of the rows, which gives the distance of the nearest
    one from those that are farther.
    """
    n = len(columns[0])
    _, k, last = _NEIGHBOUR_RANKS
    # Ranks make distances independent of units and of the shape of the distributions.
    ranks = np.column_stack([np.argsort(np.argsort(c)) / n for c in columns])
    some = ranks[np.arange(k) * n // k]
    squares = (
        (some**2).sum(axis=1)[:, None] + (ranks**2).sum(axis=1) - 2 * some @ ranks.T
    )
    nearest = np.partition(squares, _NEIGHBOUR_RANKS, axis=1)[:, _NEIGHBOUR_RANKS]
    near, far, farther = np.sqrt(np.maximum(np.median(nearest, axis=0), 0.0))
    if not 0 < far < farther:
        return None
    # The distance to the k-th neighbour grows like a power of k; two distances
    # determine the power, which is extrapolated to the first neighbour.
    expected = far * k ** -(np.log(farther / far) / np.log(last / k))
    if near >= _MAX_NEIGHBOUR_DISTANCE_RATIO * expected:
        return None
    pairs = cKDTree(ranks).query_pairs(
        _NEAR_COPY_RADIUS_RATIO * expected, output_type="ndarray"
    )
    table = coo_array((np.ones(len(pairs)), pairs.T), (n, n))
    return connected_components(table, directed=False)[1]


# -- what a fit has changed -----------------------------------------------------------------------


def warn_if_harmful(
    recalibrator: Estimator,
    refit: Callable[[IntArray], Estimator],
    scores: FloatArray,
    y_encoded: IntArray,
    weight: FloatArray,
    classes: AnyArray,
) -> None:
    """Warn if a fitted recalibrator harms and the rows are evidence of it.

    `refit(rows)` fits another copy on some of the rows. A recalibrator for other class
    frequencies than those of the rows, such as `PriorShift` with a given prior, is not
    judged by them.
    """
    if _has_other_target_prior(recalibrator, y_encoded, weight, len(classes)):
        return
    positive = np.flatnonzero(weight > 0)
    if len(np.unique(y_encoded[positive])) < len(classes):
        # An absent class keeps its probability, and the recalibrator has already warned
        # of it.
        return
    name = type(recalibrator).__name__
    some = _select_evenly_spread_rows(positive, _MAX_BASE_RATE_TEST_ROWS)
    lost = _find_significant_base_rate_gap(
        recalibrator,
        scores[some],
        y_encoded[some],
        weight[some],
        classes,
    )
    if lost:
        _warn_base_rate_gap(name, classes, *lost)
        return
    if not _MIN_LOSS_CHECK_ROWS <= len(positive) <= _MAX_LOSS_CHECK_ROWS:
        return
    scores = scores[positive]
    y_encoded = y_encoded[positive]
    n = len(positive)
    # Both halves get the same number of rows of each class.
    second = np.empty(n, dtype=bool)
    second[np.argsort(y_encoded, kind="stable")] = np.arange(n) % 2 == 1
    for half in (second, ~second):
        if len(np.unique(y_encoded[half])) < len(classes):
            return

    def compute_losses(fitted, half):
        proba = predict_proba_aligned(fitted, scores[half], classes)
        return compute_log_losses(proba, (np.arange(len(proba)), y_encoded[half]))

    before = compute_log_losses(np.asarray(scores), (np.arange(n), y_encoded))
    after = _compute_other_half_losses(
        second, lambda part: refit(positive[part]), compute_losses
    )
    _warn_larger_loss(after, before, weight[positive], f" with {name}")


def _warn_base_rate_gap(name, classes, column, mean, rate, errors):
    """Warn of the class whose mean probability is farthest from its frequency."""
    label = np.asarray(classes[column]).tolist()
    warn_calibration(
        expected=(
            "calibrated probabilities whose mean is the class's frequency within "
            f"{_MAX_BASE_RATE_STANDARD_ERRORS:g} standard errors"
        ),
        got=f"mean {mean:.3g} for frequency {rate:.3g}",
        sentence=(
            f"With {name}, the mean calibrated probability of class {label!r} is {mean:.3g}, "
            f"{errors:.1f} standard errors from its frequency {rate:.3g}"
        ),
        hint=_BASE_RATE_HINT,
    )


def warn_if_harmful_for_labels(
    recalibrator: Estimator,
    refit: Callable[[IntArray], Estimator],
    pairs: Sequence[FloatArray],
    table: FloatArray,
    weight: FloatArray,
) -> None:
    """Warn as `warn_if_harmful` of many labels, each two classes; NaN in `table` is unknown.

    The false alarm rate of a mean that differs is that of one problem of two classes
    over all labels together, about 0.27 %, two-sided (for calibrated labels that are
    left as they are: 14 of 4000 fits of 3 labels and 300 rows); one warning names the
    label that is farthest off. `refit(rows)` fits all labels on some of the rows.
    """
    n_labels = table.shape[1]
    losses = _list_significant_base_rate_gaps_by_label(
        recalibrator, pairs, table, weight
    )
    if losses:
        label, mean, rate, errors = max(losses, key=lambda difference: difference[-1])
        warn_calibration(
            expected=(
                "calibrated probabilities of each label whose mean is the label's "
                f"frequency within {_MAX_BASE_RATE_STANDARD_ERRORS:g} standard errors"
            ),
            got=f"{len(losses)} labels that differ",
            sentence=(
                f"For {len(losses)} of {n_labels} labels the mean calibrated probability differs "
                f"from the frequency; for label number {label} it is {mean:.3g}, "
                f"{errors:.1f} standard errors from {rate:.3g}"
            ),
            hint=_BASE_RATE_HINT,
        )
        return
    rows = np.flatnonzero((weight > 0) & ~np.isnan(table).all(axis=1))
    if not _MIN_LOSS_CHECK_ROWS <= len(rows) <= _MAX_LOSS_CHECK_ROWS:
        return

    def compute_losses(fitted, half):
        predicted = fitted.predict_proba([pair[rows[half]] for pair in pairs])
        return _sum_row_losses_over_labels(predicted, table[rows[half]])

    before = _sum_row_losses_over_labels([pair[rows] for pair in pairs], table[rows])
    is_second_half = np.arange(len(rows)) % 2 == 1
    after = _compute_other_half_losses(
        is_second_half, lambda fit_half: refit(rows[fit_half]), compute_losses
    )
    _warn_larger_loss(after, before, weight[rows], ", summed over the labels")


def _list_significant_base_rate_gaps_by_label(recalibrator, pairs, table, weight):
    """Return (label, mean, frequency, standard errors) of labels with a lost base rate."""
    losses = []
    for label, y in enumerate(table.T):
        labelled = np.flatnonzero(~np.isnan(y) & (weight > 0))
        method = recalibrator.recalibrators_[label]
        y_encoded = y[labelled].astype(np.intp)
        if len(np.unique(y_encoded)) < 2:
            continue
        if _has_other_target_prior(method, y_encoded, weight[labelled], 2):
            continue
        sampled = _select_evenly_spread_rows(labelled, _MAX_BASE_RATE_TEST_ROWS)
        lost = _find_significant_base_rate_gap(
            method,
            pairs[label][sampled],
            y[sampled].astype(np.intp),
            weight[sampled],
            np.arange(2),
            n_tests=table.shape[1],
        )
        if lost:
            losses.append((label, *lost[1:]))
    return losses


def _sum_row_losses_over_labels(pairs, table):
    """Return the sum over the known labels of each row."""
    total = np.zeros(len(table))
    for pair, y in zip(pairs, table.T, strict=True):
        second = np.asarray(pair)[:, 1]
        true = np.where(y == 1, second, 1 - second)
        total += np.where(np.isnan(y), 0.0, -np.log(np.maximum(true, LOG_LOSS_FLOOR)))
    return total


def _has_other_target_prior(recalibrator, y_encoded, weight, n_classes):
    last = recalibrator[-1] if isinstance(recalibrator, Pipeline) else recalibrator
    prior = getattr(last, "prior_", None)
    if prior is None or np.shape(prior) != (n_classes,):
        return False
    counts = np.bincount(y_encoded, weights=weight, minlength=n_classes)
    return not np.allclose(prior, counts / counts.sum(), rtol=0, atol=1e-9)


def _find_significant_base_rate_gap(
    recalibrator, scores, y_encoded, weight, classes, n_tests=1
) -> tuple[int, float, float, float] | None:
    """Return the column whose mean is farthest from its class's frequency, if beyond chance.

    Sums over the rows are compared. Their variance is that of labels drawn from the
    probabilities and of one row more, so that a handful of rows proves nothing. The
    bound grows with the classes. Mean, frequency and standard errors come with it.
    """
    proba = predict_proba_aligned(recalibrator, scores, classes)
    is_class = y_encoded[:, None] == np.arange(len(classes))
    gap = weight @ (proba - is_class)
    # One more row in the variance: with few expected events the normal approximation
    # rejects too often.
    spread = np.sqrt(weight**2 @ (proba * (1.0 - proba)) + weight.max() ** 2)
    errors = np.abs(gap) / spread
    # With two classes both errors are equal up to the last digits; the second class is
    # reported.
    worst = int(np.flatnonzero(~(errors < (1.0 - 1e-9) * errors.max()))[-1])
    # Bonferroni's correction for looking at the worst of all classes and labels.
    if errors[worst] <= norm.isf(
        norm.sf(_MAX_BASE_RATE_STANDARD_ERRORS) / (len(classes) - 1) / n_tests
    ):
        return None
    total = weight.sum()
    mean = weight @ proba[:, worst] / total
    rate = weight @ is_class[:, worst] / total
    return worst, mean, rate, errors[worst]


def _compute_other_half_losses(is_second_half, refit, compute_losses):
    """Return the losses of each half of the rows by a fit on the other half."""
    losses = np.empty(len(is_second_half))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for half in (is_second_half, ~is_second_half):
            losses[half] = compute_losses(refit(np.flatnonzero(~half)), half)
    return losses


def _warn_larger_loss(after, before, weight, how):
    """Warn if the mean loss of paired rows is larger afterwards, beyond chance and by 5 %."""
    share = weight / weight.sum()
    rise = share @ (after - before)
    # Losses of the same rows are compared, so most of their variance cancels.
    error = np.sqrt(share**2 @ (after - before - rise) ** 2)
    is_clear = rise > _MAX_BASE_RATE_STANDARD_ERRORS * error
    is_large = share @ after > _MAX_LOSS_RATIO_AFTER_TO_BEFORE * (share @ before)
    if is_clear and is_large:
        warn_calibration(
            expected="a log loss that recalibration does not increase",
            got=f"{share @ after:.4g}",
            sentence=(
                f"Recalibration increased the log loss of rows left out of the fit from "
                f"{share @ before:.4g} to {share @ after:.4g}{how}"
            ),
            hint=(
                "Take a method with fewer parameters, such as "
                "recalibrator='temperature', or more calibration rows; or leave the "
                "model as it is"
            ),
        )


def _select_evenly_spread_rows(rows, max_rows):
    """Return at most so many of the rows, evenly spread."""
    if len(rows) <= max_rows:
        return rows
    return rows[np.linspace(0, len(rows) - 1, max_rows).astype(np.intp)]
