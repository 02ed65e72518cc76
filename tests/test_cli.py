import errno
import html
import io
import os
import re
import runpy
from decimal import Decimal
from typing import ClassVar

import numpy as np
import pytest
from systems import WORDS, symlink

import sklearn_calib
from sklearn_calib._cli import main
from sklearn_calib._cli._demo import describe_log_loss_change_and_verdict
from sklearn_calib._files.atomic import write_atomically
from sklearn_calib._show import make_printable
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.inference._paired import PairedDifference
from sklearn_calib.recalibrators import Identity, all_recalibrators

pd = pytest.importorskip("pandas")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proba, y = make_overconfident(2, 300)
    frame = pd.DataFrame(
        {"p": proba[:, 1], "label": np.array(["no", "yes"])[y], "w": 1.0}
    )
    frame.to_csv("t.csv", index=False)
    return frame


AS_USUAL = ["--label", "label", "--prob", "p", "--positive", "yes"]


def run(*arguments):
    return main(["audit", *arguments])


def quickly(*arguments):
    """Without what takes time: intervals of two draws, no advice."""
    return run(*arguments, "--resamples", "2", "--no-advice")


def unseen(*arguments):
    """And without the page."""
    return quickly(*arguments, "--out", "none")


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch, capsys):
    """With some of the methods; .ci/run runs the command itself."""
    known = all_recalibrators()
    few = {
        name: known[name]
        for name in ("identity", "temperature", "platt", "isotonic", "default")
    }
    monkeypatch.setattr("sklearn_calib.recalibrators.all_recalibrators", lambda: few)
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--data", "breast_cancer"]) == 0
    out = capsys.readouterr().out
    assert "(before)" in out and "temperature" in out and "default" in out
    assert "after (default)" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.search(r"\nVerdict: recalibrate\.\n+report: ", out)
    assert str(tmp_path / "report.html") in out
    assert (tmp_path / "report.html").stat().st_size > 10_000


def difference(low, high):
    change = (low + high) / 2
    return PairedDifference("log_loss", 1.0, 1.0 + change, change, low, high, 0.95, "")


def test_verdict_of_the_demo():
    better, unclear = (
        describe_log_loss_change_and_verdict(difference(*ends))
        for ends in ((-0.2, -0.1), (-0.1, 0.1))
    )
    assert "log loss 0.85 instead of 1.00, a change of -0.15 (95 %" in better
    assert better.endswith("Verdict: recalibrate.")
    assert unclear.endswith("Verdict: these rows do not show whether to recalibrate.")


def test_audit(table, capsys, tmp_path):
    assert run("t.csv", *AS_USUAL, "--weight", "w", "--resamples", "9") == 0
    out = capsys.readouterr().out
    assert "expected_calibration_error" in out and "Would recalibration help?" in out
    assert re.search(r"│ auto +│", out) and "    sklearn-calib fit " in out
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_audit_positive_class(table, capsys):
    table["q"] = 1 - table["p"]
    table.to_csv("t.csv", index=False)
    outputs = []
    ways = (
        ["p", "--positive", "yes"],
        ["q", "--positive", "no"],
        ["q,p"],
        ["p", "--classes", "no,yes"],
    )
    for arguments in ways:
        assert unseen("t.csv", "--label", "label", "--prob", *arguments) == 0
        lines = capsys.readouterr().out.splitlines()
        line = next(line for line in lines if "brier_loss" in line)
        outputs.append(line.split("│")[2])  # the interval is drawn from other numbers
    assert len(set(outputs)) == 1


