"""Conditions met exactly, and what Ctrl-C leaves of a file."""

import os

import pytest

from sklearn_calib._cli._result import parse_conditions
from sklearn_calib._files.atomic import open_atomically


@pytest.mark.parametrize(
    ("sign", "below", "equal", "above"),
    [
        (">", False, False, True),
        (">=", False, True, True),
        ("<", True, False, False),
        ("<=", True, True, False),
    ],
)
def test_conditions_at_their_number(sign, below, equal, above):
    [condition] = parse_conditions([f"accuracy {sign} 0.75"])
    for value, holds in ((0.7499, below), (0.75, equal), (0.7501, above)):
        assert condition.evaluate_condition({"value": value})[0] is holds


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_nothing_is_left_of_a_file_that_was_given_up(tmp_path, error):
    (tmp_path / "new.txt").write_bytes(b"yesterday")
    with pytest.raises(error), open_atomically(tmp_path / "new.txt") as file:
        file.write(b"to")
        raise error
    assert os.listdir(tmp_path) == ["new.txt"]
    assert (tmp_path / "new.txt").read_bytes() == b"yesterday"
