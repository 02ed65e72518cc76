"""Rows with labels in memory, and the classes that their columns stand for."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import bare, plain, quoted
from .._spelling import suggest_name
from .._typing import AnyArray, FloatArray
from ..exceptions import add_error_context
from ._messages import Said, invalid_option
from ._request import Request, split_names
from ._tables import LabelledRows, read_columns

if TYPE_CHECKING:
    from .._validation import Ranks


def check_classes(classes: Any, n_columns: int, options: Request) -> None:
    """Refuse labels that are all the same, and a single column if nothing says whose it is."""
    from .._validation import check_column_owner

    if len(classes) < 2:
        raise invalid_option(
            expected=f"labels of at least two classes in column {quoted(options.label)}",
            got=f"one, {quoted(classes[0])}",
            hint="Name all of them with --classes",
        )
    if n_columns == 1 and options.positive is None and options.classes is None:
        check_column_owner(classes, np.asarray(classes), "pos_label")


def named_classes(options: Request, labels: Any, n_columns: int) -> tuple[list[Any] | None, Any]:
    """The classes in the order of the columns, in the type of the labels, and the positive one.

    `labels` are a pandas Series; None stands for classes that nobody named.
    """
    text = {str(value): value for value in labels.dropna().unique()}
    if labels.dtype.kind == "b":
        text |= {"true": True, "false": False, "1": True, "0": False}
    numeric = labels.dtype.kind in "iuf"
    classes = None
    if options.classes is not None:
        names = split_names(options.classes, text)
        if len(names) != max(n_columns, 2):
            raise invalid_option(
                expected=f"{max(n_columns, 2)} classes in --classes",
                got=f"{len(names)}",
                hint="Name one per column (two for a single column)",
            )
        classes = [_label_of(name, text, numeric) for name in names]
        text = dict(zip(names, classes, strict=True))
    positive = None
    if options.positive is not None:
        if n_columns > 2:
            raise invalid_option(
                expected="--positive with two classes",
                got=f"{n_columns} columns of --prob",
                hint="Leave it out",
            )
        positive = _label_of(options.positive, text, numeric)
        if positive not in text.values():
            labels_as_text = sorted({str(value) for value in text.values()})
            known = ", ".join(plain(name, 40) for name in labels_as_text[:30])
            cure = "Name both classes with --classes, since the table shows one of them alone"
            if len(labels_as_text) > 1:
                cure = suggest_name(options.positive, labels_as_text, "Name one of the labels")
            raise invalid_option(
                expected=f"--positive among {known}", got=quoted(options.positive), hint=cure
            )
    return classes, positive


def in_class_order(names: Sequence[str], classes: Any) -> list[str]:
    """Return names of columns in the order of the classes, if they are those of the classes."""
    from .._validation import match_columns

    return match_columns(np.array([names], dtype=object), [*names], classes)[0].tolist()


def _label_of(name, text, numeric):
    """The label that a name on the command line means."""
    if name in text or not numeric:
        return text.get(name, name)
    try:
        number = int(name) if name.strip().isdecimal() else float(name)
    except ValueError:
        raise invalid_option(
            expected="a number, as the labels are",
            got=quoted(name),
            hint="Check --classes and --positive",
        ) from None
    return next((label for label in text.values() if label == number), number)


def classes_of(
    files: str | Sequence[str], n_columns: int, options: Request, shares: Sequence[str]
) -> tuple[AnyArray, bool]:
    """The classes that the labels of files show, or that were named, in the order of the columns.

    And whether a single column is the probability of the first of them. Of soft labels they are
    those of the columns of `shares`; with ``--prediction`` wrong and right, 0 and 1.
    """
    import pandas as pd

    from .._validation import read_labels
    from ..summary import find_classes

    if options.soft_labels:
        return soft_classes(options, shares, n_columns), False
    if options.prediction is not None:
        return np.arange(2), False
    reading: dict[str, Any] = {"csv": options.csv, "drop_missing": options.drop_missing}
    found = find_classes(files, label=options.label, **reading)
    named, positive = named_classes(options, pd.Series(found), n_columns)
    given: Any = found if named is None else named
    classes, _ = read_labels(given, classes=given)
    check_classes(classes, n_columns, options)
    return classes, positive is not None and n_columns == 1 and classes[0] == positive


def called(files: Sequence[str]) -> str:
    """What an error message calls some files."""
    return bare(files[0]) if len(files) == 1 else f"{len(files)} files"


def read_rows(files: Sequence[str], options: Request) -> LabelledRows:
    """The rows of some files, with the classes that their columns stand for.

    A single column is the probability of ``classes[1]``. Columns that fit other classes are
    refused, unless ``--allow order`` was given.
    """

    from .._validation import read_labels, read_proba

    absent = options.absent
    rows = read_columns(files, options)
    names, scores = rows.names, rows.scores
    if options.soft_labels:
        with add_error_context(source=called(files)):
            return _soft(rows, options)
    given, positive = named_classes(options, rows.labels, len(names))
    with add_error_context(source=called(files)):
        classes, codes = read_labels(rows.labels, classes=given)
        check_classes(classes, len(names), options)
        labels = classes[codes]
        rows = _matched(rows, classes)
        scores = rows.scores
        if positive is not None and len(names) == 1 and classes[0] == positive:
            classes = classes[::-1]  # the column is the probability of the first class
        if options.kind == "logits":
            scores = read_proba(scores, kind="logits", absent=absent)
        elif absent:
            divided = options.sum_tolerance
            scores = read_proba(scores, tolerance=divided, absent=absent)
        said = another_order(labels, scores, classes, len(names), options)
        if said is not None:
            raise invalid_option(*said)
        if options.tolerance is not None:
            scores = read_proba(scores, tolerance=options.tolerance)
    return rows._replace(labels=labels, scores=scores, classes=classes, positive=positive)


def _matched(rows, classes):
    """Return rows with their columns in the order of the classes that these are named after."""
    from .._validation import match_columns

    names = [*rows.names]
    scores = match_columns(rows.scores, names, classes)
    given = match_columns(rows.given, names, classes)
    return rows._replace(scores=scores, given=given, names=in_class_order(names, classes))


def _soft(rows, options):
    """Rows whose labels are shares of the class 1, or one column of shares or votes per class."""
    from .._validation import check_votes, read_proba

    scores, soft = rows.scores, rows.labels
    check_votes(soft.kinds)
    if options.kind == "logits":
        scores = read_proba(scores, kind="logits")
    elif options.tolerance is not None:
        scores = read_proba(scores, tolerance=options.tolerance)
    classes = soft_classes(options, rows.shares, len(rows.names))
    known = {"labels": soft.values, "weight": soft.weighted(rows.weight), "classes": classes}
    return in_order(_matched(rows._replace(scores=scores, **known), classes), options)


def in_order(rows: LabelledRows, options: Request) -> LabelledRows:
    """Rows of soft labels, if no other order of the columns fits them far better."""
    given = likeliest(rows.labels, rows.classes), rows.scores, rows.classes, len(rows.names)
    said = another_order(*given, options)
    if said is not None:
        raise invalid_option(*said)
    return rows


def soft_classes(options: Request, names: Sequence[str], n_columns: int) -> AnyArray:
    """The classes of soft labels: 0 and 1 of one column, else those of ``--classes`` or columns."""
    if len(names) == 1:
        if n_columns > 2:
            raise invalid_option(
                expected="one or two columns of --prob for a single column of shares",
                got=f"{n_columns}",
                hint="Name one column of --label for each of them, --label a,b,c",
            )
        if options.classes is not None:
            raise invalid_option(
                expected="--soft-labels without --classes for a single column of --label",
                got="both: its shares are those of the class 1",
                hint="Leave --classes out",
            )
        return np.arange(2)
    if options.classes is None:
        return np.array(names)
    classes = split_names(options.classes)
    if len(set(classes)) != len(names):
        raise invalid_option(
            expected=f"{len(names)} different names in --classes, one for each column of --label",
            got=f"{len(set(classes))}",
            hint="Name as many, or leave it out",
        )
    return np.array(classes)


def expanded(rows: LabelledRows) -> LabelledRows:
    """Soft labels as weighted rows of one label each, which belong together."""
    from .._validation import soft_rows

    soft = soft_rows(rows.labels, rows.weight, rows.classes, n_rows=len(rows.scores))
    together = np.arange(len(rows.labels)) if rows.together is None else rows.together
    scores, labels, weight, classes = soft.expanded(rows.scores)
    return rows._replace(
        labels=labels,
        scores=scores,
        weight=weight,
        classes=classes,
        together=together[soft.items],
    )


def likeliest(shares: FloatArray, classes: AnyArray) -> AnyArray:
    """The class that soft labels give the largest share."""
    return classes[shares.argmax(axis=1) if shares.ndim == 2 else (shares > 0.5).astype(int)]


def another_order(
    labels: Any,
    scores: FloatArray,
    classes: Any,
    n_columns: int,
    options: Request,
    weight: FloatArray | None = None,
) -> Said | None:
    """What to say of columns that are those of other classes, with the option that cures it."""
    from .._validation import ranks_of, read_proba
    from ..report import find_column_order

    if options.any_order or len(classes) != max(n_columns, 2):
        return None  # calibration_report words the latter
    proba, one = scores, n_columns == 1
    if options.kind == "proba":
        proba = read_proba(scores, tolerance=1 - 1e-6)
    soft = bool(options.soft_labels)
    given = {"sample_weight": weight, "labels": classes}
    found = None if one and soft else find_column_order(labels, proba, **given)
    if found is None:
        first = np.asarray(labels) == classes[0]
        return falling(ranks_of(np.asarray(proba)[:, -1], first), classes, options) if one else None
    fits = [str(label) for label in found.classes]
    cure = shlex.join(["--positive", fits[1]] if one else ["--classes", ",".join(fits)])
    way = f"Add {plain(cure, 200)}, or --allow order"
    if soft:
        way = "Name the columns of --label in that order, or add --allow order"
    return (
        f"columns in the order of the classes {plain(', '.join(map(str, classes)))}",
        f"columns that fit {plain(', '.join(fits))}: accuracy {found.accuracy:.4f}, not "
        f"{found.accuracy_as_given:.4f}",
        f"{way} where they are meant as they are",
    )


def falling(ranks: "Ranks", classes: Any, options: Request) -> Said | None:
    """What to say of one column that ranks the first class, where nobody named the positive one."""
    is_named = options.positive is not None or options.prediction is not None
    if is_named or options.any_order or not ranks.shown:
        return None
    first, second = (str(label) for label in classes)
    add, keep = (plain(shlex.join(["--positive", label]), 200) for label in (first, second))
    way = f"Add {add}, or {keep}"
    if options.soft_labels:
        way = "Name the column of --prob that --label has the shares of"
        way += ", or add --allow order" if options.any_order is not None else ", or leave it"
    return (
        f"one column that rises with {quoted(second)}, the second class",
        f"one that falls (AUC {1 - ranks.auc:.3f}, p below 0.001): it may be the probability of "
        f"{quoted(first)}",
        f"{way} where it is meant as it is",
    )
