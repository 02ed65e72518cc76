"""Signs that a recalibration harms: a lost base rate, worse predictions, folds that share rows."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.stats import norm
from sklearn.pipeline import Pipeline

from .._simplex import log_losses, row_blocks
from .._typing import AnyArray, Estimator, FloatArray, IntArray
from .._warnings import warn_calibration
from ..recalibrators import predict_proba_aligned, warn_leaky_folds

_RATE_ROWS = 20_000  # a sample of so many rows decides about the base rate
_LOSS_ROWS = 4_000  # with more rows an overfitted map is not to be expected, and refits cost
_FEW_ROWS = 500  # with fewer, 3 standard errors of skewed differences are no evidence
_ERRORS = 3.0  # standard errors
_MATERIAL = 1.05  # a map that has learned nothing costs its parameters / (2 n) nats: no word
_COPIES = 0.2  # of the rows, which must be copies of others
_NEAREST = 1, 40, 80  # neighbours: of the last two follows where the first is to be expected
_NEAR, _REACH = 0.5, 0.7  # of that distance; independent rows are above .65 of it
_NEAR_ROWS = 20_000  # with more only equal rows are looked for
_CONTINUOUS = 0.9  # of the different rows have a number of their own in a continuous column
_MOVES_RATES = (
    "Take a method that can move the base rate: recalibrator='default', 'platt' or 'beta'"
)
_KEPT = (
    "The folds keep them together. Name what else does belong together with "
    "groups=; instead of repeated rows pass sample_weight="
)


def find_duplicate_groups(X: Any, folds: int) -> IntArray | None:
    """Groups of equal or nearly equal rows, with a warning; None where few rows are copies.

    A fifth of the rows has to be equal to others, or half of them nearer to another one than the
    40th nearest tells: oversampled rows, windows of one series, measurements of one person.
    Rows are compared by their columns of floating-point numbers. Without two continuous ones, in
    which nine of ten different rows have a number that no other one has, rows may well be equal.
    """
    if hasattr(X, "select_dtypes"):
        X = X.select_dtypes("float").to_numpy(np.float64, na_value=np.nan)
    if not (isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.size):
        return None
    table = X.reshape(len(X), -1)
    factors = np.sqrt(np.arange(2.0, 2 + table.shape[1]))
    blocks = (np.nan_to_num(table[rows].astype(np.float64)) for rows in row_blocks(table))
    key = np.concatenate([np.einsum("ij,j->i", block, factors) for block in blocks])
    n, different = len(key), len(np.unique(key))
    equal = n - different >= _COPIES * n
    if not (equal or _NEAREST[-1] < n <= _NEAR_ROWS):
        return None
    continuous = [c for c in table.T if len(np.unique(c)) >= _CONTINUOUS * different]
    if len(continuous) < 2:  # one alone may be rounded: then equal numbers are no wonder
        return None
    groups = np.unique(key, return_inverse=True)[1] if equal else _near_copies(continuous)
    if groups is None:
        return None
    sizes = np.bincount(groups)
    got = f"{len(sizes)} different rows of X among {n}, nearly equal ones counted once"
    if len(sizes) < 2 * folds or sizes.max() > n / (2 * folds):  # or clusters of their own
        if equal:
            warn_leaky_folds(got)
        return None
    warn_leaky_folds(got, _KEPT)
    return groups


def _near_copies(columns):
    """Groups of rows that are near to each other for how near the others are, or None.

    Distances are those of ranks. The number of neighbours grows with the power of the distance that
    is the dimension of the rows, which tells the nearest one from those that are farther.
    """
    n, (_, k, last) = len(columns[0]), _NEAREST
    ranks = np.column_stack([np.argsort(np.argsort(c)) / n for c in columns])
    some = ranks[np.arange(k) * n // k]
    squares = (some**2).sum(axis=1)[:, None] + (ranks**2).sum(axis=1) - 2 * some @ ranks.T
    nearest = np.partition(squares, _NEAREST, axis=1)[:, _NEAREST]
    near, far, farther = np.sqrt(np.maximum(np.median(nearest, axis=0), 0.0))
    if not 0 < far < farther:
        return None
    expected = far * k ** -(np.log(farther / far) / np.log(last / k))
    if near >= _NEAR * expected:
        return None
    pairs = cKDTree(ranks).query_pairs(_REACH * expected, output_type="ndarray")
    table = coo_array((np.ones(len(pairs)), pairs.T), (n, n))
    return connected_components(table, directed=False)[1]


def warn_of_harm(
    refit: Callable[..., Estimator],
    recalibrator: Estimator,
    scores: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    classes: AnyArray,
) -> None:
    """Warn where a fitted recalibrator harms; silent unless the rows are evidence.

    `refit(rows)` fits another copy on some of the rows. A recalibrator for other class frequencies
    than those of the rows, such as `PriorShift` with a given prior, is not judged by them.
    """
    if _for_other_frequencies(recalibrator, codes, weight, len(classes)):
        return
    positive = np.flatnonzero(weight > 0)
    if len(np.unique(codes[positive])) < len(classes):
        return  # an absent class keeps its probability, of which the recalibrator has warned
    some = positive[_every(len(positive), _RATE_ROWS)]
    lost = _lost_base_rate(recalibrator, scores[some], codes[some], weight[some], classes)
    name = type(recalibrator).__name__
    if lost:
        label, mean, rate, errors = lost
        label = np.asarray(label).tolist()
        warn_calibration(
            expected=(
                "calibrated probabilities whose mean is the class's frequency within "
                f"{_ERRORS:g} standard errors"
            ),
            got=(
                f"mean {mean:.3g} for class {label!r} of frequency {rate:.3g}, "
                f"{errors:.1f} standard errors off with {name}"
            ),
            hint=_MOVES_RATES,
        )
        return
    if not _FEW_ROWS <= len(positive) <= _LOSS_ROWS:
        return
    rows = scores[positive], codes[positive]
    losses = _losses_of_halves(lambda part: refit(positive[part]), *rows, classes)
    if losses is not None:
        after, before = losses
        _warn_of_loss(after, before, weight[positive], f" with {name}")


def warn_of_harm_to_labels(
    refit: Callable[..., Estimator],
    recalibrator: Estimator,
    pairs: Sequence[FloatArray],
    table: FloatArray,
    weight: FloatArray,
) -> None:
    """`warn_of_harm` for many labels, each of them two classes; NaN in `table` is unknown.

    The false alarm rate of a mean that differs is that of one problem of two classes over all
    labels together, about .27 %, two-sided (for calibrated labels that are left as they are:
    14 of 4000 fits of 3 labels and 300 rows); one warning names the label that is farthest off.
    `refit(rows)` fits all labels on some of the rows.
    """
    lost, known = [], [np.flatnonzero(~np.isnan(y) & (weight > 0)) for y in table.T]
    for label, rows in enumerate(known):
        method = recalibrator.recalibrators_[label]
        codes, heavy = table[rows, label].astype(np.intp), weight[rows]
        if len(np.unique(codes)) < 2 or _for_other_frequencies(method, codes, heavy, 2):
            continue
        some = _every(len(rows), _RATE_ROWS)
        scores = pairs[label][rows[some]]
        case = scores, codes[some], heavy[some], np.arange(2)
        off = _lost_base_rate(method, *case, n_tests=table.shape[1])
        if off:
            lost.append((label, *off[1:]))
    if lost:
        label, mean, rate, errors = max(lost, key=lambda label: label[-1])
        warn_calibration(
            expected=(
                "calibrated probabilities of each label whose mean is the label's "
                f"frequency within {_ERRORS:g} standard errors"
            ),
            got=(
                f"{len(lost)} of {table.shape[1]} labels without, such as number {label}: "
                f"mean {mean:.3g} for the frequency {rate:.3g}, {errors:.1f} standard "
                "errors off"
            ),
            hint=_MOVES_RATES,
        )
        return
    rows = np.flatnonzero((weight > 0) & ~np.isnan(table).all(axis=1))
    if not _FEW_ROWS <= len(rows) <= _LOSS_ROWS:
        return

    def losses(fitted, half):
        given = [pair[rows[half]] for pair in pairs]
        return _losses_of_labels(fitted.predict_proba(given), table[rows[half]])

    after = _left_out(np.arange(len(rows)) % 2 == 1, lambda part: refit(rows[part]), losses)
    before = _losses_of_labels([np.asarray(pair)[rows] for pair in pairs], table[rows])
    _warn_of_loss(after, before, weight[rows], ", summed over the labels")


def _losses_of_labels(proba, table):
    """The sum over the known labels of each row."""
    columns = proba if isinstance(proba, list) else list(np.asarray(proba).T)
    total = np.zeros(len(table))
    for part, y in zip(columns, table.T, strict=True):
        second = np.asarray(part)[:, 1] if np.ndim(part) == 2 else np.asarray(part)
        true = np.where(y == 1, second, 1 - second)
        least = np.finfo(np.float64).eps
        total += np.where(np.isnan(y), 0.0, -np.log(np.maximum(true, least)))
    return total


def _for_other_frequencies(recalibrator, codes, weight, n_classes):
    last = recalibrator[-1] if isinstance(recalibrator, Pipeline) else recalibrator
    wanted = getattr(last, "prior_", None)
    if wanted is None or np.shape(wanted) != (n_classes,):
        return False
    counts = np.bincount(codes, weights=weight, minlength=n_classes)
    return not np.allclose(wanted, counts / counts.sum(), rtol=0, atol=1e-9)


def _lost_base_rate(recalibrator, scores, codes, weight, classes, n_tests=1):
    """The class whose mean probability is farthest from its frequency, if by more than noise.

    In the sum over the rows, whose variance is that of labels drawn from the probabilities and of
    one row more, so that a handful of rows proves nothing. The bound grows with the classes.
    """
    proba = predict_proba_aligned(recalibrator, scores, classes)
    hit = codes[:, None] == np.arange(len(classes))
    gap = weight @ (proba - hit)
    spread = np.sqrt(weight**2 @ (proba * (1.0 - proba)) + weight.max() ** 2)
    errors = np.abs(gap) / spread
    # of two, which are equal but for the last digits, the second
    worst = int(np.flatnonzero(~(errors < (1.0 - 1e-9) * errors.max()))[-1])
    if errors[worst] <= norm.isf(norm.sf(_ERRORS) / (len(classes) - 1) / n_tests):
        return None
    total = weight.sum()
    mean, rate = weight @ proba[:, worst] / total, weight @ hit[:, worst] / total
    return classes[worst : worst + 1].tolist()[0], mean, rate, errors[worst]


def _losses_of_halves(refit, scores, codes, classes):
    """Log losses after and before, each half judged by a fit on the other that has all classes."""
    n = len(codes)
    second = np.empty(n, dtype=bool)  # halves with the same number of rows of each class
    second[np.argsort(codes, kind="stable")] = np.arange(n) % 2 == 1
    if min(len(np.unique(codes[second])), len(np.unique(codes[~second]))) < len(classes):
        return None

    def losses(fitted, half):
        proba = predict_proba_aligned(fitted, scores[half], classes)
        return log_losses(proba, (np.arange(len(proba)), codes[half]))

    before = log_losses(np.asarray(scores), (np.arange(n), codes))
    return _left_out(second, refit, losses), before


def _left_out(second, refit, losses):
    """The losses of each half of the rows by a fit on the other half."""
    found = np.empty(len(second))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for half in (second, ~second):
            found[half] = losses(refit(np.flatnonzero(~half)), half)
    return found


def _warn_of_loss(after, before, weight, how):
    """Warn where the mean loss of paired rows is larger afterwards, beyond chance and by 5 %."""
    share = weight / weight.sum()
    rise = share @ (after - before)
    error = np.sqrt(share**2 @ (after - before - rise) ** 2)
    clear, large = rise > _ERRORS * error, share @ after > _MATERIAL * (share @ before)
    if clear and large:
        warn_calibration(
            expected=(
                "a recalibrated log loss, on rows left out of the fit, that is not "
                "above the uncalibrated one"
            ),
            got=f"{share @ after:.4g} after and {share @ before:.4g} before{how}",
            hint=(
                "Take a method with fewer parameters, such as "
                "recalibrator='temperature', or more calibration rows; or leave the "
                "model as it is"
            ),
        )


def _every(n, largest):
    """Positions of at most so many rows, evenly spread."""
    return np.arange(n) if n <= largest else np.linspace(0, n - 1, largest).astype(np.intp)
