"""The files that paths, patterns, folders and addresses mean."""

import os
import re
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import Any

from .._show import bare, plain, quoted, reason_of
from ..exceptions import refuse, require

#: The beginning of an address; one letter is a drive of Windows ("C://tables").
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PARQUET = (".parquet", ".parq", ".pq")
_PACKED = ("", ".gz", ".bz2", ".xz", ".zst", ".zip")
#: The endings of each kind of table.
_KINDS = {
    "parquet": _PARQUET,
    "csv": tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in _PACKED),
    "JSON lines": tuple(kind + packed for kind in (".jsonl", ".ndjson") for packed in _PACKED),
    "Arrow": (".arrow", ".feather", ".ipc"),
}
_ENDINGS = tuple(chain.from_iterable(_KINDS.values()))
_NAMED = (*_ENDINGS, ".json", ".xlsx")  # a folder may have these for something else


def is_address(text: str) -> bool:
    """Whether a text is an address, or how a database is reached, with a secret."""
    return bool(ADDRESS.match(text)) or (bare(text) != text and not os.path.exists(text))


def path_of(path: Any, where: str, address: bool = False) -> str:
    """A path as text. Raises TypeError for what is none: a number would be a file that is open.

    Raises ValueError for an address, whose secrets the system's error would show.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        got, cure = f"the {type(path).__name__} {plain(path)}", "Pass text or a pathlib.Path"
        refuse(where, "the path of a file", got, cure, TypeError)
    if is_address(text) and not (address and ADDRESS.match(text)):
        cure = "Download the file, or write it here and send it there"
        refuse(where, "the path of a local file", f"the address {quoted(text)}", cure)
    return text


def files_of(data: Any, where: str) -> list[tuple[str, str, Any]]:
    """(name, path, filesystem) of each file that paths, folders, patterns and addresses mean.

    The filesystem is None for files of this machine. A file that is meant twice is there once.
    Raises ValueError for patterns and folders without tables, TypeError for what is no path.
    """
    several = isinstance(data, list | tuple)
    found = chain.from_iterable(_expand(item, where) for item in (data if several else [data]))
    different: dict[Any, tuple[str, str, Any]] = {}
    for name, path, filesystem in found:
        key = path if filesystem is not None or "\0" in path else os.path.realpath(path)
        different.setdefault((key, filesystem is None), (name, path, filesystem))
    return [*different.values()]


def _expand(data, where):
    text = path_of(data, where, address=True)
    if ADDRESS.match(text):
        yield from _expand_address(text, where)
    elif os.path.isdir(text):
        below = [str(path) for path in sorted(Path(text).rglob("*")) if path.is_file()]
        paths = _without_strays(below, text)
        yield from ((path, path, None) for path in _one_format(paths, text, where))
    elif os.path.exists(text) or not has_magic(text):
        if os.path.exists(text) and not os.path.isfile(text):
            got = f"the pipe or device {quoted(text)}"
            refuse(where, "a file, which can be read again", got, "Copy it into a file first")
        yield text, text, None
    else:
        paths = [path for path in sorted(glob(text, recursive=True)) if os.path.isfile(path)]
        if not text.lower().endswith(_NAMED):
            fixed = re.split(r"[*?\[]", text)[0]
            paths = [*_without_strays(paths, os.path.dirname(fixed))]
        if not paths:
            refuse(where, "files of that name", f"none for {quoted(text)}", "Check the pattern")
        yield from ((path, path, None) for path in paths)


def _expand_address(text, where):
    """Parquet files of another file system, by pyarrow."""
    fs = require("pyarrow.fs", "cli", where)
    try:
        filesystem, path = fs.FileSystem.from_uri(text)
        info = filesystem.get_file_info(path)
    except Exception as error:  # of half a dozen kinds
        filesystem, said = None, reason_of(error, text).partition("\n")[0].rstrip(".")
    if filesystem is None:  # not where the error of pyarrow, which holds passwords, would be shown
        cure = "Pass a pyarrow.dataset.Dataset made with that file system"
        refuse(where, "an address that pyarrow can open", f"{quoted(text)} ({plain(said)})", cure)
    if info.type == fs.FileType.Directory:
        below = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        files = sorted(each.path for each in below if each.type == fs.FileType.File)
        paths = [file for file in _without_strays(files, path) if file.lower().endswith(_PARQUET)]
        if not paths:
            refuse(where, "parquet files", f"none under {quoted(text)}", "Check the address")
    else:
        paths = [path]
    yield from ((f"{path}", path, filesystem) for path in paths)


def _without_strays(paths, folder):
    """Files with the ending of a table, and none that a program left for itself (_SUCCESS)."""
    for path in paths:
        parts = Path(os.path.relpath(path, folder or ".")).parts
        if path.lower().endswith(_ENDINGS) and not any(part[0] in "._" for part in parts):
            yield path


def _one_format(paths, folder, where):
    paths = [*paths]
    kinds = [
        kind
        for kind, endings in _KINDS.items()
        if any(path.lower().endswith(endings) for path in paths)
    ]
    if len(kinds) != 1:
        got = f"{' and '.join(kinds) or 'none'} in {quoted(folder)}"
        cure = "Name the files with a pattern, for instance '**/*.parquet'"
        refuse(where, f"a folder of tables of one kind ({', '.join(_KINDS)})", got, cure)
    return paths
