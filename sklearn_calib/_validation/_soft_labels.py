"""Soft labels: shares of classes instead of one class, as weighted rows with one label each."""

from typing import Any, NamedTuple

import numpy as np

from .._count_weights import are_counts
from .._typing import AnyArray, ArrayLike, FloatArray, IntArray
from ..exceptions import add_error_context, invalid_input
from ._arrays import read_numeric_array
from ._column_order import get_given_column_names, reorder_columns_if_names_match
from ._labels import read_labels
from ._rounded import has_bfloat16_rounding
from ._scores import check_same_length
from ._weights import read_raw_weight

# The sum of a row may differ from 1 by this much, as for probabilities.
_SUM_TOLERANCE = 1e-6
# A share of a count may be off by this many units in the last place.
_MAX_COUNT_ERROR_UNITS = 4
# The spacing of bfloat16 below 1; such labels arrive as float32.
_BFLOAT16_EPSILON = 2.0**-8


class WeightedRowsFromSoftLabels(NamedTuple):
    """The rows that soft labels stand for: one for each class that has a share of an item.

    They are not `Predictions` yet: the scores beside them may be features or come in
    batches.

    Attributes
    ----------
    items : ndarray of shape (n_rows,), intp
        Which item, row of `y`, each of them comes from; neighbours, in the order of
        `y`.
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n_rows,), intp
        Positions among `classes`.
    weight : ndarray of shape (n_rows,)
        The share of the class, times the weight of the item; above 0.
    """

    items: IntArray
    classes: AnyArray
    codes: IntArray
    weight: FloatArray

    @property
    def labels(self) -> AnyArray:
        """Return the label of each row."""
        return self.classes[self.codes]

    def expand_scores_to_fit_arguments(
        self, scores: FloatArray
    ) -> tuple[FloatArray, AnyArray, FloatArray, AnyArray]:
        """Return scores, labels and weights of these rows, and the classes."""
        return scores[self.items], self.labels, self.weight, self.classes


def validate_soft_labels(
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    *,
    n_rows: int | None = None,
    scores: Any = None,
    input_name: str = "y_true",
) -> WeightedRowsFromSoftLabels:
    """Read shares of classes, and make weighted rows with one label each of them.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_classes)
        One dimension: the share of the second class, in [0, 1]. Two: the share of each
        class, in rows that sum to 1 within 1e-6.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0. Of whole numbers n the share k / n gives whole weights k and n -
        k.
    classes : array-like of shape (n_classes,), default=None
        The classes; by default 0, 1, ..., n_classes - 1.
    n_rows : int, default=None
        Of the scores beside it, if there are some.
    scores : array-like, default=None
        These scores as they were given. If both are tables whose columns have the
        same names, those of `y` come into the order of the scores; names that are
        those of the classes come into their order first.

    Returns
    -------
    rows : WeightedRowsFromSoftLabels
        Those of weight 0 are left out.

    Raises
    ------
    ValueError
        Values outside [0, 1], missing ones, rows of another sum, another number of
        classes.
    TypeError
        Text and what else is not a number.

    Examples
    --------
    >>> from sklearn_calib._validation import validate_soft_labels
    >>> rows = validate_soft_labels([0.75, 1, 0], [4, 1, 2])
    >>> rows.items.tolist(), rows.labels.tolist(), rows.weight.tolist()
    ([0, 0, 1, 2], [0, 1, 1, 0], [1.0, 3.0, 1.0, 2.0])
    """
    with add_error_context(input_name):
        shares, unit = _read_shares_and_rounding_unit(y)
    n, k = shares.shape
    if n_rows is not None:
        check_same_length(shares, range(n_rows))
    names = np.arange(k)
    if classes is not None:
        names = read_labels(classes, classes=classes, input_name="classes")[0]
        if len(names) != k:
            raise invalid_input(
                expected=f"{k} classes, as the soft labels have",
                got=f"{len(names)}",
                hint=(
                    "For more than two classes pass soft labels with one column per class"
                ),
            )
    shares = reorder_columns_if_names_match(
        shares, y, names, get_given_column_names(scores)
    )
    weight = read_raw_weight(sample_weight, n)
    mass = shares * weight[:, None]
    # For k of n votes: 3 * (1 / 3) votes must be exactly one.
    if sample_weight is not None and are_counts(weight):
        whole = np.rint(mass)
        if (
            np.abs(mass - whole) <= _MAX_COUNT_ERROR_UNITS * unit * weight[:, None]
        ).all():
            mass = whole
    # A row is repeated for each class with a positive share; copies of an item are
    # neighbours.
    items, codes = np.nonzero(mass)
    return WeightedRowsFromSoftLabels(items, names, codes, mass[items, codes])


class LabelSharesAndVoteCounts(NamedTuple):
    """Columns of a table, one per class, as shares and how many votes each row has.

    Attributes
    ----------
    shares : ndarray of shape (n_rows, n_classes), or (n_rows,) for a single column
    n_votes_by_row : ndarray of shape (n_rows,), or None
        1 in rows of shares; None for a single column of shares.
    kinds : frozenset of str
        What the rows show: "shares", "counts", or "marks" if 0 and 1 alone leave it
        open.
    """

    shares: FloatArray
    n_votes_by_row: FloatArray | None
    kinds: frozenset[str]


