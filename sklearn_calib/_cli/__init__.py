"""The command line: one file per command; the parser, and what they share."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from .._files.tables import UserError
from .._show import plain
from .._version import __version__
from ..exceptions import CalibrationWarning
from . import _apply, _audit, _compare, _compile, _demo, _export, _fit, _monitor
from ._options import Parser, examples
from ._printing import check_writable, forget, hold_descriptors, note, standard_output
from ._wording import for_the_command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    0: done. 1: a defect of this program. 2: what the user can mend, in one sentence on the standard
    error. 3: a condition of ``--fail-if`` holds, ``fit`` gains nothing, or ``monitor`` raises
    an alarm. 130 and 143: interrupted and terminated.
    """
    hold_descriptors()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no error
            stream.reconfigure(errors="backslashreplace")
    try:
        with _ended_in_order():
            return _run(_parsed(argv))
    except (UserError, MemoryError) as error:
        said = str(error) or "expected more memory. Draw some of the rows, or fewer columns."
        note(said)
        return 2
    except KeyboardInterrupt:
        note("interrupted")
        return 130
    except BrokenPipeError:  # who read the output has seen enough
        return 0
    except Exception as error:
        if os.environ.get("SKLEARN_CALIB_TRACEBACK"):
            raise
        note(
            f"expected no error of this kind, got {type(error).__name__}: {plain(error, 200)}. "
            "Please report it; SKLEARN_CALIB_TRACEBACK=1 shows where it comes from."
        )
        return 1
    finally:
        _flush()


@contextmanager
def _ended_in_order():
    """SIGTERM ends the command as Ctrl-C does: temporary files go, with the usual code 143."""

    def end(number, _):
        raise SystemExit(128 + number)

    usual = threading.current_thread() is threading.main_thread()
    usual = usual and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if usual:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if usual:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _parsed(argv):
    """The options; ``--help`` and ``--version`` end here, as do options that are none."""
    try:
        return parser().parse_args(argv)
    except SystemExit as asked:
        if not asked.code and sys.stdout is not None:
            with (
                suppress(BrokenPipeError),  # the last flush forgets it
                standard_output("help", "Lead it to a file with room"),
            ):
                pass  # what argparse has printed arrives, or is an error
        raise


def _run(options):
    _require(*options.modules)
    if hasattr(options, "out") and not getattr(options, "no_page", False):
        check_writable(options.out)  # before the work
    with warnings.catch_warnings():
        warnings.simplefilter("always", CalibrationWarning)
        if hasattr(options, "any_order"):  # it words the order of the columns itself
            warnings.filterwarnings("ignore", r".*\bgot columns that fit\b", CalibrationWarning)
        warnings.showwarning = _show_warning
        return options.run(options) or 0


def _show_warning(message, category, filename, lineno, file=None, line=None):
    """What the library remarks, without the place in its code."""
    if issubclass(category, CalibrationWarning):
        note(for_the_command(str(message)))


def _flush():
    try:
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # closed
        forget(sys.stdout)


def _require(*modules):
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise UserError(
            f"expected the extras of the command line, got no {' and no '.join(missing)}. "
            "Run: pip install 'sklearn-calib[cli]'"
        )


def parser() -> Parser:
    """The parser of all commands; the documentation lists its options."""
    whole = Parser(
        prog="sklearn-calib",
        description="Measure and repair predicted probabilities.",
        epilog=examples(
            "sklearn-calib demo",
            "sklearn-calib audit predictions.csv --label outcome --prob p",
            "sklearn-calib compare old.csv new.csv --label outcome --prob p",
            "sklearn-calib fit cal.csv --label outcome --prob p --out map.json",
            "sklearn-calib apply map.json new.csv --prob p --out calibrated.csv",
            "sklearn-calib export map.json --to sql --dialect postgres",
            "sklearn-calib monitor week.csv --label outcome --prob p --state state.json",
        )
        + "\n\nCOMMAND --help has the options and examples of a command.",
    )
    whole.add_argument("--version", action="version", version=__version__)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for command in (_demo, _audit, _compare, _fit, _apply, _export, _monitor, _compile):
        command.add_to(commands)
    return whole
