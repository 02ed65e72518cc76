"""``python .ci/package_readme.py TREE``: links of its README.md as package indexes need them.

Files of the repository are links of the version's tag, pages of the documentation are its pages.
"""

import re
import sys
from pathlib import Path


def absolute(text, source, documentation, tag):
    """A README whose relative links are absolute."""
    raw = source.replace("github.com", "raw.githubusercontent.com")

    def moved(match):
        mark, name, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        if mark:  # GitHub says that it is a picture only where it is asked to look
            target = f"{raw}/{tag}/{target}?sanitize=true"
        elif page := re.fullmatch(r"doc/(.+)\.rst", target):
            target = f"{documentation}/page/{page[1]}.html"
        else:
            target = f"{source}/blob/{tag}/{target}"
        return f"{mark}[{name}]({target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", moved, text)


def main(tree):
    project = (tree / "pyproject.toml").read_text(encoding="utf-8")
    source, documentation = (
        re.search(rf'^{name} = "(.+)"$', project, re.M)[1]
        for name in ("Source", "Documentation")
    )
    version = (tree / "sklearn_calib" / "_version.py").read_text(encoding="utf-8")
    tag = "v" + re.search(r'__version__ = "(.+)"', version)[1]
    readme = tree / "README.md"
    text = absolute(readme.read_text(encoding="utf-8"), source, documentation, tag)
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
