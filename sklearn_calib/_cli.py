"""The command line: a demonstration, and the audit of a table of predictions."""

import argparse
import os
import sys
import warnings
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np

from ._version import __version__
from .canonical import canonical_labels, canonical_proba
from .exceptions import CalibrationWarning

_ADVICE = ("identity", "temperature", "platt", "beta", "isotonic")
_ADVICE_ROWS = 200_000


class UserError(Exception):
    """What the user can mend; printed without a traceback, exit code 2."""


def main(argv=None):
    """Run the command; returns the exit code."""
    options = _parser().parse_args(argv)
    try:
        if options.run is not _compile:
            _require("rich", "matplotlib", "pandas")
            _check_writable(options.out)  # before the work, not after it
        options.run(options)
    except UserError as error:
        print(f"sklearn-calib: {error}", file=sys.stderr)
        return 2
    return 0


def _require(*modules):
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise UserError(
            f"expected the extras of the command line, got no {' and no '.join(missing)}. "
            "Run: pip install 'sklearn-calib[cli]'"
        )


def _parser():
    parser = argparse.ArgumentParser(
        prog="sklearn-calib", description="Measure and repair predicted probabilities."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="train, recalibrate and report on embedded data")
    demo.add_argument("--data", choices=("digits", "breast_cancer"), default="digits")
    demo.add_argument("--out", default="report.html", help="where to write (%(default)s)")
    demo.set_defaults(run=_demo)

    audit = commands.add_parser("audit", help="report on a table of predictions (csv or parquet)")
    audit.add_argument("file", metavar="FILE")
    audit.add_argument("--label", required=True, metavar="COLUMN", help="the true labels")
    audit.add_argument(
        "--prob",
        required=True,
        metavar="COLUMN[,COLUMN...]",
        help="one column: the probability of the positive class; several: one per class, in the "
        "order of the sorted labels or of --classes",
    )
    audit.add_argument("--classes", metavar="LABEL[,LABEL...]", help="the order of the columns")
    audit.add_argument("--positive", metavar="LABEL", help="the positive class of two")
    audit.add_argument("--weight", metavar="COLUMN", help="sample weights")
    audit.add_argument("--out", default="report.html", help="where to write (%(default)s)")
    audit.set_defaults(run=_audit)

    ahead = commands.add_parser("compile", help="compile now what the first use would compile")
    ahead.set_defaults(run=_compile)
    return parser


def _compile(options):
    from ._ahead import compile_kernels

    compile_kernels()


# -- demo -----------------------------------------------------------------------------------------


