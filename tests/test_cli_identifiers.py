"""A remark where a column of identifiers repeats and no cluster was named."""

import json

import numpy as np
import pandas as pd
import pytest

from sklearn_calib._cli import main

N = 240


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, N)
    y = (rng.random(N) < p).astype(int)
    return pd.DataFrame({"y": y, "p": p, "q": p**2, "question id": np.arange(N) // 4})


def said(capsys, table, path, *words, command="audit"):
    if path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False, sep=";" if "semi" in path.stem else ",")
    rest = (
        ["--out", "none", "--no-advice", "--resamples", "5"]
        if command == "audit"
        else []
    )
    main([command, str(path), "--label", "y", "--prob", "p", *words, *rest])
    return capsys.readouterr().err


REMARK = "question id has 60 different values in 240 rows."


@pytest.mark.parametrize("name", ["t.csv", "semicolons.csv", "t.parquet", "t.jsonl"])
def test_said_of_every_form(capsys, tmp_path, table, name):
    text = said(capsys, table, tmp_path / name)
    assert REMARK in text and "add --cluster 'question id'." in text


@pytest.mark.slow
def test_said_by_every_command(capsys, tmp_path, table):
    more = (
        "--out",
        str(tmp_path / "map.json"),
        "--recalibrator",
        "temperature",
        "--allow",
        "no-gain",
    )
    assert REMARK in said(capsys, table, tmp_path / "t.csv", *more, command="fit")
    more = ("--prob", "q")
    assert REMARK in said(capsys, table, tmp_path / "t.csv", *more, command="compare")


@pytest.mark.parametrize(
    ("values", "count"), [(np.arange(N) % 30, 30), (np.arange(N) // 1.5, 160)]
)
def test_said_of_the_fewest_values_and_rows(capsys, tmp_path, table, values, count):
    text = said(capsys, table[["y", "p"]].assign(user=values), tmp_path / "t.csv")
    assert f"user has {count} different values in 240 rows." in text


def test_not_said_where_it_is_answered(capsys, tmp_path, table):
    path = tmp_path / "t.csv"
    assert "different values" not in said(
        capsys, table, path, "--cluster", "question id"
    )
    assert "different values" not in said(capsys, table, path, "--by", "question id")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", np.arange(N)),  # of each row
        ("user", np.arange(N) % 29),  # too few for clusters
        ("id", np.arange(N) // 1.4),  # hardly repeats
        ("hidden", np.arange(N) // 4),  # no name of identifiers
        ("paid", np.arange(N) // 4),
        ("y_idea", np.arange(N) // 4),
    ],
)
def test_not_said_without_reason(capsys, tmp_path, table, name, values):
    table = table.drop(columns="question id").assign(**{name: values})
    assert "different values" not in said(capsys, table, tmp_path / "t.csv")


@pytest.mark.parametrize(
    "name", ["ID", "user_id", "userId", "sessionID", "patient", "Prompt"]
)
def test_names_of_identifiers(capsys, tmp_path, table, name):
    table = table.drop(columns="question id").assign(**{name: np.arange(N) // 3})
    assert f"{name} has 80 different" in said(capsys, table, tmp_path / "t.csv")


def test_identifiers_of_mixed_kinds_stop_nothing(capsys, tmp_path, table):
    rows = table.rename(columns={"question id": "id"}).to_dict("records")
    rows[3]["id"], rows[4]["id"] = "text", {"a": [1]}
    path = tmp_path / "mixed.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    quick = ["--out", "none", "--no-advice", "--resamples", "5"]
    main(["audit", str(path), "--label", "y", "--prob", "p", *quick])
    assert "different values" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_workbook_is_opened_once(capsys, tmp_path, table, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    path, opened, load = tmp_path / "t.xlsx", [], openpyxl.load_workbook
    table.to_excel(path, index=False)
    monkeypatch.setattr(
        openpyxl,
        "load_workbook",
        lambda *a, **k: opened.append(1) or load(*a, **k),
    )
    words = ["--label", "y", "--prob", "p", "--prob", "q", "--resamples", "20"]
    for _ in range(2):
        assert main(["compare", str(path), *words]) == 0
        assert REMARK in capsys.readouterr().err
    assert len(opened) == 2  # nothing is kept from one command to the next
