"""Recalibrate or retrain, in reports and on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from error_fields import raises_invalid_input
from scipy.special import expit

from sklearn_calib._cli import _drawn, _large, main
from sklearn_calib.report import calibration_report
from sklearn_calib.summary import CalibrationSummary


def regions(n, seed=0):
    rng = np.random.default_rng(seed)
    z, region = rng.normal(size=n), rng.choice(["north", "<south>"], n)
    y = (rng.random(n) < expit(z + np.where(region == "north", 1.5, -1.5))).astype(int)
    return pd.DataFrame({"y": y, "p": expit(z), "<region>": region})


def test_few_rows_and_summaries():
    frame = regions(40)
    report = calibration_report(
        frame.y, frame.p, features=frame[["<region>"]], n_resamples=5
    )
    assert report.features == {"model": None}
    assert (
        "Too few rows to say whether to recalibrate or to retrain"
        in report.to_markdown()
    )
    assert report.to_dict()["models"][0]["features"] is None
    summary = CalibrationSummary().update(frame.y, frame.p)
    with raises_invalid_input(
        ValueError, expected=".*each row, for features", value="summaries"
    ):
        calibration_report(summary, features=frame[["<region>"]])


@pytest.mark.slow
def test_the_report_says_what_to_do(tmp_path):
    frame = regions(300)
    report = calibration_report(
        frame.y, frame.p, features=frame[["<region>"]], n_resamples=5
    )
    parts = report.features["model"]
    last = report.verdict.sentences[-1]
    assert (last.topic, last.text) == ("action", parts.advice(0.9))
    assert last.numbers["action"] == parts.action == "retrain"
    content = json.loads(report.to_json())["models"][0]["features"]
    assert content["grouping"]["value"] == parts.grouping
    assert parts.advice(0.9) in report.to_markdown().replace("\\", "").replace(
        "&lt;", "<"
    ).replace("&gt;", ">")
    report.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Recalibrate or retrain" in page
    assert "<region>" not in page
    assert "&lt;region&gt;" in page


@pytest.mark.slow
def test_audit_of_a_sample(tmp_path, monkeypatch, capsys):
    """Of a parquet file that is too large to be read at once."""
    monkeypatch.chdir(tmp_path)
    regions(150).rename(columns={"<region>": "region"}).to_parquet("t.parquet")
    monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 0)
    monkeypatch.setattr(_drawn, "MAX_FEATURE_ROWS", 60)
    given = ["--label", "y", "--prob", "p", "--no-advice", "--resamples", "5"]
    assert (
        main(["audit", "t.parquet", *given, "--features", "all", "--json", "a.json"])
        == 0
    )
    found = json.loads(Path("a.json").read_text(encoding="utf-8"))["models"][0][
        "features"
    ]
    assert 60 <= found["n_rows"] < 100
    assert set(found["feature_gains"]) == {"region"}
    said = " ".join(capsys.readouterr().out.split())
    assert f"From {found['n_rows']} of 150 rows" in said
    assert "a better use of the feature;" in said


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_audit(tmp_path, monkeypatch, capsys, kind):
    """All rows of a small file; of a large one a sample, which is said."""
    monkeypatch.chdir(tmp_path)
    frame = regions(600).rename(columns={"<region>": "region"})
    frame["x"] = np.arange(600) % 7
    frame.to_csv("t.csv", index=False) if kind == "csv" else frame.to_parquet(
        "t.parquet"
    )
    given = [
        f"t.{kind}",
        "--label",
        "y",
        "--prob",
        "p",
        "--no-advice",
        "--resamples",
        "5",
    ]
    assert main(["audit", *given, "--features", "all", "--json", "a.json"]) == 0
    whole = json.loads(Path("a.json").read_text(encoding="utf-8"))["models"][0][
        "features"
    ]
    assert whole["n_rows"] == 600
    assert set(whole["feature_gains"]) == {"region", "x"}
    monkeypatch.setattr(_large, "_MAX_WHOLE_TABLE_BYTES", 0)
    monkeypatch.setattr(_drawn, "MAX_FEATURE_ROWS", 250)
    assert main(["audit", *given, "--features", "region,x", "--json", "b.json"]) == 0
    some = json.loads(Path("b.json").read_text(encoding="utf-8"))["models"][0][
        "features"
    ]
    n_rows = some["n_rows"]
    assert 250 <= n_rows < 350
    assert set(some["feature_gains"]) == {"region", "x"}
    said = capsys.readouterr()
    assert f"From {n_rows} of 600 rows" in " ".join(said.out.split())
    assert f"a sample of {n_rows} rows" in " ".join(said.err.split())


def test_features_that_are_the_labels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    regions(60).to_csv("t.csv", index=False)
    assert (
        main(["audit", "t.csv", "--label", "y", "--prob", "p", "--features", "y"]) != 0
    )
    assert "which determines the outcome" in " ".join(capsys.readouterr().err.split())
