"""Look at the fields of errors; `test_error_messages.py` looks at their sentences."""

import re
from contextlib import contextmanager

import pytest

from sklearn_calib.exceptions import InvalidInputError


def parse_error_fields(message):
    """The fields of a row in a table: "rule, got value. Hint"; all but the rule may be missing."""
    form = r"(?P<expected>.*?)(, got (?P<value>.*?))?([.] (?P<hint>[A-Z].*))?"
    found = re.fullmatch(form, message).groupdict()
    return {name: text for name, text in found.items() if text}


@contextmanager
def raises_invalid_input(kind, **fields):
    """An `InvalidInputError` that is a `kind`; a text is the pattern that its field begins with.

    `where` ends with its pattern: the method, or the part of a document.
    """
    with pytest.raises(kind) as raised:
        yield raised
    error = raised.value
    assert isinstance(error, InvalidInputError), repr(error)
    for name, wanted in fields.items():
        found = getattr(error, name)
        pattern = rf".*\b{wanted}\Z" if name == "where" else wanted
        fits = (
            re.match(pattern, found, re.DOTALL)
            if isinstance(wanted, str)
            else wanted == found
        )
        assert fits, f"{name}: {found!r}, not {wanted!r}, of: {error}"