def test_audit_many_classes(quick, capsys):
    proba, y = make_overconfident(3, 300)
    frame = pd.DataFrame(proba, columns=["a", "b", "c"]).assign(y=y + 1)
    frame[frame.y < 3].to_csv("t.csv", index=False)
    assert run("t.csv", "--label", "y", "--prob", "a,b,c") == 2
    assert "expected one class for each of the 3 columns" in capsys.readouterr().err
    assert unseen("t.csv", "--label", "y", "--prob", "a,b,c", "--classes", "1,2,3") == 0


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, ["--prob", "q"], "expected a column 'q' in t.csv, got p, label, w"),
        ({}, ["--prob", "p", "--weight", "v"], "expected a column 'v'"),
        (
            {"p": "high"},
            ["--prob", "p"],
            "expected numbers in column 'p' of t.csv, got for inst",
        ),
        (
            {"p": None},
            ["--prob", "p"],
            "expected a number in every row, got nan in row 3 of",
        ),
        (
            {"p": 1.5},
            AS_USUAL[2:],
            "expected probabilities in [0, 1], got 1.5 in row 3",
        ),
        (
            {"label": None},
            ["--prob", "p"],
            "expected a label in every row, got nan in row 3",
        ),
        ({"w": -1}, [*AS_USUAL[2:], "--weight", "w"], "expected --weight >= 0"),
        (
            {},
            ["--prob", "p", "--positive", "maybe"],
            "expected --positive among no, yes",
        ),
        (
            {},
            ["--prob", "p", "--classes", "no"],
            "expected 2 classes in --classes, got 1",
        ),
        ({}, ["--prob", "p", "--out", "nowhere/r.html"], "Choose one with --out"),
        ({}, ["--prob", "p", "--json", "-"], "the standard output has the report"),
    ],
)
def test_audit_refuses(table, capsys, tmp_path, change, arguments, message):
    for column, value in change.items():
        table[column] = table[column].astype(object)
        table.loc[3, column] = value
    table.to_csv("t.csv", index=False)
    assert run("t.csv", "--label", "label", *arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err.replace("'t.csv'", "t.csv")
    assert captured.err.startswith("sklearn-calib: ")
    assert not (tmp_path / "report.html").exists()


def test_audit_refuses_one_class_and_bad_files(table, capsys, tmp_path):
    table.assign(label="no").to_csv("one.csv", index=False)
    assert run("one.csv", "--label", "label", "--prob", "p") == 2
    assert (
        "expected labels of at least two classes in column 'label'"
        in capsys.readouterr().err
    )
    table.iloc[:0].to_csv("none.csv", index=False)
    assert run("none.csv", "--label", "label", "--prob", "p") == 2
    assert "expected rows in none.csv, got none" in capsys.readouterr().err
    for name in ("absent.csv", "absent.parquet"):
        assert run(name, "--label", "label", "--prob", "p") == 2
        assert "expected a readable" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_missing_extras(monkeypatch, capsys):
    monkeypatch.setattr("sklearn_calib._cli.find_spec", lambda name: None)
    assert main(["demo"]) == 2
    assert "pip install 'sklearn-calib[cli]'" in capsys.readouterr().err


def test_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["sklearn-calib", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("sklearn_calib", run_name="__main__", alter_sys=True)
    assert sklearn_calib.__version__ in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["help"], ["--help"]])
def test_the_help_is_printed_if_no_command_is_named(words, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(words)
    out, err = capsys.readouterr()
    assert (
        out.startswith("usage: sklearn-calib COMMAND") and "monitor" in out and not err
    )
    assert len(out.splitlines()) <= 24
    for line in out.split("commands:\n")[1].split("\n\n")[0].splitlines():
        assert len(line) <= 80 and len(line.split()) > 1 and line[2] != " "


@pytest.mark.parametrize("command", ["audit", "fit", "monitor"])
def test_help_and_a_command_print_the_help_of_the_command(command, capsys):
    shown = []
    for words in (["help", command], [command, "--help"]):
        with pytest.raises(SystemExit, match="0"):
            main(words)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] and f"sklearn-calib {command} " in shown[0]


# -- hostile input: exit 2, one sentence, nothing lost ---------------------------------------------


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """A table that is there before and after."""
    monkeypatch.chdir(tmp_path)
    proba, y = make_overconfident(2, 60)
    return pd.DataFrame(
        {"p": proba[:, 1].round(6), "label": np.array(["no", "yes"])[y], "w": 1.0}
    )


