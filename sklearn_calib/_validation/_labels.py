"""Validation of labels: they become codes 0..K-1, and the classes in order."""

from typing import Any, TypeGuard

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from .._typing import AnyArray, ArrayLike, IntArray
from .._warnings import emit_warning
from ..exceptions import add_error_context, invalid_input
from ._arrays import is_missing_or_infinite, read_array

_MAX_COUNTED_RANGE = 65_536
_SOFT_LABELS_HINT = (
    "For shares of a class, such as those of several annotators, pass "
    "soft_labels=True to fit, to the measure or to the report; otherwise "
    "turn the target into classes first"
)
_CLASSES_ARGUMENT = "fit(..., classes=)"
_NAME_CLASSES_HINT = (
    "Name all classes, in the order of the columns, with " + _CLASSES_ARGUMENT
)
ALL_CLASSES_HINT = "Pass all classes"
# Above this number neighbouring integers are one float64.
_MAX_EXACT_INTEGER = 2.0**53


def canonical_labels(
    y: ArrayLike, *, classes: ArrayLike | None = None
) -> tuple[AnyArray, IntArray]:
    """Turn labels into integer codes: the position of each label in the list of classes.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Integers of any size, text, bytes, booleans, whole floats, dates, or other
        values that can be hashed and sorted, such as ``Decimal``. A pandas index is
        ignored, and so are the categories of a pandas ``Categorical`` that no row has.
    classes : array-like of shape (n_classes,), default=None
        The classes, in the order of the score columns; by default the sorted labels of
        `y`.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n_samples,), intp
        ``classes[codes]`` are the labels.

    Raises
    ------
    ValueError
        Missing labels (NaN, NaT, None, NA, masked), continuous ones, more than one
        dimension, labels that are not in `classes`, repeated classes.
    TypeError
        Labels of types that cannot be compared or have no order, and what is not an array.

    Examples
    --------
    >>> from sklearn_calib._validation import canonical_labels
    >>> classes, codes = canonical_labels(["no", "yes", "no"])
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [0, 1, 0])
    """
    return read_labels(y, classes=classes, input_name="y")


def read_labels(
    y: ArrayLike, *, classes: ArrayLike | None = None, input_name: str = "y_true"
) -> tuple[AnyArray, IntArray]:
    """Return what `canonical_labels` does; errors name the argument `input_name`."""
    if y is None:
        raise invalid_input(
            "y",
            expected="labels y",
            got="None",
            hint="This estimator requires y to be passed, but the target y is None",
        )
    with add_error_context(input_name):
        distinct, codes = _find_unique_labels_and_codes(_read_label_array(y))
        if distinct.dtype.kind == "f" and np.any(distinct != np.floor(distinct)):
            raise invalid_input(
                expected="class labels",
                got="fractions (Unknown label type: continuous)",
                hint=_SOFT_LABELS_HINT,
            )
    if classes is None:
        return distinct, codes
    with add_error_context("classes"):
        wanted = _read_label_array(classes)
        if len(_find_unique_labels_and_codes(wanted)[0]) != len(wanted):
            raise invalid_input(
                expected="different classes",
                got=f"{wanted.tolist()}",
                hint="Name each class once",
            )
    with add_error_context(input_name):
        return wanted, _encode_labels_by_wanted_classes(distinct, wanted, codes)[codes]


def is_label_table(y: Any) -> bool:
    """Return whether labels have several columns: many labels per row."""
    if not sparse.issparse(y) and not hasattr(y, "shape"):
        try:
            y = np.asarray(y)
        except Exception:
            # Rows of different lengths; the function that reads them raises the error.
            return False
    shape = y.shape
    return len(shape) == 2 and shape[1] > 1


def has_unsorted_classes(classes: AnyArray | None) -> TypeGuard[AnyArray]:
    """Return whether classes were named in another order than that of the sorted labels."""
    names = [] if classes is None else classes.tolist()
    try:
        return bool(names != sorted(names))
    except TypeError:
        return False


