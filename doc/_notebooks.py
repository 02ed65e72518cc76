"""The examples as notebooks that need no copy of the repository.

Sphinx-Gallery writes a notebook of each example. `connect(app)` gives each of them a
first cell that installs this package and what else the example needs, found in the
example itself.

``python doc/_notebooks.py FOLDER`` writes the notebooks that the first page of the
gallery offers.
"""

import argparse
import ast
import copy
import json
import re
import sys
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PACKAGE = "sklearn-calib"
MAGIC = "%pip install -q"
# Modules whose distribution has another name.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "mpl_toolkits": "matplotlib"}
# What uses another package although the example need not import it.
USED_BY = {
    "sklearn_calib.displays": "matplotlib",
    "to_frame": "pandas",
    "as_frame": "pandas",
    "fetch_openml": "pandas",
    "to_onnx": "onnx",
}


def offered():
    """The examples whose notebooks the first page of the gallery offers, in its order."""
    text = (ROOT / "examples" / "README.rst").read_text(encoding="utf-8")
    return [
        ROOT / "examples" / f"{path}.py"
        for path in re.findall(r"</auto_examples/(\S+)\.ipynb>", text)
    ]


def requirements(source):
    """What pip has to install for the program `source`: this package with its extras, others."""
    base, extras, declared = _of_this_package()
    needed = set()
    for name in _used(ast.parse(source)):
        needed.add(USED_BY.get(name))
        if (
            isinstance(name, Import)
            and name.partition(".")[0] not in sys.stdlib_module_names
        ):
            module = name.partition(".")[0]
            needed.add(DISTRIBUTIONS.get(module, module))
    needed -= {None, "sklearn_calib", PACKAGE, *base}
    chosen = sorted(name for name, parts in extras.items() if parts <= needed)
    others = sorted(needed.difference(*(extras[name] for name in chosen)))
    ours = f"{PACKAGE}[{','.join(chosen)}]" if chosen else PACKAGE
    return [
        f"{ours}>={version(PACKAGE)}",
        *(declared.get(name, name) for name in others),
    ]


class Import(str):
    """The name of a module that is imported."""


def _used(tree):
    """The modules that a program imports, and the other names that it uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield Import(node.module)
            for alias in node.names:
                yield from (alias.name, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword):
            yield node.arg


def _of_this_package():
    """Base dependencies, the packages of each of a user's extras, and text for pip by name."""
    base, extras, declared = set(), {}, {}
    for line in requires(PACKAGE):
        wanted = Requirement(line)
        condition = str(wanted.marker or "")
        extra = re.search(r'extra == "(\w+)"', condition)
        if extra is None:
            base.add(wanted.name)
        elif wanted.name != PACKAGE and "platform" not in condition:
            declared[wanted.name] = f"{wanted.name}{wanted.specifier}"
            if extra[1] not in ("test", "doc", "all"):
                extras.setdefault(extra[1], set()).add(wanted.name)
    return base, extras, declared


def install_cell(source):
    """The first cell of the notebook of the program `source`."""
    quoted = " ".join(f'"{wanted}"' for wanted in requirements(source))
    return f"{MAGIC} {quoted}"


def complete(notebook, source):
    """Give a notebook its first cell, once, and plain names in place of Sphinx's roles."""
    from sphinx_gallery.notebook import add_code_cell

    cells = notebook["cells"]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell["source"] = [re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)]
    if not "".join(cells[0]["source"]).startswith(MAGIC):
        add_code_cell(notebook, install_cell(source))
        cells.insert(0, cells.pop())
    return notebook


def notebook_of(path):
    """The notebook of the example at `path`."""
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.notebook import jupyter_notebook
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(str(path))
    made = jupyter_notebook(
        blocks, copy.deepcopy(DEFAULT_GALLERY_CONF), str(path.parent)
    )
    return complete(made, path.read_text(encoding="utf-8"))


def write(folder, paths=None):
    """Write the notebooks of the examples at `paths`, by default those that are offered."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths or offered():
        target = folder / f"{path.stem}.ipynb"
        target.write_text(json.dumps(notebook_of(path), indent=2), encoding="utf-8")


def connect(app):
    """Complete the notebooks as soon as the gallery has written them."""
    app.connect("builder-inited", _complete_all, priority=900)


def _complete_all(app):
    from sphinx_gallery.downloads import generate_zipfiles

    gallery = Path(app.srcdir) / "auto_examples"
    for path in gallery.rglob("*.ipynb"):
        program = path.with_suffix(".py").read_text(encoding="utf-8")
        made = complete(json.loads(path.read_text(encoding="utf-8")), program)
        path.write_text(json.dumps(made, indent=2), encoding="utf-8")
    generate_zipfiles(str(gallery), app.srcdir, app.config.sphinx_gallery_conf)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("folder", help="where the notebooks are written")
    write(arguments.parse_args().folder)