LINES = "p,label\n" + "0.2,no\n0.7,yes\n0.4,no\n0.9,yes\n" * 10


@pytest.mark.parametrize(
    ("name", "content", "arguments", "message"),
    [
        ("empty.csv", "", [], "expected a header and rows in empty.csv, got an empty file"),
        ("blank.csv", "\n \n", [], "got an empty file"),
        ("header.csv", "p,label\n", [], "expected rows in header.csv, got none"),
        ("zeros.csv", b"\0" * 50, [], "or a parquet or Arrow file, got binary content"),
        ("noise.csv", b"\x89PNG\r\n\xff\xfe\x80" * 9, [], "got the byte 0x89. Name the encoding"),
        ("noise.csv.gz", b"\x89PNG\r\n\xff\xfe\x80" * 9, [], "expected a readable table"),
        ("half.csv.gz", b"\x1f\x8b\x08\x00\x00", [], "expected a readable table"),
        ("t.parquet", b"PAR1" + b"x" * 50, [], "expected a readable table"),
        ("latin.csv", LINES.replace("yes", "dé").encode("cp1252"), [], "with --read encoding=NAME"),
        ("t.csv", LINES, ["--read", "encoding=klingon"], "a known encoding, got 'klingon'"),
        ("t.csv", LINES, ["--read", "sep=ab"], "expected one character as separator, got 'ab'"),
        ("t.csv", LINES, ["--read", "sep=;"], "got p,label. Name the separator with --read sep"),
        ("t.csv", LINES.replace(",", "~"), [], "got p~label. Name the separator with --read sep"),
        ("t.csv", LINES.replace("p,", "p,p,", 1), [], "expected one column 'p' in t.csv, got 2"),
        ("t.csv", LINES.replace("no", "no,1"), [], "Row 0 of t.csv has more cells than the 2"),
        ("t.csv", LINES + "0.2,no,3,4\n", [], "Row 40 of t.csv has more cells than the 2"),
        ("t.csv", LINES.replace("0.", '"0,'). replace(",no", '",no').replace(",yes", '",yes'), [],
         "got for instance '0,2' in row 0. If the comma is the decimal mark, read it with --read"),
        ("t.csv", LINES.replace(",", ";").replace("0.9", "1.234,5"), [], "got for instance '0.2'")
        ,
        ("t.csv", LINES.replace("0.9", "90%"), [], "Write all of them in percent, or none"),
        ("t.csv", LINES.replace("0.9", "90"), [], "got 90 in row 3, column 0. Turn logits into"),
        ("t.csv", LINES.replace("0.9", "0x1p-1"), [], "got for instance '0x1p-1' in row 3"),
        ("t.csv", LINES.replace("0.9", "1_0"), [], "got for instance '1_0' in row 3"),
        ("t.csv", LINES, ["--prob", "q\x1b[31m"], r"expected a column 'q\x1b[31m' in t.csv"),
        ("t.csv", LINES, ["--prob", "q\n"], r"expected a column 'q' in t.csv, got p, label"),
        ("t.csv", LINES, ["--prob", "p" * 5000], "ppp...ppp"),
        ("t.csv", LINES, ["--positive", "[/]"], "expected --positive among no, yes, got '[/]'"),
        ("t.csv", LINES, ["--classes", "a", "--classes", "b"], "expected labels among ['a', 'b']"),
        ("t.csv", LINES.replace("yes", "no"), ["--positive", "yes"], "got 'yes'. Name both classes "
         "with --classes"),
        ("t.csv", LINES.replace("no", "0").replace("yes", "1"), ["--positive", "x"], "a number"),
        ("t.csv", LINES, ["--out", "t.csv"], "it is the table itself. Choose one with --out"),
        ("t.csv", LINES, ["--out", "./a/../t.csv"], "it is the table itself"),
        ("t.csv", LINES, ["--out", "symbolic.csv"], "it is the table itself"),
        ("t.csv", LINES, ["--out", "hard.csv"], "it is the table itself"),
        ("t.csv", LINES, ["--out", "a"], "it is a folder. Choose"),
        ("t.csv", LINES, ["--out", "b/r.html"], "its folder does not exist"),
        pytest.param("t.csv", LINES, ["--out", "t.csv/r"], "written: Not a directory", marks=WORDS),
        pytest.param("t.csv", LINES, ["--out", "r" * 300], "File name too long", marks=WORDS),
        ("t.csv", LINES, ["--out", "r\0.html"], "embedded null"),
        ("t.csv", LINES, ["--out", ""], "'' cannot be written"),
    ],
)  # fmt: skip
def test_one_sentence(quick, tmp_path, capsys, name, content, arguments, message):
    data = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(data)
    (tmp_path / "a").mkdir()
    if "symbolic.csv" in arguments:
        symlink(tmp_path / "symbolic.csv", name)
    (tmp_path / "hard.csv").hardlink_to(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    options = AS_USUAL[:2] if "--prob" in arguments else AS_USUAL
    if "--classes" in arguments:
        options = AS_USUAL[:4]
    assert run(name, *options, *arguments) == 2
    said = capsys.readouterr().err
    assert message in said and said.startswith("sklearn-calib: ")
    assert said.count("\n") == 1 and said.endswith("\n") and "\x1b" not in said
    assert len(said) < 1000 and "Traceback" not in said and "canonical_" not in said
    assert (tmp_path / name).read_bytes() == data and sorted(
        tmp_path.iterdir()
    ) == before


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            "http://localhost/t.csv",
            "expected the path of a local file, got the address",
        ),
        ("file:///etc/passwd", "expected the path of a local file, got the address"),
        ("s3://bucket/t.csv", "expected the path of a local file, got the address"),
        (".", "(parquet, csv, JSON lines, Arrow), got none in '.'"),
        ("absent.csv", "No such file or directory"),
        ("x" * 300 + ".csv", "File name too long"),
        ("t\0.csv", "embedded null"),
    ],
)
def test_files_that_are_none(quick, capsys, file, message):
    assert run(file, *AS_USUAL) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_parquet_columns_that_hold_more_than_a_value(quick, capsys):
    n = len(quick)
    quick["lists"] = [[0.1, 0.9]] * n
    quick["dicts"] = [{"a": 1}] * n
    quick["days"] = pd.Timestamp("2020-01-01")
    quick["text"] = "a"
    quick.to_parquet("t.parquet")
    for column in ("lists", "dicts"):
        message = f"expected one value in each row of column '{column}'"
        if column == "dicts":  # whose fields are columns
            message = "expected a column 'dicts' in t.parquet, got p, label, w, lists, dicts.a"
        for arguments in (
            ["--label", "label", "--prob", column],
            ["--label", column, "--prob", "p"],
        ):
            assert run("t.parquet", *arguments) == 2
            said = capsys.readouterr().err
            assert message in said
    for column in ("days", "text"):
        assert run("t.parquet", "--label", "label", "--prob", column) == 2
        assert f"expected numbers in column '{column}'" in capsys.readouterr().err
    two = quick[["p", "label", "w"]].set_axis(["p", "label", "p"], axis=1)
    from pyarrow import Table, parquet

    columns = [two.iloc[:, i].tolist() for i in range(3)]
    parquet.write_table(Table.from_arrays(list(map(_arrow, columns)), names=["p", "label", "p"]),
                        "two.parquet")  # fmt: skip
    assert run("two.parquet", *AS_USUAL) == 2
    assert "expected one column 'p' in two.parquet, got 2" in capsys.readouterr().err


