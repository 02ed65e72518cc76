"""Files as streams that can be rewound, unpacked; what kind of table begins in one."""

import bz2
import codecs
import errno
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
from glob import glob, has_magic
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from .._argument_checks import import_optional
from .._show import (
    format_error_or_type_if_secret,
    make_printable,
    quote_text,
    redact_secrets,
)
from ..exceptions import invalid_input

#: The beginning of an address; one letter is a drive of Windows ("C://tables").
ADDRESS_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PARQUET_SUFFIXES = (".parquet", ".parq", ".pq")
_TEXT_COMPRESSION_SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zst", ".zip")
#: The endings of each kind of table.
_SUFFIXES_BY_KIND = {
    "parquet": _PARQUET_SUFFIXES,
    "csv": tuple(
        kind + packed
        for kind in (".csv", ".tsv", ".txt")
        for packed in _TEXT_COMPRESSION_SUFFIXES
    ),
    "JSON lines": tuple(
        kind + packed
        for kind in (".jsonl", ".ndjson")
        for packed in _TEXT_COMPRESSION_SUFFIXES
    ),
    "Arrow": (".arrow", ".feather", ".ipc"),
}
_TABLE_SUFFIXES = tuple(chain.from_iterable(_SUFFIXES_BY_KIND.values()))
# In a folder, ".json" and ".xlsx" may be something other than a table.
_READABLE_SUFFIXES = (*_TABLE_SUFFIXES, ".json", ".xlsx")

# Google's storage is retried after this time, for the permission and for the answer.
_RETRY_SECONDS = 5


def import_pyarrow_module(does: str, module: str = "pyarrow") -> Any:
    """Import a module of pyarrow; the error names its purpose and how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise invalid_input(
            expected=f"pyarrow, which {does}",
            got="no such package",
            sentence=f"pyarrow, which {does}, is not installed",
            hint="Run: pip install 'sklearn-calib[cli]'",
        ) from error


def _is_address_or_connection_string(text):
    """Return whether a text is an address, or how a database is reached, with a secret."""
    return bool(ADDRESS_PATTERN.match(text)) or (
        redact_secrets(text) != text and not os.path.exists(text)
    )


def get_path_text(path: Any, address: bool = False) -> str:
    """Return a path as text.

    Raises TypeError for other objects: a number would be a file that is open.

    Raises ValueError for an address, whose secrets the system's error would show.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise invalid_input(
            expected="the path of a file",
            got=f"the {type(path).__name__} {make_printable(path)}",
            hint="Pass text or a pathlib.Path",
            error=TypeError,
        ) from None
    if _is_address_or_connection_string(text) and not (
        address and ADDRESS_PATTERN.match(text)
    ):
        raise invalid_input(
            expected="the path of a local file",
            got=f"the address {quote_text(text)}",
            hint="Download the file, or write it here and send it there",
        )
    return text


def expand_to_names_paths_and_filesystems(data: Any) -> list[tuple[str, str, Any]]:
    """Return (name, path, filesystem) of each file that paths, patterns and addresses mean.

    The filesystem is None for files of this machine. A file that is meant twice is
    there once. Raises ValueError for patterns and folders without tables, TypeError for
    what is not a path.
    """
    several = isinstance(data, list | tuple)
    named_paths = chain.from_iterable(
        _iter_names_paths_and_filesystems(item)
        for item in (data if several else [data])
    )
    different: dict[Any, tuple[str, str, Any]] = {}
    for name, path, filesystem in named_paths:
        key = path if filesystem is not None or "\0" in path else os.path.realpath(path)
        different.setdefault((key, filesystem is None), (name, path, filesystem))
    return [*different.values()]


