"""The house does not grow unnoticed, and what counts it can tell."""

import house
import pytest
import test_architecture

SLOW = {"circles of imports": pytest.mark.slow}  # seconds of the import statements of all files


@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in house.LIMITS])
def test_limits(name):
    found = house.COUNTS[name]()
    assert found <= house.LIMITS[name], f"{found} {name}; `python tests/house.py -v` lists them"


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
    assert (counts["files"], counts["rooms"], counts["classes"]) == (5, 4, 3)
