"""The programs of the user guide's pages, as a reader runs them."""

import re
from typing import NamedTuple

from checkout import GUIDE

DIRECTIVE = re.compile(
    r"(?m)^( *)\.\. code-block:: (\w+)\n((?:\1   :.*\n)*)\n((?:(?:\1   .*)?\n)+)"
)
INCLUDE = re.compile(r"(?m)^\.\. include:: (\w+\.inc)\n")


class Block(NamedTuple):
    """A program, commands or what they print; ``needs`` is its caption "Needs ...", if any."""

    kind: str
    text: str
    needs: str


def source(page):
    """The text of a page, with what it includes of the guide's folder."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    return INCLUDE.sub(lambda found: source(found[1]), text) + "\n"


def blocks(page):
    """All of a page in their order."""
    for margin, kind, options, text in DIRECTIVE.findall(source(page)):
        caption = re.search(r":caption: Needs (.+)", options)
        text = re.sub(rf"(?m)^{margin}   ", "", text)
        yield Block(kind, text.strip("\n") + "\n", caption[1] if caption else "")
