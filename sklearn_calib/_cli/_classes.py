"""The classes that the columns of scores stand for, and whether the columns fit them."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._show import make_printable, quote_text
from .._spelling import suggest_name
from .._typing import AnyArray, FloatArray
from ..exceptions import InvalidInputError
from ._messages import invalid_option
from ._request import Request, parse_names

if TYPE_CHECKING:
    from .._validation import OrderedPairAndRowCounts


def reject_single_or_unnamed_class(
    classes: Any, n_columns: int, options: Request
) -> None:
    """Reject labels that are all the same, and a single column whose class is not given."""
    from .._validation import raise_if_single_column_class_unclear

    if len(classes) < 2:
        raise invalid_option(
            expected=f"labels of at least two classes in column {quote_text(options.label)}",
            got=f"one, {quote_text(classes[0])}",
            hint="Name all of them with --classes",
        )
    if n_columns == 1 and options.positive is None and options.classes is None:
        raise_if_single_column_class_unclear(classes, np.asarray(classes), "pos_label")


def match_named_classes_and_positive(
    options: Request, labels: Any, n_columns: int
) -> tuple[list[Any] | None, Any]:
    """Return the classes in the order of the columns and the positive one, as labels have them.

    `labels` are a pandas Series; None stands for classes that were not named.
    """
    text = {str(value): value for value in labels.dropna().unique()}
    if labels.dtype.kind == "b":
        text |= {"true": True, "false": False, "1": True, "0": False}
    numeric = labels.dtype.kind in "iuf"
    classes = None
    if options.classes is not None:
        names = parse_names(options.classes, text)
        if len(names) != max(n_columns, 2):
            raise invalid_option(
                expected=f"{max(n_columns, 2)} classes in --classes",
                got=f"{len(names)}",
                hint="Name one per column (two for a single column)",
            )
        classes = [_parse_label(name, text, numeric) for name in names]
        text = dict(zip(names, classes, strict=True))
    positive = None
    if options.positive is not None:
        if n_columns > 2:
            raise invalid_option(
                sentence=f"--positive applies to two classes, but --prob names {n_columns} columns",
                hint="Leave it out",
            )
        positive = _parse_label(options.positive, text, numeric)
        if positive not in text.values():
            labels_as_text = sorted({str(value) for value in text.values()})
            label_list = ", ".join(
                make_printable(name, 40) for name in labels_as_text[:30]
            )
            hint = "Name both classes with --classes, since the table shows one of them alone"
            if len(labels_as_text) > 1:
                hint = suggest_name(
                    options.positive, labels_as_text, "Name one of the labels"
                )
            raise invalid_option(
                expected=f"--positive among {label_list}",
                got=quote_text(options.positive),
                hint=hint,
            )
    return classes, positive


def sort_by_class_order_if_class_names(names: Sequence[str], classes: Any) -> list[str]:
    """Return names of columns in the order of the classes, if they are those of the classes."""
    from .._validation import reorder_columns_if_names_match

    return reorder_columns_if_names_match(
        np.array([names], dtype=object), [*names], classes
    )[0].tolist()


def _parse_label(name, text, numeric):
    """Return the label that a name on the command line means."""
    if name in text or not numeric:
        return text.get(name, name)
    try:
        number = int(name) if name.strip().isdecimal() else float(name)
    except ValueError:
        raise invalid_option(
            expected="a number, as the labels are",
            got=quote_text(name),
            hint="Check --classes and --positive",
        ) from None
    return next((label for label in text.values() if label == number), number)


class ClassesAndPositive(NamedTuple):
    """The classes of some labels, and the one that was named as positive."""

    classes: AnyArray
    positive: Any = None
    # whether a single column is the probability of the first class
    is_flipped: bool = False

    @property
    def column_classes(self) -> AnyArray:
        """The classes whose probabilities the columns are; a single one is of the second."""
        return self.classes[::-1] if self.is_flipped else self.classes


def find_class_order(
    files: Sequence[str],
    n_columns: int,
    options: Request,
    label_names: Sequence[str] = (),
    n_enough: int | None = None,
) -> ClassesAndPositive:
    """Return the classes that the labels of files show, or that were named.

    Labels are read until they show so many as are `n_enough`. Soft labels are those of
    the columns `label_names`; with ``--prediction`` the classes are wrong and right, 0
    and 1.
    """
    import pandas as pd

    from .._validation import read_labels
    from ..summary import find_distinct_labels

    if options.soft_labels:
        return ClassesAndPositive(
            get_soft_label_classes(options, label_names, n_columns)
        )
    if options.prediction is not None:
        return ClassesAndPositive(np.arange(2))
    distinct_labels = find_distinct_labels(
        files,
        label=options.label,
        csv=options.csv_options,
        drop_missing=options.drop_missing,
        _enough=n_enough,
    )
    named, positive = match_named_classes_and_positive(
        options, pd.Series(distinct_labels), n_columns
    )
    ordered_labels = distinct_labels if named is None else named
    classes, _ = read_labels(ordered_labels, classes=ordered_labels)
    reject_single_or_unnamed_class(classes, n_columns, options)
    return make_classes_and_positive(classes, positive, n_columns)


def make_classes_and_positive(
    classes: AnyArray, positive: Any, n_columns: int
) -> ClassesAndPositive:
    """Return the classes with what follows from the one that was named as positive."""
    is_flipped = positive is not None and n_columns == 1 and classes[0] == positive
    return ClassesAndPositive(classes, positive, is_flipped)


def get_soft_label_classes(
    options: Request, names: Sequence[str], n_columns: int
) -> AnyArray:
    """Return the classes of soft labels: 0 and 1 of one column, else ``--classes`` or names."""
    if len(names) == 1:
        if n_columns > 2:
            raise invalid_option(
                expected="one or two columns of --prob for a single column of shares",
                got=f"{n_columns}",
                hint="Name one column of --label for each of them, --label a,b,c",
            )
        if options.classes is not None:
            raise invalid_option(
                sentence=(
                    "--classes does not apply to a single column of shares, which are those of the "
                    "class 1"
                ),
                hint="Leave --classes out",
            )
        return np.arange(2)
    if options.classes is None:
        return np.array(names)
    classes = parse_names(options.classes)
    if len(set(classes)) != len(names):
        raise invalid_option(
            expected=f"{len(names)} different names in --classes, one for each column of --label",
            got=f"{len(set(classes))}",
            hint="Name as many, or leave it out",
        )
    return np.array(classes)


def check_column_order(
    labels: Any,
    scores: FloatArray,
    classes: Any,
    n_columns: int,
    options: Request,
    weight: FloatArray | None = None,
) -> None:
    """Raise an error for columns of other classes, with the option that fixes it.

    Soft labels are those of the class with the largest share.
    """
    from .._validation import count_correctly_ranked_pairs, read_proba
    from ..report import find_column_order

    if options.any_order or len(classes) != max(n_columns, 2):
        return  # calibration_report words the latter
    soft = bool(options.soft_labels)
    if soft and np.ndim(labels) == 2:
        labels = classes[labels.argmax(axis=1)]
    elif soft:
        labels = classes[(labels > 0.5).astype(int)]
    proba = scores
    is_single = n_columns == 1
    if options.score_kind == "proba":
        proba = read_proba(scores, tolerance=1 - 1e-6)
    better_order = None
    if not (is_single and soft):
        better_order = find_column_order(
            labels, proba, sample_weight=weight, labels=classes
        )
    if better_order is None and is_single:
        is_first = np.asarray(labels) == classes[0]
        ranks = count_correctly_ranked_pairs(np.asarray(proba)[:, -1], is_first)
        error = find_reversed_scores_error(ranks, classes, options)
        if error is not None:
            raise error
    if better_order is None:
        return
    fits = [str(label) for label in better_order.classes]
    words = ["--positive", fits[1]] if is_single else ["--classes", ",".join(fits)]
    remedy = f"Add {make_printable(shlex.join(words), 200)}, or --allow order"
    if soft:
        remedy = "Name the columns of --label in that order, or add --allow order"
    raise invalid_option(
        expected=f"columns in the order of the classes "
        f"{make_printable(', '.join(map(str, classes)))}",
        got=f"columns that fit {make_printable(', '.join(fits))}: accuracy "
        f"{better_order.accuracy:.4f}, not "
        f"{better_order.accuracy_as_given:.4f}",
        hint=f"{remedy} where they are meant as they are",
    )


def find_reversed_scores_error(
    ranks: "OrderedPairAndRowCounts", classes: Any, options: Request
) -> InvalidInputError | None:
    """Return what is wrong with a column that ranks the first class, if no class was named."""
    is_named = options.positive is not None or options.prediction is not None
    if is_named or options.any_order or not ranks.is_significant:
        return None
    first, second = (str(label) for label in classes)
    add, keep = (
        make_printable(shlex.join(["--positive", label]), 200)
        for label in (first, second)
    )
    remedy = f"Add {add}, or {keep}"
    if options.soft_labels:
        remedy = "Name the column of --prob that --label has the shares of"
        remedy += (
            ", or add --allow order"
            if options.any_order is not None
            else ", or leave it"
        )
    return invalid_option(
        sentence=(
            f"The column ranks {quote_text(first)} above {quote_text(second)}, the second class "
            f"(AUC {1 - ranks.auc:.3f}, p below 0.001): it may be the probability of "
            f"{quote_text(first)}"
        ),
        hint=f"{remedy} where it is meant as it is",
    )