def _arrow(values):
    import pyarrow

    return pyarrow.array(values)


def _brier(capsys):
    lines = capsys.readouterr().out.splitlines()
    return next(line for line in lines if "brier_loss" in line)


@pytest.fixture
def no_pictures(monkeypatch):
    monkeypatch.setattr(
        "sklearn_calib.report.CalibrationReport.plot", lambda report, **kw: None
    )


@pytest.mark.slow
def test_forms_of_a_table_give_one_result(quick, capsys, tmp_path, monkeypatch):
    quick.to_csv("plain.csv", index=False)
    assert unseen("plain.csv", *AS_USUAL) == 0
    expected = _brier(capsys)
    comma = {"sep": ";", "decimal": ","}
    quick.to_csv("semicolon.csv", index=False, **comma)
    quick.to_csv("tabs.tsv", index=False, sep="\t")
    quick.to_csv("bars.txt", index=False, sep="|")
    quick.to_csv("tilde.csv", index=False, sep="~")
    quick.to_csv("bom.csv", index=False, encoding="utf-8-sig", **comma)
    quick.to_csv("wide.csv", index=False, encoding="utf-16")
    quick.to_csv("quoted.csv", index=False, quoting=1)
    quick.to_csv("commas.csv", index=False, decimal=",")
    quick.to_csv("packed.csv.gz", index=False)
    quick.to_csv("packed.csv.bz2", index=False)
    quick.to_csv("packed.csv.xz", index=False)
    quick.to_csv("packed.csv.zip", index=False)
    text = (tmp_path / "plain.csv").read_text(encoding="utf-8")
    (tmp_path / "spaces.csv").write_text(
        "\n" + text.replace(",", ", "), encoding="utf-8"
    )
    (tmp_path / "trailing.csv").write_text(text.replace("\n", ",\n"), encoding="utf-8")
    percent = [f"{100 * p:.4f}%" for p in quick["p"]]
    quick.assign(p=percent).to_csv("percent.csv", index=False)
    quick.assign(p=quick["p"].astype(str)).to_parquet("text.parquet")
    quick.set_index("label").to_parquet("index.parquet")
    quick.astype({"label": "category"}).to_parquet("category.parquet")
    quick.assign(p=quick["p"].map(lambda p: Decimal(str(p)))).to_parquet(
        "decimal.parquet"
    )
    quick.to_parquet("no_ending")
    accents = quick.replace({"label": {"yes": "sí"}})
    accents.to_csv("accents.csv", index=False, encoding="cp1252")
    more = {
        "tilde.csv": ["--read", "sep=~"],
        "commas.csv": ["--read", "decimal=,"],
        "accents.csv": ["--read", "encoding=cp1252", "--positive", "sí"],
        "tabs.tsv": ["--read", "sep=tab"],
    }
    for path in sorted(tmp_path.iterdir()):
        if path.suffix != ".html":
            assert unseen(path.name, *AS_USUAL, *more.get(path.name, [])) == 0, (
                path.name
            )
            assert _brier(capsys) == expected, path.name
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    )
    assert unseen("-", *AS_USUAL) == 0
    assert _brier(capsys) == expected


