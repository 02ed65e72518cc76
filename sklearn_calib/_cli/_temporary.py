"""Temporary folders: made where they are needed, removed at the end, or by the next one."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows, which removes nothing that another process has open
    fcntl = None  # type: ignore[assignment]

_PREFIX = "sklearn-calib-"
_LOCK = "lock"  # held as long as the process lives


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder that is removed at the end; those of processes that were killed go as well."""
    _remove_left()
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX) as folder,
        open(os.path.join(folder, _LOCK), "wb") as lock,
    ):
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _remove_left():
    """Remove folders of this user whose process has ended without removing them."""
    if fcntl is None:
        return
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # without a lock, in use, or gone in the meantime
            found = path.lstat()
            if found.st_uid == os.getuid() and stat.S_ISDIR(found.st_mode):
                with open(path / _LOCK, "rb+") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