def get_present_ordered_categories(
    y: Any, classes: ArrayLike | None
) -> list[Any] | None:
    """Return the classes in the order of an ordered Categorical; None for other labels."""
    dtype: Any = getattr(y, "dtype", None)
    # The type of ordered labels is called Enum in polars.
    if not getattr(dtype, "ordered", type(dtype).__name__ == "Enum"):
        return None
    present = set(
        np.unique(y).tolist() if classes is None else np.asarray(classes).tolist()
    )
    return [label for label in dtype.categories if label in present]


def order_scale_columns(order: ArrayLike | None, classes: AnyArray) -> IntArray:
    """Return the column of each class from the lowest to the highest.

    Without `order` numbers have their own, and text that of `classes` if that is not
    the alphabet's: who names it may have meant the columns alone.
    """
    names = classes.tolist()
    if order is not None:
        columns = read_labels(order, classes=classes, input_name="order")[1]
        if sorted(columns.tolist()) != [*range(len(names))]:
            raise invalid_input(
                expected=f"every class of {names[:10]} once",
                got=f"{np.asarray(order)[:10].tolist()}",
                hint="Name them from the lowest to the highest",
            )
        return columns
    if not isinstance(names[0], str | bytes):
        return np.argsort(classes)
    if len(names) > 2 and not has_unsorted_classes(classes):
        raise invalid_input(
            expected="the order of a scale",
            got=f"text labels, {names[:10]}",
            sentence=(
                f"Text labels are sorted by the alphabet, {names[:10]}, which may not "
                "be the order of a scale"
            ),
            hint=(
                f"Pass order={names[:10]}, rearranged from the lowest class to the "
                "highest, or an ordered Categorical as labels"
            ),
        )
    return np.arange(len(names))


def check_two_or_more_classes(classes: AnyArray, hint: str) -> None:
    """Raise ValueError unless there are two classes or more."""
    if len(classes) < 2:
        raise invalid_input(
            expected="labels of at least two classes",
            got=f"one class, {classes[:1].tolist()[0]!r}",
            hint=hint,
        )


def check_column_labels(classes: AnyArray, n_columns: int) -> None:
    """Raise ValueError unless there are two classes or more, one for each column of scores."""
    check_two_or_more_classes(classes, _NAME_CLASSES_HINT)
    if len(classes) != n_columns:
        raise invalid_input(
            expected=f"one class for each of the {n_columns} columns of scores",
            got=f"{len(classes)} classes, {classes[:10].tolist()}",
            hint="If the rows miss a class, name all of them, in the order of the columns, with "
            + _CLASSES_ARGUMENT,
        )


_LABEL_ENCODING_HINT = (
    ". If one is text and the other its codes, encode y in the same way as the classes, for "
    "instance with transform or inverse_transform of the LabelEncoder that made the codes"
)


def _encode_labels_by_wanted_classes(labels, wanted, codes):
    """Find the position of each label among the wanted classes."""
    # A dict compares labels as Python does, so 1 and 1.0 are the same label.
    column_of = dict(
        zip(
            _convert_labels_to_dict_keys(wanted, labels),
            range(len(wanted)),
            strict=True,
        )
    )
    columns = np.array(
        [
            column_of.get(key, -1)
            for key in _convert_labels_to_dict_keys(labels, wanted)
        ],
        dtype=np.intp,
    )
    unknown = columns < 0
    if unknown.any():
        label = labels[unknown][:1].tolist()[0]
        hint = f"{ALL_CLASSES_HINT}, or drop those rows"
        if len(wanted) and isinstance(label, str) != isinstance(
            wanted.tolist()[0], str
        ):
            hint += _LABEL_ENCODING_HINT
        raise invalid_input(
            expected=f"labels among {wanted.tolist()}",
            got=repr(label),
            hint=hint,
            row=np.flatnonzero(codes == np.flatnonzero(unknown)[0])[0],
        )
    return columns


def _convert_labels_to_dict_keys(labels, others):
    """Return labels as keys of a dict: Python compares 1, 1.0 and Decimal(1) without rounding."""
    if labels.dtype.kind == others.dtype.kind:
        labels = labels.astype(np.result_type(labels, others))
    return labels.tolist()


SURVIVAL_TIME_HINT = (
    "Times to an event are out of scope: choose a time, pass whether the event came before it, "
    "y = event & (time <= chosen), and leave out rows that were censored earlier"
)


