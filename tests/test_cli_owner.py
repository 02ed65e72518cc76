"""Whose a single column of probabilities is: every command stops and names the option to add."""

import re
import shlex

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._cli import _large, main
from sklearn_calib.summary import CalibrationSummary

N = 120
QUICK = ["--resamples", "2", "--no-advice", "--out", "none"]
#: Arguments of each command but for the table, the labels and their owner.
COMMANDS = {
    "audit": ["--prob", "p", *QUICK],
    "fit": [
        "--prob",
        "p",
        "--recalibrator",
        "platt",
        "--allow",
        "no-gain",
        "--out",
        "m.json",
    ],
    "compare": ["--prob", "p", "--prob", "q", "--resamples", "20"],
    "monitor": ["--prob", "p"],
    "estimate-mean": ["--score", "p"],
}
FAST = [
    pytest.param(name, marks=[pytest.mark.slow] * (name == "compare"))
    for name in COMMANDS
]


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Rows whose scores rise with the outcome 1, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(N).round(3)
    return pd.DataFrame(
        {"y": (rng.random(N) < p).astype(int), "p": p, "q": (p**1.5).round(3)}
    )


def refused(capsys, words):
    """The message about a single column of an unknown class."""
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "which class a single column of probabilities belongs to" in said, said
    return said


@pytest.mark.parametrize("command", FAST)
@pytest.mark.parametrize(("no", "yes"), [("good", "bad"), ("paid", "not paid"), (1, 2)])
def test_labels_without_an_order_need_an_owner(frame, capsys, command, no, yes):
    if command == "estimate-mean" and yes == 2:
        pytest.skip("numbers have a mean of their own")
    frame.assign(y=np.where(frame.y == 1, yes, no)).to_csv("t.csv", index=False)
    words = [command, "t.csv", "--label", "y", *COMMANDS[command]]
    hints = re.findall(r"--positive (?:'[^']+'|\S+)", refused(capsys, words))
    named = [shlex.split(hint.removesuffix("."))[1] for hint in hints]
    assert sorted(named) == sorted([str(no), str(yes)])


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_option_of_the_message_is_enough(frame, capsys, command):
    frame.assign(y=np.where(frame.y == 1, "paid", "not paid")).to_csv(
        "t.csv", index=False
    )
    words = [command, "t.csv", "--label", "y", *COMMANDS[command]]
    said = refused(capsys, words)
    more = ["--allow", "order"] * (command in ("audit", "fit", "monitor"))
    for label in ("--positive paid", "--positive 'not paid'"):
        assert label in said
        assert main([*words, *shlex.split(label), *more]) in (0, 3), (
            capsys.readouterr().err
        )


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("no", "yes"), [(0, 1), (False, True), (-1, 1), ("false", "TRUE")]
)
def test_labels_with_an_order_need_no_owner(frame, capsys, command, no, yes):
    frame.assign(y=np.where(frame.y == 1, yes, no)).to_csv("t.csv", index=False)
    words = [command, "t.csv", "--label", "y", *COMMANDS[command]]
    more = ["--bounds=-1,1"] * (command == "estimate-mean" and no == -1)
    assert main([*words, *more]) in (0, 3), capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("command", ["audit", "fit", "monitor"])
def test_no_form_of_a_table_needs_less(frame, capsys, monkeypatch, command, ending):
    frame = frame.assign(y=np.where(frame.y == 1, "yes", "no"))
    if ending == "csv":
        frame.to_csv("t.csv", index=False)
    elif ending == "parquet":
        frame.to_parquet("t.parquet")
    else:
        frame.to_json("t.jsonl", orient="records", lines=True)
    words = [command, f"t.{ending}", "--label", "y", *COMMANDS[command]]
    refused(capsys, words)
    monkeypatch.setattr(
        _large, "_MAX_WHOLE_TABLE_BYTES", 0
    )  # as if the table were large
    refused(capsys, words)
    refused(capsys, [*words, "--allow", "order"])
    if command == "monitor":
        assert main([*words, "--positive", "yes"]) in (0, 3)
        assert main([*words, "--classes", "no,yes"]) in (0, 3)


@pytest.mark.slow
def test_many_files_and_their_summary(frame, capsys):
    frame.assign(y=np.where(frame.y == 1, "yes", "no")).to_csv("a.csv", index=False)
    frame.assign(y=np.where(frame.y == 1, "yes", "no"), p=frame.q).to_csv(
        "b.csv", index=False
    )
    words = ["audit", "a.csv", "b.csv", "--label", "y", "--prob", "p", *QUICK]
    said = refused(capsys, [*words, "--save", "s.parquet"])
    assert (
        "Pass --positive yes if it is the probability of 'yes', else --positive no"
        in said
    )
    assert main([*words, "--positive", "yes", "--save", "s.parquet"]) == 0
    assert CalibrationSummary.from_parquet("s.parquet").positive_label == "yes"
    assert main(["audit", "s.parquet", *QUICK]) == 0  # which has the owner
    refused(
        capsys, ["audit", "s.parquet", "a.csv", "--label", "y", "--prob", "p", *QUICK]
    )


def test_a_column_for_each_class_needs_no_owner(frame, capsys):
    frame.assign(y=np.where(frame.y == 1, "yes", "no"), n=1 - frame.p).to_csv(
        "t.csv", index=False
    )
    words = ["monitor", "t.csv", "--label", "y", "--prob", "n,p"]
    assert main(words) in (0, 3), capsys.readouterr().err


def test_a_state_remembers_the_owner(frame, capsys):
    frame.assign(y=np.where(frame.y == 1, "yes", "no")).to_csv("t.csv", index=False)
    frame[frame.y == 0].assign(y="no").to_csv("u.csv", index=False)
    frame[frame.y == 1].assign(y="yes").to_csv("v.csv", index=False)
    words = ["--label", "y", "--prob", "p", "--state", "s.json"]
    assert main(["monitor", "t.csv", *words, "--positive", "yes"]) in (0, 3)
    assert main(["monitor", "u.csv", *words, "--positive", "yes"]) in (0, 3)
    assert main(["monitor", "v.csv", *words]) in (0, 3), capsys.readouterr().err
    frame.assign(y=np.where(frame.y == 1, "yes", "no"), p=frame.q).to_csv(
        "w.csv", index=False
    )
    assert main(["monitor", "w.csv", *words, "--positive", "no"]) == 2
    assert "expected the classes no, yes of the state" in capsys.readouterr().err
