"""Addresses, as files of a temporary folder; they need ``--allow remote``."""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from urllib import request
from urllib.error import URLError
from urllib.parse import unquote, urlsplit

from .._argument_checks import import_optional
from .._files.atomic import DISK_FULL_ERRNOS, temporary_folder
from .._files.input_files import (
    ADDRESS_PATTERN,
    expand_to_names_paths_and_filesystems,
    get_standard_input_stream,
)
from .._files.rows import iter_query_pieces
from .._show import (
    display_paths_as,
    format_error_or_type_if_secret,
    make_printable,
    quote_text,
    redact_secrets,
)
from ..exceptions import InvalidInputError, invalid_input
from ._messages import invalid_option
from ._request import Request

_DOWNLOAD_TIMEOUT_SECONDS = 60
_STANDARD_INPUT_COPY_NAME = "standard input"


@contextmanager
def local_files(
    options: Request, *, allows_stdin_among_files: bool = False
) -> Iterator[list[str]]:
    """Yield the paths of the files that are meant; ``-`` is the standard input.

    With ``--query`` the pattern is the address of a database, and the file holds the
    answer.

    Copies of remote files, and of the standard input, are removed at the end; named
    pipes are rejected. Workers on other machines, who do not see the copy, are rejected
    with it. With `allows_stdin_among_files` the standard input may be one of
    several files.
    """
    patterns = options.files
    query = options.query
    remote = [pattern for pattern in patterns if ADDRESS_PATTERN.match(pattern)]
    if query is not None and not (len(remote) == len(patterns) == 1):
        raise invalid_option(
            expected="one address of a database for --query",
            got=", ".join(map(quote_text, patterns)),
            hint="Write postgresql://host/name",
        )
    if remote and not options.allow_remote and query is None:
        raise invalid_option(
            expected="the path of a local file",
            got=f"the address {quote_text(remote[0])}",
            hint="Download it, or add --allow remote",
        )
    if "-" in patterns and len(patterns) > 1 and not allows_stdin_among_files:
        raise invalid_option(
            sentence="The standard input cannot be combined with files",
            hint="Name files alone",
        )
    if patterns.count("-") > 1:
        raise invalid_option(
            sentence="The standard input is named twice", hint="Name a file"
        )
    for pattern in patterns:
        _check_not_pipe(pattern)
    read_once_source = (
        "the standard input" if "-" in patterns else query and "the rows of a query"
    )
    if read_once_source and options.dask is not None:
        raise invalid_option(
            expected="files that the workers of --dask can read",
            got=read_once_source,
            hint="Name files, or leave --dask out",
        )
    with ExitStack() as stack:
        folder = ""
        if any(map(_is_remote_address, patterns)) or "-" in patterns:
            folder = stack.enter_context(temporary_folder())
        local_patterns = [
            path
            for number, pattern in enumerate(patterns)
            for path in _fetch_local_paths(
                pattern, os.path.join(folder, str(number)), query
            )
        ]
        copies = {}
        for number in range(len(patterns) if folder else 0):
            place = os.path.join(folder, str(number), "")
            copies[place] = ""
        with display_paths_as(copies):
            yield [
                path
                for _, path, _ in expand_to_names_paths_and_filesystems(local_patterns)
            ]


def describe_source(patterns: Sequence[str], files: Sequence[str]) -> str:
    """Return what a report calls the files: copies by their addresses, without passwords."""
    first = "-" if patterns[0] == "-" else files[0]
    if _is_remote_address(patterns[0]):
        first = redact_secrets(patterns[0])
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def _is_remote_address(pattern):
    return ADDRESS_PATTERN.match(pattern) and urlsplit(pattern).scheme != "file"


def _check_not_pipe(pattern):
    """Reject a named pipe, such as ``<(command)`` of a shell: files are read more than once."""
    is_pipe = False
    with suppress(OSError, ValueError):
        is_pipe = stat.S_ISFIFO(os.stat(pattern).st_mode)
    if is_pipe:
        raise invalid_option(
            expected="a file, which can be read again",
            got=f"the pipe {quote_text(pattern)}",
            hint="Write its rows into a file, or lead them to the standard input, whose name is -",
        )


def _fetch_local_paths(pattern, folder, query):
    if query is not None:
        os.makedirs(folder)
        return [
            _save_query_rows_and_get_path(
                pattern, query, os.path.join(folder, "query.arrow")
            )
        ]
    if pattern == "-":
        os.makedirs(folder)
        path = os.path.join(folder, _STANDARD_INPUT_COPY_NAME)
        with open(path, "wb") as file:
            shutil.copyfileobj(get_standard_input_stream(), file)
        return [path]
    if not ADDRESS_PATTERN.match(pattern):
        return [pattern]
    parts = urlsplit(pattern)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise invalid_option(
                expected="a file of this machine",
                got=quote_text(pattern),
                hint="Write file:///path",
            )
        return [request.url2pathname(parts.path)]  # decodes it
    os.makedirs(folder)
    try:
        if parts.scheme in ("http", "https"):
            return [
                _download_file(
                    pattern, os.path.join(folder, _make_file_name(parts.path))
                )
            ]
        return [*_iter_copied_remote_files(pattern, folder)]
    except InvalidInputError:
        raise
    # The host or the file does not exist, or may not be read.
    except (OSError, ValueError, HTTPException) as error:
        if getattr(error, "errno", None) in DISK_FULL_ERRNOS:
            raise
        raise invalid_input(
            expected="an address that can be read",
            got=f"{quote_text(pattern, 200)} "
            f"({make_printable(format_error_or_type_if_secret(error, pattern), 200).rstrip('.')})",
            hint="Check it, or download the file",
            error=Exception,
        ) from None  # the text of the error may contain secrets


def _save_query_rows_and_get_path(address, query, path):
    """Save the rows of a query, the first of which give the types; return the path."""
    pa = import_optional("pyarrow", "cli")
    writer = None
    with ExitStack() as stack:
        for piece in iter_query_pieces(address, query):
            table = pa.Table.from_pandas(piece, preserve_index=False)
            if writer is None:
                fields = [
                    field.with_type(pa.float64()) if field.type == pa.null() else field
                    for field in table.schema
                ]
                schema = pa.schema(fields)
                writer = stack.enter_context(pa.OSFile(path, "wb"))
                writer = stack.enter_context(pa.ipc.new_file(writer, schema))
            try:
                writer.write_table(table.cast(schema))
            except pa.ArrowInvalid as error:
                raise invalid_option(
                    expected="columns of one type",
                    got=make_printable(error, 200),
                    hint="Cast them in the query",
                ) from error
    return path


def _make_file_name(path):
    return re.sub(r"[^\w.=-]", "_", unquote(path).rsplit("/", 1)[-1]) or "table"


def _download_file(address, path) -> str:
    asked = request.Request(address, headers={"User-Agent": "sklearn-calib"})
    with (
        request.urlopen(asked, timeout=_DOWNLOAD_TIMEOUT_SECONDS) as answer,
        open(path, "wb") as file,
    ):
        shutil.copyfileobj(answer, file)
        expected = answer.headers.get("Content-Length")
        if expected is not None and file.tell() != int(expected):
            raise URLError(f"{file.tell()} of {expected} bytes arrived")
    return path


def _iter_copied_remote_files(address, folder):
    """Yield files of another file system, by pyarrow.

    Folders keep their names, which are columns.
    """
    for _, path, filesystem in expand_to_names_paths_and_filesystems([address]):
        names = [_make_file_name(name) for name in path.split("/") if name]
        place = os.path.join(folder, *names)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with filesystem.open_input_stream(path) as stream, open(place, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield place
