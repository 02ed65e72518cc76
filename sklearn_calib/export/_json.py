"""Maps as JSON text."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_whole
from ._document import Kind, document_of
from ._exported import ExportedMap
from ._fields import wrong
from ._tree import MAX_DEPTH

#: Longer texts are refused unread; a table of a million scores has about 60 million.
MAX_BYTES = 1_000_000_000
# a node inside another is a dict in a list; around them are the document and lists of numbers
_MAX_BRACKETS = 2 * MAX_DEPTH + 10
_BLOCK = 1 << 20
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def to_dict(
    fitted: Any, *, input: Kind | None = None, tabulate: float | None = None
) -> dict[str, Any]:
    """Describe a fitted map as a dict of JSON's types, which needs no Python to be understood."""
    return document_of(fitted, input=input, tabulate=tabulate).to_dict()


def from_dict(document: dict[str, Any]) -> ExportedMap:
    """Read what `to_dict` returned, in this version or an earlier one."""
    return ExportedMap(document)._ready()


def to_json(
    fitted: Any,
    path: str | Path | None = None,
    *,
    indent: int | None = None,
    input: Kind | None = None,
    tabulate: float | None = None,
) -> str:
    """Describe a fitted map as JSON text."""
    document = to_dict(fitted, input=input, tabulate=tabulate)
    text = json.dumps(document, indent=indent, allow_nan=False, ensure_ascii=False)
    if path is not None:
        write_whole(path, text)
    return text


def from_json(source: str | Path) -> ExportedMap:
    """Read JSON text, or a file that holds it."""
    return from_dict(_parsed(_content(source)))


def _content(source):
    if isinstance(source, str) and source.lstrip()[:1] in ("{", "["):
        return source.encode()
    size = os.path.getsize(source)
    if size > MAX_BYTES:
        wrong(str(source), f"at most {MAX_BYTES:.0e} bytes", f"{size}")
    return Path(source).read_bytes()


def _parsed(content):
    _check_depth(content)
    try:
        return json.loads(content, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # wrong() raises ValueErrors of its own
        if str(error).startswith("sklearn_calib.export"):
            raise
        wrong("the text", "JSON", f"{error}")


def _check_depth(content):
    """Refuse brackets inside brackets before anything recurses into them."""
    bare = np.frombuffer(_TEXT.sub(b"", content), dtype=np.uint8)
    depth = 0
    for start in range(0, len(bare), _BLOCK):
        block = bare[start : start + _BLOCK]
        change = ((block == 0x5B) | (block == 0x7B)).astype(np.int64)
        change -= (block == 0x5D) | (block == 0x7D)
        levels = depth + np.cumsum(change)
        if levels.max() > _MAX_BRACKETS:
            wrong("the text", f"at most {_MAX_BRACKETS} levels of brackets", "more")
        depth = int(levels[-1])


def _once(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        wrong(twice[:40], "each entry once", f"{twice!r} twice")
    return found


def _no_constant(name):
    wrong("the text", "finite numbers", name)
