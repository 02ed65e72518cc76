"""What the commands share: tables on the screen, progress, and the report's file."""

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from .._files.whole import write_whole
from .._show import Section, in_terminal, plain, quoted
from ..exceptions import InvalidInputError
from ._codes import MENDABLE
from ._messages import invalid_option
from ._request import Request

if TYPE_CHECKING:
    from ..report import CalibrationReport, LabelReport


EXTRAS = ("rich", "pandas")  # what a command that prints tables needs


class Output:
    """The standard output; when it breaks, the work goes on and files are still written."""

    def __init__(self) -> None:
        self._failed: OSError | None = None

    def print(self, *things: object, **options: Any) -> None:
        if self._failed is None:
            try:
                if sys.stdout is None:
                    raise OSError(errno.EBADF, "it is closed")
                self._write(*things, **options)
            except OSError as error:
                self._failed = error
                forget(sys.stdout)

    def _write(self, *things: object, **options: Any) -> None:
        print(*things, flush=True)

    def finish(self, written: dict[str, str | None], code: int = 0) -> int:
        """Say what was written; returns the exit code.

        An output that could not be written is said, and makes an exit code 2 of 0; what was found
        (3) stays. A pipe whose reader has gone is no error.
        """
        paths = {
            what: plain(os.path.abspath(path), None)
            for what, path in written.items()
            if path is not None
        }
        for what, path in paths.items():
            self.print(f"{what}: {path}", soft_wrap=True)
        if self._failed is None or isinstance(self._failed, BrokenPipeError):
            return code
        places = "".join(f" The {what} is in {path}." for what, path in paths.items())
        note(
            "expected a standard output that takes the results, got "
            f"{reason(self._failed)}.{places} Lead it to a file with room, or to /dev/null."
        )
        return code or MENDABLE


class Screen(Output):
    """The standard output with tables."""

    def __init__(self) -> None:
        from rich.console import Console

        class Plain(Console):
            def on_broken_pipe(self):
                raise BrokenPipeError

        super().__init__()
        # names of columns are no markup: [red] and :smile: are shown as they are; numbers have
        # no colour
        self._console = Plain(markup=False, emoji=False, highlight=False)

    def _write(self, *things: object, **options: Any) -> None:
        self._console.print(*things, **options)

    def show(self, *sections: Section) -> None:
        """Print sections, with an empty line after them."""
        for thing in in_terminal(sections, self._console.width):
            self.print(thing, soft_wrap=isinstance(thing, str))
        self.print()


@contextmanager
def standard_output(what: str, cure: str) -> Iterator[BinaryIO]:
    """The standard output for a result of bytes; refuses where it cannot be written."""
    stream: Any = sys.stdout
    try:
        if stream is None:
            raise OSError(errno.EBADF, "it is closed")
        stream.flush()
        stream = getattr(stream, "buffer", stream)
        yield stream
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget(sys.stdout)
        raise invalid_option(
            expected=f"a standard output that takes the {what}", got=reason(error), hint=cure
        ) from error


def reason(error: OSError) -> str:
    """What the system says of a file."""
    return plain(error.strerror or error, 200)


def note(text: str) -> None:
    """A remark on the error stream; where that is closed or full, nowhere."""
    if sys.stderr is not None:  # print would take the standard output
        try:
            print(f"sklearn-calib: {plain(text, 2000)}", file=sys.stderr, flush=True)
        except (OSError, ValueError):
            forget(sys.stderr)


def hold_descriptors() -> None:
    """Open the standard streams that are closed, or the next files that are opened become these."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(number)


def forget(stream: TextIO | None) -> None:
    """Let what is still in a buffer go nowhere, or Python complains about it at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
        os.close(nowhere)


@contextmanager
def progress(task: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on the error stream; yields advance(done, total)."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        number = bar.add_task(task)
        yield lambda done, total: bar.update(number, completed=done, total=total)


def check_writable(out: str, files: Sequence[str] = (), option: str = "--out") -> None:
    """Refuse early what would fail after minutes of work, or would overwrite a table."""
    if not out:
        raise unwritable_output(out, "no name", option)
    try:
        mode = os.stat(out).st_mode
        if stat.S_ISDIR(mode):
            raise unwritable_output(out, "a folder", option)
        if any(_is_of(out, file) for file in files):
            raise unwritable_output(out, "the table itself", option)
        if not os.access(out, os.W_OK):
            raise unwritable_output(out, "a file that must not be changed", option)
    except FileNotFoundError:
        folder = os.path.dirname(os.path.realpath(out))
        if not os.path.isdir(folder):
            raise unwritable_output(out, "a folder that does not exist", option) from None
        if not os.access(folder, os.W_OK):
            raise unwritable_output(out, "a folder that is closed", option) from None
    except (OSError, ValueError) as error:
        raise unwritable_output(out, getattr(error, "strerror", None) or error, option) from error


def _is_of(out, file):
    """Whether a path leads to a table; "-" is the file that the standard input was opened on."""
    if file != "-":
        return os.path.exists(file) and os.path.samefile(out, file)
    try:
        return os.path.samestat(os.stat(out), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError, AttributeError):  # a stream that is no file
        return False


def check_outputs(options: Request, files: Sequence[str]) -> None:
    """Refuse early outputs that cannot be written, that are inputs, or that are one file."""
    names = ("out", "json", "markdown", "save")
    given = {f"--{name}": getattr(options, name) for name in names}
    if options.no_page:
        del given["--out"]
    places: dict[str, str] = {}
    for option, out in given.items():
        if out is None:
            continue
        if out == "-":
            raise unwritable_output(out, "the standard output, which has the report", option)
        check_writable(out, [*files, *options.files], option)
        place = os.path.realpath(out)
        if place in places and not _takes_all(out):
            raise unwritable_output(out, f"also the file of {places[place]}", option)
        places[place] = option


def _takes_all(out):
    """Whether it is a device or a pipe, such as /dev/null."""
    return os.path.exists(out) and not os.path.isfile(out)


def unwritable_output(out: str, got: object, option: str = "--out") -> InvalidInputError:
    return invalid_option(
        expected=f"a place to write {quoted(out, 200)}",
        got=plain(got, 200),
        hint=f"Choose one with {option}",
    )


def write_text(text: str | bytes, out: str, option: str) -> None:
    """Write a text whole or not at all."""
    try:
        write_whole(out, text)
    except OSError as error:
        raise unwritable_output(out, error.strerror or error, option) from error


def write_json(content: dict[str, Any], out: str) -> None:
    """Write the numbers that ``--json`` asks for."""
    write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", out, "--json")


def write_results(
    options: Request, numbers: Callable[[], dict[str, Any]], text: Callable[[], str]
) -> dict[str, str | None]:
    """Write what ``--json`` and ``--markdown`` ask for; returns where they are."""
    if options.json is not None:
        write_json(numbers(), options.json)
    if options.markdown is not None:
        write_text(text(), options.markdown, "--markdown")
    return {"numbers": options.json, "text": options.markdown}


def write_report(report: "CalibrationReport | LabelReport", out: str, title: str) -> str:
    try:
        with progress("pictures"):
            return str(report.to_html(out, title=title))
    except OSError as error:
        raise unwritable_output(out, error.strerror or error) from error
