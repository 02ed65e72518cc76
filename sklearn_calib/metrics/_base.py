"""The contract of a measure: what it declares, and the door its arguments go through."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..canonical import (
    canonical_labels,
    canonical_proba,
    canonical_weight,
    check_same_length,
)
from ..exceptions import refuse


@dataclass(frozen=True)
class MetricSpec:
    """What a measure declares of itself; scorers, tables and tests read it.

    Parameters
    ----------
    name : str
    greater_is_better : bool
    range : tuple of float
        Smallest and largest value.
    perfect : float
        The value for predictions that are certain and right.
    proper : bool
        Minimised in expectation by the true probabilities, and by them alone.
    multiclass : tuple of str
        The ways it offers to treat more than two classes; empty where it needs none.
    in_report : bool
        Whether a report shows it by default; False for a function whose named forms are shown.
    """

    name: str
    greater_is_better: bool
    range: tuple
    perfect: float
    proper: bool
    multiclass: tuple
    in_report: bool = True

    @property
    def scorer_name(self):
        return self.name if self.greater_is_better else f"neg_{self.name}"


def metric(
    *,
    greater_is_better=False,
    range=(0.0, np.inf),
    perfect=0.0,
    proper=False,
    multiclass=(),
    in_report=True,
):
    """Declare a function f(y_true, y_proba, \\*, sample_weight, labels, ...) as a measure.

    The function gets an attribute ``spec`` (a `MetricSpec`); an import line in
    ``sklearn_calib/metrics/__init__.py`` then gives it a scorer, a documentation page and its turn
    in the common tests.

    Parameters
    ----------
    greater_is_better : bool, default=False
    range : tuple of float, default=(0.0, inf)
        Smallest and largest value.
    perfect : float, default=0.0
        The value for predictions that are certain and right.
    proper : bool, default=False
        Minimised in expectation by the true probabilities, and by them alone.
    multiclass : tuple of str, default=()
        The ways it offers to treat more than two classes.
    in_report : bool, default=True
        Whether reports show it by default.

    Examples
    --------
    >>> from sklearn_calib.metrics import metric
    >>> @metric(range=(0, 1))
    ... def my_error(y_true, y_proba, *, sample_weight=None, labels=None):
    ...     return 0.0
    >>> my_error.spec.scorer_name
    'neg_my_error'
    """

    def declare(function):
        function.spec = MetricSpec(
            function.__name__,
            greater_is_better,
            tuple(range),
            perfect,
            proper,
            tuple(multiclass),
            in_report,
        )
        return function

    return declare


class Case(NamedTuple):
    """Validated arguments of a measure."""

    proba: np.ndarray  # (n, k)
    codes: np.ndarray  # (n,) positions of the true classes
    weight: np.ndarray  # (n,) all above 0
    classes: np.ndarray  # (k,)
    positive: int  # position of the positive class when k == 2


def canonical_case(
    where, y_true, y_proba, sample_weight=None, labels=None, pos_label=None, door=canonical_proba
):
    """Validate what every measure takes; rows of weight 0 are dropped."""
    proba = door(y_proba, where=where)
    classes, codes = canonical_labels(y_true, classes=labels, where=where)
    check_same_length(codes, proba, where)
    if len(classes) != proba.shape[1]:
        refuse(
            where,
            f"one class for each of the {proba.shape[1]} columns of y_proba",
            f"{len(classes)} classes, {classes[:10].tolist()}",
            "If y_true misses a class, pass labels= with all classes in the order of the columns",
        )
    positive = 1
    if pos_label is not None:
        match = np.flatnonzero(classes == pos_label)
        if len(match) != 1:
            refuse(
                where,
                f"pos_label among {classes.tolist()}",
                repr(pos_label),
                "Name one of the labels",
            )
        positive = int(match[0])
    weight = canonical_weight(sample_weight, len(codes), where=where)
    kept = weight > 0
    if not kept.all():
        proba, codes, weight = proba[kept], codes[kept], weight[kept]
    return Case(proba, codes, weight, classes, positive)


class BinaryProblem(NamedTuple):
    """One question "how often is an event of this score true?" that a measure is made of."""

    share: float  # its part in the average
    score: np.ndarray
    hit: np.ndarray  # 0 or 1
    weight: np.ndarray
    title: str


MULTICLASS = ("auto", "confidence", "top_label", "classwise")


def binary_problems(case, multiclass, where):
    """Split a case into the binary problems that a `multiclass` option means.

    "confidence": the largest probability, and whether that class is true. "top_label": the same
    for each predicted class by itself, averaged with the share of rows. "classwise": each class
    against the others, averaged equally. "auto": the positive class if there are two classes,
    else "confidence".
    """
    if multiclass not in MULTICLASS:
        refuse(
            where,
            f"multiclass among {', '.join(MULTICLASS)}",
            repr(multiclass),
            "See the user guide, Measures",
        )
    proba, codes, weight, classes, positive = case
    if multiclass == "auto" and len(classes) == 2:
        title = f"class {classes[positive]}"
        hit = (codes == positive).astype(float)
        return [BinaryProblem(1.0, np.asarray(proba)[:, positive], hit, weight, title)]
    plain = np.asarray(proba)
    if multiclass == "classwise":
        return [
            BinaryProblem(
                1 / len(classes), plain[:, c], (codes == c).astype(float), weight, f"class {label}"
            )
            for c, label in enumerate(classes)
        ]
    top = plain.argmax(axis=1)
    score, hit = plain[np.arange(len(plain)), top], (codes == top).astype(float)
    if multiclass in ("auto", "confidence"):
        return [BinaryProblem(1.0, score, hit, weight, "confidence")]
    total = weight.sum()
    problems = []
    for c in np.unique(top):
        rows = top == c
        share = weight[rows].sum() / total
        title = f"predicted {classes[c]}"
        problems.append(BinaryProblem(share, score[rows], hit[rows], weight[rows], title))
    return problems
