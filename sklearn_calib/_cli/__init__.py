"""The command line: one file per command; the parser, and what they share."""

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from .._show import plain
from .._tables import UserError
from .._version import __version__
from . import _audit, _compile, _demo
from ._printing import check_writable


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    0: done. 2: what the user can mend, in one sentence on the standard error. 130: interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no error
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(argv)
    try:
        _require(*options.modules)
        if hasattr(options, "out"):
            check_writable(options.out)  # before the work
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
    for command in (_demo, _audit, _compile):
        command.add_to(commands)
    return parser
