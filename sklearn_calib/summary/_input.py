"""Batches of a stream: labels, scores and weights are checked before anything is added."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._argument_checks import is_scalar_equal
from .._count_weights import are_counts
from .._files.columns import EncodedColumn
from .._typing import AnyArray, ArrayLike, FloatArray
from .._validation import (
    ALL_CLASSES_HINT,
    check_weights,
    collect_lazy_frame,
    describe_doubtful_order,
    find_positive_index_or_second,
    get_sum_tolerance,
    has_unsorted_classes,
    read_array,
    read_labels,
    read_numeric_array,
    read_proba_keeping_single_column,
    suggest_single_column_class,
    validate_soft_labels,
)
from .._warnings import warn_calibration
from ..exceptions import InvalidInputError, add_error_context, invalid_input

# Rows that are converted at once; they fit into the second cache.
_BLOCK_ROWS = 65_536
# Rows whose sum is farther from 1 are divided by it.
_MAX_KEPT_ROW_SUM_ERROR = 1e-15


class StreamLabelEncoder:
    """Labels of a stream as positions among classes that no batch can change.

    Parameters
    ----------
    classes : array-like of shape (n_classes,) or None
        None: 0 and 1, or 0 to k - 1 if the first batch has k > 2 columns, or
        `pos_label` and one other label.
    pos_label : label or None
    """

    def __init__(self, classes: ArrayLike | None, pos_label: object) -> None:
        self.pos_label = pos_label
        # the result of `describe_doubtful_order` for a batch
        self.doubt: tuple[str, str, str] | None = None
        self.silent = False  # whether that is left to the caller
        self.classes: AnyArray | None = None
        # Numbers from 0 until a batch has more than two columns.
        self.guessed = classes is None and pos_label is None
        if classes is not None:
            self.classes = read_labels(classes, classes=classes, input_name="classes")[
                0
            ]
        elif pos_label is None or _is_zero_or_one(pos_label):
            self.classes = np.arange(2)
        self.positive = 1
        if self.classes is not None:
            self._check_classes_and_set_positive()

    def _check_classes_and_set_positive(self):
        n_classes = len(self.classes)
        if n_classes < 2:
            raise invalid_input(
                expected="at least two classes",
                got=f"{n_classes}",
                hint="Name them in the order of the columns",
            )
        if self.pos_label is None:
            return
        if n_classes > 2:
            raise invalid_input(
                "pos_label",
                expected="pos_label with two classes",
                got=f"{n_classes} classes",
                hint="Leave pos_label out",
            )
        self.positive = find_positive_index_or_second(self.classes, self.pos_label)

    @property
    def n_classes(self) -> int:
        return 2 if self.classes is None else len(self.classes)

    def read_labels(
        self, y: ArrayLike, n_columns: int, is_first_batch: bool
    ) -> tuple[AnyArray | None, AnyArray]:
        """Return the classes after a batch, and the positions of its labels, of shape (n_samples,).

        Nothing is changed; `n_columns` are those of the scores, 1 for a single one;
        `is_first_batch` is whether this is the first batch. Raises ValueError for labels or
        columns that do not belong to the classes.
        """
        # Only the labels that occur in this batch can be wrong.
        if isinstance(y, EncodedColumn):
            shown = np.bincount(y.codes, minlength=len(y.values)) > 0
            places = np.cumsum(shown) - 1
            try:
                classes, codes = self.read_labels(
                    y.values[shown], n_columns, is_first_batch
                )
                return classes, codes[places[y.codes]]
            except ValueError:
                y = np.asarray(y)  # the message names the row
        classes = self.classes
        is_single = n_columns == 1
        n_columns = max(n_columns, 2)
        if n_columns != self.n_classes:
            if not (self.guessed and is_first_batch and n_columns > 2):
                raise invalid_input(
                    expected=f"scores of {self.n_classes} classes",
                    got=f"{n_columns} columns",
                    hint="Pass one column per class",
                )
            classes = np.arange(n_columns)
        if y is None:
            read_labels(y, input_name="y")  # words the error
        labels = read_array(y, "labels")
        if classes is None:
            classes = self._find_both_classes_if_shown(labels, is_single)
        if classes is None:  # all rows have the positive label so far
            return None, np.ones(len(labels), dtype=np.uint8)
        numbers = labels.ndim == 1 and labels.dtype.kind in "biuf"
        # The usual case of two numbers, without a sort.
        if numbers and len(classes) == 2 and classes.dtype.kind in "biuf":
            ones = labels == classes[1]
            if (ones | (labels == classes[0])).all():
                return classes, ones.view(np.uint8)
        try:
            return classes, read_labels(labels, classes=classes)[1]
        except InvalidInputError as error:
            if self.guessed and ALL_CLASSES_HINT in error.hint:
                names = read_labels(labels)[0].tolist()
                if is_single:
                    owner_hint = "Name the class of the column with pos_label="
                    if len(names) == 2:
                        owner_hint = suggest_single_column_class(names, "pos_label")
                    error.set_fields(hint=owner_hint)
                elif len(names) == len(classes):
                    words = (
                        f"Name the classes in the order of the columns, classes={names}"
                    )
                    error.set_fields(hint=words)
            raise

    def warn_once_about_column_order(
        self,
        codes: AnyArray,
        proba: FloatArray,
        weight: FloatArray | None,
        counts: AnyArray | None,
        n_before: int,
    ) -> None:
        """Warn, once, of columns that must have another order than that of the classes.

        The first rows of the batch, whose probabilities are `proba`, are looked at, while
        few rows have come before.
        """
        if (
            self.doubt is not None
            # The order of the columns is judged by the first rows; later ones would
            # repeat the check.
            or n_before >= _BLOCK_ROWS
            or not has_unsorted_classes(self.classes)
        ):
            return
        rows = slice(len(proba))
        if proba.ndim == 1:
            proba = np.column_stack([1 - proba, proba])[:, :: 2 * self.positive - 1]
        times = np.ones(len(proba)) if counts is None else counts[rows].astype(float)
        if weight is not None:
            times[weight[rows] == 0] = 0
        # Counted rows are repeated for the check, but not without limit.
        times *= min(1.0, _BLOCK_ROWS / max(1.0, times.sum()))
        repeated_rows = np.repeat(np.arange(len(proba)), times.astype(np.intp))
        codes = codes[rows][repeated_rows].astype(np.intp)
        self.doubt = describe_doubtful_order(
            proba[repeated_rows], codes, self.classes, "classes"
        )
        if self.doubt is not None and not self.silent:
            warn_calibration(*self.doubt)

    def set_classes_and_positive_index(self, classes: AnyArray | None) -> None:
        """Set the classes that a batch has shown, and the index of the positive one."""
        if classes is not None:
            self.positive = find_positive_index_or_second(classes, self.pos_label)
        self.classes = classes

    def _find_both_classes_if_shown(self, labels, is_single):
        """Return both classes if a batch shows that beside `pos_label`, else None."""
        batch_classes, _ = read_labels(labels)
        others = batch_classes[
            [
                not is_scalar_equal(self.pos_label, label)
                for label in batch_classes.tolist()
            ]
        ]
        if not len(others):
            return None
        hint = "Pass classes=, both classes in the order of the columns of y_proba"
        if len(others) > 1:
            raise invalid_input(
                expected=f"the label {self.pos_label!r} and one other",
                got=f"{batch_classes.tolist()[:10]}",
                hint=hint,
            )
        both_classes = np.sort(np.array([others[0], self.pos_label]))
        if not is_single and others[0] != both_classes[0]:
            raise invalid_input(
                expected=(
                    f"pos_label {self.pos_label!r} to be the second of the sorted classes"
                ),
                got=f"also the label {others[0]!r}",
                hint=hint,
            )
        return both_classes

    def adopt_matching_classes(self, other: "StreamLabelEncoder") -> None:
        """Raise ValueError if another summary has other classes; take over its classes."""
        if self.classes is None or other.classes is None:
            same = self.positive_label == other.positive_label
        else:
            same = self.classes_in_words == other.classes_in_words
        if not same:
            raise invalid_input(
                expected="summaries of the same classes",
                got=f"{self.classes_in_words} and {other.classes_in_words}",
                hint="Summarise them with one classes=",
            )
        self.doubt = self.doubt or other.doubt
        if self.classes is None:
            self.classes = other.classes
            self.positive = other.positive

    @property
    def positive_label(self) -> object:
        return self.pos_label if self.classes is None else self.classes[self.positive]

    @property
    def classes_in_words(self) -> str:
        """The classes in words; equal for labels that mean the same."""
        class_list = None if self.classes is None else self.classes.tolist()
        positive = (
            f" with positive {self.positive_label!r}" if self.n_classes == 2 else ""
        )
        return f"classes {class_list}{positive}"


def _is_zero_or_one(label):
    return isinstance(label, int | float | np.number | np.bool_) and label in (0, 1)


def iter_score_blocks(
    raw: AnyArray, repair: Callable[[FloatArray], FloatArray]
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield checked scores in pieces: (their place, float64 probabilities)."""
    for start in range(0, len(raw), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        # columns lie side by side
        yield rows, repair(raw[rows].astype(float, order="F"))


def make_soft_label_rows_with_majority_weight(
    known_labels: StreamLabelEncoder,
    y: ArrayLike,
    raw: AnyArray,
    weight: FloatArray | None,
    counts: AnyArray | None,
    y_proba: Any,
) -> tuple[AnyArray, AnyArray, FloatArray, AnyArray | None, FloatArray, int]:
    """Return a batch of soft labels, beside checked columns, as weighted rows of one label each.

    Returns
    -------
    labels : ndarray of shape (n_rows,)
    raw : ndarray of shape (n_rows,) or (n_rows, n_classes)
        The scores.
    weight : ndarray of shape (n_rows,)
    counts : ndarray of shape (n_rows,), or None
    sure : ndarray of shape (n_rows,)
        The weights of rows whose class has most of its item, 0 for the others: evidence
        on the order of the columns.
    more : int
        How many more rows than items.
    """
    if known_labels.classes is None:
        raise invalid_input(
            expected="all classes, for soft labels",
            got="pos_label alone",
            hint="Pass classes=, both classes in the order of the columns of y_proba",
        )
    columns = 2 if raw.ndim == 1 else raw.shape[1]
    classes = (
        known_labels.classes
        if columns == known_labels.n_classes
        else np.arange(columns)
    )
    unweighted = weight is None or not weight.any()
    beside = {"n_rows": len(raw), "scores": y_proba}
    rows = validate_soft_labels(y, None if unweighted else weight, classes, **beside)
    mass = rows.weight * 0.0 if weight is not None and unweighted else rows.weight
    items = rows.items
    whole = np.bincount(items, mass, len(raw))
    counts = None if counts is None else counts[items]
    times = np.ones(len(items), dtype=np.int64) if counts is None else counts
    has_mass = mass > 0
    first = np.append(True, items[1:] != items[:-1])
    more = int(times[has_mass & ~first].sum())
    # The majority of an item is its label for the check of the columns.
    sure = np.where(mass > 0.5 * whole[items], mass, 0.0)
    return rows.labels, raw[items], mass, counts, sure, more


def check_scores_and_get_proba_converter(
    y_proba: ArrayLike,
) -> tuple[AnyArray, Callable[[FloatArray], FloatArray]]:
    """Return scores of a batch without a copy of them, and what makes blocks probabilities.

    What `canonical_proba` rejects is rejected.
    """
    with add_error_context("y_proba"):
        raw = np.asarray(read_numeric_array(y_proba, "scores"))
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim not in (1, 2) or (raw.ndim == 2 and raw.shape[1] == 0):
        read_proba_keeping_single_column(raw)  # words the error
    slack = get_sum_tolerance(raw.dtype, 1 if raw.ndim == 1 else raw.shape[1])
    outside = uneven = False
    # All rows are checked before the first is added, since an error must leave the
    # summary as it was.
    for start in range(0, len(raw), _BLOCK_ROWS):
        block = raw[start : start + _BLOCK_ROWS]
        low = block.min()
        high = block.max()
        fine = low >= -slack and high <= 1 + slack
        if fine and raw.ndim == 2:
            error = np.abs(_compute_row_sums(block) - 1.0).max()
            fine = error <= slack
            uneven = uneven or error > _MAX_KEPT_ROW_SUM_ERROR
        if not fine:
            return read_proba_keeping_single_column(
                raw
            ), np.asarray  # divided, or rejected
        outside = outside or low < 0 or high > 1
    return raw, partial(_repair_block, outside=outside, uneven=uneven)


def _repair_block(block, outside, uneven):
    """Return scores in [0, 1] whose rows sum to 1, if rounding has carried some away."""
    if outside:
        block = np.clip(block, 0.0, 1.0)
    if uneven:
        total = _compute_row_sums(block)
        block /= np.where(np.abs(total - 1.0) > _MAX_KEPT_ROW_SUM_ERROR, total, 1.0)[
            :, None
        ]
    return block


def _compute_row_sums(block):
    if block.shape[1] == 2:  # five times as fast
        return np.add(block[:, 0], block[:, 1], dtype=float)
    return np.ascontiguousarray(block.T, dtype=float).sum(axis=0)  # class by class


def check_one_label_per_row(y: Any, n: int) -> Any:
    """Return labels of a batch of so many rows; None, which others reject, stays None."""
    y = collect_lazy_frame(y)
    if isinstance(y, list):
        y = read_array(y, "labels")
    if y is not None and np.shape(y)[:1] != (n,):
        raise invalid_input(
            expected="as many labels as rows of scores",
            got=f"labels of shape {np.shape(y)} and {n} rows",
            hint="Check that both come from the same selection",
        )
    return y


def check_weight(sample_weight: ArrayLike | None, n: int) -> FloatArray | None:
    """Return weights of a batch, in the unit of all batches; all of them may be 0."""
    if sample_weight is None:
        return None
    weight = _read_one_number_per_row(sample_weight, n, "sample_weight").astype(
        np.float64
    )
    check_weights(weight, checks_size_limits=True)
    # Weights that are counts up to rounding become exact whole numbers, whose sums are
    # exact.
    return np.rint(weight) if n and are_counts(weight) else weight


def check_counts(counts: ArrayLike | None, n: int) -> AnyArray | None:
    """Return how often each row of a batch is there, int64."""
    if counts is None:
        return None
    checked_counts = _read_one_number_per_row(counts, n, "counts")
    number = checked_counts.astype(float)
    wrong = (
        ~np.isfinite(number)
        | (number < 0)
        | (number != np.floor(number))
        # Larger whole numbers are not exact in float64.
        | (number > 2.0**53)
    )
    if wrong.any():
        row = int(wrong.argmax())
        raise invalid_input(
            expected="counts that are whole numbers from 0 to 2^53",
            got=f"{checked_counts[row]:g}",
            hint="Drop or repair those rows",
            row=row,
        )
    return checked_counts.astype(np.int64)


def _read_one_number_per_row(values, n, name):
    numbers = read_numeric_array(values, name)
    if numbers.ndim == 0:
        numbers = np.full(n, numbers)
    if numbers.shape != (n,):
        raise invalid_input(
            expected=f"one of {name} per row, shape ({n},)",
            got=f"shape {numbers.shape}",
            hint="Check the rows that they belong to",
        )
    return numbers
