"""Of a cross of parameters each value is taken; the mark `cross` has all the other sets."""

from itertools import product
from types import SimpleNamespace

import pytest
from crosses import with_each_value


@pytest.mark.parametrize("shape", [(10, 7), (2, 2, 2, 2), (12,), (5, 3, 4)])
def test_each_value_comes(shape):
    sets = [tuple(enumerate(values)) for values in product(*map(range, shape))]
    del sets[3::7]  # not all of a cross
    kept = with_each_value(sets)
    assert {value for at in kept for value in sets[at]} == {
        v for values in sets for v in values
    }
    assert len(kept) <= sum(shape)
    assert len(shape) == 1 or len(kept) < len(sets)


def test_what_is_left_out_has_the_mark(request):
    """The file's own tests: not one is lost, and those left out have the mark."""
    plugin = next(
        p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "CROSS")
    )

    class Item:
        def __init__(self, a, b, *marks):
            self.nodeid, self.marks = f"file::test[{a}-{b}]", {*marks}
            cases = {f"{x}-{y}": {} for x, y in product("abc", "xyz")}
            self.callspec = SimpleNamespace(
                id=f"{a}-{b}", params={"cases_of_name": cases, "name": a}
            )

        def iter_markers(self):
            return [getattr(pytest.mark, name) for name in self.marks]

        def add_marker(self, name):
            self.marks.add(name)

    def collected(firsts, *marks, fewest=False):
        items = [Item(a, b, *marks) for a, b in product(firsts, "xyz")]
        config = type("Config", (), {"getoption": lambda self, name: fewest})()
        plugin.pytest_collection_modifyitems(config, items)
        titles = [*items[0].callspec.params["cases_of_name"]]
        assert {one for title in titles for one in title.split("-")} == {*"abcxyz"}
        assert len(titles) < 7 if fewest else len(titles) == 9
        added = [item.marks - {*marks} for item in items]
        quick = [
            item.callspec.id
            for item, names in zip(items, added, strict=True)
            if not names
        ]
        assert {part for one in quick for part in one.split("-")} == {*firsts, *"xyz"}
        assert all(names <= {"cross"} for names in added)
        return len(quick), len(items)

    assert 4 <= collected("abcd")[0] < 7
    assert 4 <= collected("abcd", "slow")[0] < 7  # by themselves
    assert collected("a") == (3, 3)  # too few to leave any out
    assert collected("abcd", "whole") == (12, 12)
    for firsts, marks in (("abcd", ()), ("ab", ()), ("abcd", ("whole",))):
        assert collected(firsts, *marks, fewest=True)[0] < 7
