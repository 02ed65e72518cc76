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
from typing import Any, BinaryIO

from .._show import quoted
from ..exceptions import refuse
from .names import is_address

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_MARKS = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PK\3\4": ".zip",
}
_JSON = (".jsonl", ".ndjson", ".json")
_MOST_JSON = 2**28  # bytes; the state of a monitor of 1000 classes has 6e7
#: The beginning of an object, and of a list of objects; a line of names has neither.
_OBJECTS = re.compile(r'\s*(\{\s*["}]|\[\s*[{\]])')


def standard_input() -> BinaryIO:
    """The bytes of the standard input. Refuses where it is closed."""
    if sys.stdin is None:
        refuse(
            "",
            "a table on the standard input",
            "a closed one",
            "Name a file, or lead one in with <",
        )
    return sys.stdin.buffer


def opened(file: str) -> Any:
    """A binary stream that can be rewound, decompressed by its ending or by its first bytes.

    A workbook, which is an archive too, stays packed.
    """
    source: Any = file
    if file == "-":
        source = io.BytesIO(standard_input().read())
        head = source.getvalue()[:8]
    elif is_address(file):
        refuse(
            "",
            "the path of a local file",
            f"the address {quoted(file)}",
            "Download it, or give the path alone",
        )
    else:
        with open(file, "rb") as stream:
            if not stream.seekable():
                source = io.BytesIO(stream.read())
            head = source.getvalue()[:8] if source is not file else stream.read(8)
    ending = file.lower()[file.rfind(".") :] if "." in file else ""
    if ending not in (*_COMPRESSED, ".zip"):
        ending = next((end for mark, end in _MARKS.items() if head.startswith(mark)), "")
    if ending == ".zip":
        return _only_member(source, file)
    if ending:
        return _unpacked(source, ending)
    return source if source is not file else open(file, "rb")


def json_text(file: str) -> str:
    """The text of a file of JSON that is no table. OSError where it has more than 2^28 bytes."""
    with open(file, "rb") as stream:
        content = stream.read(_MOST_JSON + 1)
    if len(content) > _MOST_JSON:
        raise OSError(errno.EFBIG, f"more than {_MOST_JSON} bytes")
    return content.decode()


def kind_of(stream: Any, file: str) -> str:
    """What begins in a stream: "parquet", "arrow", "workbook", "json" or, by default, "csv"."""
    head = stream.read(2**10)
    stream.seek(0)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"PK\3\4"):
        return "workbook"
    name, ending = os.path.splitext(file.lower())
    if (name if ending in (*_COMPRESSED, ".zip") else file.lower()).endswith(_JSON):
        return "json"
    wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = head.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    return "json" if _OBJECTS.match(text) else "csv"


def _unpacked(source, ending):
    if ending == ".zst":
        return io.BufferedReader(_Zstandard(source))
    return {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[ending](source, "rb")


class _Zstandard(io.RawIOBase):
    """What a file of Zstandard holds, read from its beginning."""

    def __init__(self, source):
        self._source, self._file = source, None
        self._begin()

    def _begin(self):
        try:
            import pyarrow as pa
        except ModuleNotFoundError:
            refuse(
                "",
                "pyarrow, which unpacks .zst",
                "no such package",
                "Run: pip install 'sklearn-calib[cli]'",
            )
        self._shut()
        if isinstance(self._source, str):
            self._file = open(self._source, "rb")  # noqa: SIM115 - closed by `_shut`
            packed = pa.PythonFile(self._file, "r")
        else:
            self._file, packed = self._source, pa.BufferReader(self._source.getvalue())
        self._text = pa.CompressedInputStream(packed, "zstd")
        self._place = 0

    def _shut(self):
        if self._file is not None:
            self._text.close()
            if self._file is not self._source:
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
            self._begin()
        return self._place

    def fileno(self):
        return self._file.fileno()

    def close(self):
        self._shut()
        super().close()


def _only_member(source, file):
    with zipfile.ZipFile(source) as archive:
        names = archive.namelist()
        if "[Content_Types].xml" in names:
            return source if source is not file else open(file, "rb")
        if len(names) != 1:
            refuse("", f"one file inside {quoted(file)}", f"{len(names)}", "Unpack it first")
        member = archive.open(names[0])  # stays open when the archive is closed
        if member.peek(6)[:4] in (b"PAR1", b"ARRO"):  # which are read from their ends
            return io.BytesIO(archive.read(names[0]))
        return member
