"""The two-class problems inside of a table of probabilities."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from .._simplex_array import attach_log_proba, get_exact_log, take_columns_or_zeros
from .._typing import AnyArray, FloatArray, IntArray, Multiclass


class TwoClassSplit(NamedTuple):
    """Rows of a table of probabilities as one two-class problem."""

    # The class in question, or 0 if it is the class predicted for each row.
    number: int
    # Which rows of the table take part.
    rows: Any
    # The probability of the event in each of these rows.
    score: FloatArray
    # A row has the event if its label equals the target: a class, or a class per row.
    target: Any


def make_two_class_problems(
    multiclass: Multiclass, plain: AnyArray, positive: int = 1
) -> list[TwoClassSplit]:
    """Return the two-class problems that a `multiclass` option makes of a table.

    Of two classes the table may have the last column alone. "auto" takes the positive
    one of two classes, and of more the predicted one, as "confidence" does; "top_label"
    does so for the rows of each predicted class, "classwise" for every class.
    """
    all_rows = slice(None)
    if multiclass == "auto" and plain.shape[1] <= 2:
        score = plain[:, positive - 2]
        return [TwoClassSplit(positive, all_rows, score, positive)]
    problems = []
    if multiclass == "classwise":
        for c in range(plain.shape[1]):
            score = np.ascontiguousarray(plain[:, c])
            problems.append(TwoClassSplit(c, all_rows, score, c))
        return problems
    # The maximum of two columns is faster than that along rows.
    if plain.shape[1] == 2:
        top = (plain[:, 1] > plain[:, 0]).astype(np.intp)
        score = np.maximum(plain[:, 0], plain[:, 1])
    else:
        top = plain.argmax(axis=1)
        score = plain[np.arange(len(plain)), top]
    if multiclass != "top_label":
        return [TwoClassSplit(0, all_rows, score, top)]
    for c in np.unique(top).tolist():
        rows = np.flatnonzero(top == c)
        problems.append(TwoClassSplit(c, rows, score[rows], c))
    return problems


def iter_two_class_splits_and_proba(
    multiclass: Multiclass, proba: FloatArray, positive: int = 1
) -> Iterator[tuple[TwoClassSplit, FloatArray]]:
    """Yield `make_two_class_problems` of all rows with two columns, which keep logarithms."""
    problems = make_two_class_problems(multiclass, np.asarray(proba), positive)
    if multiclass == "classwise":
        yield from zip(problems, iter_one_vs_rest(proba), strict=True)
    elif multiclass == "auto" and proba.shape[1] == 2:
        if positive == 0:
            proba = take_columns_or_zeros(proba, np.array([1, 0]))
        yield problems[0], proba
    else:
        yield problems[0], pair_top_with_rest(proba, problems[0].target)


def name_problem(multiclass: Multiclass, classes: AnyArray, number: int) -> str:
    """Return the name of a problem: "class x", "confidence" or "predicted x"."""
    if multiclass == "confidence" or (multiclass == "auto" and len(classes) > 2):
        return "confidence"
    word = "predicted" if multiclass == "top_label" else "class"
    return f"{word} {classes[number]}"


def pair_with_rest(proba: FloatArray, column: int) -> FloatArray:
    """Return the problem "this column or another" as an array of shape (n_samples, 2)."""
    other_classes = np.delete(np.arange(proba.shape[1]), column)
    table = np.asarray(proba)
    pair = np.column_stack([table[:, other_classes].sum(axis=1), table[:, column]])
    log = get_exact_log(proba)
    if log is None:
        return pair
    rest = special.logsumexp(log[:, other_classes], axis=1)
    return attach_log_proba(pair, np.column_stack([rest, log[:, column]]))


def iter_one_vs_rest(proba: FloatArray) -> Iterator[FloatArray]:
    """Yield `pair_with_rest` of every column in turn, in O(n k) together."""
    table = np.asarray(proba)
    log = get_exact_log(proba)
    rest = combine_others(np.add, table, 0.0)
    log_rest = None if log is None else combine_others(np.logaddexp, log, -np.inf)
    for column in range(table.shape[1]):
        pair = np.column_stack([rest[:, column], table[:, column]])
        if log is not None and log_rest is not None:
            pair = attach_log_proba(
                pair, np.column_stack([log_rest[:, column], log[:, column]])
            )
        yield pair


def combine_others(operation: Any, table: FloatArray, neutral: float) -> Any:
    """Return the operation over all columns but one, for each column."""
    joined = np.full_like(table, neutral)
    # Prefixes and suffixes give the sum without each column, in O(k) per row and
    # without a subtraction.
    joined[:, 1:] = operation.accumulate(table[:, :-1], axis=1)
    after = operation.accumulate(table[:, :0:-1], axis=1)[:, ::-1]
    joined[:, :-1] = operation(joined[:, :-1], after)
    return joined


def pair_top_with_rest(proba: FloatArray, top: IntArray) -> FloatArray:
    """Return the problem "class top[i] or another" for each row i, of shape (n_samples, 2)."""
    columns = np.arange(proba.shape[1])
    # A stable sort moves the predicted class to the front and keeps the order of the
    # others, so sums of logarithms do not depend on it.
    order = np.argsort(columns != np.asarray(top)[:, None], axis=1, kind="stable")
    moved = np.take_along_axis(np.asarray(proba), order, axis=1)
    log = get_exact_log(proba)
    if log is not None:
        moved = attach_log_proba(moved, np.take_along_axis(log, order, axis=1))
    return pair_with_rest(moved, 0)
