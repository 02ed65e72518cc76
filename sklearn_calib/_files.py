"""Files are written whole or not at all."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write bytes, or text as UTF-8; on an error the file is as it was before.

    Nothing is left behind then. The content goes into a new file of the same folder, which then
    takes the name. Links are followed, the permissions of an existing file are kept. Devices and
    pipes are written to directly. Raises OSError.
    """
    content = content.encode() if isinstance(content, str) else content
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:  # a folder raises IsADirectoryError
            file.write(content)
        return
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    path = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
