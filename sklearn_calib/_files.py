"""Files are written whole or not at all."""

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

SECONDS = 60  # that the other end of a named pipe may take


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write bytes, or text as UTF-8, by `whole_file`. Raises OSError."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file to write; after an error inside, the file is as it was before.

    Nothing is left behind then. The content goes into a new file of the same folder, which takes
    the name at the end. Links are followed, the permissions of an existing file are kept. Devices
    and pipes are written to directly. Raises OSError, among them TimeoutError for a pipe that no
    process reads.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        opened = _opened_pipe if stat.S_ISFIFO(mode) else open
        with opened(path, "wb") as file:  # a folder raises IsADirectoryError
            yield file
        return
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    path = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _opened_pipe(path, mode):
    """A named pipe, as soon as another process reads it; `open` alone would wait for ever."""
    for _ in until_other_end("no program reads this pipe"):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
    os.set_blocking(handle, True)
    return open(handle, mode)


def until_other_end(said: str) -> Iterator[None]:
    """Turns of waiting for the other end of a pipe; TimeoutError, which says so, after a minute."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        yield
        time.sleep(0.02)
    raise TimeoutError(errno.ETIMEDOUT, f"{said}, for {SECONDS} seconds")
