"""Options of ``audit``: the gate, what is written, forms of bad input, addresses."""

import gzip
import http.server
import io
import json
import os
import shlex
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input
from systems import symlink

from sklearn_calib._cli import build_parser, main
from sklearn_calib._cli._audit import EXAMPLES
from sklearn_calib._cli._remote import describe_source
from sklearn_calib._cli._request import Request, format_option_name
from sklearn_calib._cli._result import parse_conditions
from sklearn_calib.metrics import all_metrics, log_loss, smooth_calibration_error

AS_USUAL = ["--label", "label", "--prob", "p", "--positive", "yes"]


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Overconfident predictions of two classes, also as t.csv in the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=200)
    label = np.where(rng.random(200) < 1 / (1 + np.exp(-z)), "yes", "no")
    rows = pd.DataFrame(
        {"p": (1 / (1 + np.exp(-2 * z))).round(4), "label": label, "w": 1.0}
    )
    rows.to_csv("t.csv", index=False)
    return rows


def audit(*arguments):
    """Without what takes time."""
    return main(
        ["audit", *arguments, "--resamples", "2", "--no-advice", "--out", "none"]
    )


def said(capsys):
    """The one sentence on the error stream, nothing on the other."""
    captured = capsys.readouterr()
    assert not captured.out and captured.err.count("\n") == 1
    return captured.err.removeprefix("sklearn-calib: ")


# -- the gate ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_gate_for_every_measure(frame, capsys):
    names = ["accuracy", *all_metrics()]
    never = [part for name in names for part in ("--fail-if", f"{name} > 99")]
    assert audit("t.csv", *AS_USUAL, *never) == 0
    out = capsys.readouterr().out
    assert all(f"passed: {name} is " in out for name in names)


@pytest.mark.slow
def test_a_gate(frame, capsys):
    error = smooth_calibration_error(frame["label"], frame["p"], pos_label="yes")
    for condition, code in (
        (f"smooth_calibration_error > {error - 1e-6}", 3),
        (f"smooth_calibration_error>{error + 1e-6}", 0),
        (f"smooth_calibration_error >= {error!r}", 3),
        ("brier_loss.low > 0.0001", 3),
        ("smooth_calibration_error.high < 0.9", 3),
        ("smooth_calibration_error > null_mean", 3),
        ("smooth_calibration_error < null_mean", 0),
        ("accuracy < 0.9", 3),
        ("accuracy <= 0.1", 0),
        ("temperature_refinement_log_loss > 0.1", 3),
    ):
        assert audit("t.csv", *AS_USUAL, "--fail-if", condition) == code, condition
        captured = capsys.readouterr()
        assert captured.err.startswith("sklearn-calib: failed: ") == (code == 3)
    both = ["--fail-if", "accuracy < 0.9", "--fail-if", "log_loss > 0.1"]
    assert audit("t.csv", *AS_USUAL, *both) == 3
    assert capsys.readouterr().err.count("failed: ") == 2


def test_a_gate_on_summaries_of_many_files(frame, capsys):
    frame[:100].to_csv("a.csv", index=False)
    frame[100:].to_parquet("b.parquet")
    loss = log_loss(frame["label"], frame["p"], labels=sorted(set(frame["label"])))
    condition = f"log_loss > {loss - 1e-4:.6f}"
    assert audit("a.csv", "b.parquet", *AS_USUAL, "--fail-if", condition) == 3
    assert f"log_loss is {loss:.4g}, > " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            "log_loss",
            "expected --fail-if 'MEASURE[.low|.high] > or < NUMBER', got 'log_loss'",
        ),
        ("log_loss = 1", "expected --fail-if"),
        ("", "expected --fail-if"),
        ("log_los > 1", "got 'log_los'. Write 'log_loss'"),
        (
            "ece > 0.1",
            "expected in --fail-if one of accuracy, area_under_risk_coverage, ",
        ),
        (
            "log_loss.width > 1",
            "expected log_loss.value or log_loss.low or log_loss.high",
        ),
        ("accuracy.low < 0.9", "expected accuracy.value in --fail-if"),
        (
            "log_loss > 0,6",
            "expected a number at the end of --fail-if, got 'log_loss > 0,6'",
        ),
        ("log_loss > nan", "expected a number at the end"),
        ("accuracy < null_mean", "expected a number at the end"),
    ],
)
def test_what_is_no_condition(frame, capsys, condition, message):
    assert audit("t.csv", *AS_USUAL, "--fail-if", condition) == 2
    assert message in said(capsys)
    with raises_invalid_input(Exception, expected=".*fail-if"):
        parse_conditions([condition])


