"""Files are written whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write bytes, or text as UTF-8, by `whole_file`. Raises OSError."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file to write; after an error inside, the file is as it was before.

    Nothing is left behind then. The content goes into a new file of the same folder, which takes
    the name at the end. Links are followed, the permissions of an existing file are kept. Devices
    and pipes are written to directly. Raises OSError.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:  # a folder raises IsADirectoryError
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
