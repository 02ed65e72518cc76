"""``audit`` of several files, saved summaries and groups: the report of all rows, nothing lost."""

import json
import os
import re

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from sklearn_calib._cli import main
from sklearn_calib.groups import group_calibration
from sklearn_calib.metrics import log_loss, smooth_calibration_error
from sklearn_calib.summary import CalibrationSummary

AS_USUAL = ["--label", "label", "--prob", "p", "--positive", "yes"]


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """A table in one file and in four; no pictures."""
    monkeypatch.setattr("sklearn_calib.report.CalibrationReport.to_html", page)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(400).round(4)
    label = np.where(rng.random(400) < p**1.5, "yes", "no")
    shop = rng.choice(["north", "south"], 400)
    rows = pd.DataFrame(
        {"p": p, "label": label, "w": rng.integers(0, 3, 400), "shop": shop}
    )
    rows.to_csv("t.csv", index=False)
    for day in range(4):
        (tmp_path / f"day={day}").mkdir()
        rows[day::4].to_parquet(f"day={day}/a.parquet")
    return rows


def page(report, path, title):
    with open(path, "w", encoding="utf-8") as file:
        file.write(title)
    return path


def run(*arguments):
    return main(["audit", "--resamples", "2", "--no-advice", *arguments])


def values(out):
    """The values of the table of measures, and the losses of the advice."""
    found = dict(re.findall(r"│ (\w+) +│ ([\d.]+) │ +[\d.]+ to ", out))
    return found, re.findall(r"│ (identity|platt) +│ +\*? ?([\d.]+) ", out)


@pytest.mark.slow
def test_all_ways_to_name_the_rows_give_one_report(frame, capsys, monkeypatch):
    rows = frame["label"], frame["p"]
    measures = {
        "log_loss": log_loss,
        "smooth_calibration_error": smooth_calibration_error,
    }
    expected = {
        name: f"{f(*rows, pos_label='yes'):.4f}" for name, f in measures.items()
    }
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    os.rename("t.csv", "../t.csv")
    many = [f"day={day}/a.parquet" for day in range(4)]
    for files in (["day=*/*.parquet"], ["."], ["../t.csv"]):
        assert run(*files, *AS_USUAL) == 0
        out = capsys.readouterr().out
        assert "400 rows, 2 classes" in out
        found, _ = values(out)
        assert {name: found[name] for name in expected} == expected
    assert main(["audit", *many, *AS_USUAL, "--resamples", "2"]) == 0
    _, advice = values(capsys.readouterr().out)
    assert [name for name, _ in advice] == ["identity", "platt"]
    assert float(advice[1][1]) < float(advice[0][1])


@pytest.mark.slow
def test_saved_summaries_are_merged(frame, capsys, tmp_path):
    assert (
        run("day=*/a.parquet", *AS_USUAL, "--weight", "w", "--save", "all.parquet") == 0
    )
    whole = capsys.readouterr().out
    assert f"summary: {tmp_path / 'all.parquet'}" in whole
    kept = frame[frame["w"] > 0]
    saved = CalibrationSummary.from_parquet("all.parquet")
    classes = {"classes": ["no", "yes"]}
    assert saved == CalibrationSummary(**classes).update(
        kept["label"], kept["p"], kept["w"]
    )
    assert (
        run("day=[01]/a.parquet", *AS_USUAL, "--weight", "w", "--save", "a.parquet")
        == 0
    )
    assert (
        run("day=[23]/a.parquet", *AS_USUAL, "--weight", "w", "--save", "b.parquet")
        == 0
    )
    capsys.readouterr()
    assert run("a.parquet", "b.parquet") == 0
    assert values(capsys.readouterr().out)[0] == values(whole)[0]
    assert run("a.parquet", "day=[23]/a.parquet", *AS_USUAL, "--weight", "w") == 0
    assert values(capsys.readouterr().out)[0] == values(whole)[0]
    assert run("all.parquet") == 0
    assert "Calibration of all.parquet" in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )


def groups_of(capsys, *arguments):
    assert run(*arguments, "--out", "none", "--json", "r.json") == 0
    with open("r.json", encoding="utf-8") as file:
        return json.load(file)["models"][0]["groups"]


