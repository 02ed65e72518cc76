"""The files that commands write: rejected early, written whole or not at all."""

import json
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._files.atomic import write_atomically
from .._show import make_printable, quote_text
from ..exceptions import InvalidInputError
from ._console import show_progress
from ._messages import invalid_option
from ._request import Request

if TYPE_CHECKING:
    from ..report import CalibrationReport, LabelReport, SectionPage


def check_writable(out: str, files: Sequence[str] = (), option: str = "--out") -> None:
    """Reject early what would fail after minutes of work, or would overwrite a table."""
    if not out:
        raise unwritable_output(out, "the name is empty", option)
    try:
        mode = os.stat(out).st_mode
        if stat.S_ISDIR(mode):
            raise unwritable_output(out, "it is a folder", option)
        if any(_is_same_file(out, file) for file in files):
            raise unwritable_output(out, "it is the table itself", option)
        if not os.access(out, os.W_OK):
            raise unwritable_output(out, "it is write-protected", option)
    except FileNotFoundError:
        folder = os.path.dirname(os.path.realpath(out))
        if not os.path.isdir(folder):
            raise unwritable_output(out, "its folder does not exist", option) from None
        if not os.access(folder, os.W_OK):
            raise unwritable_output(
                out, "its folder is write-protected", option
            ) from None
    except (OSError, ValueError) as error:
        raise unwritable_output(
            out, getattr(error, "strerror", None) or error, option
        ) from error


def _is_same_file(out, file):
    """Return whether a path leads to a table.

    "-" is the file that the standard input was opened on.
    """
    if file != "-":
        return os.path.exists(file) and os.path.samefile(out, file)
    try:
        return os.path.samestat(os.stat(out), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError, AttributeError):  # a stream that is not a file
        return False


def check_outputs_writable_and_distinct(options: Request, files: Sequence[str]) -> None:
    """Reject early outputs that cannot be written, that are inputs, or that are one file."""
    names = ("out", "json", "markdown", "save")
    output_by_option = {f"--{name}": getattr(options, name) for name in names}
    if options.no_page:
        del output_by_option["--out"]
    places: dict[str, str] = {}
    for option, out in output_by_option.items():
        if out is None:
            continue
        if out == "-":
            raise unwritable_output(out, "the standard output has the report", option)
        check_writable(out, [*files, *options.files], option)
        place = os.path.realpath(out)
        if place in places and not is_device_or_pipe(out):
            raise unwritable_output(
                out, f"it is also the file of {places[place]}", option
            )
        places[place] = option


def is_device_or_pipe(out: str) -> bool:
    """Return whether it is a device or a pipe, such as /dev/null."""
    return os.path.exists(out) and not os.path.isfile(out)


def unwritable_output(
    out: str, got: object, option: str = "--out"
) -> InvalidInputError:
    return invalid_option(
        sentence=f"{quote_text(out, 200)} cannot be written: {make_printable(got, 200)}",
        hint=f"Choose one with {option}",
    )


@contextmanager
def translate_write_errors(out: str, option: str = "--out") -> Iterator[None]:
    """Turn errors of the system that are raised inside into one about an output."""
    try:
        yield
    except OSError as error:
        raise unwritable_output(out, error.strerror or error, option) from error


def write_text_to_file(text: str | bytes, out: str, option: str) -> None:
    """Write a text whole or not at all."""
    with translate_write_errors(out, option):
        write_atomically(out, text)


def write_json_to_file(content: dict[str, Any], out: str) -> None:
    """Write the numbers for ``--json``."""
    write_text_to_file(
        json.dumps(content, indent=1, allow_nan=False) + "\n", out, "--json"
    )


def write_results(
    options: Request, numbers: Callable[[], dict[str, Any]], text: Callable[[], str]
) -> dict[str, str | None]:
    """Write the files of ``--json`` and ``--markdown``; returns their paths."""
    if options.json is not None:
        write_json_to_file(numbers(), options.json)
    if options.markdown is not None:
        write_text_to_file(text(), options.markdown, "--markdown")
    return {"numbers": options.json, "text": options.markdown}


def write_report(
    report: "CalibrationReport | LabelReport | SectionPage", out: str, title: str
) -> str:
    with translate_write_errors(out), show_progress("pictures"):
        return str(report.to_html(out, title=title))
