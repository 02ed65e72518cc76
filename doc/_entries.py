"""The entries of the user guide's index, read from its text."""

import re
from typing import NamedTuple


class Entry(NamedTuple):
    """A page of the guide: its file, what it is about, and what people search it by."""

    page: str
    line: str
    title: str
    words: str


def entries(text):
    """What the directives ``pages`` in the text of an index say, in their order."""
    blocks = re.findall(r"(?m)^\.\. pages::.*\n((?:\n|   .*\n)+)", text + "\n")
    return [entry for block in blocks for entry in parsed(block.splitlines())]


def parsed(lines):
    """Names stand at the margin of the block; below each its line and its fields."""
    margin = min(
        (len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0
    )
    found = []
    for line in filter(str.strip, lines):
        field = re.match(r"\s+:(title|words): (.+)", line)
        if line[margin] != " ":
            found.append(Entry(line.strip(), "", "", ""))
        elif field:
            found[-1] = found[-1]._replace(**{field[1]: field[2].strip()})
        else:
            found[-1] = found[-1]._replace(
                line=f"{found[-1].line} {line.strip()}".strip()
            )
    return found
