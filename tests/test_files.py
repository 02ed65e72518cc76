"""Files are written whole, by one process at a time, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sklearn_calib._cli import _remote
from sklearn_calib._cli._remote import local_files
from sklearn_calib._cli._request import Request
from sklearn_calib._files import atomic
from sklearn_calib._files.atomic import (
    lock_file,
    open_atomically,
    temporary_folder,
    write_atomically,
)

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="an open file cannot be removed there"
)

WRITER = """
import runpy, sys, time
globals().update(runpy.run_path(sys.argv[1]))  # without the package, which takes seconds
sys.argv.pop(1)
with {what} as found:
    print(found if isinstance(found, str) else "", flush=True)
    time.sleep(60)
"""


def started(what, *arguments, **more):
    """A process that is inside, and the line that it printed."""
    code = WRITER.format(what=what)
    command = [sys.executable, "-c", code, atomic.__file__, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)
    return process, process.stdout.readline().strip()


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, SystemExit, ValueError, GeneratorExit]
)
def test_nothing_is_left_after_any_error(tmp_path, error):
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(error), open_atomically(path) as file:
        file.write(b"new")
        raise error
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"] and path.read_text(
        encoding="utf-8"
    ) == "old"


def test_leftovers_of_dead_writers_go_at_the_next_write(tmp_path):
    path, other = tmp_path / "out.txt", tmp_path / "other.txt"
    what = "open_atomically(sys.argv[1])"
    (dead, _), (living, _), (elsewhere, _) = (
        started(what, p) for p in (path, path, other)
    )
    kill(dead)
    kill(elsewhere)
    left = {p.name for p in tmp_path.iterdir()}
    assert len(left) == 3 and all(name.endswith(".tmp") for name in left)
    (tmp_path / ".0123456789abcdef.tmp").write_text("not ours", encoding="utf-8")
    try:
        write_atomically(path, "new")
        now = {p.name for p in tmp_path.iterdir()}
        assert len(now & left) == 2  # of the living writer, and of another file
        assert now - left == {"out.txt", ".0123456789abcdef.tmp"}
    finally:
        kill(living)
    write_atomically(path, "newer")
    write_atomically(other, "newer")
    assert {p.name for p in tmp_path.iterdir()} == {
        "out.txt",
        "other.txt",
        ".0123456789abcdef.tmp",
    }


def test_the_longest_names_can_be_written_and_held(tmp_path):
    path = tmp_path / ("x" * 255)
    with lock_file(path, 0):
        write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "new" and len([*tmp_path.iterdir()]) == 1


def test_a_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "state.json"
    process, _ = started("lock_file(sys.argv[1], 0)", path)
    with pytest.raises(TimeoutError), lock_file(path, 0.1):
        pass
    kill(process)
    with lock_file(path, 0) as locked:
        assert locked
    assert not [*tmp_path.iterdir()]


def test_who_waits_gets_it(tmp_path):
    path = tmp_path / "state.json"
    process, _ = started("lock_file(sys.argv[1], 0)", path)
    begin = time.monotonic()
    with pytest.raises(TimeoutError), lock_file(path, 0.4):
        pass
    assert time.monotonic() - begin >= 0.4
    kill(process)


def taken_away(monkeypatch):
    """Another process removes a file once, after it was opened here and before it is locked."""
    lock, done = atomic._try_lock, []

    def slowly(handle):
        if not done:
            done.append(os.readlink(f"/proc/self/fd/{handle}"))
            os.unlink(done[0])
        return lock(handle)

    monkeypatch.setattr(atomic, "_try_lock", slowly)
    return done


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="names of open files")
def test_three_writers(tmp_path, monkeypatch):
    """The first removes its lock while the second has it open: a third does not get in."""
    path = tmp_path / "state.json"
    done = taken_away(monkeypatch)
    with lock_file(path, 1) as locked:
        assert locked and done and os.path.exists(done[0])
        with pytest.raises(TimeoutError), lock_file(path, 0):
            pass
    done = taken_away(monkeypatch)
    write_atomically(
        path, "new"
    )  # nor is its own file lost that was taken for a leftover
    assert done and path.read_text(encoding="utf-8") == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]


def test_temporary_folders(tmp_path, monkeypatch):
    """None is made for local files; those of dead processes go, those of others stay."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    where = {"env": os.environ | {"TMPDIR": str(tmp_path)}}
    (dead, gone), (living, kept) = (
        started("temporary_folder()", **where) for _ in range(2)
    )
    kill(dead)
    assert os.path.isdir(gone)
    foreign = tmp_path / "sklearn-calib-mine"
    foreign.mkdir()
    try:
        with local_files(Request(files=[str(tmp_path / "t.csv")])):
            assert os.path.isdir(gone)  # nothing was made, nothing looked at
        with temporary_folder() as own:
            assert sorted(os.listdir(tmp_path)) == sorted(
                map(os.path.basename, (kept, own, foreign))
            )
        assert not os.path.exists(own) and os.path.isdir(kept)
    finally:
        kill(living)


@pytest.mark.parametrize("names", [("t.csv", "s3://a/u.csv"), ("s3://a/t.csv", "-")])
def test_copies_of_addresses_are_in_a_folder_of_their_own(tmp_path, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("y,p\n1,0.5\n", encoding="utf-8")
    places = []

    def record(pattern, place, query):
        places.append(place)
        return ["t.csv"]

    monkeypatch.setattr(_remote, "_fetch_local_paths", record)
    request = Request(files=[*names], allow_remote=True)
    with local_files(request, allows_stdin_among_files=True):
        assert len(places) == 2 and all(map(os.path.isabs, places))
    assert not any(os.path.exists(os.path.dirname(place)) for place in places)
