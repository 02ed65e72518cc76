"""Bars of commands only move forwards, and are full when the work is done."""

import shutil
import tempfile
from pathlib import Path

import pytest
from rich.progress import Progress
from stored_outputs import CASES, enter_folder, make_folder, run_command

TITLES = (
    "audit, advice",
    "audit, two files",
    "audit, saved",
    "audit-multilabel",
    "compare, identifiers",
    "apply",
)


@pytest.fixture
def bars(monkeypatch):
    """The fractions of each bar, by its number."""
    found = {}

    def add_task(self, description, **options):
        found[len(found)] = []
        return len(found) - 1

    def update(self, number, completed, total):
        found[number].append(completed / total)

    monkeypatch.setattr(Progress, "add_task", add_task)
    monkeypatch.setattr(Progress, "update", update)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("title", TITLES)
def test_bars_move_forwards_until_they_are_full(bars, title):
    lines = CASES[title]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(make_folder().name, folder, dirs_exist_ok=True)
        bars.clear()
        with enter_folder(Path(folder)):
            for line in [lines] if isinstance(lines, str) else lines:
                code, _, err = run_command(line)
                assert code == 0, err
    moved = [fractions for fractions in bars.values() if fractions]
    assert moved
    for fractions in moved:
        assert fractions == sorted(fractions)
        assert fractions[0] >= 0 and fractions[-1] == 1
