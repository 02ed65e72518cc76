"""The command monitor."""

import io
import json
import multiprocessing
import os
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._cli import _monitor, main
from sklearn_calib._files.atomic import lock_file
from sklearn_calib.monitoring import CalibrationMonitor

COLUMNS = ["--label", "outcome", "--prob", "p", "--positive", "yes"]


@pytest.fixture
def days(tmp_path, monkeypatch):
    """good.csv and then bad.csv, whose probabilities are too extreme."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=1200)
    frame = pd.DataFrame({"p": 1 / (1 + np.exp(-z))})
    truth = 1 / (1 + np.exp(-np.where(np.arange(1200) < 600, z, 0.4 * z)))
    frame["outcome"] = np.where(rng.random(1200) < truth, "yes", "no")
    frame["day"] = np.datetime64("2026-01-01T00:00") + 60 * np.arange(1200)
    frame[:600].to_csv("good.csv", index=False)
    frame[600:].to_csv("bad.csv", index=False)
    frame.to_csv("year.csv", index=False)
    return frame


def run(*arguments):
    return main(["monitor", *arguments])


def test_one_line_and_exit_code_3(days, capsys):
    state = ["--state", "state.json", "--time", "day"]
    assert run("good.csv", *COLUMNS, *state) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1 and "good.csv: no alarm; 600 rows" in out
    assert run("bad.csv", *COLUMNS, *state) == 3
    out, err = capsys.readouterr()
    assert out.count("\n") == 1 and not err
    assert (
        out.startswith("bad.csv: ALARM at row ")
        and "too extreme" in out
        and "(2026-01-" in out
    )
    assert "; off since about row " in out and "an offset is not enough (p = " in out
    monitor = CalibrationMonitor(classes=["no", "yes"])
    for part in (days[:600], days[600:]):
        monitor.update(part["outcome"], part["p"], time=part["day"].astype(str))
    assert (
        json.loads(Path("state.json").read_text(encoding="utf-8"))
        == monitor.state_dict()
    )
    assert monitor.alarms_[-1].diagnosis.advice in out


def test_quiet_speaks_of_alarms_alone(days, capsys):
    assert run("good.csv", *COLUMNS, "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert run("bad.csv", *COLUMNS, "--quiet") == 3
    assert "ALARM" in capsys.readouterr().out


@pytest.mark.slow
def test_options_of_the_monitor(days, capsys):
    assert run("year.csv", *COLUMNS, "--alarm", "test", "--alpha", "0.05") == 3
    first = capsys.readouterr().out.split()[4]
    assert run("year.csv", *COLUMNS, "--alarm", "test", "--alpha", "0.001") == 3
    assert int(capsys.readouterr().out.split()[4].strip(":")) > int(first.strip(":"))
    run("year.csv", *COLUMNS, "--run-length", "1e12")
    assert "of 1e+12" in capsys.readouterr().out
    for bad in ("1", "x", "1e13"):
        with pytest.raises(SystemExit):
            run("year.csv", *COLUMNS, "--run-length", bad)
    capsys.readouterr()
    state = ["--state", "s", "--allow", "repeated"]
    assert run("good.csv", *COLUMNS, *state, "--run-length", "1e6") == 0
    assert run("good.csv", *COLUMNS, *state, "--run-length", "1e6") == 0
    assert run("good.csv", *COLUMNS, *state, "--run-length", "1e7") == 2
    assert "expected the run length 1000000.0 of the monitor" in capsys.readouterr().err
    assert run("good.csv", *COLUMNS, "--state", "s", "--alarm", "test") == 2


@pytest.mark.slow
def test_the_other_class(days, capsys):
    days.assign(p=1 - days["p"]).to_csv("other.csv", index=False)
    assert run("year.csv", *COLUMNS) == 3
    expected = capsys.readouterr().out.partition(": ")[2].partition(" and ")[0]
    assert run("other.csv", *COLUMNS, "--positive", "no", "--state", "s.json") == 3
    assert capsys.readouterr().out.partition(": ")[2].partition(" and ")[0] == expected
    assert json.loads(Path("s.json").read_text(encoding="utf-8"))["classes"] == [
        "yes",
        "no",
    ]
    assert run("other.csv", *COLUMNS, "--positive", "yes", "--state", "s.json") == 2
    assert "expected the classes yes, no of the state" in capsys.readouterr().err
    days[days["outcome"] == "yes"].to_csv("one.csv", index=False)
    assert run("one.csv", *COLUMNS) == 2
    assert "Name all of them with --classes" in capsys.readouterr().err
    assert run("one.csv", *COLUMNS[:4], "--classes", "no,yes") in (0, 3)
    # as on the first day; the table has no such label
    for more in (
        [],
        ["--positive", "no"],
    ):
        rows = [*COLUMNS[:4], *more, "--allow", "repeated"]
        assert run("one.csv", *rows, "--state", "s.json") in (0, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda d: d.assign(day=d["day"] - pd.Timedelta(days=3650)),
            "Time runs backwards",
        ),
        (
            lambda d: d.assign(outcome=d["outcome"].where(d.index % 2 == 0)),
            "when their labels come",
        ),
        (
            lambda d: d.assign(day=d["day"].where(d.index % 2 == 0)),
            "a time in every row",
        ),
        (lambda d: d.assign(day="soon"), "times that are numbers, dates"),
        (
            lambda d: d.assign(day=np.arange(600)),
            "dates as times, as before, got numbers",
        ),
        (lambda d: d.assign(outcome="maybe"), "labels among"),
        (lambda d: d.assign(p=2.0), r"probabilities in [0, 1]"),
        (lambda d: d.drop(columns="p"), "a column 'p'"),
    ],
)
def test_bad_tables_leave_the_state_as_it_was(days, make, said, capsys):
    arguments = [*COLUMNS, "--state", "state.json", "--time", "day"]
    run("good.csv", *arguments)
    before = Path("state.json").read_bytes()
    make(days[600:].reset_index(drop=True)).to_csv("bad.csv", index=False)
    capsys.readouterr()
    assert run("bad.csv", *arguments) == 2
    out, err = capsys.readouterr()
    assert said in err and err.count("\n") == 1 and not out
    assert Path("state.json").read_bytes() == before
    assert run("good.csv", *arguments) == 2  # the same table once more
    assert (
        "rows after 2026-01-25 23:00:00, the time of the last row"
        in capsys.readouterr().err
    )


def test_late_labels(days, capsys):
    rows = days[:600].copy()
    rows.loc[::3, "outcome"] = None
    rows.to_csv("some.csv", index=False)
    assert run("some.csv", *COLUMNS, "--missing", "drop") == 0
    out, err = capsys.readouterr()
    assert "400 rows" in out and "left out, with missing values" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "a file that cannot be read"),
        ("[1]", "expected the state of a monitor"),
        (
            '{"format": "sklearn-calib monitor", "version": 99}',
            "version 1, got version 99",
        ),
    ],
)
def test_states_of_another_kind_are_kept(days, text, said, capsys):
    Path("state.json").write_text(text, encoding="utf-8")
    assert run("good.csv", *COLUMNS, "--state", "state.json") == 2
    assert said in capsys.readouterr().err
    assert Path("state.json").read_text(encoding="utf-8") == text


def test_a_state_that_is_too_large_is_not_parsed(days, capsys, monkeypatch):
    with open("state.json", "wb") as file:
        file.truncate(2**20)  # a sparse file: it takes no space on the disk
    monkeypatch.setattr("sklearn_calib._files.input_files._MAX_JSON_BYTES", 2**19)
    assert run("good.csv", *COLUMNS, "--state", "state.json") == 2
    said = "a file that cannot be read (more than 524288 bytes). Take another file"
    assert said in capsys.readouterr().err
    assert Path("state.json").stat().st_size == 2**20


def test_places_of_the_state(days, capsys):
    assert run("good.csv", *COLUMNS, "--state", "good.csv") == 2
    assert "the table itself" in capsys.readouterr().err
    assert run("good.csv", *COLUMNS, "--state", os.path.join("none", "s")) == 2
    assert run("good.csv", "--prob", "p") == 2


def test_several_classes_logits_and_standard_input(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(300, 3))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (rng.random((300, 1)) > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    frame = pd.DataFrame(logits, columns=[*"abc"]).assign(y=y)
    text = io.BytesIO(frame.to_csv(index=False).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(text, encoding="utf-8"))
    assert (
        run("-", "--label", "y", "--prob", "a,b,c", "--scale", "logits", "--classwise")
        == 0
    )
    expected = CalibrationMonitor(multiclass="classwise").update(y, proba)
    assert f"e = {expected.e_value_:.3g}" in capsys.readouterr().out


def test_examples_of_the_help(days, monkeypatch, capsys):
    days = days.assign(outcome=(days["outcome"] == "yes").astype(int))
    for name in ("week.csv", "today.csv", "year.csv"):
        days.to_csv(name, index=False)
    for line in _monitor.EXAMPLES:
        Path("state.json").unlink(missing_ok=True)
        assert main(shlex.split(line)[1:]) == 3


# -- several at once, and places that are not files ------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_four_at_once_lose_no_row(days):
    """Processes that have all modules, so that they meet; each result is an exit code."""
    for number in range(4):
        days[150 * number : 150 * (number + 1)].to_csv(f"part{number}.csv", index=False)
    state = ["--state", "state.json", "--run-length", "1e12"]
    assert run("part0.csv", *COLUMNS) == 0
    context = multiprocessing.get_context("fork")
    begin = context.Barrier(4)

    def one(number):
        begin.wait(60)
        sys.exit(run(f"part{number}.csv", *COLUMNS, *state))

    running = [context.Process(target=one, args=(number,)) for number in range(4)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    assert [process.exitcode for process in running] == [0] * 4
    assert (
        json.loads(Path("state.json").read_text(encoding="utf-8"))["n_samples"] == 600
    )
    assert (
        sorted(path.name for path in Path().iterdir() if path.name.startswith("."))
        == []
    )


def test_who_waits_too_long_says_so_and_changes_nothing(days, capsys):
    run("good.csv", *COLUMNS, "--state", "state.json")
    before = Path("state.json").read_bytes()
    capsys.readouterr()
    with lock_file("state.json", 0):
        assert run("bad.csv", *COLUMNS, "--state", "state.json", "--wait", "0.2") == 2
    said = capsys.readouterr().err
    assert "for 0.2 seconds. The file is as" in said and "--wait" in said
    assert Path("state.json").read_bytes() == before
    assert run("bad.csv", *COLUMNS, "--state", "state.json", "--wait", "0") == 3


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="a system without pipes in folders"
)
def test_states_that_are_no_files_are_refused_at_once(days, capsys):
    os.mkfifo("pipe")
    for place in ("pipe", "/dev/null", "/dev/full"):
        if os.path.exists(place):
            assert run("good.csv", *COLUMNS, "--state", place) == 2
            assert "a device or a pipe cannot be read back" in capsys.readouterr().err


@pytest.mark.slow
def test_columns_of_other_classes(days, capsys):
    """The first table is rejected; later ones may be a model that went wrong, which is an alarm."""
    days[:600].assign(p=1 - days["p"][:600]).to_csv("swapped.csv", index=False)
    assert run("swapped.csv", *COLUMNS, "--state", "s.json") == 2
    said = capsys.readouterr().err
    assert (
        "columns that fit yes, no" in said and "--positive no, or --allow order" in said
    )
    assert not os.path.exists("s.json")
    assert run("swapped.csv", *COLUMNS, "--allow", "order") == 3
    assert run("good.csv", *COLUMNS, "--state", "s.json") == 0
    capsys.readouterr()
    assert run("swapped.csv", *COLUMNS, "--state", "s.json") == 3
    out, err = capsys.readouterr()
    assert "ALARM" in out and "columns that fit yes, no" in err


@pytest.mark.parametrize("number", [True, False])
def test_times_are_printed_as_they_were_written(days, number, capsys):
    times = [
        20260000 + i if number else f"2026-01-01 {i // 60:02}:{i % 60:02}"
        for i in range(600)
    ]
    days[600:].assign(day=times).to_csv("t.csv", index=False)
    assert run("t.csv", *COLUMNS, "--time", "day", "--state", "s.json") == 3
    alarm = json.loads(Path("s.json").read_text(encoding="utf-8"))["alarms"][0]
    assert f"ALARM at row {alarm[0]} ({times[alarm[0] - 1]})" in capsys.readouterr().out
    assert run("t.csv", *COLUMNS, "--time", "day", "--state", "s.json") == 2
    assert (
        f"rows after {times[-1]}, the time of the last row" in capsys.readouterr().err
    )
