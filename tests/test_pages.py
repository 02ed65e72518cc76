"""Each page of the guide runs from top to bottom in an empty folder, with the extra `all` alone.

A program or command that needs more has a caption, "Needs ...", that states what to
install; it runs in a second test, where all that is installed.
"""

import importlib.util
import re
import shlex
import sys
import types
from contextlib import contextmanager
from functools import cache
from importlib.metadata import packages_distributions

import numpy as np
import pytest
import sklearn
from checkout import GUIDE, ROOT
from pages import DIRECTIVE, Block, blocks

from sklearn_calib._cli import main

NAMES = sorted(page.name for page in GUIDE.glob("*.rst"))
#: Pages that show what a program prints, number by number.
SHOWN = ("clinical_study.rst", "credit_risk.rst")
# as on the pages
SAME_TREES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (
    1,
    9,
)
#: Pages that are run in a second and less: the others are slow.
QUICK = ("coming_from_r.rst", "concepts.rst", "multicalibration.rst")
#: Ours are errors; those of other packages about each other are not the page's.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("error::sklearn_calib.exceptions.CalibrationWarning"),
]
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def extras(*wanted):
    """The packages that extras of pyproject.toml name, those of the extras in them included."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = set()
    for extra in wanted:
        (listed,) = re.findall(rf"(?ms)^{extra} = \[(.*?)\](?=$| #)", text)
        for requirement in re.findall(r'"([^"]+)"', listed):
            inner = re.fullmatch(r"sklearn-calib\[(.+)\]", requirement)
            name = re.match(r"[\w-]+", requirement)[0].lower()
            found |= extras(*inner[1].split(",")) if inner else {name}
    return found


@cache  # the packages of the environment are many
def beyond_all():
    """Modules that `pip install '.[all]'` does not bring, though our tests or pages import them."""
    more = extras("test", "doc") - extras("all") | {
        "torch",
        "skorch",
        "pyspark",
        "catboost",
    }
    more |= {
        "xgboost",
        "psycopg",
        "pymysql",
        "adbc-driver-postgresql",
        "ibis-framework",
    }
    brought = packages_distributions().items()
    names = {name for name, by in brought if {each.lower() for each in by} & more}
    ours = {"pytest", "_pytest", "py", "xdist"}  # which run this
    return names.union(name.replace("-", "_") for name in more) - ours


@contextmanager
def hidden(names):
    """These modules cannot be imported, nor are they in the list of those that were."""

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in names:
                raise ModuleNotFoundError(
                    f"No module named {name!r}: not in the extra `all`"
                )

    there = {
        name: sys.modules[name]
        for name in [*sys.modules]
        if name.partition(".")[0] in names
    }
    sys.meta_path.insert(0, finder := Finder())
    for name in there:
        del sys.modules[name]
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(there)


def installed(needs):
    """Whether the packages of a caption are there; a server or another program never is."""
    names = re.sub(r"``pip install ([^`]+)``", r"\1", needs).replace("-", "_").split()
    return (
        all(importlib.util.find_spec(name) for name in names)
        if needs[:2] == "``"
        else not needs
    )


def run(page, wanted, capsys):
    """Pairs of what the page shows and what the program before it printed."""
    module = types.ModuleType("snippet")
    said, pairs = "", []
    sys.modules["snippet"] = module  # so that its classes can be pickled
    try:
        for block in filter(wanted, blocks(page)):
            if block.kind == "python":
                exec(compile(block.text, page, "exec"), vars(module))
            for command in re.findall(
                r"(?m)^\$ sklearn-calib (.+(?:\\\n.+)*)$", block.text
            ):
                if block.kind == "console":
                    assert main(shlex.split(command)) in (0, 3), command
            if block.kind == "text":
                pairs.append((block.text, said))
            else:
                said = capsys.readouterr().out
    finally:
        del sys.modules["snippet"]
    return pairs


def same(shown, printed):
    """Equal words; numbers to a few percent, since other versions of libraries fit others."""
    words, numbers = (
        [find(" ".join(text.split())) for text in (shown, printed)]
        for find in (lambda text: NUMBER.sub("#", text), NUMBER.findall)
    )
    assert words[0] == words[1]
    ours, theirs = (np.array(values, dtype=float) for values in numbers)
    np.testing.assert_allclose(theirs, ours, rtol=0.05, atol=0.005)


@pytest.mark.parametrize(
    "page",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES],
)
def test_a_page_runs_with_the_extra_all(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    commands = page != "command_line.rst"  # all of which run in test_cli_docs.py
    with hidden(beyond_all()):
        pairs = run(
            page, lambda b: not b.needs and (commands or b.kind == "python"), capsys
        )
    if page in SHOWN:
        assert len(pairs) >= 4
        for shown, printed in pairs if SAME_TREES else ():
            same(shown, printed)
        assert (
            tmp_path / "report.html"
        ).stat().st_size > 10_000  # the last step was reached
    if page == "confidence_of_language_models.rst":
        answers = (tmp_path / "answers.html").read_text(encoding="utf-8")
        assert "only 5 different predictions" in answers


@pytest.mark.slow
@pytest.mark.parametrize("page", [n for n in NAMES if any(b.needs for b in blocks(n))])
def test_programs_that_need_more_run_where_it_is(page, tmp_path, monkeypatch, capsys):
    needed = [block.needs for block in blocks(page) if block.needs]
    if not any(map(installed, needed)):
        pytest.skip(f"not installed: {needed}")
    monkeypatch.chdir(tmp_path)
    run(page, lambda block: block.kind == "python" and installed(block.needs), capsys)


def test_no_page_needs_what_it_does_not_name(tmp_path, monkeypatch, capsys):
    """The check bites: a module beyond the extra is rejected, and a caption is what excuses it."""
    assert {"duckdb", "polars", "xgboost", "lightgbm", "onnxruntime"} <= beyond_all()
    assert (
        not {"pandas", "pyarrow", "dask", "onnx", "sqlalchemy", "pytest"} & beyond_all()
    )
    with (
        hidden({"duckdb"}),
        pytest.raises(ModuleNotFoundError, match="not in the extra"),
    ):
        import duckdb  # noqa: F401
    assert installed("") and not installed("``pip install none-such``")
    assert not installed("Java and ``pip install numpy``") and installed(
        "``pip install numpy``"
    )


def test_thirty_programs_are_short():
    """A question as the heading, one to four lines, and a page that states more."""
    text = (GUIDE / "thirty_programs.rst").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^(.+\?)\n-+\n", text)
    questions, answers = parts[1::2], parts[2::2]
    assert len({*questions}) == len(questions) == 30
    for question, answer in zip(questions, answers, strict=True):
        (program,) = DIRECTIVE.findall(answer)
        assert 1 <= len(program[-1].strip().splitlines()) <= 4, question
        (more,) = re.findall(r"More: :doc:`(\w+)`\.", answer)
        assert (GUIDE / f"{more}.rst").exists(), question


def test_blocks_of_a_page(tmp_path, monkeypatch):
    (tmp_path / "page.rst").write_text(
        "A\n=\n\n.. include:: part.inc\n\n.. tip::\n\n   .. code-block:: text\n\n      3\n\n"
        ".. code-block:: console\n   :caption: Needs Java\n\n   $ a\n\nEnd.\n",
        encoding="utf-8",
    )
    (tmp_path / "part.inc").write_text(
        ".. code-block:: python\n\n   x = 1\n\n   y = 2\n", "utf-8"
    )
    monkeypatch.setattr("pages.GUIDE", tmp_path)
    assert [*blocks("page.rst")] == [
        Block("python", "x = 1\n\ny = 2\n", ""),
        Block("text", "3\n", ""),
        Block("console", "$ a\n", "Java"),
    ]
