"""Many labels per row: their probabilities in the forms of scikit-learn, and tables of 0 and 1."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import AnyArray, ArrayLike, FloatArray
from ..exceptions import add_error_context, invalid_input
from ._arrays import read_array, read_numeric_array
from ._column_order import (
    find_columns_if_names_match,
    get_given_column_names,
    get_raw_column_names,
    reorder_columns_if_names_match,
)
from ._labels import get_survival_hint
from ._scores import read_proba

BINARY_CLASSES = np.arange(2)


class MultilabelScorePairs(NamedTuple):
    """Canonical probabilities of shape (n_samples, 2) for each label, and the form they came in.

    Results of many labels have the form of their input, which `Predictions` do not
    keep.
    """

    pairs: list[FloatArray]
    # Whether the scores were a list of arrays with two columns, rather than one column
    # per label.
    is_list: bool

    def order_pairs_like_score_columns(
        self, scores: Any, *label_names: Any
    ) -> "MultilabelScorePairs":
        """Return them in the order of the names that the columns of `scores` have.

        Of several lists of names, or None, the first one that they have counts.
        """
        places = find_columns_if_names_match(scores, *label_names)
        if places is None:
            return self
        return self._replace(pairs=[self.pairs[place] for place in places])

    def match_form(self, pairs: list[FloatArray]) -> FloatArray | list[FloatArray]:
        """Return other probabilities of the same labels in this form."""
        if self.is_list:
            return [np.asarray(pair) for pair in pairs]
        return np.column_stack([np.asarray(pair)[:, 1] for pair in pairs])


def get_label_names(y: object, count: int) -> list[object]:
    """Return the names of the columns of a table of labels, or else their numbers."""
    names = get_raw_column_names(y)
    return list(range(count)) if names is None else list(names)


def read_label_scores(
    scores: Any, n_labels: int | None = None, *, input_name: str = "y_proba"
) -> MultilabelScorePairs:
    """Read probabilities of many labels.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_labels), or list of n_labels array-likes
        The probability of each label; or for each label an array of shape (n_samples,
        2), as ``MultiOutputClassifier.predict_proba`` returns them.
    n_labels : int, default=None
        The number of labels expected, if known.
    """
    with add_error_context(input_name):
        return _read_and_check_label_scores(scores, n_labels)


def _read_and_check_label_scores(scores, n_labels):
    """Read scores of many labels: a table, or a list of tables with two columns."""
    listed = isinstance(scores, list | tuple) and any(
        np.ndim(label_scores) == 2 for label_scores in scores
    )
    if listed:
        pairs = []
        for number, label_scores in enumerate(scores):
            with add_error_context(source=f"label {number}"):
                pairs.append(_read_one_label_proba(label_scores))
        lengths = {len(pair) for pair in pairs}
        if len(lengths) > 1:
            raise invalid_input(
                expected="as many rows for each label",
                got=f"{sorted(lengths)} rows",
                hint="Check that all come from the same rows",
            )
    else:
        table = read_numeric_array(scores, "scores")
        if table.ndim != 2 or table.size == 0:
            raise invalid_input(
                expected=(
                    "scores of shape (n_samples, n_labels), or a list of arrays of shape "
                    "(n_samples, 2), with at least one row and one label"
                ),
                got=f"shape {table.shape}",
                hint="Pass what predict_proba of the classifier returned",
            )
        pairs = []
        for number, column in enumerate(table.T):
            with add_error_context(source=f"label {number}"):
                pairs.append(read_proba(column))
    if n_labels is not None and len(pairs) != n_labels:
        raise invalid_input(
            expected=f"scores of {n_labels} labels",
            got=f"{len(pairs)}",
            hint="Pass the labels in the order of the columns of y",
        )
    return MultilabelScorePairs(pairs, listed)


def _read_one_label_proba(label_scores):
    if np.ndim(label_scores) != 2 or np.shape(label_scores)[1] != 2:
        raise invalid_input(
            expected="an array of shape (n_samples, 2)",
            got=f"shape {np.shape(label_scores)}",
            hint="A model that saw only one class of a label gives one column: add the other",
        )
    return read_proba(label_scores)


def read_label_table(
    y: Any, n_samples: int, n_labels: int, *, input_name: str = "y_true"
) -> FloatArray:
    """Return a table of shape (n_samples, n_labels): 1 if a row has the label, else 0, or NaN."""
    with add_error_context(input_name):
        table = y.toarray() if sparse.issparse(y) else y
        return _validate_label_table(
            read_numeric_array(table, "labels"), n_samples, n_labels
        )


def _validate_label_table(table, n_samples, n_labels):
    """Check labels of shape (n_samples, n_labels); NaN marks unknown ones."""
    if table.shape != (n_samples, n_labels):
        raise invalid_input(
            expected=f"labels of shape ({n_samples}, {n_labels}), as many as scores",
            got=f"shape {table.shape}",
            hint="Pass one column of 0 and 1 per label, and NaN if a label is unknown",
        )
    table = table.astype(float)
    wrong = ~np.isnan(table) & (table != 0) & (table != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise invalid_input(
            expected="labels 0, 1 or NaN (unknown)",
            got=f"{table[row, column]:g}",
            hint="For one label of several classes pass one dimension of y"
            + get_survival_hint(table),
            row=row,
            column=column,
        )
    if np.isnan(table).all():
        raise invalid_input(
            expected="at least one known label",
            got="NaN everywhere",
            hint="Check where y comes from",
        )
    return table


def read_label_names_proba_and_table(
    y_true: Any,
    y_proba: Any,
    labels: ArrayLike | None,
    *,
    label_name: str = "y_true",
    input_name: str = "y_proba",
) -> tuple[list[Any], list[FloatArray], FloatArray]:
    """Return names of labels, their probabilities and their table, in the order of the names.

    The names are `labels`, or those of the columns of `y_true`, or numbers. Columns of
    either table that have these names are moved to their place.
    """
    scores = read_label_scores(y_proba, input_name=input_name)
    shape = len(scores.pairs[0]), len(scores.pairs)
    table = read_label_table(y_true, *shape, input_name=label_name)
    names = get_label_names(y_true, shape[1])
    if labels is not None:
        names = list(read_array(labels, "names of labels"))
    pairs = scores.order_pairs_like_score_columns(
        y_proba, names, get_given_column_names(y_true)
    ).pairs
    return names, pairs, reorder_columns_if_names_match(table, y_true, names)


def find_known_rows(table: AnyArray, label: int) -> AnyArray:
    """Return the positions of the rows whose label is known."""
    return np.flatnonzero(~np.isnan(table[:, label]))
