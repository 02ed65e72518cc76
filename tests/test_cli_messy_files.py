"""Tables as they come: titles above the names, records, archives, folders, days without rows."""

import json
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli import _monitor, build_parser, main
from sklearn_calib.monitoring import CalibrationMonitor
from sklearn_calib.summary import summarize

N = 80
ROWS = ["--label", "y", "--prob", "p", "--positive", "yes"]
TITLE = 'Report of "May, with\n\n# scores; of all customers\n'


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Rows of two classes, in the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(N).round(3)
    y = np.where(rng.random(N) < p, "yes", "no")
    return pd.DataFrame({"y": y, "p": p, "q": (p**1.5).round(3)})


def write_table(frame, path, titles=0):
    """Write a table in the format that its name states, below so many lines of titles."""
    if path.endswith(".xlsx"):
        book = openpyxl.Workbook()
        for row in (["Report"], [], ["scores", "of", None, "all"])[:titles]:
            book.active.append(row)
        for row in [list(frame.columns), *frame.values.tolist()]:
            book.active.append(row)
        book.save(path)
        return
    text = frame.to_csv(index=False)
    if "semicolons" in path:
        text = text.replace(",", ";").replace("0.", "0,")
    above = "".join(TITLE.splitlines(keepends=True)[:titles])
    encoding = (
        "utf-16" if "utf16" in path else "utf-8-sig" if "bom" in path else "utf-8"
    )
    ends = "\r\n" if "windows" in path else "\n"
    content = (above + text).replace("\n", ends).encode(encoding)
    if path.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("t.csv", content)
    else:
        Path(path).write_bytes(content)


COMMANDS = {
    "audit": [*ROWS, "--resamples", "2", "--no-advice", "--out", "none"],
    "compare": [*ROWS, "--prob", "q", "--resamples", "20"],
    "fit": [
        *ROWS,
        "--recalibrator",
        "platt",
        "--out",
        "new.json",
        "--allow",
        "no-gain",
    ],
    "estimate-mean": ["--label", "p", "--score", "q"],
    "monitor": ROWS,
    "audit-multilabel": [
        "--label",
        "a",
        "--prob",
        "p",
        "--resamples",
        "2",
        "--out",
        "none",
    ],
    "sample-size": ["--prob", "p", "--error", "0.1"],
}

SLOW = ("compare", "sample-size")
TIMED = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in COMMANDS
]


def said_by(command, path, capsys, *more):
    code = main([command, path, *COMMANDS[command], *more])
    out, err = capsys.readouterr()
    assert code in (0, 3), err
    return out


@pytest.mark.parametrize("path", ["t.csv", "t.xlsx"])
@pytest.mark.parametrize("command", TIMED)
def test_every_command_skips_titles(frame, capsys, command, path):
    frame["a"] = (frame.y == "yes").astype(int)
    write_table(frame, path)
    expected = said_by(command, path, capsys)
    write_table(frame, path, titles=3)
    assert said_by(command, path, capsys, "--skip-rows", "3") == expected
    assert main([command, path, *COMMANDS[command]]) == 2
    if command != "audit-multilabel":  # which names the columns for itself
        assert "add" not in capsys.readouterr().err


FORMS = ["semicolons.csv", "utf16.csv", "bom.csv", "windows.csv", "t.zip", "t.xlsx"]


@pytest.mark.parametrize("path", FORMS)
def test_titles_are_skipped_in_every_form(frame, capsys, path):
    write_table(frame, path, titles=3)
    found = summarize(
        path, label="y", prob="p", classes=["no", "yes"], csv={"skip_rows": 3}
    )
    assert found == summarize(frame, label="y", prob="p", classes=["no", "yes"])


@pytest.mark.slow
def test_blocks_begin_below_the_titles(frame):
    from sklearn_calib._files.tables import iter_table_blocks

    write_table(frame, "t.csv", titles=3)
    for size in (1, 7, 50, 10_000):
        pick = ["y", "p"]
        blocks = [
            *iter_table_blocks(
                "t.csv", lambda _, names=pick: names, skip_rows=3, size=size
            )
        ]
        found = pd.concat([block.columns for block in blocks])
        assert found["p"].tolist() == frame["p"].tolist()
        assert [block.first_row for block in blocks][:1] == [0] and len(found) == N


