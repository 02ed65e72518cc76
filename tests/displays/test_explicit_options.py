"""The constructors of displays have explicit options, which agree with what they pass them to."""

import inspect
import re

import pytest
from cases import run_every_case

from sklearn_calib import decisions, decomposition, displays, groups, inference, metrics

MAKERS = [
    (cls, name)
    for cls in map(displays.__dict__.get, displays.__all__)
    for name in dir(cls)
    if name.startswith("from_")
]
SUB_PACKAGES = (decisions, decomposition, groups, inference, metrics)
#: A docstring's names of parameters, and where they are described.
AS_IN = re.compile(r"^(\w+(?:, \w+)*)\n +As in `(\w+)`", re.MULTILINE)


def parameters_of(function):
    return inspect.signature(function).parameters


def find_function(cls, name):
    """Return the function or method that a docstring names."""
    if hasattr(cls, name):
        return getattr(cls, name)
    return next(getattr(one, name) for one in SUB_PACKAGES if name in one.__all__)


@pytest.mark.whole
@run_every_case(("cls", "name"), MAKERS)
def test_all_options_are_named_and_typed(cls, name):
    for one in parameters_of(getattr(cls, name)).values():
        assert one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        assert one.annotation is not one.empty


@pytest.mark.whole
@run_every_case(("cls", "name"), MAKERS)
def test_defaults_are_those_of_the_function_that_describes_them(cls, name):
    maker = getattr(cls, name)
    described = AS_IN.findall(inspect.getdoc(maker))
    assert described
    for names, function in described:
        known = parameters_of(find_function(cls, function))
        for option in names.split(", "):
            assert parameters_of(maker)[option].default == known[option].default, option


@pytest.mark.whole
@run_every_case(("cls", "name"), MAKERS)
def test_all_options_are_described(cls, name):
    text = inspect.getdoc(getattr(cls, name))
    described = re.findall(r"^(\w+(?:, \w+)*)(?: :.*)?\n {4}\S", text, re.MULTILINE)
    described += re.findall(r"^(\w+) : .*$", text, re.MULTILINE)
    named = {option for names in described for option in names.split(", ")}
    assert set(parameters_of(getattr(cls, name))) <= named