HOSTILE_NAMES = [
    "[red]p[/red]", "[/]", "[bold", "$p$", "$a_{$", "\\$p", "a\\b", "p\x1b[31mred", "p\ttab",
    "a\nb", "\u202ep", ":smile:", "😀", "👨\u200d👩\u200d👧", "<script>alert(1)</script>",
    '"><img src=x>', "_p", "{p}", "%s",
    "p" * 3000, "mit Leerzeichen", "a,b", "p;q", "名前",
]  # fmt: skip


PAINTED = ("$a_{$", "😀", "p" * 3000)  # test_show.py paints the others


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name)[:20])
def test_names_are_shown_as_they_are(quick, capsys, tmp_path, request, name):
    if name not in PAINTED:
        request.getfixturevalue("no_pictures")
    other = f"not {name}"
    quick = quick.rename(columns={"p": name, "label": f"{name} label"})
    quick[f"{name} label"] = np.where(quick.iloc[:, 1] == "yes", name, other)
    quick.to_parquet("t.parquet")
    arguments = ["--label", f"{name} label", "--prob", name, "--positive", name]
    assert quickly("t.parquet", *arguments) == 0
    captured = capsys.readouterr()
    out = captured.out
    assert not captured.err
    assert "\x1b" not in out and "\u202e" not in out and "\t" not in out
    shown = make_printable(name)
    assert f"accuracy of {shown}" in re.sub(r"\s+", " ", out)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page and "<img src=x" not in page and "\x1b" not in page
    assert f"<h1>Calibration of {html.escape(shown)}</h1>" in page


