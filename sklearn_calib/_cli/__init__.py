"""The command line: the parser, and one file for each command.

It may import `report` and the layers below it.
Start reading with `main` in `__init__.py`.
"""

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec

from .._files.arrow import cache_workbook
from .._files.atomic import DISK_FULL_ERRNOS
from .._show import make_printable, quote_text
from .._version import __version__
from ..exceptions import CalibrationWarning, InvalidInputError
from ._console import (
    discard_stream,
    get_os_error_reason,
    hold_descriptors,
    open_writable_standard_output,
    print_note,
)
from ._messages import (
    EXIT_DEFECT,
    EXIT_INTERRUPTED,
    EXIT_SUCCESS,
    EXIT_USER_ERROR,
    TERMINATING_SIGNALS,
    invalid_option,
    translate_message,
)
from ._options import Parser
from ._outputs import check_writable

_COMMANDS = (
    "demo",
    "audit",
    "audit-multilabel",
    "compare",
    "sample-size",
    "fit",
    "apply",
    "export",
    "threshold",
    "estimate-mean",
    "monitor",
    "compile",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code, one of ``MEANING_BY_EXIT_CODE``."""
    hold_descriptors()
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal cannot show is not an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    words = {}
    try:
        with _exit_cleanly_on_signals():
            options = _parse_options(argv)
            words = options.words
            return _run_command(options)
    except InvalidInputError as error:
        print_note(translate_message(error, **words))
        return EXIT_USER_ERROR
    except MemoryError as error:
        print_note(
            str(error)
            or "expected more memory. Draw some of the rows, or fewer columns."
        )
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        print_note("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The program that reads the output has read enough.
        return EXIT_SUCCESS
    except Exception as error:
        if os.environ.get("SKLEARN_CALIB_TRACEBACK"):
            raise
        # Errors of files that the user names have been translated before: what is left
        # are temporary files.
        if isinstance(error, OSError):
            print_note(_describe_file_system_error(error))
            return EXIT_USER_ERROR
        print_note(
            f"unexpected {type(error).__name__}: {make_printable(error, 200)}. "
            "Please report it; SKLEARN_CALIB_TRACEBACK=1 shows where it comes from."
        )
        return EXIT_DEFECT
    finally:
        _flush_stdout()


def _describe_file_system_error(error):
    """Return the message for a failure of the file system, such as a full temporary folder."""
    hint = "Check the disk and the permissions"
    if error.errno in DISK_FULL_ERRNOS:
        hint = "Make room, or name a folder for temporary files with TMPDIR"
    file = f" for {quote_text(error.filename, 200)}" if error.filename else ""
    return str(
        invalid_option(
            expected="files that the system reads and writes",
            got=f"{get_os_error_reason(error)}{file}",
            hint=hint,
        )
    )


@contextmanager
def _exit_cleanly_on_signals():
    """End the command at a signal as Ctrl-C does: temporary files go, with the usual code."""

    def exit_by_signal(number, _):
        # the next one would disturb the tidying up
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    signals = [
        getattr(signal, name) for name in TERMINATING_SIGNALS if hasattr(signal, name)
    ]
    if threading.current_thread() is not threading.main_thread():
        signals = []
    usual = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]
    for number in usual:  # not a signal that nohup has set to be ignored
        signal.signal(number, exit_by_signal)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


def _parse_options(argv):
    """Return the options, or end after ``--help``, ``--version`` and unknown options."""
    try:
        arguments = [*(sys.argv[1:] if argv is None else argv)] or ["help"]
        if arguments[0] == "help":
            arguments = [*arguments[1:], "--help"]
        return build_parser(*arguments[:1]).parse_args(arguments)
    except SystemExit as asked:
        if not asked.code and sys.stdout is not None:
            with (
                suppress(BrokenPipeError),  # the last flush forgets it
                open_writable_standard_output("help", "Lead it to a file with room"),
            ):
                pass  # what argparse has printed arrives, or is an error
        raise


def _run_command(options):
    _check_modules(options.modules)
    options.check_combinations()
    if options.out is not None and not options.no_page:
        check_writable(options.out)  # before the work
    with warnings.catch_warnings(), cache_workbook():
        warnings.simplefilter("always", CalibrationWarning)
        warnings.showwarning = _make_warning_printer(options.any_order is not None)
        return options.run(options) or 0


def _make_warning_printer(any_order):
    """Return what shows each remark of the library once, without the place in its code.

    Commands with ``--allow order`` report on the order of the columns themselves.
    """
    shown = set()

    def show_once(message, category, filename, lineno, file=None, line=None):
        if not isinstance(message, CalibrationWarning):
            return
        from .._validation import COLUMN_ORDER_HINT
        from ..summary import DROPPED_ROWS_HINT

        if any_order and COLUMN_ORDER_HINT in message.hint:
            return
        text = translate_message(message)
        if message.hint == DROPPED_ROWS_HINT:
            text = f"left out, with missing values: {message.value.removeprefix('none in ')}"
        if text not in shown:
            shown.add(text)
            print_note(text)

    return show_once


def _flush_stdout():
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # closed
        discard_stream(sys.stdout)


def _check_modules(modules):
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise invalid_option(
            sentence=(
                "Packages that the command line needs are not installed: "
                f"{', '.join(missing)}"
            ),
            hint="Run: pip install 'sklearn-calib[cli]'",
        )


def build_parser(command: str = "") -> Parser:
    """Return the parser of a command, or of all commands for another text.

    The documentation lists its options.
    """
    whole = Parser(
        prog="sklearn-calib",
        description="Measure and repair predicted probabilities.",
        examples=(
            "sklearn-calib demo",
            "sklearn-calib audit predictions.csv --label outcome --prob p",
            "sklearn-calib fit cal.csv --label outcome --prob p --out map.json",
        ),
        epilog="\n\nCOMMAND --help has the options and examples of a command.",
    )
    whole.add_argument(
        "--version", action="version", version=__version__, help=argparse.SUPPRESS
    )
    commands = whole.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in [command] if command in _COMMANDS else _COMMANDS:
        module = name.replace("-", "_")
        import_module(f"._{module}", __name__).add_command(commands)
    return whole
