"""The classes that the options of ``audit`` name, in the type of the labels of the table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._show import plain, quoted
from .._typing import AnyArray
from ..exceptions import meant
from ._names import split_names
from ._options import form_of
from ._wording import refuse

if TYPE_CHECKING:
    import argparse


def check_two_classes(classes: Any, options: "argparse.Namespace") -> None:
    """Refuse where all labels are the same."""
    if len(classes) < 2:
        refuse(
            f"labels of at least two classes in column {quoted(options.label)}",
            f"one, {quoted(classes[0])}",
            "Name all of them with --classes",
        )


def named_classes(
    options: "argparse.Namespace", labels: Any, n_columns: int
) -> tuple[list[Any] | None, Any]:
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
            refuse(
                f"{max(n_columns, 2)} classes in --classes",
                f"{len(names)}",
                "Name one per column (two for a single column)",
            )
        classes = [_label_of(name, text, numeric) for name in names]
        text = dict(zip(names, classes, strict=True))
    positive = None
    if options.positive is not None:
        if n_columns > 2:
            refuse("--positive with two classes", f"{n_columns} columns of --prob", "Leave it out")
        positive = _label_of(options.positive, text, numeric)
        if positive not in text.values():
            labels_as_text = sorted({str(value) for value in text.values()})
            known = ", ".join(plain(name, 40) for name in labels_as_text[:30])
            refuse(
                f"--positive among {known}",
                quoted(options.positive),
                meant(options.positive, labels_as_text, "Name one of the labels"),
            )
    return classes, positive


def _label_of(name, text, numeric):
    """The label that a name on the command line means."""
    if name in text or not numeric:
        return text.get(name, name)
    try:
        number = int(name) if name.strip().isdecimal() else float(name)
    except ValueError:
        refuse("a number, as the labels are", quoted(name), "Check --classes and --positive")
    return next((label for label in text.values() if label == number), number)


def classes_of(
    files: str | Sequence[str], n_columns: int, options: "argparse.Namespace", where: str
) -> tuple[AnyArray, bool]:
    """The classes that the labels of files show, or that were named, in the order of the columns.

    And whether a single column is the probability of the first of them.
    """
    import pandas as pd

    from ..canonical import canonical_labels
    from ..summary import find_classes

    reading = {"csv": form_of(options), "drop_missing": options.drop_missing}
    found = find_classes(files, label=options.label, **reading)
    named, positive = named_classes(options, pd.Series(found), n_columns)
    given: Any = found if named is None else named
    classes, _ = canonical_labels(given, classes=given, _where=where)
    check_two_classes(classes, options)
    return classes, positive is not None and n_columns == 1 and classes[0] == positive