@pytest.mark.parametrize("path", ["t.csv", "semicolons.csv", "utf16.csv", "t.xlsx"])
@pytest.mark.parametrize("titles", [1, 3])
def test_the_error_says_how_many_rows_to_skip(frame, capsys, path, titles):
    write_table(frame, path, titles=titles)
    for command in ("audit", "fit", "compare", "monitor", "estimate-mean"):
        assert main([command, path, *COMMANDS[command]]) == 2
        said = capsys.readouterr().err
        assert f"leave out the rows above them with --skip-rows {titles}." in said, (
            command
        )
    hint = r".*csv=\{'skip_rows': " + str(titles) + r"\}"
    with raises_invalid_input(ValueError, hint=hint):
        summarize(path, label="y", prob="p")
    if titles == 3:
        assert main(["audit", path, *COMMANDS["audit"], "--skip-rows", "1"]) == 2
        assert "--skip-rows 3." in capsys.readouterr().err


def test_a_misspelt_name_below_a_title(frame, capsys):
    write_table(frame.rename(columns={"y": "why"}), "t.csv", titles=1)
    text = Path("t.csv").read_text(encoding="utf-8").partition("\n")[2]
    Path("t.csv").write_text("Title\n" + text, encoding="utf-8")
    assert main(["audit", "t.csv", *COMMANDS["audit"]]) == 2
    assert (
        "or leave out lines above the names with --skip-rows" in capsys.readouterr().err
    )


@pytest.mark.parametrize("path", ["t.csv", "t.xlsx"])
def test_more_rows_skipped_than_there_are(frame, capsys, path):
    write_table(frame, path)
    for number in (N + 1, N + 2, 10**9):
        assert (
            main(["audit", path, *COMMANDS["audit"], "--skip-rows", str(number)]) == 2
        )
        said = capsys.readouterr().err
        assert f"expected more than {number} rows in {path}, got at most" in said


