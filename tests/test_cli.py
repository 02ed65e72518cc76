import subprocess
import sys

import numpy as np
import pytest

from sklearn_calib._cli import main
from sklearn_calib.testing import make_scores

pd = pytest.importorskip("pandas")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    proba, y = make_scores(2, 300)
    frame = pd.DataFrame({"p": proba[:, 1], "label": np.array(["no", "yes"])[y], "w": 1.0})
    frame.to_csv("t.csv", index=False)
    return frame


def run(*arguments):
    return main(["audit", *arguments])


def test_demo(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--data", "breast_cancer"]) == 0
    out = capsys.readouterr().out
    assert "(before)" in out and "temperature" in out
    assert str(tmp_path / "report.html") in out
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
def test_audit(table, capsys, tmp_path, form):
    if form == "parquet":
        table.to_parquet("u.parquet")
    else:
        table.to_csv(f"u.{form}", index=False)
    assert run(f"u.{form}", "--label", "label", "--prob", "p", "--weight", "w") == 0
    out = capsys.readouterr().out
    assert "expected_calibration_error" in out and "would recalibration help?" in out
    assert (tmp_path / "report.html").exists()


def test_audit_positive_class(table, capsys):
    table["q"] = 1 - table["p"]
    table.to_csv("t.csv", index=False)
    outputs = []
    for arguments in (["p"], ["q", "--positive", "no"], ["q,p"], ["p", "--classes", "no,yes"]):
        assert run("t.csv", "--label", "label", "--prob", *arguments) == 0
        lines = capsys.readouterr().out.splitlines()
        outputs.append(next(line for line in lines if "brier_loss" in line))
    assert len(set(outputs)) == 1


def test_audit_many_classes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    proba, y = make_scores(3, 300)
    frame = pd.DataFrame(proba, columns=["a", "b", "c"]).assign(y=y + 1)
    frame[frame.y < 3].to_csv("t.csv", index=False)
    assert run("t.csv", "--label", "y", "--prob", "a,b,c") == 2
    assert "expected one class for each of the 3 columns" in capsys.readouterr().err
    assert run("t.csv", "--label", "y", "--prob", "a,b,c", "--classes", "1,2,3") == 0


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, ["--prob", "q"], "expected a column 'q' in t.csv, got: p, label, w"),
        ({}, ["--prob", "p", "--weight", "v"], "expected a column 'v'"),
        ({"p": "high"}, ["--prob", "p"], "expected numbers in column 'p' of t.csv, got for inst"),
        ({"p": None}, ["--prob", "p"], "expected a number in every row of column 'p' of t.csv"),
        ({"p": 1.5}, ["--prob", "p"], "expected probabilities in [0, 1], got 1.5 in row 3"),
        ({"label": None}, ["--prob", "p"], "expected a label in every row, got nan in row 3"),
        ({"w": -1}, ["--prob", "p", "--weight", "w"], "expected sample_weight >= 0"),
        ({}, ["--prob", "p", "--positive", "maybe"], "expected --positive among no, yes"),
        ({}, ["--prob", "p", "--classes", "no"], "expected 2 classes in --classes, got 1"),
        ({}, ["--prob", "p", "--out", "nowhere/r.html"], "Choose one with --out"),
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
    assert "expected labels of at least two classes in column 'label'" in capsys.readouterr().err
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


def test_module_is_the_command():
    out = subprocess.run(
        [sys.executable, "-m", "sklearn_calib", "--version"], capture_output=True, text=True
    )
    assert out.returncode == 0 and out.stdout.strip()
    bad = subprocess.run([sys.executable, "-m", "sklearn_calib"], capture_output=True, text=True)
    assert bad.returncode == 2
