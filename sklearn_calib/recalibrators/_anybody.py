"""Using a recalibrator that anyone may have written: a name, a pipeline, any classifier."""

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline

from .._random import check_seed, legacy_generator
from .._sklearn_compat import StratifiedGroups, routing_enabled
from .._typing import (
    CV,
    AnyArray,
    ArrayLike,
    Estimator,
    FloatArray,
    IntArray,
    RandomStateLike,
    RecalibratorLike,
)
from .._validation import (
    align_columns,
    canonical_weight,
    check_column_owner,
    check_indexes,
    check_same_length,
    match_columns,
    read_labels,
    read_proba,
    warn_of_order,
)
from .._warnings import warn_calibration
from ..exceptions import invalid_input
from ._columns import is_nothing

_ROWS, _SCORES = 5, 20  # of a score that counts; such scores at least
_LEVEL = 1e-4
INDEPENDENT = "rows that are independent, to judge a fit by rows that it has not seen"
REPEATED = "scores that repeat with the same labels"
GROUPS = (
    "Name what belongs together, such as the number of the patient or of "
    "the election, with groups=; instead of repeated rows pass "
    "sample_weight="
)


def rows_repeat(proba: FloatArray, codes: IntArray) -> bool:
    """Whether rows of one score agree in their labels as independent rows would not.

    Looked at are scores that at least 5 rows have. They must hold half of all rows, and be 20 at
    least. Where all rows of one score are positive and all of the next higher one negative, the
    pair falls; where it is the other way round, it rises. If rows are independent and the share of
    positives rises with the score (or falls), one of the two has in a pair of m1 and m2 rows a
    probability of at most max_x x^m1 (1 - x)^m2, 1 in 1000 for 5 and 5, whatever the law of the
    scores: votes of trees, rounded numbers, steps. Each second pair is independent of the others.
    More falling and more rising pairs than that, at a level of 1e-4 by Chernoff's bound, are rows
    that belong together. For several classes each is looked at against the others.
    """
    digits = np.rint(np.asarray(proba) * 2.0**36)
    key = (
        digits[:, 1] if proba.shape[1] == 2 else digits @ np.sqrt(np.arange(2.0, 2 + len(digits.T)))
    )
    _, tie, count = np.unique(key, return_inverse=True, return_counts=True)
    large = count >= _ROWS
    if large.sum() < _SCORES or 2 * count[large].sum() < len(codes):
        return False
    columns = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    return any(_agrees(digits[:, c], codes == c, tie, large, len(columns)) for c in columns)


def _agrees(score, hit, tie, large, n_tests):
    count = np.bincount(tie)[large]
    hits = np.bincount(tie, weights=hit)[large]
    value = np.zeros(len(large))
    value[tie] = score
    order = np.lexsort((hits / count, value[large]))  # of equal columns the rising order
    return _alternate(count[order], hits[order], n_tests)


def _alternate(count, hits, n_tests):
    all_hit, none = hits == count, hits == 0
    first, second = count[:-1], count[1:]
    both = first + second
    most = np.exp(first * np.log(first / both) + second * np.log(second / both))
    falls, rises = all_hit[:-1] & none[1:], none[:-1] & all_hit[1:]
    for start in (0, 1):
        found = min(falls[start::2].sum(), rises[start::2].sum())
        expected = most[start::2].sum()
        if found > expected:
            bound = found - expected + found * np.log(expected / found)
            if bound < np.log(_LEVEL / (2 * n_tests)):
                return True
    return False


def warn_of_shared_rows(got: str, cure: str = GROUPS) -> None:
    """Folds share what belongs together, or would share it."""
    warn_calibration(expected=INDEPENDENT, got=got, hint=cure)


def warn_of_repeated_cells(counts: IntArray) -> None:
    """The same of two classes, given how many rows of each are in the cells of rising scores."""
    count, hits = counts.sum(axis=1).astype(float), counts[:, 1].astype(float)
    large = count >= _ROWS
    if large.sum() < _SCORES or 2 * count[large].sum() < count.sum():
        return
    if _alternate(count[large], hits[large], 1):
        warn_of_shared_rows(REPEATED)


def warn_of_repeated_rows(proba: FloatArray, codes: IntArray, cure: str) -> None:
    """Folds that share such rows know the labels that they are judged by."""
    if rows_repeat(proba, codes):
        warn_calibration(expected=INDEPENDENT, got=REPEATED, hint=cure)


def resolve_recalibrator(
    recalibrator: RecalibratorLike, *, input_name: str = "recalibrator"
) -> Estimator:
    """Return an unfitted copy of a recalibrator given by name or as an instance.

    Errors name the argument `input_name`.
    """
    if isinstance(recalibrator, str):
        from . import get_recalibrator

        return get_recalibrator(recalibrator)
    if isinstance(recalibrator, type) or not (
        hasattr(recalibrator, "fit") and hasattr(recalibrator, "predict_proba")
    ):
        raise invalid_input(
            input_name,
            expected="a recalibrator: a name or an instance with fit and predict_proba",
            got=repr(recalibrator),
            hint="See sklearn_calib.recalibrators.all_recalibrators()",
            error=TypeError,
        )
    return clone(recalibrator)