def test_objects_have_no_titles(frame, capsys):
    frame.to_json("t.jsonl", orient="records", lines=True)
    assert main(["audit", "t.jsonl", *COMMANDS["audit"], "--skip-rows", "2"]) == 2
    assert (
        "expected a csv file or a workbook for --skip-rows, got t.jsonl"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("number", [-1, 1.5, "2", True])
def test_what_is_no_number_of_rows(frame, number):
    write_table(frame, "t.csv")
    with raises_invalid_input(ValueError, expected="a whole number skip_rows >= 0"):
        summarize("t.csv", label="y", prob="p", csv={"skip_rows": number})


@pytest.mark.slow
@pytest.mark.parametrize("path", ["t.csv", "t.xlsx"])
def test_apply_leaves_the_titles_out(frame, capsys, path):
    write_table(frame, path)
    assert main(["fit", path, *COMMANDS["fit"]]) == 0
    new = ["--prob", "p", "--out"]
    assert main(["apply", "new.json", path, *new, "expected.csv"]) == 0
    write_table(frame, path, titles=3)
    assert main(["apply", "new.json", path, *new, "found.csv", "--skip-rows", "3"]) == 0
    assert Path("found.csv").read_text(encoding="utf-8") == Path(
        "expected.csv"
    ).read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_audit_prints_skips_the_same_rows(frame, capsys):
    write_table(pd.concat([frame] * 3), "t.csv", titles=2)
    words = ["--resamples", "2", "--out", "none", "--skip-rows", "2"]
    assert main(["audit", "t.csv", *ROWS, *words]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    if "sklearn-calib fit" in printed:
        assert "--skip-rows 2 --out map.json" in printed


def test_every_command_that_reads_tables_has_the_option():
    for command in COMMANDS | {"apply": []}:
        assert "--skip-rows" in build_parser()._get_action_by_option(command), command


# -- records of parquet and Arrow ---------------------------------------------------------------


def write_records(frame, path):
    p, q = frame["p"].to_numpy(), frame["q"].to_numpy()
    scores = pa.StructArray.from_arrays([1 - p, p], names=["no", "yes"])
    deep = pa.StructArray.from_arrays(
        [pa.StructArray.from_arrays([q], names=["b"])], names=["a"]
    )
    flags = pa.array([{"s": text} for text in frame["y"]])
    table = pa.table(
        {"y": frame["y"], "flags": flags, "st": scores, "deep": deep, "p": p, "q": q}
    )
    if path.endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=30)
    else:
        feather.write_feather(table, path)


@pytest.mark.parametrize("path", ["t.parquet", "t.arrow"])
@pytest.mark.parametrize("command", TIMED)
def test_every_command_reads_fields_of_records(frame, capsys, command, path):
    write_records(frame, path)
    if command in ("audit-multilabel", "estimate-mean", "sample-size"):
        names = {
            "estimate-mean": ("--score", "q", "deep.a.b"),
            "sample-size": ("--prob", "p", "st.yes"),
        }
        if command == "audit-multilabel":
            return
        option, plain, nested = names[command]
        given = ["--label", "p"] if command == "estimate-mean" else []
        shown = []
        for name in (plain, nested):
            assert (
                main([command, path, *given, *COMMANDS[command][2:], option, name]) == 0
            )
            shown.append(
                capsys.readouterr().out.replace("st.yes", "p").replace("deep.a.b", "q")
            )
        assert shown[0] == shown[1]
        return
    expected = said_by(command, path, capsys)
    nested = {"y": "flags.s", "p": "st.yes", "q": "deep.a.b"}
    words = [nested.get(word, word) for word in COMMANDS[command]]
    assert main([command, path, *words]) in (0, 3)
    found = capsys.readouterr().out
    assert _numbers(found) == _numbers(expected)


def _numbers(text):
    return [
        word
        for word in text.split()
        if word.strip("%.,;()+-").replace(".", "").isdigit()
    ]


@pytest.mark.parametrize("path", ["t.parquet", "t.arrow"])
def test_summaries_read_fields_of_records(frame, path):
    write_records(frame, path)
    two = {"classes": ["no", "yes"]}
    found = summarize(path, label="flags.s", prob=["st.no", "st.yes"], **two)
    assert found == summarize(
        frame.assign(n=1 - frame.p), label="y", prob=["n", "p"], **two
    )


def test_a_record_that_is_missing_is_a_missing_value(frame, capsys):
    scores = pa.array(
        [None if i == 5 else {"yes": p} for i, p in enumerate(frame["p"])]
    )
    parquet.write_table(pa.table({"y": frame["y"], "st": scores}), "t.parquet")
    words = ["--label", "y", "--prob", "st.yes", *COMMANDS["audit"][4:]]
    assert main(["audit", "t.parquet", *words]) == 2
    assert "nan in row 5 of column 'st.yes'" in capsys.readouterr().err
    assert main(["audit", "t.parquet", *words, "--missing", "drop"]) == 0
    assert f"{N - 1} rows" in capsys.readouterr().out


def test_a_record_is_no_column(frame, capsys):
    write_records(frame, "t.parquet")
    assert main(["audit", "t.parquet", "--label", "y", "--prob", "st"]) == 2
    assert "Do you mean 'st.no'?" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["t.parquet", "t.arrow"])
def test_apply_keeps_the_records(frame, capsys, path):
    write_records(frame, path)
    assert main(["fit", path, *COMMANDS["fit"]]) == 0
    assert (
        main(["apply", "new.json", path, "--prob", "st.yes", "--out", "o.parquet"]) == 0
    )
    assert main(["apply", "new.json", path, "--prob", "p", "--out", "p.parquet"]) == 0
    found, expected = parquet.read_table("o.parquet"), parquet.read_table("p.parquet")
    assert (
        found["st"] == expected["st"]
        and found.column_names[:-1] == expected.column_names[:-1]
    )
    assert found.columns[-1] == expected.columns[-1]


# -- archives, folders ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stray", ["__MACOSX/._t.csv", "__MACOSX/d/._t.csv", ".DS_Store", "d/"]
)
def test_what_a_system_adds_to_an_archive(frame, capsys, stray):
    text = frame.to_csv(index=False)
    for names in ([stray, "d/t.csv"], ["t.csv", stray]):
        with zipfile.ZipFile("t.zip", "w") as archive:
            for name in names:
                archive.writestr(
                    name, text if name.endswith("t.csv") and name != stray else "junk"
                )
        assert "80 rows" in said_by("audit", "t.zip", capsys)