def _read_label_array(y):
    """Read one label for each row as a 1-d array, and explain other shapes and types."""
    labels = read_array(y, "labels")
    if len(labels.dtype.names or ()) == 2:
        raise invalid_input(
            expected="one class label per row",
            got=f"records of {', '.join(labels.dtype.names)}",
            hint=SURVIVAL_TIME_HINT,
            error=TypeError,
        )
    if labels.dtype.kind in "cV":
        complex_ = labels.dtype.kind == "c"
        raise invalid_input(
            expected="labels that have an order",
            got=f"dtype {labels.dtype}" + " (Complex data not supported)" * complex_,
            hint="Convert them, for instance to text",
            error=ValueError if complex_ else TypeError,
        )
    if labels.dtype.kind == "T":
        # scikit-learn does not support numpy's StringDType.
        labels = labels.astype(object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        warning_text = "A column-vector y was passed when a 1d array was expected. "
        shape = (
            "Please change the shape of y to (n_samples,), for example with .ravel()."
        )
        emit_warning(DataConversionWarning(warning_text + shape))
        labels = labels.ravel()
    if labels.ndim != 1:
        raise invalid_input(
            expected="one label per row, a 1d array",
            got=f"labels of shape {labels.shape}",
            hint="For one-hot labels pass y.argmax(axis=1)" + get_survival_hint(labels),
        )
    if labels.size == 0:
        raise invalid_input(
            expected="at least one label",
            got="none",
            hint="Check the selection of the rows",
        )
    return labels


def get_survival_hint(table: AnyArray) -> str:
    """Return what to do about pairs of an event and a time; "" for other tables."""
    if table.ndim != 2 or table.shape[1] != 2 or table.dtype.kind not in "iufO":
        return ""
    is_event = np.isin(table, (0, 1)).all(axis=0)
    return f". {SURVIVAL_TIME_HINT}" if is_event.sum() == 1 else ""


def _find_unique_labels_and_codes(labels):
    """Return the sorted distinct labels, and the number of each row's label."""
    _check_present(labels)
    if labels.dtype.kind in "iub":
        lowest = int(labels.min())
        highest = int(labels.max())
        # Counting is faster than sorting.
        if highest - lowest < _MAX_COUNTED_RANGE:
            start = labels.dtype.type(lowest)
            # Unsigned numbers may be too large for intp, so the start is subtracted
            # before the conversion.
            if labels.dtype.kind == "u":
                offset = (labels - start).astype(np.intp)
            else:
                offset = np.subtract(labels, lowest, dtype=np.intp, casting="unsafe")
            # Both labels are present, because one is the lowest and the other the
            # highest.
            if highest - lowest == 1:
                return np.arange(2).astype(labels.dtype) + start, offset
            present = np.flatnonzero(np.bincount(offset))
            position = np.zeros(highest - lowest + 1, dtype=np.intp)
            position[present] = np.arange(len(present))
            return present.astype(labels.dtype) + start, position[offset]
    if labels.dtype.kind == "f" and float(np.abs(labels).max()) >= _MAX_EXACT_INTEGER:
        raise invalid_input(
            expected="floats below 2**53 as labels",
            got=f"{np.abs(labels).max():g}, where neighbouring integers are one float",
            hint="Pass an array of integers, or text",
        )
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise invalid_input(
            expected="labels of one type that can be sorted",
            got=" and ".join(kinds),
            hint="Convert them, for instance to text",
            error=TypeError,
        ) from None


def _check_present(labels):
    """Raise an error for labels that are missing, or that are containers."""
    missing = np.zeros(0, dtype=bool)
    if labels.dtype.kind in "fmM":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        for kind in set(map(type, labels)):
            if kind.__hash__ is None:
                raise invalid_input(
                    expected="labels that are single values",
                    got=kind.__name__,
                    hint="Pass one number or text for each row",
                    error=TypeError,
                )
        missing = np.fromiter(
            (is_missing_or_infinite(label) for label in labels),
            dtype=bool,
            count=len(labels),
        )
    if missing.any():
        row = int(missing.argmax())
        raise invalid_input(
            expected="a label in every row",
            got=f"{labels[row]}",
            hint="Drop the rows without a label; labels must not hold NaN or infinity",
            row=row,
        )