def fit_recalibrator(
    recalibrator: Estimator, proba: FloatArray, y: ArrayLike, **arguments: Any
) -> Estimator:
    """Fit anyone's recalibrator in place on canonical scores, with `fit_arguments`."""
    return recalibrator.fit(proba, y, **fit_arguments(recalibrator, **arguments))


def fit_copy(
    recalibrator: RecalibratorLike,
    proba: FloatArray,
    y: ArrayLike,
    classes: ArrayLike,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Estimator:
    """A copy of a recalibrator given by name or as an instance, fitted on canonical scores."""
    method = resolve_recalibrator(recalibrator)
    given = {"classes": classes, "sample_weight": sample_weight, "groups": groups}
    return fit_recalibrator(method, proba, y, **given)


def fit_arguments(
    recalibrator: Estimator,
    *,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """What the fit of anyone's recalibrator is called with: of the three what it understands.

    A `Pipeline` hands `sample_weight`, `classes` and `groups` to every step whose fit takes them. A
    plain scikit-learn classifier gets the probabilities as its features.
    """
    known = {"sample_weight": sample_weight, "classes": classes, "groups": groups}
    known = {name: value for name, value in known.items() if value is not None}
    if not isinstance(recalibrator, Pipeline):
        return _accepted(recalibrator, known) | metadata
    accepted = {step: _accepted(part, known) for step, part in recalibrator.steps}
    if not routing_enabled():
        of_steps = {
            f"{step}__{name}": value for step in accepted for name, value in accepted[step].items()
        }
        return of_steps | metadata
    for step, part in recalibrator.steps:
        if accepted[step]:
            part.set_fit_request(**dict.fromkeys(accepted[step], True))
    return known | metadata


def _accepted(estimator, params):
    """The parameters that an estimator's fit names."""
    names = signature(estimator.fit).parameters if hasattr(estimator, "fit") else ()
    return {name: value for name, value in params.items() if name in names}


def aligned_proba(recalibrator: Estimator, proba: FloatArray, classes: AnyArray) -> FloatArray:
    """Predictions of anyone's fitted recalibrator with one column for each of `classes`."""
    predicted = np.asarray(recalibrator.predict_proba(proba), dtype=np.float64)
    return align_columns(predicted, recalibrator.classes_, classes)


def recalibrated_proba(
    recalibrator: RecalibratorLike,
    proba: FloatArray,
    codes: IntArray,
    cv: CV,
    *,
    sample_weight: FloatArray,
    classes: IntArray,
) -> FloatArray:
    """Rows that anyone's recalibrator has seen, or cross-fitted ones where `cv` says how."""
    if cv is not None:
        given: dict[str, Any] = {"sample_weight": sample_weight, "classes": classes}
        return cross_fitted_proba(recalibrator, proba, codes, cv=cv, **given)
    fitted = fit_copy(recalibrator, proba, codes, classes, sample_weight)
    return aligned_proba(fitted, proba, classes)


def folds_of(
    codes: IntArray,
    cv: CV,
    random_state: RandomStateLike = 0,
    groups: ArrayLike | None = None,
) -> Iterator[Any]:
    """The pairs (train, test) of `cross_fitted_proba`; an int means shuffled stratified folds.

    With `groups`, no group is in two of them.
    """
    check_seed(random_state)
    if isinstance(cv, int | np.integer):
        check_folds(cv, codes)
        random_state = legacy_generator(random_state)
        if groups is not None and (found := len(np.unique(np.asarray(groups)))) < cv:
            cure = "Pass fewer folds as cv, or groups that are finer"
            raise invalid_input(
                expected=f"at least {cv} groups, one for each fold", got=f"{found}", hint=cure
            )
        kind = StratifiedKFold if groups is None else StratifiedGroups
        cv = kind(int(cv), shuffle=True, random_state=random_state)
    try:
        parts = [*check_cv(cv, codes, classifier=True).split(codes, codes, groups)]
        for _, test in parts:
            codes[test]
    except (TypeError, ValueError, IndexError) as error:
        if isinstance(cv, StratifiedKFold | StratifiedGroups):
            raise  # of the labels, in scikit-learn's words
        raise invalid_input(
            expected=_FOLDS, got=repr(cv)[:60], hint=f"Pass for instance cv=5 ({_line(error)})"
        ) from error
    check_pairs(parts)
    return iter(parts)


def check_folds(cv: int, codes: IntArray) -> None:
    """Refuse numbers of stratified folds that some class cannot be split into."""
    most = int(np.bincount(codes).max())
    if isinstance(cv, bool) or not 2 <= cv <= most:
        rule = f"2 to {most} folds as cv, for the {most} rows of the largest class"
        raise invalid_input(
            expected=rule, got=repr(cv)[:60], hint="Pass for instance cv=5, or more rows"
        )


def check_pairs(cv: CV) -> None:
    """Refuse an empty list as `cv`, and one of anything but pairs (train, test)."""
    known = hasattr(cv, "__len__") and np.iterable(cv)  # an iterator can be read once
    pairs: Any = cv if known and not hasattr(cv, "split") else ()
    if known and len(cv) == 0:  # type: ignore[arg-type]
        raise invalid_input(
            expected="at least one fold", got=repr(cv)[:60], hint="Pass for instance cv=5"
        )
    if not all(np.iterable(pair) and len([*pair]) == 2 for pair in pairs):
        raise invalid_input(expected=_FOLDS, got=repr(cv)[:60], hint="Pass for instance cv=5")


_FOLDS = "cv as a number of folds, a splitter, or pairs (train, test) of rows"


def _line(error):
    return str(error).partition("\n")[0].rstrip(".")[:200]


def group_codes(groups: ArrayLike, n_rows: int) -> IntArray:
    """Groups of rows, numbered from 0: one value of any type for each row, none missing."""
    try:
        values = np.asarray(groups)
    except ValueError:  # rows of several lengths
        values = np.empty((len(groups), 0))  # type: ignore[arg-type]
    if values.shape != (n_rows,):
        raise invalid_input(
            expected=f"groups: one value for each of the {n_rows} rows",
            got=f"shape {values.shape}",
            hint="Pass one column, such as the number of the patient",
        )
    if values.dtype.kind == "O":
        values = np.array(["\0" if is_nothing(value) else str(value) for value in values])
        missing = values == "\0"
    else:
        missing = values != values  # NaN, NaT
    if missing.any():
        raise invalid_input(
            expected="a group for every row",
            got="none",
            hint="Give a row that belongs to no other a group of its own",
            row=missing.argmax(),
        )
    return np.unique(values, return_inverse=True)[1].ravel()


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
        A name, or an instance with ``fit`` and ``predict_proba``, which is cloned for each fold.
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities.
    y : array-like of shape (n_samples,)
        Labels.
    cv : int, splitter or iterable of (train, test), default=5
        An int means stratified folds, shuffled. A row that is tested more than once keeps the
        probabilities of the last of these folds.
    sample_weight : array-like of shape (n_samples,), default=None
        Passed to each fit that takes it.
    classes : array-like of shape (n_classes,), default=None
        All classes in the order of the columns; needed if `y` lacks a class.
    groups : array-like of shape (n_samples,), default=None
        Rows that belong together, such as those of a patient: no group is split between folds. Also
        passed to each fit that takes them.
    random_state : int, Generator, RandomState or None, default=0
        Shuffles the rows where `cv` is an int.

    Returns
    -------
    recalibrated : ndarray of shape (n_samples, n_classes), float64
        Rows as in `proba`; a class that a fold's fit has not seen may have probability 0 there.

    Raises
    ------
    ValueError
        Invalid scores, labels or weights (see `canonical_proba`), or folds that do not test every
        row.
    TypeError
        No recalibrator.

    Warns
    -----
    CalibrationWarning
        No `groups`, and scores that repeat with the same labels: folds share what belongs together.

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
    given = proba
    check_indexes(y, given, sample_weight, groups)
    proba = read_proba(given, n_classes=len(names), input_name="proba")
    proba = match_columns(proba, given, names)
    check_same_length(codes, proba)
    if sample_weight is not None:
        sample_weight = canonical_weight(sample_weight, len(codes))
    if classes is None:
        check_column_owner(given, names, "classes")
    else:
        rows = slice(None) if sample_weight is None else sample_weight > 0
        warn_of_order(proba[rows], codes[rows], names, "classes")
    together = None if groups is None else group_codes(groups, len(codes))
    if together is None and isinstance(cv, int | np.integer):
        warn_of_repeated_rows(proba, codes, GROUPS)
    numbers = np.arange(len(names))
    out = np.full(proba.shape, np.nan)
    for train, test in folds_of(codes, cv, random_state, together):
        beside = (None if part is None else part[train] for part in (sample_weight, together))
        fitted = fit_copy(recalibrator, proba[train], codes[train], numbers, *beside)
        out[test] = aligned_proba(fitted, proba[test], numbers)
    if (left := int(np.isnan(out).any(axis=1).sum())) > 0:
        raise invalid_input(
            expected="folds that test every row",
            got=f"{left} rows left out",
            hint="Use a partition, such as StratifiedKFold",
        )
    return out