def test_an_archive_of_two_tables(frame, capsys):
    with zipfile.ZipFile("t.zip", "w") as archive:
        archive.writestr("a.csv", "junk")
        archive.writestr("b.csv", "junk")
        archive.writestr("__MACOSX/._a.csv", "junk")
    assert main(["audit", "t.zip", *COMMANDS["audit"]]) == 2
    assert "expected one file inside 't.zip', got 2" in capsys.readouterr().err


def in_folders(frame, kind):
    """Write some hundred rows below two folders; return all of them."""
    frame = pd.concat([frame] * 6, ignore_index=True)
    groups = np.arange(len(frame)) % 2
    for group in (0, 1):
        folder = Path("days") / f"g={group}"
        folder.mkdir(parents=True)
        part = frame[groups == group].reset_index(drop=True)
        if kind == "parquet":
            part.to_parquet(folder / "x.parquet")
        elif kind == "jsonl":
            part.to_json(folder / "x.jsonl", orient="records", lines=True)
        else:
            write_table(
                part, str(folder / f"{'semicolons' * (kind == 'semicolons')}x.csv")
            )
    return frame.assign(g=groups)


KINDS = ["csv", "semicolons", "parquet", "jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_groups_that_folders_name(frame, capsys, kind):
    frame = in_folders(frame, kind)
    words = [*COMMANDS["audit"], "--by", "g"]
    assert main(["audit", "days", *words, "--json", "found.json"]) == 0
    frame[frame.g == 0].to_csv("t0.csv", index=False)
    frame[frame.g == 1].to_csv("t1.csv", index=False)
    assert main(["audit", "t0.csv", "t1.csv", *words, "--json", "expected.json"]) == 0
    found = json.loads(Path("found.json").read_bytes())
    expected = json.loads(Path("expected.json").read_bytes())
    assert found["models"][0]["groups"] == expected["models"][0]["groups"]
    assert "g = 1" in capsys.readouterr().out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [[], ["--scale", "0,1"]])
def test_one_folder_names_a_group_too(frame, capsys, kind, more):
    in_folders(frame, kind)
    shutil.rmtree("days/g=1")
    assert main(["audit", "days", *COMMANDS["audit"], "--by", "g", *more]) == 0
    assert "240 rows" in capsys.readouterr().out
    assert main(["audit", "days", *COMMANDS["audit"], "--by", "h", *more]) == 2
    assert "expected a column 'h'" in capsys.readouterr().err


def test_folders_named_by_numbers_and_by_text(frame, capsys):
    in_folders(frame, "semicolons")
    Path("days/g=1").rename("days/g=a")
    assert main(["audit", "days", *COMMANDS["audit"], "--by", "g"]) == 0
    out = capsys.readouterr().out
    assert "g = 0" in out and "g = a" in out


# -- log-odds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "xlsx"])
def test_audit_of_log_odds(frame, capsys, kind):
    frame["p"] = frame["p"].clip(0.01, 0.99)
    frame["z"] = np.log(frame.p / (1 - frame.p))
    path = f"t.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        write_table(frame, path)
    losses = []
    for words in (["--prob", "p"], ["--prob", "z", "--scale", "logits"]):
        given = [path, "--label", "y", *words, *COMMANDS["audit"][4:]]
        assert main(["audit", *given, "--json", "r.json"]) == 0
        rows = json.loads(Path("r.json").read_text(encoding="utf-8"))["models"][0][
            "measures"
        ]
        losses.append({row["measure"]: row["value"] for row in rows})
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)
    capsys.readouterr()
    assert main(["audit", *given, "--tolerance", "any"]) == 2
    assert (
        "--tolerance and --scale logits cannot be combined" in capsys.readouterr().err
    )
    assert main(["audit", *given, "--save", "s.parquet"]) == 2
    assert "--scale logits and --save cannot be combined" in capsys.readouterr().err


def test_audit_of_the_logits_of_three_classes(frame, capsys):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(N, 3))
    table = pd.DataFrame(z, columns=[*"abc"])
    table["y"] = np.array([*"abc"])[(z + rng.gumbel(size=z.shape)).argmax(axis=1)]
    table.to_csv("t.csv", index=False)
    words = ["--label", "y", "--prob", "a,b,c", "--scale", "logits"]
    words += COMMANDS["audit"][len(ROWS) :]
    assert main(["audit", "t.csv", *words, "--json", "r.json"]) == 0
    rows = json.loads(Path("r.json").read_text(encoding="utf-8"))["models"][0][
        "measures"
    ]
    proba = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    own = proba[np.arange(N), table["y"].map({"a": 0, "b": 1, "c": 2})]
    (loss,) = (row["value"] for row in rows if row["measure"] == "log_loss")
    assert loss == pytest.approx(-np.log(own).mean())


