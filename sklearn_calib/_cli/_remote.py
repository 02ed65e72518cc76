"""Addresses: refused, or copied to a temporary folder where ``--allow-remote`` was given."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, url2pathname, urlopen

from .._file_names import files_of
from .._files import temporary_folder
from .._show import plain, quoted
from .._tables import UserError

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SECONDS = 60  # without an answer


@contextmanager
def local_files(patterns: Sequence[str], allow_remote: bool) -> Iterator[list[str]]:
    """The paths of the files that are meant; ``-`` is the standard input.

    Copies of remote files are removed at the end.
    """
    remote = [pattern for pattern in patterns if _ADDRESS.match(pattern)]
    if remote and not allow_remote:
        raise UserError(
            f"expected the path of a local file, got the address {quoted(remote[0])}. Download "
            "it, or add --allow-remote."
        )
    if "-" in patterns and len(patterns) > 1:
        raise UserError("expected the standard input alone, got also files. Name files alone.")
    with temporary_folder() if remote else nullcontext("") as folder:
        found = [
            path
            for number, pattern in enumerate(patterns)
            for path in _fetched(pattern, os.path.join(folder, str(number)))
        ]
        try:
            yield [path for _, path, _ in files_of(found, "audit")]
        except (UserError, ValueError) as error:
            said = str(error)
            if folder:
                said = re.sub(rf"{re.escape(folder)}[/\\]\d+[/\\]", "", said)
            raise UserError(said.removeprefix("audit: ")) from error


def _fetched(pattern, folder):
    if not _ADDRESS.match(pattern):
        return [pattern]
    parts = urlsplit(pattern)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise UserError(
                f"expected a file of this machine, got {quoted(pattern)}. Write file:///path."
            )
        return [url2pathname(unquote(parts.path))]
    os.makedirs(folder)
    try:
        if parts.scheme in ("http", "https"):
            return [_downloaded(pattern, os.path.join(folder, _name_of(parts.path)))]
        return [*_copied(pattern, folder)]
    except ModuleNotFoundError as error:
        raise UserError(str(error).removeprefix("audit: ")) from error
    except (OSError, ValueError) as error:  # no such host, no such file, no permission
        said = getattr(error, "reason", None) or str(error).removeprefix("audit: ")
        raise UserError(
            f"expected an address that can be read, got {quoted(pattern, 200)} "
            f"({plain(said, 200).rstrip('.')}). Check it, or download the file."
        ) from error


def _name_of(path):
    return re.sub(r"[^\w.=-]", "_", unquote(path).rsplit("/", 1)[-1]) or "table"


def _downloaded(address, path):
    request = Request(address, headers={"User-Agent": "sklearn-calib"})
    with urlopen(request, timeout=_SECONDS) as answer, open(path, "wb") as file:
        shutil.copyfileobj(answer, file)
        expected = answer.headers.get("Content-Length")
        if expected is not None and file.tell() != int(expected):
            raise URLError(f"{file.tell()} of {expected} bytes arrived")
    return path


def _copied(address, folder):
    """Files of another file system, by pyarrow; folders keep their names, which are columns."""
    for _, path, filesystem in files_of([address], "audit"):
        names = [_name_of(name) for name in path.split("/") if name]
        place = os.path.join(folder, *names)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with filesystem.open_input_stream(path) as stream, open(place, "wb") as file:
            shutil.copyfileobj(stream, file)
        yield place
