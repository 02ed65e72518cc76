"""The command line: a demonstration, and the audit of a table of predictions."""

import argparse
import os
import re
import stat
import sys
import warnings
from contextlib import contextmanager, suppress
from importlib.util import find_spec

import numpy as np

from .._show import plain, quoted
from .._tables import UserError, label_column, number_column, read_table, split_names
from .._version import __version__
from ..canonical import canonical_labels, canonical_proba
from ..exceptions import CalibrationWarning

_ADVICE = ("identity", "temperature", "platt", "beta", "isotonic")
_ADVICE_ROWS = 200_000


def main(argv=None):
    """Run the command; returns the exit code.

    0: done. 2: what the user can mend, in one sentence on the standard error. 130: interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no error
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(argv)
    try:
        if options.run is not _compile:
            _require("rich", "matplotlib", "pandas")
            _check_writable(options.out, getattr(options, "file", None))  # before the work
        options.run(options)
    except (UserError, MemoryError) as error:
        said = str(error) or "expected more memory. Draw some of the rows, or fewer columns."
        print(f"sklearn-calib: {plain(said, 2000)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sklearn-calib: interrupted", file=sys.stderr)
        return 130
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
    audit.add_argument("file", metavar="FILE", help="csv (also compressed) or parquet; - is stdin")
    audit.add_argument("--label", required=True, metavar="COLUMN", help="the true labels")
    audit.add_argument(
        "--prob",
        required=True,
        action="append",
        metavar="COLUMN[,COLUMN...]",
        help="one column: the probability of the positive class; several: one per class, in the "
        "order of the sorted labels or of --classes; may be given several times",
    )
    audit.add_argument(
        "--classes",
        action="append",
        metavar="LABEL[,LABEL...]",
        help="the order of the columns; may be given several times",
    )
    audit.add_argument("--positive", metavar="LABEL", help="the positive class of two")
    audit.add_argument("--weight", metavar="COLUMN", help="sample weights")
    audit.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="how far a row of rounded probabilities may be from summing to 1 (default: 1e-6)",
    )
    audit.add_argument("--sep", metavar="CHARACTER", help="between the cells of a csv file")
    audit.add_argument("--decimal", choices=(".", ","), help="the decimal mark of a csv file")
    audit.add_argument("--encoding", metavar="NAME", help="of a csv file (default: utf-8)")
    audit.add_argument("--out", default="report.html", help="where to write (%(default)s)")
    audit.set_defaults(run=_audit)

    ahead = commands.add_parser("compile", help="compile now what the first use would compile")
    ahead.set_defaults(run=_compile)
    return parser


def _compile(options):
    from .._ahead import compile_kernels

    compile_kernels()


# -- demo -----------------------------------------------------------------------------------------


def _demo(options):
    from sklearn import datasets
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB

    from ..meta import CalibratedModel
    from ..recalibrators import all_recalibrators
    from ..report import calibration_report

    X, y = getattr(datasets, f"load_{options.data}")(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    X, X_calib, y, y_calib = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    screen = _Screen()
    screen.print(
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
    _print_losses(screen, "on the test rows", y_test, {"(before)": before, **proba})
    with _progress("report") as advance:
        report = calibration_report(
            y_test,
            {"before": before, "after (temperature)": proba["temperature"]},
            progress=advance,
        )
    _print_report(screen, report)
    screen.finish(_write(report, options.out, f"Calibration demo: {options.data}"))


# -- audit ----------------------------------------------------------------------------------------


def _audit(options):
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
        proba = canonical_proba(scores, tolerance=options.tolerance, where="audit")
        classes, codes = canonical_labels(labels, classes=classes, where="audit")
        if len(classes) < 2:
            raise UserError(
                f"expected labels of at least two classes in column {quoted(options.label)}, got "
                f"one, {quoted(classes[0])}. Name all of them with --classes."
            )
        if positive is not None and classes.tolist().index(positive) == 0 and len(columns) == 1:
            proba = np.asarray(proba)[:, ::-1]  # the column is the probability of the first class
        screen = _Screen()
        with _progress("measuring") as advance:
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
    _print_report(screen, report)
    path = _write(report, options.out, f"Calibration of {name}")
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
    from sklearn.model_selection import StratifiedKFold

    from ..recalibrators import get_recalibrator

    rows = np.arange(len(codes))
    if len(rows) > _ADVICE_ROWS:
        rows = np.random.default_rng(0).choice(len(rows), _ADVICE_ROWS, replace=False)
    counts = np.bincount(codes[rows], minlength=len(classes))
    if counts[counts > 0].min() < 5 or (counts > 0).sum() < 2:
        screen.print("too few rows of some class to say whether recalibration would help")
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
    _print_losses(screen, title, codes, pooled, np.arange(len(classes)), weight)


# -- writing --------------------------------------------------------------------------------------


def _check_writable(out, file):
    """Refuse early what would fail after minutes of work, or would overwrite the table."""
    if not out:
        _refuse_out(out, "no name")
    try:
        mode = os.stat(out).st_mode
        if stat.S_ISDIR(mode):
            _refuse_out(out, "a folder")
        if file not in (None, "-") and os.path.exists(file) and os.path.samefile(out, file):
            _refuse_out(out, "the table itself")
        if not os.access(out, os.W_OK):
            _refuse_out(out, "a file that must not be changed")
    except FileNotFoundError:
        folder = os.path.dirname(os.path.realpath(out))
        if not os.path.isdir(folder):
            _refuse_out(out, "a folder that does not exist")
        if not os.access(folder, os.W_OK):
            _refuse_out(out, "a folder that is closed")
    except (OSError, ValueError) as error:
        _refuse_out(out, getattr(error, "strerror", None) or error)


def _refuse_out(out, got):
    raise UserError(
        f"expected a place to write {quoted(out, 200)}, got: {plain(got, 200)}. Choose one with "
        "--out."
    )


def _write(report, out, title):
    try:
        with _progress("pictures"):
            return report.to_html(out, title=title)
    except OSError as error:
        _refuse_out(out, error.strerror or error)


# -- printing -------------------------------------------------------------------------------------


class _Screen:
    """The standard output; when it breaks, the work goes on and the report is still written."""

    def __init__(self):
        from rich.console import Console

        class Plain(Console):
            def on_broken_pipe(self):
                raise BrokenPipeError

        # names of columns are no markup: [red] and :smile: are shown as they are
        self._console = Plain(markup=False, emoji=False)
        self._failed = None

    def print(self, *things, **options):
        if self._failed is None:
            try:
                self._console.print(*things, **options)
            except OSError as error:
                self._failed = error
                _forget_stdout()

    def finish(self, path):
        """Say where the report is; a disk that was full is an error, a closed pipe is none."""
        self.print(f"report: {plain(path, None)}", soft_wrap=True)
        if self._failed is not None and not isinstance(self._failed, BrokenPipeError):
            raise UserError(
                f"expected a standard output that takes the tables, got: {self._failed.strerror}. "
                f"The report is in {plain(path, None)}."
            )


def _forget_stdout():
    """Let what is still in the buffer go nowhere, or Python complains about it at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def _progress(task):
    """A progress bar on the error stream; yields advance(done, total)."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        number = bar.add_task(task)
        yield lambda done, total: bar.update(number, completed=done, total=total)


def _print_table(screen, title, header, lines):
    from rich.table import Table

    screen.print(f"\n{title}")
    table = Table()
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    screen.print(table)


def _print_losses(screen, title, y, proba, labels=None, weight=None):
    from ..metrics import brier_loss, expected_calibration_error, log_loss

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
    _print_table(screen, f"{title}; * best", header, lines)


def _print_report(screen, report):
    screen.print(f"{report.n_samples} rows, {len(report.classes)} classes")
    for name, value in report.accuracy.items():
        screen.print(f"accuracy of {plain(name)}: {value:.4f}")
    header = ("measure", "value", f"{report.level:.0%} interval", "if calibrated")
    for name in report.accuracy:
        lines = [
            (r.measure, f"{r.value:.4f}", f"{r.low:.4f}-{r.high:.4f}", f"< {r.if_calibrated:.4f}")
            for r in report.rows
            if r.model == name
        ]
        _print_table(screen, plain(name), header, lines)
    screen.print()
    for line in report.decomposition_lines():
        screen.print(line, highlight=False)
