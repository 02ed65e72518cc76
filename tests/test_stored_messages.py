"""Every message of every public call is what it was when somebody last looked at it.

After an intended change run ``python tests/stored_messages.py``, and read what it
prints.
"""

import sys

import numpy as np
import pytest
from stored_messages import list_cases, message_of, read_messages

CASES = list_cases()
STORED = read_messages()
#: Of functions and classes, in one test.
PER_TEST = 16
WRITE = "run `python tests/stored_messages.py`"


def list_names():
    """Names of some functions and classes."""
    names = sorted(CASES)
    return [names[start : start + PER_TEST] for start in range(0, len(names), PER_TEST)]


@pytest.mark.skipif(
    np.__version__ < "2" or sys.version_info < (3, 11),
    reason="the messages were written by numpy 2, whose words for values differ",
)
@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("names", list_names(), ids=lambda names: names[0])
def test_messages_are_what_they_were(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in names:
        assert CASES[name].keys() == STORED.get(name, {}).keys(), f"{name}: {WRITE}"
        for title, case in CASES[name].items():
            expected = STORED[name][title]
            if expected is not None:
                found = message_of(*case)
                assert found == expected, f"{name}, {title}: {WRITE}"
