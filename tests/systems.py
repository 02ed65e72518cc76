"""What Windows lacks or words otherwise; the tests that need it are skipped there and say why."""

import os

import pytest

WINDOWS = os.name == "nt"
SIGNALS = pytest.mark.skipif(WINDOWS, reason="no signals that a process could answer")
WORDS = pytest.mark.skipif(WINDOWS, reason="other words for this error")


def symlink(place, target):
    """A symbolic link at `place`; without the right to make one, as on Windows, a skipped test."""
    try:
        os.symlink(target, place)
    except OSError as error:
        if not WINDOWS:
            raise
        pytest.skip(f"no symbolic links for this user: {error}")