# -- what is written --------------------------------------------------------------------------


def test_numbers_and_text(frame, capsys, tmp_path):
    outputs = ["--json", "r.json", "--markdown", "r.md"]
    assert (
        audit("t.csv", *AS_USUAL, "--name", "forest", "--level", "0.5", *outputs) == 0
    )
    out = capsys.readouterr().out
    assert f"numbers: {tmp_path / 'r.json'}" in out and "report:" not in out
    assert "50 % interval" in out and not (tmp_path / "report.html").exists()
    content = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    (model,) = content["models"]
    assert (
        content["source"] == "t.csv"
        and content["level"] == 0.5
        and model["name"] == "forest"
    )
    values = {row["measure"]: row["value"] for row in model["measures"]}
    expected = log_loss(frame["label"], frame["p"], labels=sorted(set(frame["label"])))
    assert values["log_loss"] == pytest.approx(expected)
    assert "forest" in (tmp_path / "r.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_before_and_after(frame, capsys, tmp_path):
    arguments = [
        *AS_USUAL,
        "--recalibrate",
        "--json",
        "r.json",
        "--resamples",
        "2",
        "--out",
        "none",
    ]
    assert main(["audit", "t.csv", *arguments]) == 0
    out = capsys.readouterr().out
    assert "accuracy of p, recalibrated" in out and "Would recalibration help?" in out
    assert "sklearn-calib fit t.csv --prob p" in out.replace("--label label ", "")
    before, after = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))[
        "models"
    ]
    assert (before["name"], after["name"]) == ("p", "p, recalibrated")
    losses = [
        next(row["value"] for row in model["measures"] if row["measure"] == "log_loss")
        for model in (before, after)
    ]
    (auto,) = (row for row in before["advice"]["rows"] if row["method"] == "auto")
    assert losses[1] < losses[0] and losses[1] == pytest.approx(auto["loss"], abs=1e-6)
    frame.groupby("label").head(4).to_csv("few.csv", index=False)
    assert audit("few.csv", *AS_USUAL, "--recalibrate") == 2
    assert "five rows of each class for --recalibrate" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--json", "--markdown", "--save"])
def test_no_table_is_written_to(frame, capsys, tmp_path, option):
    symlink(tmp_path / "link.csv", "t.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "t.csv")
    before = (tmp_path / "t.csv").read_bytes()
    for place in ("t.csv", "link.csv", "hard.csv", "././t.csv"):
        assert main(["audit", "t.csv", *AS_USUAL, option, place]) == 2
        assert f"it is the table itself. Choose one with {option}" in said(capsys)
    assert (tmp_path / "t.csv").read_bytes() == before
    other = "--json" if option != "--json" else "--markdown"
    assert main(["audit", "t.csv", *AS_USUAL, option, "new", other, "new"]) == 2
    assert "it is also the file of --" in said(capsys)
    assert not (tmp_path / "new").exists() and not (tmp_path / "report.html").exists()


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        (["False", "True"], "True"),
        (["false", "true"], "true"),
        (["no", "yes"], "yes"),
        (["0.0", "1.0"], "1"),
        (["0", "1"], "1.0"),
        (["-1", "1"], "1"),
        (["B", "M"], "M"),
    ],
)
def test_labels_of_all_kinds(frame, capsys, values, positive):
    label = frame["label"].map(dict(zip(["no", "yes"], values, strict=True)))
    frame.assign(label=label).to_csv("t.csv", index=False)
    assert audit("t.csv", *AS_USUAL, "--positive", positive) == 0
    expected = f"{log_loss(frame['label'], frame['p'], labels=sorted(set(frame['label']))):.4f}"
    assert f"│ {expected} │" in capsys.readouterr().out.split("log_loss")[1]
    assert audit("t.csv", *AS_USUAL, "--positive", "maybe") == 2
    assert "maybe" in said(capsys)


