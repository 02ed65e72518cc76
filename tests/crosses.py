"""Which sets of a cross of parameters run without asking; the rule itself is in ``conftest.py``."""

from collections import Counter


def with_each_value(sets, times):
    """Places of sets of parameters in which each value comes `times`, if it comes so often."""
    seen, kept = Counter(), set()
    for news in range(max(map(len, sets)), 0, -1):  # those first that bring the most
        for at, values in enumerate(sets):
            if at not in kept and sum(seen[value] < times for value in values) >= news:
                kept.add(at)
                seen.update(values)
    return kept
