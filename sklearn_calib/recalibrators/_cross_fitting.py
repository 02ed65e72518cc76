"""Cross-fitting: folds, and each row recalibrated by a fit on other rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from .._argument_checks import is_real_number
from .._group_folds import FastStratifiedGroupKFold
from .._random import check_seed, make_random_state
from .._typing import (
    CV,
    ArrayLike,
    FloatArray,
    IntArray,
    RandomStateLike,
    RecalibratorLike,
)
from .._validation import (
    canonical_weight,
    check_and_get_common_index,
    check_same_length,
    raise_if_single_column_class_unclear,
    read_labels,
    read_proba,
    reorder_columns_if_names_match,
    warn_column_order,
)
from ..exceptions import invalid_input
from ._any_recalibrator import fit_clone, predict_proba_aligned
from ._group_columns import encode_groups
from ._harm_checks import GROUPS_HINT, warn_repeated_rows

_EXPECTED_CV = "cv as a number of folds, a splitter, or pairs (train, test) of rows"


def cross_fitted_proba(
    recalibrator: RecalibratorLike,
    proba: ArrayLike,
    y: ArrayLike,
    *,
    cv: CV = 5,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: RandomStateLike = 0,
) -> FloatArray:
    """Recalibrate each row by a fit on other rows (cross-fitting).

    Parameters
    ----------
    recalibrator : str or recalibrator
        A name, or an instance with ``fit`` and ``predict_proba``, which is cloned for
        each fold.
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities.
    y : array-like of shape (n_samples,)
        Labels.
    cv : int, splitter or iterable of (train, test), default=5
        An int means stratified folds, shuffled. A row that is tested more than once
        keeps the probabilities of the last of these folds.
    sample_weight : array-like of shape (n_samples,), default=None
        Passed to each fit that takes it.
    classes : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y` lacks a class.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as those of a patient: no group is split between
        folds. Also passed to each fit that takes them.
    random_state : int, Generator, RandomState or None, default=0
        Shuffles the rows where `cv` is an int.

    Returns
    -------
    recalibrated : ndarray of shape (n_samples, n_classes), float64
        Rows as in `proba`; a class that a fold's fit has not seen may have probability
        0 there.

    Raises
    ------
    ValueError
        Invalid scores, labels or weights (see `canonical_proba`), or folds that do not
        test every row.
    TypeError
        No recalibrator.

    Warns
    -----
    CalibrationWarning
        No `groups`, and scores that repeat with the same labels: folds share what
        belongs together.

    Notes
    -----
    Cost: one fit and one prediction per fold.

    Examples
    --------
    >>> from sklearn_calib.metrics import log_loss
    >>> from sklearn_calib.recalibrators import cross_fitted_proba
    >>> from sklearn_calib.datasets import make_overconfident
    >>> proba, y = make_overconfident(3, 500)
    >>> log_loss(y, cross_fitted_proba("temperature", proba, y)) < log_loss(y, proba)
    True
    """
    names, codes = read_labels(y, classes=classes, input_name="y")
    table = proba
    check_and_get_common_index(y, table, sample_weight, groups)
    proba = read_proba(table, n_classes=len(names), input_name="proba")
    proba = reorder_columns_if_names_match(proba, table, names)
    check_same_length(codes, proba)
    if sample_weight is not None:
        sample_weight = canonical_weight(sample_weight, len(codes))
    if classes is None:
        raise_if_single_column_class_unclear(table, names, "classes")
    else:
        rows = slice(None) if sample_weight is None else sample_weight > 0
        warn_column_order(proba[rows], codes[rows], names, "classes")
    together = None if groups is None else encode_groups(groups, len(codes))
    # Groups and folds of the user decide already which rows belong together.
    if together is None and isinstance(cv, int | np.integer):
        warn_repeated_rows(proba, codes, GROUPS_HINT)
    numbers = np.arange(len(names))
    out = np.full(proba.shape, np.nan)
    for train, test in make_folds(codes, cv, random_state, together):
        fitted = fit_clone(
            recalibrator,
            proba[train],
            codes[train],
            numbers,
            sample_weight=None if sample_weight is None else sample_weight[train],
            groups=None if together is None else together[train],
        )
        out[test] = predict_proba_aligned(fitted, proba[test], numbers)
    # A splitter such as ShuffleSplit may leave rows untested, which would have no
    # prediction.
    if (left := int(np.isnan(out).any(axis=1).sum())) > 0:
        raise invalid_input(
            expected="folds that test every row",
            got=f"{left} rows left out",
            hint="Use a partition, such as StratifiedKFold",
        )
    return out


def recalibrate_in_sample_or_by_cv(
    recalibrator: RecalibratorLike,
    proba: FloatArray,
    codes: IntArray,
    cv: CV,
    *,
    sample_weight: FloatArray,
    classes: IntArray,
) -> FloatArray:
    """Predict in-sample rows of any recalibrator, or cross-fitted ones with `cv`."""
    if cv is not None:
        options: dict[str, Any] = {"sample_weight": sample_weight, "classes": classes}
        return cross_fitted_proba(recalibrator, proba, codes, cv=cv, **options)
    fitted = fit_clone(recalibrator, proba, codes, classes, sample_weight)
    return predict_proba_aligned(fitted, proba, classes)


def make_folds(
    codes: IntArray,
    cv: CV,
    random_state: RandomStateLike = 0,
    groups: ArrayLike | None = None,
) -> Iterator[Any]:
    """Make the pairs (train, test) of `cross_fitted_proba`.

    An int shuffles and stratifies.

    With `groups`, no group is in two of them.
    """
    check_seed(random_state)
    if isinstance(cv, int | np.integer):
        check_folds_fit_largest_class(cv, codes)
        random_state = make_random_state(random_state)
        if groups is not None and (n_groups := len(np.unique(np.asarray(groups)))) < cv:
            raise invalid_input(
                expected=f"at least {cv} groups, one for each fold",
                got=f"{n_groups}",
                hint="Pass fewer folds as cv, or groups that are finer",
            )
        splitter_class = StratifiedKFold if groups is None else FastStratifiedGroupKFold
        cv = splitter_class(int(cv), shuffle=True, random_state=random_state)
    try:
        # All folds are made before the first fit, so that a wrong splitter fails at
        # once.
        splits = [*check_cv(cv, codes, classifier=True).split(codes, codes, groups)]
        for _, test in splits:
            codes[test]
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(cv, StratifiedKFold | FastStratifiedGroupKFold):
            # The error is about the labels, in the words of scikit-learn.
            raise
        raise invalid_input(
            expected=_EXPECTED_CV,
            got=repr(cv)[:60],
            hint=f"Pass for instance cv=5 ({_shorten_error_message(error)})",
        ) from error
    check_cv_pairs(splits)
    return iter(splits)


def check_folds_fit_largest_class(cv: int, codes: IntArray) -> None:
    """Reject numbers of stratified folds that some class cannot be split into."""
    max_folds = int(np.bincount(codes).max())
    if not is_real_number(cv) or not 2 <= cv <= max_folds:
        raise invalid_input(
            expected=f"2 to {max_folds} folds as cv, for the {max_folds} rows of the largest class",
            got=repr(cv)[:60],
            hint="Pass for instance cv=5, or more rows",
        )


def check_cv_pairs(cv: CV) -> None:
    """Reject an empty list as `cv`, and one of anything but pairs (train, test)."""
    # An iterator can be read only once, so it is not read here.
    is_sized = hasattr(cv, "__len__") and np.iterable(cv)
    pairs: Any = cv if is_sized and not hasattr(cv, "split") else ()
    if is_sized and len(cv) == 0:  # type: ignore[arg-type]
        raise invalid_input(
            expected="at least one fold",
            got=repr(cv)[:60],
            hint="Pass for instance cv=5",
        )
    is_single = not np.iterable(cv) and not hasattr(cv, "split")
    if is_single or not all(np.iterable(pair) and len([*pair]) == 2 for pair in pairs):
        raise invalid_input(
            expected=_EXPECTED_CV, got=repr(cv)[:60], hint="Pass for instance cv=5"
        )


def _shorten_error_message(error):
    return str(error).partition("\n")[0].rstrip(".")[:200]
