"""Several classes, logits and groups at any size: what is printed and written is the same."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._cli import _drawn, _fit, _large, main
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import from_json
from sklearn_calib.recalibrators import TemperatureScaling
from sklearn_calib.summary import CalibrationSummary

COLUMNS = ["--label", "y", "--prob", "a,b,c"]


@pytest.fixture
def frame(tmp_path, monkeypatch):
    """Rows of three classes with text as labels, in t.csv, shuffled in u.parquet, and in parts."""
    monkeypatch.chdir(tmp_path)
    proba, y = make_overconfident(3, 600)
    frame = pd.DataFrame(proba, columns=[*"abc"]).assign(y=np.array(["x", "y", "z"])[y])
    frame["w"] = 0.5 + np.arange(600) % 3
    frame["g"] = [f"n{number // 4}" for number in range(600)]
    frame["u"], frame["v"] = np.log(proba[:, 0] / proba[:, 1]), np.arange(600) % 5
    frame.to_csv("t.csv", index=False)
    mixed = frame.sample(frac=1, random_state=0)
    mixed.to_parquet("u.parquet")
    for number, rows in enumerate(np.array_split(np.arange(600), 3)):
        mixed.iloc[rows].to_parquet(f"part{number}.parquet")
    return frame


@pytest.fixture
def large(monkeypatch):
    """What makes files large: they are never read as a whole then."""

    def begin():
        def never(*arguments):
            raise AssertionError("all rows were read")

        monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 100)
        monkeypatch.setattr(_fit, "load_rows", never)
        monkeypatch.setattr("sklearn_calib._cli._audit.load_rows", never)

    return begin


def fit(files, *arguments, out="m.json", columns=COLUMNS, method="temperature"):
    words = [
        "fit",
        *files,
        *columns,
        "--recalibrator",
        method,
        "--out",
        out,
        *arguments,
    ]
    return main(words)


WAYS = (["u.parquet"], ["t.csv"], ["part2.parquet", "part0.parquet", "part1.parquet"])


@pytest.mark.parametrize(
    "more",
    [
        ["--weight", "w"],
        ["--cluster", "g"],
        pytest.param(["--tolerance", "0.1"], marks=pytest.mark.slow),
        pytest.param(
            ["--scale", "logits", "--prob", "u", "--allow", "order"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_one_map_at_every_size_in_any_order(frame, capsys, large, more):
    columns = COLUMNS
    if "logits" in more:
        frame = frame[frame["y"] != "z"].drop(columns=["a", "b", "c"])
        for name, rows in (
            ("t.csv", frame),
            ("u.parquet", frame.sample(frac=1, random_state=1)),
        ):
            rows.to_csv(name, index=False) if name == "t.csv" else rows.to_parquet(name)
        columns = [*COLUMNS[:2], "--positive", "y"]
    assert fit(["t.csv"], *more, columns=columns, out="small.json") == 0
    small = capsys.readouterr().out.replace("small.json", "m.json")
    large()
    for files in WAYS if "logits" not in more else WAYS[:2]:
        assert fit(files, *more, columns=columns) == 0
        assert Path("m.json").read_text(encoding="utf-8") == Path(
            "small.json"
        ).read_text(encoding="utf-8")
        assert capsys.readouterr().out == small
    if more[0] == "--weight":
        assert "600 rows, classes x, y, z" in small and "fitted to" not in small
        given = frame[["a", "b", "c"]].to_numpy(), frame["y"]
        expected = TemperatureScaling().fit(*given, sample_weight=frame["w"])
        found = from_json("m.json").predict_proba(given[0])
        assert np.abs(found - expected.predict_proba(given[0])).max() < 1e-9
        assert fit(["u.parquet"], out="plain.json") == 0
        assert Path("plain.json").read_text(encoding="utf-8") != Path(
            "m.json"
        ).read_text(encoding="utf-8")


def test_a_sample_is_said_and_the_same_in_any_order(frame, capsys, large, monkeypatch):
    monkeypatch.setattr(
        "sklearn_calib.summary._draw_options.get_max_sample_rows", lambda k: 150
    )
    said = []
    assert fit(["t.csv"], out="small.json") == 0
    said.append(capsys.readouterr().out.replace("small.json", "m.json"))
    large()
    for files in WAYS:
        assert fit(files) == 0
        said.append(capsys.readouterr().out)
        assert Path("m.json").read_text(encoding="utf-8") == Path(
            "small.json"
        ).read_text(encoding="utf-8")
    assert set(said) == {said[0]}
    words = " ".join(said[0].split())
    assert (
        "of these 600 rows, which their own digits draw: the same ones in any order"
        in words
    )
    loss = CalibrationSummary(classes=["x", "y", "z"]).update(
        frame["y"], frame[["a", "b", "c"]]
    )
    assert f"as given {loss.measure('log_loss'):.4f}" in words  # of all rows


def test_groups_are_few_or_missing(frame, capsys, large):
    frame.assign(g=np.arange(600) % 3).to_parquet("u.parquet")
    frame.assign(g=frame["g"].where(frame.index != 7)).to_parquet("t.parquet")
    large()
    assert fit(["u.parquet"], "--cluster", "g") == 2
    assert (
        "expected at least 5 groups, one for each fold, got 3"
        in capsys.readouterr().err
    )
    assert fit(["t.parquet"], "--cluster", "g") == 2
    said = capsys.readouterr().err
    assert (
        "expected a group in every row, got nan in row 7 of column 'g' of t.parquet"
        in said
    )
    assert fit(["t.parquet"], "--cluster", "g", "--missing", "drop") == 0
    assert "599 rows" in capsys.readouterr().out


def test_rows_that_are_wrong_are_named(frame, capsys, large):
    frame.assign(b=frame["b"].where(frame.index != 411, 3.0)).to_parquet("t.parquet")
    frame.rename(columns={"a": "b", "b": "c", "c": "a"}).to_parquet("turned.parquet")
    large()
    assert fit(["u.parquet", "t.parquet"]) == 2
    assert (
        "t.parquet, row group 0: expected probabilities in [0, 1], got 3 in row 411"
        in (capsys.readouterr().err)
    )
    assert fit(["turned.parquet"]) == 2
    assert "Add --classes z,x,y, or --allow order" in capsys.readouterr().err
    assert fit(["turned.parquet"], "--allow", "order", "--allow", "no-gain") == 0
    assert fit(["u.parquet"], columns=["--label", "y", "--prob", "a,b"]) == 2
    assert (
        "got 3. Name one column of probabilities for each class"
        in capsys.readouterr().err
    )


def audit(files, *arguments):
    words = [
        "audit",
        *files,
        *COLUMNS,
        "--resamples",
        "2",
        "--out",
        "none",
        "--json",
        "r.json",
    ]
    assert main([*words, *arguments]) == 0
    content = json.loads(Path("r.json").read_text(encoding="utf-8"))
    for key in ("source", "created"):
        content.pop(key, None)
    return content


@pytest.mark.slow
def test_one_report_at_every_size(frame, large):
    """Losses, accuracy, what recalibration gains: of the same rows; from a stream too."""
    small = audit(["t.csv"], "--no-advice")["models"][0]
    large()
    for files in (WAYS[0], WAYS[2]):
        found = audit(files, "--no-advice")["models"][0]
        for one, two in zip(small["measures"], found["measures"], strict=True):
            assert one["measure"] == two["measure"]
            assert one["value"] == pytest.approx(two["value"], abs=1e-12)
        assert small["accuracy"] == pytest.approx(found["accuracy"], abs=1e-12)
        one, two = small["decomposition"], found["decomposition"]
        assert one["calibration"] == pytest.approx(two["calibration"], abs=1e-9)


@pytest.mark.slow
def test_one_advice_at_every_size(frame, large, monkeypatch, capsys):
    small = audit(["t.csv"])["models"][0]["advice"]
    large()
    for files in WAYS:
        found = audit(files)["models"][0]["advice"]
        assert found["best"] == small["best"] and found["n_rows"] == 600
        for one, two in zip(small["rows"], found["rows"], strict=True):
            assert one["loss"] == pytest.approx(two["loss"], abs=1e-9)
    audit(WAYS[0], "--save", "s.parquet", "--no-advice")
    capsys.readouterr()
    assert main(["audit", "s.parquet", "--out", "none", "--resamples", "2"]) == 0
    assert "summaries of several classes hold no rows" in capsys.readouterr().out
    assert main(["fit", "s.parquet", "--out", "m.json"]) == 2
    assert (
        "got a summary of 3 classes in s.parquet. Fit to the rows themselves"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_the_standard_input_is_read_like_a_file(frame, capsys, large, monkeypatch):
    assert fit(["t.csv"], out="small.json") == 0
    large()
    capsys.readouterr()
    content = Path("t.csv").read_bytes()
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
    )
    assert fit(["-"]) == 0
    assert Path("m.json").read_text(encoding="utf-8") == Path("small.json").read_text(
        encoding="utf-8"
    )
    cut = content[: content.rindex(b"0.")] + b"7"
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(cut), encoding="utf-8")
    )
    assert fit(["-"]) == 2
    said = capsys.readouterr().err
    assert (
        "The last row of standard input, 599, has 7 of 8 cells. The file is cut off"
        in said
    )
    assert "standard input" in said and "/tmp" not in said


@pytest.mark.slow
def test_features_of_a_sample_do_not_depend_on_the_order(frame, large, monkeypatch):
    monkeypatch.setattr(_drawn, "MAX_FEATURE_ROWS", 300)
    large()
    found = [audit(files, "--no-advice", "--features", "v,g") for files in WAYS]
    parts = [content["models"][0]["features"] for content in found]
    assert 300 <= parts[0]["n_rows"] < 600
    assert parts[0] == parts[2]
    assert parts[1]["n_rows"] == parts[0]["n_rows"]  # of csv numbers may differ in kind


def test_remarks_and_refusals_are_those_of_the_command(frame, capsys, large):
    """They name options, and no function of the library, however the rows are read."""
    rounded = frame.round({"a": 2, "b": 2, "c": 2}).assign(zero=0)
    rounded.assign(b=rounded["b"].where(frame.index != 7)).to_parquet("t.parquet")
    for _ in range(2):
        assert fit(["t.parquet"], "--missing", "drop", "--tolerance", "0.02") == 0
        said = capsys.readouterr().err
        assert said.startswith("sklearn-calib: left out, with missing values: ")
        assert "row 7 of t.parquet" in said
        assert fit(["t.parquet"], "--missing", "drop") == 0
        assert (
            "sklearn-calib: expected rows that sum to 1, got" in capsys.readouterr().err
        )
        assert fit(["t.parquet"], "--missing", "drop", "--weight", "zero") == 2
        assert "expected rows of positive weight, got none" in capsys.readouterr().err
        large()


def test_remarks_on_small_groups_name_options(frame, capsys, monkeypatch):
    two = frame.assign(p=frame["a"] / (frame["a"] + frame["b"]))
    two[two["y"] != "z"].head(40).to_parquet("t.parquet")
    said = []
    for at_once in (2**23, 0):
        monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", at_once)
        options = [
            "--label",
            "y",
            "--prob",
            "p",
            "--positive",
            "x",
            "--by",
            "v",
            "--out",
            "none",
        ]
        assert (
            main(["audit", "t.parquet", *options, "--no-advice", "--resamples", "2"])
            == 0
        )
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert said[0].startswith(
        "sklearn-calib: expected a group of at least 50 rows, got"
    )
    assert "name a column of larger groups with --by" in said[0]


def test_no_rows_no_positive_class_and_classes_as_the_labels_are(frame, capsys, large):
    numbers = frame.assign(y=frame["y"].map({"x": 0, "y": 1, "z": 2}))
    numbers[numbers["y"] < 2].to_csv("t.csv", index=False)
    Path("none.csv").write_text(f"a,b,c,y,{'z' * 100}\n", encoding="utf-8")
    audit = [
        "audit",
        "t.csv",
        *COLUMNS,
        "--classes",
        "0,1,2",
        "--positive",
        "1",
        "--out",
        "none",
    ]
    for _ in range(2):
        assert fit(["t.csv"], "--classes", "0,1,2", "--allow", "no-gain") == 0
        assert (
            json.loads(Path("m.json").read_text(encoding="utf-8"))["classes_type"]
            == "int"
        )
        capsys.readouterr()
        assert fit(["none.csv"]) == 2
        assert "expected rows in none.csv, got none" in capsys.readouterr().err
        assert main(audit) == 2
        assert (
            "--positive applies to two classes, but --prob names 3 columns"
            in capsys.readouterr().err
        )
        large()
