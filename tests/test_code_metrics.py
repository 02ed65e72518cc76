"""The counts of the package stay below their limits, and are counted correctly."""

import code_metrics
import pytest
import test_architecture
from cases import run_every_case

# Other limits need the syntax of all files, which takes seconds.
QUICK = {"files", "public names", "sub-packages", "layers", "options of audit"}
QUICK |= {"most options of another command"}


@run_every_case(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in code_metrics.LIMITS
    ],
)
def test_limits(name):
    found = code_metrics.COUNTS[name]()
    assert found <= code_metrics.LIMITS[name], (
        f"{found} {name}; `python tests/code_metrics.py -v` lists them"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", code_metrics.MINIMA)
def test_minima(name):
    found = code_metrics.COUNTS[name]()
    assert found >= code_metrics.MINIMA[name], f"{found} {name}: explain why, not what"


def test_comments_that_are_counted(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "# why\nx = 1  # for the reader\ny = 2  # noqa: E501\n# -- part ----\n",
        encoding="utf-8",
    )
    assert code_metrics.count_comments(path) == 2


def test_neither_annotations_nor_line_breaks_add_tokens(tmp_path):
    short = tmp_path / "short.py"
    short.write_text("def f(a):\n    b = [a, 1]\n    return b + b\n", encoding="utf-8")
    long = tmp_path / "long.py"
    long.write_text(
        "def f(a: list[int]) -> list:\n    b: list = [\n        a,\n        1,\n    ]\n"
        "    return (\n        b + b\n    )\n",
        encoding="utf-8",
    )
    count = code_metrics.count_unformatted_tokens
    # The annotated assignment keeps its colon and something behind it.
    assert count(long) == count(short) + 2 == 19


MAX_FUNCTION_TOKENS = 750
MAX_FILE_TOKENS = 4450
#: A compiled loop, which numba cannot inline if it is divided.
LONGER_FUNCTIONS = {"_grow_trees_in_place_and_get_count": 1050}


@pytest.mark.slow
def test_functions_and_files_stay_small():
    check_sizes(code_metrics.FILES)


def check_sizes(paths):
    """Check the sizes of files; test_extending.py passes those that its pages add."""
    for path in paths:
        count = code_metrics.count_tokens(path)
        assert count <= MAX_FILE_TOKENS, f"{path.name} has {count} tokens"
        for name, count in code_metrics.count_function_tokens(path):
            limit = LONGER_FUNCTIONS.get(name, MAX_FUNCTION_TOKENS)
            assert count <= limit, f"{path.name}: {name} has {count} tokens"


@pytest.mark.slow
@pytest.mark.parametrize("name", code_metrics.CALL_PATH_LIMITS)
def test_ways(name):
    path, (files, depth) = (
        code_metrics.measure_call_paths()[name],
        code_metrics.CALL_PATH_LIMITS[name],
    )
    assert len(path.files) <= files
    assert len(path.deepest) <= depth
    assert not path.written  # what is computed is computed before


def test_functions_on_a_call_path():
    from sklearn_calib._show import make_printable

    path = code_metrics.trace_call(lambda: [make_printable("a"), make_printable("b")])
    assert path.files == {"_show/_names.py"}
    assert [name for _, _, name in path.deepest] == ["make_printable", "redact_secrets"]
    assert {name: n for (_, _, name), n in path.calls.items()} == {
        "make_printable": 2,
        "redact_secrets": 2,
    }
    assert not path.before and not path.written


SIX = "".join(f"    x = {i} * x\n" for i in range(6))
PLANTED = {
    "a.py": '"""A.\n\nx = 1\n"""\n\nfrom .b import B\n\n\nclass A:  # one\n    pass\n\n\n'
    f"def f(x):\n{SIX}",
    "b.py": "class B:\n    pass\n\n\ndef g():\n    from .subpackage import A\n\n    return A\n",
    "subpackage/__init__.py": "from ._c import A as A\n\n__all__ = ['A']\n",
    "subpackage/_c.py": "from ..a import A as Other\n\n\nclass A(Other):\n    pass\n\n\n"
    f"def g(x):\n{SIX}",
    "unread.py": '_MOST = 3\nMAX_ROWS = 4\n\n\ndef moved_rows(where):\n    """The rows."""\n'
    "    given = where, 1\n    return sum_of(*given)\n\n\ndef sum_of(a, *, _where=''):\n"
    '    """Return a sum."""\n    pair = a, a\n    return sum_of(*pair), pair\n',
    "alone.py": "def f(loss='log'):\n    if loss == 'brier':\n        return {'log': 'logs'}\n",
}


@pytest.fixture
def planted(monkeypatch, tmp_path):
    for name, text in PLANTED.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(test_architecture, "ROOT", tmp_path)
    monkeypatch.setattr(code_metrics, "ROOT", tmp_path)
    cached = (
        code_metrics.file_of,
        code_metrics.nodes_of_kind,
        code_metrics.function_names,
    )
    for function in cached:
        function.cache_clear()
    monkeypatch.setattr(code_metrics, "FILES", sorted(tmp_path.rglob("*.py")))
    yield
    for function in cached:
        function.cache_clear()


@pytest.mark.usefixtures("planted")
def test_what_is_counted():
    counts = {
        name: count()
        for name, count in code_metrics.COUNTS.items()
        if name != "public names"
    }
    assert code_metrics.find_import_cycles() == [["a.py", "b.py", "subpackage/_c.py"]]
    assert [one[::2] for one in code_metrics.repeats()] == [
        ("a.py", "subpackage/_c.py", 6)
    ]
    assert code_metrics.named_losses() == ["alone.py:2", "alone.py:3"]
    assert code_metrics.classes()["A"] == ["a.py", "subpackage/_c.py"]
    assert counts["code lines"] == 10 + 5 + 2 + 10 + 3 + 8
    assert (counts["where parameters"], counts["vague constants"]) == (2, 1)
    assert counts["tuples that are only unpacked"] == 1
    names = ["f", "g", "g", "f", "moved_rows", "sum_of"]
    assert sorted(code_metrics.function_names()) == sorted(names)
    assert counts["percent of function names of one word"] == round(100 * 4 / 6, 1)
    assert counts["percent of function names with a participle"] == round(100 / 6, 1)
    assert counts["percent of function names with of"] == round(100 / 6, 1)
    assert counts["percent of docstrings that are not imperative"] == 50
    assert code_metrics.count_tokens(code_metrics.ROOT / "b.py") == 16
    assert (counts["files"], counts["sub-packages"], counts["classes"]) == (6, 1, 3)
