"""The notebooks of the gallery's first page run where only what their first cell names is there."""

import ast
import json
import os
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest
from checkout import ROOT
from systems import symlink

pytest.importorskip("sphinx_gallery")
import _notebooks

OFFERED = _notebooks.offered()
RUN = """
import ast, json, sys
path, *absent = sys.argv[1:]
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
names = {"__name__": "__main__"}
cells = [c for c in json.load(open(path, encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
for cell in cells[1:]:
    body = ast.parse("".join(cell["source"])).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), path, "exec"), names)
    if last:
        shown = eval(compile(ast.Expression(last.value), path, "eval"), names)
        getattr(shown, "_repr_html_", lambda: repr(shown))()
"""


def _named(notebook):
    """What the first cell of a notebook installs, as pip reads it."""
    source = "".join(notebook["cells"][0]["source"])
    command = f"{_notebooks.MAGIC} "
    assert source.startswith(command) and "\n" not in source
    return [
        _notebooks.Requirement(text)
        for text in shlex.split(source.removeprefix(command))
    ]


def _absent(wanted):
    """The packages that this project has, but which `wanted` does not install."""
    _, extras, declared = _notebooks._of_this_package()
    there = {w.name for w in wanted}.union(
        *(extras[e] for w in wanted for e in w.extras)
    )
    return sorted({*declared, "xgboost", "lightgbm"} - there)


def test_five_are_offered_and_each_is_an_example():
    assert len(OFFERED) == len(set(OFFERED)) == 5
    assert all(path.exists() for path in OFFERED)


@pytest.mark.parametrize("path", OFFERED, ids=lambda path: path.stem)
def test_a_notebook_begins_with_what_it_needs(path, tmp_path):
    _notebooks.write(tmp_path, [path])
    notebook = json.loads((tmp_path / f"{path.stem}.ipynb").read_text(encoding="utf-8"))
    ours = _named(notebook)[0]
    assert ours.name == "sklearn-calib" and ours.extras == {"plot"} and ours.specifier
    text = [
        "".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"
    ]
    assert text and not [part for part in text if ":`" in part], "a role of Sphinx"
    code = [
        "".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"
    ][1:]
    whole = ast.dump(ast.parse("\n".join(code)))
    shown = ast.parse(path.read_text(encoding="utf-8"))
    shown.body = [n for n in shown.body if n is not shown.body[0]]  # its docstring
    assert whole == ast.dump(shown)


def test_the_needs_follow_from_the_program():
    def names(*lines):
        return [
            _notebooks.Requirement(r) for r in _notebooks.requirements("\n".join(lines))
        ]

    assert [r.name for r in names("import os", "import numpy.linalg")] == [
        "sklearn-calib"
    ]
    assert names("import sklearn")[0].extras == set()
    assert names("import matplotlib.pyplot as plt")[0].extras == {"plot"}
    assert names("from sklearn_calib.displays import X")[0].extras == {"plot"}
    assert names("from sklearn_calib import displays")[0].extras == {"plot"}
    assert [r.name for r in names("x.to_frame()", "import duckdb")][1:] == [
        "duckdb",
        "pandas",
    ]
    assert names("import duckdb")[1].specifier
    assert [r.name for r in names("from xgboost import X")][1:] == ["xgboost"]
    assert [r.name for r in names("import unknown_package")][1:] == ["unknown_package"]


def test_the_gallery_is_completed_once(tmp_path):
    """As a build does it, which leaves the notebooks of unchanged examples where they are."""
    folder = tmp_path / "auto_examples" / "1_start"
    folder.mkdir(parents=True)
    text = "Title\n=====\n\nSee :func:`~sklearn_calib.metrics.log_loss`."
    program = f'"""\n{text}\n"""\nimport duckdb\n'
    (folder / "plot_x.py").write_text(program, encoding="utf-8")
    raw = {
        "cells": [{"cell_type": "markdown", "source": ["See :func:`~a.b.log_loss`."]}]
    }
    (folder / "plot_x.ipynb").write_text(json.dumps(raw), encoding="utf-8")
    conf = {"example_extensions": {".py"}, "notebook_extensions": {".ipynb"}}
    config = SimpleNamespace(sphinx_gallery_conf={**conf})
    handlers = []
    app = SimpleNamespace(
        srcdir=str(tmp_path),
        config=config,
        connect=lambda *a, **k: handlers.append((a, k)),
    )
    _notebooks.connect(app)
    [((event, handler), options)] = handlers
    # Sphinx-Gallery's own
    assert event == "builder-inited" and options["priority"] > 500
    handler(app)
    once = (folder / "plot_x.ipynb").read_text(encoding="utf-8")
    handler(app)
    assert (folder / "plot_x.ipynb").read_text(encoding="utf-8") == once
    notebook = json.loads(once)
    assert [r.name for r in _named(notebook)] == ["sklearn-calib", "duckdb"]
    assert notebook["cells"][1]["source"] == ["See `log_loss`."]
    assert (tmp_path / "auto_examples" / "auto_examples_jupyter.zip").exists()


@pytest.mark.slow
@pytest.mark.parametrize("path", OFFERED, ids=lambda path: path.stem)
def test_a_notebook_runs_without_the_repository(path, tmp_path):
    """In an empty folder, with the package alone and the packages that the first cell names."""
    for name in ("site", "empty"):
        (tmp_path / name).mkdir()
    symlink(tmp_path / "site" / "sklearn_calib", ROOT / "sklearn_calib")
    _notebooks.write(tmp_path, [path])
    made = tmp_path / f"{path.stem}.ipynb"
    absent = _absent(_named(json.loads(made.read_text(encoding="utf-8"))))
    assert "duckdb" in absent and "pyarrow" in absent and "matplotlib" not in absent
    (tmp_path / "run.py").write_text(RUN, encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "site"),
        "MPLBACKEND": "Agg",
    }
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py"), str(made), *absent],
        cwd=tmp_path / "empty",
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not list((tmp_path / "empty").iterdir()), "it wrote files"
