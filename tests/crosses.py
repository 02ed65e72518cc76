"""Which sets of a cross of parameters run without asking; the rule itself is in ``conftest.py``."""


def with_each_value(sets):
    """Places of sets of parameters in which each value comes."""
    seen, kept = set(), set()
    for news in range(max(map(len, sets)), 0, -1):  # those first that bring the most
        for at, values in enumerate(sets):
            if at not in kept and len(set(values) - seen) >= news:
                kept.add(at)
                seen.update(values)
    return kept