def _demo(options):
    from sklearn import datasets
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB

    from .meta import CalibratedModel
    from .recalibrators import all_recalibrators
    from .report import calibration_report

    X, y = getattr(datasets, f"load_{options.data}")(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    X, X_calib, y, y_calib = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    console = _console()
    console.print(
        f"{options.data}: naive Bayes on {len(y)} rows, recalibrated on {len(y_calib)}, "
        f"measured on {len(y_test)}"
    )
    model = GaussianNB(var_smoothing=1e-3).fit(X, y)
    before = model.predict_proba(X_test)
    proba = {}
    with _progress("recalibrating") as advance:
        names = [name for name in all_recalibrators() if name != "identity"]
        for number, name in enumerate(names, 1):
            calibrated = CalibratedModel(FrozenEstimator(model), name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CalibrationWarning)
                proba[name] = calibrated.fit(X_calib, y_calib).predict_proba(X_test)
            advance(number, len(names))
    _print_losses(console, "on the test rows", y_test, {"(before)": before, **proba})
    with _progress("report") as advance:
        report = calibration_report(
            y_test,
            {"before": before, "after (temperature)": proba["temperature"]},
            progress=advance,
        )
    _print_report(console, report)
    _write(console, report, options.out, f"Calibration demo: {options.data}")


# -- audit ----------------------------------------------------------------------------------------


def _audit(options):
    from .report import calibration_report

    frame, columns = _read(options)
    labels = frame[options.label]
    classes, positive = _classes(options, labels, len(columns))
    weight = None
    if options.weight:
        weight = _numeric(frame, options.weight, options.file).ravel()
    scores = np.column_stack([_numeric(frame, name, options.file) for name in columns])
    try:
        proba = canonical_proba(scores, where="audit")
        classes, codes = canonical_labels(labels, classes=classes, where="audit")
        if len(classes) < 2:
            raise UserError(
                f"expected labels of at least two classes in column {options.label!r}, got one, "
                f"{classes[0]!r}. Name all of them with --classes."
            )
        if positive is not None and classes.tolist().index(positive) == 0 and len(columns) == 1:
            proba = np.asarray(proba)[:, ::-1]  # the column is the probability of the first class
        console = _console()
        with _progress("measuring") as advance:
            report = calibration_report(
                classes[codes],
                proba,
                sample_weight=weight,
                labels=classes,
                pos_label=positive,
                name=options.prob,
                progress=advance,
            )
    except (ValueError, TypeError) as error:
        raise UserError(f"{options.file}: {error}") from error
    _print_report(console, report)
    _advise(console, proba, codes, classes, weight)
    _write(console, report, options.out, f"Calibration of {options.prob}")


def _read(options):
    """The columns that are needed, and no others: tables can be wide."""
    import pandas as pd

    columns = [name.strip() for name in options.prob.split(",")]
    needed = list(dict.fromkeys([options.label, *columns, *filter(None, [options.weight])]))
    parquet = options.file.lower().endswith((".parquet", ".pq"))
    try:
        if parquet:
            from pyarrow.parquet import read_schema

            _check_columns(needed, read_schema(options.file).names, options.file)
            frame = pd.read_parquet(options.file, columns=needed)
        else:
            _check_columns(needed, pd.read_csv(options.file, nrows=0).columns, options.file)
            frame = pd.read_csv(options.file, usecols=needed)
    except UserError:
        raise
    except Exception as error:  # pandas, pyarrow and the system raise a dozen kinds
        raise UserError(
            f"expected a readable {'parquet' if parquet else 'csv'} file, got {options.file!r} "
            f"({type(error).__name__}: {error}). Check the path and the format."
        ) from error
    if not len(frame):
        raise UserError(f"expected rows in {options.file}, got none. Check the export.")
    return frame, columns


def _check_columns(needed, present, file):
    for name in needed:
        if name not in present:
            known = ", ".join(map(str, list(present)[:30]))
            raise UserError(
                f"expected a column {name!r} in {file}, got: {known}. Check the spelling."
            )


def _numeric(frame, name, file):
    values = frame[name]
    if not (values.dtype.kind in "fiub" if hasattr(values.dtype, "kind") else False):
        example = next((v for v in values if not isinstance(v, int | float)), values.iloc[0])
        raise UserError(
            f"expected numbers in column {name!r} of {file}, got for instance {example!r}. "
            "Clean the column first."
        )
    values = values.to_numpy(dtype=float, na_value=np.nan)
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise UserError(
            f"expected a number in every row of column {name!r} of {file}, got {values[row]} in "
            f"row {row} (of {int(bad.sum())} such rows). Drop or repair those rows."
        )
    return values[:, None]


def _classes(options, labels, n_columns):
    """The classes in the order of the columns, in the type of the labels, and the positive one."""
    text = {str(value): value for value in labels.dropna().unique()}
    classes = None
    if options.classes:
        names = [name.strip() for name in options.classes.split(",")]
        if len(names) != max(n_columns, 2):
            raise UserError(
                f"expected {max(n_columns, 2)} classes in --classes, got {len(names)}. Name one a "
                "column (two for a single column)."
            )
        convert = (lambda v: v) if labels.dtype.kind not in "iuf" else _number
        classes = [text.get(name, convert(name)) for name in names]
    positive = None
    if options.positive is not None:
        if options.positive not in text:
            raise UserError(
                f"expected --positive among {', '.join(sorted(text))}, got {options.positive!r}. "
                "Name one of the labels."
            )
        positive = text[options.positive]
    return classes, positive


def _number(name):
    try:
        return float(name)
    except ValueError as error:
        raise UserError(
            f"expected numbers in --classes, as in the labels, got {name!r}. Check them."
        ) from error


def _advise(console, proba, codes, classes, weight):
    """Cross-validated losses of some recalibrators: would recalibration help?"""
    from sklearn.model_selection import StratifiedKFold

    from .recalibrators import get_recalibrator

    rows = np.arange(len(codes))
    if len(rows) > _ADVICE_ROWS:
        rows = np.random.default_rng(0).choice(len(rows), _ADVICE_ROWS, replace=False)
    counts = np.bincount(codes[rows], minlength=len(classes))
    if counts[counts > 0].min() < 5 or (counts > 0).sum() < 2:
        console.print("too few rows of some class to say whether recalibration would help")
        return
    weight = np.ones(len(codes)) if weight is None else weight
    proba, codes, weight = proba[rows], codes[rows], weight[rows]
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(codes, codes))
    pooled = {}
    with _progress("recalibrating") as advance:
        for number, name in enumerate(_ADVICE, 1):
            pooled[name] = np.empty(proba.shape)
            for train, test in folds:
                recalibrator = get_recalibrator(name)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalibrationWarning)
                    recalibrator.fit(
                        proba[train],
                        codes[train],
                        sample_weight=weight[train],
                        classes=np.arange(len(classes)),
                    )
                pooled[name][test] = recalibrator.predict_proba(proba[test])
            advance(number, len(_ADVICE))
    sample = "" if len(rows) < _ADVICE_ROWS else f", {_ADVICE_ROWS} rows drawn"
    title = f"would recalibration help? (5-fold cross-validated{sample})"
    _print_losses(console, title, codes, pooled, np.arange(len(classes)), weight)


