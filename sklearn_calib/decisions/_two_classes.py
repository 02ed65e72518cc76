"""Validation of what the functions of thresholds share."""

from typing import TYPE_CHECKING

import numpy as np

from .._typing import ArrayLike, FloatArray
from ..canonical import read_numbers
from ..exceptions import named, refuse
from ..metrics import canonical_case

if TYPE_CHECKING:
    from ..metrics import BinaryProblem, Case


def two_class_case(
    where: str,
    y_true: ArrayLike,
    y_proba: ArrayLike,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: object = None,
) -> "tuple[Case, BinaryProblem]":
    """A validated case of two classes, and its scores and events."""
    case = canonical_case(where, y_true, y_proba, sample_weight, labels, pos_label)
    if len(case.classes) != 2:
        refuse(
            where,
            "two classes",
            f"{len(case.classes)}",
            "Pass one class against the others, y == c with proba[:, c]",
        )
    return case, case.problems()[0]


def canonical_thresholds(thresholds: ArrayLike | None, where: str) -> FloatArray:
    """Increasing probabilities strictly between 0 and 1; 0.01, 0.02, ... 0.99 by default."""
    if thresholds is None:
        return np.arange(1, 100) / 100
    table = read_numbers(thresholds, "thresholds", where).astype(np.float64)
    if table.ndim != 1 or not len(table):
        rule = "thresholds of shape (n_thresholds,), at least one"
        refuse(where, rule, f"shape {table.shape}", "Pass a list of probabilities")
    outside = ~((table > 0) & (table < 1))
    if outside.any():
        got = f"{table[outside][0]:g}"
        cure = "At 0 everyone is acted on and at 1 nobody, so leave them out"
        refuse(where, named("thresholds") + " strictly between 0 and 1", got, cure)
    if (np.diff(table) <= 0).any():
        row = int((np.diff(table) <= 0).argmax())
        got = f"{table[row]:g} before {table[row + 1]:g}"
        refuse(where, "increasing thresholds", got, "Pass them through numpy.unique")
    return table
