"""The user guide's index: one entry for each page, from which lists and search words follow."""

import re
from pathlib import Path

from _entries import entries, parsed
from docutils import nodes
from sphinx.directives.other import TocTree

_INDEX = Path("user_guide") / "index.rst"
_LONGEST = 160  # of a description that search engines show


class Pages(TocTree):
    """``.. pages:: Title of the group``: a toctree of its entries, and a list with their lines."""

    required_arguments = 0
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        found = parsed(list(self.content))
        self.content = [entry.page for entry in found]
        self.options = {
            "hidden": None,
            "maxdepth": 1,
            "caption": " ".join(self.arguments),
        }
        items = "\n".join(f"* :doc:`{entry.page}`: {entry.line}" for entry in found)
        return [*super().run(), *self.parse_text_to_nodes(items)]


def _describe(app, doctree):
    """Description, search words and title of a page for search engines and for our own search."""
    name = app.env.docname
    if any(node.get("name") == "description" for node in doctree.findall(nodes.meta)):
        return
    index = (Path(app.srcdir) / _INDEX).read_text(encoding="utf-8")
    known = {f"user_guide/{entry.page}": entry for entry in entries(index)}
    entry = known.get(name)
    if entry:
        app.env.note_dependency(index, docname=name)
        line, words = (
            re.sub(r":\w+:`([^`<]*)[^`]*`|[`*]", r"\1", entry.line),
            entry.words,
        )
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
