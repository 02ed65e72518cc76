"""What would break on Windows, played on any system: open files, drives, consoles of 8 bits."""

import io
import os
import re
import time
from pathlib import Path

import pytest

from sklearn_calib import _cli
from sklearn_calib._cli import _remote
from sklearn_calib._cli._request import Request
from sklearn_calib._files import atomic, input_files
from sklearn_calib._files.input_files import expand_to_names_paths_and_filesystems

LONG_AGO = 10 * atomic.LEFTOVER_AGE_SECONDS


def is_open(path):
    found = (
        os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")
    )
    return any(os.path.exists(each) and os.path.samefile(each, path) for each in found)


@pytest.fixture
def windows(monkeypatch):
    """Files that this process has open are neither moved nor removed."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("nothing says here which files are open")
    usual = {name: getattr(os, name) for name in ("replace", "unlink")}

    def refusing(name):
        def call(path, *others, **options):
            if any(os.path.isfile(each) and is_open(each) for each in (path, *others)):
                raise PermissionError(13, "Access is denied", path)
            return usual[name](path, *others, **options)

        return call

    monkeypatch.setattr(atomic, "_IS_WINDOWS", True)
    for name in usual:
        monkeypatch.setattr(os, name, refusing(name))


def old(path):
    os.utime(path, (time.time() - LONG_AGO,) * 2)


def test_a_file_is_closed_before_it_takes_its_name(windows, tmp_path):
    path = tmp_path / "out.txt"
    atomic.write_atomically(path, "first")
    atomic.write_atomically(path, "second")
    assert path.read_text("utf-8") == "second" and len([*tmp_path.iterdir()]) == 1


def test_a_scanner_lets_go(windows, tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    scanner = open(path, "rb")  # noqa: SIM115 - closed by the first pause
    pauses = []
    monkeypatch.setattr(time, "sleep", lambda s: (pauses.append(s), scanner.close()))
    atomic.write_atomically(path, "new")
    assert path.read_text("utf-8") == "new" and len(pauses) == 1


def test_a_file_that_stays_open_elsewhere_is_said_and_kept(
    windows, tmp_path, monkeypatch
):
    monkeypatch.setattr(atomic, "_SCANNER_WAIT_SECONDS", 0)
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    with (
        open(path, "rb"),
        pytest.raises(PermissionError, match="another program has it open"),
    ):
        atomic.write_atomically(path, "new")
    assert path.read_text("utf-8") == "old" and len([*tmp_path.iterdir()]) == 1


def test_a_lock_leaves_no_file(windows, tmp_path):
    with atomic.lock_file(tmp_path / "state.json", 0) as locked:
        assert locked and len([*tmp_path.iterdir()]) == 1
    assert not [*tmp_path.iterdir()]


def test_leftovers_go_where_nobody_has_them_open(windows, tmp_path):
    path = tmp_path / "out.txt"
    mark = atomic._hash_file_name(path)
    dead, living, young = (tmp_path / f".{mark}{n:016x}.tmp" for n in range(3))
    for each in (dead, living, young):
        each.write_text("half", encoding="utf-8")
    old(dead)
    old(living)
    with open(living, "ab"):
        atomic.write_atomically(path, "new")
    assert {each.name for each in tmp_path.iterdir()} == {
        path.name,
        living.name,
        young.name,
    }


def test_folders_of_dead_processes_go(windows, tmp_path, monkeypatch):
    monkeypatch.setattr(atomic.tempfile, "tempdir", str(tmp_path))
    dead = tmp_path / f"{atomic._TEMPORARY_FOLDER_PREFIX}dead"
    dead.mkdir()
    (dead / ".lock").touch()
    old(dead / ".lock")
    with atomic.temporary_folder() as living:
        old(os.path.join(living, ".lock"))
        with atomic.temporary_folder() as second:
            found = {entry.name for entry in os.scandir(tmp_path)}
            assert found == {os.path.basename(living), os.path.basename(second)}
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "path", ["C://tables/new.csv", "C:\\tables\\new.csv", "C:/tables/new.csv"]
)
def test_a_drive_is_no_address(path):
    with _remote.local_files(Request(files=[path])) as found:
        # No --allow remote is needed.
        assert found == [path]
    assert expand_to_names_paths_and_filesystems(path) == [(path, path, None)]
    with pytest.raises(FileNotFoundError):
        input_files.open_decompressed(path)


def test_a_percent_sign_in_the_name_of_a_file(tmp_path):
    path = tmp_path / "100%25.csv"
    path.write_text("y,p\n", encoding="utf-8")
    options = Request(files=[path.as_uri()], allow_remote=True)
    with _remote.local_files(options) as found:
        assert [os.path.realpath(each) for each in found] == [os.path.realpath(path)]


def in_console(encoding, stream, words, monkeypatch):
    """The exit code, and what a console of that encoding shows."""
    console = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(f"sys.{stream}", console)
    code = _cli.main(words.split())
    console.flush()
    return code, console.buffer.getvalue().decode(encoding)


def stored(folder):
    rows = "".join(
        f"{n // 2 % 2},{0.1 + 0.007 * n:.3f},{('Łódź', '▲')[n % 2]}\n"
        for n in range(120)
    )
    (folder / "t.csv").write_text(f"y,p,miasto Łódź\n{rows}", encoding="utf-8")


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_a_console_of_8_bits_takes_errors(encoding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored(tmp_path)
    words = "audit t.csv --label y --prob p --by Łódź"
    code, shown = in_console(encoding, "stderr", words, monkeypatch)
    # the letter that these consoles do not have
    assert code == 2 and "\\u0141" in shown


@pytest.mark.slow
def test_a_console_of_8_bits_takes_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored(tmp_path)
    (tmp_path / "t.csv").write_text(
        (tmp_path / "t.csv").read_text("utf-8").replace("miasto Łódź", "by"),
        encoding="utf-8",
    )
    words = "audit t.csv --label y --prob p --by by --resamples 20 --out none --markdown m.md"
    code, shown = in_console("cp1252", "stdout", words, monkeypatch)
    assert code == 0 and "\\u0141" in shown and "\\u25b2" in shown
    assert "Łódź" in (tmp_path / "m.md").read_text("utf-8")


def test_texts_have_an_encoding():
    """Where it is left out, Windows takes one of 8 bits."""
    here = Path(__file__).parent.parent
    found = []
    for folder in ("sklearn_calib", "tests", "doc", "examples", "benchmarks", ".ci"):
        for path in (here / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for start in (
                m.end() for m in re.finditer(r"\.(?:read|write)_text\(", text)
            ):
                depth, end = 1, start
                while depth:
                    depth += {"(": 1, ")": -1}.get(text[end], 0)
                    end += 1
                if not re.search(r"encoding|utf-8", text[start:end]) and path != Path(
                    __file__
                ):
                    found.append(f"{path}: ...text({text[start:end]}")
    assert not found