def _iter_names_paths_and_filesystems(data):
    text = get_path_text(data, address=True)
    if ADDRESS_PATTERN.match(text):
        yield from _iter_remote_parquet_files(text)
    elif os.path.isdir(text):
        below = [str(path) for path in sorted(Path(text).rglob("*")) if path.is_file()]
        paths = _iter_visible_table_files(below, text)
        yield from (
            (path, path, None) for path in _list_paths_in_one_format(paths, text)
        )
    elif os.path.exists(text) or not has_magic(text):
        _check_rereadable(text)
        yield text, text, None
    else:
        paths = [
            path for path in sorted(glob(text, recursive=True)) if os.path.isfile(path)
        ]
        if not text.lower().endswith(_READABLE_SUFFIXES):
            fixed = re.split(r"[*?\[]", text)[0]
            paths = [*_iter_visible_table_files(paths, os.path.dirname(fixed))]
        if not paths:
            raise invalid_input(
                expected="files of that name",
                got=f"none for {quote_text(text)}",
                sentence=f"No file matches {quote_text(text)}",
                hint="Check the pattern",
            )
        yield from ((path, path, None) for path in paths)


def _check_rereadable(path):
    """Reject pipes and devices; what does not exist is rejected if it is opened."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise invalid_input(
            expected="a file, which can be read again",
            got=f"the pipe or device {quote_text(path)}",
            hint="Copy it into a file first",
        )


def _iter_remote_parquet_files(text):
    """Yield parquet files of another file system, by pyarrow."""
    fs = import_optional("pyarrow.fs", "cli")
    try:
        # tries for 15 minutes
        google = re.match(r"gc?s://(?!.*retry_limit_seconds)", text)
        sign = "&" if "?" in text else "?"
        more = f"{sign}retry_limit_seconds={_RETRY_SECONDS}" if google else ""
        filesystem, path = fs.FileSystem.from_uri(text + more)
        info = filesystem.get_file_info(path)
    except Exception as error:  # of half a dozen kinds
        filesystem = None
        reason = (
            format_error_or_type_if_secret(error, text).partition("\n")[0].rstrip(".")
        )
    # not if the error of pyarrow, which holds passwords, would be shown
    if filesystem is None:
        raise invalid_input(
            expected="an address that pyarrow can open",
            got=f"{quote_text(text)} ({make_printable(reason)})",
            hint="Pass a pyarrow.dataset.Dataset made with that file system",
        )
    if info.type == fs.FileType.Directory:
        below = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        files = sorted(entry.path for entry in below if entry.type == fs.FileType.File)
        paths = [
            file
            for file in _iter_visible_table_files(files, path)
            if file.lower().endswith(_PARQUET_SUFFIXES)
        ]
        if not paths:
            raise invalid_input(
                expected="parquet files",
                got=f"none under {quote_text(text)}",
                hint="Check the address",
            )
    else:
        paths = [path]
    yield from ((f"{path}", path, filesystem) for path in paths)


def _iter_visible_table_files(paths, folder):
    """Yield files with the ending of a table that no program left for itself (_SUCCESS)."""
    for path in paths:
        parts = Path(os.path.relpath(path, folder or ".")).parts
        if path.lower().endswith(_TABLE_SUFFIXES) and not any(
            name[0] in "._" for name in parts
        ):
            yield path


def _list_paths_in_one_format(paths, folder):
    paths = [*paths]
    kinds = [
        kind
        for kind, endings in _SUFFIXES_BY_KIND.items()
        if any(path.lower().endswith(endings) for path in paths)
    ]
    if len(kinds) != 1:
        raise invalid_input(
            expected=f"a folder of tables of one kind ({', '.join(_SUFFIXES_BY_KIND)})",
            got=f"{' and '.join(kinds) or 'none'} in {quote_text(folder)}",
            hint="Name the files with a pattern, for instance '**/*.parquet'",
        )
    return paths


_COMPRESSION_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
_SUFFIX_BY_MAGIC_BYTES = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PK\3\4": ".zip",
}
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
# The state of a monitor of 1000 classes takes 6e7 bytes.
_MAX_JSON_BYTES = 2**28
#: The beginning of an object, and of a list of objects; a line of names has neither.
_JSON_START_PATTERN = re.compile(r'\s*(\{\s*["}]|\[\s*[{\]])')


def get_standard_input_stream() -> BinaryIO:
    """Return the stream of the standard input; reject a closed one."""
    if sys.stdin is None:
        raise invalid_input(
            expected="a table on the standard input",
            got="a closed one",
            hint="Name a file, or lead one in with <",
        )
    return sys.stdin.buffer


def open_decompressed(file: str) -> Any:
    """Open a binary stream that can be rewound, decompressed by its ending or its first bytes.

    A workbook, which is an archive too, stays packed.
    """
    _check_rereadable(get_path_text(file))
    with open(file, "rb") as stream:
        head = stream.read(8)
    ending = file.lower()[file.rfind(".") :] if "." in file else ""
    if ending not in (*_COMPRESSION_SUFFIXES, ".zip"):
        ending = next(
            (
                end
                for mark, end in _SUFFIX_BY_MAGIC_BYTES.items()
                if head.startswith(mark)
            ),
            "",
        )
    if ending == ".zip":
        return _open_member(file)
    if ending == ".zst":
        return io.BufferedReader(_RewindableZstandardReader(file))
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers.get(ending, open)(file, "rb")


def read_uncompressed_json_text(file: str) -> str:
    """Return the text of a file of JSON that is not a table.

    OSError where it has more than 2^28 bytes.
    """
    with open(file, "rb") as stream:
        content = stream.read(_MAX_JSON_BYTES + 1)
    if len(content) > _MAX_JSON_BYTES:
        raise OSError(errno.EFBIG, f"more than {_MAX_JSON_BYTES} bytes")
    return content.decode()


def detect_format(stream: Any, file: str) -> str:
    """Return what begins in a stream: "parquet", "arrow", "workbook", "json" or else "csv"."""
    head = stream.read(2**10)
    stream.seek(0)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"PK\3\4"):
        return "workbook"
    name, ending = os.path.splitext(file.lower())
    if (name if ending in (*_COMPRESSION_SUFFIXES, ".zip") else file.lower()).endswith(
        _JSON_SUFFIXES
    ):
        return "json"
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    return "json" if _JSON_START_PATTERN.match(text) else "csv"


class _RewindableZstandardReader(io.RawIOBase):
    """What a file of Zstandard holds, read from its beginning."""

    def __init__(self, path):
        self._path = path
        self._file = None
        self._start_reading()

    def _start_reading(self):
        pa = import_pyarrow_module("unpacks .zst")
        self._close_streams()
        self._file = open(self._path, "rb")  # noqa: SIM115 - closed by `_close_streams`
        self._text = pa.CompressedInputStream(pa.PythonFile(self._file, "r"), "zstd")
        self._place = 0

    def _close_streams(self):
        if self._file is not None:
            self._text.close()
            self._file.close()

    def readable(self):
        return True

    def seekable(self):
        return True

    def readinto(self, buffer):
        data = self._text.read(len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def seek(self, offset, whence=0):
        if (offset, whence) not in ((0, 0), (0, 1)):
            raise io.UnsupportedOperation("seek")
        if whence == 0:
            self._start_reading()
        return self._place

    def fileno(self):
        return self._file.fileno()

    def close(self):
        self._close_streams()
        super().close()


#: Folders, and what systems put beside the files of an archive.
_IGNORED_MEMBER_PATTERN = re.compile(r"/$|(^|/)(__MACOSX/|\.)")


def _open_member(file):
    with zipfile.ZipFile(file) as archive:
        names = [
            name
            for name in archive.namelist()
            if not _IGNORED_MEMBER_PATTERN.search(name)
        ]
        if "[Content_Types].xml" in names:
            return open(file, "rb")
        if len(names) != 1:
            raise invalid_input(
                expected=f"one file inside {quote_text(file)}",
                got=f"{len(names)} files",
                hint="Unpack it first",
            )
        member = archive.open(names[0])  # stays open when the archive is closed
        if member.peek(6)[:4] in (b"PAR1", b"ARRO"):  # which are read from their ends
            return io.BytesIO(archive.read(names[0]))
        return member
