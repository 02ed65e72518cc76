"""What ends a command in the middle: outputs are whole or absent, states are as they were."""

import ast
import contextlib
import io
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_calib import _cli
from sklearn_calib._cli import main
from sklearn_calib._cli._messages import MEANING_BY_EXIT_CODE
from sklearn_calib._files import atomic

resource = pytest.importorskip("resource", reason="a system without limits")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")

ROWS = ["--label", "y", "--prob", "p"]
COMMANDS = {
    "monitor": [
        *["monitor", "t.csv", *ROWS, "--state", "out.json", "--run-length", "1e12"],
        *["--allow", "repeated"],
    ],
    "apply": ["apply", "map.json", "t.csv", "--prob", "p", "--out", "out.json.csv"],
    "lines": ["apply", "map.json", "t.csv", "--prob", "p", "--out", "out.jsonl"],
    "parquet": ["apply", "map.json", "t.csv", "--prob", "p", "--out", "out.parquet"],
    "fit": [
        "fit",
        "t.csv",
        *ROWS,
        "--recalibrator",
        "temperature",
        "--allow",
        "no-gain",
        "--out",
        "out.json",
    ],
    "compare": [
        "compare",
        "t.csv",
        "u.csv",
        *ROWS,
        "--resamples",
        "20",
        "--json",
        "out.json",
    ],
    "audit": [
        "audit",
        "t.csv",
        *ROWS,
        "--no-advice",
        "--out",
        "none",
        "--resamples",
        "2",
        "--json",
    ],
}
COMMANDS["audit"].append("out.json")
SOME_SLOW = [
    name
    if name in ("monitor", "apply", "lines")
    else pytest.param(name, marks=pytest.mark.slow)
    for name in COMMANDS
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rng = np.random.default_rng(0)
    p = rng.random(200)
    frame = pd.DataFrame({"p": p, "y": (rng.random(200) < p).astype(int)})
    frame.to_csv("t.csv", index=False)
    frame.assign(p=p**1.1).to_csv("u.csv", index=False)
    fit = ["--recalibrator", "temperature", "--allow", "no-gain", "--out", "map.json"]
    assert main(["fit", "t.csv", *ROWS, *fit]) == 0
    return tmp_path


def forked(words, before):
    """A process that calls `before` and then runs a command; it has all modules already."""

    def run():
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # where the tests run under nohup
        before()
        sys.exit(main(words))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    return process


def names():
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize(
    ("command", "signals"),
    [
        *((command, [signal.SIGTERM, signal.SIGKILL]) for command in COMMANDS),
        ("monitor", [signal.SIGHUP]),
        *(
            pytest.param(command, [signal.SIGHUP], marks=pytest.mark.cross)
            for command in COMMANDS
            if command != "monitor"
        ),
    ],
)
def test_ended_while_a_file_is_written(folder, command, signals):
    """By each signal, with and without a file of an earlier run; then the command runs well."""
    words = COMMANDS[command]
    out = Path(words[words.index("--state") + 1] if command == "monitor" else words[-1])
    there = names()
    for number in signals:
        # A process that is killed writes no exit code.
        code = -number if number == signal.SIGKILL else 128 + number
        if command == "monitor" and out.exists():
            assert main(["monitor", "u.csv", *words[2:]]) == 0
        before = out.read_bytes() if out.exists() else None
        ready, tell = os.pipe()

        def wait(handle, tell=tell):
            os.write(tell, b"x")
            time.sleep(60)

        process = forked(words, lambda wait=wait: setattr(os, "fsync", wait))
        os.close(tell)
        assert os.read(ready, 1) == b"x", "the file is being written"
        os.close(ready)
        os.kill(process.pid, number)
        process.join(60)
        assert process.exitcode == code
        assert (out.read_bytes() if out.exists() else None) == before
        left = [name for name in names() if name not in (*there, out.name)]
        assert all(name.startswith(".") for name in left) and (
            number == 9 or not left
        ), left
        assert main(words) == 0
        assert names() == sorted([*there, out.name]), "the next run tidies up"


@pytest.mark.slow
@pytest.mark.parametrize("command", SOME_SLOW)
def test_a_disk_that_is_full(folder, command):
    words = COMMANDS[command]
    there = names()
    for _ in range(2):  # without a file of an earlier run, and with one
        before = {name: Path(name).read_bytes() for name in names()}

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        process = forked(words, limit)
        process.join(60)
        assert process.exitcode == 2
        assert {name: Path(name).read_bytes() for name in names()} == before
        assert main(words) == 0
    assert len(names()) == len(there) + 1


def test_a_full_folder_of_temporary_files(folder, monkeypatch, capsys):
    def full(source, target, *rest):
        raise OSError(28, "No space left on device")

    there = names()
    monkeypatch.setattr("shutil.copyfileobj", full)
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"p\n0.5\n"), encoding="utf-8")
    )
    assert main(["apply", "map.json", "-", "--prob", "p", "--out", "x.csv"]) == 2
    said = capsys.readouterr().err
    assert (
        "No space left on device. Make room, or name a folder" in said
        and "TMPDIR" in said
    )
    assert names() == there
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "absent"))
    assert main(["apply", "map.json", "-", "--prob", "p", "--out", "x.csv"]) == 2
    said = capsys.readouterr().err
    assert "expected files that the system reads and writes, got No such file" in said