@pytest.mark.slow
def test_percentages(frame, capsys):
    expected = f"{log_loss(frame['label'], frame['p'], labels=sorted(set(frame['label']))):.4f}"
    frame.assign(p=(100 * frame["p"]).round(2)).to_csv("t.csv", index=False)
    assert audit("t.csv", *AS_USUAL) == 2
    assert "add --scale percent for percentages" in said(capsys)
    frame.assign(p=[f"{100 * p:.2f}%" for p in frame["p"]]).to_csv(
        "signs.csv", index=False
    )
    for file in ("t.csv", "signs.csv"):
        assert audit(file, *AS_USUAL, "--scale", "percent") == 0
        assert f"│ {expected} │" in capsys.readouterr().out.split("log_loss")[1]
        assert audit(file, *AS_USUAL, "--scale", "percent", "--save", "s.parquet") == 0
        assert f"│ {expected} │" in capsys.readouterr().out.split("log_loss")[1]
    assert audit("s.parquet", "--scale", "percent") == 2
    assert "expected rows for --scale, got summaries" in said(capsys)


@pytest.mark.slow
def test_holes(frame, capsys):
    holed = frame.astype({"label": object})
    holed.loc[[3, 50], "p"] = np.nan
    holed.loc[7, "label"] = None
    holed.to_csv("t.csv", index=False)
    holed.to_parquet("t.parquet")
    assert audit("t.csv", *AS_USUAL) == 2
    message = said(capsys)
    assert (
        "got nan in rows 3 and 50 of column 'p' of t.csv. Fill them, or leave out such rows with "
        "--missing drop" in message
    )

    whole = holed.dropna()
    expected = f"{log_loss(whole['label'], whole['p'], labels=sorted(set(whole['label']))):.4f}"
    for files in (["t.csv"], ["t.parquet"]):
        assert audit(*files, *AS_USUAL, "--missing", "drop") == 0
        captured = capsys.readouterr()
        assert "missing values: rows 3, 7 and 50 of t." in captured.err
        assert "197 rows" in captured.out and f"│ {expected} │" in captured.out
    assert audit("t.csv", "t.parquet", *AS_USUAL, "--missing", "drop") == 0  # in blocks
    captured = capsys.readouterr()
    assert (
        "left out, with missing values: 6 rows (row 3 of t.csv, row 7 of t.csv, "
        in captured.err
    )
    assert "394 rows" in captured.out and f"│ {expected} │" in captured.out
    assert audit("t.csv", "t.parquet", *AS_USUAL) == 2
    assert "with --missing drop" in said(capsys)
    frame.assign(p=np.nan).to_csv("t.csv", index=False)
    assert audit("t.csv", *AS_USUAL, "--missing", "drop") == 2
    assert "expected rows without missing values, got none" in said(capsys)


def test_a_file_without_names(frame, capsys):
    frame.to_csv("t.csv", index=False, header=False)
    assert audit("t.csv", *AS_USUAL) == 2
    assert "give all names with --read header=NAME,NAME" in said(capsys)
    frame[:90].to_csv("a.csv", index=False, header=False, sep=";", decimal=",")
    frame[90:].to_csv("b.csv", index=False, header=False, sep=";", decimal=",")
    expected = f"{log_loss(frame['label'], frame['p'], labels=sorted(set(frame['label']))):.4f}"
    for files in (["t.csv"], ["a.csv", "b.csv"]):
        assert audit(*files, *AS_USUAL, "--read", "header=p,label,w") == 0
        assert f"│ {expected} │" in capsys.readouterr().out
    assert audit("t.csv", *AS_USUAL, "--read", "header=p,label") == 2
    assert (
        "expected 2 cells in the first line, as many as the names that were given, got 3"
        in said(capsys)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--label", "p", "--prob", "p"],
            "expected different columns for --label and --prob",
        ),
        (
            ["--label", "label", "--prob", "p,p"],
            "expected each column once in --prob, got 'p'",
        ),
        (["--label", "lable", "--prob", "p"], "Do you mean 'label'?"),
        (
            [*AS_USUAL, "--positive", "no"],
            "accuracy 0.7300, not 0.2700. Add --positive yes, or",
        ),
    ],
)
def test_columns_that_cannot_be_meant(frame, capsys, arguments, message):
    assert audit("t.csv", *arguments) == 2
    assert message in said(capsys)
    frame.to_parquet("u.parquet")
    assert audit("t.csv", "u.parquet", *arguments) == 2
    if "--positive" not in arguments:
        assert message in said(capsys)
    else:
        assert "Name the other class with --positive" in said(capsys)
        assert audit("t.csv", "u.parquet", *arguments, "--allow", "order") == 0


