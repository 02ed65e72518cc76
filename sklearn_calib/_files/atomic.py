"""Files are written whole or not at all, by one process at a time if that matters."""

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_TEMPORARY_FOLDER_PREFIX = "sklearn-calib-"
_MAX_LOCK_NAME_CHARACTERS = 200
_LOCK_POLL_SECONDS = 0.05
# seconds that a scanner for viruses, or an index of files, may hold a file
_SCANNER_WAIT_SECONDS = 2
# an open file can be neither moved, nor replaced, nor removed there
_IS_WINDOWS = os.name == "nt"
#: Error numbers of a full disk, or of a quota that is used up.
DISK_FULL_ERRNOS = (
    errno.ENOSPC,
    errno.EFBIG,
    *([errno.EDQUOT] if hasattr(errno, "EDQUOT") else []),
)
# The other end of a named pipe may take this long.
PIPE_READER_TIMEOUT_SECONDS = 60
# A temporary file that was not written for so long is a leftover, on Windows.
LEFTOVER_AGE_SECONDS = 60


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write bytes, or text as UTF-8, by `open_atomically`. Raises OSError."""
    with open_atomically(path) as file:
        file.write(
            content.encode(errors="backslashreplace")
            if isinstance(content, str)
            else content
        )


@contextmanager
def open_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a binary file to write; after an error inside, the file is as it was before.

    Nothing is left behind then; what a killed process left is removed by the next that
    writes the same file. The content goes into a new file of the same folder, which
    takes the name at the end and is locked until then. Links are followed, the
    permissions of an existing file are kept. Devices and pipes are written to directly.
    Raises OSError, among them TimeoutError for a pipe that no process reads.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        opened = _open_pipe if stat.S_ISFIFO(mode) else open
        with opened(path, "wb") as file:  # a folder raises IsADirectoryError
            yield file
        return
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    mark = _hash_file_name(path)
    _remove_leftovers(folder, mark)
    temporary = ""
    try:
        locked = False
        # another writer may take it for a leftover before it is locked
        while not locked:
            temporary = os.path.join(folder, f".{mark}{secrets.token_hex(8)}.tmp")
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            locked = _lock_new_file(handle, temporary)
            if not locked:
                os.close(handle)
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            if not _IS_WINDOWS:  # it stays locked until then
                os.replace(temporary, path)
        if _IS_WINDOWS:
            _replace_when_free(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextmanager
def lock_file(path: str | Path, seconds: float) -> Iterator[bool]:
    """Hold a file against other processes that call this; waits for them.

    The lock is that of the system on a file ``.NAME.lock`` in the same folder, which
    goes at the end: it ends with the process, however that ends.

    Parameters
    ----------
    path : str or Path
        Need not exist; links are followed.
    seconds : float
        How long to wait.

    Yields
    ------
    locked : bool
        False if the file system has no locks.

    Raises
    ------
    TimeoutError
        Another process has held it all the time.
    OSError
        The folder does not take the file.
    """
    path = os.path.realpath(path)
    name = os.path.join(
        os.path.dirname(path),
        f".{os.path.basename(path)[:_MAX_LOCK_NAME_CHARACTERS]}.lock",
    )
    end = time.monotonic() + seconds
    while True:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        has_lock = _try_lock(handle)
        if has_lock is None or (has_lock and _is_same_open_file(handle, name)):
            break
        os.close(handle)
        if not has_lock and time.monotonic() >= end:
            raise TimeoutError(errno.ETIMEDOUT, "another process holds it", path)
        time.sleep(_LOCK_POLL_SECONDS if not has_lock else 0)
    try:
        yield has_lock is not None
    finally:
        if _IS_WINDOWS:
            os.close(handle)
        # another process that waits may have it open; the last removes it
        with suppress(OSError):
            os.unlink(name)
        if not _IS_WINDOWS:
            os.close(handle)


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield a new folder that goes at the end; those of killed processes go at the beginning."""
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(_TEMPORARY_FOLDER_PREFIX) and _is_own_folder(
                entry
            ):
                _remove_if_dead(os.path.join(entry.path, ".lock"), entry.path)
    while True:
        folder = tempfile.mkdtemp(prefix=_TEMPORARY_FOLDER_PREFIX)
        name = os.path.join(folder, ".lock")
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        if _lock_new_file(handle, name):
            break
        os.close(handle)
    try:
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def _replace_when_free(temporary, path):
    """Move a closed file to where another program may look at the former one for a moment."""
    end = time.monotonic() + _SCANNER_WAIT_SECONDS
    while True:
        try:
            return os.replace(temporary, path)
        except PermissionError as error:
            if time.monotonic() >= end:
                reason = "another program has it open (a spreadsheet?), or it must not be changed"
                raise PermissionError(errno.EACCES, reason, path) from error
        time.sleep(_LOCK_POLL_SECONDS)


def _is_own_folder(entry):
    is_own_name = (
        not hasattr(os, "getuid")
        or entry.stat(follow_symlinks=False).st_uid == os.getuid()
    )
    return is_own_name and entry.is_dir(follow_symlinks=False)


def _hash_file_name(path):
    """Distinguish the files of one folder, however long their names are."""
    return hashlib.sha256(os.fsencode(os.path.basename(path))).hexdigest()[:8]


def _remove_leftovers(folder, mark):
    """Remove temporary files of the same target whose writers are dead: they are not locked."""
    form = re.compile(rf"\.{mark}[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for name in os.listdir(folder):
            if form.fullmatch(name):
                _remove_if_dead(os.path.join(folder, name))


def _remove_if_dead(name, folder=None):
    """Remove a file, or the folder around it, unless a process holds its lock."""
    with suppress(OSError):
        # There a living writer has the file open, except just before it is moved.
        if _IS_WINDOWS:
            if time.time() - os.stat(name).st_mtime > LEFTOVER_AGE_SECONDS:
                os.unlink(name)
                if folder:
                    shutil.rmtree(folder)
            return
        handle = os.open(name, os.O_RDWR)
        try:
            if _try_lock(handle):
                shutil.rmtree(folder) if folder else os.unlink(name)
        finally:
            os.close(handle)


def _lock_new_file(handle, name):
    """Return whether a new file is locked, or needs no lock, and was not taken for a leftover."""
    if _IS_WINDOWS:
        return True
    has_lock = _try_lock(handle)
    return has_lock is None or (has_lock and _is_same_open_file(handle, name))


def _is_same_open_file(handle, name):
    """Return whether a name still means an open file: the one before may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool | None:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(handle: int) -> bool | None:
        """Lock an open file: False if another process has it, None if there are no locks."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True


def _open_pipe(path, mode):
    """Open a named pipe when another process reads it; `open` alone would wait for ever."""
    end = time.monotonic() + PIPE_READER_TIMEOUT_SECONDS
    while time.monotonic() < end:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which means that it is not read yet
                raise
            time.sleep(0.02)
        else:
            os.set_blocking(handle, True)
            return open(handle, mode)
    reason = f"no program reads this pipe, for {PIPE_READER_TIMEOUT_SECONDS} seconds"
    raise TimeoutError(errno.ETIMEDOUT, reason)