@pytest.mark.slow
def test_groups(frame, capsys):
    table = frame.assign(day=np.arange(400) % 4)[["day", "shop"]]
    given = {"depth": 2, "pos_label": "yes"}
    wanted = group_calibration(frame["label"], frame["p"], table, **given).to_dict()
    for by in (["--by", "day,shop"], ["--by", "day", "--by", "shop"]):
        assert groups_of(capsys, "day=*/*.parquet", *AS_USUAL, *by) == wanted
    assert "400 rows in" in capsys.readouterr().out
    for day in range(4):
        assert run(f"day={day}/a.parquet", *AS_USUAL, "--save", f"s{day}.parquet") == 0
        os.remove(f"day={day}/a.parquet")
        os.rename(f"s{day}.parquet", f"day={day}/s.parquet")
    saved = groups_of(capsys, "day=*/s.parquet", "--by", "day")
    alone = group_calibration(frame["label"], frame["p"], table[["day"]], **given)
    assert saved == alone.to_dict()
    assert run("t.csv", "day=0/s.parquet", *AS_USUAL, "--by", "shop") == 2
    assert "expected rows to group, got the summary" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_folder_is_audited_by_groups_that_only_its_folders_name(
    frame, capsys, ending
):
    for shop, rows in frame.groupby("shop"):
        os.makedirs(f"shops/shop={shop}")
        path, rows = f"shops/shop={shop}/x.{ending}", rows[["p", "label"]]
        if ending == "csv":
            rows.to_csv(path, index=False)
        elif ending == "jsonl":
            rows.to_json(path, orient="records", lines=True)
        else:
            rows.to_parquet(path)
    assert run("shops", "--by", "shop", *AS_USUAL) == 0
    out = capsys.readouterr().out
    for shop, rows in frame.groupby("shop"):
        assert re.search(rf"shop = {shop} +│ +{len(rows)} │", out)


@pytest.mark.slow
def test_groups_in_folders_of_csv_files(frame, capsys):
    wanted = groups_of(capsys, "day=*/*.parquet", *AS_USUAL, "--by", "day,shop")
    for day in range(4):
        os.remove(f"day={day}/a.parquet")
        frame[day::4].to_csv(f"day={day}/a.csv", index=False)
    assert groups_of(capsys, "day=*/*.csv", *AS_USUAL, "--by", "day,shop") == wanted


@pytest.mark.slow
def test_the_positive_class_of_many_files(frame, capsys):
    frame = frame.assign(q=1 - frame["p"])
    for day in range(4):
        frame[day::4].to_parquet(f"day={day}/a.parquet")
    briers = set()
    ways = (
        ["p", "--positive", "yes"],
        ["q", "--positive", "no"],
        ["q,p"],
        ["p", "--classes", "no,yes"],
    )
    for arguments in ways:
        assert run("day=*/a.parquet", "--label", "label", "--prob", *arguments) == 0
        briers.add(values(capsys.readouterr().out)[0]["brier_loss"])
    assert len(briers) == 1


def test_rows_of_several_classes_in_several_files(frame, capsys, tmp_path):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 300)
    rows = pd.DataFrame(proba, columns=[*"abc"]).assign(y=rng.integers(0, 3, 300))
    rows[:100].to_csv("one.csv", index=False)
    rows[100:].to_parquet("two.parquet")
    rows.to_csv("both.csv", index=False)
    found = []
    for files in (["one.csv", "two.parquet"], ["both.csv"]):
        assert run(*files, "--label", "y", "--prob", "a,b,c") == 0
        out = capsys.readouterr().out
        assert "300 rows, 3 classes" in out
        found.append(values(out)[0])
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["day=*/*.parquet", *AS_USUAL, "--save", "day=1/a.parquet"],
            "it is the table itself. Choose one with --save",
        ),
        (
            ["day=*/*.parquet", *AS_USUAL, "--out", "day=1/../day=1/a.parquet"],
            "it is the table itself. Choose one with --out",
        ),
        (["s.parquet", "--save", "s.parquet"], "it is the table itself"),
        (
            ["s.parquet", "--save", "nowhere/s.parquet"],
            "its folder does not exist. Choose one with --save",
        ),
        (["s.parquet", "--by", "shop"], "expected rows to group"),
        (["s.parquet", "t.csv", *AS_USUAL, "--by", "shop"], "expected rows to group"),
        (["s.parquet", "t.csv"], "--label and --prob, the columns of t.csv"),
        (
            ["t.csv", "--label", "label"],
            "--label and --prob, the columns of t.csv",
        ),
        (["t.csv", *AS_USUAL, "--by", "town"], "expected a column 'town' in t.csv"),
        (
            ["day=*/*.parquet", *AS_USUAL, "--by", "town"],
            "expected a column 'town' in day=0/a.parquet",
        ),
        (
            ["s.parquet", "--tolerance", "0.1"],
            "expected rows for --tolerance, got summaries. Leave it out",
        ),
        (["t.csv", "-", *AS_USUAL], "The standard input cannot be combined with files"),
        (
            ["-", *AS_USUAL, "--dask", "tcp://here:8786"],
            "got the standard input. Name files",
        ),
        (["absent*", *AS_USUAL], "No file matches 'absent*'"),
        (
            ["day=*/*.parquet", "other.parquet", *AS_USUAL],
            "expected a column 'p' in other.parquet",
        ),
        (
            ["day=*/*.parquet", "wrong.parquet", *AS_USUAL],
            "wrong.parquet, row group 0: expected probabilities in [0, 1], got 7 in row 5",
        ),
        (
            ["day=*/*.parquet", "nulls.parquet", *AS_USUAL],
            "expected a label in every row, got nan in row 5 of column 'label' of nulls.parquet",
        ),
        (
            ["day=*/*.parquet", "half.parquet", *AS_USUAL],
            "expected a readable table, got 'half.parquet'",
        ),
        (["s.parquet", "cut.parquet"], "cut.parquet"),
        (
            ["s.parquet", "numbers.parquet"],
            "expected summaries of the same classes",
        ),
        (
            ["ones.parquet", "ones.csv", *AS_USUAL[:4]],
            "expected labels of at least two classes in column 'label'",
        ),
        (
            ["t.csv", "three.csv", *AS_USUAL],
            "expected labels of two classes in column 'label', got 3",
        ),
        (
            ["t.csv", *AS_USUAL, "--save", "new.parquet", "--dask", "nowhere"],
            "expected the address of a dask scheduler",
        ),
    ],
)
def test_one_sentence(frame, capsys, tmp_path, arguments, message):
    classes = {"classes": ["no", "yes"]}
    CalibrationSummary(**classes).update(frame["label"], frame["p"]).to_parquet(
        "s.parquet"
    )
    CalibrationSummary().update([0, 1], [0.2, 0.5]).to_parquet("numbers.parquet")
    whole = (tmp_path / "s.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "half.parquet").write_bytes(
        (tmp_path / "day=1/a.parquet").read_bytes()[:800]
    )
    frame.rename(columns={"p": "q"}).to_parquet("other.parquet")
    frame.assign(p=frame["p"].where(frame.index != 5, 7)).to_parquet("wrong.parquet")
    frame.assign(label=frame["label"].where(frame.index != 5, None)).to_parquet(
        "nulls.parquet"
    )
    frame.assign(label="no").to_parquet("ones.parquet")
    frame.assign(label="no").to_csv("ones.csv", index=False)
    frame.assign(label="maybe").to_csv("three.csv", index=False)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert message in said, said
    assert said.startswith("sklearn-calib: ")
    assert (
        said.count("\n") == 1
        and "summarize" not in said
        and "find_distinct_labels" not in said
    )
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_a_full_disk_leaves_the_summary_of_yesterday(
    frame, capsys, tmp_path, monkeypatch
):
    (tmp_path / "s.parquet").write_bytes(b"yesterday")

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        assert run("day=*/*.parquet", *AS_USUAL, "--save", "s.parquet") == 2
    assert "No space left on device. Choose one with --save" in capsys.readouterr().err
    assert (tmp_path / "s.parquet").read_bytes() == b"yesterday"
    assert not [*tmp_path.glob(".*")]


@pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning")
def test_workers_of_dask(frame):
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False}
    with (
        LocalCluster(dashboard_address=None, **options) as cluster,
        Client(cluster, set_as_default=False),
    ):
        address = cluster.scheduler_address
        assert (
            run("day=*/*.parquet", *AS_USUAL, "--dask", address, "--save", "s.parquet")
            == 0
        )
    # which a worker in this process leaves behind
    dask.config.config.pop("scheduler", None)
    found = CalibrationSummary.from_parquet("s.parquet")
    assert found == CalibrationSummary(classes=["no", "yes"]).update(
        frame["label"], frame["p"]
    )


def of_labels(labels):
    """The arguments that say a file of rows with these labels."""
    rows = "".join(
        f"{label},{0.001 * (i % 900) + 0.05:.4f}\n" for i, label in enumerate(labels)
    )
    with open("rows.csv", "w", encoding="utf-8") as file:
        file.write("label,p\n" + rows)
    return ["rows.csv", *AS_USUAL[:4]]


@pytest.mark.parametrize(
    ("below", "said"),
    [
        (["0", "1"], "1000 rows, 2 classes"),
        (["1", "1"], "1000 rows, 2 classes"),
        (["0", "2"], "expected labels of two classes in column 'label', got 3"),
        (["no", "yes"], "expected labels of two classes in column 'label', got 4"),
        (["False", "True"], "expected labels of two classes in column 'label', got 4"),
        (["", "1"], "expected a label in every row, got nan in rows 500, 502, 504"),
    ],
)
def test_labels_below_those_that_show_the_classes(
    tmp_path, monkeypatch, capsys, below, said
):
    # the classes are known after some rows; what comes below counts as if all had been
    # read
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    monkeypatch.setattr(
        "sklearn_calib._files.tables._BLOCK_BYTES", len("0,0.0500\n") * 500
    )
    run(*of_labels(["0", "1"] * 250 + below * 250))
    shown = capsys.readouterr()
    assert said in shown.out + shown.err


def test_labels_are_read_once_where_the_first_rows_show_the_classes(
    tmp_path, monkeypatch
):
    from sklearn_calib.summary import find_distinct_labels

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", 100)
    asked = []

    def finding(*files, **given):
        asked.append(given["_enough"])
        return find_distinct_labels(*files, **given)

    monkeypatch.setattr("sklearn_calib.summary.find_distinct_labels", finding)
    run(*of_labels(["0", "1"] * 100))
    assert asked == [2]
    run(*of_labels(["0", "1", "2"] * 100))
    assert asked == [2, 2, None]
