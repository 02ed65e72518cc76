"""Many labels per row, as the two-class cases that measures are functions of."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .._simplex import stack_rows
from .._typing import ArrayLike, FloatArray
from ..canonical import (
    BOTH,
    canonical_label_scores,
    canonical_label_table,
    known_rows,
    label_names,
    raw_weight,
    read_array,
)
from ..exceptions import refuse
from ._case import Case, canonical_case


def label_cases(
    where: str,
    y_true: Any,
    y_proba: Any,
    multilabel: Literal["macro", "micro"],
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    validate: Callable[..., FloatArray] | None = None,
) -> list[tuple[str, Case]]:
    """Check predictions of many labels per row, and split them into two-class cases.

    Parameters
    ----------
    where : str
        Who is asking: the opening of every error message.
    y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        1 where a row has the label, 0 where not, NaN where nobody knows.
    y_proba : array-like of shape (n_samples, n_labels), or list of n_labels array-likes
        The probability of each label; or for each label an array of shape (n_samples, 2).
    multilabel : {"macro", "micro"}
        "macro": one case for each label, of the rows where it is known. "micro": one case of all
        known pairs of a row and a label.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0.
    labels : array-like of shape (n_labels,), default=None
        Names of the labels; by default the names of the columns of `y_true`, or their numbers.
    validate : callable, default=None
        As in `canonical_case`.

    Returns
    -------
    cases : list of (str, Case)
        A title, such as "label rain", and the case.

    Raises
    ------
    ValueError, TypeError
        Another option; invalid scores, labels or weights; a label that is known of no row.

    Examples
    --------
    >>> from sklearn_calib.metrics import label_cases
    >>> Y, P = [[1, 0], [0, float("nan")]], [[0.9, 0.2], [0.3, 0.6]]
    >>> [(title, len(case.codes)) for title, case in label_cases("mine", Y, P, "macro")]
    [('label 0', 2), ('label 1', 1)]
    >>> [(title, len(case.codes)) for title, case in label_cases("mine", Y, P, "micro")]
    [('all labels', 3)]
    """
    if not isinstance(multilabel, str) or multilabel not in ("macro", "micro"):
        refuse(where, "multilabel 'macro' or 'micro'", repr(multilabel), "See the user guide")
    pairs, _ = canonical_label_scores(y_proba, where)
    table = canonical_label_table(y_true, len(pairs[0]), len(pairs), where)
    weight = raw_weight(sample_weight, len(table), where)
    names = (
        label_names(y_true, len(pairs))
        if labels is None
        else list(read_array(labels, "names", where))
    )
    if len(names) != len(pairs):
        refuse(where, f"{len(pairs)} names as labels", f"{len(names)}", "Name each column of y")
    rows = []
    for label, name in enumerate(names):
        kept = known_rows(table, label)
        kept = kept[weight[kept] > 0]
        if not len(kept):
            refuse(where, "a known label in every column", f"none for {name}", "Drop the column")
        rows.append(kept)

    def case(chosen, where):
        return canonical_case(
            where,
            np.concatenate([table[rows[i], i] for i in chosen]).astype(np.intp),
            stack_rows([pairs[i][rows[i]] for i in chosen]),
            None if sample_weight is None else np.concatenate([weight[rows[i]] for i in chosen]),
            BOTH,
            validate=validate,
        )

    if multilabel == "micro":
        return [("all labels", case(range(len(pairs)), where))]
    return [(f"label {name}", case([i], f"{where}, label {name}")) for i, name in enumerate(names)]
