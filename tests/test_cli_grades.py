"""audit --grades: of rows, of summaries, from a file, and rejected."""

import json

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input

from sklearn_calib._cli import main
from sklearn_calib.groups import Grades, grade_calibration
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary

OPTIONS = [
    "--no-advice",
    "--resamples",
    "2",
    "--label",
    "default",
    "--prob",
    "pd",
    "--positive",
    "yes",
]
EDGES = [0.02, 0.05, 0.2]


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(1, 15, 1500), 6)
    frame = pd.DataFrame(
        {"pd": p, "default": np.where(rng.random(1500) < p, "yes", "no"), "n": 1}
    )
    frame.loc[:9, "n"] = 3
    frame.to_csv("loans.csv", index=False)
    names = {"edges": EDGES, "names": ["A", "B", "<b>", "D"]}
    (tmp_path / "grades.json").write_text(json.dumps(names), encoding="utf-8")
    return frame


def audit(*arguments, grades="0.02,0.05,0.2"):
    return main(["audit", *arguments, "--grades", grades])


def graded(file):
    with open(file, encoding="utf-8") as stream:
        return json.load(stream)["models"][0]["grades"]


@pytest.mark.slow
def test_rows_in_all_formats(rows, capsys):
    written = ["--json", "r.json", "--markdown", "r.md", "--out", "r.html"]
    assert audit("loans.csv", *OPTIONS, *written, grades="grades.json") == 0
    grades = Grades(EDGES, ["A", "B", "<b>", "D"])
    direct = grade_calibration(rows["default"], rows["pd"], grades, pos_label="yes")
    assert graded("r.json") == json.loads(json.dumps(direct.to_dict()))
    page, text = open_text("r.html"), open_text("r.md")
    assert "Grades" in capsys.readouterr().out and "Grades" in text
    assert "<td><b></td>" not in page and "&lt;b&gt;" in page


def open_text(file):
    with open(file, encoding="utf-8") as stream:
        return stream.read()


@pytest.mark.slow
def test_weights_are_counts_and_the_positive_class_is_named(rows, capsys):
    assert (
        audit(
            "loans.csv", *OPTIONS, "--weight", "n", "--json", "r.json", "--out", "none"
        )
        == 0
    )
    assert sum(row["n_rows"] for row in graded("r.json")["grades"]) == 1520
    flipped = [
        *OPTIONS,
        "--positive",
        "no",
        "--json",
        "r.json",
        "--out",
        "none",
        "--allow",
        "order",
    ]
    assert audit("loans.csv", *flipped) == 0
    good = (rows["default"] == "no").sum()
    assert sum(row["events"] for row in graded("r.json")["grades"]) == good
    rows.assign(n=0.5).to_csv("half.csv", index=False)
    assert audit("half.csv", *OPTIONS, "--weight", "n", "--out", "none") == 2
    said = "whole numbers >= 0 as --weight, for grades count rows, got 0.5. Leave --grades out, or"
    assert f"{said} --weight." in capsys.readouterr().err


@pytest.mark.slow
def test_summaries(rows):
    more = ["--save", "s.parquet", "--json", "a.json", "--out", "none"]
    assert audit("loans.csv", *OPTIONS, *more) == 0
    assert audit("s.parquet", *OPTIONS[:3], "--json", "b.json", "--out", "none") == 0
    assert audit("loans.csv", *OPTIONS, "--json", "c.json", "--out", "none") == 0
    one, other, third = map(graded, ("a.json", "b.json", "c.json"))
    assert one == other and one["n_unsure"] == 0
    assert [r["events"] for r in one["grades"]] == [
        r["events"] for r in third["grades"]
    ]


@pytest.mark.parametrize(
    ("grades", "said"),
    [
        ("0.05,0.02", "expected grades with edges that increase, between 0 and 1"),
        ("2%", "Write 0.02 for 2%"),
        ("low", "expected edges or a file in --grades, got 'low'"),
        ("grade", "a column of grades is --by COLUMN"),
        ("loans.csv", "expected grades in 'loans.csv', got no JSON"),
        (".", "expected grades in '.'"),
    ],
)
def test_refusals_come_first(rows, capsys, grades, said):
    assert audit("missing.csv", *OPTIONS, grades=grades) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("rows_at_once", [0, 2**23])
def test_several_classes_are_refused_before_the_rows_are_read(
    rows, capsys, monkeypatch, rows_at_once
):
    monkeypatch.setattr(
        "sklearn_calib._cli._large._MAX_WHOLE_TABLE_BYTES", rows_at_once
    )
    with open("three.csv", "w", encoding="utf-8") as file:
        file.write("y,a,b,c\n0,not,a,number\n")
    options = ["--label", "y", "--prob", "a,b,c", "--out", "none"]
    assert audit("three.csv", *options) == 2
    said = "expected the column of one class in --prob, whose probability has --grades, got 3"
    assert said in capsys.readouterr().err


@pytest.mark.slow  # four reports and a page
def test_the_report_in_python_has_the_same_grades(rows, tmp_path):
    """Of rows, counts, several models and summaries; in HTML, JSON and Markdown."""
    y, p, counts = rows["default"], rows["pd"].to_numpy(), rows["n"].to_numpy()
    wanted = grade_calibration(y, p, EDGES, pos_label="yes")
    models = {"a": p, "b": np.sqrt(p)}
    few = {
        "n_resamples": 2,
        "measures": ["brier_loss"],
        "check_columns": False,
        "pos_label": "yes",
    }
    report = calibration_report(y, models, grades=EDGES, **few)
    assert report.grades["a"].to_dict() == wanted.to_dict()
    assert (
        report.grades["b"].to_dict()
        == grade_calibration(y, np.sqrt(p), EDGES, pos_label="yes").to_dict()
    )
    assert not calibration_report(y, p, **few).grades
    named = {"edges": EDGES, "names": ["A", "B", "<b>", "D"]}
    weight = np.where(np.arange(len(y)) < 5, 0, counts)
    few["pos_label"] = "no"
    one = calibration_report(y, 1 - p, sample_weight=weight, grades=named, **few)
    again = grade_calibration(
        y[5:], 1 - p[5:], named, counts=counts[5:], pos_label="no"
    )
    assert one.grades["model"].to_dict() == again.to_dict()
    found = json.loads(one.to_json())["models"][0]["grades"]
    assert found == json.loads(json.dumps(again.to_dict()))
    one.to_html(tmp_path / "r.html")
    page, text = open_text(tmp_path / "r.html"), one.to_markdown()
    assert "Grades" in text and "&lt;b&gt;" in page and "<td><b></td>" not in page
    summary = CalibrationSummary(classes=["no", "yes"]).update(y, p)
    of_cells = calibration_report(summary, grades=Grades(EDGES), n_resamples=2).grades[
        "model"
    ]
    assert [row.events for row in of_cells.rows] == [row.events for row in wanted.rows]
    assert of_cells.n_unsure == 0


def test_grades_that_a_report_cannot_have(rows):
    y, p = rows["default"] == "yes", rows["pd"].to_numpy()
    with raises_invalid_input(ValueError, expected="grades with edges that"):
        calibration_report(y, p, grades=[0.5, 0.2])
    with raises_invalid_input(ValueError, expected="two classes", value="3"):
        calibration_report([0, 1, 2], np.eye(3) * 0.7 + 0.1, grades=EDGES)
    with raises_invalid_input(
        ValueError, expected=".*whole numbers >= 0 as sample_weight", value=r"0\.5"
    ):
        calibration_report(y, p, sample_weight=np.full(len(y), 0.5), grades=EDGES)