# -- two names of labels --------------------------------------------------------------------------

PAIR = ["--prob", "p", "--prob", "q", "--positive", "yes", "--resamples", "20"]


def compared(capsys, *words):
    code = main(["compare", *words])
    out, err = capsys.readouterr()
    return code, " ".join(out.split()), err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("match", [[], ["--id", "i"]])
def test_labels_of_two_names_in_every_format(frame, capsys, kind, match):
    frame["i"] = np.arange(N)
    other = frame.rename(columns={"y": "outcome"})[["outcome", "q", "i"]]
    first, second = f"first.{kind}", f"second.{kind}"
    same = ["--label", "y", "--label", "outcome"]

    def write(table, path):
        if kind == "jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            getattr(table, f"to_{kind}")(path, index=False)

    write(frame, first)
    write(other.drop(columns="outcome"), second)
    expected = compared(capsys, first, second, "--label", "y", *PAIR, *match)
    assert expected[0] == 0, expected
    write(other, second)
    assert compared(capsys, first, second, *same, *PAIR, *match) == expected
    write(other.assign(outcome=other.outcome[::-1].to_numpy()), second)
    code, _, said = compared(capsys, first, second, *same, *PAIR, *match)
    assert code == 2 and "expected the same labels in both files" in said
    same[-1] = "outcom"
    code, _, said = compared(capsys, first, second, *same, *PAIR, *match)
    assert code == 2 and "Do you mean 'outcome'?" in said


def test_labels_of_two_names(frame, capsys):
    write_table(frame, "t.csv")
    write_table(
        frame.rename(columns={"y": "z"}).assign(z=frame.y[::-1].to_numpy()), "u.csv"
    )
    code, _, said = compared(
        capsys, "t.csv", "u.csv", "--label", "y", "--label", "z", *PAIR
    )
    assert code == 2 and "expected the same labels in both files, got" in said


def test_names_of_labels_that_are_too_many(frame, capsys):
    write_table(frame, "t.csv")
    write_table(frame, "u.csv")
    for files, names in ((["t.csv"], "yp"), (["t.csv", "u.csv"], "ypq")):
        labels = [word for name in names for word in ("--label", name)]
        assert compared(capsys, *files, *labels, *PAIR)[0] == 2


# -- days of a monitor ----------------------------------------------------------------------------


def watch(*files, more=()):
    return main(["monitor", *files, *ROWS, "--state", "state.json", *more])


