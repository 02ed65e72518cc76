"""The command threshold."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from sklearn_calib._cli import _map, main
from sklearn_calib.datasets import make_overconfident
from sklearn_calib.export import to_json
from sklearn_calib.export._dialects import DIALECTS
from sklearn_calib.export._sql import SqlDialect
from sklearn_calib.recalibrators import PlattScaling


@pytest.fixture
def fitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    map_ = PlattScaling().fit(*make_overconfident(2, 300))
    to_json(map_, "map.json")
    to_json(map_, "logits.json", input="logits")
    return map_


def read(file):
    return json.loads(Path(file).read_text(encoding="utf-8"))


def run(*arguments):
    return main(["threshold", *arguments])


def test_table_and_numbers(fitted, capsys):
    assert (
        run("map.json", "--at", "0.02,0.2", "--at", "0.999999", "--json", "t.json") == 0
    )
    said = capsys.readouterr().out
    found = read("t.json")["thresholds"]
    expected = [one.to_dict() for one in fitted.threshold([0.02, 0.2, 0.999999])]
    for one, other in zip(found, expected, strict=True):
        assert one["side"] == other["side"] and one["target"] == other["target"]
        assert one["score"] == pytest.approx(other["score"], abs=1e-12)
    assert found[2]["score"] is None and found[2]["range"][1] < 0.999999
    assert f"score >= {found[0]['score']!r}" in said and "if and only if" in said


def test_units_and_single_precision(fitted, capsys):
    numbers = []
    for file, more in (
        ("map.json", ["--scores", "logits"]),
        ("logits.json", []),
        ("logits.json", ["--scores", "proba"]),
        ("map.json", ["--float32"]),
    ):
        assert run(file, "--at", "0.2", "--json", "t.json", *more) == 0
        numbers.append(read("t.json")["thresholds"][0]["score"])
    logits, same, proba, single = numbers
    assert logits == same < 0 < proba < single == np.float32(single)
    assert "log-odds before recalibration" in capsys.readouterr().out


def test_bands(fitted, capsys):
    arguments = ["--sql", "sqlite", "--prob", "x y", "--into", "risk"]
    assert (
        run("map.json", "--at", "0.5,0.2", *arguments, "--names", 'low,"a, b",it\'s')
        == 0
    )
    sql = capsys.readouterr().out
    assert run("map.json", "--at", "0.2,0.5", "--sql", "ansi") == 0
    assert 'AS "band"' in capsys.readouterr().out
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (`x y` REAL)")
        database.execute("INSERT INTO t VALUES (0), (0.4), (1), (NULL)")
        found = database.execute(f"SELECT {sql} FROM t")
        assert found.description[0][0] == "risk"
        names = np.array(["low", "a, b", "it's"])
        p = fitted.predict_proba([0, 0.4, 1])[:, 1]
        expected = names[np.searchsorted([0.2, 0.5], p, side="right")]
        assert [row[0] for row in found] == [*expected.tolist(), None]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "2"], "expected probabilities from 0 to 1 in --at, got '2'"),
        (["--at", "2%"], "Write 0.02 for 2%"),
        (["--at", "0.02,,0.1"], "got ''"),
        (["--at", "0.1", "--prob", "p"], "--prob needs --sql"),
        (["--at", "0.1", "--names", "a,b"], "--names needs --sql"),
        (["--at", "0.1", "--into", "a"], "--into needs --sql"),
        (
            ["--at", "0.1", "--sql", "ansi", "--names", "a"],
            "expected 2 different --names",
        ),
        (["--at", "0.1", "--sql", "ansi", "--float32"], "--sql and"),
        (["--at", "0.1", "--sql", "ansi", "--json", "x"], "--sql and"),
        (["--at", "0.1", "--json", "map.json"], "'map.json' cannot be written"),
        (["--at", "0.1", "--json", "a/b"], "cannot be written"),
    ],
)
def test_refusals(fitted, capsys, arguments, said):
    before = Path("map.json").read_bytes()
    assert run("map.json", *arguments) == 2
    assert said in capsys.readouterr().err
    assert Path("map.json").read_bytes() == before


def test_sql_of_logits(fitted, capsys):
    """--scores beside --sql: the bands of log-odds begin where the table states."""
    assert run("map.json", "--at", "0.2", "--scores", "logits", "--json", "t.json") == 0
    score = read("t.json")["thresholds"][0]["score"]
    assert score < 0
    capsys.readouterr()
    words = [
        "--sql",
        "sqlite",
        "--prob",
        "z",
        "--scores",
        "logits",
        "--names",
        "low,high",
    ]
    assert run("map.json", "--at", "0.2", *words) == 0
    sql = capsys.readouterr().out
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (z REAL)")
        database.executemany(
            "INSERT INTO t VALUES (?)", [(score - 1e-9,), (score + 1e-9,)]
        )
        found = [row[0] for row in database.execute(f"SELECT {sql} FROM t")]
    assert found == ["low", "high"]


def test_several_classes_and_changed_maps(fitted, capsys):
    to_json(PlattScaling().fit(*make_overconfident(3, 300)), "three.json")
    for more in ([], ["--sql", "ansi"]):
        assert run("three.json", "--at", "0.1", *more) == 2
        assert "two classes" in capsys.readouterr().err
    changed = read("map.json")
    changed["map"]["parts"][1]["coef"][0] += 1.0
    Path("map.json").write_text(json.dumps(changed), encoding="utf-8")
    assert run("map.json", "--at", "0.5") == 2
    assert run("map.json", "--at", "0.5", "--allow", "edited") == 0


def test_dialects_are_those_of_to_sql():
    assert tuple(DIALECTS) == _map.SQL_DIALECTS == get_args(SqlDialect)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--at", ""], "expected a probability after --at, got none"),
        (
            ["--at", "0", "--sql", "ansi", "--names", "a,b"],
            "expected --at above 0 with --names",
        ),
    ],
)
def test_no_band_below_zero_and_no_target(fitted, capsys, options, said):
    assert run("map.json", *options) == 2
    assert capsys.readouterr().err.startswith(f"sklearn-calib: {said}")