def test_names_of_several_columns(quick, capsys):
    proba, y = make_overconfident(3, 60)
    names = ["a,b", "c", "d"]
    frame = pd.DataFrame(proba, columns=names).assign(y=np.array(["u,v", "w", "x"])[y])
    frame.to_csv("t.csv", index=False)
    shown = []
    for prob in (["a,b", "c", "d"], ["a,b", "c,d"], ['"a,b",c,d'], ['"a,b"', "c", "d"]):
        chosen = [part for value in prob for part in ("--prob", value)]
        assert unseen("t.csv", "--label", "y", *chosen, "--classes", '"u,v",w,x') == 0
        shown.append(_brier(capsys))
    assert len(set(shown)) == 1
    assert run("t.csv", "--label", "y", "--prob", "a,b,c,d") == 2
    assert "expected a column 'a' in t.csv, got a,b, c, d, y" in capsys.readouterr().err


@pytest.mark.slow
def test_rows_that_were_rounded(quick, capsys, tmp_path):
    proba, y = make_overconfident(3, 60)
    arguments = ["t.csv", "--label", "y", "--prob", "a,b,c"]

    def write(decimals):
        frame = pd.DataFrame(proba.round(decimals), columns=list("abc")).assign(y=y)
        frame.to_csv("t.csv", index=False)

    write(2)
    assert unseen(*arguments) == 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "as 2 decimals make them" in said
    assert "and this not said with --tolerance 0.015" in said
    assert unseen(*arguments, "--tolerance", "any") == 0
    assert not capsys.readouterr().err
    write(1)
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert (
        "If the probabilities were rounded to 1 decimal, divide rows by their sums first, with "
        in said
    )
    assert not (tmp_path / "report.html").exists()
    losses = []
    for more in (["--tolerance", "0.15"], ["--tolerance", "any"]):
        assert unseen(*arguments, *more) == 0
        losses.append(_brier(capsys))
    assert losses[0] == losses[1]
    assert run(*arguments, "--tolerance", "-1") == 2
    assert "expected a --tolerance in [0, 1), got -1.0" in capsys.readouterr().err


def test_a_full_disk_loses_nothing(quick, no_pictures, capsys, tmp_path, monkeypatch):
    quick.to_csv("t.csv", index=False)
    (tmp_path / "report.html").write_text("the page of yesterday", encoding="utf-8")
    (tmp_path / "report.html").chmod(0o640)  # on Windows a file has no such mode
    mode = (tmp_path / "report.html").stat().st_mode

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        assert quickly("t.csv", *AS_USUAL) == 2
    captured = capsys.readouterr()
    assert (
        "cannot be written: No space left on device" in captured.err
        and captured.err.count("\n") == 1
    )
    assert "brier_loss" in captured.out, "the tables were measured, so they are shown"
    assert (tmp_path / "report.html").read_text(
        encoding="utf-8"
    ) == "the page of yesterday"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "t.csv"]
    symlink(tmp_path / "link.html", "report.html")
    assert quickly("t.csv", *AS_USUAL, "--out", "link.html") == 0
    assert (tmp_path / "link.html").is_symlink()
    assert "<h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "report.html").stat().st_mode == mode
    if os.path.exists("/dev/full"):
        assert quickly("t.csv", *AS_USUAL, "--out", "/dev/full") == 2
        assert "No space left on device" in capsys.readouterr().err
        assert not os.path.isfile("/dev/full")


