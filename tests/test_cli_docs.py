"""The page of the command line: every option is there, every command in it runs."""

import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checkout import GUIDE

from sklearn_calib._cli import main

import _derived  # isort: skip

PAGE = GUIDE / "command_line.rst"


def commands():
    text = PAGE.read_text(encoding="utf-8")
    return list(dict.fromkeys(re.findall(r"(?m)^ +\$ sklearn-calib (.+)$", text)))


def test_options_of_all_commands_are_on_the_page(capsys):
    tables, text = _derived.command_tables(), PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        with pytest.raises(SystemExit):
            main([name, "--help"])
        shown = set(re.findall(r"(?m)^  (--[a-z-]+)", capsys.readouterr().out)) - {"--help"}
        assert shown == set(re.findall(r"(?m)^   \* - ``(--[a-z-]+)", table))
        if shown:
            assert f".. include:: generated/command_{name}.inc" in text
    for option in re.findall(r"``(--[a-z-]+)", text):
        assert option in "".join(tables.values()) or option in ("--help", "--version"), option


def test_table_of_the_options_of_commands():
    """Derived from the parser: who adds an option to a command finds it there."""
    rows = _derived.options_of_commands().split("   * - ")[1:]
    cells = [[cell.strip(" `") for cell in row.splitlines()] for row in rows]
    names = [cell.removeprefix("- ").strip("`") for cell in cells[0]]
    has = {row[0]: [n for n, c in zip(names, row, strict=False) if c == "- yes"] for row in cells}
    assert has["--tolerance"] == ["audit", "compare", "plan", "fit", "apply", "monitor"]
    assert has["--soft-labels"] == has["--prediction"] == ["audit", "compare", "fit", "monitor"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Small files of the names on the page."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=120)
    p, score = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-2 * z))
    rows = pd.DataFrame({"customer": np.arange(120), "p": p.round(6)})
    rows["outcome"] = np.where(rng.random(120) < p, "yes", "no")
    rows["segment"] = rng.choice(["a", "b"], 120)
    rows["sex"], rows["age"] = np.where(np.arange(120) % 2, "f", "m"), np.arange(120) % 60
    rows.assign(z=z, w=1).to_csv("cal.csv", index=False)
    more = rows.assign(score=score.round(6), p_old=p, p_new=score)
    rows["day"] = np.repeat(np.arange("2026-03-01", "2026-03-05", dtype="datetime64[D]"), 30)
    for name in ("predictions", "old", "today"):
        rows.to_csv(f"{name}.csv", index=False)
    for name in ("new", "both"):
        more.to_csv(f"{name}.csv", index=False)
    rows[["customer", "p", "outcome"]].to_csv("bare.csv", index=False, header=False)
    rows.assign(p=(100 * rows["p"]).round(4)).to_csv("percent.csv", index=False)
    lines = [
        {"scores": {"yes": p}, "probs": [1 - p, p], "outcome": y, "model": {"name": segment}}
        for p, y, segment in zip(rows["p"], rows["outcome"], rows["segment"], strict=True)
    ]
    (tmp_path / "log.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8"
    )
    for day in "12":
        (tmp_path / "scores" / f"day={day}").mkdir(parents=True)
        rows.to_parquet(f"scores/day={day}/a.parquet")
    main(["audit", "old.csv", "--label", "outcome", "--prob", "p", "--save", "may.parquet",
          "--resamples", "2", "--no-advice", "--out", "none"])  # fmt: skip
    parts = pd.DataFrame(rng.dirichlet(np.ones(3), 120).round(1), columns=[*"abc"])
    parts.assign(y=np.arange(120) % 3).to_csv("rounded.csv", index=False)

    judged = rows.assign(judge=score, points=(1 + 9 * score).round(), question=np.arange(120) // 2)
    judged["model"] = np.where(np.arange(120) % 2, "new", "old")
    judged["human"] = np.where(judged["question"] % 3 == 0, np.where(z > 0, "good", "bad"), None)
    judged.drop(columns="day").to_json("judged.jsonl", orient="records", lines=True)
    digits = pd.DataFrame(rng.dirichlet(np.ones(3), 120), columns=["p0", "p1", "p2"])
    digits.assign(digit=np.arange(120) % 3).to_csv("digits.csv", index=False)
    votes = digits.set_axis(["p_no", "p_maybe", "p_yes"], axis=1)
    votes[["no", "maybe", "yes"]] = rng.multinomial(5, votes.to_numpy())
    votes.to_csv("votes.csv", index=False)
    digits[["p0"]].rename(columns={"p0": "p"}).to_csv("scores.csv", index=False)


@pytest.mark.slow
def test_commands_on_the_page_run(files, capsys, monkeypatch):
    codes = {}
    for line in commands():
        command, stdin = re.fullmatch(r"(.+?)(?: < ([\w.]+))?", line).groups()
        words = shlex.split(command)
        if words[0] == "demo":
            continue
        if stdin:
            data = io.BytesIO(Path(stdin).read_bytes())
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(data, encoding="utf-8"))
        quick = ["--resamples", "20"] if words[0] == "compare" else ["--resamples", "2"]
        quick += ["--no-advice", "--out", "none"] if words[0] == "audit" else []
        if words[0] in ("apply", "export", "mean", "monitor", "plan", "threshold"):
            quick = []
        if words[0] == "fit":  # what the stack does is tested elsewhere
            quick = ["--allow", "no-gain"] + ["--recalibrator", "platt"] * (
                "--recalibrator" not in words
            )
        codes[line] = main([*words, *quick])
    errors = [line for line in capsys.readouterr().err.splitlines() if "missing values" not in line]
    assert len(codes) > 18
    assert [line for line, code in codes.items() if code == 2] == [
        "audit rounded.csv --label y --prob a,b,c"
    ], errors
    assert set(codes.values()) <= {0, 2, 3}
