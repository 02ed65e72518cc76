"""``python doc/changelog.py`` writes CHANGELOG.md, which ``doc/whats_new`` has in pieces.

One file of it is one change, ``VERSION/KIND.SLUG.rst``; the page "What's new" is made
of the same. A version may open with a page of its own, ``VERSION/overview.rst``.
"""

import re
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ("added", "changed", "fixed")
OVERVIEW = "overview"
HEAD = "# Changes\n\nLinks to everything that is named here are on {}.\n"


def order(version):
    """A key by which 0.2.0rc1 stands between 0.1.0 and 0.2.0."""
    numbers, _, candidate = version.partition("rc")
    return tuple(int(part) for part in numbers.split(".")), int(candidate or 1e6)


def changes(folder=HERE / "whats_new"):
    """Triples of a version, a kind and the texts of its changes, the newest version first.

    The kind of the page that opens a version is `OVERVIEW`.
    """
    versions = [path for path in folder.iterdir() if path.is_dir()]
    for version in sorted(versions, key=lambda path: order(path.name), reverse=True):
        opening = version / f"{OVERVIEW}.rst"
        known = {path.name for kind in KINDS for path in version.glob(f"{kind}.*.rst")}
        unknown = {path.name for path in version.iterdir()} - known - {opening.name}
        if unknown:
            raise ValueError(
                f"expected names {'|'.join(KINDS)}.SLUG.rst, got {sorted(unknown)}"
            )
        if opening.exists():
            yield version.name, OVERVIEW, [opening.read_text(encoding="utf-8").strip()]
        for kind in KINDS:
            files = sorted(version.glob(f"{kind}.*.rst"))
            if files:
                yield (
                    version.name,
                    kind,
                    [file.read_text(encoding="utf-8").strip() for file in files],
                )


def markdown(text, pages=""):
    """Return a fragment in Markdown: names of the package as code, addresses as links.

    Pages of the documentation are links if the address of its folder is given.
    """
    text = " ".join(text.split())
    text = re.sub(
        r":(?:class|func|meth|attr|mod):`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text
    )
    text = re.sub(
        r":doc:`(?:[^`<]*?)<?/?([\w/]+)>?`", lambda m: link_page(m[1], pages), text
    )
    text = re.sub(r"`([^`<]+) <([^>]+)>`__?", r"[\1](\2)", text)
    return text.replace("``", "`")


def page_in_markdown(text, pages=""):
    """Return the page that opens a version: headings, paragraphs and lists of one level."""
    lines = []
    for part in re.split(r"\n(?=\* )|\n\n", text):
        title, _, line = part.partition("\n")
        if line and set(line) == {"~"}:
            lines += ["", f"### {title}", ""]
        else:
            lines.append(markdown(part, pages))
    return "\n".join([*lines, ""])


def link_page(page, pages, name=None):
    """Return the name of a page, as a link if the address of its folder is given."""
    name = name or page.strip("/").rpartition("/")[2].replace("_", " ")
    return f"[{name}]({pages}{page}.html)" if pages else f'the page "{name}"'


def write_changelog(pages="", folder=HERE / "whats_new"):
    """Return the text of CHANGELOG.md."""
    lines, last = [HEAD.format(link_page("whats_new", pages, "What's new"))], ""
    for version, kind, texts in changes(folder):
        lines += [] if version == last else [f"## {version}\n"]
        if kind == OVERVIEW:
            lines += [page_in_markdown(text, pages) for text in texts]
        else:
            lines += [
                f"### {kind.capitalize()}\n",
                *(f"* {markdown(text, pages)}" for text in texts),
                "",
            ]
        last = version
    return "\n".join(lines)


if __name__ == "__main__":
    (HERE.parent / "CHANGELOG.md").write_text(write_changelog(), encoding="utf-8")
