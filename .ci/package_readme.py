"""Write the addresses of the hosts into a tree: ``python .ci/package_readme.py TREE``.

A checkout has relative links only. A package index needs absolute ones: README.md gets
links to the files of the version's tag, CHANGELOG.md links to the pages of the
documentation, and pyproject.toml its addresses. They are those of
``doc/release/addresses.json``, the only file that has them.
"""

import json
import re
import sys
from pathlib import Path


def make_absolute(text, source, tag):
    """Return a README whose relative links are absolute."""
    raw = source.replace("github.com", "raw.githubusercontent.com")

    def move(match):
        target = match[1]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        if target.endswith(".svg"):  # as a picture, not as a page about a file
            return f"]({raw}/{tag}/{target}?sanitize=true)"
        return f"]({source}/blob/{tag}/{target})"

    return re.sub(r"\]\(([^)\s]+)\)", move, text)


def write_urls(source, documentation):
    """Return the table of addresses of pyproject.toml."""
    addresses = {
        "Homepage": source,
        "Documentation": f"{documentation}/index.html",
        "Source": source,
        "Issues": f"{source}/issues",
        "Changelog": f"{documentation}/whats_new.html",
    }
    lines = [f'{name} = "{address}"\n' for name, address in addresses.items()]
    return "[project.urls]\n" + "".join(lines) + "\n"


def main(tree):
    file = tree / "doc" / "release" / "addresses.json"
    addresses = json.loads(file.read_text(encoding="utf-8"))
    source, documentation = addresses["source"], addresses["documentation"]
    version = (tree / "sklearn_calib" / "_version.py").read_text(encoding="utf-8")
    tag = "v" + re.search(r'__version__ = "(.+)"', version)[1]
    readme = tree / "README.md"
    text = make_absolute(readme.read_text(encoding="utf-8"), source, tag)
    readme.write_text(text, encoding="utf-8")
    project = tree / "pyproject.toml"
    before, scripts, after = project.read_text(encoding="utf-8").partition(
        "[project.scripts]"
    )
    text = before + write_urls(source, documentation) + scripts + after
    project.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(tree / "doc"))
    from changelog import write_changelog

    text = write_changelog(f"{documentation}/", tree / "doc" / "whats_new")
    (tree / "CHANGELOG.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