def read_shares_or_votes(table: FloatArray) -> LabelSharesAndVoteCounts:
    """Read rows of shares, which sum to 1, or of counts of votes: whole numbers.

    A row of one 1 is both. Blocks of one table are judged together, by `check_vote_kinds`.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_classes)

    Raises
    ------
    ValueError
        Values that are neither, rows of another sum, or without a vote.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_calib._validation import read_shares_or_votes
    >>> votes = read_shares_or_votes(np.array([[3.0, 1.0], [0.0, 1.0]]))
    >>> votes.shares.tolist(), votes.n_votes_by_row.tolist(), [*votes.kinds]
    ([[0.75, 0.25], [0.0, 1.0]], [4.0, 1.0], ['counts'])
    """
    votes = np.asarray(table, dtype=float)
    expected = "shares from 0 to 1, or whole numbers of votes, one column per class"
    wrong = ~(np.isfinite(votes) & (votes >= 0))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise invalid_input(
            expected=expected,
            got=f"{votes[row, column]:g}",
            hint="Repair that row, or leave it out",
            row=row,
            column=column,
        )
    total = votes.sum(axis=1)
    if not total.all():
        raise invalid_input(
            expected="a share or a vote in every row",
            got="none",
            hint="Drop rows without a vote",
            row=total.argmin(),
        )
    # Shares of 0 and 1 are whole numbers too, so only the sums and the largest number
    # tell counts from shares.
    whole = (votes == np.floor(votes)).all(axis=1)
    largest = votes.max(axis=1, initial=0.0)
    off = ~whole & (np.abs(total - 1) > _SUM_TOLERANCE)
    if off.any():
        row = int(off.argmax())
        raise invalid_input(
            expected=f"{expected}, shares with a sum of 1",
            got=f"a sum of {total[row]:g}",
            hint="Divide the row by its sum, or give the numbers of votes",
            row=row,
        )
    # Several 1 in a row may be votes, or marks of many labels.
    many = whole & (total > 1)
    texts = {
        "shares": ~whole,
        "counts": many & (largest > 1),
        "marks": many & (largest == 1),
    }
    kinds = frozenset(kind for kind, rows in texts.items() if rows.any())
    return LabelSharesAndVoteCounts(
        votes / total[:, None], np.where(whole, total, 1.0), kinds
    )


def check_vote_kinds(kinds: frozenset[str]) -> None:
    """Reject a table of which some rows are shares and others counts, or many labels per row."""
    if "shares" in kinds and len(kinds) > 1:
        raise invalid_input(
            expected="shares, or numbers of votes, in all rows",
            got="shares in some rows and numbers of votes in others",
            hint="Give one kind: a row of counts weighs as many rows as it has votes",
        )
    if kinds == {"marks"}:
        hint = "For many labels per row see the page Many labels"
        hint += "; votes of annotators are counts"
        raise invalid_input(
            expected="soft labels whose rows sum to 1",
            got="0 and 1 alone, several 1 in a row",
            hint=hint,
        )


def _read_shares_and_rounding_unit(y):
    """Read soft labels as rows that sum to 1, and the unit in their last place."""
    raw = read_numeric_array(y, "soft labels")
    unit = float(np.finfo(raw.dtype if raw.dtype.kind == "f" else np.float64).eps)
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw.ravel()
    if raw.ndim not in (1, 2) or raw.size == 0:
        raise invalid_input(
            expected=(
                "soft labels of shape (n_samples,) or (n_samples, n_classes), with at least one row"
            ),
            got=f"shape {raw.shape}",
            hint="Pass the share of the second class, or one column per class",
        )
    shares = raw.astype(float)
    wrong = ~((shares >= 0) & (shares <= 1))
    if wrong.any():
        is_whole = (shares >= 0) & (shares == np.floor(shares))
        if raw.ndim == 2 and is_whole.all():
            raise invalid_input(
                expected="soft labels in [0, 1]",
                got="whole numbers, which may be counts of votes",
                hint="Divide each row by its sum, and pass the sums as sample_weight",
            )
        place = tuple(np.argwhere(wrong)[0])
        column = place[1] if raw.ndim == 2 else None
        raise invalid_input(
            expected="soft labels in [0, 1]",
            got=f"{shares[place]:g}",
            hint="Drop rows without a vote; of k votes of n pass k / n, with sample_weight n",
            row=place[0],
            column=column,
        )
    if raw.ndim == 1:
        return np.column_stack([1 - shares, shares]), unit
    total = shares.sum(axis=1)
    error = np.abs(total - 1)
    # Sums of float32 or float16 are allowed the rounding of these types.
    off = error > max(_SUM_TOLERANCE, _MAX_COUNT_ERROR_UNITS * unit)
    if off.any() and not (
        error.max() <= _MAX_COUNT_ERROR_UNITS * _BFLOAT16_EPSILON
        and has_bfloat16_rounding(shares)
    ):
        row = int(off.argmax())
        raise invalid_input(
            expected="soft labels whose rows sum to 1",
            got=f"{total[row]:g}",
            hint="Divide each row by its sum; for many labels per row see the page Many labels",
            row=row,
        )
    return shares / total[:, None], unit
