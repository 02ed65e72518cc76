"""Frequencies of classes, and means, as users give them."""

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from .._kernels._mean_offset import mean_offset, reachable_means
from .._typing import AnyArray, FloatArray
from ..exceptions import refuse

_SLACK = 1e-6  # how far frequencies may be from the sum of 1
_FAR = 1e-9  # of a mean from its target, relative


def class_frequencies(value: Any, classes: AnyArray, name: str, where: str) -> FloatArray:
    """Frequencies that a user gave, in the order of the classes; `name` is the parameter."""
    k = len(classes)
    if isinstance(value, Real):
        if k != 2:
            refuse(where, f"{k} numbers in {name}", f"{value:g}", "Pass one for each class")
        return np.array([1.0 - float(value), float(value)])
    if isinstance(value, Mapping) or hasattr(value, "items"):
        found = np.full(k, np.nan)
        for column, number in by_label(value, classes, where):
            found[column] = number
        if len(value) != k:
            missing = classes[np.isnan(found)][:5].tolist()
            cure = "Give every class its frequency, 0 if it is absent"
            refuse(where, f"all {k} classes in {name}", f"none of {missing}", cure)
    else:
        try:
            found = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            refuse(where, f"numbers in {name}", f"{value!r}", "Pass one for each class")
    if found.shape != (k,):
        got = f"shape {found.shape}"
        refuse(where, f"{k} numbers in {name}, one for each class", got, "Pass one for each")
    if not ((found >= 0) & (found < np.inf)).all():
        wrong = found[~((found >= 0) & (found < np.inf))][0]
        cure = "Pass the frequencies of the classes"
        refuse(where, f"finite numbers >= 0 in {name}", f"{wrong:g}", cure)
    if abs(found.sum() - 1) > _SLACK:
        got = f"{found.sum():.6g}"
        refuse(where, f"numbers with sum 1 in {name}", got, "Divide them by their sum")
    return found / found.sum()


def by_label(given: Any, classes: AnyArray, where: str) -> Iterator[tuple[int, float]]:
    """Pairs of column and number, of a mapping of labels to numbers."""
    if not hasattr(given, "items"):
        refuse(
            where, "a dict of labels to numbers", f"{given!r}", "Name each label with its number"
        )
    column_of = {label: column for column, label in enumerate(classes.tolist())}
    for label, number in given.items():
        if label not in column_of:
            known = classes[:10].tolist()
            refuse(where, f"labels among {known}", f"{label}", "Name the classes as y does")
        try:
            yield column_of[label], float(number)
        except (TypeError, ValueError):
            refuse(where, f"a number for {label}", f"{number!r}", "Pass a number for each label")


def offset_to_mean(
    mean: Any, proba: FloatArray, weight: FloatArray, classes: AnyArray, where: str
) -> FloatArray:
    """What is added to the logarithms so that the weighted mean of the rows is `mean`."""
    if isinstance(mean, Real) and not 0 < float(mean) < 1:
        cure = "Divide percentages by 100"
        refuse(where, "a mean above 0 and below 1", f"{float(mean):g}", cure)
    target, ranges = class_frequencies(mean, classes, "mean", where), reachable_means(proba, weight)
    columns = [1] if len(classes) == 2 else range(len(classes))
    for column in columns:
        low, high = ranges[column]
        if not low < target[column] < high:
            label = classes[column].item() if hasattr(classes[column], "item") else classes[column]
            rule = f"a mean of {label!r} above {low:.6g} and below {high:.6g}"
            cure = "Choose another mean, or raise probabilities of exactly 0 and 1 before"
            got = f"{target[column]:.6g}"
            refuse(where, f"{rule} (rows of exactly 0 and 1 cannot move)", got, cure)
    found = mean_offset(proba, weight, target)
    if not (np.abs(found.means / target - 1) <= _FAR).all():
        rule = f"means that these rows can have, not {np.round(target, 6).tolist()}"
        got = f"{np.round(found.means, 6).tolist()} as the nearest"
        cure = "Probabilities of exactly 0 stay 0: raise them before, or choose other means"
        refuse(where, rule, got, cure)
    return found.offset