def _check_writable(path):
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK) or os.path.isdir(path):
        raise UserError(
            f"expected a place to write {path!r}, got a folder that does not exist or is closed. "
            "Choose one with --out."
        )


def _write(console, report, path, title):
    with _progress("pictures"):
        path = report.to_html(path, title=title)
    console.print(f"report: {path}", soft_wrap=True)


# -- printing -------------------------------------------------------------------------------------


def _console():
    from rich.console import Console

    return Console()


@contextmanager
def _progress(task):
    """A progress bar on the error stream; yields advance(done, total)."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        number = bar.add_task(task)
        yield lambda done, total: bar.update(number, completed=done, total=total)


def _print_table(console, title, header, lines):
    from rich.table import Table

    console.print(f"\n{title}")
    table = Table()
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    console.print(table)


def _print_losses(console, title, y, proba, labels=None, weight=None):
    from .metrics import brier_loss, expected_calibration_error, log_loss

    functions = (log_loss, brier_loss, expected_calibration_error)
    values = {
        name: [f(y, p, labels=labels, sample_weight=weight) for f in functions]
        for name, p in proba.items()
    }
    best = np.min(list(values.values()), axis=0)
    lines = [
        (name, *(f"{'* ' if v == b else ''}{v:.4f}" for v, b in zip(row, best, strict=True)))
        for name, row in values.items()
    ]
    header = ("recalibrator", "log loss", "Brier", "ECE")
    _print_table(console, f"{title}; * best", header, lines)


def _print_report(console, report):
    console.print(f"{report.n_samples} rows, {len(report.classes)} classes")
    for name, value in report.accuracy.items():
        console.print(f"accuracy of {name}: {value:.4f}")
    header = ("measure", "value", f"{report.level:.0%} interval", "if calibrated")
    for name in report.accuracy:
        lines = [
            (r.measure, f"{r.value:.4f}", f"{r.low:.4f}-{r.high:.4f}", f"< {r.if_calibrated:.4f}")
            for r in report.rows
            if r.model == name
        ]
        _print_table(console, name, header, lines)
    console.print()
    for line in report.decomposition_lines():
        console.print(line, highlight=False)
