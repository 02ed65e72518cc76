"""Every option of a command changes what it prints or writes: alone, and in company.

The options are read off the parser. Each has a value here, or a reason why it has none;
in company means beside the positive class that sorts first, and beside weights.
"""

import argparse
import functools
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from sklearn_calib._cli import build_parser, main

N = 92
#: Options of no command's arithmetic, or that need other tables, each with its reason.
ELSEWHERE = {
    **dict.fromkeys(
        ("-h", "--out", "--json", "--markdown", "--save", "--state"), "where to write"
    ),
    **dict.fromkeys(
        ("--read", "--tolerance", "--skip-rows"), "tests/test_cli_forms.py"
    ),
    **dict.fromkeys(("--missing", "--prediction"), "other columns: tests/test_cli*.py"),
    "--soft-labels": "other columns: tests/test_cli_soft_labels.py",
    "--classes": "other columns: tests/test_cli*.py",
    **dict.fromkeys(("--dask", "--wait"), "tests/test_cli_streams.py"),
    "--query": "of a database: tests/summary/test_rows.py",
    **dict.fromkeys(("--label", "--score"), "are needed"),
    **dict.fromkeys(
        ((x, "--prob") for x in ("audit", "compare", "fit", "monitor")), "is needed"
    ),
    "--allow": "allows what is refused",
    "--names": "other columns: tests/test_cli*.py",
    **dict.fromkeys(("--no-advice", "--classwise"), "are given, or of three classes"),
    **dict.fromkeys(
        (("export", x) for x in ("--source", "--keep")), "of a query: tests/export"
    ),
    ("compare", "--name"): "twice: tests/test_cli_compare.py",
    ("compare", "--id"): "matches rows: tests/test_cli_compare.py",
    (
        "estimate-mean",
        "--bounds",
    ): "of labels that are numbers: tests/test_cli_estimate_mean.py",
    **dict.fromkeys(
        ("--fail-if", "--quiet"), "the code at the end: tests/test_cli_options.py"
    ),
}
COMMANDS = (
    "audit",
    "compare",
    "fit",
    "threshold",
    "export",
    "estimate-mean",
    "monitor",
)
ROWS = ["--label", "y", "--prob", "p", "--positive", "yes"]
#: Arguments of each command that make it quick.
GIVEN = {
    "audit": ["t.csv", *ROWS, "--resamples", "5", "--no-advice", "--out", "none"],
    "compare": ["t.csv", "u.csv", *ROWS, "--resamples", "20"],
    "fit": [
        "t.csv",
        *ROWS,
        "--recalibrator",
        "platt",
        "--out",
        "new.json",
        "--allow",
        "no-gain",
    ],
    "threshold": ["map.json", "--at", "0.3"],
    "export": ["map.json", "--to", "sql"],
    "estimate-mean": ["m.csv", "--label", "y", "--score", "p", "--positive", "yes"],
    "monitor": ["t.csv", *ROWS],
}
VALUES = {
    "--level": "0.6",
    "--resamples": "90",
    "--weight": "w",
    "--cluster": "g",
    "--positive": "no",
    "--by": "s",
    "--features": "x",
    "--grades": "0.2,0.5,0.7",
    "--recalibrate": None,
    "--name": "mine",
    "--recalibrator": "isotonic",
    "--tabulate": "0.05",
    "--simplify": "0.05",
    "--date": "2020-01-01",
    "--at": "0.6",
    "--scores": "logits",
    "--float32": None,
    "--sql": "tsql",
    "--into": "view",
    "--to": "js",
    "--dialect": "mysql",
    "--width": "0.01",
    "--system": "s",
    "--time": "t",
    "--alarm": "test",
    "--run-length": "3",
    "--alpha": "0.9",
    "--scale": "-1,2",
    "--prob": "score",
}
#: What an option needs beside it.
WITH = {
    ("threshold", "--prob"): ["--sql", "ansi"],
    ("threshold", "--into"): ["--sql", "ansi"],
    ("fit", "--tabulate"): ["--recalibrator", "angular", "--tabulate", "0.001"],
    ("export", "--name"): ["--to", "c"],
    ("export", "--float32"): ["--to", "onnx", "--out", "new.onnx"],
    ("estimate-mean", "--system"): ["--cluster", "g"],
    ("monitor", "--alarm"): ["--run-length", "100"],
    ("monitor", "--alpha"): ["--alarm", "test"],
}