def test_a_file_that_must_not_be_changed(quick, capsys, tmp_path, monkeypatch):
    quick.to_csv("t.csv", index=False)
    (tmp_path / "report.html").write_text("kept", encoding="utf-8")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert run("t.csv", *AS_USUAL) == 2
    assert "it is write-protected" in capsys.readouterr().err
    with pytest.raises(PermissionError):
        write_atomically(tmp_path / "report.html", "new")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "kept"
    assert run("t.csv", *AS_USUAL, "--out", "new.html") == 2
    assert "its folder is write-protected" in capsys.readouterr().err


class _Broken(io.StringIO):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        # EPIPE makes a BrokenPipeError
        raise OSError(self.number, os.strerror(self.number))


def test_the_report_is_written_when_nobody_listens(
    quick, no_pictures, capsys, tmp_path, monkeypatch
):
    quick.to_csv("t.csv", index=False)
    for number, code in ((errno.EPIPE, 0), (errno.ENOSPC, 2)):
        with monkeypatch.context() as patched:
            patched.setattr("sys.stdout", _Broken(number))
            assert quickly("t.csv", *AS_USUAL) == code
        assert (tmp_path / "report.html").exists()
        (tmp_path / "report.html").unlink()
    said = capsys.readouterr().err
    assert (
        said.count("\n") == 1
        and "got No space left on device. The report is in" in said
    )


def test_control_c(quick, capsys, monkeypatch):
    quick.to_csv("t.csv", index=False)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn_calib.report.calibration_report", interrupted)
    assert run("t.csv", *AS_USUAL) == 130
    assert capsys.readouterr().err == "sklearn-calib: interrupted\n"


def test_a_terminal_without_unicode(quick, monkeypatch):
    quick.rename(columns={"p": "😀"}).to_csv("t.csv", index=False)
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", screen)
    assert unseen("t.csv", "--label", "label", "--prob", "😀", "--positive", "yes") == 0
    screen.flush()
    assert b"accuracy of \\U0001f600" in screen.buffer.getvalue()


class Memory(Identity):
    """Knows the labels of the rows it was fitted on, and nothing of others."""

    weights_: ClassVar = {"memory": 1.0}  # as the mixture has them

    def _fit(self, proba, codes, weight):
        self.known_ = dict(zip(map(tuple, proba.tolist()), codes.tolist(), strict=True))

    def _predict_proba(self, proba):
        k = proba.shape[1]
        known = [self.known_.get(tuple(row)) for row in proba.tolist()]
        return np.array(
            [np.full(k, 1 / k) if c is None else np.eye(k)[c] for c in known]
        )


@pytest.mark.parametrize("k", [2, 3])
def test_advice_is_never_fitted_on_the_rows_it_is_judged_on(
    capsys, monkeypatch, tmp_path, k
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), size=400)  # no score twice
    names = [f"p{c}" for c in range(k)]
    frame = pd.DataFrame(p, columns=names).assign(label=rng.integers(0, k, 400))
    frame.to_csv("t.csv", index=False)

    def named(name):
        return Identity() if name == "identity" else Memory()

    for module in ("recalibrators", "report._advice"):
        monkeypatch.setattr(f"sklearn_calib.{module}.get_recalibrator", named)
    columns = ["--label", "label", "--prob", ",".join(names)]
    assert run("t.csv", *columns, "--out", "none", "--resamples", "2") == 0
    losses = capsys.readouterr().out.split("Would recalibration help?")[1]
    line = next(line for line in losses.splitlines() if "platt" in line)
    found = [float(value) for value in re.findall(r"\d\.\d+", line)]
    del found[1:3]  # gain, standard error
    assert found[0] == pytest.approx(np.log(k), abs=1e-4), (
        "it saw the rows it is judged on"
    )
    assert found[1] == pytest.approx(1 / 4 if k == 2 else 2 / 3, abs=1e-4)