def test_a_monitor_that_waits_is_ended_in_order(folder):
    """Another one holds the state: the one that waits ends, and the lock stays with the first."""
    with atomic.lock_file("out.json", 0):
        process = forked(COMMANDS["monitor"], lambda: None)
        while not any(name.endswith(".lock") for name in names()):
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGTERM)
        process.join(60)
        assert process.exitcode == 143 and ".out.json.lock" in names()
    assert main(COMMANDS["monitor"]) == 0 and ".out.json.lock" not in names()


def test_what_is_passed_over_stays_so(folder, monkeypatch):
    """A command under nohup goes on when the terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(
        _cli, "_run_command", lambda options: os.kill(os.getpid(), signal.SIGHUP)
    )
    try:
        assert main(["demo"]) is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_exit_codes_are_those_of_the_table():
    """Every number that a command may end with stands in the table of the page, and vice versa."""
    from sklearn_calib._cli import _messages

    numbers = {value for value in vars(_messages).values() if isinstance(value, int)}
    numbers |= {
        128 + getattr(signal, name) for name in _messages.TERMINATING_SIGNALS
    } | {137}
    assert {
        int(code) for code in re.findall(r"\d+", " ".join(MEANING_BY_EXIT_CODE))
    } == numbers
    for path in Path(_cli.__file__).parent.glob("*.py"):  # no other number is returned
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
                assert type(node.value.value) is not int or node.value.value == 0, path


def test_workers_that_do_not_stay(monkeypatch):
    """What dask states of a worker that died too often is not a defect of this program."""
    distributed = pytest.importorskip("distributed")
    from sklearn_calib._cli._large import _run_here_or_on_dask_workers
    from sklearn_calib.exceptions import InvalidInputError

    monkeypatch.setattr(
        distributed, "Client", lambda address, **_: contextlib.nullcontext()
    )
    monkeypatch.setattr(
        "joblib.parallel_config", lambda backend, **_: contextlib.nullcontext()
    )

    def work(error):
        def fail(n_jobs):
            raise error

        return fail

    worker = types.SimpleNamespace(address="tcp://w:2")
    for error in (
        distributed.KilledWorker("part", worker, 3),
        distributed.comm.CommClosedError("x"),
    ):
        with pytest.raises(
            InvalidInputError, match=r"A worker of 'tcp://h:1' ended \("
        ):
            _run_here_or_on_dask_workers("tcp://h:1", work(error))
    with pytest.raises(KeyError):
        _run_here_or_on_dask_workers("tcp://h:1", work(KeyError("own")))
