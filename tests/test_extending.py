"""The pages "Add a ..." are followed to the letter, in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest
from cases import run_every_case
from test_code_metrics import check_sizes

import sklearn_calib
from sklearn_calib import extending

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "doc" / "extending"
LAYERS = "tests/test_architecture.py"
# the page, and what must pass in the copy besides the code of the page
CHECKS = {
    "add_a_recalibrator": (
        f"tests/test_common.py tests/test_documentation.py {LAYERS} tests/export/test_nodes.py",
        "Shrinkage or shrinkage or each_file",
    ),
    "add_a_measure": (
        f"tests/test_common.py tests/test_documentation.py {LAYERS}",
        "mean_bias or _bias or each_file",
    ),
    "add_a_loss": (
        f"tests/test_common.py tests/test_documentation.py {LAYERS} tests/metrics/test_losses.py",
        "pseudo or Pseudo or each_file",
    ),
    "add_a_staging_adapter": (
        f"tests/staged/test_staging.py {LAYERS}",
        "BaggingClassifier or bagging or each_file",
    ),
    "add_a_display": (
        f"tests/test_documentation.py {LAYERS} tests/displays",
        "DistributionDisplay or _distribution",
    ),
    "add_a_map": (
        f"tests/export/test_documents.py {LAYERS}",
        "schema or each_file",
    ),
}
BLOCK = re.compile(r"\.\. code-block:: python\n((?:   :.*\n)*)\n((?:(?:   .*)?\n)+)")


def blocks(page):
    """(caption or None, code) of the Python blocks of a page, in order."""
    for options, code in BLOCK.findall(
        (PAGES / f"{page}.rst").read_text(encoding="utf-8")
    ):
        caption = re.search(r":caption: (.*)", options)
        yield caption[1] if caption else None, textwrap.dedent(code).strip("\n") + "\n"


@run_every_case("page", sorted(CHECKS))
def test_a_page_imports_only_what_is_declared(page):
    """A page may use `sklearn_calib.extending`, what sub-packages list, and its own names."""
    if not PAGES.exists():
        pytest.skip("not a checkout")
    text = (PAGES / f"{page}.rst").read_text(encoding="utf-8")
    own = re.findall(r"^ +(?:class|def) (\w+)", text, re.MULTILINE)
    found = re.findall(
        r"^ +(?:>>> )?from (sklearn_calib[.\w]*) import (.*)$", text, re.MULTILINE
    )
    assert found
    for module, names in found:
        declared = {*import_module(module).__all__, *own}
        assert {*names.split(", ")} <= declared, f"from {module} import {names}"


def test_all_declared_names_are_on_a_page():
    if not PAGES.exists():
        pytest.skip("not a checkout")
    text = "".join(
        (PAGES / f"{page}.rst").read_text(encoding="utf-8") for page in CHECKS
    )
    assert not [
        name for name in extending.__all__ if not re.search(rf"\b{name}\b", text)
    ]


def run(command, folder):
    env = {**os.environ, "PYTHONPATH": str(folder), "MPLBACKEND": "Agg"}
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def copy(tmp_path):
    if not PAGES.exists():
        pytest.skip("not a checkout")
    # With what is compiled, which is taken where times and sizes of the sources agree.
    shutil.copytree(Path(sklearn_calib.__file__).parent, tmp_path / "sklearn_calib")
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    shutil.copytree(PAGES, tmp_path / "doc" / "extending")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(CHECKS))
def test_page_works_as_told(page, copy):
    program, written, changed = "", [], []
    for caption, code in blocks(page):
        if caption is None or caption.startswith("sklearn_calib/"):
            # the page read as one script, in a file of the user's own
            program += code + "\n"
    (copy / "own.py").write_text(program, encoding="utf-8")
    if page != "add_a_recalibrator":  # whose checks run again below
        run([sys.executable, "own.py"], copy)

    for caption, code in blocks(page):
        if caption is None:
            continue
        if caption == "run in the source":
            run([sys.executable, "-c", code], copy)
            continue
        path = copy / caption.split()[-1]
        changed.append(path)
        if caption.startswith("sklearn_calib/"):
            path.write_text(code, encoding="utf-8")
            written.append(path)
        elif caption.startswith("replaces the imports of sklearn_calib in "):
            absolute = re.compile(r"(?m)(^from sklearn_calib.*\n)+")
            path.write_text(
                absolute.sub(code, path.read_text(encoding="utf-8"), count=1),
                encoding="utf-8",
            )
        elif below := re.match(r"add below (.*) in ", caption):
            add_lines(path, code, below[1])
        else:
            assert caption.startswith("add to ")
            add_lines(path, code, "from .")
            add_to_all(path, code)
    files, names = CHECKS[page]
    command = [sys.executable, "-m", "pytest", "-v", "-n", "0", "-m", "not cross"]
    command += ["--doctest-modules", *files.split(), *map(str, written), "-k", names]
    package = copy / "sklearn_calib"
    check_sizes({path for path in changed if path.is_relative_to(package)})
    out = run(command, copy)
    assert int(re.search(r"(\d+) passed", out)[1]) >= 3


def add_lines(path, code, start):
    """Put the code behind the last statement that begins with `start`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = max(i for i, line in enumerate(lines) if line.startswith(start)) + 1
    at = next(i for i in range(at, len(lines)) if not lines[i].startswith((" ", ")")))
    path.write_text(
        "\n".join([*lines[:at], code.strip(), *lines[at:], ""]), encoding="utf-8"
    )


def add_to_all(path, code):
    """The list of public names, where a sub-package writes it out."""
    text, name = path.read_text(encoding="utf-8"), code.split()[-1]
    if page_names := re.search(r"__all__ = \[\n((?:    \"\w+\",\n)+)\]", text):
        names = sorted([*re.findall(r'"(\w+)"', page_names[1]), name])
        listed = "".join(f'    "{entry}",\n' for entry in names)
        path.write_text(text.replace(page_names[1], listed), encoding="utf-8")
