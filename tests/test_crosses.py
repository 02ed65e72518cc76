"""Quick tests take each value of a parameter, slow ones all sets of them."""

from collections import Counter
from itertools import product

import pytest
from crosses import with_each_value


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("shape", [(10, 7), (2, 2, 2, 2), (12,), (5, 3, 4)])
def test_each_value_comes_so_often(shape, times):
    sets = [tuple(enumerate(values)) for values in product(*map(range, shape))]
    del sets[3::7]  # not all of a cross
    kept = with_each_value(sets, times)
    there = Counter(value for values in sets for value in values)
    found = Counter(value for at in kept for value in sets[at])
    assert all(found[value] >= min(times, there[value]) for value in there)
    assert len(kept) <= times * sum(shape)
    assert len(shape) == 1 or len(kept) < len(sets) or times == 3


def test_whole_cross_is_slow(request):
    """This file's own tests: not one is lost, and those left out have the mark."""
    plugin = next(p for p in request.config.pluginmanager.get_plugins() if hasattr(p, "CROSS"))

    class Item:
        def __init__(self, a, b):
            self.nodeid, self.marks = f"file::test[{a}-{b}]", set()
            self.callspec = type("Spec", (), {"id": f"{a}-{b}"})

        def iter_markers(self):
            return [getattr(pytest.mark, name) for name in self.marks]

        def add_marker(self, name):
            self.marks.add(name)

    items = [Item(a, b) for a, b in product("abcd", "xyz")]
    plugin.pytest_collection_modifyitems(request.config, items)
    quick = [item.callspec.id for item in items if not item.marks]
    assert 4 <= len(quick) < len(items) == 12
    assert {part for one in quick for part in one.split("-")} == set("abcdxyz")
    few = [Item(a, b) for a, b in product("ab", "xyz")]
    plugin.pytest_collection_modifyitems(request.config, few)
    assert not any(item.marks for item in few)
    whole = [Item(a, b) for a, b in product("abcd", "xyz")]
    for item in whole:
        item.add_marker("whole")
    plugin.pytest_collection_modifyitems(request.config, whole)
    assert all(item.marks == {"whole"} for item in whole)