def options():
    """(command, option) of all commands that work on rows or maps."""
    (commands,) = (
        one.choices
        for one in build_parser()._actions
        if isinstance(one, argparse._SubParsersAction)
    )
    for name in COMMANDS:
        for action in commands[name]._actions:
            option = action.option_strings[:1]
            if option and not {option[0], (name, option[0])} & {*ELSEWHERE}:
                yield name, option[0]


OPTIONS = list(options())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of two models, of few labels, and a map."""
    where = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=N)
    data = pd.DataFrame({"y": np.where(rng.random(N) < expit(0.5 * z), "yes", "no")})
    data["p"], data["x"] = expit(z).round(4), rng.normal(size=N).round(3)
    data["w"], data["t"] = rng.integers(1, 5, N), rng.permutation(N)
    data["g"], data["s"] = np.arange(N) // 4, np.arange(N) // 2 % 2
    data.to_csv(where / "t.csv", index=False)
    data.assign(p=expit(0.5 * z + 0.2).round(4)).to_csv(where / "u.csv", index=False)
    told = np.where(rng.random(N) < expit(2 * z), "yes", "no").astype(object)
    few = data.assign(y=np.where(np.arange(N) % 2 == 0, told, None))
    few.to_csv(where / "m.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(where)
        run("fit", "--out", "map.json")
    return where


def run(command, *more, given=None):
    """Everything that the command prints, and what it writes."""
    files = [Path("new.json"), Path("new.onnx")]
    # What an earlier command has written is not the result of this one.
    for file in files:
        file.unlink(missing_ok=True)
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    given = GIVEN[command] if given is None else given
    with redirect_stdout(out), redirect_stderr(err):
        code = main([command, *given, *more])
    written = [file.read_bytes() for file in files if file.exists()]
    said = [(one.flush(), one.buffer.getvalue().decode())[1] for one in (out, err)]
    return code, *said, written


@functools.cache
def run_once(command, *more):
    """What the command gives without the option of a test, for all tests."""
    return run(command, *more)


def arguments(command, option):
    value = VALUES.get((command, option), VALUES.get(option))
    return [option] if value is None else [f"{option}={value}"]


def test_every_option_has_a_value():
    """A new option needs an entry in `VALUES`, or in `ELSEWHERE` with the reason."""
    named = {*VALUES}
    assert [one for one in OPTIONS if not {one, one[1]} & named] == []
    assert named <= {*OPTIONS, *(option for _, option in OPTIONS)}
    assert {*WITH} <= {*OPTIONS}


@pytest.mark.whole
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_gives_the_same_again(command, folder, monkeypatch):
    """Otherwise every option would seem to change something."""
    monkeypatch.chdir(folder)
    assert run(command) == run_once(command)


def beside(company):
    """Parameters of a test: options of commands that have the other one too."""
    for command, option in OPTIONS:
        slow = command == "compare" or option in (
            "--features",
            "--recalibrate",
            "--tabulate",
        )
        if not company or ((command, company) in OPTIONS and option != company):
            yield pytest.param(command, option, marks=pytest.mark.slow if slow else ())


def check_changes(command, option, more):
    more = [*more, *WITH.get((command, option), [])]
    one = run_once(command, *more)
    other = run(command, *more, *arguments(command, option))
    assert {one[0], other[0]} <= {0, 3}, one[2] + other[2]
    assert one != other, "the option changes nothing"


@pytest.mark.whole
@pytest.mark.parametrize(("command", "option"), beside(""))
def test_alone(command, option, folder, monkeypatch):
    monkeypatch.chdir(folder)
    check_changes(command, option, [])


@pytest.mark.whole
@pytest.mark.parametrize(("command", "option"), beside("--positive"))
def test_beside_the_positive_class_that_sorts_first(
    command, option, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    check_changes(command, option, arguments(command, "--positive"))


@pytest.mark.whole
@pytest.mark.parametrize(("command", "option"), beside("--weight"))
def test_beside_weights(command, option, folder, monkeypatch):
    monkeypatch.chdir(folder)
    check_changes(command, option, arguments(command, "--weight"))