def state():
    return json.loads(Path("state.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", ["e.csv", "e.jsonl", "e.parquet", "e.xlsx", "e.csv.gz"]
)
def test_a_day_without_rows(frame, capsys, path):
    write_table(frame, "t.csv")
    none = frame[:0]
    if path == "e.jsonl":
        Path(path).write_text("", encoding="utf-8")
    elif path == "e.parquet":
        none.to_parquet(path)
    elif path == "e.xlsx":
        write_table(none, path)
    else:
        none.to_csv(path, index=False)
    assert watch(path) == 0 and not Path("state.json").exists()
    out, err = capsys.readouterr()
    assert (
        not out
        and err == f"sklearn-calib: {path} has no rows: there is nothing to add\n"
    )
    assert watch("t.csv") == 0
    before = Path("state.json").read_bytes()
    assert watch(path) == 0 and Path("state.json").read_bytes() == before
    capsys.readouterr()
    assert watch(path, more=["--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_day_without_rows_among_others(frame, capsys):
    write_table(frame, "a.csv")
    write_table(frame[:0], "e.csv")
    assert watch("a.csv", "e.csv") == 0
    out, err = capsys.readouterr()
    assert "80 rows" in out and "e.csv has no rows" in err


def test_a_day_without_rows_and_of_other_columns(frame, capsys):
    write_table(frame[:0].rename(columns={"p": "prob"}), "e.csv")
    assert watch("e.csv") == 2
    assert "expected a column 'p'" in capsys.readouterr().err


def test_a_file_that_was_read_before(frame, capsys):
    write_table(frame, "a.csv")
    write_table(frame[::-1], "b.csv")
    assert watch("a.csv") == 0 and watch("b.csv") == 0
    before = Path("state.json").read_bytes()
    shutil.copy("a.csv", "copy.csv")
    frame.to_csv("packed.csv.gz", index=False)
    capsys.readouterr()
    for path in ("a.csv", "copy.csv", "packed.csv.gz"):
        assert watch(path) == 2
        said = capsys.readouterr().err
        assert f"got {path}, which has the same content as one of them" in said
        assert "--allow repeated" in said and Path("state.json").read_bytes() == before
    assert watch("copy.csv", more=["--allow", "repeated"]) == 0
    assert state()["n_samples"] == 3 * N


def test_two_files_that_hold_the_same(frame, capsys):
    write_table(frame, "a.csv")
    shutil.copy("a.csv", "copy.csv")
    assert main(["monitor", "a.csv", "copy.csv", *ROWS]) == 2
    assert "got copy.csv, which has the same content" in capsys.readouterr().err
    assert main(["monitor", "a.csv", "copy.csv", *ROWS, "--allow", "repeated"]) == 0


def test_times_tell_rows_that_come_again(frame, capsys):
    """No checksum is kept: a file with the same rows and others is rejected, too."""
    write_table(frame.assign(t=np.arange(N)), "a.csv")
    assert watch("a.csv", more=["--time", "t"]) == 0
    assert "files" not in state()
    assert watch("a.csv", more=["--time", "t"]) == 2


@pytest.mark.slow
def test_the_state_remembers_a_bounded_number_of_files(frame, capsys, monkeypatch):
    monkeypatch.setattr(_monitor, "_MAX_STORED_CHECKSUMS", 3)
    for number in range(5):
        write_table(frame[number:], "a.csv")
        assert watch("a.csv") == 0
    checksums = state()["files"]
    assert len(set(checksums)) == 3 and all(len(text) == 16 for text in checksums)
    assert watch("a.csv") == 2
    assert (
        CalibrationMonitor.from_state_dict(state()).n_samples_ == state()["n_samples"]
    )


def test_an_error_in_a_row_leaves_no_checksum(frame, capsys):
    write_table(frame, "a.csv")
    write_table(frame[::-1].assign(p=2.0), "b.csv")
    assert watch("a.csv") == 0
    before = Path("state.json").read_bytes()
    assert watch("b.csv") == 2 and Path("state.json").read_bytes() == before


# -- numbers that name things ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "arrow"])
def test_long_numbers_of_clusters_beside_a_missing_one(frame, capsys, kind):
    """As floats, 20 clusters became a handful."""
    ids = pd.Series(10**17 + np.arange(N) // 4, dtype="Int64")
    ids[7] = pd.NA
    frame["g"] = ids
    path = f"t.{kind}"
    if kind == "arrow":
        feather.write_feather(frame, path)
    elif kind == "jsonl":
        lines = [row.dropna().to_dict() for _, row in frame.iterrows()]
        Path(path).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    else:
        getattr(frame, f"to_{kind}")(path, index=False)
    assert (
        main(["audit", path, *COMMANDS["audit"], "--cluster", "g", "--missing", "drop"])
        == 0
    )
    assert f"{N - 1} rows in 20 clusters" in capsys.readouterr().out


# -- words ----------------------------------------------------------------------------------------

WRONG = [
    ["--positive", "maybe"],
    ["--classes", "a,b"],
    ["--classes", "yes,yes"],
    ["--prob", "y"],
    ["--prob", "p", "--prob", "q", "--classes", "no"],
    ["--weight", "y"],
    ["--prob", "q2"],
]


@pytest.mark.parametrize("command", ["audit", "fit", "compare", "monitor"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("words", WRONG)
def test_no_message_names_a_type_of_numpy(frame, capsys, command, kind, words):
    frame["q2"] = 1 - frame["p"]  # falls with the second class
    getattr(frame, f"to_{kind}")(f"t.{kind}", index=False)
    for more in ([], ["--missing", "drop"]):
        with suppress(SystemExit):  # monitor has no weights
            main([command, f"t.{kind}", *COMMANDS[command], *words, *more])
        out, err = capsys.readouterr()
        assert "np.str_" not in out + err and "np.int" not in out + err and (out or err)
