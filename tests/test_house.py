"""The house does not grow unnoticed, and what counts it can tell."""

import ast

import house
import pytest
import test_architecture

SLOW = {  # seconds: the tokens, or the import statements, of all files
    name: pytest.mark.slow for name in ("tokens", "circles of imports")
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in house.LIMITS])
def test_limits(name):
    found = house.COUNTS[name]()
    assert found <= house.LIMITS[name], f"{found} {name}; `python tests/house.py -v` lists them"


@pytest.mark.slow
def test_functions_fit_on_a_screen_and_files_stay_small():
    for path in house.FILES:
        lines = [number for number, _ in house.code_lines(path)]
        assert len(lines) <= 500, f"{path.name} has {len(lines)} lines of code"
        for node in ast.walk(house.parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = sum(node.lineno <= number <= node.end_lineno for number in lines)
                assert body <= 75, f"{path.name}: {node.name} has {body} lines of code"


@pytest.mark.slow
@pytest.mark.parametrize("name", house.WAYS)
def test_ways(name):
    way, (files, depth) = house.ways()[name], house.WAYS[name]
    assert len(way.files) <= files
    assert len(way.deepest) <= depth
    assert not way.written  # what is computed is computed before


def test_what_is_on_the_way():
    from sklearn_calib._show import plain

    way = house.way(lambda: [plain("a"), plain("b")])
    assert way.files == {"_show/_names.py"}
    assert [name for _, _, name in way.deepest] == ["plain", "bare"]
    assert {name: n for (_, _, name), n in way.calls.items()} == {"plain": 2, "bare": 2}
    assert not way.before and not way.written


SIX = "".join(f"    x = {i} * x\n" for i in range(6))
PLANTED = {
    "a.py": '"""A.\n\nx = 1\n"""\n\nfrom .b import B\n\n\nclass A:  # one\n    pass\n\n\n'
    f"def f(x):\n{SIX}",
    "b.py": "class B:\n    pass\n\n\ndef g():\n    from .room import A\n\n    return A\n",
    "room/__init__.py": "from ._c import A as A\n\n__all__ = ['A']\n",
    "room/_c.py": "from ..a import A as Other\n\n\nclass A(Other):\n    pass\n\n\n"
    f"def g(x):\n{SIX}",
    "alone.py": "def f(loss='log'):\n    if loss == 'brier':\n        return {'log': 'logs'}\n",
}


@pytest.fixture
def planted(monkeypatch, tmp_path):
    for name, text in PLANTED.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(test_architecture, "ROOT", tmp_path)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    house.file_of.cache_clear()
    monkeypatch.setattr(house, "FILES", sorted(tmp_path.rglob("*.py")))
    yield
    house.file_of.cache_clear()


@pytest.mark.usefixtures("planted")
def test_what_is_counted():
    counts = {name: count() for name, count in house.COUNTS.items() if name != "public names"}
    assert house.circles() == [["a.py", "b.py", "room/_c.py"]]
    assert [one[::2] for one in house.repeats()] == [("a.py", "room/_c.py", 6)]
    assert house.named_losses() == ["alone.py:2", "alone.py:3"]
    assert house.classes()["A"] == ["a.py", "room/_c.py"]
    assert counts["code lines"] == 10 + 5 + 2 + 10 + 3
    assert house.count_tokens(house.ROOT / "b.py") == 16
    assert (counts["files"], counts["rooms"], counts["classes"]) == (5, 4, 3)
