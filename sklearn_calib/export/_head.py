"""What stands at the head of programs: the document without the map, as a comment."""

import json
import re

from ._document import MapDocument

# What ends or nests comments, ends statements, or is a placeholder for some driver. None of it
# stands in JSON but inside texts.
_UNSAFE = re.compile(r"[^A-Za-z0-9 _.,+\-\[\]{}:\"\\]|:(?! )")


def head_of(document: MapDocument) -> str:
    """The JSON of a document without its map, on one line, safe in the comments of any language."""
    head = {name: value for name, value in document.to_dict().items() if name != "map"}
    text = json.dumps(head, ensure_ascii=True, allow_nan=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
