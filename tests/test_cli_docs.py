"""The page of the command line: every option is there, every command in it runs."""

import io
import re
import shlex
from pathlib import Path

import pytest
from checkout import GUIDE
from pages import blocks

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
        shown = set(re.findall(r"(?m)^  (--[a-z-]+)", capsys.readouterr().out)) - {
            "--help"
        }
        assert shown == set(re.findall(r"(?m)^   \* - ``(--[a-z-]+)", table))
        if shown:
            assert f".. include:: generated/command_{name}.inc" in text
    for option in re.findall(r"``(--[a-z-]+)", text):
        assert option in "".join(tables.values()) or option in (
            "--help",
            "--version",
        ), option


def test_table_of_the_options_of_commands():
    """Derived from the parser: who adds an option to a command finds it there."""
    rows = _derived.options_of_commands().split("   * - ")[1:]
    cells = [[cell.strip(" `") for cell in row.splitlines()] for row in rows]
    names = [cell.removeprefix("- ").strip("`") for cell in cells[0]]
    has = {
        row[0]: [n for n, c in zip(names, row, strict=False) if c == "- yes"]
        for row in cells
    }
    assert has["--tolerance"] == [
        "audit",
        "compare",
        "sample-size",
        "fit",
        "apply",
        "monitor",
    ]
    assert (
        has["--soft-labels"]
        == has["--prediction"]
        == ["audit", "compare", "fit", "monitor"]
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    """What the program of the page writes."""
    monkeypatch.chdir(tmp_path)
    (program,) = (
        block for block in blocks("command_line.rst") if block.kind == "python"
    )
    exec(program.text, {})


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
        if words[0] in (
            "apply",
            "export",
            "estimate-mean",
            "monitor",
            "sample-size",
            "threshold",
        ):
            quick = []
        if words[0] == "fit":  # what the stack does is tested elsewhere
            quick = ["--allow", "no-gain"] + ["--recalibrator", "platt"] * (
                "--recalibrator" not in words
            )
        codes[line] = main([*words, *quick])
    errors = [
        line
        for line in capsys.readouterr().err.splitlines()
        if "missing values" not in line
    ]
    assert len(codes) > 18
    assert [line for line, code in codes.items() if code == 2] == [
        "audit rounded.csv --label y --prob a,b,c"
    ], errors
    assert set(codes.values()) <= {0, 2, 3}
