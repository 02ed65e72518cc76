"""The console: results and tables on the standard output, remarks and progress beside it."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, TextIO

from .._show import Section, iter_terminal_renderables, make_printable
from ._messages import EXIT_USER_ERROR, invalid_option


class Output:
    """The standard output; when it breaks, the work goes on and files are still written."""

    def __init__(self) -> None:
        self._failed: OSError | None = None

    def print(self, *things: object, **options: Any) -> None:
        if self._failed is None:
            try:
                if sys.stdout is None:
                    raise OSError(errno.EBADF, "it is closed")
                self._print_flushed(*things, **options)
            except OSError as error:
                self._failed = error
                discard_stream(sys.stdout)

    def _print_flushed(self, *things: object, **options: Any) -> None:
        print(*things, flush=True)

    def print_paths_and_get_exit_code(
        self, written: dict[str, str | None], code: int = 0
    ) -> int:
        """Print what was written; returns the exit code.

        An output that could not be written is reported, and turns an exit code of 0
        into 2; a finding (3) stays. A pipe whose reader has gone is not an error.
        """
        paths = {
            what: make_printable(os.path.abspath(path), None)
            for what, path in written.items()
            if path is not None
        }
        for what, path in paths.items():
            self.print(f"{what}: {path}", soft_wrap=True)
        if self._failed is None or isinstance(self._failed, BrokenPipeError):
            return code
        places = "".join(f" The {what} is in {path}." for what, path in paths.items())
        print_note(
            "expected a standard output that takes the results, got "
            f"{get_os_error_reason(self._failed)}.{places} "
            "Lead it to a file with room, or to /dev/null."
        )
        return code or EXIT_USER_ERROR


class Screen(Output):
    """The standard output with tables."""

    def __init__(self) -> None:
        from rich.console import Console

        class BrokenPipeRaisingConsole(Console):
            def on_broken_pipe(self):
                raise BrokenPipeError

        super().__init__()
        # names of columns are not markup: [red] and :smile: are shown as they are;
        # numbers have no colour
        self._console = BrokenPipeRaisingConsole(
            markup=False, emoji=False, highlight=False
        )

    def _print_flushed(self, *things: object, **options: Any) -> None:
        self._console.print(*things, **options)

    def show_sections(self, *sections: Section) -> None:
        """Print sections, with an empty line after them."""
        for thing in iter_terminal_renderables(sections, self._console.width):
            self.print(thing, soft_wrap=isinstance(thing, str))
        self.print()


@contextmanager
def open_writable_standard_output(what: str, hint: str) -> Iterator[BinaryIO]:
    """Yield the standard output for a result of bytes; raise an error if it cannot be written."""
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
        discard_stream(sys.stdout)
        raise invalid_option(
            expected=f"a standard output that takes the {what}",
            got=get_os_error_reason(error),
            hint=hint,
        ) from error


def get_os_error_reason(error: OSError) -> str:
    """Return the message of the system about a file."""
    return make_printable(error.strerror or error, 200)


def print_note(text: str) -> None:
    """Print a remark on the error stream, unless that is closed or full."""
    if sys.stderr is not None:  # print would take the standard output
        try:
            print(
                f"sklearn-calib: {make_printable(text, 2000)}",
                file=sys.stderr,
                flush=True,
            )
        except (OSError, ValueError):
            discard_stream(sys.stderr)


def hold_descriptors() -> None:
    """Open the standard streams that are closed, or the next files that are opened become these."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(number)


def discard_stream(stream: TextIO | None) -> None:
    """Let what is still in a buffer go nowhere, or Python complains about it at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
        os.close(nowhere)


@contextmanager
def show_progress(task: str) -> Iterator[Callable[[int, int], None]]:
    """Return a progress bar on the error stream; yields advance(done, total)."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(
        console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        number = bar.add_task(task)
        yield lambda done, total: bar.update(number, completed=done, total=total)
