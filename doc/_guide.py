"""The user guide's index: one entry for each page, from which lists and search words follow."""

import re
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.directives.other import TocTree

_INDEX = Path("user_guide") / "index.rst"
_LONGEST = 160  # of a description that search engines show


class Entry(NamedTuple):
    """A page of the guide: its file, what it is about, and what people search it by."""

    page: str
    line: str
    title: str
    words: str


def entries(text):
    """What the directives ``pages`` in the text of an index say, in their order."""
    blocks = re.findall(r"(?m)^\.\. pages::.*\n((?:\n|   .*\n)+)", text + "\n")
    return [entry for block in blocks for entry in _parsed(block.splitlines())]


def _parsed(lines):
    """Names stand at the margin of the block; below each its line and its fields."""
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    found = []
    for line in filter(str.strip, lines):
        field = re.match(r"\s+:(title|words): (.+)", line)
        if line[margin] != " ":
            found.append(Entry(line.strip(), "", "", ""))
        elif field:
            found[-1] = found[-1]._replace(**{field[1]: field[2].strip()})
        else:
            found[-1] = found[-1]._replace(line=f"{found[-1].line} {line.strip()}".strip())
    return found


class Pages(TocTree):
    """``.. pages:: Title of the group``: a toctree of its entries, and a list with their lines."""

    required_arguments = 0
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        found = _parsed(list(self.content))
        self.content = [entry.page for entry in found]
        self.options = {"hidden": None, "maxdepth": 1, "caption": " ".join(self.arguments)}
        items = "\n".join(f"* :doc:`{entry.page}`: {entry.line}" for entry in found)
        return [*super().run(), *self.parse_text_to_nodes(items)]


def _describe(app, doctree):
    """Description, search words and title of a page for search engines and for our own search."""
    name = app.env.docname
    if any(node.get("name") == "description" for node in doctree.findall(nodes.meta)):
        return
    index = Path(app.srcdir) / _INDEX
    known = {f"user_guide/{entry.page}": entry for entry in entries(index.read_text())}
    entry = known.get(name)
    if entry:
        app.env.note_dependency(index, docname=name)
        line, words = re.sub(r":\w+:`([^`<]*)[^`]*`|[`*]", r"\1", entry.line), entry.words
        if entry.title:
            app.env.longtitles[name] = nodes.title("", entry.title)
    else:
        first = next(doctree.findall(nodes.paragraph), None)
        line, words = "" if first is None else " ".join(first.astext().split()), ""
    if len(line) > _LONGEST:
        line = line[: _LONGEST - 1].rsplit(" ", 1)[0] + "…"
    for kind, content in (("description", line), ("keywords", words)):
        if content:
            doctree.insert(0, nodes.meta("", name=kind, content=content))


def setup(app):
    app.add_directive("pages", Pages)
    app.connect("doctree-read", _describe, priority=900)  # after the title was found
    return {"parallel_read_safe": True, "parallel_write_safe": True}
