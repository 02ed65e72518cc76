"""The gate on speed (benchmarks/gate): what it commits, what it lets pass, what it stops."""

import csv
import importlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
if not FOLDER.exists():
    pytest.skip("not a checkout", allow_module_level=True)
pytest.importorskip(
    "resource", reason="the times of child processes are not known here"
)


@pytest.fixture
def gate(monkeypatch, tmp_path):
    """The module, its table in a folder of its own, and one job, whose ratios are made up."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(FOLDER / "gate"))
    module = importlib.import_module("main")
    for name in ("main", "runner"):
        sys.modules.pop(name)
    monkeypatch.setattr(module, "TABLE", tmp_path / "results.csv")
    monkeypatch.setattr(module, "jobs", lambda: [("a job", None, "the unit", None)])
    return module


def run(gate, monkeypatch, ratios, *words):
    """Run the command on these ratios; how many it took."""
    left = list(ratios)
    monkeypatch.setattr(gate, "ratio", lambda ours, unit, clock: left.pop(0))
    monkeypatch.setattr(sys, "argv", ["gate", *words, "one_thread"])
    gate.main()
    return len(ratios) - len(left)


def test_a_lucky_run_is_not_committed(gate, monkeypatch, capsys):
    assert run(gate, monkeypatch, [1.0, 2.0, 1.9, 2.1, 2.0], "--write") == 5
    with open(gate.TABLE, newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["job"], row["one_thread"]) == ("a job", "2")
    assert run(gate, monkeypatch, [2.2]) == 1  # more than 1.5 times the luckiest
    assert "1.10 times the committed 2.0" in capsys.readouterr().out
    # written anew, the table of before is uninformative, however far from it the machine is
    # today
    assert run(gate, monkeypatch, [9.0] * 5, "--write") == 5
    assert run(gate, monkeypatch, [13.4]) == 1


def test_what_is_slower_in_each_attempt_is_stopped(gate, monkeypatch):
    run(gate, monkeypatch, [2.0] * 5, "--write")
    assert run(gate, monkeypatch, [3.2, 3.1, 2.9]) == 3
    with pytest.raises(
        SystemExit, match=r"at most 1.5 times .* got more for \['a job'\]"
    ):
        run(gate, monkeypatch, [3.2, 3.1, 3.3])


def test_a_job_without_a_committed_ratio_is_named(gate, monkeypatch):
    with pytest.raises(SystemExit, match=r"got none for \['a job'\]. Run --write"):
        run(gate, monkeypatch, [3.2])


def test_it_runs_with_one_thread_and_with_all_and_fails_if_either_does(
    gate, monkeypatch
):
    seen = []

    def started(command, env, check):
        seen.append((command[-2:], env["OPENBLAS_NUM_THREADS"]))
        return SimpleNamespace(returncode=int(len(seen) == 2))

    monkeypatch.setattr(gate.subprocess, "run", started)
    monkeypatch.setattr(sys, "argv", ["gate", "--write"])
    with pytest.raises(SystemExit) as ended:
        gate.main()
    assert ended.value.code == 1
    cores = str(os.cpu_count())
    assert seen == [(["--write", "one_thread"], "1"), (["--write", "all_cores"], cores)]


def test_the_other_column_is_kept(gate, monkeypatch):
    run(gate, monkeypatch, [2.0] * 5, "--write")
    monkeypatch.setattr(gate, "ratio", lambda ours, unit, clock: 3.0)
    gate.measured("all_cores", True)
    with open(gate.TABLE, newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["one_thread"], row["all_cores"]) == ("2", "3")


def test_with_all_cores_time_is_of_the_clock(gate, monkeypatch):
    clocks = []

    def ratio(ours, unit, clock):
        clocks.append(clock)
        return 1.0

    monkeypatch.setattr(gate, "ratio", ratio)
    for column in gate.THREADS:
        monkeypatch.setattr(sys, "argv", ["gate", "--write", column])
        gate.main()
    assert clocks == [gate.spent] * 5 + [gate.time.perf_counter] * 5