def test_the_order_of_several_columns(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(3, 0.3), 300)
    y = np.array([rng.choice(["ant", "bee", "cat"], p=row) for row in proba])
    frame = pd.DataFrame(proba, columns=["p1", "p2", "p3"]).assign(y=y)
    frame.to_csv("t.csv", index=False)
    assert audit("t.csv", "--label", "y", "--prob", "p2,p3,p1") == 2
    message = said(capsys)
    assert "Add --classes bee,cat,ant, or --allow order" in message
    fits = ["t.csv", "--label", "y", "--prob", "p2,p3,p1", "--classes", "bee,cat,ant"]
    assert audit(*fits) == 0


def test_wrong_endings(frame, capsys, tmp_path):
    frame.to_parquet("really.parquet")
    os.rename("really.parquet", "table.csv")
    os.rename("t.csv", "text.parquet")
    (tmp_path / "packed.csv").write_bytes(
        gzip.compress((tmp_path / "text.parquet").read_bytes())
    )
    values = set()
    for file in ("table.csv", "text.parquet", "packed.csv"):
        assert audit(file, *AS_USUAL) == 0
        values.add(capsys.readouterr().out.split("log_loss")[1].split("│")[1])
    assert len(values) == 1


@pytest.mark.slow
def test_many_columns(frame, capsys):
    more = pd.DataFrame(
        np.zeros((len(frame), 5000), dtype=int), columns=[f"x{i}" for i in range(5000)]
    )
    pd.concat([more, frame], axis=1).to_csv("t.csv", index=False)
    assert audit("t.csv", *AS_USUAL) == 0
    capsys.readouterr()
    assert audit("t.csv", "--label", "label", "--prob", "q") == 2
    assert "(5003 columns)" in said(capsys)


# -- addresses --------------------------------------------------------------------------------


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def server(frame, tmp_path):
    handler = partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.mark.slow
