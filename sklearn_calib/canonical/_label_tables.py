"""Many labels per row: their probabilities in the forms of scikit-learn, and tables of 0 and 1."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._typing import AnyArray, ArrayLike, FloatArray
from ..exceptions import refuse
from ._arrays import naming, read_array, read_numbers
from ._column_order import column_names, find_columns, match_columns, names_in
from ._labels import hint_at_survival
from ._scores import canonical_proba

BOTH = np.arange(2)  # the classes of each label


class LabelScores(NamedTuple):
    """Canonical probabilities of shape (n_samples, 2) for each label, and the form they came in."""

    pairs: list[FloatArray]
    listed: bool  # a list of arrays with two columns, not one column per label

    def matched(self, scores: Any, *known: Any) -> "LabelScores":
        """Return them in the order of the names that the columns of `scores` have.

        Of several lists of names, or None, the first one that they have counts.
        """
        places = find_columns(scores, *known)
        if places is None:
            return self
        return self._replace(pairs=[self.pairs[place] for place in places])

    def in_form(self, pairs: list[FloatArray]) -> FloatArray | list[FloatArray]:
        """Other probabilities of the same labels, in this form."""
        if self.listed:
            return [np.asarray(pair) for pair in pairs]
        return np.column_stack([np.asarray(pair)[:, 1] for pair in pairs])


def label_names(y: object, count: int) -> list[object]:
    """The columns of a table of labels: their names where it has some, else their numbers."""
    names = names_in(y)
    return list(range(count)) if names is None else list(names)


def canonical_label_scores(scores: Any, where: str, n_labels: int | None = None) -> LabelScores:
    """Read probabilities of many labels.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_labels), or list of n_labels array-likes
        The probability of each label; or for each label an array of shape (n_samples, 2), as
        ``MultiOutputClassifier.predict_proba`` returns them.
    where : str
    n_labels : int, default=None
        The number of labels expected, where the caller knows it.
    """
    with naming(scores):
        return _label_scores(scores, where, n_labels)


def _label_scores(scores, where, n_labels):
    listed = isinstance(scores, list | tuple) and any(np.ndim(part) == 2 for part in scores)
    if listed:
        pairs = [_pair(part, f"{where}, label {i}") for i, part in enumerate(scores)]
        lengths = {len(pair) for pair in pairs}
        if len(lengths) > 1:
            rule, cure = "as many rows for each label", "Check that all come from the same rows"
            refuse(where, rule, f"{sorted(lengths)} rows", cure)
    else:
        table = read_numbers(scores, "scores", where)
        if table.ndim != 2 or table.size == 0:
            refuse(
                where,
                "scores of shape (n_samples, n_labels), or a list of arrays of shape "
                "(n_samples, 2), with at least one row and one label",
                f"shape {table.shape}",
                "Pass what predict_proba of the classifier returned",
            )
        pairs = [
            canonical_proba(column, _where=f"{where}, label {i}")
            for i, column in enumerate(table.T)
        ]
    if n_labels is not None and len(pairs) != n_labels:
        got, cure = f"{len(pairs)}", "Pass the labels in the order of the columns of y"
        refuse(where, f"scores of {n_labels} labels", got, cure)
    return LabelScores(pairs, listed)


def _pair(part, where):
    if np.ndim(part) != 2 or np.shape(part)[1] != 2:
        refuse(
            where,
            "an array of shape (n_samples, 2)",
            f"shape {np.shape(part)}",
            "A model that saw only one class of a label gives one column: add the other",
        )
    return canonical_proba(part, _where=where)


def canonical_label_table(y: Any, n_samples: int, n_labels: int, where: str) -> FloatArray:
    """A table of labels, shape (n_samples, n_labels): 1 where a row has the label, 0, or NaN."""
    with naming(y):
        given = y.toarray() if sparse.issparse(y) else y
        return _label_table(read_numbers(given, "labels", where), n_samples, n_labels, where)


def _label_table(table, n_samples, n_labels, where):
    if table.shape != (n_samples, n_labels):
        refuse(
            where,
            f"labels of shape ({n_samples}, {n_labels}), as many as scores",
            f"shape {table.shape}",
            "Pass one column of 0 and 1 per label, and NaN where a label is unknown",
        )
    table = table.astype(np.float64)
    wrong = ~np.isnan(table) & (table != 0) & (table != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        refuse(
            where,
            "labels 0, 1 or NaN (unknown)",
            f"{table[row, column]:g}",
            "For one label of several classes pass one dimension of y" + hint_at_survival(table),
            row=row,
            column=column,
        )
    if np.isnan(table).all():
        refuse(where, "at least one known label", "NaN everywhere", "Check where y comes from")
    return table


def named_label_tables(
    y_true: Any, y_proba: Any, labels: ArrayLike | None, where: str
) -> tuple[list[Any], list[FloatArray], FloatArray]:
    """Return names of labels, their probabilities and their table, in the order of the names.

    The names are `labels`, or those of the columns of `y_true`, or numbers. Columns of
    either table that have these names are moved to their place.
    """
    scores = canonical_label_scores(y_proba, where)
    shape = len(scores.pairs[0]), len(scores.pairs)
    table = canonical_label_table(y_true, *shape, where)
    names = label_names(y_true, shape[1])
    if labels is not None:
        names = list(read_array(labels, "names", where))
    pairs = scores.matched(y_proba, names, column_names(y_true)).pairs
    return names, pairs, match_columns(table, y_true, names)


def known_rows(table: AnyArray, label: int) -> AnyArray:
    """Positions of the rows whose label is known."""
    return np.flatnonzero(~np.isnan(table[:, label]))
