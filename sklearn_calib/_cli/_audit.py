"""The command ``audit``: a report on a table of predictions."""

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import plain, quoted
from .._tables import UserError, label_column, number_column, read_table, split_names
from ..canonical import canonical_labels, canonical_proba
from ..exceptions import CalibrationWarning
from ..recalibrators import cross_fitted_proba
from ._printing import EXTRAS, Screen, print_losses, print_report, progress, write_report

if TYPE_CHECKING:
    import argparse

_ADVICE = ("identity", "temperature", "platt", "beta", "isotonic")
_ADVICE_ROWS = 200_000


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("audit", help="report on a table of predictions (csv or parquet)")
    parser.add_argument("file", metavar="FILE", help="csv (also compressed) or parquet; - is stdin")
    parser.add_argument("--label", required=True, metavar="COLUMN", help="the true labels")
    parser.add_argument(
        "--prob",
        required=True,
        action="append",
        metavar="COLUMN[,COLUMN...]",
        help="one column: the probability of the positive class; several: one per class, in the "
        "order of the sorted labels or of --classes; may be given several times",
    )
    parser.add_argument(
        "--classes",
        action="append",
        metavar="LABEL[,LABEL...]",
        help="the order of the columns; may be given several times",
    )
    parser.add_argument("--positive", metavar="LABEL", help="the positive class of two")
    parser.add_argument("--weight", metavar="COLUMN", help="sample weights")
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="how far a row of rounded probabilities may be from summing to 1 (default: 1e-6)",
    )
    parser.add_argument("--sep", metavar="CHARACTER", help="between the cells of a csv file")
    parser.add_argument("--decimal", choices=(".", ","), help="the decimal mark of a csv file")
    parser.add_argument("--encoding", metavar="NAME", help="of a csv file (default: utf-8)")
    parser.add_argument("--out", default="report.html", help="where to write (%(default)s)")
    parser.set_defaults(run=audit, modules=EXTRAS)


def audit(options: "argparse.Namespace") -> None:
    """Report on a table and say whether recalibration would help."""
    from ..report import calibration_report

    def pick(present):
        names = [options.label, *split_names(options.prob, present)]
        return [*names, options.weight] if options.weight is not None else names

    table = read_table(
        options.file,
        pick,
        sep=options.sep,
        decimal=options.decimal,
        encoding=options.encoding,
    )
    columns = split_names(options.prob, list(table.frame.columns))
    scores = np.column_stack([number_column(table, name) for name in columns])
    weight = None if options.weight is None else number_column(table, options.weight)
    labels = label_column(table, options.label)
    classes, positive = _classes(options, labels, len(columns))
    name = plain(", ".join(columns))
    try:
        proba = canonical_proba(scores, tolerance=options.tolerance, _where="audit")
        classes, codes = canonical_labels(labels, classes=classes, _where="audit")
        if len(classes) < 2:
            raise UserError(
                f"expected labels of at least two classes in column {quoted(options.label)}, got "
                f"one, {quoted(classes[0])}. Name all of them with --classes."
            )
        if positive is not None and classes.tolist().index(positive) == 0 and len(columns) == 1:
            proba = np.asarray(proba)[:, ::-1]  # the column is the probability of the first class
        screen = Screen()
        with progress("measuring") as advance:
            report = calibration_report(
                classes[codes],
                proba,
                sample_weight=weight,
                labels=classes,
                pos_label=positive,
                name=name,
                progress=advance,
            )
    except (ValueError, TypeError) as error:
        raise UserError(f"{options.file}: {_for_the_command(str(error))}") from error
    print_report(screen, report)
    path = write_report(report, options.out, f"Calibration of {name}")
    _advise(screen, proba, codes, classes, weight)
    screen.finish(path)


def _for_the_command(message):
    """An error of the library with its cure as an option of the command."""
    message = re.sub(
        r"call canonical_proba\(scores, tolerance=([^)]+)\) first", r"add --tolerance \1", message
    )
    message = re.sub(
        r"For logits call canonical_proba\(scores, kind='logits'\) first",
        "Turn logits into probabilities first",
        message,
    )
    return message.replace("pass labels= with all classes", "name all of them with --classes")


def _classes(options, labels, n_columns):
    """The classes in the order of the columns, in the type of the labels, and the positive one."""
    text = {str(value): value for value in labels.dropna().unique()}
    numeric = labels.dtype.kind in "iuf"
    classes = None
    if options.classes is not None:
        names = split_names(options.classes, text)
        if len(names) != max(n_columns, 2):
            raise UserError(
                f"expected {max(n_columns, 2)} classes in --classes, got {len(names)}. Name one "
                "per column (two for a single column)."
            )
        classes = [_label_of(name, text, numeric) for name in names]
        text = dict(zip(names, classes, strict=True))
    positive = None
    if options.positive is not None:
        positive = _label_of(options.positive, text, numeric)
        if positive not in text.values():
            known = ", ".join(plain(name, 40) for name in sorted(text)[:30])
            raise UserError(
                f"expected --positive among {known}, got {quoted(options.positive)}. Name one of "
                "the labels."
            )
    return classes, positive


def _label_of(name, text, numeric):
    """The label that a name on the command line means."""
    if name in text or not numeric:
        return text.get(name, name)
    try:
        number = float(name)
    except ValueError as error:
        raise UserError(
            f"expected a number, as the labels are, got {quoted(name)}. Check --classes and "
            "--positive."
        ) from error
    return next((label for label in text.values() if label == number), number)


def _advise(screen, proba, codes, classes, weight):
    """Cross-validated losses of some recalibrators: would recalibration help?"""
    rows = np.arange(len(codes))
    if len(rows) > _ADVICE_ROWS:
        rows = np.random.default_rng(0).choice(len(rows), _ADVICE_ROWS, replace=False)
    counts = np.bincount(codes[rows], minlength=len(classes))
    if counts[counts > 0].min() < 5 or (counts > 0).sum() < 2:
        screen.print("too few rows of some class to say whether recalibration would help")
        return
    sample = f", {len(rows)} rows drawn" if len(rows) < len(codes) else ""
    weight = np.ones(len(codes)) if weight is None else weight
    proba, codes, weight = proba[rows], codes[rows], weight[rows]
    numbers = np.arange(len(classes))
    pooled = {}
    with progress("recalibrating") as advance, warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        for number, name in enumerate(_ADVICE, 1):
            pooled[name] = cross_fitted_proba(
                name, proba, codes, cv=5, sample_weight=weight, classes=numbers
            )
            advance(number, len(_ADVICE))
    title = f"would recalibration help? (5-fold cross-validated{sample})"
    print_losses(screen, title, codes, pooled, numbers, weight)
