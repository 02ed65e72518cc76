"""The default that a docstring names is the one of the signature, for everything offered."""

import inspect
import re

import numpy as np
from cases import run_every_case
from offered import offered

LINE = re.compile(r"^(\w+(?:, \w+)*) : .*\bdefault=(.*)$", re.MULTILINE)

REFERENCE = re.compile(
    r"^(\w+(?:,\s+\w+)*)(?: : [^\n]*)?\n    (?:As of|As in|As for|See) `~?([\w.]+)`",
    re.MULTILINE,
)
#: Defaults that differ from those of the function that describes the argument.
OTHER_DEFAULTS = {("proper_calibration_error", "recalibrator")}


def callables():
    """{name: function, class or method} of all that has arguments."""
    found = {}
    for name, thing in offered():
        found[name] = thing
        for key in dir(thing) if inspect.isclass(thing) else ():
            method = inspect.getattr_static(thing, key)
            if key[0] == "_" or not inspect.isfunction(method):
                continue
            if method.__module__.startswith("sklearn_calib"):
                found[f"{name}.{key}"] = method
    return found


def documented_defaults(thing):
    """(argument, text of its default) in the order of the docstring."""
    for names, text in LINE.findall(inspect.getdoc(thing) or ""):
        names = names.split(", ")
        texts = text.split(" and ")
        yield from zip(
            names, texts * len(names) if len(texts) < 2 else texts, strict=True
        )


CALLABLES = callables()
COUNTED = {
    name: len([*documented_defaults(thing)]) for name, thing in CALLABLES.items()
}


@run_every_case("name", [name for name, number in COUNTED.items() if number])
def test_documented_defaults_are_those_of_the_signature(name):
    parameters = inspect.signature(CALLABLES[name]).parameters
    for argument, text in documented_defaults(CALLABLES[name]):
        value = eval(text, {"inf": np.inf, "np": np, "numpy": np})
        default = parameters[argument].default
        is_same = repr(value) == repr(default) or value == default
        assert is_same, f"{name}: {argument}, default={text}, has {default!r}"


def references():
    """(name, argument, name of the function that describes it)."""
    for name, thing in CALLABLES.items():
        for arguments, other in REFERENCE.findall(inspect.getdoc(thing) or ""):
            for argument in re.split(r",\s+", arguments):
                if other in CALLABLES and (name, argument) not in OTHER_DEFAULTS:
                    yield name, argument, other


@run_every_case(("name", "argument", "other"), references())
def test_arguments_described_elsewhere_have_the_default_of_there(name, argument, other):
    parameters = inspect.signature(CALLABLES[name]).parameters
    described = inspect.signature(CALLABLES[other]).parameters
    if argument in described:
        assert repr(parameters[argument].default) == repr(described[argument].default)


def test_most_defaults_are_documented():
    assert sum(COUNTED.values()) > 900