def test_addresses(server, frame, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # no address takes two lines
    address = f"{server}/t.csv"
    for refused in (address, (tmp_path / "t.csv").as_uri(), "s3://bucket/t.parquet"):
        assert audit(refused, *AS_USUAL) == 2
        assert "Download it, or add --allow remote" in said(capsys)
    outputs = set()
    secret = f"{address}?key=secret"
    sources = {secret: address, f"file://{tmp_path}/t.csv": str(tmp_path / "t.csv")}
    for allowed, called in (sources | {"t.csv": "t.csv"}).items():
        assert audit(allowed, *AS_USUAL, "--allow", "remote") == 0
        source, _, out = capsys.readouterr().out.partition("; ")
        assert source == f"source: {called}"
        outputs.add(out)
    assert len(outputs) == 1
    assert audit(f"{server}/none.csv", *AS_USUAL, "--allow", "remote") == 2
    assert "expected an address that can be read, got 'http://127" in said(capsys)
    assert audit(address, "--label", "label", "--prob", "q", "--allow", "remote") == 2
    message = said(capsys)
    assert "expected a column 'q' in t.csv" in message, "a copy has no name of its own"
    place = (tmp_path / "t.csv").as_uri()
    assert main(["audit", place, *AS_USUAL, "--allow", "remote", "--out", "t.csv"]) == 2
    assert "the table itself" in said(capsys)
    assert audit("nowhere://x/t.csv", *AS_USUAL, "--allow", "remote") == 2
    assert "expected an address" in said(capsys)


# -- streams and help -------------------------------------------------------------------------


@pytest.mark.slow
def test_help_has_examples_that_run(frame, capsys, tmp_path, monkeypatch):
    for command in ("audit", "compare", "demo", "compile"):
        with pytest.raises(SystemExit, match="0"):
            main([command, "--help"])
        assert "examples:\n  sklearn-calib " in capsys.readouterr().out
    frame = frame.assign(
        sex=["f", "m"] * (len(frame) // 2), age=np.arange(len(frame)) % 60
    )
    frame = frame.assign(region=["n", "s"] * (len(frame) // 2))
    frame = frame.assign(outcome=(frame["label"] == "yes").astype(int))
    frame.to_csv("predictions.csv", index=False)
    text = (tmp_path / "predictions.csv").read_text(encoding="utf-8")
    (tmp_path / "new.csv").write_text(text, encoding="utf-8")
    (tmp_path / "day=1").mkdir()
    frame.to_parquet("day=1/a.parquet")
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 90)
    digits = pd.DataFrame(proba, columns=["p0", "p1", "p2"]).assign(
        digit=np.arange(90) % 3
    )
    digits.to_parquet("digits.parquet")
    frame[["p"]].to_csv("scores.csv", index=False)
    shares = np.random.default_rng(1).random((90, 2))
    films = pd.DataFrame(shares, columns=["p_comedy", "p_drama"])
    films.assign(comedy=shares[:, 0] > 0.4, drama=shares[:, 1] > 0.6).to_csv(
        "films.csv"
    )
    answers = pd.DataFrame({"truth": list("ab") * 45, "answer": list("aab") * 30})
    answers = answers.assign(mark=np.arange(90) % 11, confidence=shares[:, 0])
    answers = answers.assign(correct=np.arange(90) % 2, question_id=np.arange(90) // 3)
    answers.to_json("answers.jsonl", orient="records", lines=True)
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    )
    quick = ["--resamples", "2", "--no-advice"]
    for line in EXAMPLES:
        words = _words(line)
        less = (
            []
            if words[0] == "sample-size"
            else quick + ["--out", "none"] * ("--out" not in words)
        )
        assert main([*words[1:], *less]) in (0, 3)
    assert (tmp_path / "june.html").exists()


def _words(line):
    import shlex

    return shlex.split(line.partition(" < ")[0])


def test_options_are_described(capsys):
    for command in build_parser()._subparsers._group_actions[0].choices.values():
        for action in command._actions:
            known = "--help" in action.option_strings
            assert known or (action.help and action.help[0].islower()), (
                action.option_strings
            )
    with pytest.raises(SystemExit, match="2"):
        main(["audit", "t.csv", "--labe", "x"])
    assert "unrecognized arguments" in capsys.readouterr().err, (
        "options are written in full"
    )


def test_a_defect_is_one_sentence(frame, capsys, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("deep inside")

    monkeypatch.setattr("sklearn_calib.report.calibration_report", broken)
    assert audit("t.csv", *AS_USUAL) == 1
    assert "unexpected RuntimeError: deep inside. Please report it" in said(capsys)
    monkeypatch.setenv("SKLEARN_CALIB_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="deep inside"):
        audit("t.csv", *AS_USUAL)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["audit", "--help"], ["--version"], AS_USUAL]
)
def test_closed_pipes_are_quiet(frame, capsys, monkeypatch, arguments):
    ours, theirs = os.pipe()
    os.close(ours)
    monkeypatch.setattr("sys.stdout", os.fdopen(theirs, "w"))
    if arguments is AS_USUAL:
        assert audit("t.csv", *AS_USUAL) == 0
    else:
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
    sys.stdout.close()  # what is left in the buffer goes nowhere
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_the_commands_to_paste_repair(capsys, tmp_path, monkeypatch):
    """Whatever the names, the separator, the decimal mark and the options are."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.where(rng.random(300) < p**2, "it's", "not")
    table = pd.DataFrame({"p (%)": 100 * p, "the outcome": y, "--id": range(300)})
    table.to_csv("a table.csv", sep=";", decimal=",", index=False)
    arguments = [
        "--label",
        "the outcome",
        "--prob",
        "p (%)",
        "--positive",
        "it's",
        "--scale",
        "percent",
    ]
    where = ["--out", "none", "--resamples", "2"]
    assert main(["audit", "a table.csv", *arguments, *where]) == 0
    out = capsys.readouterr().out
    fit, apply = (
        shlex.split(line) for line in out.splitlines() if "    sklearn-calib " in line
    )
    table.to_csv("new.csv", sep=";", decimal=",", index=False)
    assert main(fit[1:]) == 0
    assert main(apply[1:]) == 0
    assert len(pd.read_csv("repaired.csv", sep=None, engine="python")) == 300


@pytest.mark.slow
def test_the_commands_to_paste_divide_rounded_rows(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    table = pd.DataFrame((proba**2 / (proba**2).sum(axis=1, keepdims=True)).round(2))
    table.columns = [*"abc"]
    table["y"] = ["abc"[rng.choice(3, p=row)] for row in proba]
    table.to_csv("t.csv", index=False)
    table.to_csv("new.csv", index=False)
    columns = ["--label", "y", "--prob", "a,b,c"]
    assert main(["audit", "t.csv", *columns, "--out", "none", "--resamples", "2"]) == 0
    out = capsys.readouterr().out
    fit, apply = (
        shlex.split(line) for line in out.splitlines() if "    sklearn-calib " in line
    )
    assert main([*fit[1:], "--recalibrator", "temperature"]) == 0
    assert main(apply[1:]) == 0
    assert len(pd.read_csv("repaired.csv")) == 200


@pytest.mark.slow
def test_control_characters_are_in_no_output(frame, capsys):
    """Names of columns, labels and files that would act on a terminal."""
    red = "\x1b[31m"
    names = {column: red + column for column in frame.columns}
    frame.rename(columns=names).to_csv(red + "t.csv", index=False)
    given = ["--label", names["label"], "--prob", names["p"], "--positive", "yes"]
    outputs = ["--out", "r.html", "--markdown", "r.md", "--json", "r.json"]
    assert main(["audit", red + "t.csv", *given, *outputs, "--resamples", "2"]) == 0
    for name in ("r.html", "r.md", "r.json"):
        assert "\x1b" not in Path(name).read_text(encoding="utf-8")
    assert "$'\\x1b[31mt.csv'" in Path("r.md").read_text(encoding="utf-8")
    assert "\x1b" not in "".join(capsys.readouterr())


MINUS = [*AS_USUAL, "--weight", "minus"]
EMPTY = [*AS_USUAL, "--weight", "zero"]
PLATT = ["--recalibrator", "platt", "--allow", "no-gain", "--out", "m.json"]


@pytest.mark.parametrize("command", [["audit"], ["fit", *PLATT]])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (MINUS, "expected --weight >= 0 and finite, got -1 in row 0"),
        (EMPTY, "Pass no --weight for equal weights"),
        (
            [*AS_USUAL[:4], "--classes", "no,perhaps"],
            "Name all of them with --classes, or drop",
        ),
        (
            ["--label", "label", "--prob", "p,q,r"],
            "in the order of the columns, with --classes|class with --prob",
        ),
        (
            ["--label", "three", "--prob", "p"],
            "2 columns of --prob, got 3 classes|class with --prob",
        ),
        (["--label", "number", "--prob", "p", "--classes", "0,1"], "got 2 in row 2"),
        (
            ["--label", "label", "--prob", "two", "--positive", "yes"],
            "add --scale percent for percentages",
        ),
        (["--label", "label", "--prob", "p,w"], "Turn logits into probabilities first"),
        (
            ["--label", "label", "--prob", "hole"],
            "leave out such rows with --missing drop",
        ),
        ([*AS_USUAL, "--tolerance", "7"], "expected a --tolerance in [0, 1)"),
        (["--label", "w", "--prob", "p"], "Name all of them with --classes"),
        (
            ["--label", "label", "--prob", "three", "--weight", "three"],
            "Clean the column first",
        ),
    ],
)
def test_errors_name_the_options(frame, capsys, command, arguments, named):
    frame["q"] = frame["r"] = (1 - frame["p"]) / 2
    frame = frame.assign(
        minus=-1.0, zero=0.0, two=2 * frame["p"] + 1, number=range(len(frame))
    )
    frame["three"] = np.array(["a", "b", "c"])[np.arange(len(frame)) % 3]
    frame["hole"] = frame["p"].where(frame.index != 5)
    frame.to_csv("t.csv", index=False)
    assert main([command[0], "t.csv", *command[1:], *arguments]) == 2
    text = capsys.readouterr().err
    assert any(words in text for words in named.split("|"))
    for name in (
        "y_proba",
        "y_true",
        "sample_weight",
        "labels=",
        "classes=",
        "np.",
        "Scaling.",
    ):
        assert name not in text


def test_a_source_has_no_password():
    assert describe_source(["ftp://me:word@host/t.csv"], ["copy"]) == "ftp://host/t.csv"


def test_messages_name_options_that_a_command_has():
    """An attribute of a request is called as the option that sets it."""
    (commands,) = (
        action.choices for action in build_parser()._actions if action.choices
    )
    actions = [one for parser in commands.values() for one in parser._actions]
    known = {option for one in actions for option in one.option_strings}
    set_by_options = {one.dest for one in actions if one.option_strings}
    checked = set_by_options & {*Request.__dataclass_fields__}
    assert len(checked) > 15
    # Words of options set the last three; the first is never named.
    checked = checked - {"sums"} | {"absent", "drop_missing", "logits"}
    for name in checked:
        option = format_option_name(name).split()[0]
        assert option in known, f"{name}: no command has {option}"
