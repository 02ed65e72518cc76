"""A bound that a message names is the bound: it is accepted if it is said to be inside.

The messages are the stored ones of all public calls, so a new argument comes by itself.
Of "level between 0 and 1" neither end is accepted, of "resolution from 1e-6 to 1" both
are, and what lies next to an end, on its other side, is treated the other way.
"""

import copy
import re
import warnings
from collections import defaultdict

import numpy as np
import pytest
from cases import run_every_case
from stored_messages import read_messages
from test_hostile_options import CALLS

NUMBER = r"(-?[\d.]+(?:e[+-]?\d+)?(?:/\d+)?)"
#: Forms of a range of an argument NAME, and whether each number is a low or a high end
#: and inside.
FORMS = [
    (rf"{NUMBER} < NAME < {NUMBER}", [("low", False), ("high", False)]),
    (rf"{NUMBER} <= NAME <= {NUMBER}", [("low", True), ("high", True)]),
    (rf"from {NUMBER} to {NUMBER}", [("low", True), ("high", True)]),
    (rf"from {NUMBER} to infinity", [("low", True)]),
    (rf"between {NUMBER} and {NUMBER}", [("low", False), ("high", False)]),
    (rf"above {NUMBER} and below {NUMBER}", [("low", False), ("high", False)]),
    (
        rf"above {NUMBER},? (?:and )?(?:at most|up to) {NUMBER}",
        [("low", False), ("high", True)],
    ),
    (rf"in \[{NUMBER}, {NUMBER}\)", [("low", True), ("high", False)]),
    (rf"NAME >= {NUMBER}", [("low", True)]),
    (rf"NAME > {NUMBER}", [("low", False)]),
    (rf"NAME <= {NUMBER}", [("high", True)]),
    (rf"NAME above {NUMBER}", [("low", False)]),
]
#: Numbers of this size or more take long if they are accepted.
MANY = 1000
#: The smallest one takes minutes.
SLOW_ENDS = {("resolution", 1e-6)}
#: Of arrays, not of one number.
OF_ARRAYS = {"bands", "counts", "grades", "mean", "sample_weight", "thresholds", "time"}


def ends_of(argument, expected):
    """(number, low or high, whether it is inside) of the ends that a text names."""
    for pattern, ends in FORMS:
        found = re.search(pattern.replace("NAME", argument), expected)
        if found:
            numbers = [evaluate(one) for one in found.groups()]
            return [(n, *end) for n, end in zip(numbers, ends, strict=True)]
    return []


def evaluate(text):
    top, _, below = text.partition("/")
    number = float(top) / float(below or 1)
    return int(number) if number == int(number) and abs(number) < 1e15 else number


def bounds():
    """{name of a call: [(argument, text, end)]} of all ends that messages name."""
    found = defaultdict(dict)
    for name, titles in read_messages().items():
        for title, message in titles.items():
            argument = title.rpartition(", ")[0]
            if name not in CALLS or not message or argument in OF_ARRAYS:
                continue
            expected = re.match(r"(?:\w+: )?expected (.*?), got ", message, re.DOTALL)
            for end in ends_of(argument, expected.group(1)) if expected else ():
                found[name][argument, expected.group(1), end] = None
    return {name: [*ends] for name, ends in sorted(found.items())}


BOUNDS = bounds()


def values_at(number, side, inside, is_whole):
    """(value, whether it is accepted): the end itself, and its neighbour on the other side."""
    step = 1 if is_whole else 1e-6 * (abs(number) or 1)
    outwards = -step if side == "low" else step
    yield number, inside
    yield number + (outwards if inside else -outwards), not inside


def message_of(name, argument, value):
    run, given, _ = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(**copy.deepcopy(given) | {argument: value})
        except (ValueError, TypeError) as error:
            return str(error)
    return ""


@pytest.mark.slow
@run_every_case("name", [*BOUNDS])
def test_a_bound_that_a_message_names_is_the_bound(name):
    for argument, expected, (number, side, inside) in BOUNDS[name]:
        is_whole = re.search(r"whole|n_\w+ [<>]|rows|odd", expected) is not None
        for value, accepted in values_at(number, side, inside, is_whole):
            if accepted and (abs(value) > MANY or (argument, value) in SLOW_ENDS):
                continue
            message = message_of(name, argument, value)
            refused = expected in message
            # scikit-learn checks types and ranges of some constructors before
            refused |= not accepted and message.startswith(f"The '{argument}'")
            assert refused is not accepted, f"{name}({argument}={value!r}): {expected}"


def test_ends_are_read():
    level = ends_of("level", "a level between 0 and 1")
    assert level == [(0, "low", False), (1, "high", False)]
    strength = ends_of("strength", "0 <= strength <= 1/3")
    assert strength == [(0, "low", True), (1 / 3, "high", True)]
    assert sum(map(len, BOUNDS.values())) > 100
    assert np.isfinite([end[0] for ends in BOUNDS.values() for _, _, end in ends]).all()
