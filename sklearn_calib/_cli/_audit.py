"""The command ``audit``: a report on tables of predictions, or on saved summaries of them."""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from .._file_names import files_of
from .._show import plain, quoted
from .._tables import UserError, label_column, number_column, read_table, split_names
from ..canonical import canonical_labels, canonical_proba
from ..summary import CalibrationSummary
from ._advice import advise_on_rows, advise_on_summary
from ._classes import check_two_classes, named_classes
from ._large import audit_large, is_large
from ._printing import (
    EXTRAS,
    Screen,
    check_writable,
    print_report,
    progress,
    write_report,
)

if TYPE_CHECKING:
    import argparse


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("audit", help="report on a table of predictions (csv or parquet)")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="csv (also compressed) or parquet, a folder or a pattern of these, or summaries that "
        "--save wrote; - is stdin",
    )
    parser.add_argument(
        "--label", metavar="COLUMN", help="the true labels; saved summaries need no columns"
    )
    parser.add_argument(
        "--prob",
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
    parser.add_argument(
        "--by",
        action="append",
        metavar="COLUMN[,COLUMN...]",
        help="also one line for each value of a column, or each combination of several",
    )
    parser.add_argument(
        "--save", metavar="FILE", help="write a summary that audit reads again (two classes)"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="share the files out to the workers of a dask scheduler"
    )
    parser.add_argument("--out", default="report.html", help="where to write (%(default)s)")
    parser.set_defaults(run=audit, modules=EXTRAS)


def audit(options: "argparse.Namespace") -> None:
    """Report on a table and say whether recalibration would help."""
    files = _files(options.files)
    for place, option in ((options.out, "--out"), (options.save, "--save")):
        if place is not None:
            check_writable(place, files, option)  # before the work
    try:
        if is_large(files, options):
            audit_large(files, options)
        else:
            _audit_rows(files, options)
    except (ValueError, TypeError) as error:
        raise UserError(_for_the_command(str(error))) from error


def _files(patterns):
    """The paths that are meant; - is the standard input."""
    for pattern in patterns:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", pattern):
            raise UserError(
                f"expected the path of a local file, got the address {quoted(pattern)}. Download "
                "it, or give the path alone."
            )
    if "-" in patterns and len(patterns) > 1:
        raise UserError("expected the standard input alone, got also files. Name files alone.")
    try:
        return [path for _, path, _ in files_of(patterns, "audit")]
    except ValueError as error:
        raise UserError(str(error).removeprefix("audit: ")) from error


def _audit_rows(files, options):
    """Report on rows in memory."""
    from ..report import calibration_report

    tables = [_read(file, options) for file in files]
    columns = split_names(options.prob, list(tables[0].frame.columns))
    scores = np.vstack(
        [np.column_stack([number_column(t, name) for name in columns]) for t in tables]
    )
    weight = None
    if options.weight is not None:
        weight = np.concatenate([number_column(table, options.weight) for table in tables])
    labels = _joined([label_column(table, options.label) for table in tables])
    classes, positive = named_classes(options, labels, len(columns))
    name = plain(", ".join(columns))
    try:
        proba = canonical_proba(scores, tolerance=options.tolerance, _where="audit")
        classes, codes = canonical_labels(labels, classes=classes, _where="audit")
        check_two_classes(classes, options)
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
        where = files[0] if len(files) == 1 else f"{len(files)} files"
        raise ValueError(f"{where}: {error}") from error
    print_report(screen, report)
    path = write_report(report, options.out, f"Calibration of {name}")
    weight = np.ones(len(codes)) if weight is None else weight
    if len(classes) == 2:
        summary = CalibrationSummary(classes=[0, 1]).update(codes, proba, sample_weight=weight)
        advise_on_summary(screen, summary)
    else:
        advise_on_rows(screen, proba, codes, classes, weight)
    screen.finish(path)


def _read(file, options):
    def pick(present):
        names = [options.label, *split_names(options.prob, present)]
        return [*names, options.weight] if options.weight is not None else names

    form = {"sep": options.sep, "decimal": options.decimal, "encoding": options.encoding}
    return read_table(file, pick, **form)


def _joined(columns):
    import pandas as pd

    return columns[0] if len(columns) == 1 else pd.concat(columns, ignore_index=True)


def _for_the_command(message):
    """An error of the library with its cure as an option of the command."""
    message = re.sub(r"^(summarize|find_classes): ", "", message)
    message = re.sub(
        r"call canonical_proba\(scores, tolerance=([^)]+)\) first", r"add --tolerance \1", message
    )
    message = re.sub(
        r"For logits call canonical_proba\(scores, kind='logits'\) first",
        "Turn logits into probabilities first",
        message,
    )
    return message.replace("pass labels= with all classes", "name all of them with --classes")
